//! Compiles the library that host programs preload.

fn main() {
    preload_build::compile(&["src/interpose.c"], &[], "interpose.so");
}
