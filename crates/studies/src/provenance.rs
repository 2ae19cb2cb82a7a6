//! Provenance of results: the versions of all programs, and the commands.

use std::fs;
use std::path::Path;

use crate::environment::{LIBRARY, processor};
use workloads::build::Build;

/// The provenance of the result: versions of all programs, and the commands.
pub(crate) fn provenance_of(
    command: &str,
    (database, version): (&str, Option<String>),
    builds: &[Build],
    sysroot: &Path,
) -> Vec<(String, String)> {
    let library = version_after(&sysroot.join(LIBRARY), b"stable release version ");
    let unknown = || "unknown".to_string();
    let mut facts = vec![
        ("Command".into(), command.into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        (database.into(), version.unwrap_or_else(unknown)),
        ("Compiler".into(), builds[0].compiler.clone()),
        ("C library".into(), library.map_or_else(unknown, |v| format!("glibc {v}"))),
    ];
    for build in builds {
        facts.push((format!("{} build", build.name), build.commands.join("\n")));
        facts.push((format!("{} build runs on", build.name), format!("--cpu {}", processor(build))));
    }
    facts
}

/// The version that follows `marker` in a file: digits, letters and points, perhaps in quotes.
pub(crate) fn version_after(path: &Path, marker: &[u8]) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let at = bytes.windows(marker.len()).position(|window| window == marker)? + marker.len();
    let version = bytes[at..].iter().map(|&byte| char::from(byte)).skip_while(|c| !c.is_alphanumeric());
    let version: String = version.take_while(|c| c.is_alphanumeric() || *c == '.').collect();
    Some(version.trim_end_matches('.').into())
}

/// The provenance of the result on SQLite.
pub(crate) fn sqlite_provenance(command: &str, builds: &[Build; 2], sysroot: &Path) -> Vec<(String, String)> {
    let folder = builds[0].program.parent().unwrap_or(Path::new("."));
    let sqlite = version_after(&folder.join("sqlite3.h"), b"#define SQLITE_VERSION ");
    provenance_of(command, ("SQLite", sqlite), builds, sysroot)
}
