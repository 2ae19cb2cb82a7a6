//! Vectored input and output, times and links of files.

use crate::abi::Abi;
use crate::abi::layout::u64_at;
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Argument, Call, CallOutcome};
use crate::calls::{memory_file, netlink};
use crate::memory_file::stands_for;
use crate::procfs::{self, ProcEntry};
use crate::reserved;
use host::Errno;

/// Maximum number of vectors of readv and similar calls (UIO_MAXIOV).
const MOST_VECTORS: u64 = 1024;

/// readlinkat(directory, path, buffer, size)
pub fn readlinkat<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [directory, _, buffer, size, ..] = call.arguments;
    if size as i32 <= 0 {
        return Err(Errno(libc::EINVAL));
    }
    let path = call.path(1)?;
    let mut target = vec![0u8; libc::PATH_MAX as usize];
    let room = target.len() as u64;
    let arguments = [directory, path.as_ptr() as u64, target.as_mut_ptr() as u64, room, 0, 0];
    let bytes = call.host(libc::SYS_readlinkat, arguments)? as usize;
    target.truncate(bytes);
    if procfs::is_folder(directory as i32, reserved::folder_of(path.as_bytes()))
        && let ProcEntry::Of(id, name) = reserved::link_entry(directory as i32, path.as_bytes())?
        && name == "exe"
        && procfs::runs_engine(id)
    {
        let executable = procfs::executable(id);
        target = procfs::read_link(executable.to_str().unwrap_or_default()).ok_or(Errno(libc::EACCES))?;
    }
    let target = stands_for(&target).unwrap_or(&target);
    let shown = &target[..target.len().min(size as usize)];
    call.memory.write(buffer, shown)?;
    Ok(shown.len() as u64)
}

impl<G: Abi> Call<'_, '_, G> {
    /// An array of `struct iovec` with host pointers.
    pub fn vectors(&self, address: u64, count: u64) -> Result<Vec<[u64; 2]>, Errno> {
        let mut vectors = self.guest_vectors(address, count)?;
        for [base, length] in &mut vectors {
            *base = if *length == 0 { 0 } else { self.pointer(*base, *length)? };
        }
        Ok(vectors)
    }

    /// An array of `struct iovec` of the guest.
    pub fn guest_vectors(&self, address: u64, count: u64) -> Result<Vec<[u64; 2]>, Errno> {
        if count > MOST_VECTORS {
            return Err(Errno(libc::EINVAL));
        }
        let mut bytes = vec![0; 16 * count as usize];
        self.memory.read(address, &mut bytes)?;
        let vector = |bytes: &[u8]| {
            let (base, length) = (u64_at(bytes, 0), u64_at(bytes, 8));
            if length > i64::MAX as u64 { Err(Errno(libc::EINVAL)) } else { Ok([base, length]) }
        };
        bytes.chunks(16).map(vector).collect()
    }
}

/// The position of a vectored read or write.
enum FilePosition {
    /// The file's own offset.
    Own,
    /// This offset.
    Given,
    /// This offset, or the file's own if it is -1.
    Either,
}

/// Calls of the form (descriptor, vectors, count, ...).
fn vectored<G: Abi>(
    call: &mut Call<G>,
    number: libc::c_long,
    position: FilePosition,
    writes: bool,
) -> CallOutcome {
    let [descriptor, vectors, count, low, high, flags] = call.arguments;
    let host_vectors = call.vectors(vectors, count)?;
    if call.kernel.opened_memory {
        let offset = match position {
            FilePosition::Own => None,
            FilePosition::Either if low == u64::MAX => None,
            FilePosition::Given | FilePosition::Either => Some(low),
        };
        let guests = host_vectors.iter().map(|&[base, bytes]| [call.memory.guest(base as *const u8), bytes]);
        let guests: Vec<[u64; 2]> = guests.collect();
        if let Some(outcome) = memory_file::transfer(call, &guests, offset, writes) {
            return outcome;
        }
    }
    let arguments = [descriptor, host_vectors.as_ptr() as u64, count, low, high, flags];
    let bytes = call.wait(number, arguments, Restarts)?;
    if !writes && call.kernel.opened_netlink {
        let buffers = call.guest_vectors(vectors, count)?;
        netlink::convert(call, &buffers, bytes)?;
    }
    Ok(bytes)
}

/// write(descriptor, buffer, size)
pub fn write<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, buffer, size, ..] = call.arguments;
    if let Some(outcome) = memory_file::transfer(call, &[[buffer, size]], None, true) {
        return outcome;
    }
    call.pass_wait(libc::SYS_write, &[Argument::Number, Argument::Buffer, Argument::Number], Restarts)
}

/// pread64(descriptor, buffer, size, offset)
pub fn pread64<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    at_offset(call, libc::SYS_pread64, false)
}

/// pwrite64(descriptor, buffer, size, offset)
pub fn pwrite64<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    at_offset(call, libc::SYS_pwrite64, true)
}

fn at_offset<G: Abi>(call: &mut Call<G>, number: libc::c_long, writes: bool) -> CallOutcome {
    let [_, buffer, size, offset, ..] = call.arguments;
    if let Some(outcome) = memory_file::transfer(call, &[[buffer, size]], Some(offset), writes) {
        return outcome;
    }
    let arguments = &[Argument::Number, Argument::Buffer, Argument::Number, Argument::Number];
    call.pass_wait(number, arguments, Restarts)
}

/// readv(descriptor, vectors, count)
pub fn readv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vectored(call, libc::SYS_readv, FilePosition::Own, false)
}

/// writev(descriptor, vectors, count)
pub fn writev<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vectored(call, libc::SYS_writev, FilePosition::Own, true)
}

/// preadv(descriptor, vectors, count, offset)
pub fn preadv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vectored(call, libc::SYS_preadv, FilePosition::Given, false)
}

/// pwritev(descriptor, vectors, count, offset)
pub fn pwritev<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vectored(call, libc::SYS_pwritev, FilePosition::Given, true)
}

/// preadv2(descriptor, vectors, count, offset, 0, flags)
pub fn preadv2<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vectored(call, libc::SYS_preadv2, FilePosition::Either, false)
}

/// pwritev2(descriptor, vectors, count, offset, 0, flags)
pub fn pwritev2<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    vectored(call, libc::SYS_pwritev2, FilePosition::Either, true)
}

/// Directory entries in the host's format, without the engine's: its descriptors in a process's `fd` and `fdinfo`,
/// its threads in this process's `task`.
pub fn entries<G: Abi>(call: &mut Call<G>, descriptor: u64, size: u64) -> Result<Vec<u8>, Errno> {
    const NAME: usize = 19;
    let mut entries = vec![0u8; (size as usize).min(1 << 16)];
    loop {
        let arguments = [descriptor, entries.as_mut_ptr() as u64, entries.len() as u64, 0, 0, 0];
        let filled = call.host_unlocked(libc::SYS_getdents64, arguments)? as usize;
        let Some(folder) = proc_folder(descriptor as i32).filter(|_| filled > 0) else {
            entries.truncate(filled);
            return Ok(entries);
        };
        let mut kept = Vec::new();
        let mut at = 0;
        while at < filled {
            let entry = &entries[at..at + entry_bytes(&entries, at)];
            let name = entry[NAME..].split(|&byte| byte == 0).next().unwrap_or_default();
            let is_engines = match folder {
                ProcFolder::Descriptors => reserved::is_reserved_name(name),
                ProcFolder::Threads => {
                    let thread = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
                    thread.is_some_and(|thread| !call.kernel.has_thread(thread))
                }
            };
            if !is_engines {
                kept.extend_from_slice(entry);
            }
            at += entry.len();
        }
        // An empty result would mean the end of the directory.
        if !kept.is_empty() {
            return Ok(kept);
        }
    }
}

/// `d_reclen` of an entry.
fn entry_bytes(entries: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([entries[at + 16], entries[at + 17]]))
}

/// A folder of /proc with entries of the engine.
enum ProcFolder {
    Descriptors,
    Threads,
}

fn proc_folder(descriptor: i32) -> Option<ProcFolder> {
    if !procfs::is_file(descriptor) {
        return None;
    }
    let ProcEntry::Of(id, name) = procfs::identify(descriptor)? else { return None };
    match name.as_str() {
        "fd" | "fdinfo" => Some(ProcFolder::Descriptors),
        "task" if procfs::is_own(id) => Some(ProcFolder::Threads),
        _ => None,
    }
}

/// getdents64(descriptor, buffer, size)
pub fn getdents64<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, buffer, size, ..] = call.arguments;
    let entries = entries(call, descriptor, u64::from(size as u32))?;
    call.memory.write(buffer, &entries)?;
    Ok(entries.len() as u64)
}

/// vmsplice(pipe, vectors, count, flags)
pub fn vmsplice<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, vectors, count, flags, ..] = call.arguments;
    let vectors = call.vectors(vectors, count)?;
    call.wait(libc::SYS_vmsplice, [descriptor, vectors.as_ptr() as u64, count, flags, 0, 0], Restarts)
}

/// getdents(descriptor, buffer, size): in this older format the type is an entry's last byte and the name begins one
/// byte earlier; the lengths of entries are equal.
pub fn getdents<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, buffer, size, ..] = call.arguments;
    let mut entries = entries(call, descriptor, u64::from(size as u32))?;
    let mut at = 0;
    while at < entries.len() {
        let length = entry_bytes(&entries, at);
        entries[at + 18..at + length].rotate_left(1);
        at += length;
    }
    call.memory.write(buffer, &entries)?;
    Ok(entries.len() as u64)
}

/// Two times for the host's utimensat, from microseconds; None for NULL, which means now.
pub fn times<G: Abi>(
    call: &Call<G>,
    address: u64,
    read: fn(&Call<G>, u64) -> Result<[i64; 4], Errno>,
) -> Result<Option<[i64; 4]>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, micros, seconds2, micros2] = read(call, address)?;
    if !(0..1_000_000).contains(&micros) || !(0..1_000_000).contains(&micros2) {
        return Err(Errno(libc::EINVAL));
    }
    Ok(Some([seconds, micros * 1000, seconds2, micros2 * 1000]))
}

fn two_timevals<G: Abi>(call: &Call<G>, address: u64) -> Result<[i64; 4], Errno> {
    let bytes: [u8; 32] = call.read(address)?;
    Ok(std::array::from_fn(|index| u64_at(&bytes, 8 * index) as i64))
}

pub fn set_times<G: Abi>(call: &Call<G>, directory: u64, path: u64, times: Option<[i64; 4]>) -> CallOutcome {
    let times = times.as_ref().map_or(0, |times| times.as_ptr() as u64);
    call.host(libc::SYS_utimensat, [directory, path, times, 0, 0, 0])
}

/// futimesat(directory, path or NULL, timeval[2])
pub fn futimesat<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [directory, path, address, ..] = call.arguments;
    let path = if path == 0 { None } else { Some(call.path(1)?) };
    let times = times(call, address, two_timevals)?;
    set_times(call, directory, path.as_ref().map_or(0, |path| path.as_ptr() as u64), times)
}
