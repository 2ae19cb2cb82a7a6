//! Counts of units of work of several classes in the first process.

use std::process::ExitCode;

use analysis::code_counts::code_by_class;
use analysis::names::Names;
use analysis::run_counts::RunCounts;
use analysis::units::Phase;
use anyhow::bail;
use engine::Configuration;

use super::{CountRows, Counting, describe_run, save};
use crate::measure;
use crate::program::{check_ending, left_out, protect_images, until};

impl Counting<'_> {
    /// Whether there are tables by class with the rows that are asked for.
    pub(super) fn check_class_rows(&self) -> anyhow::Result<()> {
        if self.rows == Some(CountRows::Unit) && !self.all_processes {
            bail!(
                "with units of several classes, --by unit is a table of count --children, or of calls: pathlength calls --by unit"
            );
        }
        Ok(())
    }

    /// Runs the program, counts all units, and writes the tables.
    pub(super) fn of_classes(&self, mut configuration: Configuration) -> anyhow::Result<ExitCode> {
        self.check_class_rows()?;
        let Some((work, _)) = &self.unit else { bail!("there are no units of work") };
        if !work.gauges.is_empty() {
            bail!("--cache is for the steady state of a single unit: leave it out");
        }
        self.check_output()?;
        self.check_names(&configuration)?;
        let run = self.console.begin_run(true);
        configuration.settings.executed = run.instructions();
        let counted =
            measure::count_classes(&configuration, work, &mut |seen| run.unit(seen, Phase::Measuring));
        drop(run);
        let counted = counted?;
        protect_images(counted.counts.images.iter().map(|image| image.path.as_path()));
        let unused = counted.never_called.iter().map(|name| format!("{name} was never called."));
        let notes = unused.chain(until(&counted.ending)).chain(left_out(counted.forked)).collect();
        let description = describe_run(&configuration, notes);
        let rules = self.components.as_ref();
        let counts = RunCounts::of_owners(description, &counted.counts, &counted.classes, Vec::new(), rules);
        let names = Names::of_counts(&counted.counts);
        let code =
            || self.code_rows().map(|rows| code_by_class(rows, &counted.counts, &names, &counted.classes));
        match self.saved_path() {
            Some(path) => save(&counts, path)?,
            None => self.write_tables(&counts, code(), true)?,
        }
        check_ending(&counted.ending, &configuration.program, &self.expected)
    }
}
