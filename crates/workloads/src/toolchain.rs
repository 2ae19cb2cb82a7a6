//! The compilers that builds are made with, and their switches.

use std::io;
use std::process::Command;

use crate::build_options::Error;

/// How the images of a build are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The name of its builds.
    pub name: &'static str,
    /// The compiler's command.
    pub compiler: &'static str,
    /// Debian's package with the compiler, and the C library to link against.
    pub package: &'static str,
    /// The switches that make this build differ from others.
    pub flags: &'static [&'static str],
    /// Variables for make, each behind a space, where a workload is built by its own makefiles.
    pub make: &'static str,
}

/// Alpha before the byte and word instructions.
pub const ORIGINAL: Toolchain = Toolchain {
    name: "original",
    compiler: "alpha-linux-gnu-gcc",
    package: "gcc-alpha-linux-gnu",
    flags: &["-mcpu=ev5", "-mno-bwx"],
    make: "",
};

/// Alpha with the byte and word instructions, otherwise the same.
pub const BYTE_WORD: Toolchain = Toolchain { name: "byte-word", flags: &["-mcpu=ev56", "-mbwx"], ..ORIGINAL };

/// Alpha whose floating-point traps are exact, as Debian's compiler makes code by default: a barrier follows most operations.
pub const EXACT_TRAPS: Toolchain =
    Toolchain { name: "exact-traps", flags: &["-mcpu=ev5", "-mno-bwx", "-mieee"], ..ORIGINAL };

/// The 21264, which has square roots.
pub const EV6: Toolchain = Toolchain { name: "ev6", flags: &["-mcpu=ev6"], ..ORIGINAL };

/// The host's own instruction set: prepares data, and is a peer in benchmarks.
pub const NATIVE: Toolchain =
    Toolchain { name: "native", compiler: "cc", package: "gcc", flags: &[], make: "" };

/// Both of Alpha's instruction sets, and the host's: what most workloads are built for.
pub const USUAL: &[Toolchain] = &[ORIGINAL, BYTE_WORD, NATIVE];

/// The switches of every build: optimized, with line numbers, and with the relocations that a
/// rewriter of images needs.
pub const COMMON_FLAGS: &[&str] = &["-O2", "-g", "-Wl,--emit-relocs"];

impl Toolchain {
    /// The compiler's first line about itself, for reports.
    pub fn version(&self) -> Result<String, Error> {
        let outcome = Command::new(self.compiler).arg("--version").env("LC_ALL", "C").output();
        let output = outcome.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoTool { tool: self.compiler, package: self.package },
            _ => Error::Io { doing: "running", path: self.compiler.into(), error },
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }
}
