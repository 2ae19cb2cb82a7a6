//! Lets the host's programs start Alpha programs, with no help from the kernel (binfmt_misc).
//!
//! An Alpha program that calls `system` or `popen` runs the host's `sh`, and that cannot execute an
//! Alpha image. Host programs are therefore started with a small library preloaded, whose `exec`
//! functions start the engine for Alpha images and pass everything else on. The process keeps its id,
//! its descriptors and its parent, which a tracer or a process in between would not all allow.
//!
//! ```no_run
//! let command = ["/usr/bin/pathlength", "run", "--name"].map(std::ffi::OsString::from);
//! for variable in pathlength_interpose::environment(&command)? {
//!     println!("{}", variable.display());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Out of reach are host programs that are linked statically, run with another user's rights, or are not
//! of the host's own word size: the loader preloads nothing there. For them an Alpha image is a file that the
//! kernel refuses to execute.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The library for `LD_PRELOAD`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/interpose.so"));

/// The variable with the command, as in `interpose.c`, and the separator of its words.
const RUN: &str = "PATHLENGTH_RUN";
const SEPARATOR: &str = "\x1f";
const PRELOAD: &str = "LD_PRELOAD";

/// Variables for a host program's environment, as `NAME=value`, by which it starts Alpha programs with
/// `command`. The words added to the command are the program's name (`argv[0]`), `--`, its path and
/// its other arguments. The first word is the path of an executable.
pub fn environment(command: &[OsString]) -> io::Result<[OsString; 2]> {
    let mut preload = library()?.into_os_string();
    if let Some(others) = preloaded_by_others() {
        preload.push(":");
        preload.push(others);
    }
    Ok([variable(RUN, &command.join(SEPARATOR.as_ref())), variable(PRELOAD, &preload)])
}

/// This process's environment, as `NAME=value`, without the variables that [`environment`] adds: an Alpha
/// program must not see them.
pub fn inherited() -> impl Iterator<Item = OsString> {
    std::env::vars_os().filter_map(|(name, value)| match name.to_str() {
        Some(RUN) => None,
        Some(PRELOAD) => preloaded_by_others().map(|others| variable(PRELOAD, &others)),
        _ => Some(variable(&name, &value)),
    })
}

fn variable(name: impl AsRef<OsStr>, value: &OsStr) -> OsString {
    [name.as_ref(), value].join("=".as_ref())
}

/// `LD_PRELOAD` without this library, which comes first.
fn preloaded_by_others() -> Option<OsString> {
    let all = std::env::var_os(PRELOAD).filter(|all| !all.is_empty())?;
    if std::env::var_os(RUN).is_none() {
        return Some(all);
    }
    let first = all.as_bytes().iter().position(|&byte| byte == b':')?;
    Some(OsStr::from_bytes(&all.as_bytes()[first + 1..]).into())
}

/// The library's path. It is written once, into the user's cache, or where that cannot be into a
/// private folder among temporary files.
fn library() -> io::Result<PathBuf> {
    let cache = || {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)
    };
    let in_cache = cache().map(|folder| folder.join("pathlength")).map(|folder| written(&folder));
    if let Some(Ok(path)) = in_cache {
        return Ok(path);
    }
    // SAFETY: no preconditions.
    let user = unsafe { libc::geteuid() };
    written(&std::env::temp_dir().join(format!("pathlength-{user}")))
}

/// Writes the library into the folder, unless it is there.
fn written(folder: &Path) -> io::Result<PathBuf> {
    let unusable = |reason: &str| io::Error::other(format!("{}: {reason}", folder.display()));
    if !folder.is_absolute() || folder.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
        return Err(unusable("LD_PRELOAD cannot name such a path"));
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let status = fs::symlink_metadata(folder)?;
    // SAFETY: no preconditions.
    if !status.is_dir() || status.uid() != unsafe { libc::geteuid() } || status.mode() & 0o022 != 0 {
        return Err(unusable("not a folder that only its user can write to"));
    }
    let mut hasher = DefaultHasher::new();
    LIBRARY.hash(&mut hasher);
    let path = folder.join(format!("interpose-{:016x}.so", hasher.finish()));
    if fs::read(&path).is_ok_and(|contents| contents == LIBRARY) {
        return Ok(path);
    }
    // Other processes may be about to load it: it appears complete or not at all.
    let unfinished = folder.join(format!(".unfinished-{}", std::process::id()));
    fs::File::create(&unfinished)?.write_all(LIBRARY)?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn library_is_written_once_and_again_if_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(written(folder.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        fs::write(&path, "damaged").unwrap();
        assert_eq!(written(folder.path()).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
    }

    #[test]
    fn folders_that_cannot_be_trusted_or_named_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(written(&folder.path().join("with:colon")).is_err());
        assert!(written(&folder.path().join("with space")).is_err());
        assert!(written(Path::new("relative")).is_err());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(written(folder.path()).is_err());
    }
}
