//! Counts of a whole system by mode, and by why the kernel was entered.

use std::collections::BTreeMap;

use events::record::Mark;
use trace::{ExecutionMode, Trace};

use super::super::{Executed, SelectedInstructions};
use crate::kernel_entries::{EntryReason, KernelEntries, UNKNOWN_CALL};
use table::{Kind as Column, Table, Value};

/// What happened for a reason.
#[derive(Clone, Copy, Debug, Default)]
struct ReasonCounts {
    entries: u64,
    /// Instructions of the kernel and of PALcode.
    kernel: u64,
    pal: u64,
}

/// Counts by mode and reason.
pub(super) struct ModeCounts {
    modes: Vec<(ExecutionMode, u64)>,
    threads: Vec<KernelEntries>,
    reasons: BTreeMap<EntryReason, ReasonCounts>,
}

impl ModeCounts {
    pub fn new(trace: &Trace) -> ModeCounts {
        let of = |block: &events::Block| (trace.header().mode(block.address), block.words.len() as u64);
        ModeCounts {
            modes: trace.blocks().iter().map(of).collect(),
            threads: vec![KernelEntries::default(); trace.streams().len()],
            reasons: BTreeMap::new(),
        }
    }

    pub fn mark(&mut self, stream: u32, mark: Mark, is_selected: bool, times: u64) {
        let entered = self.threads[stream as usize].mark(mark);
        if let Some(reason) = entered.filter(|_| is_selected) {
            self.reasons.entry(reason).or_default().entries += times;
        }
    }

    pub fn executed(&mut self, executed: &Executed, times: u64) {
        let (mode, length) = self.modes[executed.execution.block as usize];
        let thread = &mut self.threads[executed.stream as usize];
        if mode == ExecutionMode::User {
            thread.in_program();
            return;
        }
        let instructions = match executed.selected {
            SelectedInstructions::All => length,
            SelectedInstructions::None => return,
            SelectedInstructions::Some(which) => which.iter().filter(|one| **one).count() as u64,
        };
        let counts = self.reasons.entry(thread.reason()).or_default();
        *(if mode == ExecutionMode::Pal { &mut counts.pal } else { &mut counts.kernel }) +=
            times * instructions;
    }

    /// By reason; system calls together.
    pub fn entries(&self) -> Table {
        let columns = [
            ("entered by", Column::Text),
            ("entries", Column::Count),
            ("kernel", Column::Count),
            ("PALcode", Column::Count),
            ("an entry", Column::Real(1)),
        ];
        let mut table =
            Table::new("entries", "Instructions of kernel and PALcode, by why they were entered", &columns);
        let mut rows: BTreeMap<String, ReasonCounts> = BTreeMap::new();
        for (reason, counts) in &self.reasons {
            let sum = rows.entry(reason.name()).or_default();
            sum.add(counts);
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.kernel + counts.pal));
        let mut total = ReasonCounts::default();
        for (name, counts) in rows {
            total.add(&counts);
            table.row(counts.row(name.into()));
        }
        table.total_row(total.row("total".into()));
        table.notes.push(
            "What interrupts a system call is not part of it. Kernel threads, and processes before they first return \
             to their program, have no entry."
                .into(),
        );
        table
    }

    /// By system call.
    pub fn system_calls(&self, name: &dyn Fn(u32) -> String) -> Table {
        let columns = [
            ("system call", Column::Text),
            ("calls", Column::Count),
            ("kernel", Column::Count),
            ("PALcode", Column::Count),
            ("a call", Column::Real(1)),
        ];
        let mut table = Table::new("system-call-costs", "Instructions of system calls", &columns);
        let of = |(reason, counts): (&EntryReason, &ReasonCounts)| match reason {
            EntryReason::SystemCall(number) => Some((*number, *counts)),
            _ => None,
        };
        let mut calls: Vec<_> = self.reasons.iter().filter_map(of).collect();
        calls.sort_by_key(|(number, counts)| (std::cmp::Reverse(counts.kernel + counts.pal), *number));
        let mut total = ReasonCounts::default();
        for (number, counts) in calls {
            total.add(&counts);
            let name = if number == UNKNOWN_CALL { "(unknown)".into() } else { name(number) };
            table.row(counts.row(name.into()));
        }
        table.total_row(total.row("total".into()));
        table
    }
}

impl ReasonCounts {
    fn add(&mut self, other: &ReasonCounts) {
        self.entries += other.entries;
        self.kernel += other.kernel;
        self.pal += other.pal;
    }

    fn row(&self, name: Value) -> Vec<Value> {
        let all = self.kernel + self.pal;
        let mean = (self.entries > 0).then(|| all as f64 / self.entries as f64);
        vec![name, self.entries.into(), self.kernel.into(), self.pal.into(), mean.into()]
    }
}
