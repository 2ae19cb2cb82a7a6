//! Units of work: what belongs to them is what their own thread did, whatever other threads did meanwhile.

use std::collections::BTreeMap;
use std::path::Path;

use events::record::{Entries, Entry, Mark};
use trace::Trace;

use crate::caches::{Folder, column};
use crate::support::run;

/// The units of a trace, by number: their thread and instructions, counted here.
fn recount(path: &str) -> BTreeMap<u64, (u32, u64)> {
    let trace = Trace::open(Path::new(path)).unwrap();
    let (mut units, mut words) = (BTreeMap::new(), Vec::new());
    let mut open = vec![None; trace.streams().len()];
    for (index, chunk) in trace.chunks().iter().enumerate() {
        trace.read(index, &mut words).unwrap();
        let open = &mut open[chunk.stream as usize];
        for entry in Entries::new(&words, trace.shapes()) {
            match entry {
                Entry::Execution(one) => {
                    let (_, instructions) = open.as_mut().expect("only units are recorded");
                    *instructions += trace.blocks()[one.block as usize].words.len() as u64;
                }
                Entry::Mark(Mark::UnitBegins(number)) => *open = Some((number, 0)),
                Entry::Mark(Mark::UnitEnds(number)) => {
                    let (begun, instructions) = open.take().unwrap();
                    let thread = trace.streams()[chunk.stream as usize].thread;
                    assert_eq!((begun, units.insert(number, (thread, instructions))), (number, None));
                }
                Entry::Mark(mark) => assert!(!matches!(mark, Mark::UnitLeft(_)), "{mark:?}"),
            }
        }
    }
    units
}

/// Numbers and instructions of units, as a table has them.
fn listed(table: &[Vec<String>]) -> Vec<(u64, u64)> {
    column(table, "unit").into_iter().zip(column(table, "instructions")).collect()
}

/// The instructions of units, whose numbers depend on which thread was faster.
fn lengths(units: &[(u64, u64)]) -> Vec<u64> {
    let mut lengths: Vec<u64> = units.iter().map(|(_, instructions)| *instructions).collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn units_of_threads_have_their_own_instructions() {
    let folder = Folder::new();
    for threads in [2, 4] {
        let program = format!(":ev56/crossing {threads}");
        let path = folder.trace(&format!("--unit work {program}"));
        let recounted = recount(&path);
        let expected: Vec<(u64, u64)> =
            recounted.iter().map(|(number, (_, instructions))| (*number, *instructions)).collect();
        assert_eq!(
            expected.iter().map(|unit| unit.0).collect::<Vec<_>>(),
            (0..60 * threads).collect::<Vec<_>>()
        );
        let shown = folder.table(&format!("show --table units {path}"));
        assert_eq!(listed(&shown), expected);
        // The trace says what its units are.
        for command in ["caches", "caches --machine qemu", "time"] {
            assert_eq!(listed(&folder.table(&format!("{command} --by unit {path}"))), expected, "{command}");
            let one = folder.table(&format!("{command} --by unit --thread 0.1 {path}"));
            let own = expected.iter().copied().filter(|unit| recounted[&unit.0].0 == 1);
            assert_eq!(listed(&one), own.collect::<Vec<_>>(), "{command}");
            for processors in [1, 2] {
                let running =
                    format!("{command} --by unit --unit work --host-processors {processors} {program}");
                assert_eq!(lengths(&listed(&folder.table(&running))), lengths(&expected), "{running}");
            }
        }
        // Without a steady state all units are listed.
        let counted =
            folder.table(&format!("count --by unit --unit work --units 1000 --batch 1000 {program}"));
        assert_eq!(column(&counted, "unit"), (0..60 * threads).collect::<Vec<_>>());
        assert_eq!(lengths(&listed(&counted)), lengths(&expected));
        run(&format!("check {path}")).quiet_success();
    }
}

/// One unit of a trace has the instructions that the views of its thread show.
#[test]
fn views_of_one_unit_have_its_instructions() {
    let folder = Folder::new();
    let path = folder.trace("--unit work :ev56/crossing 4");
    let units = recount(&path);
    assert!(units.len() > 100, "{}", units.len());
    for (number, (_, instructions)) in units.into_iter().step_by(37) {
        let listing = run(&format!("show --as instructions --unit-number {number} {path}")).quiet_success();
        let is_instruction =
            |line: &&str| line.split_whitespace().nth(1).is_some_and(|one| one.ends_with(':'));
        let lines = listing.lines().filter(is_instruction).count() as u64;
        let mix = folder.table(&format!("show --table instructions --unit-number {number} {path}"));
        let total = *column(&mix, "count").last().unwrap();
        assert_eq!((total, lines), (instructions, instructions), "unit {number}");
    }
}

/// After a warm-up, the counts are those of the counted units, without the units that other threads still
/// work on.
#[test]
fn warm_up_units_of_other_threads_are_not_counted() {
    let folder = Folder::new();
    let path = folder.trace("--unit work :ev56/crossing 4");
    let counted = (15..40).map(|number| recount(&path)[&number].1).sum::<u64>();
    for command in ["caches", "time"] {
        let rows = folder.table(&format!("{command} --by function --warm-up 15 --units 25 {path}"));
        assert_eq!(*column(&rows, "instructions").last().unwrap(), counted, "{command}");
        let units = folder.table(&format!("{command} --by unit --warm-up 15 --units 25 {path}"));
        assert_eq!(column(&units, "unit"), (15..40).collect::<Vec<_>>(), "{command}");
        assert_eq!(column(&units, "instructions").iter().sum::<u64>(), counted, "{command}");
        for processors in [1, 2] {
            let options = format!("--unit work --warm-up 15 --units 25 --host-processors {processors}");
            let units = folder.table(&format!("{command} --by unit {options} :ev56/crossing 4"));
            assert_eq!(column(&units, "unit"), (15..40).collect::<Vec<_>>(), "{command}");
        }
    }
}

/// A trace's units need not be named; where there are none, that is said.
#[test]
fn units_are_what_the_trace_says() {
    let folder = Folder::new();
    let path = folder.trace("--unit work :ev56/modes work");
    let named = folder.table(&format!("time --by unit --unit work --skip 3 --units 4 {path}"));
    assert_eq!(column(&named, "unit"), [3, 4, 5, 6]);
    assert_eq!(folder.table(&format!("time --by unit --skip 3 --units 4 {path}")), named);
    let plain = folder.trace(":ev56/tiny");
    for words in ["caches --by unit", "time --by unit", "time --skip 1", "caches --warm-up 1"] {
        let sentence = run(&format!("{words} {plain}")).failure();
        assert!(sentence.contains("has no units of work: record it with --unit"), "{words}: {sentence}");
        let sentence = run(&format!("{words} :ev56/tiny")).failure();
        assert!(sentence.contains("--unit FUNCTION"), "{words}: {sentence}");
    }
}

/// Calls that an exception or a jump leaves are units as others are, and end where control goes on.
#[test]
fn calls_that_are_left_are_counted() {
    let folder = Folder::new();
    for function in ["thrown", "thrown_at_once", "jumped", "interrupted", "stays"] {
        let path = folder.trace(&format!("--unit {function} :ev56/leaves"));
        for of in [format!("--unit {function} :ev56/leaves"), path.clone()] {
            let units = listed(&folder.table(&format!("calls --by unit {of}")));
            assert_eq!(units.len(), 20, "{function}: {units:?}");
            let longest = lengths(&units)[19];
            // 300,000 rounds of a loop come after each call.
            assert!(longest < 1_000_000, "{function}: {longest}");
        }
        let table = folder.table(&format!("show --table units {path}"));
        let left = table[1..].iter().filter(|row| row[4] == "other means").count();
        assert_eq!(left, if function == "stays" { 0 } else { 10 }, "{table:?}");
        run(&format!("check {path}")).quiet_success();
    }
}
