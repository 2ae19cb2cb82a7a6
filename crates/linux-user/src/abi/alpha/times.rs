//! OSF/1's calls with 32-bit times.

use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::calls::files::{set_times, times};
use crate::calls::processes::wait_for;
use crate::calls::time::{now, sleep, usage};
use crate::calls::timers::{get_interval_timer, set_interval_timer};
use crate::calls::waiting::{select_for, timeval_nanoseconds};
use crate::state::clock::{SECOND, timeval};
use host::Errno;

use super::{Call, CallOutcome};

/// osf_gettimeofday(timeval32, time zone)
pub fn osf_gettimeofday(call: &mut Call) -> CallOutcome {
    let [time, zone, ..] = call.arguments;
    let record = GuestStructure::new().u32s(&timeval(now(call)).map(|word| word as u32));
    if time != 0 {
        call.write(time, &record)?;
    }
    if zone != 0 {
        call.write(zone, &GuestStructure::new().zeros_to(8))?;
    }
    Ok(0)
}

/// A rusage with 32-bit timevals, in OSF/1's layout.
pub fn short_usage(usage: &[u8; 144]) -> GuestStructure {
    let times: Vec<u32> = (0..4).map(|index| u64_at(usage, 8 * index) as u32).collect();
    GuestStructure::new().u32s(&times).raw(&usage[32..])
}

/// osf_getrusage(who, buffer)
pub fn osf_getrusage(call: &mut Call) -> CallOutcome {
    let usage = usage(call, call.int(0))?;
    let buffer = call.arguments[1];
    call.write(buffer, &short_usage(&usage))?;
    Ok(0)
}

/// osf_usleep_thread(timeval32, remaining)
pub fn osf_usleep_thread(call: &mut Call) -> CallOutcome {
    let [time, remaining, ..] = call.arguments;
    let bytes: [u8; 8] = call.read(time)?;
    let nanoseconds = u64::from(u32_at(&bytes, 0)) * SECOND + u64::from(u32_at(&bytes, 4)) * 1000;
    let outcome = sleep(call, libc::CLOCK_MONOTONIC, nanoseconds);
    if remaining != 0 {
        let left = timeval(outcome.err().map_or(0, |(_, left)| left));
        call.write(remaining, &GuestStructure::new().u32s(&left.map(|word| word as u32)))?;
    }
    outcome.map(|()| 0).map_err(|(error, _)| error)
}

/// An itimerval with 32-bit fields, widened.
fn widen(bytes: [u8; 16]) -> [u64; 4] {
    std::array::from_fn(|index| u32_at(&bytes, 4 * index) as i32 as u64)
}

fn narrow(words: [u64; 4]) -> GuestStructure {
    GuestStructure::new().u32s(&words.map(|word| word as u32))
}

/// osf_getitimer(which, value)
pub fn osf_getitimer(call: &mut Call) -> CallOutcome {
    let address = call.arguments[1];
    let value = get_interval_timer(call)?;
    call.write(address, &narrow(value))?;
    Ok(0)
}

/// osf_setitimer(which, new, old)
pub fn osf_setitimer(call: &mut Call) -> CallOutcome {
    let [_, new, old, ..] = call.arguments;
    let new = if new == 0 { [0; 4] } else { widen(call.read(new)?) };
    let before = set_interval_timer(call, new)?;
    if old != 0 {
        call.write(old, &narrow(before))?;
    }
    Ok(0)
}

/// osf_select(count, read, write, except, timeval with 32-bit fields)
pub fn osf_select(call: &mut Call) -> CallOutcome {
    let address = call.arguments[4];
    let mut timeout = None;
    if address != 0 {
        let bytes: [u8; 8] = call.read(address)?;
        let fields = [u32_at(&bytes, 0), u32_at(&bytes, 4)].map(|field| i64::from(field as i32));
        timeout = Some(timeval_nanoseconds(fields[0], fields[1])?);
    }
    select_for(call, timeout, None).0
}

fn two_short_timevals(call: &Call, address: u64) -> Result<[i64; 4], Errno> {
    let bytes: [u8; 16] = call.read(address)?;
    Ok(std::array::from_fn(|index| i64::from(u32_at(&bytes, 4 * index) as i32)))
}

/// osf_utimes(path, timeval32[2])
pub fn osf_utimes(call: &mut Call) -> CallOutcome {
    let path = call.path(0)?;
    let times = times(call, call.arguments[1], two_short_timevals)?;
    set_times(call, libc::AT_FDCWD as u64, path.as_ptr() as u64, times)
}

/// osf_wait4(process, status, options, usage with 32-bit times)
pub fn osf_wait4(call: &mut Call) -> CallOutcome {
    let mut usage = [0u8; 144];
    let child = wait_for(call, &mut usage)?;
    let address = call.arguments[3];
    if address != 0 {
        call.write(address, &short_usage(&usage))?;
    }
    Ok(child)
}
