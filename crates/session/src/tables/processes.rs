//! The processes of an execution, as rows of tables.

use std::collections::BTreeMap;

use analysis::models::{ProcessLabel, ProcessResults};

use crate::process_tree;
use crate::simulation::KnownProcesses;

/// The processes in the order of their numbers, with their totals on machines whose results have so many columns.
pub(super) fn process_results(
    processes: &KnownProcesses,
    totals: &BTreeMap<u32, Vec<u64>>,
    columns: &[usize],
) -> Vec<ProcessResults> {
    let results = |label: ProcessLabel| {
        let mut rest = &totals[&label.process][..];
        let of_machine = |&columns: &usize| {
            let (own, others) = rest.split_at(columns);
            rest = others;
            own.to_vec()
        };
        let totals = columns.iter().map(of_machine).collect();
        ProcessResults { label, totals }
    };
    process_labels(processes, totals).into_iter().map(results).collect()
}

/// The processes that have totals, in the order of their numbers.
pub(super) fn process_labels(
    processes: &KnownProcesses,
    totals: &BTreeMap<u32, Vec<u64>>,
) -> Vec<ProcessLabel> {
    let mut all: Vec<_> = totals.keys().map(|process| (processes.get(process), *process)).collect();
    all.sort_by_key(|(known, process)| (known.map(|known| known.number.clone()), *process));
    let label = |(known, process): (Option<&process_tree::ObservedProcess>, u32)| ProcessLabel {
        process,
        number: known.map_or_else(|| process.to_string(), |known| known.number.to_string()),
        program_and_end: known.map(|known| [known.program.clone(), process_tree::describe(&known.state)]),
    };
    all.into_iter().map(label).collect()
}
