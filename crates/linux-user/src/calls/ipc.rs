//! System V shared memory, semaphores and message queues.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u64_at};
use crate::calls::call::RestartRule::Fails;
use crate::calls::call::{Call, CallOutcome};
use crate::state::clock::timespec;
use guest_memory::{MappedObject, RegionBacking};
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);

// linux/ipc.h, linux/shm.h, linux/msg.h, linux/sem.h: the same on both.
const IPC_RMID: u64 = 0;
const IPC_SET: u64 = 1;
const IPC_STAT: u64 = 2;
const IPC_INFO: u64 = 3;
const MSG_STAT: u64 = 11;
const MSG_INFO: u64 = 12;
const MSG_STAT_ANY: u64 = 13;
const SHM_LOCK: u64 = 11;
const SHM_UNLOCK: u64 = 12;
const SHM_STAT: u64 = 13;
const SHM_INFO: u64 = 14;
const SHM_STAT_ANY: u64 = 15;
const GETPID: u64 = 11;
const GETALL: u64 = 13;
const SETVAL: u64 = 16;
const SETALL: u64 = 17;
const SEM_STAT: u64 = 18;
const SEM_INFO: u64 = 19;
const SEM_STAT_ANY: u64 = 20;

/// Sizes of the structures with the same layout on both sides: shmid64_ds and shminfo64, msqid64_ds and msginfo,
/// seminfo.
const SHARED_MEMORY_BYTES: u64 = 112;
const QUEUE_BYTES: u64 = 120;
const SEMAPHORE_INFO_BYTES: u64 = 40;

fn command<G: Abi>(call: &Call<G>, index: usize) -> u64 {
    u64::from(call.arguments[index] as u32) & !G::IPC_64
}

/// shmat(id, address, flags): the result is the address.
pub fn shmat<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, address, flags, ..] = call.arguments;
    let flag = |bit: i32| flags & bit as u64 != 0;
    let size = segment_size(call, id)?;
    let bytes = size.next_multiple_of(G::LAYOUT.page);
    let start = if address == 0 {
        call.memory.find_free(0, bytes).ok_or(Errno(libc::ENOMEM))?
    } else if address.is_multiple_of(G::LAYOUT.page) || flag(libc::SHM_RND) {
        let start = G::LAYOUT.page_of(address);
        let replaces = flag(libc::SHM_REMAP);
        if start == 0
            || call.memory.host(start, bytes).is_none()
            || !replaces && !call.memory.is_free(start, bytes)
        {
            return Err(EINVAL);
        }
        start
    } else {
        return Err(EINVAL);
    };
    let kept = (libc::SHM_RDONLY | libc::SHM_EXEC) as u64;
    let host_flags = flags & kept | libc::SHM_REMAP as u64;
    let host = call.pointer(start, bytes)?;
    let arguments = [id, host, host_flags, 0, 0, 0];
    call.host(libc::SYS_shmat, arguments)?;
    let write = if flag(libc::SHM_RDONLY) { 0 } else { libc::PROT_WRITE };
    let execute = if flag(libc::SHM_EXEC) { libc::PROT_EXEC } else { 0 };
    let protection = libc::PROT_READ | write | execute;
    let backing = RegionBacking::Named("/SYSV00000000 (deleted)");
    call.memory.adopt(start, bytes, protection, backing, MappedObject::segment(id));
    call.kernel.attached.insert(start, bytes);
    Ok(start)
}

fn segment_size<G: Abi>(call: &Call<G>, id: u64) -> Result<u64, Errno> {
    // SAFETY: an all-zero shmid_ds is valid and only written to.
    unsafe {
        let mut segment: libc::shmid_ds = std::mem::zeroed();
        let arguments = [id, IPC_STAT, &raw mut segment as u64, 0, 0, 0];
        call.host(libc::SYS_shmctl, arguments)?;
        Ok(segment.shm_segsz as u64)
    }
}

/// shmdt(address)
pub fn shmdt<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let start = call.arguments[0];
    let bytes = call.kernel.attached.remove(&start).ok_or(EINVAL)?;
    // Replacing the range by reserved space detaches the segment.
    call.memory.unmap(start, bytes)?;
    Ok(0)
}

/// shmctl(id, command, buffer)
pub fn shmctl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, _, buffer, ..] = call.arguments;
    let command = command(call, 1);
    let buffer = match command {
        IPC_RMID | SHM_LOCK | SHM_UNLOCK => 0,
        IPC_SET | IPC_STAT | IPC_INFO | SHM_STAT | SHM_INFO | SHM_STAT_ANY => {
            call.pointer(buffer, SHARED_MEMORY_BYTES)?
        }
        _ => return Err(EINVAL),
    };
    call.host(libc::SYS_shmctl, [id, command, buffer, 0, 0, 0])
}

/// msgctl(id, command, buffer)
pub fn msgctl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, _, buffer, ..] = call.arguments;
    let command = command(call, 1);
    let buffer = match command {
        IPC_RMID => 0,
        IPC_SET | IPC_STAT | IPC_INFO | MSG_STAT | MSG_INFO | MSG_STAT_ANY => {
            call.pointer(buffer, QUEUE_BYTES)?
        }
        _ => return Err(EINVAL),
    };
    call.host(libc::SYS_msgctl, [id, command, buffer, 0, 0, 0])
}

/// A message of `size` bytes after its type.
fn message<G: Abi>(call: &Call<G>, address: u64, size: u64) -> Result<u64, Errno> {
    if size > i64::MAX as u64 {
        return Err(EINVAL);
    }
    call.pointer(address, size + 8)
}

/// msgsnd(id, message, size, flags)
pub fn msgsnd<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, address, size, flags, ..] = call.arguments;
    let message = message(call, address, size)?;
    call.wait(libc::SYS_msgsnd, [id, message, size, flags, 0, 0], Fails)
}

/// msgrcv(id, message, size, type, flags)
pub fn msgrcv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, address, size, kind, flags, _] = call.arguments;
    let message = message(call, address, size)?;
    call.wait(libc::SYS_msgrcv, [id, message, size, kind, flags, 0], Fails)
}

/// semop(id, operations, count)
pub fn semop<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    call.arguments[3] = 0;
    semtimedop(call)
}

/// semtimedop(id, operations, count, timeout)
pub fn semtimedop<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const OPERATION_BYTES: u64 = 6;
    let [id, operations, count, timeout, ..] = call.arguments;
    let count = u64::from(count as u32);
    let operations = call.pointer(operations, count * OPERATION_BYTES)?;
    let timeout = call.read_timeout(timeout)?;
    let words = timeout.map(timespec);
    let limit = words.as_ref().map_or(0, |words| words.as_ptr() as u64);
    let outcome = call.wait(libc::SYS_semtimedop, [id, operations, count, limit, 0, 0], Fails);
    if outcome == Err(Errno(libc::EAGAIN)) {
        call.slept(timeout.unwrap_or_default());
    }
    outcome
}

/// semctl(id, number, command, argument)
pub fn semctl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [id, number, _, argument, ..] = call.arguments;
    let command = command(call, 2);
    let make = |argument| call.host(libc::SYS_semctl, [id, number, command, argument, 0, 0]);
    match command {
        IPC_SET => {
            let semaphores: [u8; 48] = call.read(argument)?;
            let mut host = [0u8; HOST_SET_BYTES];
            host[..48].copy_from_slice(&semaphores);
            make(host.as_ptr() as u64)
        }
        IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
            let mut host = [0u8; HOST_SET_BYTES];
            let outcome = make(host.as_mut_ptr() as u64)?;
            call.write(argument, &guest_set(&host))?;
            Ok(outcome)
        }
        GETALL | SETALL => {
            let mut host = [0u8; HOST_SET_BYTES];
            call.host(libc::SYS_semctl, [id, 0, IPC_STAT, host.as_mut_ptr() as u64, 0, 0])?;
            make(call.pointer(argument, 2 * u64_at(&host, HOST_COUNT))?)
        }
        IPC_INFO | SEM_INFO => make(call.pointer(argument, SEMAPHORE_INFO_BYTES)?),
        IPC_RMID | GETPID..=SETVAL => make(u64::from(argument as u32)),
        _ => Err(EINVAL),
    }
}

// struct semid64_ds: only x86 has a word of padding after each time.
const HOST_SET_BYTES: usize = 104;
#[cfg(target_arch = "x86_64")]
const HOST_CHANGE_TIME: usize = 64;
#[cfg(target_arch = "x86_64")]
const HOST_COUNT: usize = 80;
#[cfg(target_arch = "aarch64")]
const HOST_CHANGE_TIME: usize = 56;
#[cfg(target_arch = "aarch64")]
const HOST_COUNT: usize = 64;

/// Permissions (48 bytes), time of operation, time of change, number of semaphores.
fn guest_set(host: &[u8; HOST_SET_BYTES]) -> GuestStructure {
    GuestStructure::new().raw(&host[..56]).u64s(&[
        u64_at(host, HOST_CHANGE_TIME),
        u64_at(host, HOST_COUNT),
        0,
        0,
    ])
}
