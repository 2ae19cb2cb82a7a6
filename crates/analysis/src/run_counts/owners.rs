//! Who executed the instructions of a run: classes of units of work, and outside of units the kinds of its processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use events::{BlockId, Counts};
use serde::{Deserialize, Serialize};

use super::{InstructionSums, ProcessSums, RunCounts, RunDescription};
use crate::components::Components;
use crate::names::{FunctionName, Names};
use crate::pairing::ImageIdentity;
use crate::profile::{Attribution, Profile};
use crate::unit_class::UnitClass;

/// A process, with what it executed.
pub struct ProcessWork<'a> {
    /// For the table of processes; its kind is found here.
    pub sums: ProcessSums,
    /// Executions of blocks.
    pub executions: &'a BTreeMap<BlockId, u64>,
    /// Those of them in units of work.
    pub in_units: &'a BTreeMap<BlockId, u64>,
}

/// The instructions of a run by owner: together they are the whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Owners {
    pub(super) classes: Vec<ClassTotals>,
    pub(super) outside: Vec<OutsideSums>,
}

/// All units of a class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClassTotals {
    name: String,
    /// Instructions of each unit.
    pub(super) lengths: Vec<u64>,
    pub(super) sums: InstructionSums,
}

/// Executions outside of units by the processes of a kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OutsideSums {
    kind: String,
    processes: u64,
    pub(super) sums: InstructionSums,
}

/// An owner of instructions, for tables.
pub(crate) struct InstructionOwner {
    /// The class, or the kind of processes.
    pub(crate) name: String,
    /// Instructions of each unit; of processes, none.
    pub(crate) lengths: Vec<u64>,
    /// The number of processes, outside of units.
    pub(crate) processes: Option<u64>,
    /// All that it executed.
    pub(crate) all: Profile,
}

impl RunCounts {
    /// Of a run in which units of these classes ended, in these processes: in none that are known apart, if there are none. The
    /// rules say what kind a process is of; without, those of a database whose images are in the run.
    pub fn of_owners(
        description: RunDescription,
        counts: &Counts,
        classes: &[UnitClass],
        processes: Vec<ProcessWork>,
        rules: Option<&Components>,
    ) -> RunCounts {
        let attribution = &Attribution::of(&counts.blocks, &Names::of_counts(counts));
        let images = ImageIdentity::of_images(&counts.images);
        RunCounts::of_attributed(
            description,
            images,
            (attribution, &counts.executions[..]),
            classes,
            processes,
            rules,
        )
    }

    /// The same of executions of blocks whose functions and images are known.
    pub(super) fn of_attributed(
        description: RunDescription,
        images: Vec<ImageIdentity>,
        (attribution, executions): (&Attribution, &[u64]),
        classes: &[UnitClass],
        processes: Vec<ProcessWork>,
        rules: Option<&Components>,
    ) -> RunCounts {
        let executions = (0..).zip(executions.iter().copied()).filter(|(_, n)| *n != 0);
        let run = InstructionSums::of(attribution, executions.clone());
        let built_in;
        let rules = match rules {
            Some(rules) => rules,
            None => {
                built_in = Components::of_images(run.functions.keys().map(String::as_str));
                &built_in
            }
        };
        let sums = |executions: &mut dyn Iterator<Item = (BlockId, u64)>| {
            // The run has the files of source.
            InstructionSums { sources: BTreeMap::new(), ..InstructionSums::of(attribution, executions) }
        };
        let class = |class: &UnitClass| ClassTotals {
            name: class.name.clone(),
            lengths: class.lengths().to_vec(),
            sums: sums(&mut class.executions().iter().map(|(&id, &n)| (id, n))),
        };
        let mut owners = Owners { classes: classes.iter().map(class).collect(), outside: Vec::new() };
        // By block, since a server has thousands of processes that executed the same ones.
        let rule =
            |block| attribution.functions(block).filter_map(|function| rules.process_rule(function)).min();
        let rules_of_blocks: Vec<Option<usize>> = (0..attribution.block_count()).map(rule).collect();
        let mut outside: Vec<(String, u64, BTreeMap<BlockId, u64>)> = Vec::new();
        let mut process_sums = Vec::new();
        for process in processes {
            let rule = process.executions.keys().filter_map(|&block| rules_of_blocks[block as usize]).min();
            let kind = rule.map_or(&*process.sums.program, |rule| rules.process_kind(rule)).to_owned();
            let known = outside.iter().position(|(of, ..)| *of == kind).unwrap_or_else(|| {
                outside.push((kind.clone(), 0, BTreeMap::new()));
                outside.len() - 1
            });
            let (_, number, sum) = &mut outside[known];
            *number += 1;
            add(sum, difference(process.executions, process.in_units));
            process_sums.push(ProcessSums { kind, ..process.sums });
        }
        if process_sums.is_empty() && !classes.is_empty() {
            let mut within = BTreeMap::new();
            classes.iter().for_each(|class| {
                add(&mut within, class.executions().iter().map(|(&id, &n)| (id, n)));
            });
            let all = executions.collect();
            outside.push((String::new(), 1, difference(&all, &within).collect()));
        }
        owners.outside = outside
            .into_iter()
            .map(|(kind, processes, executions)| OutsideSums {
                kind,
                processes,
                sums: sums(&mut executions.into_iter()),
            })
            .collect();
        owners.outside.sort_by_key(|it| std::cmp::Reverse(it.sums.total()));
        RunCounts { description, images, run, unit: None, processes: process_sums, owners }
    }

    /// Whether there are classes of units.
    pub fn has_classes(&self) -> bool {
        !self.owners.classes.is_empty()
    }

    /// Whether it is known who executed the instructions.
    pub fn has_owners(&self) -> bool {
        !self.owners.outside.is_empty()
    }

    /// The classes, then the kinds of processes.
    pub(crate) fn owners(&self) -> Vec<InstructionOwner> {
        let sources = self.run.source_names();
        let all = |sums: &InstructionSums| Profile { sources: sources.clone(), ..sums.profile(1) };
        let classes = self.owners.classes.iter().map(|class| InstructionOwner {
            name: class.name.clone(),
            lengths: class.lengths.clone(),
            processes: None,
            all: all(&class.sums),
        });
        let outside = self.owners.outside.iter().map(|outside| InstructionOwner {
            name: self.outside_name(&outside.kind),
            lengths: Vec::new(),
            processes: Some(outside.processes),
            all: all(&outside.sums),
        });
        classes.chain(outside).collect()
    }

    /// The name of executions outside of units, if there are any: it says so, with the kind of its processes if there are
    /// several.
    fn outside_name(&self, kind: &str) -> String {
        match (self.has_classes(), self.owners.outside.len()) {
            (true, 1) => OUTSIDE_UNITS.into(),
            (true, _) => format!("{OUTSIDE_UNITS} {kind}"),
            (false, _) => kind.into(),
        }
    }
}

/// The name of what is executed outside of units of work.
pub(crate) const OUTSIDE_UNITS: &str = "(outside units)";

impl InstructionSums {
    pub(super) fn total(&self) -> u64 {
        self.instructions.values().sum()
    }

    fn source_names(&self) -> Arc<BTreeMap<FunctionName, String>> {
        let all = self.sources.iter().flat_map(|(image, functions)| {
            let name = |function: &String| FunctionName { image: image.clone(), function: function.clone() };
            functions.iter().map(move |(function, file)| (name(function), file.clone()))
        });
        Arc::new(all.collect())
    }
}

fn add(sums: &mut BTreeMap<BlockId, u64>, executions: impl IntoIterator<Item = (BlockId, u64)>) {
    executions.into_iter().for_each(|(id, n)| *sums.entry(id).or_default() += n);
}

/// Executions outside of units. A process that was killed may have counted a unit's last block, and not its own.
fn difference<'a>(
    all: &'a BTreeMap<BlockId, u64>,
    within: &'a BTreeMap<BlockId, u64>,
) -> impl Iterator<Item = (BlockId, u64)> + 'a {
    let ids: BTreeSet<BlockId> = all.keys().copied().collect();
    let of = |sums: &BTreeMap<BlockId, u64>, id| sums.get(&id).copied().unwrap_or(0);
    ids.into_iter().map(move |id| (id, of(all, id).saturating_sub(of(within, id)))).filter(|(_, n)| *n != 0)
}
