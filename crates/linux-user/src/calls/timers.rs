//! Interval timers, POSIX timers and timer descriptors. They are the host's; absolute times of the virtual clock are
//! converted to the remaining time.
//!
//! On the virtual clock each armed timer has an expiry time. When the host's timer expires, the virtual clock is
//! advanced to at least that time, so that a program which is notified of a time finds that it has passed.

use std::collections::BTreeMap;

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::calls::call::{Argument, Call, CallOutcome};
use crate::state::clock::{self, SECOND};
use crate::state::timers::{Armed, Timer, Timers};
use host::Errno;

/// TIMER_ABSTIME and TFD_TIMER_ABSTIME.
const ABSOLUTE: u64 = 1;

/// The host's timer in times of the virtual clock: the remaining time, and its interval.
pub fn get_interval_timer<G: Abi>(call: &Call<G>) -> Result<[u64; 4], Errno> {
    let which = call.arguments[0];
    let mut value = [0u64; 4];
    call.host(libc::SYS_getitimer, [which, value.as_mut_ptr() as u64, 0, 0, 0, 0])?;
    if let Some(armed) = call.kernel.timers.real.filter(|_| which as i32 == libc::ITIMER_REAL) {
        // An armed timer must not read as 0.
        let left = armed.next.saturating_sub(call.kernel.elapsed()).max(1000);
        [value[2], value[3]] = clock::timeval(left);
        [value[0], value[1]] = clock::timeval(armed.interval);
    }
    Ok(value)
}

/// Sets the host's timer, and returns its previous value.
pub fn set_interval_timer<G: Abi>(call: &mut Call<G>, new: [u64; 4]) -> Result<[u64; 4], Errno> {
    let which = call.arguments[0];
    let before = get_interval_timer(call)?;
    let nanoseconds = |at: usize| nanoseconds(new[at], new[at + 1].saturating_mul(1000));
    let is_virtual = which as i32 == libc::ITIMER_REAL && call.kernel.is_virtual();
    let mut host = new;
    if is_virtual && call.kernel.is_dilated() {
        let dilated = |at| clock::timeval(call.kernel.dilated(nanoseconds(at)));
        let [[interval, interval_rest], [value, value_rest]] = [dilated(0), dilated(2)];
        host = [interval, interval_rest, value, value_rest];
    }
    call.host(libc::SYS_setitimer, [which, host.as_ptr() as u64, 0, 0, 0, 0])?;
    if is_virtual {
        call.kernel.timers.real = Armed::new(call.kernel.elapsed(), nanoseconds(2), nanoseconds(0));
    }
    Ok(before)
}

fn nanoseconds(seconds: u64, rest: u64) -> u64 {
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

/// getitimer(which, value)
pub fn getitimer<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let address = call.arguments[1];
    let value = get_interval_timer(call)?;
    call.write(address, &GuestStructure::new().u64s(&value))?;
    Ok(0)
}

/// setitimer(which, new, old)
pub fn setitimer<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [_, address, old, ..] = call.arguments;
    let mut new = [0u64; 4];
    if address != 0 {
        let bytes: [u8; 32] = call.read(address)?;
        new = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    }
    let before = set_interval_timer(call, new)?;
    if old != 0 {
        call.write(old, &GuestStructure::new().u64s(&before))?;
    }
    Ok(0)
}

/// timer_create(clock, event, id)
pub fn timer_create<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const EVENT_BYTES: usize = 64;
    /// SIGEV_NONE: no signal.
    const NONE: u32 = 1;
    let [clock, event, id, ..] = call.arguments;
    let mut bytes = [0u8; EVENT_BYTES];
    if event != 0 {
        bytes = call.read(event)?;
        if u32_at(&bytes, 12) != NONE {
            let signal = G::host_signal(u32_at(&bytes, 8) as i32).ok_or(Errno(libc::EINVAL))?;
            bytes[8..12].copy_from_slice(&signal.to_le_bytes());
        }
    }
    let event = if event == 0 { 0 } else { bytes.as_ptr() as u64 };
    let mut created = 0u32;
    call.host(libc::SYS_timer_create, [clock, event, &raw mut created as u64, 0, 0, 0])?;
    if let Err(error) = call.write(id, &GuestStructure::new().u32s(&[created])) {
        call.host(libc::SYS_timer_delete, [u64::from(created), 0, 0, 0, 0, 0])?;
        return Err(error);
    }
    let timer = Timer { clock: clock as i32, armed: None };
    call.kernel.timers.by_id.insert(u64::from(created), timer);
    Ok(0)
}

/// timer_delete(id)
pub fn timer_delete<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let deleted = call.pass(libc::SYS_timer_delete, &[Argument::Number])?;
    let id = u64::from(call.arguments[0] as u32);
    call.kernel.timers.by_id.remove(&id);
    Ok(deleted)
}

/// timer_settime(id, flags, new, old)
pub fn timer_settime<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    set_time(call, libc::SYS_timer_settime, |timers| &mut timers.by_id)
}

/// timerfd_create(clock, flags)
pub fn timerfd_create<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let arguments = &[Argument::Int, Argument::Flags(G::DESCRIPTOR)];
    let descriptor = call.pass(libc::SYS_timerfd_create, arguments)?;
    let timer = Timer { clock: call.int(0), armed: None };
    call.kernel.timers.by_descriptor.insert(descriptor, timer);
    Ok(descriptor)
}

/// timerfd_settime(descriptor, flags, new, old)
pub fn timerfd_settime<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    set_time(call, libc::SYS_timerfd_settime, |timers| &mut timers.by_descriptor)
}

fn set_time<G: Abi>(
    call: &mut Call<G>,
    number: libc::c_long,
    which: fn(&mut Timers) -> &mut BTreeMap<u64, Timer>,
) -> CallOutcome {
    let [timer, mut flags, new, old, ..] = call.arguments;
    let id = u64::from(timer as u32);
    let clock = which(&mut call.kernel.timers).get(&id).map(|timer| timer.clock);
    // For the clocks that are virtual, except CPU clocks.
    let is_processor = |clock| clock < 0 || clock == libc::CLOCK_PROCESS_CPUTIME_ID;
    let clock = clock.filter(|&clock| call.kernel.virtual_time(clock).is_some());
    let bytes: [u8; 32] = call.read(new)?;
    let mut words: [u64; 4] = std::array::from_fn(|index| u64_at(&bytes, 8 * index));
    let disarms = words[2] == 0 && words[3] == 0;
    if let Some(clock) = clock.filter(|_| flags & ABSOLUTE != 0 && !disarms) {
        let absolute = call.read_timespec(new.wrapping_add(16))?;
        // An expired time becomes 1 ns: 0 would disarm the timer.
        [words[2], words[3]] = clock::timespec(call.kernel.until(clock, absolute).max(1));
        flags &= !ABSOLUTE;
    }
    let old = call.pointer(old, 32)?;
    let outcome = call.host(number, [timer, flags, words.as_ptr() as u64, old, 0, 0])?;
    if clock.is_some_and(|clock| !is_processor(clock)) {
        let (value, interval) = (nanoseconds(words[2], words[3]), nanoseconds(words[0], words[1]));
        let armed = Armed::new(call.kernel.elapsed(), value, interval);
        if let Some(timer) = which(&mut call.kernel.timers).get_mut(&id) {
            timer.armed = armed;
        }
    }
    Ok(outcome)
}
