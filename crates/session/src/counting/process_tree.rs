//! Counts of all processes of a program.

use std::path::Path;
use std::process::ExitCode;

use analysis::code_counts::{code_by_class, code_table};
use analysis::names::Names;
use analysis::run_counts::{ProcessSums, RunDescription};
use anyhow::bail;
use engine::{Configuration, ProcessState, ProcessTreeCounts, UnitOfWork};
use table::{Kind, Table};

use super::{CountRows, Counting, describe_run, save};
use crate::attached_program::AttachedProgram;
use crate::process_tree::{self, CountFolder};
use crate::program::{check_ending, protect_images, until};

impl Counting<'_> {
    /// Runs the program, counts all processes, and writes the tables.
    pub(super) fn of_tree(&self, configuration: Configuration) -> anyhow::Result<ExitCode> {
        self.check_tree()?;
        self.check_output()?;
        self.check_names(&configuration)?;
        let folder = CountFolder::new(self.saved_path())?;
        let description = describe_run(&configuration, Vec::new());
        let run = self.console.begin_run(false);
        let counted = process_tree::count(&configuration, &self.work(), &folder, &description);
        drop(run);
        let counted = counted?;
        let mut notes: Vec<String> = counted.ending.as_ref().and_then(until).into_iter().collect();
        let mut folder = Some(folder);
        if counted.tree.processes.iter().any(|process| process.state == ProcessState::Running)
            && let Some(folder) = folder.take()
        {
            let path = folder.keep();
            let path = path.display();
            notes.push(format!("Processes that still run are counted until now, and count on in {path}: pathlength count {path} shows it."));
        }
        self.write_tree(&counted.tree, RunDescription { notes, ..description }, true)?;
        // A signal that ended the program will end this process, too.
        drop(folder);
        match &counted.ending {
            Some(ending) => check_ending(ending, &configuration.program, &self.expected),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// Counts a program that runs already, and writes the tables. The program goes on.
    pub(super) fn of_running_tree(&self, attached: &AttachedProgram) -> anyhow::Result<ExitCode> {
        self.check_tree()?;
        self.check_output()?;
        let folder = CountFolder::new(self.saved_path())?;
        let notes = vec![format!("Process {} was counted while it ran.", attached.process)];
        let description = RunDescription { notes, ..RunDescription::default() };
        let tree = process_tree::count_running(attached, &self.work(), folder.path(), &description)?;
        self.write_tree(&tree, named(description, &tree), false)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Shows what is in a folder of counts, whose command was killed.
    pub(super) fn of_folder(&self, path: &Path) -> anyhow::Result<ExitCode> {
        self.check_tree()?;
        let (tree, mut description) = process_tree::read(path)?;
        description.notes.push("These are the counts of a run that was interrupted.".into());
        self.write_tree(&tree, named(description, &tree), false)?;
        Ok(ExitCode::SUCCESS)
    }

    fn work(&self) -> UnitOfWork {
        self.unit.as_ref().map(|(work, _)| work.clone()).unwrap_or_default()
    }

    /// Whether the options fit together.
    fn check_tree(&self) -> anyhow::Result<()> {
        if self.unit.as_ref().is_some_and(|(work, _)| !work.gauges.is_empty()) {
            bail!("--cache is for the steady state of a single unit in one process: leave it out");
        }
        if !self.functions().is_empty() {
            self.check_class_rows()?;
        }
        Ok(())
    }

    fn write_tree(
        &self,
        tree: &ProcessTreeCounts,
        description: RunDescription,
        has_run: bool,
    ) -> anyhow::Result<()> {
        protect_images(tree.counts.images.iter().map(|image| image.path.as_path()));
        let counts = process_tree::run_counts(tree, description, self.components.as_ref());
        if !self.functions().is_empty() && !counts.has_classes() {
            bail!("no unit of work ended: {} was never called", self.functions().join(", "));
        }
        if let Some(path) = self.saved_path() {
            return save(&counts, path);
        }
        let names = Names::of_counts(&tree.counts);
        let code = match self.rows {
            Some(CountRows::Unit) => Some(unit_table(tree, counts.processes())),
            _ => self.code_rows().map(|rows| match &process_tree::classes(tree)[..] {
                [] => code_table(rows, &tree.counts, &names, None),
                classes => code_by_class(rows, &tree.counts, &names, classes),
            }),
        };
        self.write_tables(&counts, code, has_run)
    }
}

/// The description with the program that the first process executes, if it ran already when counting began.
fn named(mut description: RunDescription, tree: &ProcessTreeCounts) -> RunDescription {
    let program = tree.processes.first().and_then(|process| process.programs.last());
    if let Some(path) = program.filter(|_| description.program.is_empty()) {
        description.program = path.to_string_lossy().into_owned();
    }
    description
}

/// A row for each unit of work, in the order in which those of each process ended.
fn unit_table(tree: &ProcessTreeCounts, processes: &[ProcessSums]) -> Table {
    let columns = [
        ("process", Kind::Text),
        ("thread", Kind::Count),
        ("class", Kind::Text),
        ("instructions", Kind::Count),
        ("ended", Kind::Text),
    ];
    let mut table = Table::new("units", "Units of work", &columns);
    for unit in &tree.units {
        table.row(vec![
            processes[unit.process as usize].number.clone().into(),
            u64::from(unit.thread).into(),
            unit.class.clone().into(),
            unit.instructions.into(),
            if unit.returned { "by return" } else { "left" }.into(),
        ]);
    }
    table
}
