//! `faults`: alignment faults of a program whose faults are known; a running program and its trace have the same.

use crate::caches::{Folder, cell, column};
use crate::support::run;

/// The cell with a heading, as text.
fn text<'a>(rows: &'a [Vec<String>], row: usize, heading: &str) -> &'a str {
    &rows[row][rows[0].iter().position(|one| one == heading).unwrap()]
}

/// The row of a function.
fn row_of(rows: &[Vec<String>], function: &str) -> usize {
    rows.iter().position(|row| row[0] == function).unwrap_or_else(|| panic!("{function}: {rows:?}"))
}

#[test]
fn lines_that_fault_come_with_what_would_avoid_it() {
    let folder = Folder::new();
    for build in ["ev5", "ev56"] {
        let lines = folder.table(&format!("faults --by line :{build}/faults"));
        assert_eq!(column(&lines, "faults"), [1000, 280, 20], "{lines:?}");
        assert_eq!([1, 2].map(|row| text(&lines, row, "function")), ["misplaced", "anywhere"]);
        assert_eq!([1, 2].map(|row| text(&lines, row, "access")), ["8-byte load", "8-byte store"]);
        // Of the stores in the loop; the compiler may put one before it.
        let shares = [1, 2].map(|row| cell(&lines, row, "of executions"));
        assert!(shares[0] == 100.0 && (87.5..90.0).contains(&shares[1]), "{shares:?}");
        assert_eq!([1, 2].map(|row| cell(&lines, row, "aligned to")), [4.0, 1.0]);
        assert_eq!(text(&lines, 1, "suggestion"), "always 4 past a multiple of 8: insert 4");
        assert_eq!(text(&lines, 2, "suggestion"), "any address: use a packed type, or memcpy");
        assert!(text(&lines, 2, "source").starts_with("for (int i = 0; i < 64; i++)"), "{lines:?}");
        let data = folder.table(&format!("faults --by data :{build}/faults"));
        assert_eq!(column(&data, "faults"), [1000, 280, 20], "{data:?}");
        assert_eq!(text(&data, 1, "data"), "bytes");
        assert!(text(&data, 2, "data").starts_with("allocated in main (faults.c:"), "{data:?}");
        assert_eq!(text(&data, 3, "data"), "holders.raw");
    }
}

#[test]
fn accesses_that_the_compiler_made_safe_are_no_faults() {
    let folder = Folder::new();
    let functions = folder.table("faults --by function :ev56/faults");
    let counts = |function: &str| {
        let row = row_of(&functions, function);
        ["faults", "made safe", "crossing"].map(|heading| cell(&functions, row, heading) as u64)
    };
    assert_eq!(counts("known"), [0, 20, 20]);
    assert_eq!(counts("misplaced"), [1000, 0, 0]);
    assert_eq!(counts("anywhere"), [280, 0, 0]);
}

#[test]
fn a_program_that_runs_and_its_trace_have_the_same_faults() {
    let folder = Folder::new();
    let trace = folder.trace("--heap :ev56/faults");
    for by in ["line", "data", "time", "function", "instruction", "caller", "call-tree"] {
        let live = folder.table(&format!("faults --by {by} :ev56/faults"));
        assert!(live.len() > 1, "{live:?}");
        assert_eq!(folder.table(&format!("faults --by {by} {trace}")), live, "{by}");
        let faults = column(&live, "faults");
        let all: u64 = if by == "call-tree" { faults[0] } else { faults.iter().sum() };
        let times = match by {
            // With a row for the total.
            "function" | "instruction" => 2,
            // Of the callers of a function, and of theirs.
            "caller" => continue,
            _ => 1,
        };
        assert_eq!(all, times * 1300, "{by}: {live:?}");
    }
}

#[test]
fn units_of_work_have_their_own_faults() {
    let folder = Folder::new();
    let units = folder.table("faults --by unit --unit misplaced :ev56/faults");
    assert_eq!(column(&units, "faults"), [100; 10]);
    let printed = run("faults --unit anywhere --skip 1 --units 3 :ev56/faults");
    let report = printed.stderr + &printed.stdout;
    assert!(report.contains("56.0"), "faults of a unit: {report}");
}

#[test]
fn wrong_requests_are_rejected() {
    for (words, what) in [
        ("faults --by unit :ev56/faults", "--unit FUNCTION"),
        ("faults --unit nowhere :ev56/faults", "nowhere"),
        ("faults /nowhere/program", "/nowhere/program"),
        ("faults --by shape :ev56/faults", "call-tree"),
        ("faults --by function --sort speed :ev56/faults", "the columns are"),
    ] {
        let failed = run(words);
        assert!(failed.stderr.contains(what), "{words}: {}", failed.stderr);
        assert!(!failed.status.success(), "{words}");
    }
}
