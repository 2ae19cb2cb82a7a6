//! The results of a simulation, and how they are written.

use std::path::Path;
use std::process::ExitCode;

use analysis::models::UnitClasses;
use anyhow::bail;
use report::Page;
use table::Table;
use trace::Trace;

use super::{KnownProcesses, Simulation};
use crate::console::Console;
use crate::measure::Ending;
use crate::program::protect_images;

/// A finished simulation.
pub struct Simulated<M> {
    /// The model.
    pub model: M,
    /// The trace; that of a program has no records.
    pub trace: Trace,
    /// The note on the part of the execution that was simulated.
    pub part: Option<String>,
    /// Other notes on what was not simulated, for readers of the tables.
    pub notes: Vec<String>,
    /// The processes, if all were observed while they ran.
    pub processes: KnownProcesses,
    /// How the program ended, if one was run.
    pub ending: Option<Ending>,
    /// Whether all of the trace could be read.
    pub is_whole: bool,
}

impl<M> Simulated<M> {
    /// Protects the program's images from being overwritten.
    pub fn protect(&self) {
        protect_images(self.trace.images().iter().map(|image| image.path.as_path()));
    }

    /// The file name of the program.
    pub fn program(&self) -> String {
        self.trace.header().program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The notes for readers of the results.
    fn all_notes(&self) -> impl Iterator<Item = &String> {
        self.part.iter().chain(&self.notes)
    }

    /// The program and the notes, for the end of a page.
    fn provenance(&self) -> Vec<(String, String)> {
        let arguments = self.trace.header().arguments.iter().cloned();
        let command: Vec<_> = std::iter::once(self.program()).chain(arguments).collect();
        let notes = self.all_notes().map(|note| ("simulated".into(), note.clone()));
        std::iter::once(("program".into(), command.join(" "))).chain(notes).collect()
    }

    /// The model, and everything else.
    pub fn take_model(self) -> (Simulated<()>, M) {
        let Simulated { model, trace, part, notes, processes, ending, is_whole } = self;
        (Simulated { model: (), trace, part, notes, processes, ending, is_whole }, model)
    }

    /// Sorts and shortens tables, and writes them with the notes. Returns the exit status.
    pub fn write(&self, simulation: &Simulation, mut tables: Vec<Table>) -> anyhow::Result<ExitCode> {
        let sorted = simulation.console.arrange(&mut tables);
        self.write_as_they_are(simulation.console, tables)?;
        sorted?;
        self.finish(simulation)
    }

    /// Writes tables with the notes. The caller is left to finish.
    pub fn write_as_they_are(
        &self,
        console: &dyn Console,
        mut tables: Vec<Table>,
    ) -> Result<(), report::Error> {
        self.protect();
        if let Some(last) = tables.last_mut() {
            last.notes.extend(self.all_notes().cloned());
        }
        console.write(&tables, self.ending.is_some())
    }

    /// Writes the tables of a summary, of which `long` is sorted, and shortened for people; `all` says how to see all of it. Returns
    /// the exit status.
    pub fn write_summary(
        &self,
        simulation: &Simulation,
        mut tables: Vec<Table>,
        (long, usual, all): (usize, usize, &str),
    ) -> anyhow::Result<ExitCode> {
        let sorted = simulation.console.arrange_summary(&mut tables[long], usual, all);
        self.write_as_they_are(simulation.console, tables)?;
        sorted?;
        self.finish(simulation)
    }

    /// Writes a page with the notes. Returns the exit status.
    pub fn write_page(&self, simulation: &Simulation, page: Page, path: &Path) -> anyhow::Result<ExitCode> {
        self.protect();
        let page = Page { provenance: self.provenance(), ..page };
        report::write_file(path, |out| page.write(out))?;
        self.finish(simulation)
    }

    /// Reports how the program ended, if not with success. Returns the exit status.
    pub fn finish(&self, simulation: &Simulation) -> anyhow::Result<ExitCode> {
        match &self.ending {
            Some(ending) => simulation.check_ending(ending),
            None => Ok(if self.is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        }
    }

    /// Whether units of work have classes. How the program ended may say why they have none.
    pub fn check_classes(&self, simulation: &Simulation, classes: &UnitClasses) -> anyhow::Result<()> {
        if classes.names().is_empty() {
            self.finish(simulation)?;
            bail!("no unit of work ended: {} was never called", simulation.part.planned.unit.join(", "));
        }
        Ok(())
    }
}
