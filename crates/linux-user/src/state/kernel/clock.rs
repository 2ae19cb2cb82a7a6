//! The virtual clock of a process.

use super::Kernel;
use crate::abi::Abi;
use crate::state::clock::{BEGINNING, SECOND, STEP, UPTIME, host_time};
use crate::state::settings::Clock;

impl<G: Abi> Kernel<G> {
    /// True if the clocks depend on the program alone.
    pub fn is_virtual(&self) -> bool {
        self.settings.clock == Clock::Virtual
    }

    /// Whether time is dilated: [`Settings::dilation`](crate::Settings::dilation).
    pub(crate) fn is_dilated(&self) -> bool {
        self.is_virtual() && self.settings.dilation > 1
    }

    /// The host's nanoseconds for a timeout of the program.
    pub(crate) fn dilated(&self, timeout: u64) -> u64 {
        let factor = if self.is_dilated() { self.settings.dilation } else { 1 };
        timeout.saturating_mul(factor.into()).min(i64::MAX as u64)
    }

    /// The program's nanoseconds for a rest of a timeout on the host.
    pub(crate) fn undilated(&self, rest: u64) -> u64 {
        if self.is_dilated() { rest / u64::from(self.settings.dilation) } else { rest }
    }

    /// The time that the virtual clock has advanced since the start, in nanoseconds.
    pub(crate) fn elapsed(&self) -> u64 {
        self.instructions.saturating_add(self.clock.slept)
    }

    /// Advances the clock to at least this time of [`Kernel::elapsed`].
    pub(crate) fn reach(&mut self, time: u64) {
        let ahead = time.saturating_sub(self.elapsed());
        self.clock.slept = self.clock.slept.saturating_add(ahead);
    }

    /// Accounts for a call that began at this time and has waited for others for this number of the host's
    /// nanoseconds.
    pub(crate) fn waited(&mut self, began: u64, nanoseconds: u64) {
        // Other threads may have advanced the clock meanwhile.
        let moved = self.elapsed().saturating_sub(began);
        let waiting = self.clock.waiting + nanoseconds.saturating_sub(moved);
        self.clock.waiting = waiting % STEP;
        let until = self.elapsed().saturating_add(waiting - waiting % STEP);
        self.reach(self.next_expiry().map_or(until, |expiry| until.min(expiry)));
    }

    /// Nanoseconds on a virtual clock; None if the clock is not virtual or not of this process.
    pub(crate) fn virtual_time(&self, clock: i32) -> Option<u64> {
        if !self.is_virtual() {
            return None;
        }
        let elapsed = self.elapsed();
        match clock {
            libc::CLOCK_REALTIME
            | libc::CLOCK_REALTIME_COARSE
            | libc::CLOCK_REALTIME_ALARM
            | libc::CLOCK_TAI => Some((BEGINNING * SECOND).saturating_add(elapsed)),
            libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_BOOTTIME_ALARM => Some((UPTIME * SECOND).saturating_add(elapsed)),
            libc::CLOCK_PROCESS_CPUTIME_ID => Some(self.instructions),
            // A process's CPU clock by its ID (include/linux/posix-timers.h).
            id if id < 0 && [0, self.process as i32].contains(&!(id >> 3)) => Some(self.instructions),
            _ => None,
        }
    }

    /// The remaining nanoseconds to an absolute time on a clock; 0 if it has passed.
    pub(crate) fn until(&self, clock: i32, absolute: u64) -> u64 {
        let now = self.virtual_time(clock).unwrap_or_else(|| host_time(clock));
        absolute.saturating_sub(now)
    }
}
