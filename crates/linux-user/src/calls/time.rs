//! Clocks and sleeping.
//!
//! The virtual clock of a counting run advances
//! - by a nanosecond for each instruction;
//! - by the time slept: exactly the timeout of a call that timed out;
//! - to the time of a timer that expires ([`timers`](super::timers)): a timer runs on the host's clock; when its
//!   signal arrives or its descriptor becomes readable, the virtual clock is set to exactly its time;
//! - by the host's time that the program waited for others, a user or another process ([`for_somebody_else`]), in
//!   whole steps of [`STEP`], but never beyond the time of an armed timer.
//!
//! So events caused by time show the same times in each run, and so do answers that arrive within a step. Only a
//! program that waits long for others, as a server for its next request, sees real durations: otherwise its timers
//! would never expire on its own clock.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u64_at};
use crate::calls::call::RestartRule::Fails;
use crate::calls::call::{Argument, Call, CallOutcome};
use crate::state::clock::{SECOND, host_time, timespec, timeval};
use host::Errno;

/// Clock ticks per second, as `AT_CLKTCK` states.
const TICKS: u64 = 100;
/// TIMER_ABSTIME.
const ABSOLUTE: u64 = 1;

const EINVAL: Errno = Errno(libc::EINVAL);

impl<G: Abi> Call<'_, '_, G> {
    /// Advances the virtual clock by the time that the call slept, in nanoseconds, unless other threads have advanced
    /// it already.
    pub fn slept(&mut self, nanoseconds: u64) {
        self.kernel.reach(self.began.saturating_add(nanoseconds));
        self.waited = 0;
    }

    /// [`Kernel::virtual_time`], and the CPU clock of the calling thread.
    fn virtual_time(&self, clock: i32) -> Option<u64> {
        /// The bit of a clock ID that distinguishes a thread's clock from a process's.
        const THREAD: i32 = 4;
        let own = [0, self.thread.address().id].contains(&!(clock >> 3));
        let is_own = clock == libc::CLOCK_THREAD_CPUTIME_ID || clock < 0 && clock & THREAD != 0 && own;
        if is_own && self.kernel.is_virtual() {
            return Some(self.instructions);
        }
        self.kernel.virtual_time(clock)
    }

    /// A timespec in nanoseconds, saturated; EINVAL if it is invalid.
    pub fn read_timespec(&self, address: u64) -> Result<u64, Errno> {
        let bytes: [u8; 16] = self.read(address)?;
        let (seconds, nanoseconds) = (u64_at(&bytes, 0), u64_at(&bytes, 8));
        if seconds > i64::MAX as u64 || nanoseconds >= SECOND {
            return Err(EINVAL);
        }
        Ok(seconds.saturating_mul(SECOND).saturating_add(nanoseconds).min(i64::MAX as u64))
    }

    /// As above, for an optional timeout: None for NULL.
    pub fn read_timeout(&self, address: u64) -> Result<Option<u64>, Errno> {
        if address == 0 { Ok(None) } else { self.read_timespec(address).map(Some) }
    }
}

/// clock_gettime(clock, time)
pub fn clock_gettime<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    match call.virtual_time(call.int(0)) {
        Some(time) => {
            let address = call.arguments[1];
            call.write(address, &GuestStructure::new().u64s(&timespec(time)))?;
            Ok(0)
        }
        None => call.pass(libc::SYS_clock_gettime, &[Argument::Int, Argument::Bytes(16)]),
    }
}

/// clock_getres(clock, resolution)
pub fn clock_getres<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let address = call.arguments[1];
    if call.virtual_time(call.int(0)).is_none() || address == 0 {
        return call.pass(libc::SYS_clock_getres, &[Argument::Int, Argument::Bytes(16)]);
    }
    call.write(address, &GuestStructure::new().u64s(&[0, 1]))?;
    Ok(0)
}

pub fn now<G: Abi>(call: &Call<G>) -> u64 {
    let clock = libc::CLOCK_REALTIME;
    call.kernel.virtual_time(clock).unwrap_or_else(|| host_time(clock))
}

/// gettimeofday(time, time zone)
pub fn gettimeofday<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [time, zone, ..] = call.arguments;
    let record = GuestStructure::new().u64s(&timeval(now(call)));
    if time != 0 {
        call.write(time, &record)?;
    }
    if zone != 0 {
        call.write(zone, &GuestStructure::new().zeros_to(8))?;
    }
    Ok(0)
}

/// times(buffer): clock ticks since a fixed point in the past.
pub fn times<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let Some(elapsed) = call.kernel.virtual_time(libc::CLOCK_MONOTONIC) else {
        return call.pass(libc::SYS_times, &[Argument::Bytes(32)]);
    };
    let ticks = |nanoseconds: u64| nanoseconds / (SECOND / TICKS);
    let buffer = call.arguments[0];
    if buffer != 0 {
        call.write(buffer, &GuestStructure::new().u64s(&[ticks(call.kernel.instructions), 0, 0, 0]))?;
    }
    Ok(ticks(elapsed))
}

/// `ru_maxrss` in a rusage.
const MAX_RESIDENT: std::ops::Range<usize> = 32..40;

/// The 144 bytes of the rusage of the process, of the calling thread, or of children that have ended.
pub fn usage<G: Abi>(call: &Call<G>, who: i32) -> Result<[u8; 144], Errno> {
    let mut usage = [0u8; 144];
    let is_own = who == libc::RUSAGE_SELF || who == libc::RUSAGE_THREAD;
    if !call.kernel.is_virtual() {
        call.host(libc::SYS_getrusage, [who as u64, usage.as_mut_ptr() as u64, 0, 0, 0, 0])?;
    } else if is_own {
        usage[..16].copy_from_slice(GuestStructure::new().u64s(&timeval(call.kernel.instructions)).bytes());
    } else if who != libc::RUSAGE_CHILDREN {
        return Err(EINVAL);
    }
    if is_own {
        // The host's figure is that of the engine's process.
        usage[MAX_RESIDENT].copy_from_slice(&(call.memory.peak_bytes() / 1024).to_le_bytes());
    }
    Ok(usage)
}

/// getrusage(who, buffer)
pub fn getrusage<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let (usage, buffer) = (usage(call, call.int(0))?, call.arguments[1]);
    call.write(buffer, &GuestStructure::new().raw(&usage))?;
    Ok(0)
}

/// Sleeps on the host. Returns the remaining nanoseconds if a signal interrupts it.
pub fn sleep<G: Abi>(call: &mut Call<G>, clock: i32, nanoseconds: u64) -> Result<(), (Errno, u64)> {
    // A CPU clock would not advance on the host during the sleep: sleep on one that does.
    let virtual_clock = call.kernel.virtual_time(clock).is_some();
    let clock = if virtual_clock { libc::CLOCK_MONOTONIC } else { clock };
    let request = timespec(nanoseconds);
    let mut rest = [0u64; 2];
    let arguments = [clock as u64, 0, request.as_ptr() as u64, rest.as_mut_ptr() as u64, 0, 0];
    match call.wait(libc::SYS_clock_nanosleep, arguments, Fails) {
        Ok(_) => {
            call.slept(nanoseconds);
            Ok(())
        }
        Err(Errno(libc::EINTR)) => {
            // A sleep that a timer interrupts has lasted until the timer's time.
            let end = host::recorded().and_then(|information| call.kernel.expiry(&information));
            let left = match end {
                Some(end) => call.began.saturating_add(nanoseconds).saturating_sub(end).min(nanoseconds),
                None => rest[0].saturating_mul(SECOND).saturating_add(rest[1]),
            };
            call.slept(nanoseconds.saturating_sub(left));
            Err((Errno(libc::EINTR), left))
        }
        Err(error) => Err((error, nanoseconds)),
    }
}

/// Sleeps, and writes the remaining time to the guest's `remaining`, unless that is NULL.
fn sleep_for<G: Abi>(call: &mut Call<G>, clock: i32, nanoseconds: u64, remaining: u64) -> CallOutcome {
    match sleep(call, clock, nanoseconds) {
        Ok(()) => Ok(0),
        Err((error, left)) => {
            if error == Errno(libc::EINTR) && remaining != 0 {
                call.write(remaining, &GuestStructure::new().u64s(&timespec(left)))?;
            }
            Err(error)
        }
    }
}

/// nanosleep(time, remaining)
pub fn nanosleep<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [time, remaining, ..] = call.arguments;
    let nanoseconds = call.read_timespec(time)?;
    sleep_for(call, libc::CLOCK_MONOTONIC, nanoseconds, remaining)
}

/// clock_nanosleep(clock, flags, time, remaining)
pub fn clock_nanosleep<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [clock, flags, time, remaining, ..] = call.arguments;
    let clock = clock as i32;
    let requested = call.read_timespec(time)?;
    if flags & ABSOLUTE != 0 {
        let rest = call.kernel.until(clock, requested);
        return sleep_for(call, clock, rest, 0);
    }
    sleep_for(call, clock, requested, remaining)
}
