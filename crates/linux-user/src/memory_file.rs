//! /proc/PID/mem: a process's memory as a file. The host's file would show the engine's memory too, so that the
//! guest never gets a descriptor of it. What it gets instead is an empty, sealed file in memory that has the name
//! as its own and keeps the offset; duplicates, and what others inherit or are sent, are that file too. Reading and
//! writing it is done here, in the guest's window only.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::call::{Call, Outcome};
use crate::process_memory::{self, Target};
use crate::reserved;
use host::Errno;
use memory::PAGE;

const EIO: Errno = Errno(libc::EIO);

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

/// Reads or writes the memory that a descriptor, the call's first argument, stands for: from its offset on, or
/// from `offset` on, to or from the guest's `buffers`. None if it stands for no process's memory.
pub fn transfer(call: &mut Call, buffers: &[[u64; 2]], offset: Option<u64>, writes: bool) -> Option<Outcome> {
    if !call.kernel.opened_memory {
        return None;
    }
    let descriptor = call.int(0);
    let process = process_of(descriptor)?;
    Some(transfer_from(call, descriptor, process, buffers, offset, writes))
}

fn transfer_from(
    call: &mut Call,
    descriptor: RawFd,
    process: u32,
    buffers: &[[u64; 2]],
    offset: Option<u64>,
    writes: bool,
) -> Outcome {
    let with = |command: i32| [descriptor as u64, command as u64, 0, 0, 0, 0];
    let access = call.host(libc::SYS_fcntl, with(libc::F_GETFL))? as i32 & libc::O_ACCMODE;
    if access != libc::O_RDWR && (access == libc::O_WRONLY) != writes {
        return Err(Errno(libc::EBADF));
    }
    let start = match offset {
        Some(offset) => offset,
        None => call.host(libc::SYS_lseek, [descriptor as u64, 0, libc::SEEK_CUR as u64, 0, 0, 0])?,
    };
    let mut done = 0;
    for &[buffer, bytes] in buffers.iter().filter(|[_, bytes]| *bytes > 0) {
        let moved = match start.checked_add(done) {
            None => Err(EIO),
            Some(at) if process == std::process::id() => own(call, at, buffer, bytes, writes),
            Some(at) => others(call, process, at, [buffer, bytes], writes),
        };
        match moved {
            Ok(moved) => done += moved,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        if moved != Ok(bytes) {
            break;
        }
    }
    if offset.is_none() {
        let next = (start + done) as i64 as u64;
        call.host(libc::SYS_lseek, [descriptor as u64, next, libc::SEEK_SET as u64, 0, 0, 0])?;
    }
    Ok(done)
}

/// The process's own memory, whatever its protection forbids, as far as something is mapped.
fn own(call: &mut Call, at: u64, buffer: u64, bytes: u64, writes: bool) -> Outcome {
    let mapped = mapped_bytes(call, at, bytes);
    if mapped == 0 {
        return Err(EIO);
    }
    let (from, buffer) = (call.pointer(at, mapped)?, call.pointer(buffer, bytes)?);
    let open = || OpenOptions::new().read(true).write(writes).open("/proc/self/mem");
    let file: File = reserved::out_of_reach(reserved::beyond_limit(open)?.into()).into();
    let number = if writes { libc::SYS_pwrite64 } else { libc::SYS_pread64 };
    let arguments = [file.as_raw_fd() as u64, buffer, mapped, from, 0, 0];
    // SAFETY: what is read or written lies in the window on both sides, and the descriptor is ours.
    let outcome = unsafe { host::call(number, arguments) };
    if writes && call.memory.holds_code(at, mapped) {
        // As the kernel, which makes the processor forget what it had fetched.
        call.memory.code_changed();
    }
    outcome
}

/// How many bytes from an address on, at most so many, something is mapped at.
fn mapped_bytes(call: &Call, start: u64, bytes: u64) -> u64 {
    let end = start.saturating_add(bytes);
    let mut at = start;
    while at < end
        && let Some((_, region)) = call.memory.region_at(at & !(PAGE - 1))
    {
        at = region.end;
    }
    at.min(end) - start
}

/// Another guest's memory.
fn others(call: &mut Call, process: u32, at: u64, buffer: [u64; 2], writes: bool) -> Outcome {
    let number = if writes { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
    let local = [[call.pointer(buffer[0], buffer[1])?, buffer[1]]];
    let remote = [[Target::of(call.memory, process)?.address(call.memory, at, buffer[1]), buffer[1]]];
    match process_memory::transfer(call, number, process.into(), &local, &remote, 0) {
        Err(Errno(libc::EFAULT)) => Err(EIO),
        other => other,
    }
}
