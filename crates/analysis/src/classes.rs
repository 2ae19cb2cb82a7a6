//! Units of work of several classes in one run: all that was executed in each class, and outside of the units.

use std::collections::{BTreeMap, BTreeSet};

use events::{BlockId, Counts, Unit};
use serde::{Deserialize, Serialize};

use crate::components::Components;
use crate::profile::{Attribution, Profile};
use crate::table::{Kind, Table, Value};
use crate::units::PathLength;

/// The units of one class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UnitClass {
    /// Its name: the function whose calls these are.
    pub name: String,
    /// Instructions of each unit.
    lengths: Vec<u64>,
    /// Executions of blocks in all of them.
    executions: BTreeMap<BlockId, u64>,
}

impl UnitClass {
    /// Without units.
    pub fn new(name: &str) -> UnitClass {
        UnitClass { name: name.into(), ..UnitClass::default() }
    }

    /// With units of these lengths, in all of which blocks were executed so often.
    pub fn of(name: &str, lengths: Vec<u64>, executions: BTreeMap<BlockId, u64>) -> UnitClass {
        UnitClass { name: name.into(), lengths, executions }
    }

    /// Adds a unit.
    pub fn add(&mut self, unit: &Unit) {
        self.lengths.push(unit.instructions);
        for &(block, executions) in &unit.blocks {
            *self.executions.entry(block).or_default() += executions;
        }
    }

    /// How many units there were.
    pub fn units(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Instructions of all units.
    pub fn instructions(&self) -> u64 {
        self.lengths.iter().sum()
    }
}

/// The mean unit of each class, and the rest of the run.
pub struct ClassProfiles<'a> {
    classes: &'a [UnitClass],
    means: Vec<Profile>,
    total: u64,
}

impl<'a> ClassProfiles<'a> {
    /// Of classes with units, in a run with these counts.
    pub fn new(classes: &'a [UnitClass], counts: &Counts) -> ClassProfiles<'a> {
        let attribution = Attribution::new(counts);
        let mean = |class: &UnitClass| {
            let units = class.units() as f64;
            attribution.profile(class.executions.iter().map(|(&block, &n)| (block, n as f64 / units)))
        };
        ClassProfiles {
            classes,
            means: classes.iter().map(mean).collect(),
            total: counts
                .blocks
                .iter()
                .zip(&counts.executions)
                .map(|(it, n)| it.words.len() as u64 * n)
                .sum(),
        }
    }

    /// The mean unit of each class.
    pub fn means(&self) -> &[Profile] {
        &self.means
    }

    /// The images that units executed.
    pub fn image_names(&self) -> BTreeSet<String> {
        self.means.iter().flat_map(|mean| mean.images.keys().cloned()).collect()
    }

    /// How the path lengths of each class are distributed.
    pub fn path_lengths(&self) -> Table {
        let columns = [
            ("class", Kind::Text),
            ("units", Kind::Count),
            ("geometric mean", Kind::Count),
            ("mean", Kind::Real(1)),
            ("std. deviation", Kind::Real(1)),
            ("minimum", Kind::Count),
            ("median", Kind::Real(1)),
            ("maximum", Kind::Count),
        ];
        let mut table =
            Table::new("path-length", "Path length: instructions a unit of work, by class", &columns);
        for class in self.classes {
            let Some(length) = PathLength::of_lengths(class.lengths.clone()) else { continue };
            table.row(vec![
                class.name.clone().into(),
                class.units().into(),
                (length.geometric_mean.round() as u64).into(),
                length.mean.into(),
                length.deviation.into(),
                length.minimum.into(),
                length.median.into(),
                length.maximum.into(),
            ]);
        }
        table
    }

    /// Where all instructions of the run belong: to a class, or outside of units.
    pub fn shares(&self) -> Table {
        let columns = [
            ("class", Kind::Text),
            ("units", Kind::Count),
            ("instructions", Kind::Count),
            ("share", Kind::Percent(1)),
        ];
        let mut table = Table::new("classes", "Instructions of the run by class", &columns);
        let mut row = |name: &str, units: Value, instructions: u64| {
            let share = 100.0 * instructions as f64 / self.total as f64;
            table.row(vec![name.into(), units, instructions.into(), share.into()]);
        };
        for class in self.classes {
            row(&class.name, class.units().into(), class.instructions());
        }
        let within: u64 = self.classes.iter().map(UnitClass::instructions).sum();
        row("(outside units)", Value::Missing, self.total - within);
        let units: u64 = self.classes.iter().map(UnitClass::units).sum();
        table.total_row(vec!["total".into(), units.into(), self.total.into(), 100.0.into()]);
        table
    }

    /// The mean unit of each class by image.
    pub fn images(&self) -> Table {
        let sums = |profile: &Profile| {
            profile.images.iter().map(|(image, n)| ([image.clone(), String::new()], *n)).collect()
        };
        self.columns("images", "Images in a unit of work, by class", &["image"], sums)
    }

    /// The mean unit of each class by component.
    pub fn components(&self, components: &Components) -> Table {
        let sums = |profile: &Profile| {
            let sums = components.sums(profile);
            sums.into_iter().map(|(name, n)| ([name.to_string(), String::new()], n)).collect()
        };
        self.columns("components", "Components of a unit of work, by class", &["component"], sums)
    }

    /// The mean unit of each class by instruction.
    pub fn instructions(&self) -> Table {
        let sums = |profile: &Profile| {
            let named = profile.instructions.iter();
            named.map(|(name, n)| ([name.to_string(), String::new()], *n)).collect()
        };
        self.columns("instructions", "Instructions of a unit of work, by class", &["instruction"], sums)
    }

    /// The mean unit of each class by function.
    pub fn functions(&self) -> Table {
        let sums = |profile: &Profile| {
            let named = profile.functions.iter();
            named.map(|(name, n)| ([name.function.clone(), name.image.clone()], *n)).collect()
        };
        self.columns("functions", "Functions of a unit of work, by class", &["function", "image"], sums)
    }

    /// A row for each thing, with the instructions of a unit of each class; what costs most in the run comes first.
    fn columns(
        &self,
        name: &str,
        title: &str,
        headings: &[&str],
        sums: impl Fn(&Profile) -> BTreeMap<[String; 2], f64>,
    ) -> Table {
        let classes = self.classes.iter().map(|class| (class.name.as_str(), Kind::Count));
        let columns: Vec<_> = headings.iter().map(|&heading| (heading, Kind::Text)).chain(classes).collect();
        let mut table = Table::new(name, title, &columns);
        let mut rows: BTreeMap<[String; 2], Vec<f64>> = BTreeMap::new();
        for (number, mean) in self.means.iter().enumerate() {
            for (key, instructions) in sums(mean) {
                rows.entry(key).or_insert_with(|| vec![0.0; self.means.len()])[number] += instructions;
            }
        }
        let in_run = |row: &[f64]| -> f64 {
            row.iter().zip(self.classes).map(|(mean, class)| mean * class.units() as f64).sum()
        };
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by(|a, b| in_run(&b.1).total_cmp(&in_run(&a.1)).then_with(|| a.0.cmp(&b.0)));
        let cells =
            |values: &[f64]| values.iter().map(|n| Value::Integer(n.round() as i64)).collect::<Vec<_>>();
        for (key, values) in rows {
            let names = key.into_iter().take(headings.len()).map(Value::from);
            table.row(names.chain(cells(&values)).collect());
        }
        let totals: Vec<f64> = self.means.iter().map(|mean| mean.total).collect();
        let names =
            headings.iter().enumerate().map(|(at, _)| if at == 0 { "total".into() } else { Value::Missing });
        table.total_row(names.chain(cells(&totals)).collect());
        table
    }
}
