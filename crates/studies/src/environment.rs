//! What the programs of a study run in: the C library, the processors, and settings that are the same everywhere.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use engine::{Configuration, SystemSettings};
use workloads::build::Build;
use workloads::toolchain::ORIGINAL;

use crate::error::NoLibrary;

/// The C library under the sysroot.
pub(crate) const LIBRARY: &str = "lib/libc.so.6.1";

/// The CPU that a build runs on: an instruction that the build must not have is a fault.
pub(crate) fn processor(build: &Build) -> isa::CpuModel {
    if build.name == ORIGINAL.name { isa::CpuModel::Ev5 } else { isa::CpuModel::Ev56 }
}

/// Checks, before minutes of work, that programs for Alpha can run.
pub(crate) fn check_library(sysroot: &Path) -> Result<(), NoLibrary> {
    let library = sysroot.join(LIBRARY);
    if library.exists() { Ok(()) } else { Err(NoLibrary(library)) }
}

/// A run that is the same everywhere.
pub(crate) fn repeatable(
    program: PathBuf,
    arguments: Vec<OsString>,
    model: impl Into<isa::Processors>,
    sysroot: &Path,
) -> Configuration {
    Configuration {
        program,
        name: None,
        arguments,
        // The environment may change a program's behaviour.
        environment: vec!["LC_ALL=C".into()],
        model: model.into(),
        settings: SystemSettings { sysroot: Some(sysroot.into()), ..SystemSettings::default() },
    }
}
