//! The paper's figures for today's programs: what programs are like (1 to 6), what the layout wins (10, 11), and what hot-cold
//! optimization does (15 to 20).

use std::collections::HashSet;

use spike::hot_cold::{HotColdCategory, ProcedureOutcome};
use spike::layout::threshold;
use spike::optimize::Optimized;
use spike::program::CodeBlockId;
use spike::statistics::{self, ProcedureStatistics};
use table::{Kind, Table, Value};

use super::measure::{LAYOUTS, MACHINES};
use super::tables::{name, of_programs, processors};
use super::{SpikeProgramResult, SpikeStudy};

/// Procedures whose loops are executed less often count as such without loops.
const NONLOOPING: f64 = 4.0;
/// Bounds of trip counts, numbers of blocks, and sizes.
const BOUNDS: [u64; 12] = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// The most interesting part of them.
const TRIPS: usize = 9;
const BLOCKS: usize = 8;

/// A share in percent.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// What the profiled procedures of a program are like.
pub(super) struct Profiled {
    pub procedures: Vec<ProcedureStatistics>,
}

impl Profiled {
    pub fn of(one: &SpikeProgramResult) -> Profiled {
        Profiled { procedures: statistics::of_program(&one.profiled, threshold(&one.profiled)) }
    }

    pub fn executed(&self) -> u64 {
        self.sum(|_| true, |one| one.executed)
    }

    fn sum(
        &self,
        of: impl Fn(&ProcedureStatistics) -> bool,
        what: impl Fn(&ProcedureStatistics) -> u64,
    ) -> u64 {
        self.procedures.iter().filter(|one| of(one)).map(what).fold(0, u64::saturating_add)
    }

    /// The share of the executed instructions that such procedures have.
    pub fn share(&self, of: impl Fn(&ProcedureStatistics) -> bool) -> f64 {
        percent(self.sum(of, |one| one.executed), self.executed())
    }

    /// The same, of the procedures without loops.
    pub fn share_of_nonlooping(&self, of: impl Fn(&ProcedureStatistics) -> bool) -> f64 {
        let is_nonlooping = |one: &ProcedureStatistics| one.trip_count < NONLOOPING;
        let part = self.sum(|one| is_nonlooping(one) && of(one), |one| one.executed);
        percent(part, self.sum(is_nonlooping, |one| one.executed))
    }

    /// Executed instructions of prologues and epilogues.
    pub fn overhead_instructions(&self) -> u64 {
        self.sum(|_| true, |one| one.overhead)
    }

    /// The share of prologues and epilogues.
    pub fn overhead(&self) -> f64 {
        percent(self.overhead_instructions(), self.executed())
    }
}

/// A cumulative distribution: a row for each bound, a column for each line.
fn cumulative(
    (name, title): (&str, &str),
    bounds: &[u64],
    lines: &[(String, &dyn Fn(u64) -> f64)],
    what: &str,
) -> Table {
    let columns: Vec<(&str, Kind)> = [(what, Kind::Text)]
        .into_iter()
        .chain(lines.iter().map(|(name, _)| (name.as_str(), Kind::Percent(0))))
        .collect();
    let mut table = Table::new(name, title, &columns);
    for &bound in bounds {
        let shares = lines.iter().map(|(_, share)| Value::from(share(bound)));
        table.row([format!("< {bound}").into()].into_iter().chain(shares).collect());
    }
    table
}

/// Figure 1.
pub(super) fn sizes(study: &SpikeStudy) -> Table {
    let columns = [
        ("instructions", Kind::Count),
        ("procedures", Kind::Count),
        ("blocks", Kind::Count),
        ("executed in training", Kind::Percent(1)),
    ];
    let mut table =
        of_programs(study, ("figure-1-sizes", "Sizes of the images (Figure 1)"), &columns, |one| {
            let blocks = &one.profiled.blocks;
            let size: u64 = blocks.iter().map(statistics::length).sum();
            let executed = blocks.iter().filter(|block| block.count > 0).map(statistics::length).sum();
            vec![
                size.into(),
                (one.profiled.procedures.len() as u64).into(),
                (blocks.len() as u64).into(),
                percent(executed, size).into(),
            ]
        });
    table
        .notes
        .push("The last column: the share of the instructions that the training executes at all.".into());
    table
}

/// Figures 2 and 3.
pub(super) fn loops(study: &SpikeStudy) -> Table {
    let profiled: Vec<(String, Profiled)> =
        study.programs.iter().map(|one| (name(one), Profiled::of(one))).collect();
    let shares: Vec<_> = profiled
        .iter()
        .map(|(_, one)| move |bound: u64| one.share(|procedure| procedure.trip_count < bound as f64))
        .collect();
    let lines: Vec<(String, &dyn Fn(u64) -> f64)> =
        profiled.iter().zip(&shares).map(|((name, _), share)| (name.clone(), share as _)).collect();
    let title =
        "Executed instructions in procedures by the average trip count of their loop (Figures 2 and 3)";
    let mut table = cumulative(("figure-3-loops", title), &BOUNDS[..TRIPS], &lines, "trip count");
    table.notes.push(
        "Of each procedure its most frequently executed loop counts; a procedure without an executed loop has the trip count 1."
            .into(),
    );
    table
}

/// Figure 4: procedures without loops of the first program by the number of their blocks, all of them and frequent ones.
pub(super) fn complexity_of_first(study: &SpikeStudy) -> Option<Table> {
    let first = study.programs.first()?;
    let profiled = Profiled::of(first);
    let all = |bound: u64| profiled.share_of_nonlooping(|one| one.blocks < bound);
    let filtered = |bound: u64| profiled.share_of_nonlooping(|one| one.frequent_blocks < bound);
    let title = format!(
        "Complexity of procedures in {}: executed instructions by the number of blocks (Figure 4)",
        name(first)
    );
    let lines: [(String, &dyn Fn(u64) -> f64); 2] =
        [("all blocks".into(), &all), ("frequent blocks".into(), &filtered)];
    Some(cumulative(("figure-4-complexity", &title), &BOUNDS[..BLOCKS], &lines, "blocks"))
}

/// Figure 5.
pub(super) fn complexity(study: &SpikeStudy) -> Table {
    let profiled: Vec<(String, Profiled)> =
        study.programs.iter().map(|one| (name(one), Profiled::of(one))).collect();
    let shares: Vec<_> = profiled
        .iter()
        .map(|(_, one)| {
            move |bound: u64| one.share_of_nonlooping(|procedure| procedure.frequent_blocks < bound)
        })
        .collect();
    let lines: Vec<(String, &dyn Fn(u64) -> f64)> =
        profiled.iter().zip(&shares).map(|((name, _), share)| (name.clone(), share as _)).collect();
    let title = "Complexity of procedures: executed instructions by the number of frequent blocks (Figure 5)";
    let mut table = cumulative(("figure-5-complexity", title), &BOUNDS[..BLOCKS], &lines, "blocks");
    table.notes.push("Of procedures with an average trip count below 4.".into());
    table
}

/// Figure 6.
pub(super) fn overhead(study: &SpikeStudy) -> Table {
    let columns =
        [("prologues and epilogues", Kind::Percent(1)), ("procedures without loops", Kind::Percent(1))];
    let title = "Instructions in prologues and epilogues (Figure 6)";
    let mut table = of_programs(study, ("figure-6-overhead", title), &columns, |one| {
        let profiled = Profiled::of(one);
        vec![profiled.overhead().into(), profiled.share(|one| one.trip_count < NONLOOPING).into()]
    });
    table.notes.push(
        "Adjustments of the stack pointer, saves and restores. The second column: the share of procedures with an average \
         trip count below 4."
            .into(),
    );
    table
}

/// A speedup in percent.
fn speedup(before: u64, now: u64) -> Value {
    (100.0 * (before as f64 / now.max(1) as f64 - 1.0)).into()
}

/// Figure 10: the steps of the layout on the machine of 1992.
pub(super) fn layouts(study: &SpikeStudy) -> Table {
    let columns: Vec<(&str, Kind)> =
        LAYOUTS.iter().map(|one| one.name).chain(["all"]).map(|name| (name, Kind::Change(1))).collect();
    let title = format!("Speedup by steps of the layout, {} (Figure 10)", processors()[0]);
    of_programs(study, ("figure-10-layout", &title), &columns, |one| {
        let original = one.variants[0].cycles[0];
        one.layouts
            .iter()
            .copied()
            .chain([one.variants[1].cycles[0]])
            .map(|now| speedup(original, now))
            .collect()
    })
}

/// Figure 11.
pub(super) fn layout_speedup(study: &SpikeStudy) -> Table {
    let processors = processors();
    let columns: Vec<(&str, Kind)> = processors.iter().map(|name| (name.as_str(), Kind::Change(1))).collect();
    of_programs(study, ("figure-11-layout", "Speedup by the layout alone (Figure 11)"), &columns, |one| {
        let cycles = |machine: usize| [0, 1].map(|variant| one.variants[variant].cycles[machine]);
        (0..MACHINES.len()).map(cycles).map(|[original, now]| speedup(original, now)).collect()
    })
}

/// Figure 15.
pub(super) fn coverage(study: &SpikeStudy) -> Table {
    let columns: Vec<(&str, Kind)> =
        HotColdCategory::ALL.iter().map(|category| (category.name(), Kind::Percent(1))).collect();
    let title = "Hot-cold optimization: executed instructions by what became of their procedures (Figure 15)";
    of_programs(study, ("figure-15-coverage", title), &columns, |one| {
        let outcomes = &one.hot_cold.outcomes;
        let executed = |of: &dyn Fn(&&ProcedureOutcome) -> bool| {
            outcomes.iter().filter(of).map(|one| one.executed).fold(0, u64::saturating_add)
        };
        let all = executed(&|_| true);
        HotColdCategory::ALL
            .iter()
            .map(|&category| percent(executed(&|one| one.category == category), all).into())
            .collect()
    })
}

/// The names of the parts of Figure 16.
pub(super) const REDUCTIONS: [&str; 4] =
    ["partially dead code", "saves and restores", "stack adjustments", "peephole"];

/// Figure 16.
pub(super) fn reductions(study: &SpikeStudy) -> Table {
    let columns: Vec<(&str, Kind)> = REDUCTIONS.iter().map(|&name| (name, Kind::Percent(2))).collect();
    let title = "Path length that hot-cold optimization removes, of the training run (Figure 16)";
    of_programs(study, ("figure-16-reduction", title), &columns, |one| {
        let sum = |what: fn(&ProcedureOutcome) -> u64| -> Value {
            let removed = one.hot_cold.outcomes.iter().map(what).fold(0, u64::saturating_add);
            percent(removed, one.hot_cold.executed).into()
        };
        vec![
            sum(|one| one.reduction.dead_code),
            sum(|one| one.reduction.saves),
            sum(|one| one.reduction.adjustments),
            sum(|one| one.reduction.peephole),
        ]
    })
}

/// The procedures after hot-cold optimization; those that it improved in two parts.
pub(super) fn after(one: &SpikeProgramResult) -> Vec<ProcedureStatistics> {
    let Optimized { program, threshold, outcomes, .. } = &one.hot_cold;
    let of = |outcome: &ProcedureOutcome| {
        let hot: HashSet<CodeBlockId> = outcome.hot.iter().copied().collect();
        let part = |is_hot| {
            statistics::of_procedure(program, outcome.procedure, *threshold, |id| hot.contains(&id) == is_hot)
        };
        [part(true), part(false)]
    };
    outcomes.iter().flat_map(of).filter(|one| one.executed > 0).collect()
}

/// Figure 17.
pub(super) fn leaves(study: &SpikeStudy) -> Table {
    let columns = [("before", Kind::Percent(1)), ("after", Kind::Percent(1))];
    let title = "Executed instructions in leaf procedures before and after hot-cold optimization (Figure 17)";
    of_programs(study, ("figure-17-leaves", title), &columns, |one| {
        let after = Profiled { procedures: after(one) };
        vec![Profiled::of(one).share(|one| one.is_leaf).into(), after.share(|one| one.is_leaf).into()]
    })
}

/// Instructions of procedures without the branches at the ends of blocks, as outcomes count them.
fn size(one: &SpikeProgramResult, of: impl Fn(&ProcedureOutcome) -> bool) -> [u64; 4] {
    let program = &one.hot_cold.program;
    let mut sum = [0; 4];
    for outcome in one.hot_cold.outcomes.iter().filter(|one| of(one)) {
        let blocks = &program.procedures[outcome.procedure as usize].blocks;
        let all: usize = blocks.iter().map(|&id| program.blocks[id as usize].instructions.len()).sum();
        let cold = all.saturating_sub(outcome.hot_size + outcome.stub_size);
        let own = [outcome.size, outcome.hot_size, cold, outcome.stub_size];
        sum.iter_mut().zip(own).for_each(|(sum, one)| *sum += one as u64);
    }
    sum
}

/// By how many percent the code grew: by copies of hot parts, by stubs, in all.
pub(super) fn growth_of(one: &SpikeProgramResult) -> [f64; 3] {
    let [before, hot, cold, stubs] = size(one, |_| true);
    let copies = (hot + cold) as f64 - before as f64;
    [copies, stubs as f64, copies + stubs as f64].map(|part| 100.0 * part / before.max(1) as f64)
}

/// Figure 18.
pub(super) fn growth(study: &SpikeStudy) -> Table {
    let columns =
        [("hot and cold", Kind::Change(1)), ("stubs", Kind::Change(1)), ("in all", Kind::Change(1))];
    let title = "Growth of the code by hot-cold optimization (Figure 18)";
    of_programs(study, ("figure-18-growth", title), &columns, |one| growth_of(one).map(Value::from).into())
}

/// The sizes of hot and cold parts and stubs of improved procedures, and of all three, in percent of the size before.
pub(super) fn improved_sizes(one: &SpikeProgramResult) -> Option<[f64; 4]> {
    match size(one, |one| one.category == HotColdCategory::Optimized && one.hot_size > 0) {
        [0, ..] => None,
        [before, hot, cold, stubs] => {
            Some([hot, cold, stubs, hot + cold + stubs].map(|part| percent(part, before)))
        }
    }
}

/// Figure 19.
pub(super) fn optimized_sizes(study: &SpikeStudy) -> Table {
    let columns = ["hot", "cold", "stubs", "in all"].map(|name| (name, Kind::Percent(0)));
    let title = "Size of improved procedures, of their size before (Figure 19)";
    of_programs(study, ("figure-19-sizes", title), &columns, |one| match improved_sizes(one) {
        Some(sizes) => sizes.map(Value::from).into(),
        None => vec![Value::Missing; 4],
    })
}

/// Figure 20, of each program.
pub(super) fn sizes_before_and_after(study: &SpikeStudy) -> Vec<Table> {
    let table = |one: &SpikeProgramResult| {
        let (before, after) = (Profiled::of(one), Profiled { procedures: after(one) });
        let title = format!(
            "{}: executed instructions by the size of procedures, before and after hot-cold optimization (Figure 20)",
            name(one)
        );
        let lines: [(String, &dyn Fn(u64) -> f64); 2] = [
            ("before".into(), &|bound| before.share(|one| one.size < bound)),
            ("after".into(), &|bound| after.share(|one| one.size < bound)),
        ];
        cumulative((&format!("figure-20-{}", name(one)), &title), &BOUNDS[2..], &lines, "instructions")
    };
    study.programs.iter().map(table).collect()
}

/// Every figure's table.
pub(super) fn all(study: &SpikeStudy) -> Vec<Table> {
    let mut tables = vec![sizes(study), loops(study)];
    tables.extend(complexity_of_first(study));
    tables.extend([
        complexity(study),
        overhead(study),
        layouts(study),
        layout_speedup(study),
        coverage(study),
        reductions(study),
        leaves(study),
        growth(study),
        optimized_sizes(study),
    ]);
    tables.extend(sizes_before_and_after(study));
    tables
}
