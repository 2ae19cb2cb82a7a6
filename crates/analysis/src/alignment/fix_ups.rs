//! Alignment faults in traces of whole systems. The faulting instruction is not executed there: PALcode and the kernel are
//! seen to carry it out, and control returns to the instruction after it.

use std::collections::HashMap;

use events::BlockId;
use events::record::{ExceptionKind, Mark};

use crate::kernel_entries::{EntryReason, KernelEntries};

/// What carries out unaligned accesses.
#[derive(Debug, Default)]
pub(super) struct FixUps {
    threads: HashMap<u32, ThreadFixUps>,
    /// The threads in a fix-up.
    open: usize,
    /// By block, the faults of the instruction before its first one.
    faults: HashMap<BlockId, u64>,
    /// Instructions of kernel and PALcode.
    pub instructions: u64,
}

#[derive(Debug, Default)]
struct ThreadFixUps {
    entries: KernelEntries,
    /// The depth of entries to which the fix-up returns.
    depth: Option<usize>,
}

impl FixUps {
    /// Follows a mark of a thread.
    pub fn mark(&mut self, thread: u32, mark: Mark) {
        let state = self.threads.entry(thread).or_default();
        let depth = state.entries.depth();
        let reason = state.entries.mark(mark);
        let begins = reason == Some(EntryReason::Exception(ExceptionKind::UnalignedAccess));
        if begins && state.depth.is_none() {
            state.depth = Some(depth);
            self.open += 1;
        }
    }

    /// A thread executes a block. Returns whether an access has been carried out before.
    #[inline]
    pub fn executed(&mut self, thread: u32, block: BlockId, instructions: u64) -> bool {
        self.open > 0 && self.continued(thread, block, instructions)
    }

    #[cold]
    fn continued(&mut self, thread: u32, block: BlockId, instructions: u64) -> bool {
        let Some(state) = self.threads.get_mut(&thread) else { return false };
        let Some(depth) = state.depth else { return false };
        if state.entries.depth() > depth {
            self.instructions += instructions;
            return false;
        }
        state.depth = None;
        self.open -= 1;
        *self.faults.entry(block).or_default() += 1;
        true
    }

    /// The faults of the instruction before a block.
    pub fn before(&self, block: BlockId) -> u64 {
        self.faults.get(&block).copied().unwrap_or(0)
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
        assert!(!fix_ups.executed(0, 1, 10));
        fix_ups.mark(0, fault);
        assert!(!fix_ups.executed(0, 2, 20));
        // Another thread, and a clock interrupt within.
        assert!(!fix_ups.executed(1, 1, 10));
        for mark in [Mark::PalReturn, Mark::Exception(ExceptionKind::ClockInterrupt), Mark::PalReturn] {
            fix_ups.mark(0, mark);
        }
        fix_ups.mark(0, Mark::PalCall(RTI));
        fix_ups.mark(0, Mark::PalReturn);
        assert!(!fix_ups.executed(0, 3, 200));
        fix_ups.mark(0, Mark::PalCall(RTI));
        assert!(!fix_ups.executed(0, 4, 7));
        fix_ups.mark(0, Mark::PalReturn);
        assert!(fix_ups.executed(0, 5, 10) && !fix_ups.executed(0, 5, 10));
        assert_eq!((fix_ups.before(5), fix_ups.before(1), fix_ups.instructions), (1, 0, 227));
    }
}
