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
//! Out of reach are host programs that are linked statically or run with another user's rights: the
//! loader preloads nothing there. They find what they find anyway: an image that the kernel refuses.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The library for `LD_PRELOAD`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/interpose.so"));

/// Between the words of the command, as in `interpose.c`.
const SEPARATOR: &str = "\x1f";

/// What a host program's environment must have, as `NAME=value`, so that it starts Alpha programs by
/// `command`. The words added to the command are the program's name (`argv[0]`), `--`, its path and
/// its other arguments. The first word is the path of an executable.
pub fn environment(command: &[OsString]) -> io::Result<[OsString; 2]> {
    let mut run = OsString::from("PATHLENGTH_RUN=");
    run.push(command.join(SEPARATOR.as_ref()));
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(library()?);
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok([run, preload])
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
        return Err(unusable("LD_PRELOAD has no place for such a path"));
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
