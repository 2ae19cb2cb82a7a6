//! Compiles the library that `vlm run` preloads, and the part of it that the library for programs has too.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/preload.c");
    println!("cargo::rerun-if-changed=src/fault.c");
    println!("cargo::rerun-if-changed=build.rs");
    cc::Build::new().file("src/fault.c").std("gnu11").warnings_into_errors(true).compile("vlm_fault");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let compiler = cc::Build::new().cargo_metadata(false).opt_level(2).debug(false).get_compiler();
    let outcome = compiler
        .to_command()
        .args([
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            "-s",
            "-o",
        ])
        .arg(folder.join("preload.so"))
        .args(["src/preload.c", "src/fault.c"])
        .status();
    match outcome {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed with {status}", compiler.path().display()),
        Err(error) => panic!("cannot run the C compiler {}: {error}", compiler.path().display()),
    }
}
