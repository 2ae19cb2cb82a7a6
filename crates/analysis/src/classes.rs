//! Units of work of several classes in one run: all that was executed in each class, and outside of the units.

use std::collections::{BTreeMap, BTreeSet};

use crate::components::Components;
use crate::mix;
use crate::profile::Profile;
use crate::run_counts::{Owner, RunCounts};
pub use crate::unit_class::UnitClass;
use crate::units::PathLength;
use table::{Kind, Table, Value};

/// The mean unit of a class.
fn mean(class: &Owner) -> Profile {
    let mut mean = class.all.clone();
    let units = class.lengths.len() as f64;
    mean.instructions.values_mut().chain(mean.functions.values_mut()).for_each(|n| *n /= units);
    mean.images.values_mut().for_each(|n| *n /= units);
    mean.total /= units;
    mean
}

/// The mean unit of each class, and the rest of the run.
pub struct ClassProfiles {
    /// Classes, then kinds of processes.
    owners: Vec<Owner>,
    /// Of each class.
    means: Vec<Profile>,
    total: f64,
}

impl ClassProfiles {
    /// Of a run.
    pub fn new(counts: &RunCounts) -> ClassProfiles {
        let owners = counts.owners();
        let means = owners.iter().filter(|owner| owner.processes.is_none()).map(mean).collect();
        ClassProfiles { means, total: owners.iter().map(|owner| owner.all.total).sum(), owners }
    }

    /// The owners that are classes.
    fn classes(&self) -> &[Owner] {
        &self.owners[..self.means.len()]
    }

    /// The mean unit of a class.
    pub fn mean(&self, class: &str) -> Option<&Profile> {
        self.classes().iter().zip(&self.means).find(|(it, _)| it.name == class).map(|(_, mean)| mean)
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
        for class in self.classes() {
            let Some(length) = PathLength::of_lengths(class.lengths.clone()) else { continue };
            table.row(vec![
                class.name.clone().into(),
                (class.lengths.len() as u64).into(),
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

    /// Where all instructions of the run belong: to a class, or outside of units to a kind of processes.
    pub fn shares(&self) -> Table {
        let (first, has_processes) = (self.first_column(), self.has_kinds());
        let columns = [
            (first, Kind::Text),
            ("processes", Kind::Count),
            ("units", Kind::Count),
            ("instructions", Kind::Count),
            ("share", Kind::Percent(1)),
        ];
        let is_shown = |name: &str| match name {
            "processes" => has_processes,
            "units" => !self.classes().is_empty(),
            _ => true,
        };
        let shown: Vec<_> = columns.into_iter().filter(|(name, _)| is_shown(name)).collect();
        let mut table = Table::new("classes", format!("Instructions of the run by {first}"), &shown);
        let cells = |name: &str, processes: Value, units: Value, instructions: f64| {
            let share = if self.total > 0.0 { 100.0 * instructions / self.total } else { 0.0 };
            let cells = [name.into(), processes, units, whole(instructions), share.into()];
            let shown = columns.iter().zip(cells).filter(|((name, _), _)| is_shown(name));
            shown.map(|(_, cell)| cell).collect::<Vec<Value>>()
        };
        let units = |owner: &Owner| match owner.processes {
            None => Value::from(owner.lengths.len() as u64),
            Some(_) => Value::Missing,
        };
        for owner in &self.owners {
            let processes = owner.processes.map_or(Value::Missing, Value::from);
            table.row(cells(&owner.name, processes, units(owner), owner.all.total));
        }
        let units: usize = self.classes().iter().map(|class| class.lengths.len()).sum();
        let processes: u64 = self.owners.iter().filter_map(|owner| owner.processes).sum();
        table.total_row(cells("total", processes.into(), (units as u64).into(), self.total));
        table
    }

    /// All instructions of the run by component and owner: each class, and outside of units each kind of processes.
    pub fn work(&self, components: &Components) -> Table {
        let owners = self.owners.iter().map(|owner| (owner.name.as_str(), Kind::Count));
        let first = [("component", Kind::Text), ("all", Kind::Count)];
        let columns: Vec<_> = first.into_iter().chain(owners).collect();
        let title = format!("Instructions of the run by component and {}", self.first_column());
        let mut table = Table::new("owners", &title, &columns);
        let mut rows: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (number, owner) in self.owners.iter().enumerate() {
            for (component, n) in components.sums(&owner.all) {
                let row = rows.entry(component.into()).or_insert_with(|| vec![0.0; self.owners.len()]);
                row[number] += n;
            }
        }
        let mut rows: Vec<(f64, String, Vec<f64>)> =
            rows.into_iter().map(|(name, row)| (row.iter().sum(), name, row)).collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let cells = |name: String, all: f64, row: &[f64]| {
            [name.into(), whole(all)].into_iter().chain(row.iter().map(|&n| whole(n))).collect()
        };
        for (all, name, row) in rows {
            table.row(cells(name, all, &row));
        }
        let totals: Vec<f64> = self.owners.iter().map(|owner| owner.all.total).collect();
        table.total_row(cells("total".into(), self.total, &totals));
        table
    }

    /// What owners are.
    fn first_column(&self) -> &'static str {
        if self.classes().is_empty() { "process kind" } else { "class" }
    }

    fn has_kinds(&self) -> bool {
        self.owners.len() > self.classes().len() + 1 || self.classes().is_empty()
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

    /// The mean unit of each class by group of instructions.
    pub fn groups(&self) -> Table {
        let sums = |profile: &Profile| {
            let mut sums: BTreeMap<[String; 2], f64> = BTreeMap::new();
            for (name, n) in &profile.instructions {
                *sums.entry([mix::group(name).name().into(), String::new()]).or_default() += n;
            }
            sums
        };
        self.columns("groups", "Instruction groups of a unit of work, by class", &["group"], sums)
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
        let classes = self.classes().iter().map(|class| (class.name.as_str(), Kind::Count));
        let columns: Vec<_> = headings.iter().map(|&heading| (heading, Kind::Text)).chain(classes).collect();
        let mut table = Table::new(name, title, &columns);
        let mut rows: BTreeMap<[String; 2], Vec<f64>> = BTreeMap::new();
        for (number, mean) in self.means.iter().enumerate() {
            for (key, instructions) in sums(mean) {
                rows.entry(key).or_insert_with(|| vec![0.0; self.means.len()])[number] += instructions;
            }
        }
        let in_run = |row: &[f64]| -> f64 {
            row.iter().zip(self.classes()).map(|(mean, class)| mean * class.lengths.len() as f64).sum()
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

fn whole(n: f64) -> Value {
    Value::Integer(n.round() as i64)
}

/// Who executed the instructions of two runs: classes by their mean unit, and kinds of processes outside of units.
pub fn owner_differences(labels: [&str; 2], runs: [&RunCounts; 2]) -> Table {
    let units = labels.map(|label| format!("{label}: units"));
    let columns = [
        ("class", Kind::Text),
        (&*units[0], Kind::Count),
        (&*units[1], Kind::Count),
        (labels[0], Kind::Real(1)),
        (labels[1], Kind::Real(1)),
        ("delta", Kind::Real(1)),
        ("% delta", Kind::Change(2)),
    ];
    let title = "Instructions by class: of a unit of work, or of all processes of a kind outside of units";
    let mut table = Table::new("classes", title, &columns);
    let owners = runs.map(RunCounts::owners);
    let [a, b] = owners
        .each_ref()
        .map(|owners| owners.iter().map(|owner| (owner.name.as_str(), owner)).collect::<BTreeMap<_, _>>());
    let value = |owner: Option<&&Owner>| owner.map(|it| it.all.total / it.lengths.len().max(1) as f64);
    let units = |owner: Option<&&Owner>| match owner {
        Some(owner) if owner.processes.is_none() => Value::from(owner.lengths.len() as u64),
        _ => Value::Missing,
    };
    let only_b = owners[1].iter().filter(|owner| !a.contains_key(owner.name.as_str()));
    for name in owners[0].iter().chain(only_b).map(|owner| owner.name.as_str()) {
        let (of_a, of_b) = (a.get(name), b.get(name));
        let change = value(of_a).zip(value(of_b));
        table.row(vec![
            name.into(),
            units(of_a),
            units(of_b),
            value(of_a).map_or(Value::Missing, Value::from),
            value(of_b).map_or(Value::Missing, Value::from),
            change.map_or(Value::Missing, |(a, b)| (b - a).into()),
            change.map_or(Value::Missing, |(a, b)| (100.0 * (b / a - 1.0)).into()),
        ]);
    }
    table
}
