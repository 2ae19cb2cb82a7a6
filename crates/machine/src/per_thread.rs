//! What each thread has of what is counted for all threads together, and so what each unit of work has: a unit
//! belongs to the thread that it began in.

use std::collections::HashMap;

/// Sums that only grow.
pub(crate) trait Sums: Clone + Default {
    /// Adds others.
    fn add(&mut self, other: &Self);

    /// What was added since they were `earlier`.
    fn since(&self, earlier: &Self) -> Self;
}

/// The share that each thread has of sums that are kept for all threads together, while the threads take turns; and
/// the unit of work that each thread is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerThread<S> {
    /// The thread whose turn it is.
    current: u32,
    /// The sums of all threads when its turn began.
    turn_began: S,
    /// What each thread had when its last turn ended.
    before_turn: HashMap<u32, S>,
    /// The unit that each thread is in: its number, and what the thread had when it began.
    open: HashMap<u32, (u64, S)>,
}

impl<S: Sums> PerThread<S> {
    /// Whether it is another thread's turn.
    #[inline(always)]
    pub fn is_other(&self, thread: u32) -> bool {
        thread != self.current
    }

    /// It is a thread's turn, when the sums of all threads are `total`.
    pub fn enter(&mut self, thread: u32, total: S) {
        if self.is_other(thread) {
            let own = self.own(&total);
            self.before_turn.insert(self.current, own);
            (self.current, self.turn_began) = (thread, total);
        }
    }

    /// What the thread has whose turn it is.
    fn own(&self, total: &S) -> S {
        let mut own = total.since(&self.turn_began);
        if let Some(before) = self.before_turn.get(&self.current) {
            own.add(before);
        }
        own
    }

    /// The thread whose turn it is begins a unit of work.
    pub fn begin_unit(&mut self, number: u64, total: &S) {
        self.open.insert(self.current, (number, self.own(total)));
    }

    /// It ends a unit: what it had in it, if it began that unit.
    pub fn end_unit(&mut self, number: u64, total: &S) -> Option<S> {
        let (_, began) = self.open.remove(&self.current).filter(|(open, _)| *open == number)?;
        Some(self.own(total).since(&began))
    }

    /// The sums begin anew, and no unit is open.
    pub fn forget(&mut self) {
        *self = PerThread { current: self.current, ..PerThread::default() };
    }
}
