//! Descriptors from which signals are read.

use crate::abi::Abi;
use crate::abi::layout::{Record, u32_at};
use crate::abi::signals::STATUS_IS_SIGNAL;
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::state::fd::Special;
use host::{Errno, SignalInformation};

/// Size of a `struct signalfd_siginfo`, and offsets of its fields.
const ENTRY: u64 = 128;
const ERROR: usize = 4;
const CODE: usize = 8;
const TIMER: usize = 24;
const OVERRUNS: usize = 32;
const STATUS: usize = 40;

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
            held.iter().fold(Record::new(), |all, information| all.raw(entry::<G>(information).bytes()));
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
    if call.thread.signals.held.is_empty() && call.kernel.held.is_empty() {
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

/// The signals that a descriptor accepts, in the host's numbering (proc_pid_fdinfo(5)).
fn accepted(descriptor: i32) -> u64 {
    let information = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let mask = information.lines().find_map(|line| line.strip_prefix("sigmask:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The entry of a signal that was sent or that a timer sent (signalfd_copyinfo in fs/signalfd.c).
fn entry<G: Abi>(information: &SignalInformation) -> Record {
    let [_, _, first, value, ..] = information.0;
    let (error, value_low) = (Errno((information.0[0] >> 32) as i32), value as u32);
    let (low, high) = (first as u32, (first >> 32) as u32);
    let head = Record::new().u32s(&[
        G::guest_signal(information.signal()) as u32,
        G::guest_error(error) as u32,
        information.code() as u32,
    ]);
    let head = match information.code() {
        // No process and user; timer and overruns instead.
        libc::SI_TIMER => head.u32s(&[0, 0, 0, low, 0, high, 0, 0]),
        // The descriptor, and what happened to it.
        libc::SI_SIGIO => return head.u32s(&[0, 0, value_low, 0, low]).zeros_to(ENTRY as usize),
        _ => head.u32s(&[low, high, 0, 0, 0, 0, 0, 0]),
    };
    head.u32s(&[value_low]).u64s(&[value]).zeros_to(ENTRY as usize)
}

/// Converts an entry of the host: signal, error, and the status of a child that a signal ended.
fn convert<G: Abi>(call: &mut Call<G>, address: u64) -> Result<(), Errno> {
    let mut entry: [u8; ENTRY as usize] = call.read(address)?;
    let (signal, code) = (u32_at(&entry, 0) as i32, u32_at(&entry, CODE) as i32);
    let (error, status) = (u32_at(&entry, ERROR), u32_at(&entry, STATUS));
    let fields = [u64::from(u32_at(&entry, TIMER)) | u64::from(u32_at(&entry, OVERRUNS)) << 32];
    call.kernel.note_expiry(&SignalInformation::new(signal, code, &fields));
    let mut set = |at: usize, value: u64| entry[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    set(0, G::guest_signal(signal) as u64);
    set(ERROR, G::guest_error(Errno(error as i32)));
    if signal == libc::SIGCHLD && STATUS_IS_SIGNAL.contains(&code) {
        set(STATUS, G::guest_signal(status as i32) as u64);
    }
    call.write(address, &Record::new().raw(&entry))
}
