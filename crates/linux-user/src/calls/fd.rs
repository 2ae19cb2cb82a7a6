//! Descriptors: reading, pipes, duplicates, fcntl.

use crate::abi::Abi;
use crate::abi::arguments::FcntlArgument;
use crate::abi::layout::{GuestStructure, u32_at};
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Argument, Call, CallOutcome};
use crate::calls::{files, memory_file, netlink, signalfd};
use crate::state::fd::Special;
use crate::state::settings::RandomSource;
use crate::{procfs, reserved};
use host::Errno;

/// Whether a descriptor needs special reads: its number may have been closed and reused, by another process too.
fn special<G: Abi>(call: &Call<G>, descriptor: i32) -> Option<Special> {
    let kernel = &call.kernel;
    let noted = kernel.special.get(&descriptor).copied();
    if noted.is_none() && !kernel.shares_descriptors {
        return None;
    }
    let special = Special::file(&procfs::link_of(descriptor)?)?;
    let is_unknown = kernel.shares_descriptors
        && (special == Special::Signals || kernel.settings.random != RandomSource::Host);
    (is_unknown || noted == Some(special)).then_some(special)
}

/// read(descriptor, buffer, size)
pub fn read<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, buffer, size, ..] = call.arguments;
    if let Some(special) = special(call, descriptor as i32) {
        return read_special(call, special, [buffer, size]);
    }
    if let Some(outcome) = memory_file::transfer(call, &[[buffer, size]], None, false) {
        return outcome;
    }
    let arguments = &[Argument::Number, Argument::Buffer, Argument::Number];
    let bytes = call.pass_wait(libc::SYS_read, arguments, Restarts)?;
    let descriptor = call.int(0);
    if bytes == 8 && call.kernel.has_timer(descriptor) {
        let times = call.read_u64(buffer)?;
        call.kernel.note_timer_read(descriptor, times);
    }
    netlink::convert(call, &[[buffer, size]], bytes)?;
    Ok(bytes)
}

/// Reads from a descriptor whose contents must be converted or generated.
fn read_special<G: Abi>(call: &mut Call<G>, special: Special, [buffer, size]: [u64; 2]) -> CallOutcome {
    match special {
        Special::Random => call.write_random(buffer, size),
        Special::Signals => signalfd::read(call, buffer, size),
    }
}

/// readv(descriptor, vectors, count)
pub fn readv<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, vectors, count, ..] = call.arguments;
    let Some(special) = special(call, descriptor as i32) else { return files::readv(call) };
    let mut total = 0;
    for vector in call.guest_vectors(vectors, count)? {
        match read_special(call, special, vector) {
            Ok(bytes) if bytes == vector[1] => total += bytes,
            Ok(bytes) => return Ok(total + bytes),
            Err(error) if total == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(total)
}

/// close(descriptor)
pub fn close<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, ..] = call.arguments;
    call.host(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0])
}

/// close_range(first, last, flags), restricted to numbers that the guest can have.
pub fn close_range<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [first, last, flags, ..] = call.arguments.map(|argument| argument as u32);
    let most = reserved::first() as u32 - 1;
    // Nothing is open in a range beyond those numbers, so that only the flags are checked.
    let range = if first > last || last <= most {
        [first, last]
    } else if first > most {
        [u32::MAX; 2]
    } else {
        [first, most]
    };
    call.host(libc::SYS_close_range, [range[0].into(), range[1].into(), flags.into(), 0, 0, 0])
}

/// dup3(old, new, flags)
pub fn dup3<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [old, new, flags, ..] = call.arguments;
    call.host(libc::SYS_dup3, [old, new, G::DESCRIPTOR.host(flags), 0, 0, 0])
}

/// dup2(old, new)
pub fn dup2<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [old, new, ..] = call.arguments;
    if old as i32 == new as i32 {
        // dup3 would fail for equal numbers; dup2 only checks that the descriptor is open.
        call.host(libc::SYS_fcntl, [old, libc::F_GETFD as u64, 0, 0, 0, 0])?;
        return Ok(u64::from(new as u32));
    }
    call.host(libc::SYS_dup3, [old, new, 0, 0, 0, 0])
}

/// fcntl(descriptor, command, argument)
pub fn fcntl<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, command, argument, ..] = call.arguments;
    let known = G::FCNTL_COMMANDS.iter().find(|(guest, ..)| *guest == command as i32);
    let (_, host_command, third) = known.ok_or(Errno(libc::EINVAL))?;
    let with = |third| [descriptor, *host_command as u64, third, 0, 0, 0];
    match third {
        FcntlArgument::Value => call.host(libc::SYS_fcntl, with(argument)),
        FcntlArgument::Flags => call.host(libc::SYS_fcntl, with(G::OPEN.host(argument))),
        FcntlArgument::FlagsOut => Ok(G::OPEN.guest(call.host(libc::SYS_fcntl, with(0))?)),
        FcntlArgument::Signal => {
            // 0 is the default, SIGIO without details.
            let signal = match argument as i32 {
                0 => 0,
                signal => G::host_signal(signal).ok_or(Errno(libc::EINVAL))?,
            };
            call.host(libc::SYS_fcntl, with(signal as u64))
        }
        FcntlArgument::SignalOut => Ok(G::guest_signal(call.host(libc::SYS_fcntl, with(0))? as i32) as u64),
        FcntlArgument::LockType => {
            let kind = G::LOCK_TYPES.iter().find(|(guest, _)| u64::from(*guest) == argument);
            let (_, kind) = kind.ok_or(Errno(libc::EINVAL))?;
            call.host(libc::SYS_fcntl, with(*kind as u64))
        }
        FcntlArgument::LockTypeOut => {
            let found = call.host(libc::SYS_fcntl, with(0))?;
            let kind = G::LOCK_TYPES.iter().find(|(_, host)| *host as u64 == found);
            Ok(kind.map_or(found, |(guest, _)| u64::from(*guest)))
        }
        FcntlArgument::Bytes(bytes) => call.host(libc::SYS_fcntl, with(call.pointer(argument, *bytes)?)),
        FcntlArgument::Lock(waits) => lock(call, *host_command, *waits),
    }
}

/// The fcntl commands with a `struct flock`, whose layout is the host's except for the type.
fn lock<G: Abi>(call: &mut Call<G>, command: i32, waits: bool) -> CallOutcome {
    let [descriptor, _, address, ..] = call.arguments;
    let mut lock: [u8; 32] = call.read(address)?;
    let guest_type = u16::from_le_bytes([lock[0], lock[1]]);
    let known = G::LOCK_TYPES.iter().find(|(guest, _)| *guest == guest_type);
    let (_, host_type) = known.ok_or(Errno(libc::EINVAL))?;
    lock[..2].copy_from_slice(&(*host_type as u16).to_le_bytes());
    let arguments = [descriptor, command as u64, lock.as_mut_ptr() as u64, 0, 0, 0];
    if waits {
        return call.wait(libc::SYS_fcntl, arguments, Restarts);
    }
    call.host(libc::SYS_fcntl, arguments)?;
    if [libc::F_GETLK, libc::F_OFD_GETLK].contains(&command) {
        let host_type = i32::from(u32_at(&lock, 0) as u16);
        let found = G::LOCK_TYPES.iter().find(|(_, host)| *host == host_type);
        let guest_type = found.map_or(host_type as u16, |(guest, _)| *guest);
        lock[..2].copy_from_slice(&guest_type.to_le_bytes());
        call.write(address, &GuestStructure::new().raw(&lock))?;
    }
    Ok(0)
}
