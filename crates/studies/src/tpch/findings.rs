//! What follows from the measurements: growth, scans, and where access paths should change.

use super::measured::{ComponentMeasured, MachineMeasured, Measured};
use super::result::{PathCosts, QueryCost, TpchStudy};
use crate::tpcc::DatabaseSystem;

/// A count that is compared, on the first machine.
#[derive(Clone, Copy)]
pub(super) struct Criterion {
    /// What is counted.
    pub(super) name: &'static str,
    /// The count of a statement.
    pub(super) of: fn(&Measured) -> u64,
}

/// What is compared.
pub(super) const CRITERIA: [Criterion; 5] = [
    Criterion { name: "instructions", of: |measured| measured.instructions },
    Criterion { name: "L1 instruction misses", of: |measured| on(measured).level(1)[0] },
    Criterion { name: "L1 data misses", of: |measured| on(measured).level(1)[1] },
    Criterion { name: "L2 misses", of: |measured| on(measured).level(2).iter().sum() },
    Criterion { name: "cycles", of: |measured| on(measured).all_cycles() },
];

/// The criteria that are misses.
pub(super) const MISSES: std::ops::Range<usize> = 1..4;

/// The first machine.
fn on(measured: &Measured) -> &MachineMeasured {
    &measured.machines[0]
}

/// The components that bring rows: tables, indexes, and the pages they are in.
pub(super) fn scan_components(system: DatabaseSystem) -> &'static [&'static str] {
    match system {
        DatabaseSystem::Sqlite => {
            &["B-tree", "pager and page cache", "operating system interface", "write-ahead log"]
        }
        DatabaseSystem::Postgresql => &[
            "heap",
            "B-tree",
            "buffer manager",
            "tuples and relations",
            "other access methods",
            "storage manager and files",
        ],
    }
}

/// How many times as much a query has of each criterion at the largest scale factor as at the smallest.
pub(super) struct Growth<'a> {
    /// At the largest scale factor.
    pub(super) query: &'a QueryCost,
    /// By criterion.
    pub(super) times: [f64; CRITERIA.len()],
    /// Whether the plan is another one.
    pub(super) is_other_plan: bool,
}

impl TpchStudy {
    /// How many times as large the largest database is as the smallest.
    pub(super) fn data_growth(&self) -> f64 {
        let [first, .., last] = &self.scales[..] else { return 1.0 };
        last.scale / first.scale
    }

    /// How the queries grow.
    pub(super) fn growth(&self) -> Vec<Growth<'_>> {
        let [first, .., last] = &self.scales[..] else { return Vec::new() };
        let growth = |(small, large): (&QueryCost, &'_ QueryCost)| -> ([f64; CRITERIA.len()], bool) {
            let times =
                CRITERIA.map(|Criterion { of, .. }| of(&large.measured) as f64 / of(&small.measured) as f64);
            (times, small.plan != large.plan)
        };
        let pairs = first.queries.iter().zip(&last.queries);
        pairs
            .map(|(small, query)| {
                let (times, is_other_plan) = growth((small, query));
                Growth { query, times, is_other_plan }
            })
            .collect()
    }

    /// The queries whose count grows faster than the data, by more than a twentieth.
    pub(super) fn faster_than_data(&self, criterion: usize) -> Vec<u32> {
        let limit = 1.05 * self.data_growth();
        let growth = self.growth();
        growth
            .iter()
            .filter(|growth| growth.times[criterion] > limit)
            .map(|growth| growth.query.number)
            .collect()
    }

    /// All queries together, on a machine: misses of instructions and of data at a level.
    pub(super) fn misses(&self, machine: usize, level: u32) -> [u64; 2] {
        self.queries().iter().fold([0, 0], |[instructions, data], query| {
            let [more, more_data] = query.measured.machines[machine].level(level);
            [instructions + more, data + more_data]
        })
    }

    /// What a query spends in the components that bring rows, and in all.
    pub(super) fn scan_and_all(&self, query: &QueryCost) -> [ComponentMeasured; 2] {
        let machine = on(&query.measured);
        [machine.spent_in(Some(scan_components(self.system))), machine.spent_in(None)]
    }

    /// The access path with the least of a criterion.
    pub(super) fn best_path(&self, costs: &PathCosts, criterion: usize) -> usize {
        let of = CRITERIA[criterion].of;
        let best = costs.measured.iter().enumerate().min_by_key(|(_, measured)| of(measured));
        best.map_or(0, |(path, _)| path)
    }

    /// Where an access path gives way to another one with rising selectivity: the last share of rows before, the first one after,
    /// and both paths.
    pub(super) fn switches(&self, path: impl Fn(&PathCosts) -> Option<usize>) -> Vec<Switch> {
        let pairs = self.selectivities.windows(2).filter_map(|pair| {
            let [before, after] = [path(&pair[0])?, path(&pair[1])?];
            let [from, to] = [before, after].map(|path| self.paths[path].name);
            (before != after).then_some(Switch { at: [pair[0].selectivity, pair[1].selectivity], from, to })
        });
        pairs.collect()
    }
}

/// A change of access paths.
pub(super) struct Switch {
    /// Between these shares of rows, in percent.
    pub(super) at: [f64; 2],
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}
