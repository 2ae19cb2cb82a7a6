//! Alignment faults in traces of whole systems. The faulting instruction is not executed there: PALcode and the kernel are
//! seen to carry it out, and control returns to the instruction after it.

use std::collections::HashMap;

use events::BlockId;
use events::record::{ExceptionKind, Mark};

use crate::kernel_entries::{EntryReason, KernelEntries};
use crate::models::Addable;

/// The code that carries out unaligned accesses.
#[derive(Debug, Default)]
pub(super) struct FixUps {
    threads: HashMap<u32, ThreadFixUps>,
    /// The threads in a fix-up.
    open: usize,
    /// By block, the faults of the instructions before its first one: of the last of them, the one before it, and so on.
    faults: HashMap<BlockId, Vec<u64>>,
    /// Instructions of kernel and PALcode.
    pub instructions: u64,
}

#[derive(Debug, Default)]
struct ThreadFixUps {
    entries: KernelEntries,
    /// The depth of entries to which the fix-up returns.
    depth: Option<usize>,
    /// The faults of adjacent instructions, which ended without anything between them.
    adjacent: usize,
}

impl FixUps {
    /// Follows a mark of a thread.
    pub fn mark(&mut self, thread: u32, mark: Mark) {
        let state = self.threads.entry(thread).or_default();
        let depth = state.entries.depth();
        let reason = state.entries.mark(mark);
        let begins = reason == Some(EntryReason::Exception(ExceptionKind::UnalignedAccess));
        match state.depth {
            _ if !begins => {}
            None => {
                (state.depth, state.adjacent) = (Some(depth), 1);
                self.open += 1;
            }
            // The instruction after a faulting one faults at once.
            Some(returned) if depth <= returned => state.adjacent += 1,
            Some(_) => {}
        }
    }

    /// A thread executes a block. Returns how many accesses have been carried out just before it.
    #[inline]
    pub fn executed(&mut self, thread: u32, block: BlockId, instructions: u64) -> u64 {
        if self.open == 0 { 0 } else { self.continued(thread, block, instructions) }
    }

    #[cold]
    fn continued(&mut self, thread: u32, block: BlockId, instructions: u64) -> u64 {
        let Some(state) = self.threads.get_mut(&thread) else { return 0 };
        let Some(depth) = state.depth else { return 0 };
        if state.entries.depth() > depth {
            self.instructions += instructions;
            return 0;
        }
        state.depth = None;
        self.open -= 1;
        let faults = self.faults.entry(block).or_default();
        if faults.len() < state.adjacent {
            faults.resize(state.adjacent, 0);
        }
        faults[..state.adjacent].iter_mut().for_each(|one| *one += 1);
        state.adjacent as u64
    }

    /// The faults of the instructions before a block: of the last of them, the one before it, and so on.
    pub fn before(&self, block: BlockId) -> &[u64] {
        self.faults.get(&block).map_or(&[], |faults| faults)
    }

    /// Adds what was counted of threads that execute nothing any more.
    pub fn merge(&mut self, ended: FixUps) {
        for (block, ended) in ended.faults {
            self.faults.entry(block).or_default().add(&ended);
        }
        self.instructions += ended.instructions;
    }

    /// Forgets what was counted.
    pub fn reset(&mut self) {
        self.faults.clear();
        self.instructions = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_up_is_what_is_executed_until_control_returns() {
        const RTI: u32 = 0x3f;
        let fault = Mark::Exception(ExceptionKind::UnalignedAccess);
        let mut fix_ups = FixUps::default();
        assert_eq!(fix_ups.executed(0, 1, 10), 0);
        fix_ups.mark(0, fault);
        assert_eq!(fix_ups.executed(0, 2, 20), 0);
        // Another thread, and a clock interrupt within.
        assert_eq!(fix_ups.executed(1, 1, 10), 0);
        for mark in [Mark::PalReturn, Mark::Exception(ExceptionKind::ClockInterrupt), Mark::PalReturn] {
            fix_ups.mark(0, mark);
        }
        fix_ups.mark(0, Mark::PalCall(RTI));
        fix_ups.mark(0, Mark::PalReturn);
        assert_eq!(fix_ups.executed(0, 3, 200), 0);
        fix_ups.mark(0, Mark::PalCall(RTI));
        assert_eq!(fix_ups.executed(0, 4, 7), 0);
        fix_ups.mark(0, Mark::PalReturn);
        assert_eq!([fix_ups.executed(0, 5, 10), fix_ups.executed(0, 5, 10)], [1, 0]);
        assert_eq!(fix_ups.instructions, 227);
        // The next instruction faults, too.
        for mark in [fault, Mark::PalReturn, Mark::PalCall(RTI), Mark::PalReturn].repeat(2) {
            fix_ups.mark(0, mark);
        }
        assert_eq!([fix_ups.executed(0, 5, 10), fix_ups.executed(0, 5, 10)], [2, 0]);
        assert_eq!((fix_ups.before(5), fix_ups.before(1)), (&[2, 1][..], &[][..]));
    }
}
