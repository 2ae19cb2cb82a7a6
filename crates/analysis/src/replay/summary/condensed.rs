//! Summaries of traces in which a record stands for many: see [`CondensedSummary`].

use std::io;

use events::record::Mark;
use trace::RecordTimes;

use super::Summary;
use crate::replay::{Executed, Visitor};

/// The tables of a summary that do not depend on the order of records, or on addresses.
pub const EXACT_TABLES: [&str; 9] = [
    "modes",
    "entries",
    "system-call-costs",
    "threads",
    "images",
    "functions",
    "groups",
    "instructions",
    "system-calls",
];

/// Computes a summary of a trace whose records have numbers beside them: how often each happened. Only [`EXACT_TABLES`] are right.
pub struct CondensedSummary<'a> {
    summary: Summary<'a>,
    /// The numbers of each stream's next records.
    times: Vec<std::vec::IntoIter<u64>>,
}

impl<'a> CondensedSummary<'a> {
    /// Of numbers by process and thread.
    pub fn new(summary: Summary<'a>, mut times: RecordTimes) -> CondensedSummary<'a> {
        let streams = summary.dictionary.trace.streams().iter();
        let times = streams
            .map(|stream| times.remove(&(stream.process, stream.thread)).unwrap_or_default().into_iter())
            .collect();
        CondensedSummary { summary, times }
    }

    /// The summary.
    pub fn into_summary(self) -> Summary<'a> {
        self.summary
    }

    fn next(&mut self, stream: u32) -> io::Result<()> {
        let next = self.times.get_mut(stream as usize).and_then(Iterator::next);
        self.summary.times = next.ok_or_else(|| io::Error::other("a record of the counts has no number"))?;
        Ok(())
    }
}

impl Visitor for CondensedSummary<'_> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_wanted: bool) -> io::Result<()> {
        self.next(stream)?;
        self.summary.mark(stream, before, mark, is_wanted)
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        self.next(executed.stream)?;
        self.summary.executed(executed)
    }
}
