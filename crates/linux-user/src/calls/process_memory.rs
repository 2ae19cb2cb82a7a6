//! process_vm_readv, process_vm_writev and process_madvise: access to memory of processes, which may be other guests,
//! but never their engines.

use crate::abi::Abi;
use crate::calls::call::{Call, CallOutcome};
use crate::process_memory::TargetMemory;
use crate::{procfs, reserved};
use guest_memory::WINDOW;
use host::Errno;

/// Makes the host's call with vectors on both sides.
pub fn transfer<G: Abi>(
    call: &Call<G>,
    number: libc::c_long,
    process: u64,
    local: &[[u64; 2]],
    remote: &[[u64; 2]],
    flags: u64,
) -> CallOutcome {
    let (here, there) = (local.as_ptr() as u64, remote.as_ptr() as u64);
    call.host(number, [process, here, local.len() as u64, there, remote.len() as u64, flags])
}

/// Vectors of addresses in a target process.
fn remote_vectors<G: Abi>(
    call: &Call<G>,
    address: u64,
    count: u64,
    target: TargetMemory,
) -> Result<Vec<[u64; 2]>, Errno> {
    let mut vectors = call.guest_vectors(address, count)?;
    for [start, length] in &mut vectors {
        // A range that begins inside the window also ends there.
        if matches!(target, TargetMemory::Guest) && *start < WINDOW {
            *length = (*length).min(WINDOW - *start);
        }
        *start = target.address(call.memory, *start, *length);
    }
    Ok(vectors)
}

fn between<G: Abi>(call: &mut Call<G>, number: libc::c_long) -> CallOutcome {
    let [process, local, local_count, remote, remote_count, flags] = call.arguments;
    if flags != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let target = TargetMemory::of(call.memory, process as u32)?;
    let local = call.vectors(local, local_count)?;
    let remote = remote_vectors(call, remote, remote_count, target)?;
    transfer(call, number, process, &local, &remote, flags)
}

/// process_vm_readv(process, vectors, count, its vectors, their count, flags)
pub fn process_vm_readv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    between(call, libc::SYS_process_vm_readv)
}

/// process_vm_writev(process, vectors, count, its vectors, their count, flags)
pub fn process_vm_writev<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    between(call, libc::SYS_process_vm_writev)
}

/// The process to which a pidfd refers.
pub fn process_of(descriptor: u64) -> Result<u32, Errno> {
    const BAD: Errno = Errno(libc::EBADF);
    reserved::check_descriptor(descriptor)?;
    let information = procfs::read(&format!("self/fdinfo/{}", descriptor as i32)).ok_or(BAD)?;
    let information = String::from_utf8(information).map_err(|_| BAD)?;
    let process = information.lines().find_map(|line| line.strip_prefix("Pid:"));
    process.and_then(|process| process.trim().parse().ok()).ok_or(BAD)
}

/// process_madvise(pidfd, vectors, count, advice, flags): the host accepts only advice that affects performance.
pub fn process_madvise<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const HASTEN: [u64; 4] = [3, 20, 21, 25];
    let [descriptor, vectors, count, advice, flags, _] = call.arguments;
    if flags != 0 || !HASTEN.contains(&u64::from(advice as u32)) {
        return Err(Errno(libc::EINVAL));
    }
    let target = TargetMemory::of(call.memory, process_of(descriptor)?)?;
    let vectors = remote_vectors(call, vectors, count, target)?;
    let arguments = [descriptor, vectors.as_ptr() as u64, count, advice, flags, 0];
    call.host(libc::SYS_process_madvise, arguments)
}

/// pidfd_getfd(pidfd, its descriptor, flags): refuses descriptors of engines.
pub fn pidfd_getfd<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, wanted, flags, ..] = call.arguments;
    if reserved::is_reserved_of(process_of(descriptor)?, wanted) {
        return Err(Errno(libc::EBADF));
    }
    call.host(libc::SYS_pidfd_getfd, [descriptor, wanted, flags, 0, 0, 0])
}
