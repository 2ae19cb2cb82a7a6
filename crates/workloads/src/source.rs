//! Finds the sources of a workload.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::build_options::{BuildFolders, BuildProgress, Error};
use crate::debian;
use crate::workload::{Source, Workload};

/// A source file, ready to be written next to the images.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub name: String,
    pub contents: Vec<u8>,
}

/// Reads every source of the workload. Those of packages come from the options' folder of sources if
/// there is one.
pub fn read(
    workload: &Workload,
    options: &BuildFolders,
    progress: &dyn Fn(BuildProgress),
) -> Result<Vec<SourceFile>, Error> {
    let folder = options.sources.as_deref();
    let mut files = Vec::new();
    for source in workload.sources {
        match *source {
            Source::Embedded { name, text } => {
                files.push(SourceFile { name: name.into(), contents: text.into() });
            }
            Source::Package { package, files: names, home } => {
                let root = match folder {
                    Some(folder) => folder.to_path_buf(),
                    None => find_package(package, home)?,
                };
                for path in names {
                    let name = path.rsplit('/').next().unwrap_or(path);
                    let path = root.join(if folder.is_some() { name } else { path });
                    files.push(SourceFile { name: name.into(), contents: contents(&path, home)? });
                }
            }
            Source::Debian { package, home } => {
                let path = match folder {
                    Some(folder) => debian::archive(folder, package, home)?,
                    None => debian::download(&options.folder.join("sources"), package, home, progress)?,
                };
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.push(SourceFile { name, contents: contents(&path, home)? });
            }
        }
    }
    Ok(files)
}

fn contents(path: &Path, home: &'static str) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| Error::NoSource { path: path.into(), home, error })
}

/// The folder where Cargo keeps a dependency of this crate. `--locked`, not `--offline`: Cargo
/// then fetches missing packages, and needs no network if there are none.
fn find_package(package: &str, home: &'static str) -> Result<PathBuf, Error> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let no_package = |reason: String| Error::NoPackage { package: package.into(), home, reason };
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path", manifest])
        .output()
        .map_err(|error| no_package(format!("cargo: {error}")))?;
    if !output.status.success() {
        return Err(no_package(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| no_package(error.to_string()))?;
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|candidate| candidate["name"] == package)
        .and_then(|found| Path::new(found["manifest_path"].as_str()?).parent())
        .map(Path::to_path_buf)
        .ok_or_else(|| no_package("cargo does not list it".into()))
}
