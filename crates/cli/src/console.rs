//! The command line as the outside of a session: bars and lines on a terminal, tables where the options say.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use analysis::units::Phase;
use report::{Destination, Format};
use session::console::{Console, ReplayProgress, RunProgress};
use session::measure::Counted;
use table::Table;

use crate::arguments::{OutputOptions, RowOptions, TableOptions};
use crate::messages::{self, Message};
use crate::progress::{LiveProgress, Replaying};

/// One message is sent for this number of units.
const MESSAGE_INTERVAL: u64 = 64;

/// The output of a command that simulates, with the rows of its tables.
pub struct CommandConsole<'a> {
    output: &'a OutputOptions,
    rows: Option<&'a RowOptions>,
}

impl<'a> CommandConsole<'a> {
    /// With all rows of tables.
    pub fn new(output: &'a OutputOptions) -> CommandConsole<'a> {
        CommandConsole { output, rows: None }
    }

    /// With the rows of tables that the options say.
    pub fn of_tables(options: &'a TableOptions) -> CommandConsole<'a> {
        CommandConsole { output: &options.output, rows: Some(&options.rows) }
    }
}

impl Console for CommandConsole<'_> {
    fn begin_run(&self, may_have_thread: bool) -> Box<dyn RunProgress> {
        Box::new(CommandRun::begin(self.output, may_have_thread))
    }

    fn begin_replay(&self, instructions: u64, is_shown: bool) -> Box<dyn ReplayProgress> {
        Box::new(CommandReplay(Replaying::new(instructions, is_shown)))
    }

    fn report_problem(&self, problem: &str) {
        messages::report_problem(problem);
    }

    fn sort(&self, tables: &mut [Table]) -> anyhow::Result<()> {
        self.rows.map_or(Ok(()), |rows| rows.sort(tables))
    }

    fn shorten(&self, table: &mut Table, usual: Option<usize>, all: &str) {
        if let Some(rows) = self.rows {
            rows.shorten(table, usual, all);
        }
    }

    fn takes_counts(&self, counted: &Counted) -> bool {
        messages::send(&Message::Counted(counted));
        messages::is_connected()
    }

    fn write(&self, tables: &[Table], has_run: bool) -> Result<(), report::Error> {
        if has_run { write_after_run(tables, self.output) } else { write(tables, self.output) }
    }

    fn path(&self) -> Option<&Path> {
        self.output.path.as_deref()
    }

    fn format(&self) -> Format {
        self.output.format()
    }

    fn explicit_format(&self) -> Option<Format> {
        self.output.explicit_format()
    }

    fn is_program(&self) -> bool {
        messages::is_connected()
    }
}

/// A run: its line of progress, and standard output for tables only.
pub struct CommandRun {
    _output: SeparatedOutput,
    progress: Option<LiveProgress>,
}

impl CommandRun {
    /// Begins a run.
    pub fn begin(output: &OutputOptions, may_have_thread: bool) -> CommandRun {
        let progress = may_have_thread.then(|| LiveProgress::new(output.takes_standard_output()));
        CommandRun { _output: SeparatedOutput::begin(output), progress }
    }
}

impl RunProgress for CommandRun {
    fn instructions(&self) -> Option<Arc<AtomicU64>> {
        self.progress.as_ref()?.instructions()
    }

    fn unit(&self, seen: u64, phase: Phase) {
        if let Some(progress) = &self.progress {
            progress.unit(seen, phase);
        }
        if seen.is_multiple_of(MESSAGE_INTERVAL) || phase == Phase::Done {
            messages::send(&Message::Units(seen, phase));
        }
    }
}

struct CommandReplay(Replaying);

impl ReplayProgress for CommandReplay {
    fn advance(&self, instructions: u64) {
        self.0.show(instructions);
    }
}

impl Drop for CommandReplay {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// While it exists, what a program writes to standard output goes to standard error, if tables have standard output for
/// themselves.
pub struct SeparatedOutput {
    kept: Option<OwnedFd>,
}

impl SeparatedOutput {
    /// Begins to send the output elsewhere, if these options say so.
    pub fn begin(output: &OutputOptions) -> SeparatedOutput {
        let is_apart = output.takes_standard_output() && !messages::is_connected();
        let kept = is_apart.then(|| linux_user::high_copy(libc::STDOUT_FILENO)).flatten();
        if kept.is_some() {
            replace_output(libc::STDERR_FILENO);
        }
        SeparatedOutput { kept }
    }
}

impl Drop for SeparatedOutput {
    fn drop(&mut self) {
        if let Some(kept) = &self.kept {
            replace_output(kept.as_raw_fd());
        }
    }
}

fn replace_output(by: i32) {
    // SAFETY: a plain system call on numbers.
    unsafe { libc::dup2(by, libc::STDOUT_FILENO) };
}

/// Writes tables of files. Notes for which a format has no place go to standard error.
pub fn write(tables: &[Table], output: &OutputOptions) -> Result<(), report::Error> {
    write_to(output.destination(), tables, output)
}

/// Writes tables of a program that was run, where they do not mix with its output.
pub fn write_after_run(tables: &[Table], output: &OutputOptions) -> Result<(), report::Error> {
    write_to(output.destination_after_run(), tables, output)
}

/// Writes tables, or sends them to a calling program.
fn write_to(destination: Destination, tables: &[Table], output: &OutputOptions) -> Result<(), report::Error> {
    if messages::is_connected() {
        messages::send(&Message::Tables(tables));
        return Ok(());
    }
    report::write_to(tables, output.format(), destination)?;
    if matches!(output.format(), Format::Csv | Format::Parquet) {
        for table in tables {
            let which = if tables.len() > 1 { format!("{}: ", table.name) } else { String::new() };
            table.notes.iter().for_each(|note| text::message!("note: {which}{note}"));
        }
    }
    Ok(())
}
