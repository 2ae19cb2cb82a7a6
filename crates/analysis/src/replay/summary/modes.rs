//! Counts of a whole system by mode, and by why the kernel was entered.

use std::collections::BTreeMap;

use events::record::{CALLSYS, ExceptionKind, FIRST_UNPRIVILEGED_PAL_CALL, Mark, returns_from_kernel};
use trace::{ExecutionMode, Trace};

use super::super::{Executed, SelectedInstructions};
use crate::table::{Kind as Column, Table, Value};

/// The depth of exceptions within exceptions that is kept.
const DEEPEST: usize = 64;

/// Why the kernel was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryReason {
    /// It was not entered from a program: its own threads, and what threads do before their first return to a program.
    None,
    /// By a system call.
    SystemCall(u32),
    /// By an exception.
    Exception(ExceptionKind),
    /// By another call of PALcode.
    PalCall(u32),
}

/// What happened for a reason.
#[derive(Clone, Copy, Debug, Default)]
struct ReasonCounts {
    entries: u64,
    /// Instructions of the kernel and of PALcode.
    kernel: u64,
    pal: u64,
}

/// The state of a thread.
#[derive(Clone, Debug, Default)]
struct KernelEntries {
    /// The reasons of entries that have not ended, the innermost last.
    reasons: Vec<EntryReason>,
    /// The number of the system call that the last instruction makes.
    system_call: Option<u32>,
    /// Whether PALcode returns from the innermost entry.
    returns: bool,
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

    pub fn mark(&mut self, stream: u32, mark: Mark, is_selected: bool) {
        let thread = &mut self.threads[stream as usize];
        let reason = match mark {
            Mark::SystemCall(number) => {
                thread.system_call = Some(number);
                return;
            }
            Mark::Exception(exception) => EntryReason::Exception(exception),
            Mark::PalCall(CALLSYS) => EntryReason::SystemCall(thread.system_call.take().unwrap_or(u32::MAX)),
            Mark::PalCall(function) if function >= FIRST_UNPRIVILEGED_PAL_CALL => {
                EntryReason::PalCall(function)
            }
            Mark::PalCall(function) => {
                thread.returns = returns_from_kernel(function);
                return;
            }
            Mark::PalReturn if thread.returns => {
                thread.returns = false;
                thread.reasons.pop();
                return;
            }
            Mark::Gap => return thread.reasons.clear(),
            _ => return,
        };
        thread.returns = false;
        if thread.reasons.len() < DEEPEST {
            thread.reasons.push(reason);
        }
        if is_selected {
            self.reasons.entry(reason).or_default().entries += 1;
        }
    }

    pub fn executed(&mut self, executed: &Executed) {
        let (mode, length) = self.modes[executed.execution.block as usize];
        let thread = &mut self.threads[executed.stream as usize];
        if mode == ExecutionMode::User {
            // Whatever was entered has ended.
            thread.reasons.clear();
            return;
        }
        let instructions = match executed.selected {
            SelectedInstructions::All => length,
            SelectedInstructions::None => return,
            SelectedInstructions::Some(which) => which.iter().filter(|one| **one).count() as u64,
        };
        let reason = thread.reasons.last().copied().unwrap_or(EntryReason::None);
        let counts = self.reasons.entry(reason).or_default();
        *(if mode == ExecutionMode::Pal { &mut counts.pal } else { &mut counts.kernel }) += instructions;
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
            let name = if number == u32::MAX { "(unknown)".into() } else { name(number) };
            table.row(counts.row(name.into()));
        }
        table.total_row(total.row("total".into()));
        table
    }
}

impl EntryReason {
    fn name(self) -> String {
        match self {
            EntryReason::None => "(not entered)".into(),
            EntryReason::SystemCall(_) => "system call".into(),
            EntryReason::Exception(exception) => exception.name().into(),
            EntryReason::PalCall(function) => format!("call of PALcode {function:#x}"),
        }
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
