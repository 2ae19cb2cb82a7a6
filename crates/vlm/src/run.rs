//! Puts the shared memory of an unmodified program on a section, by a small preloaded library.
//!
//! In the program and all that it starts, `mmap` of anonymous shared memory, `shmat` and `mmap` of POSIX shared
//! memory get their pages from the section's reserve, if they ask for a huge page or more.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::FdFlags;

use crate::error::{Error, Result};
use crate::limits;
use crate::registry::{Allocation, PageTables, Registry};
use crate::section::{Folder, check_reserve};

/// The library for `LD_PRELOAD`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

const PRELOAD: &str = "LD_PRELOAD";

/// Executes a program on a section; returns only if that fails.
pub fn run(registry: &Registry, name: &str, program: &[OsString]) -> Result<std::convert::Infallible> {
    let entry = registry.entry(name)?;
    let point = registry.mount_point(name);
    let folder = Folder::lock(entry, &point)?;
    if folder.is_in_use()? {
        return Err(crate::mount::in_use(name, &point));
    }
    folder.check_available()?;
    check_reserve(entry.page_size)?;
    if entry.allocation == Allocation::Fluid {
        limits::check(entry.size, entry.page_size)?;
    }
    let users = folder.into_user()?;
    let (first, arguments) = program.split_first().ok_or_else(|| {
        Error::Request("no program is given: `vlm run --section NAME -- PROGRAM`".to_owned())
    })?;
    let mut preload = library()?.into_os_string();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    keep_open(&users)?;
    let mut command = Command::new(first);
    command.args(arguments).env(PRELOAD, preload).env("VLM_MOUNT", &point).env("VLM_SECTION", name);
    command.env("VLM_PAGE_SIZE", entry.page_size.bytes().to_string());
    command.env("VLM_SHARED_TABLES", if entry.page_tables == PageTables::Shared { "1" } else { "0" });
    command.env("VLM_ALLOCATE", if entry.allocation == Allocation::Alloc { "1" } else { "0" });
    Err(Error::io("execute", Path::new(first))(command.exec()))
}

/// Lets the program inherit the lock, which holds until the last of its processes is gone.
fn keep_open(users: &File) -> Result<()> {
    rustix::io::fcntl_setfd(users, FdFlags::empty())
        .map_err(Error::io("keep open", &PathBuf::from(format!("descriptor {}", users.as_raw_fd()))))
}

/// The library's path; it is written into a folder that only this user can write to.
fn library() -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = if user == 0 {
        PathBuf::from("/run/vlm-library")
    } else {
        std::env::temp_dir().join(format!("vlm-{user}"))
    };
    let failed = |error: std::io::Error| Error::io("write the library for preloading in", &folder)(error);
    let mode = if user == 0 { 0o755 } else { 0o700 };
    match fs::DirBuilder::new().mode(mode).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(&folder).map_err(failed)?;
    if std::os::unix::fs::MetadataExt::uid(&found) != user
        || !found.is_dir()
        || found.permissions().mode() & 0o022 != 0
    {
        return Err(Error::Request(format!("{} belongs to another user: remove it", folder.display())));
    }
    let path = folder.join("preload.so");
    if fs::read(&path).is_ok_and(|bytes| bytes == LIBRARY) {
        return Ok(path);
    }
    let mut file = tempfile::Builder::new().prefix(".preload-").tempfile_in(&folder).map_err(failed)?;
    file.write_all(LIBRARY).map_err(failed)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o755)).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(path)
}
