//! The outside of a session: who sees progress and problems, and where tables go.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use analysis::units::Phase;
use report::Format;
use table::Table;

use crate::measure::Counted;

/// A command, or another caller. Values that it returns for what begins are dropped at the end of that.
pub trait Console {
    /// A program begins to run. Where tables have standard output for themselves, the program's output goes elsewhere. A program
    /// that is forked from this process must find no other thread in it: `may_have_thread` says whether it may.
    fn begin_run(&self, may_have_thread: bool) -> Box<dyn RunProgress>;

    /// The replay of so many instructions begins; it is not shown if the output needs the terminal.
    fn begin_replay(&self, instructions: u64, is_shown: bool) -> Box<dyn ReplayProgress>;

    /// A part of a trace cannot be read, and is left out.
    fn report_problem(&self, problem: &str);

    /// Sorts the tables as the caller wishes.
    fn sort(&self, tables: &mut [Table]) -> anyhow::Result<()>;

    /// Keeps the first rows of a table: as many as the caller wishes, or else `usual`. `all` says how to see the others.
    fn shorten(&self, table: &mut Table, usual: Option<usize>, all: &str);

    /// Takes the counts of a program, if a calling program wants these. Returns whether it does.
    fn takes_counts(&self, counted: &Counted) -> bool;

    /// Writes tables: of a program that was run, where they do not mix with its output.
    fn write(&self, tables: &[Table], has_run: bool) -> Result<(), report::Error>;

    /// The file or folder for the output, instead of a stream.
    fn path(&self) -> Option<&Path>;

    /// The format of tables.
    fn format(&self) -> Format;

    /// Whether a program receives the tables, which gets the summary beside other tables, and decides itself what an exit status
    /// means.
    fn is_program(&self) -> bool;

    /// Sorts and shortens tables. They are shortened even if they cannot be sorted.
    fn arrange(&self, tables: &mut [Table]) -> anyhow::Result<()> {
        let sorted = self.sort(tables);
        tables.iter_mut().for_each(|table| self.shorten(table, None, "a larger --top shows them"));
        sorted
    }

    /// Sorts a table of a summary, and keeps so many rows of it for people.
    fn arrange_summary(&self, table: &mut Table, usual: usize, all: &str) -> anyhow::Result<()> {
        let sorted = self.sort(std::slice::from_mut(table));
        self.shorten(table, self.summary_rows(usual), all);
        sorted
    }

    /// The rows of a long table in a summary: so many for people, all in files for other programs and in pages, which fold long
    /// tables.
    fn summary_rows(&self, usual: usize) -> Option<usize> {
        let is_for_people =
            matches!(self.format(), Format::Table | Format::Markdown) && self.page().is_none();
        is_for_people.then_some(usual)
    }

    /// The file, if its name asks for a page of HTML.
    fn page(&self) -> Option<&Path> {
        self.path().filter(|path| path.extension().is_some_and(|extension| extension == "html"))
    }
}

/// Functions in a summary.
pub const SUMMARY_FUNCTIONS: usize = 15;

/// The progress of a run.
pub trait RunProgress: Sync {
    /// The counter of the program's instructions, if it is shown.
    fn instructions(&self) -> Option<Arc<AtomicU64>>;

    /// Another unit of work ended.
    fn unit(&self, seen: u64, phase: Phase);
}

/// The progress of a replay.
pub trait ReplayProgress {
    /// Advances by this number of instructions.
    fn advance(&self, instructions: u64);
}

/// Before the work that computes it: whether a page, one table or several can be written.
pub fn check_output(console: &dyn Console, several: bool) -> anyhow::Result<()> {
    match console.page() {
        Some(_) if console.format() != Format::Table => {
            anyhow::bail!("a page has no other format: leave out --format {}", console.format())
        }
        Some(_) => Ok(()),
        None => Ok(report::check(several, console.format(), console.path())?),
    }
}
