//! The counts of a finished run by image, function and instruction: complete without its images, so that they can be
//! saved, shown later and compared on another machine.

mod file;
mod of_trace;
mod owners;

pub use file::{DamagedCounts, ReadError};
pub use of_trace::{TraceCounts, of_trace};
pub(crate) use owners::InstructionOwner;
pub(crate) use owners::OUTSIDE_UNITS;
pub use owners::ProcessWork;

use std::collections::BTreeMap;
use std::sync::Arc;

use events::{Block, BlockId, Counts};
use serde::{Deserialize, Serialize};
use trace::EnvironmentSummary;

use crate::mix;
use crate::names::{FunctionName, Names};
use crate::pairing::ImageIdentity;
use crate::profile::{Attribution, Profile};
use crate::units::Measurement;
use table::{Kind, Table, Value};

/// The program that was run. There is no date: the same run has the same counts, and its file the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDescription {
    /// The program's path, as it was given.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The processor, such as `ev56`.
    pub cpu: String,
    /// Its environment, on which counts depend, if it is known.
    #[serde(default)]
    pub environment: Option<EnvironmentSummary>,
    /// Remarks on the run: how it ended, processes that are left out.
    pub notes: Vec<String>,
}

/// The counts of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCounts {
    /// The program that was run.
    pub description: RunDescription,
    /// The images, by which two runs are paired.
    pub images: Vec<ImageIdentity>,
    /// The instructions of the whole run.
    run: InstructionSums,
    /// The units of work, if a function's calls were counted.
    unit: Option<UnitCounts>,
    /// The processes, if all were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    processes: Vec<ProcessSums>,
    /// Who executed the instructions, if that was counted.
    #[serde(default)]
    owners: owners::Owners,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSums {
    /// Its number: 1 for the first, 1.2 for the second that it forked.
    pub number: String,
    /// The program that it executed last.
    pub program: String,
    /// Its task there, by the rules for a database: checkpointer.
    #[serde(default)]
    pub kind: String,
    /// Instructions executed.
    pub instructions: u64,
    /// Units of work that ended in it.
    pub units: u64,
    /// How it ended.
    pub end: String,
}

/// The processes of a run, and what each executed.
pub fn process_table(processes: &[ProcessSums]) -> Table {
    let columns = [
        ("process", Kind::Text),
        ("program", Kind::Text),
        ("instructions", Kind::Count),
        ("share", Kind::Percent(1)),
        ("units", Kind::Count),
        ("kind", Kind::Text),
        ("end", Kind::Text),
    ];
    let has_units = processes.iter().any(|process| process.units > 0);
    let has_kinds =
        processes.iter().any(|process| !process.kind.is_empty() && process.kind != process.program);
    let is_shown = |name: &str| match name {
        "units" => has_units,
        "kind" => has_kinds,
        _ => true,
    };
    let shown: Vec<_> = columns.into_iter().filter(|(name, _)| is_shown(name)).collect();
    let mut table = Table::new("processes", "Processes of the run", &shown);
    let total: u64 = processes.iter().map(|process| process.instructions).sum();
    let share = |n: u64| if total == 0 { 0.0 } else { 100.0 * n as f64 / total as f64 };
    let cells = |texts: [Value; 4], instructions: u64, units: u64| {
        let [number, program, kind, end] = texts;
        let cells =
            [number, program, instructions.into(), share(instructions).into(), units.into(), kind, end];
        let shown = columns.iter().zip(cells).filter(|((name, _), _)| is_shown(name));
        shown.map(|(_, cell)| cell).collect::<Vec<Value>>()
    };
    for process in processes {
        let texts = [&process.number, &process.program, &process.kind, &process.end];
        let texts = texts.map(|text| text.clone().into());
        table.row(cells(texts, process.instructions, process.units));
    }
    let units = processes.iter().map(|process| process.units).sum();
    table.total_row(cells(["total".into(), Value::Missing, Value::Missing, Value::Missing], total, units));
    table
}

/// The units of work of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct UnitCounts {
    function: String,
    /// The instructions of all measured units.
    sums: InstructionSums,
    /// The units, without the blocks that they executed.
    measurement: Measurement,
}

/// Numbers of executed instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct InstructionSums {
    /// By name.
    instructions: BTreeMap<String, u64>,
    /// By image and function.
    functions: BTreeMap<String, BTreeMap<String, u64>>,
    /// The files of source in which functions are defined, by image and function.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<String, BTreeMap<String, String>>,
}

impl InstructionSums {
    fn of(
        attribution: &Attribution,
        executions: impl IntoIterator<Item = (BlockId, u64)>,
    ) -> InstructionSums {
        let profile = attribution.profile(executions.into_iter().map(|(id, n)| (id, n as f64)));
        let mut sums = InstructionSums::default();
        for (name, n) in profile.instructions {
            sums.instructions.insert(name.into(), n as u64);
        }
        for (name, n) in profile.functions {
            if let Some(file) = profile.sources.get(&name) {
                let of_image = sums.sources.entry(name.image.clone()).or_default();
                of_image.insert(name.function.clone(), file.clone());
            }
            sums.functions.entry(name.image).or_default().insert(name.function, n as u64);
        }
        sums
    }

    /// The mean of `units`. Instructions without a known name are a damage that the reader of files rejects.
    fn profile(&self, units: usize) -> Profile {
        let mut profile = Profile::default();
        let mean = |n: u64| n as f64 / units as f64;
        for (name, &n) in &self.instructions {
            *profile.instructions.entry(mix::known(name).unwrap_or(mix::UNKNOWN)).or_default() += mean(n);
        }
        let mut sources = BTreeMap::new();
        for (image, functions) in &self.sources {
            for (function, file) in functions {
                let name = FunctionName { image: image.clone(), function: function.clone() };
                sources.insert(name, file.clone());
            }
        }
        profile.sources = Arc::new(sources);
        for (image, functions) in &self.functions {
            for (function, &n) in functions {
                let name = FunctionName { image: image.clone(), function: function.clone() };
                profile.functions.insert(name, mean(n));
            }
            let all = mean(functions.values().sum());
            profile.images.insert(image.clone(), all);
        }
        profile.total = mean(self.instructions.values().sum());
        profile
    }
}

impl RunCounts {
    /// Of a run that has just ended; opens its images for their symbols.
    pub fn new(description: RunDescription, counts: &Counts, unit: Option<(&str, Measurement)>) -> RunCounts {
        let images = ImageIdentity::of_images(&counts.images);
        let executions = (0..).zip(counts.executions.iter().copied());
        RunCounts::of(description, images, &counts.blocks, &Names::of_counts(counts), executions, unit)
    }

    fn of(
        description: RunDescription,
        images: Vec<ImageIdentity>,
        blocks: &[Block],
        names: &Names,
        executions: impl Iterator<Item = (BlockId, u64)>,
        unit: Option<(&str, Measurement)>,
    ) -> RunCounts {
        let attribution = Attribution::of(blocks, names);
        let run = InstructionSums::of(&attribution, executions.filter(|(_, n)| *n != 0));
        let unit = unit.map(|(function, mut measurement)| {
            let mut executions: BTreeMap<BlockId, u64> = BTreeMap::new();
            for unit in &mut measurement.units {
                for (id, n) in std::mem::take(&mut unit.blocks) {
                    *executions.entry(id).or_default() += n;
                }
            }
            UnitCounts {
                function: function.into(),
                sums: InstructionSums::of(&attribution, executions),
                measurement,
            }
        });
        RunCounts { description, images, run, unit, processes: Vec::new(), owners: owners::Owners::default() }
    }

    /// The processes, if all were counted.
    pub fn processes(&self) -> &[ProcessSums] {
        &self.processes
    }

    /// The profile of a mean unit of work, or else of the whole run.
    pub fn profile(&self) -> Profile {
        match &self.unit {
            Some(unit) => unit.sums.profile(unit.measurement.units.len()),
            None => self.run.profile(1),
        }
    }

    /// The executions that [`RunCounts::profile`] covers, for titles.
    pub fn span(&self) -> &'static str {
        if self.unit.is_some() { "a unit of work" } else { "the run" }
    }

    /// The units of work, if there are any.
    pub fn measurement(&self) -> Option<&Measurement> {
        self.unit.as_ref().map(|unit| &unit.measurement)
    }

    /// The function whose calls are units of work.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_ref().map(|unit| unit.function.as_str())
    }
}
