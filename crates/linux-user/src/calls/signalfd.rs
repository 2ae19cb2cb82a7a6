//! Descriptors from which signals are read.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::abi::signals::STATUS_IS_SIGNAL;
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::procfs;
use crate::state::fd::Special;
use host::{Errno, SignalInformation};

/// Size of a `struct signalfd_siginfo` (linux/signalfd.h), and offsets of its fields.
const ENTRY: u64 = 128;
const ERROR: usize = 4;
const CODE: usize = 8;
const PROCESS: usize = 12;
const USER: usize = 16;
const DESCRIPTOR: usize = 20;
const TIMER: usize = 24;
const BAND: usize = 28;
const OVERRUNS: usize = 32;
const STATUS: usize = 40;
const NUMBER: usize = 44;
const VALUE: usize = 48;
const ADDRESS: usize = 72;
const LEAST_BIT: usize = 80;
const SYSTEM_CALL: usize = 84;
const CALL_ADDRESS: usize = 88;
const ARCHITECTURE: usize = 96;

/// signalfd(descriptor, mask, size)
pub fn signalfd<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    call.arguments[3] = 0;
    signalfd4(call)
}

/// signalfd4(descriptor, mask, size, flags)
pub fn signalfd4<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [descriptor, _, _, flags, ..] = call.arguments;
    let mask = G::host_mask(call.mask(1, 2)?);
    let arguments = [descriptor, &raw const mask as u64, 8, G::DESCRIPTOR.host(flags), 0, 0];
    let descriptor = call.host(libc::SYS_signalfd4, arguments)?;
    call.kernel.special.insert(descriptor as i32, Special::Signals);
    Ok(descriptor)
}

/// Reads signals: first those that the host does not know, then the host's.
pub fn read<G: Abi>(call: &mut Call<G>, buffer: u64, size: u64) -> CallOutcome {
    let held = take_held(call, size / ENTRY);
    if !held.is_empty() {
        let record =
            held.iter().fold(GuestStructure::new(), |all, information| all.raw(&entry::<G>(information)));
        call.write(buffer, &record)?;
        return Ok(record.bytes().len() as u64);
    }
    let arguments = [call.arguments[0], call.pointer(buffer, size)?, size, 0, 0, 0];
    let bytes = call.wait(libc::SYS_read, arguments, Restarts)?;
    for entry in (0..bytes).step_by(ENTRY as usize).map(|offset| buffer + offset) {
        convert(call, entry)?;
    }
    Ok(bytes)
}

/// Takes so many of the signals that the host does not know and that the descriptor accepts.
fn take_held<G: Abi>(call: &mut Call<G>, most: u64) -> Vec<SignalInformation> {
    if held(call) == 0 {
        return Vec::new();
    }
    let mask = accepted(call.int(0));
    let is_taken = |held: &mut SignalInformation| mask & host::bit(held.signal()) != 0;
    let mut taken: Vec<_> = call.thread.signals.held.extract_if(.., is_taken).take(most as usize).collect();
    let left = most as usize - taken.len();
    taken.extend(call.kernel.held.extract_if(.., is_taken).take(left));
    for information in &taken {
        call.kernel.note_expiry(information);
    }
    taken
}

/// The pending signals that the host does not know, in its numbering.
pub fn held<G: Abi>(call: &Call<G>) -> u64 {
    let held = call.thread.signals.held.iter().chain(&call.kernel.held);
    held.fold(0, |all, held| all | host::bit(held.signal()))
}

/// Whether one of these signals, in the host's numbering, can be read from a descriptor.
pub fn accepts(descriptor: i32, signals: u64) -> bool {
    let is_of_signals =
        || procfs::link_of(descriptor).and_then(|link| Special::file(&link)) == Some(Special::Signals);
    signals != 0 && is_of_signals() && accepted(descriptor) & signals != 0
}

/// The signals that a descriptor accepts, in the host's numbering (proc_pid_fdinfo(5)).
fn accepted(descriptor: i32) -> u64 {
    let information = descriptor_information(descriptor);
    let mask = information.lines().find_map(|line| line.strip_prefix("sigmask:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The information of /proc about a descriptor.
pub fn descriptor_information(descriptor: i32) -> String {
    let contents = procfs::read(&format!("self/fdinfo/{descriptor}"));
    String::from_utf8(contents.unwrap_or_default()).unwrap_or_default()
}

/// The entry of a signal (signalfd_copyinfo in fs/signalfd.c): its fields depend on signal and code (siginfo_layout in
/// kernel/signal.c).
fn entry<G: Abi>(information: &SignalInformation) -> [u8; ENTRY as usize] {
    /// The last code of each kind (asm-generic/siginfo.h).
    const SYSTEM_CALL_CODES: i32 = 2;
    const POLL_CODES: i32 = 6;
    const FAULT_CODES: [(i32, i32); 5] =
        [(libc::SIGILL, 11), (libc::SIGFPE, 15), (libc::SIGSEGV, 10), (libc::SIGBUS, 5), (libc::SIGTRAP, 6)];
    let [_, _, first, second, ..] = information.0;
    let (signal, code) = (information.signal(), information.code());
    let mut entry = [0; ENTRY as usize];
    let mut set = |at: usize, value: u64, bytes: usize| {
        entry[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    };
    set(0, G::guest_signal(signal) as u64, 4);
    set(ERROR, G::guest_error(Errno((information.0[0] >> 32) as i32)), 4);
    set(CODE, code as u64, 4);
    match code {
        libc::SI_TIMER => {
            set(TIMER, first, 4);
            set(OVERRUNS, first >> 32, 4);
            set(NUMBER, second, 4);
            set(VALUE, second, 8);
        }
        1..=SYSTEM_CALL_CODES if signal == libc::SIGSYS => {
            set(CALL_ADDRESS, first, 8);
            set(SYSTEM_CALL, second, 4);
            set(ARCHITECTURE, second >> 32, 4);
        }
        1.. if FAULT_CODES.iter().any(|&(of, last)| of == signal && code <= last) => {
            set(ADDRESS, first, 8);
            if signal == libc::SIGBUS && [libc::BUS_MCEERR_AR, libc::BUS_MCEERR_AO].contains(&code) {
                set(LEAST_BIT, second, 2);
            }
        }
        // The descriptor, and what happened to it.
        libc::SI_SIGIO | 1..=POLL_CODES => {
            set(BAND, first, 4);
            set(DESCRIPTOR, second, 4);
        }
        _ => {
            set(PROCESS, first, 4);
            set(USER, first >> 32, 4);
            if code < 0 {
                set(NUMBER, second, 4);
                set(VALUE, second, 8);
            }
        }
    }
    entry
}

/// Converts an entry of the host: signal, error, and the status of a child that a signal ended. One that pretends to be of
/// a fault has the fields of a sent signal there.
fn convert<G: Abi>(call: &mut Call<G>, address: u64) -> Result<(), Errno> {
    let mut entry: [u8; ENTRY as usize] = call.read(address)?;
    let (signal, code) = (u32_at(&entry, 0) as i32, u32_at(&entry, CODE) as i32);
    let (error, status) = (u32_at(&entry, ERROR), u32_at(&entry, STATUS));
    let fields = [u64::from(u32_at(&entry, TIMER)) | u64::from(u32_at(&entry, OVERRUNS)) << 32];
    call.kernel.note_expiry(&SignalInformation::new(signal, code, &fields));
    let sender = u64::from(u32_at(&entry, PROCESS)) | u64::from(u32_at(&entry, USER)) << 32;
    let sent = SignalInformation::new(signal, code, &[sender, u64_at(&entry, VALUE)]);
    if sent.undisguised() != sent {
        return call.write(address, &GuestStructure::new().raw(&self::entry::<G>(&sent.undisguised())));
    }
    let mut set = |at: usize, value: u64| entry[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    set(0, G::guest_signal(signal) as u64);
    set(ERROR, G::guest_error(Errno(error as i32)));
    if signal == libc::SIGCHLD && STATUS_IS_SIGNAL.contains(&code) {
        set(STATUS, G::guest_signal(status as i32) as u64);
    }
    call.write(address, &GuestStructure::new().raw(&entry))
}
