//! Reads and writes the files that stand for a process's memory.

use std::os::fd::{AsRawFd, RawFd};

use rustix::fs::OFlags;

use crate::abi::Abi;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::process_memory;
use crate::memory_file::process_of;
use crate::process_memory::TargetMemory;
use crate::{descriptor_table, procfs};
use host::Errno;

const EIO: Errno = Errno(libc::EIO);

/// Reads or writes the memory for which the descriptor in the first argument stands, at its offset or at `offset`, to
/// or from the guest's `buffers`. None if the descriptor is not such a file.
pub fn transfer<G: Abi>(
    call: &mut Call<G>,
    buffers: &[[u64; 2]],
    offset: Option<u64>,
    writes: bool,
) -> Option<CallOutcome> {
    if !call.kernel.opened_memory {
        return None;
    }
    let descriptor = call.int(0);
    let process = process_of(descriptor)?;
    Some(transfer_from(call, descriptor, process, buffers, offset, writes))
}

fn transfer_from<G: Abi>(
    call: &mut Call<G>,
    descriptor: RawFd,
    process: u32,
    buffers: &[[u64; 2]],
    offset: Option<u64>,
    writes: bool,
) -> CallOutcome {
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

/// Accesses this process's own memory, regardless of its protection, up to the first unmapped byte.
fn own<G: Abi>(call: &mut Call<G>, at: u64, buffer: u64, bytes: u64, writes: bool) -> CallOutcome {
    let mapped = mapped_bytes(call, at, bytes);
    if mapped == 0 {
        return Err(EIO);
    }
    let (from, buffer) = (call.pointer(at, mapped)?, call.pointer(buffer, bytes)?);
    let number = if writes { libc::SYS_pwrite64 } else { libc::SYS_pread64 };
    let transfer = || {
        let file = procfs::open("self/mem", if writes { OFlags::RDWR } else { OFlags::RDONLY })?;
        let arguments = [file.as_raw_fd() as u64, buffer, mapped, from, 0, 0];
        // SAFETY: the range lies in the window on both sides, and the descriptor is ours.
        unsafe { host::call(number, arguments) }
    };
    // No guest thread may reach the descriptor, not even for a moment.
    let outcome = descriptor_table::apart(transfer).ok_or(Errno(libc::EAGAIN))?;
    if writes && call.memory.holds_code(at, mapped) {
        // Discard decoded instructions, as the kernel flushes the instruction cache.
        call.memory.code_changed();
    }
    outcome
}

/// Number of bytes from an address on that are mapped, at most this many.
fn mapped_bytes<G: Abi>(call: &Call<G>, start: u64, bytes: u64) -> u64 {
    let end = start.saturating_add(bytes);
    let mut at = start;
    while at < end
        && let Some((_, region)) = call.memory.region_at(G::LAYOUT.page_of(at))
    {
        at = region.end;
    }
    at.min(end) - start
}

/// Accesses another guest's memory.
fn others<G: Abi>(call: &mut Call<G>, process: u32, at: u64, buffer: [u64; 2], writes: bool) -> CallOutcome {
    let number = if writes { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
    let local = [[call.pointer(buffer[0], buffer[1])?, buffer[1]]];
    let remote = [[TargetMemory::of(call.memory, process)?.address(call.memory, at, buffer[1]), buffer[1]]];
    match process_memory::transfer(call, number, process.into(), &local, &remote, 0) {
        Err(Errno(libc::EFAULT)) => Err(EIO),
        other => other,
    }
}
