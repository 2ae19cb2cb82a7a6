//! Each thread's share of sums that are kept for all threads together, and each unit of work's share: a unit
//! belongs to the thread that it began in.

use std::collections::HashMap;

/// Sums that only grow.
pub trait Sums: Clone + Default {
    /// Adds other sums.
    fn add(&mut self, other: &Self);

    /// The difference to `earlier` sums.
    fn since(&self, earlier: &Self) -> Self;
}

/// The share of each thread in common sums, while one thread executes at a time; and the unit of work that each
/// thread is in.
#[derive(Clone, Debug, Default)]
pub struct PerThread<S> {
    /// The current thread.
    current: u32,
    /// The common sums when the current thread was switched to.
    at_switch: S,
    /// The share of each thread when it was last switched from.
    shares: HashMap<u32, S>,
    /// The unit that each thread is in: its number, and the thread's share when it began.
    open: HashMap<u32, (u64, S)>,
}

impl<S: Sums> PerThread<S> {
    /// The number of the current thread.
    pub fn current(&self) -> u32 {
        self.current
    }

    /// Whether a thread is another one than the current thread.
    #[inline(always)]
    pub fn is_other(&self, thread: u32) -> bool {
        thread != self.current
    }

    /// Switches to a thread, when the common sums are `total`.
    pub fn enter(&mut self, thread: u32, total: S) {
        if self.is_other(thread) {
            let own = self.own(&total);
            self.shares.insert(self.current, own);
            (self.current, self.at_switch) = (thread, total);
        }
    }

    /// The share of the current thread.
    fn own(&self, total: &S) -> S {
        let mut own = total.since(&self.at_switch);
        if let Some(before) = self.shares.get(&self.current) {
            own.add(before);
        }
        own
    }

    /// The current thread begins a unit of work.
    pub fn begin_unit(&mut self, number: u64, total: &S) {
        self.open.insert(self.current, (number, self.own(total)));
    }

    /// The current thread ends a unit. Returns the unit's share, if the thread began it.
    pub fn end_unit(&mut self, number: u64, total: &S) -> Option<S> {
        let (_, began) = self.open.remove(&self.current).filter(|(open, _)| *open == number)?;
        Some(self.own(total).since(&began))
    }

    /// The common sums are reset, and no unit is open.
    pub fn reset(&mut self) {
        *self = PerThread { current: self.current, ..PerThread::default() };
    }
}
