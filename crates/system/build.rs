//! Compiles the plugin that qemu-system-alpha loads.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/recorder.c");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let compiler = cc::Build::new().cargo_metadata(false).opt_level(2).debug(false).get_compiler();
    // QEMU defines the functions that the plugin calls.
    let outcome = compiler
        .to_command()
        .args(["-std=gnu11", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-s", "-o"])
        .arg(folder.join("recorder.so"))
        .arg("src/recorder.c")
        .status();
    match outcome {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed with {status}", compiler.path().display()),
        Err(error) => panic!("cannot run the C compiler {}: {error}", compiler.path().display()),
    }
}
