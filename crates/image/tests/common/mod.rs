//! Programs to test with, and the GNU tools as oracles.

// Not every test needs all of it.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C library of the cross sysroot: large, stripped, with versions and aliases.
pub const LIBC: &str = "/usr/alpha-linux-gnu/lib/libc.so.6.1";

const SOURCE: &str = r#"
#include <stdio.h>
int counter = 3;
static __attribute__((noinline)) int helper(int x) { return x * counter + 1; }
__attribute__((noinline)) double scale(double x) { return x * 2.5; }
int scaled(int x) __attribute__((alias("__scaled")));
int __scaled(int x) { return (int)scale(x) + helper(x); }
int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        printf("%s %d\n", argv[i], scaled(i));
    return 0;
}
"#;

/// Output of a cross tool; a tool that is missing or fails fails the test.
pub fn tool<A: AsRef<OsStr> + Debug>(name: &str, arguments: &[A]) -> String {
    let program = format!("alpha-linux-gnu-{name}");
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} must be installed to test: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?} failed: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles the test program into `directory` with additional switches.
pub fn compile(directory: &Path, switches: &[&str]) -> PathBuf {
    let source = directory.join("program.c");
    std::fs::write(&source, SOURCE).unwrap();
    let program = directory.join("program");
    let mut arguments = vec!["-O2", "-g", source.to_str().unwrap(), "-o", program.to_str().unwrap()];
    arguments.extend(switches);
    tool("gcc", &arguments);
    program
}
