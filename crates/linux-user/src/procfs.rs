//! /proc, and which of its files a descriptor or a path leads to.
//!
//! Paths say nothing certain about a file: it may be reached through links, other mounts, or another root directory.
//! So a file is identified by its device and inode among those of the /proc that the engine opened at its start. A file
//! of a /proc that is not found there is unknown, and refused.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};

use crate::{descriptor_table, reserved};
use guest_memory::WINDOW;
use host::Errno;

/// `f_type` of the file system of /proc (linux/magic.h).
const MAGIC: u64 = 0x9fa0;
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The /proc that the engine opened.
struct Root {
    descriptor: OwnedFd,
    identity: ProcFileIdentity,
}

/// The identity of a file: device, inode and mount. The mount is 0 on hosts before Linux 5.8.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ProcFileIdentity {
    device: (u32, u32),
    inode: u64,
    mount: u64,
}

impl Root {
    fn open() -> Option<Root> {
        let opened = reserved::beyond_limit(|| rustix::fs::open("/proc", PATH_ONLY, Mode::empty())).ok()?;
        let descriptor =
            reserved::duplicate_to(&opened, reserved::proc_number()).filter(|_| is_file_of(&opened))?;
        let identity = identity(&descriptor, "")?;
        Some(Root { descriptor, identity })
    }

    /// Whether a name is that of this file. A file that is mounted over another one has another mount. Only a file
    /// that belongs to no process may lie in a mount of its own: containers have some.
    fn has(&self, name: &str, file: ProcFileIdentity) -> bool {
        let found = identity(&self.descriptor, name);
        found.is_some_and(|found| {
            let same = (found.device, found.inode) == (file.device, file.inode);
            same && (found.mount == self.identity.mount
                || matches!(ProcEntry::named(name), ProcEntry::General(_)))
        })
    }
}

fn root() -> Option<&'static Root> {
    static ROOT: OnceLock<Option<Root>> = OnceLock::new();
    ROOT.get_or_init(Root::open).as_ref()
}

/// Opens /proc, before the guest starts.
pub fn begin() {
    root();
}

/// The directory /proc.
pub fn directory() -> Option<BorrowedFd<'static>> {
    use std::os::fd::AsFd;
    root().map(|root| root.descriptor.as_fd())
}

/// The identity of a file relative to a directory, or of the directory itself; a link in the last component is not
/// followed.
fn identity(directory: impl std::os::fd::AsFd, name: &str) -> Option<ProcFileIdentity> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    let found = rustix::fs::statx(directory, name, flags, StatxFlags::INO | StatxFlags::MNT_ID).ok()?;
    let mount = if found.stx_mask & StatxFlags::MNT_ID.bits() != 0 { found.stx_mnt_id } else { 0 };
    Some(ProcFileIdentity { device: (found.stx_dev_major, found.stx_dev_minor), inode: found.stx_ino, mount })
}

/// A file of /proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcEntry {
    /// In the folder of a process or thread: its ID, and the name there, which is empty for the folder itself.
    Of(u32, String),
    /// Any other, by its name in /proc.
    General(String),
}

impl ProcEntry {
    /// The entry with a name in /proc.
    fn named(name: &str) -> ProcEntry {
        let process = |name: &str| {
            let (id, rest) = name.split_once('/').unwrap_or((name, ""));
            Some((id.parse().ok()?, rest.to_string()))
        };
        let Some((id, rest)) = process(name) else { return ProcEntry::General(name.into()) };
        let thread = rest.strip_prefix("task/").and_then(process);
        let (id, rest) = thread.unwrap_or((id, rest));
        ProcEntry::Of(id, rest)
    }
}

/// Whether a descriptor is of a file in a /proc.
pub fn is_file(descriptor: RawFd) -> bool {
    // SAFETY: the descriptor is only borrowed for one call, which fails if it is not open.
    descriptor >= 0 && is_file_of(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

fn is_file_of(descriptor: impl std::os::fd::AsFd) -> bool {
    rustix::fs::fstatfs(descriptor).is_ok_and(|found| found.f_type as u64 == MAGIC)
}

/// Which file of /proc a descriptor is of. None if it is unknown.
pub fn identify(descriptor: RawFd) -> Option<ProcEntry> {
    let root = root()?;
    // SAFETY: the descriptor is only borrowed for one call, which fails if it is not open.
    let file = identity(unsafe { BorrowedFd::borrow_raw(descriptor) }, "")?;
    let link = String::from_utf8(link_of(descriptor)?).ok()?;
    // The link is a hint: /proc, or some part of it, may lie anywhere.
    let names = link.match_indices('/').map(|(slash, _)| &link[slash + 1..]).chain([""]);
    let mut names = names.filter(|_| file.device == root.identity.device);
    names.find(|name| root.has(name, file)).map(ProcEntry::named)
}

/// The path of a descriptor's file, as /proc shows it.
pub fn link_of(descriptor: RawFd) -> Option<Vec<u8>> {
    read_link(&format!("thread-self/fd/{descriptor}"))
}

/// The target of a link in /proc.
pub fn read_link(name: &str) -> Option<Vec<u8>> {
    let target = rustix::fs::readlinkat(directory()?, name, Vec::new()).ok()?;
    Some(target.into_bytes())
}

/// The contents of a file in /proc. They are read where no guest thread can exchange the descriptor.
pub fn read(name: &str) -> Option<Vec<u8>> {
    descriptor_table::apart(|| {
        let mut contents = Vec::new();
        let file = open(name, OFlags::RDONLY).ok()?;
        std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut contents).ok()?;
        Some(contents)
    })?
}

/// Opens a file in /proc.
pub fn open(name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let directory = directory().ok_or(Errno(libc::ENOENT))?;
    let opened = rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty());
    opened.map_err(|error| Errno(error.raw_os_error()))
}

/// The names in a folder of /proc.
pub fn entries(folder: &str) -> Vec<String> {
    let Ok(folder) = open(folder, OFlags::RDONLY | OFlags::DIRECTORY) else { return Vec::new() };
    let entries = rustix::fs::Dir::new(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether a path relative to a directory lies in a /proc.
pub fn is_folder(directory: RawFd, folder: &[u8]) -> bool {
    let directory = match directory {
        libc::AT_FDCWD => CWD,
        ..0 => return false,
        // SAFETY: the descriptor is only borrowed for single calls, which fail if it is not open.
        _ => unsafe { BorrowedFd::borrow_raw(directory) },
    };
    if folder.is_empty() && directory.as_raw_fd() != libc::AT_FDCWD {
        return is_file_of(directory);
    }
    let folder = if folder.is_empty() { b"." } else { folder };
    if directory.as_raw_fd() == libc::AT_FDCWD || folder.starts_with(b"/") {
        return rustix::fs::statfs(folder).is_ok_and(|found| found.f_type as u64 == MAGIC);
    }
    opened(directory, folder, PATH_ONLY).is_some_and(is_file_of)
}

/// Opens a file for a moment. The guest may have used up its limit of descriptors.
fn opened(directory: BorrowedFd, path: &[u8], flags: OFlags) -> Option<OwnedFd> {
    reserved::beyond_limit(|| rustix::fs::openat(directory, path, flags, Mode::empty())).ok()
}

/// Which file of /proc a link in one is; its target is not looked at. EACCES if it is unknown.
pub fn identify_link(directory: RawFd, path: &[u8]) -> Result<ProcEntry, Errno> {
    const UNKNOWN: Errno = Errno(libc::EACCES);
    if path.is_empty() {
        return identify(directory).ok_or(UNKNOWN);
    }
    // SAFETY: as in `is_folder`; absolute paths need no directory.
    let directory = if directory < 0 { CWD } else { unsafe { BorrowedFd::borrow_raw(directory) } };
    let link = opened(directory, path, PATH_ONLY | OFlags::NOFOLLOW).ok_or(UNKNOWN)?;
    identify(link.as_raw_fd()).ok_or(UNKNOWN)
}

/// True for the ID of this process or of one of its threads.
pub fn is_own(id: u32) -> bool {
    directory().is_some_and(|proc| identity(proc, &format!("self/task/{id}")).is_some())
}

/// Whether the IDs in /proc are those of the namespace in which the process is.
pub fn has_our_ids() -> bool {
    read_link("self").is_some_and(|id| id == std::process::id().to_string().into_bytes())
}

/// Whether a process may run on an engine: the same program, or any other with as much address space as an engine
/// reserves for its guest. True if that cannot be found out.
pub fn runs_engine(id: u32) -> bool {
    match (target("self/exe"), target(&format!("{id}/exe"))) {
        (Some(own), Some(other)) if own != other => mapped_bytes(id).is_none_or(|bytes| bytes >= WINDOW),
        _ => true,
    }
}

/// Size in bytes of a process's address space (statm in proc_pid_statm(5)).
fn mapped_bytes(id: u32) -> Option<u64> {
    let contents = String::from_utf8(read(&format!("{id}/statm"))?).ok()?;
    let pages: u64 = contents.split_ascii_whitespace().next()?.parse().ok()?;
    // SAFETY: no preconditions.
    Some(pages.saturating_mul(unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64))
}

/// The other processes that may run on an engine.
pub fn engines() -> Vec<u32> {
    let ids = entries("").into_iter().filter_map(|name| name.parse().ok());
    ids.filter(|&id| !is_own(id) && runs_engine(id)).collect()
}

/// Device and inode of the file to which a link in /proc leads.
pub fn target(name: &str) -> Option<(u64, u64)> {
    let found = rustix::fs::statat(directory()?, name, AtFlags::empty()).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// Whether there is a process or thread with this ID.
pub fn exists(id: u32) -> bool {
    directory().is_some_and(|proc| identity(proc, &id.to_string()).is_some())
}

/// Keeps the file that the guest executes open, as the kernel does, at a number that all engines know: what
/// `exe` of its process must lead to.
pub fn set_executable(path: &Path) {
    let opened = reserved::beyond_limit(|| rustix::fs::open(path, PATH_ONLY, Mode::empty()));
    // The number keeps the descriptor until the next program.
    let placed =
        opened.ok().and_then(|opened| reserved::duplicate_to(&opened, reserved::executable_number()));
    std::mem::forget(placed);
}

/// The name in /proc of a link to the file that the guest of a process executes.
pub fn executable(id: u32) -> CString {
    let number = reserved::executable_number();
    let process = if is_own(id) { "thread-self".into() } else { id.to_string() };
    CString::new(format!("{process}/fd/{number}")).expect("digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_what_they_are() {
        let id = std::process::id();
        let here = |path: &str| {
            identify(rustix::fs::open(path, PATH_ONLY | OFlags::NOFOLLOW, Mode::empty()).unwrap().as_raw_fd())
        };
        let of = |name: &str| Some(ProcEntry::Of(id, name.into()));
        assert_eq!(here("/proc/self/status"), of("status"));
        assert_eq!(here("/proc/thread-self/../../mem"), of("mem"));
        assert_eq!(here("/proc/self/root/proc/self/exe"), of("exe"));
        assert_eq!(here("/proc/self/fd/0"), of("fd/0"));
        assert_eq!(here("/proc/net/../net/dev").map(|entry| matches!(entry, ProcEntry::Of(..))), Some(true));
        assert_eq!(here("/proc/self"), Some(ProcEntry::General("self".into())));
        assert_eq!(
            here("/proc/sys/kernel/osrelease"),
            Some(ProcEntry::General("sys/kernel/osrelease".into()))
        );
        assert_eq!(here("/proc"), Some(ProcEntry::General(String::new())));
        assert!(is_own(id) && runs_engine(id) && !is_own(1));
    }

    #[test]
    fn a_process_with_an_engines_address_space_counts_as_one() {
        let mut host = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!runs_engine(host.id()));
        assert!(runs_engine(u32::MAX), "a process of which nothing is known");
        host.kill().unwrap();
        host.wait().unwrap();
    }
}
