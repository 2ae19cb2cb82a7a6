//! Compiles the library that `vlm run` preloads, and the part of it that the library for programs has too.

fn main() {
    cc::Build::new().file("src/fault.c").std("gnu11").warnings_into_errors(true).compile("vlm_fault");
    preload_build::compile(&["src/preload.c", "src/fault.c"], &[], "preload.so");
}
