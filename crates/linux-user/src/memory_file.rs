//! /proc/PID/mem: a process's memory as a file. The host's file would show the engine's memory too, so that the
//! guest never gets a descriptor of it. What it gets instead is an empty, sealed file in memory that has the name
//! as its own and keeps the offset; duplicates, and what others inherit or are sent, are that file too. Reading and
//! writing it is done here, in the guest's window only.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::reserved;

/// What /proc/self/fd says of a file in memory in front of and behind its name.
const IN_MEMORY: (&[u8], &[u8]) = (b"/memfd:", b" (deleted)");

/// The name of the file of /proc that a file in memory stands for, if what /proc/self/fd says is of such a one.
pub fn stands_for(link: &[u8]) -> Option<&[u8]> {
    let name = link.strip_prefix(IN_MEMORY.0)?.strip_suffix(IN_MEMORY.1)?;
    name.starts_with(b"/proc/").then_some(name)
}

/// The file that stands for a process's memory, opened as `flags` say.
pub fn open(process: u32, flags: i32) -> io::Result<OwnedFd> {
    let name = format!("/proc/{process}/mem\0");
    // SAFETY: the name is NUL-terminated; the descriptor, if there is one, is nobody else's.
    let file = unsafe {
        let descriptor =
            libc::memfd_create(name.as_ptr().cast(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::fchmod(descriptor, 0o600);
        let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
        libc::fcntl(descriptor, libc::F_ADD_SEALS, seals);
        OwnedFd::from_raw_fd(descriptor)
    };
    let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    let flags = flags & (libc::O_ACCMODE | libc::O_CLOEXEC | libc::O_NONBLOCK);
    // SAFETY: the path is NUL-terminated; the descriptor, if there is one, is nobody else's.
    unsafe {
        let descriptor = libc::open(path.as_ptr().cast(), flags);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// The process whose memory a descriptor stands for.
pub fn process_of(descriptor: RawFd) -> Option<u32> {
    let link = reserved::link_of(descriptor)?;
    let name = stands_for(&link)?.strip_prefix(b"/proc/")?.strip_suffix(b"/mem")?;
    std::str::from_utf8(name).ok()?.parse().ok()
}
