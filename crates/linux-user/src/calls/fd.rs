//! Descriptors: reading, pipes, duplicates, fcntl.

use crate::abi::flags::{DESCRIPTOR, OPEN};
use crate::abi::layout::{Record, u32_at};
use crate::calls::call::Interrupted::Restarts;
use crate::calls::call::{Argument, Call, Outcome};
use crate::calls::memory_file;
use crate::reserved;
use crate::state::fd::Special;
use crate::state::settings::Random;
use crate::state::signals;
use alpha::cpu::register;
use host::{Errno, SignalInformation};

/// Whether a descriptor needs special reads: its number may have been closed and reused, by another process too.
fn special(call: &Call, descriptor: i32) -> Option<Special> {
    let kernel = &call.kernel;
    let noted = kernel.special.get(&descriptor).copied();
    if noted.is_none() && !kernel.shares_descriptors {
        return None;
    }
    let special = Special::file(&reserved::link_of(descriptor)?)?;
    let is_unknown =
        kernel.shares_descriptors && (special == Special::Signals || kernel.settings.random != Random::Host);
    (is_unknown || noted == Some(special)).then_some(special)
}

/// read(descriptor, buffer, size)
pub fn read(call: &mut Call) -> Outcome {
    let [_, buffer, size, ..] = call.arguments;
    let special = special(call, call.int(0));
    if special == Some(Special::Random) {
        return call.write_random(buffer, size);
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
    if special == Some(Special::Signals) {
        convert_signals(call, buffer, bytes)?;
    }
    Ok(bytes)
}

/// Converts the signal numbers of each 128-byte entry: `ssi_signo`, and `ssi_status` of a child that a signal ended.
fn convert_signals(call: &mut Call, buffer: u64, bytes: u64) -> Result<(), Errno> {
    const CODE: u64 = 8;
    const TIMER: u64 = 24;
    const OVERRUNS: u64 = 32;
    const STATUS: u64 = 40;
    let renumber = |call: &mut Call, address: u64| {
        let signal = call.read_u32(address)? as i32;
        call.write(address, &Record::new().u32s(&[signals::alpha(signal) as u32]))?;
        Ok::<i32, Errno>(signal)
    };
    for entry in (0..bytes).step_by(128).map(|offset| buffer + offset) {
        let code = call.read_u32(entry + CODE)?;
        let (timer, overruns) = (call.read_u32(entry + TIMER)?, call.read_u32(entry + OVERRUNS)?);
        let fields = [u64::from(timer) | u64::from(overruns) << 32];
        let signal = call.read_u32(entry)? as i32;
        call.kernel.note_expiry(&SignalInformation::new(signal, code as i32, &fields));
        if renumber(call, entry)? == libc::SIGCHLD && signals::STATUS_IS_SIGNAL.contains(&(code as i32)) {
            renumber(call, entry + STATUS)?;
        }
    }
    Ok(())
}

/// pipe(): the descriptors are returned in v0 and a4.
pub fn pipe(call: &mut Call) -> Outcome {
    let mut ends = [0i32; 2];
    call.host(libc::SYS_pipe2, [ends.as_mut_ptr() as u64, 0, 0, 0, 0, 0])?;
    call.cpu.r[register::A4] = ends[1] as u64;
    Ok(ends[0] as u64)
}

/// close(descriptor)
pub fn close(call: &mut Call) -> Outcome {
    let [descriptor, ..] = call.arguments;
    call.host(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0])
}

/// close_range(first, last, flags), restricted to numbers that the guest can have.
pub fn close_range(call: &mut Call) -> Outcome {
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
pub fn dup3(call: &mut Call) -> Outcome {
    let [old, new, flags, ..] = call.arguments;
    call.host(libc::SYS_dup3, [old, new, DESCRIPTOR.host(flags), 0, 0, 0])
}

/// dup2(old, new)
pub fn dup2(call: &mut Call) -> Outcome {
    let [old, new, ..] = call.arguments;
    if old as i32 == new as i32 {
        // dup3 would fail for equal numbers; dup2 only checks that the descriptor is open.
        call.host(libc::SYS_fcntl, [old, libc::F_GETFD as u64, 0, 0, 0, 0])?;
        return Ok(u64::from(new as u32));
    }
    call.host(libc::SYS_dup3, [old, new, 0, 0, 0, 0])
}

/// The kind of an fcntl command's third argument.
enum Third {
    /// A number, or nothing.
    Value,
    /// `O_*` flags to set.
    Flags,
    /// `O_*` flags as the result.
    FlagsOut,
    /// A signal's number to set.
    Signal,
    /// A signal's number as the result.
    SignalOut,
    /// A kind of lock to set.
    LockType,
    /// A kind of lock as the result.
    LockTypeOut,
    /// A `struct flock`; true if the call waits for the lock.
    Lock(bool),
    /// A pointer to this many bytes, with the same layout on both sides.
    Bytes(u64),
}

/// fcntl commands: Alpha's number, the host's, and the third argument.
#[rustfmt::skip]
const COMMANDS: &[(i32, i32, Third)] = &[
    (0, libc::F_DUPFD, Third::Value),
    (1, libc::F_GETFD, Third::Value),
    (2, libc::F_SETFD, Third::Value),
    (3, libc::F_GETFL, Third::FlagsOut),
    (4, libc::F_SETFL, Third::Flags),
    (5, libc::F_SETOWN, Third::Value),
    (6, libc::F_GETOWN, Third::Value),
    (7, libc::F_GETLK, Third::Lock(false)),
    (8, libc::F_SETLK, Third::Lock(false)),
    (9, libc::F_SETLKW, Third::Lock(true)),
    (10, F_SETSIG, Third::Signal),
    (11, F_GETSIG, Third::SignalOut),
    (15, F_SETOWN_EX, Third::Bytes(8)),
    (16, F_GETOWN_EX, Third::Bytes(8)),
    (36, libc::F_OFD_GETLK, Third::Lock(false)),
    (37, libc::F_OFD_SETLK, Third::Lock(false)),
    (38, libc::F_OFD_SETLKW, Third::Lock(true)),
    (1024, libc::F_SETLEASE, Third::LockType),
    (1025, libc::F_GETLEASE, Third::LockTypeOut),
    (1026, libc::F_NOTIFY, Third::Value),
    (1030, libc::F_DUPFD_CLOEXEC, Third::Value),
    (1031, libc::F_SETPIPE_SZ, Third::Value),
    (1032, libc::F_GETPIPE_SZ, Third::Value),
    (1033, libc::F_ADD_SEALS, Third::Value),
    (1034, libc::F_GET_SEALS, Third::Value),
];
// asm-generic/fcntl.h.
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;
const F_SETOWN_EX: i32 = 15;
const F_GETOWN_EX: i32 = 16;

/// `l_type`: F_RDLCK, F_WRLCK, F_UNLCK.
pub const LOCK_TYPES: [(u16, i32); 3] = [(1, libc::F_RDLCK), (2, libc::F_WRLCK), (8, libc::F_UNLCK)];

/// fcntl(descriptor, command, argument)
pub fn fcntl(call: &mut Call) -> Outcome {
    let [descriptor, command, argument, ..] = call.arguments;
    let known = COMMANDS.iter().find(|(alpha, ..)| *alpha == command as i32);
    let (_, host_command, third) = known.ok_or(Errno(libc::EINVAL))?;
    let with = |third| [descriptor, *host_command as u64, third, 0, 0, 0];
    match third {
        Third::Value => call.host(libc::SYS_fcntl, with(argument)),
        Third::Flags => call.host(libc::SYS_fcntl, with(OPEN.host(argument))),
        Third::FlagsOut => Ok(OPEN.alpha(call.host(libc::SYS_fcntl, with(0))?)),
        Third::Signal => {
            let signal = signals::host_number(argument as i32).ok_or(Errno(libc::EINVAL))?;
            call.host(libc::SYS_fcntl, with(signal as u64))
        }
        Third::SignalOut => Ok(signals::alpha(call.host(libc::SYS_fcntl, with(0))? as i32) as u64),
        Third::LockType => {
            let kind = LOCK_TYPES.iter().find(|(alpha, _)| u64::from(*alpha) == argument);
            let (_, kind) = kind.ok_or(Errno(libc::EINVAL))?;
            call.host(libc::SYS_fcntl, with(*kind as u64))
        }
        Third::LockTypeOut => {
            let found = call.host(libc::SYS_fcntl, with(0))?;
            let kind = LOCK_TYPES.iter().find(|(_, host)| *host as u64 == found);
            Ok(kind.map_or(found, |(alpha, _)| u64::from(*alpha)))
        }
        Third::Bytes(bytes) => call.host(libc::SYS_fcntl, with(call.pointer(argument, *bytes)?)),
        Third::Lock(waits) => lock(call, *host_command, *waits),
    }
}

/// The fcntl commands with a `struct flock`, whose layout is the host's except for the type.
fn lock(call: &mut Call, command: i32, waits: bool) -> Outcome {
    let [descriptor, _, address, ..] = call.arguments;
    let mut lock: [u8; 32] = call.read(address)?;
    let alpha_type = u16::from_le_bytes([lock[0], lock[1]]);
    let known = LOCK_TYPES.iter().find(|(alpha, _)| *alpha == alpha_type);
    let (_, host_type) = known.ok_or(Errno(libc::EINVAL))?;
    lock[..2].copy_from_slice(&(*host_type as u16).to_le_bytes());
    let arguments = [descriptor, command as u64, lock.as_mut_ptr() as u64, 0, 0, 0];
    if waits {
        return call.wait(libc::SYS_fcntl, arguments, Restarts);
    }
    call.host(libc::SYS_fcntl, arguments)?;
    if [libc::F_GETLK, libc::F_OFD_GETLK].contains(&command) {
        let host_type = i32::from(u32_at(&lock, 0) as u16);
        let found = LOCK_TYPES.iter().find(|(_, host)| *host == host_type);
        let alpha_type = found.map_or(host_type as u16, |(alpha, _)| *alpha);
        lock[..2].copy_from_slice(&alpha_type.to_le_bytes());
        call.write(address, &Record::new().raw(&lock))?;
    }
    Ok(0)
}

/// fcntl's commands: Alpha's numbers and the host's.
#[cfg(test)]
pub fn command_numbers() -> impl Iterator<Item = (i32, i32)> {
    COMMANDS.iter().map(|(alpha, host, _)| (*alpha, *host))
}
