//! The compiler's own profile feedback: a build that counts, a training run of it, and a build that uses what was counted.

use std::path::{Path, PathBuf};
use std::{fs, io};

use engine::Configuration;

use crate::build::{AddedFiles, Build, BuildFolders, BuildProgress, Error, build_from, io_error};
use crate::source::SourceFile;
use crate::toolchain::{BYTE_WORD, Toolchain};
use crate::workload::Workload;

/// Counts while it runs, and writes a file for each object file when it ends. PostgreSQL's makefiles refuse a library that
/// calls `exit`, as what counts does, unless they are told of it.
pub const GENERATE: Toolchain = Toolchain {
    name: "profile-generate",
    flags: &["-mcpu=ev56", "-mbwx", "-fprofile-generate"],
    make: " enable_coverage=yes",
    ..BYTE_WORD
};

/// Compiled by what a build with [`GENERATE`] counted. Warnings of files without a profile would make configure scripts, which
/// compile such files, believe that a switch is not understood.
const USE: Toolchain = Toolchain {
    name: "profile-use",
    flags: &["-mcpu=ev56", "-mbwx", "-fprofile-use", "-Wno-missing-profile"],
    ..BYTE_WORD
};

/// A run that writes its profile to a folder, in which each file has the place that its object file has in the build.
pub fn training(
    configuration: &Configuration,
    build: &Build,
    profile: &Path,
) -> Result<Configuration, Error> {
    let folder = build.folder.canonicalize().map_err(io_error("finding", &build.folder))?;
    let prefix = std::path::absolute(profile).map_err(io_error("finding", profile))?;
    if profile.exists() {
        // Counts are added to those of a file that is there.
        fs::remove_dir_all(profile).map_err(io_error("removing", profile))?;
    }
    // The root has no name, which is not counted.
    let depth = folder.components().count() - 1;
    let mut configuration = configuration.clone();
    configuration.environment.push(format!("GCOV_PREFIX={}", prefix.display()).into());
    configuration.environment.push(format!("GCOV_PREFIX_STRIP={depth}").into());
    Ok(configuration)
}

/// Builds the workload by the profile of a training run, or finds the build made earlier.
pub fn build(
    workload: &Workload,
    profile: &Path,
    options: &BuildFolders,
    progress: &(dyn Fn(BuildProgress) + Sync),
) -> Result<Build, Error> {
    let added = AddedFiles { sources: files(profile)?, patches: Vec::new() };
    let mut builds = build_from(workload, &[USE], options, added, progress)?;
    Ok(builds.swap_remove(0))
}

/// The files of a profile, by their places in the folder.
fn files(profile: &Path) -> Result<Vec<SourceFile>, Error> {
    let mut files = Vec::new();
    let mut folders = vec![profile.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(profile).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(SourceFile { name, contents: fs::read(&path).map_err(io_error("reading", &path))? });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>();
    read().map_err(io_error("reading", folder))
}
