//! Tables of samples.

use std::cmp::Reverse;

use analysis::call_tree::{CallRows, WithCallTree, call_tables};
use analysis::models::{self, OwnRows};
use analysis::names::file_name;
use analysis::samples::{
    SampleCounts, SampleSummary, SampledInstructions, summary, system_calls, with_errors, without_calls,
};
use anyhow::Context;
use table::{Kind, Table};

use crate::console::Console;
use crate::process_tree;
use crate::sampling::SampledProcess;
use crate::simulation::Simulated;
use crate::tables::{CallsRequest, ResultRows};

/// Rows of each table in the summary.
const SUMMARY_ROWS: usize = 15;

/// The rows of a table of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledRows {
    /// Rows that any model's results have.
    Results(ResultRows),
    /// Processes.
    Process,
    /// System calls.
    SystemCall,
}

/// Everything that tables are made of.
pub struct SampledTables<'a> {
    /// The calls that are shown.
    pub calls: CallsRequest,
    /// The samples by chain of calls.
    pub simulated: &'a Simulated<WithCallTree<SampleCounts>>,
    /// The samples by instruction.
    pub instructions: SampledInstructions,
    /// The whole.
    pub summary: SampleSummary,
    /// The processes.
    pub processes: Vec<SampledProcess>,
    /// Where tables go.
    pub console: &'a dyn Console,
}

impl SampledTables<'_> {
    /// Writes the tables with these rows; without, those of a summary.
    pub fn write(&self, rows: Option<SampledRows>) -> anyhow::Result<()> {
        self.calls.selection.check(self.simulated.model.tree()).context("in the samples")?;
        let table = match rows {
            Some(SampledRows::Results(ResultRows::Own(rows))) => self.own(rows),
            Some(SampledRows::Results(ResultRows::Calls(rows))) => self.calls(rows),
            Some(SampledRows::SystemCall) => system_calls(&self.summary),
            Some(SampledRows::Results(_) | SampledRows::Process) => self.by_process(),
            None => return Ok(self.simulated.write_as_they_are(self.console, self.short())?),
        };
        let mut tables = vec![table];
        let sorted = self.console.arrange(&mut tables);
        self.simulated.write_as_they_are(self.console, tables)?;
        sorted
    }

    /// A summary, and the first rows of some tables.
    fn short(&self) -> Vec<Table> {
        let mut functions = self.own(OwnRows::Function);
        let mut inclusive = Table { name: "inclusive".into(), ..self.calls(CallRows::Function) };
        let mut lines = self.own(OwnRows::Line);
        let hints = [
            (&mut functions, "--by function shows all functions"),
            (&mut inclusive, "--by function --inclusive shows all functions"),
            (&mut lines, "--by line shows all lines"),
        ];
        for (table, hint) in hints {
            self.console.shorten(table, self.console.summary_rows(SUMMARY_ROWS), hint);
        }
        vec![summary(&self.summary), self.by_process(), functions, inclusive, lines]
    }

    /// The samples of functions, lines or instructions themselves.
    fn own(&self, rows: OwnRows) -> Table {
        let mut tables = models::by(rows, &[("", &self.instructions)], &self.simulated.trace);
        let table = tables.remove(0);
        let title = table.title.trim_end().trim_end_matches(" on").to_string();
        with_errors(Table { title, ..table }, self.summary.samples)
    }

    /// The samples of calls, with all that is called. How often there were calls is not known.
    fn calls(&self, rows: CallRows) -> Table {
        let calls = &self.simulated.model;
        let table = call_tables(rows, &self.calls.selection, calls, &[("", &calls.model)]).remove(0);
        with_errors(without_calls(table), self.summary.samples)
    }

    /// A row for each process.
    fn by_process(&self) -> Table {
        let columns = [
            ("process", Kind::Text),
            ("PID", Kind::Text),
            ("program", Kind::Text),
            ("share", Kind::Percent(1)),
            ("samples", Kind::Count),
            ("end", Kind::Text),
        ];
        let mut table = Table::new("processes", "Samples by process", &columns);
        let mut processes: Vec<&SampledProcess> = self.processes.iter().collect();
        processes.sort_by_key(|process| Reverse(process.samples));
        for process in processes {
            let share = 100.0 * process.samples as f64 / self.summary.samples.max(1) as f64;
            table.row(vec![
                process.number.to_string().into(),
                process.host_process.to_string().into(),
                file_name(&process.program).into(),
                share.into(),
                process.samples.into(),
                process_tree::describe(&process.state).into(),
            ]);
        }
        with_errors(table, self.summary.samples)
    }
}
