//! Counts of what a thread executes, by why the kernel was entered, instead of its records.
//!
//! They are written as a trace in which each block occurs once for each reason, with the number of its executions beside it: so what
//! evaluates traces evaluates counts.

use std::collections::BTreeMap;

use analysis::kernel_entries::{EntryReason, UNKNOWN_CALL};
use events::BlockId;
use events::record::{CALLSYS, Event, Mark};

/// The reason of a system call whose number the kernel has not looked up yet.
const UNRESOLVED: EntryReason = EntryReason::SystemCall(UNKNOWN_CALL);

/// Executions for a reason; None stands for the program itself.
#[derive(Debug, Default)]
struct ReasonExecutions {
    reason: Option<EntryReason>,
    entries: u64,
    /// Executions, by block.
    blocks: Vec<u64>,
}

/// Counts of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadCounts {
    reasons: Vec<ReasonExecutions>,
    numbers: BTreeMap<Option<EntryReason>, usize>,
    /// The reason of what is executed: an index of `reasons`.
    current: usize,
    /// Executions for the innermost unresolved system call; None if there is none.
    unresolved: Option<Vec<BlockId>>,
}

/// A thread's counts in a trace.
#[derive(Debug, Default)]
pub(super) struct CondensedRecords {
    /// The records.
    pub words: Vec<u64>,
    /// How often each of them happened.
    pub times: Vec<u64>,
}

impl ThreadCounts {
    /// Executions that follow are for this reason, which is new if `is_entry`.
    pub fn enter(&mut self, reason: Option<EntryReason>, is_entry: bool) {
        self.current = self.number(reason);
        self.reasons[self.current].entries += u64::from(is_entry);
        if is_entry && reason == Some(UNRESOLVED) {
            self.unresolved = Some(Vec::new());
        }
    }

    /// A block was executed.
    #[inline]
    pub fn count(&mut self, block: BlockId) {
        let ReasonExecutions { reason, blocks, .. } = &mut self.reasons[self.current];
        if *reason == Some(UNRESOLVED)
            && let Some(unresolved) = &mut self.unresolved
        {
            unresolved.push(block);
        }
        let index = block as usize;
        if blocks.len() <= index {
            blocks.resize(index + 1, 0);
        }
        blocks[index] += 1;
    }

    /// The innermost unresolved system call has this number. Returns whether there is one.
    pub fn resolve(&mut self, number: u32) -> bool {
        let Some(executed) = self.unresolved.take() else { return false };
        let from = self.number(Some(UNRESOLVED));
        let to = self.number(Some(EntryReason::SystemCall(number)));
        self.reasons[from].entries -= 1;
        self.reasons[to].entries += 1;
        self.current = to;
        for block in executed {
            self.reasons[from].blocks[block as usize] -= 1;
            self.count(block);
        }
        true
    }

    fn number(&mut self, reason: Option<EntryReason>) -> usize {
        let next = self.reasons.len();
        let number = *self.numbers.entry(reason).or_insert(next);
        if number == next {
            self.reasons.push(ReasonExecutions { reason, ..ReasonExecutions::default() });
        }
        number
    }

    /// The counts as records. `accesses` is the number of addresses of a block's record.
    pub fn condensed(&self, accesses: impl Fn(BlockId) -> usize) -> CondensedRecords {
        let mut records = CondensedRecords::default();
        for &number in self.numbers.values() {
            let ReasonExecutions { reason, entries, blocks } = &self.reasons[number];
            if *entries == 0 && blocks.iter().all(|&times| times == 0) {
                continue;
            }
            records.mark(Mark::Gap, 0);
            match *reason {
                None | Some(EntryReason::None) => {}
                Some(EntryReason::SystemCall(number)) => {
                    records.mark(Mark::SystemCall(number), *entries);
                    records.mark(Mark::PalCall(CALLSYS), *entries);
                }
                Some(EntryReason::Exception(exception)) => records.mark(Mark::Exception(exception), *entries),
                Some(EntryReason::PalCall(function)) => records.mark(Mark::PalCall(function), *entries),
            }
            for (block, &times) in (0..).zip(blocks).filter(|(_, times)| **times > 0) {
                records.words.push(Event::Block(block).word());
                records.words.extend(std::iter::repeat_n(0, accesses(block)));
                records.times.push(times);
            }
        }
        records
    }
}

impl CondensedRecords {
    fn mark(&mut self, mark: Mark, times: u64) {
        self.words.push(Event::Mark(mark).word());
        self.times.push(times);
    }
}
