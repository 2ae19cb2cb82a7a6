//! The tables of counts.

use analysis::classes::ClassProfiles;
use analysis::components::{Components, component_shares};
use analysis::mix;
use analysis::profile::{Profile, functions, image_shares};
use analysis::run_counts::{RunCounts, process_table};
use analysis::units::{Measurement, each_unit, path_lengths, unsteady_note};
use table::Table;

use super::{CountRows, Counting, ProfileRows};
use crate::console::SUMMARY_FUNCTIONS;

impl Counting<'_> {
    /// Writes the tables of counts, with that of lines or instructions, if it is asked for.
    pub(super) fn write_tables(
        &self,
        counts: &RunCounts,
        code: Option<Table>,
        has_run: bool,
    ) -> anyhow::Result<()> {
        let mut tables = self.tables(counts, code);
        let sorted = self.arrange(&mut tables);
        if let Some(last) = tables.last_mut() {
            // The summary has the note on units in another table.
            let unsteady = counts.measurement().filter(|_| self.rows.is_some());
            last.notes.extend(unsteady.and_then(unsteady_note));
            last.notes.extend(counts.description.notes.iter().cloned());
        }
        self.console.write(&tables, has_run)?;
        sorted
    }

    fn tables(&self, counts: &RunCounts, code: Option<Table>) -> Vec<Table> {
        let profile = counts.profile();
        let components = || {
            let images = profile.images.keys().map(String::as_str);
            self.components.clone().unwrap_or_else(|| Components::of_images(images))
        };
        let mut tables = match self.rows {
            Some(CountRows::Owner) => vec![ClassProfiles::new(counts).work(&components())],
            Some(CountRows::Process) => vec![process_table(counts.processes())],
            Some(CountRows::Unit) if counts.measurement().is_some() => {
                counts.measurement().map(each_unit).into_iter().collect()
            }
            Some(CountRows::Unit | CountRows::Code(_)) => code.into_iter().collect(),
            Some(CountRows::Profile(rows)) => vec![match counts.has_classes() {
                true => of_classes(rows, &ClassProfiles::new(counts), &components()),
                false => of_profile(rows, &profile, counts.span(), &components()),
            }],
            None if counts.has_classes() => summary_of_classes(&ClassProfiles::new(counts), &components()),
            None => summary(&profile, counts.span(), counts.measurement()),
        };
        if self.rows.is_none() && !counts.processes().is_empty() {
            tables.insert(if counts.has_classes() { 2 } else { 0 }, process_table(counts.processes()));
        }
        tables
    }

    /// Sorts tables and shortens those of functions, or the only one. They are shortened even if the column does not exist.
    fn arrange(&self, tables: &mut [Table]) -> anyhow::Result<()> {
        let sorted = self.console.sort(tables);
        let usual = self.console.summary_rows(SUMMARY_FUNCTIONS).filter(|_| self.rows.is_none());
        for table in tables.iter_mut().filter(|table| self.rows.is_some() || table.name == "functions") {
            self.console.shorten(table, usual, "--by function shows all functions");
        }
        sorted
    }
}

/// The tables of a summary.
fn summary(profile: &Profile, span: &str, measurement: Option<&Measurement>) -> Vec<Table> {
    let title = "Path length: instructions a unit of work";
    let lengths =
        measurement.map(|measurement| path_lengths("path-length", title, &[("the units", measurement)]));
    let rows = [ProfileRows::Image, ProfileRows::Group, ProfileRows::Function];
    let tables = rows.map(|rows| of_profile(rows, profile, span, &Components::default()));
    lengths.into_iter().chain(tables).collect()
}

/// The table with these rows of a profile.
fn of_profile(rows: ProfileRows, profile: &Profile, span: &str, components: &Components) -> Table {
    let mix = profile.mix();
    match rows {
        ProfileRows::Mnemonic => mix::single("instructions", &format!("Instructions of {span}"), &mix),
        ProfileRows::Group => {
            mix::group_shares("groups", &format!("Instruction groups of {span}"), &[("share", &mix)])
        }
        ProfileRows::Function => functions("functions", &format!("Functions of {span}"), profile),
        ProfileRows::Image => {
            image_shares("images", &format!("Images in {span}"), &[("instructions", profile)])
        }
        ProfileRows::Component => {
            component_shares("components", &format!("Components of {span}"), profile, components)
        }
    }
}

/// The same with a column for each class of units of work.
fn of_classes(rows: ProfileRows, profiles: &ClassProfiles, components: &Components) -> Table {
    match rows {
        ProfileRows::Mnemonic => profiles.instructions(),
        ProfileRows::Group => profiles.groups(),
        ProfileRows::Function => profiles.functions(),
        ProfileRows::Image => profiles.images(),
        ProfileRows::Component => profiles.components(components),
    }
}

/// The summary of classes. Without rules, components are images.
fn summary_of_classes(profiles: &ClassProfiles, components: &Components) -> Vec<Table> {
    let has_rules = *components != Components::default();
    let by_component = has_rules.then(|| profiles.components(components));
    let first = [profiles.path_lengths(), profiles.shares(), profiles.images()];
    first.into_iter().chain(by_component).chain([profiles.functions()]).collect()
}
