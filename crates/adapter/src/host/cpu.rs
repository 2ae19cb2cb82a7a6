//! The host's processor: does one task after another.

use std::collections::VecDeque;

use crate::clock::{NANOSECOND, Picoseconds};
use crate::hardware::Hardware;

/// A processor, and the tasks `T` that wait for it.
#[derive(Clone, Debug)]
pub(super) struct HostProcessor<T> {
    waiting: VecDeque<T>,
    /// The task whose time runs, or that waits for the adapter.
    present: Option<T>,
    since: Picoseconds,
    busy: Picoseconds,
}

/// The cost of a task: a fixed time, and bytes of memory that the processor reads or writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskCost {
    pub(super) nanoseconds: u64,
    pub(super) memory_bytes: u64,
}

impl<T: Copy> HostProcessor<T> {
    pub(super) fn new() -> HostProcessor<T> {
        HostProcessor { waiting: VecDeque::new(), present: None, since: 0, busy: 0 }
    }

    /// Appends a task.
    pub(super) fn push(&mut self, task: T) {
        self.waiting.push_back(task);
    }

    /// Puts tasks in front of all others, in their order.
    pub(super) fn push_first(&mut self, tasks: impl DoubleEndedIterator<Item = T>) {
        tasks.rev().for_each(|task| self.waiting.push_front(task));
    }

    /// Begins the next task, if there is one and the processor is free.
    pub(super) fn begin(&mut self, hardware: &mut Hardware, cost: impl Fn(&T) -> TaskCost) {
        if self.present.is_some() {
            return;
        }
        let Some(task) = self.waiting.pop_front() else { return };
        let TaskCost { nanoseconds, memory_bytes } = cost(&task);
        let passes = if memory_bytes > 0 { hardware.pass_over_memory(memory_bytes) } else { 0 };
        self.present = Some(task);
        self.since = hardware.now();
        hardware.wake_after(nanoseconds * NANOSECOND + passes);
    }

    /// The task whose time has passed.
    pub(super) fn present(&self) -> Option<T> {
        self.present
    }

    /// Ends the present task.
    pub(super) fn end(&mut self, hardware: &Hardware) {
        self.present = None;
        self.busy += hardware.now() - self.since;
    }

    /// The time in which the processor had a task.
    pub(super) fn busy(&self) -> Picoseconds {
        self.busy
    }
}
