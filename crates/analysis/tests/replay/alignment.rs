//! Alignment faults of random traces equal a simple recount.

use std::collections::BTreeMap;
use std::convert::Infallible;

use isa::Flags;
use pathlength_analysis::alignment::{self, AlignmentFaults};
use pathlength_analysis::models::{ExecutionPart, InstructionResults};
use pathlength_analysis::replay::Selection;
use proptest::prelude::*;
use table::{Table, Value};

use crate::made::{Made, Shown};
use crate::recount::{One, expand, made};

/// The model after a replay, and its tables.
fn replayed(made: &Made) -> (AlignmentFaults, Vec<Table>) {
    made.replay(&Selection::default(), |Shown { replay }| {
        let mut faults = AlignmentFaults::new();
        let Ok(problems) = replay.run_consumer(&mut faults, &mut |_| Ok::<(), Infallible>(()));
        assert!(problems.is_empty());
        let trace = replay.dictionary.trace;
        let tables = vec![
            alignment::by_line(&faults, trace),
            alignment::by_data(&faults, ExecutionPart::Whole, trace),
            alignment::over_time(&faults, ExecutionPart::Whole),
        ];
        (faults, tables)
    })
}

/// Whether the system would carry the access out: it is neither aligned nor one that is never or always an error.
fn faults(one: &One) -> bool {
    let op = isa::decode(one.word).unwrap().op;
    let is_ordinary = !op.is(Flags::LOCKED) && !matches!(op.mnemonic(), "ldq_u" | "stq_u");
    is_ordinary && one.access.is_some_and(|(address, size, _)| address % size != 0)
}

/// The sum of a column.
fn sum(table: &Table, heading: &str) -> u64 {
    let at = table.columns.iter().position(|column| column.name == heading).unwrap();
    let number = |row: &Vec<Value>| match &row[at] {
        Value::Integer(number) => *number as u64,
        other => panic!("{other:?}"),
    };
    table.rows.iter().map(number).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn faults_are_what_a_recount_finds(made in made()) {
        let all = expand(&made, &Selection::default());
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        all.iter().filter(|one| one.access.is_some() && faults(one)).for_each(|one| *expected.entry(one.pc).or_default() += 1);
        let (model, tables) = replayed(&made);
        let total: u64 = expected.values().sum();
        prop_assert_eq!([model.counts.totals().instructions, model.counts.totals().faults], [all.len() as u64, total]);
        let mut found: BTreeMap<u64, u64> = BTreeMap::new();
        for (id, (address, words)) in (0..).zip(&made.blocks) {
            // Blocks that are defined in each process are numbered by process.
            let processes = made.threads.iter().map(|thread| thread.process).collect::<std::collections::BTreeSet<_>>();
            for process in 0..processes.len() {
                let rows = model.counts.rows((process * made.blocks.len()) as u32 + id).unwrap_or_default();
                for ((pc, _), row) in (*address..).step_by(4).zip(words).zip(rows) {
                    *found.entry(pc).or_default() += row[1];
                }
            }
        }
        found.retain(|_, faults| *faults > 0);
        prop_assert_eq!(found, expected);
        for table in &tables {
            prop_assert_eq!(sum(table, "faults"), total, "{}", &table.name);
        }
        prop_assert_eq!(sum(&tables[2], "instructions"), all.len() as u64);
    }
}
