//! /proc/PID/mem: a process's memory as a file. The host's file would also show the engine's memory, so the guest
//! never gets a descriptor of it. It gets an empty, sealed memory file instead, whose name identifies the process and
//! whose offset is used. Duplicates, inherited descriptors and descriptors sent to other processes refer to that
//! file, too. Reads and writes are done here, within the guest's window only.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::OFlags;

use crate::procfs;
use host::Errno;

/// The text before and after the name of a memory file in /proc/self/fd.
const IN_MEMORY: (&[u8], &[u8]) = (b"/memfd:", b" (deleted)");

/// The /proc file for which a memory file stands, by the memory file's link in /proc/self/fd.
pub fn stands_for(link: &[u8]) -> Option<&[u8]> {
    let name = link.strip_prefix(IN_MEMORY.0)?.strip_suffix(IN_MEMORY.1)?;
    name.starts_with(b"/proc/").then_some(name)
}

/// Creates the file that stands for a process's memory, with the given open flags.
pub fn open(process: u32, flags: i32) -> Result<OwnedFd, Errno> {
    let name = format!("/proc/{process}/mem\0");
    // SAFETY: the name is NUL-terminated; the new descriptor has no other owner.
    let file = unsafe {
        let descriptor =
            libc::memfd_create(name.as_ptr().cast(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if descriptor < 0 {
            return Err(Errno::last());
        }
        libc::fchmod(descriptor, 0o600);
        let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
        libc::fcntl(descriptor, libc::F_ADD_SEALS, seals);
        OwnedFd::from_raw_fd(descriptor)
    };
    let flags = flags & (libc::O_ACCMODE | libc::O_NONBLOCK);
    let link = format!("thread-self/fd/{}", file.as_raw_fd());
    procfs::open(&link, OFlags::from_bits_retain(flags as u32))
}

/// The process whose memory a descriptor stands for.
pub fn process_of(descriptor: RawFd) -> Option<u32> {
    let link = procfs::link_of(descriptor)?;
    let name = stands_for(&link)?.strip_prefix(b"/proc/")?.strip_suffix(b"/mem")?;
    std::str::from_utf8(name).ok()?.parse().ok()
}
