//! For build scripts: compiles a small C library that other programs load, and that a command embeds
//! (`include_bytes!(concat!(env!("OUT_DIR"), "/NAME.so"))`).

use std::path::PathBuf;

/// Compiles `sources`, files of the package, to the shared library `output` in Cargo's `OUT_DIR`. `headers` are folders that
/// the sources include from. The library is made again when a source or a header changes. Names are hidden that the sources
/// do not export.
///
/// # Panics
///
/// If the sources do not compile, or there is no compiler: the build ends with the reason.
pub fn compile(sources: &[&str], headers: &[&str], output: &str) {
    for file in sources.iter().chain(headers).chain(&["build.rs"]) {
        println!("cargo::rerun-if-changed={file}");
    }
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let compiler = cc::Build::new().cargo_metadata(false).opt_level(2).debug(false).get_compiler();
    let outcome = compiler
        .to_command()
        .args(["-std=gnu11", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-s"])
        // Lazy binding would save the processor's state on the stack of whoever calls, such as a signal handler.
        .args(["-Wl,-z,now"])
        .args(headers.iter().map(|folder| format!("-I{folder}")))
        .arg("-o")
        .arg(folder.join(output))
        .args(sources)
        .status();
    match outcome {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed with {status}", compiler.path().display()),
        Err(error) => panic!("cannot run the C compiler {}: {error}", compiler.path().display()),
    }
}
