//! Original sources from Debian's source packages, by apt, which checks their signatures. Nothing of
//! the machine's own settings for apt is changed, and no rights are needed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build_options::{BuildProgress, Error, io_error, publish, unfinished};

/// Where Debian 12 keeps its sources, and whose signature they have.
const SUITE: &str = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                     http://deb.debian.org/debian bookworm main\n";

/// The archive of the package's original sources, downloaded into `cache` unless it is there already.
pub fn download(
    cache: &Path,
    package: &'static str,
    home: &'static str,
    progress: &dyn Fn(BuildProgress),
) -> Result<PathBuf, Error> {
    let folder = cache.join(package);
    if !folder.is_dir() {
        progress(BuildProgress::Downloading { package });
        fs::create_dir_all(cache).map_err(io_error("creating", cache))?;
        let work = unfinished(cache)?;
        // apt changes its working directory.
        let path = work.path().canonicalize().map_err(io_error("entering", work.path()))?;
        let sources = path.join("sources.list");
        fs::write(&sources, SUITE).map_err(io_error("writing", &sources))?;
        apt_get(&path, package, home, &["update"])?;
        apt_get(&path, package, home, &["source", "--download-only", package])?;
        let archive = archive(&path, package, home)?;
        let complete = unfinished(cache)?;
        let kept = complete.path().join(archive.file_name().unwrap_or_default());
        fs::rename(&archive, &kept).map_err(io_error("moving", &archive))?;
        publish(complete, &folder)?;
    }
    archive(&folder, package, home)
}

/// The archive of original sources in a folder, which may have its signature, too: Debian calls it
/// `NAME_VERSION.orig.tar.*`, its authors `NAME-VERSION.tar.*` or similarly.
pub fn archive(folder: &Path, package: &'static str, home: &'static str) -> Result<PathBuf, Error> {
    let missing = |error| Error::NoSource { path: folder.into(), home, error };
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_other = name.contains(".debian.tar.") || name.ends_with(".asc");
        name.starts_with(package) && name.contains(".tar.") && !is_other
    };
    let entries = fs::read_dir(folder).map_err(missing)?;
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_archive).collect();
    found.sort();
    found.pop().ok_or_else(|| missing(io::Error::from(io::ErrorKind::NotFound)))
}

fn apt_get(
    folder: &Path,
    package: &'static str,
    home: &'static str,
    arguments: &[&str],
) -> Result<(), Error> {
    let here = folder.display();
    let options = [
        format!("Dir::Etc::SourceList={here}/sources.list"),
        "Dir::Etc::SourceParts=/dev/null".into(),
        format!("Dir::State::Lists={here}/lists"),
        format!("Dir::Cache={here}/cache"),
        // Root's apt would download as a user without write access here.
        "APT::Sandbox::User=root".into(),
        "APT::Update::Error-Mode=any".into(),
    ];
    for missing in ["lists/partial", "cache/archives/partial"].map(|name| folder.join(name)) {
        fs::create_dir_all(&missing).map_err(io_error("creating", &missing))?;
    }
    let mut command = Command::new("apt-get");
    command.current_dir(folder).env("LC_ALL", "C").arg("-qq");
    command.args(options.iter().flat_map(|option| ["-o", option]));
    let failed = |reason| Error::NoPackage { package: package.into(), home, reason };
    let output =
        command.args(arguments).output().map_err(|error| failed(format!("cannot run apt-get: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let reasons: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    Err(failed(format!("apt-get {}: {}", arguments[0], reasons.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_found_among_what_debian_has_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "find_4.9-4.debian.tar.xz",
            "find_4.9-4.dsc",
            "find_4.9.orig.tar.xz",
            "find_4.9.orig.tar.xz.asc",
        ];
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = archive(folder.path(), "find", "").unwrap();
        assert_eq!(found, folder.path().join("find_4.9.orig.tar.xz"));
    }
}
