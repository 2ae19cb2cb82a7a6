//! Guest programs: built by the cross compiler, each test in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Alpha's C library is.
pub const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// The directory of a test, empty.
pub fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oracle").join(test);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the build directory is writable");
    directory
}

/// The source file of a guest.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/oracle/guests").join(name)
}

/// Compiles `sources` of `guests/` to `directory/output`. `switches` follow the sources, so that they may include
/// libraries.
pub fn compile(directory: &Path, output: &str, sources: &[&str], switches: &[&str]) -> PathBuf {
    run_compiler("alpha-linux-gnu-gcc", &["-O2", "-g"], directory, output, sources, switches)
}

/// The library that makes qemu-alpha answer as the engine does, for the host.
pub fn preload(directory: &Path) -> PathBuf {
    run_compiler("cc", &["-O2", "-shared", "-fPIC"], directory, "preload.so", &["preload.c"], &["-ldl"])
}

fn run_compiler(
    compiler: &str,
    first: &[&str],
    directory: &Path,
    output: &str,
    sources: &[&str],
    switches: &[&str],
) -> PathBuf {
    let output = directory.join(output);
    let sources = sources.iter().map(|name| source(name));
    let mut command = Command::new(compiler);
    command.args(first).arg("-o").arg(&output).args(sources).args(switches).current_dir(directory);
    let result = command.output().unwrap_or_else(|error| {
        panic!("cannot run {compiler}: {error}; Debian: apt-get install gcc-alpha-linux-gnu gcc")
    });
    assert!(result.status.success(), "{command:?}: {}", String::from_utf8_lossy(&result.stderr));
    output
}
