//! `--warm-up`: units that are simulated and not counted.

use crate::caches::{Folder, column};
use crate::support::run;

/// Options for the same units: without a warm-up, with one, and with one on a trace.
const COUNTED: &str = "--unit work --skip 5 --units 40";
const WARMED: &str = "--unit work --skip 5 --warm-up 15 --units 25";
const WARMED_TRACE: &str = "--unit work --warm-up 15 --units 25";

/// The same tables of a program, on one and two of the host's processors, and of its trace.
fn tables(folder: &Folder, command: &str) -> Vec<Vec<Vec<String>>> {
    let program = ":ev56/modes work";
    let trace = folder.trace(&format!("{COUNTED} {program}"));
    let running = [1, 2].map(|number| format!("{command} {WARMED} --host-processors {number} {program}"));
    let replayed = format!("{command} {WARMED_TRACE} {trace}");
    running.iter().chain([&replayed]).map(|words| folder.table(words)).collect()
}

#[test]
fn units_are_as_if_all_were_counted() {
    let folder = Folder::new();
    for command in ["caches --machine qemu", "caches", "time"] {
        let all = folder.table(&format!("{command} --by unit {COUNTED} :ev56/modes work"));
        for table in tables(&folder, &format!("{command} --by unit")) {
            assert_eq!(column(&table, "unit"), (20..45).collect::<Vec<u64>>());
            assert_eq!(table[1..], all[all.len() - 25..], "{command}");
        }
    }
}

#[test]
fn totals_are_the_sums_of_the_units() {
    let folder = Folder::new();
    for machine in ["qemu", "alphastation500"] {
        let command = format!("caches --machine {machine}");
        let units = &tables(&folder, &format!("{command} --by unit"))[0];
        let instructions = column(units, "instructions").iter().sum::<u64>();
        for table in tables(&folder, &command) {
            for row in &table[1..] {
                let misses: u64 = column(units, &format!("{} misses", row[1])).iter().sum();
                assert_eq!(row[3], misses.to_string(), "{machine}: {row:?}");
            }
            assert_eq!(column(&table, "accesses")[0], instructions);
        }
        for table in tables(&folder, &format!("{command} --by instruction")) {
            let own = column(&table, "instructions");
            let (total, rows) = own.split_last().unwrap();
            assert_eq!((*total, rows.iter().sum()), (instructions, instructions));
        }
    }
}

#[test]
fn cycles_continue_after_the_warm_up() {
    let folder = Folder::new();
    let before = "--unit work --skip 5 --units 15 :ev56/modes work";
    let all = format!("{COUNTED} :ev56/modes work");
    let total = |table: &Vec<Vec<String>>, heading| *column(table, heading).last().unwrap();
    let [all, before] = [&all[..], before].map(|what| folder.table(&format!("time --by function {what}")));
    let more = |heading| total(&all, heading) - total(&before, heading);
    for table in tables(&folder, "time --by function") {
        assert_eq!(total(&table, "instructions"), more("instructions"));
        // The last cycle before may be the first.
        assert!(total(&table, "cycles").abs_diff(more("cycles")) <= 1);
    }
}

#[test]
fn too_long_a_warm_up_leaves_nothing() {
    for (options, reason) in
        [("--unit work --warm-up 100000", "--warm-up 100000"), ("--warm-up 3", "--unit FUNCTION")]
    {
        let outcome = run(&format!("caches {options} :ev56/modes work"));
        assert_ne!(outcome.code(), 0, "{options}");
        assert!(outcome.stderr.contains(reason), "{options}: {}", outcome.stderr);
        assert!(!outcome.stdout.contains("Caches and TLBs"));
    }
}
