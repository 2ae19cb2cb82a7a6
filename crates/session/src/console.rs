//! The outside of a session: who sees progress and problems, and where tables go.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use analysis::units::Phase;
use report::{FileForm, Format};
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

    /// The format that was asked for, if it is not the name of the file that says it.
    fn explicit_format(&self) -> Option<Format>;

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
        self.is_for_people().then_some(usual)
    }

    /// Whether people read the tables as text.
    fn is_for_people(&self) -> bool {
        matches!(self.format(), Format::Table | Format::Markdown) && self.page().is_none()
    }

    /// The file, if its name asks for a page of HTML.
    fn page(&self) -> Option<&Path> {
        self.file_of(FileForm::Page)
    }

    /// The form that the file's name asks for, and the file.
    fn form(&self) -> Option<(FileForm, &Path)> {
        let path = self.path()?;
        Some((FileForm::of(path)?, path))
    }

    /// The file, if its name asks for this form.
    fn file_of(&self, form: FileForm) -> Option<&Path> {
        self.form().filter(|(named, _)| *named == form).map(|(_, path)| path)
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

/// Before the work that computes them: whether one table, or several, can be written.
pub fn check_output(console: &dyn Console, several: bool) -> Result<(), report::Error> {
    report::check(several, console.format(), console.path())
}

/// The same of a command that writes files of these forms, too, which an explicit format does not go with.
pub fn check_output_or(
    console: &dyn Console,
    several: bool,
    forms: &[FileForm],
) -> Result<(), report::Error> {
    let named = console.form().filter(|(form, _)| forms.contains(form));
    match (named, console.explicit_format()) {
        (None, _) => check_output(console, several),
        (Some((_, path)), Some(format)) => Err(report::Error::OtherForm { path: path.into(), format }),
        (Some((_, path)), None) => Ok(output_files::check_file(path)?),
    }
}
