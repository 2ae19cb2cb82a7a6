//! A process's timers, with their expiry times on the virtual clock.

use std::collections::BTreeMap;

/// An armed timer, in nanoseconds of [`Kernel::elapsed`](crate::Kernel::elapsed).
#[derive(Clone, Copy)]
pub struct Armed {
    pub(crate) next: u64,
    /// 0 for a timer that expires once.
    pub(crate) interval: u64,
}

impl Armed {
    /// A timer with this value and interval, if it is armed.
    pub fn new(now: u64, value: u64, interval: u64) -> Option<Armed> {
        (value > 0).then_some(Armed { next: now.saturating_add(value), interval })
    }

    /// The time of the last of this number of expirations, and the timer's state after it.
    pub fn after(self, times: u64) -> (u64, Option<Armed>) {
        let last = self.next.saturating_add(self.interval.saturating_mul(times.saturating_sub(1)));
        (last, Armed::new(last, self.interval, self.interval))
    }
}

/// A POSIX timer or a timer descriptor.
pub struct Timer {
    pub(crate) clock: i32,
    pub(crate) armed: Option<Armed>,
}

/// The timers of a process.
#[derive(Default)]
pub struct Timers {
    /// ITIMER_REAL.
    pub(crate) real: Option<Armed>,
    pub(crate) by_id: BTreeMap<u64, Timer>,
    pub(crate) by_descriptor: BTreeMap<u64, Timer>,
}

impl Timers {
    /// Deletes the POSIX timers, as execve does.
    pub fn delete_all(&mut self) {
        for id in std::mem::take(&mut self.by_id).into_keys() {
            // SAFETY: no pointers are passed.
            unsafe { libc::syscall(libc::SYS_timer_delete, id) };
        }
    }

    /// Stops all timers but those of descriptors, whose signals would end the host's process when the program has ended.
    pub fn stop(&mut self) {
        self.delete_all();
        self.real = None;
        for which in [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF] {
            let never = [0u64; 4];
            // SAFETY: the pointer is to the 32 bytes that the call reads.
            unsafe { libc::syscall(libc::SYS_setitimer, which, never.as_ptr(), 0) };
        }
    }

    /// In the child of a fork, which inherits only timer descriptors.
    pub fn forget(&mut self) {
        self.real = None;
        self.by_id.clear();
    }
}
