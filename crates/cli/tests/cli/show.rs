//! `show`: traces show the executed instructions, and add up to the counts of `count`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{csv, ends_when_nobody_reads, run};

/// A trace in a folder of its own.
pub struct Recorded {
    pub folder: TempDir,
}

/// Records `words`: options and, after a colon, the program.
pub fn record(words: &str) -> Recorded {
    let recorded = Recorded { folder: tempfile::tempdir().unwrap() };
    let outcome = run(&format!("trace -o {} {words}", recorded.path().display()));
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{words}");
    recorded
}

impl Recorded {
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("file.trace")
    }

    pub fn show(&self, options: &str) -> String {
        run(&format!("show {} {options}", self.path().display())).noted_success()
    }

    pub fn table(&self, name: &str, options: &str) -> Vec<Vec<String>> {
        csv(&self.show(&format!("--table {name} --format csv {options}")))
    }
}

/// The lines of a listing that are instructions: number, address, word and the rest.
fn instructions(listing: &str) -> Vec<(u64, String)> {
    let instruction = |line: &str| {
        let (number, rest) = line.split_at_checked(9)?;
        let number = number.trim().parse().ok()?;
        (!rest.trim_start().starts_with("**")).then(|| (number, rest.trim().into()))
    };
    listing.lines().filter_map(instruction).collect()
}

/// Where nothing is shown it is said why.
#[test]
fn nothing_to_show_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t").display().to_string();
    run(&format!("trace -o {trace} --unit work --units 2 :ev5/modes work")).quiet_success();
    for (words, reason) in [
        ("show --unit-number 5-9", "no instruction of the trace is selected by all options"),
        ("show --as instructions --range 0x0-0xf", "no instruction of the trace is selected by all options"),
        ("show --as functions --unit-number 7", "no instruction of the trace is selected by all options"),
        ("show --as addresses --unit-number 7", "no instruction of the trace is selected by all options"),
        ("strides --unit-number 7", "no instruction of the trace is selected by all options"),
    ] {
        let outcome = run(&format!("{words} {trace}"));
        assert_eq!(outcome.stderr, format!("pathlength: note: nothing to show: {reason}\n"), "{words}");
    }
    run(&format!("trace -o {trace} :ev5/tiny")).quiet_success();
    let outcome = run(&format!("show --unit-number 3 {trace}"));
    assert!(outcome.stderr.ends_with("the trace has no units of work: record it with --unit FUNCTION\n"));
}

#[test]
fn a_trace_adds_up_to_the_counts() {
    for program in [":ev5/modes work", ":ev56/modes factorial", ":ev5/halves", ":ev56/tiny"] {
        let recorded = record(program);
        for (by, name) in [("mnemonic", "instructions"), ("image", "images"), ("function", "functions")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("counts.csv");
            run(&format!("count --by {by} --format csv -o {} {program}", path.display())).noted_success();
            let shown = recorded.table(name, "");
            assert_eq!(shown, csv(&fs::read_to_string(path).unwrap()), "{program} by {by}");
        }
    }
}

#[test]
fn every_instruction_has_its_line_and_every_call_too() {
    let recorded = record(":ev5/modes work");
    let total = recorded.table("instructions", "").last().unwrap()[2].parse().unwrap();
    let numbers: Vec<u64> =
        instructions(&recorded.show("--as instructions")).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..=total).collect::<Vec<_>>());
    let calls = recorded.show("--as functions");
    assert_eq!(calls.lines().filter(|line| line.ends_with(" modes!work")).count(), 200);
    let only = recorded.show("--as instructions --function modes!work");
    let work = recorded.table("functions", "").into_iter().find(|row| row[0] == "work").unwrap();
    assert_eq!(instructions(&only).len().to_string(), work[2]);
}

/// Effects derived without values equal the recorded ones.
#[test]
fn effects_without_values_are_right() {
    let options = "--unit work --skip 3 --units 2";
    let [derived, recorded] =
        ["", "--values"].map(|values| record(&format!("{options} {values} :ev56/modes work")));
    let [derived, recorded] = [derived, recorded].map(|trace| instructions(&trace.show("--as instructions")));
    assert_eq!(derived.len(), recorded.len());
    let mut known = 0;
    for ((number, derived), (_, recorded)) in derived.iter().zip(&recorded) {
        match derived.split_once("//").map(|(_, effect)| effect.trim()) {
            // Only the address is known.
            Some(effect) if effect.starts_with('@') && !effect.contains(' ') => {
                assert!(recorded.contains(&format!("// {effect} ")), "{number}: {recorded}");
            }
            Some(_) => {
                assert_eq!(derived, recorded, "{number}");
                known += 1;
            }
            None => assert!(recorded.starts_with(derived.as_str()), "{number}: {recorded}"),
        }
    }
    assert!(known > recorded.len() / 10, "{known} of {}", recorded.len());
}

#[test]
fn units_choose_what_was_recorded_of_them() {
    let recorded = record("--unit work --skip 3 --units 4 :ev5/modes work");
    let units = recorded.table("units", "");
    assert_eq!(units[1..].iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["3", "4", "5", "6"]);
    let one = instructions(&recorded.show("--as instructions --unit-number 4"));
    assert_eq!(one.len().to_string(), units[2][3]);
    let two = recorded.show("--as instructions --unit-number 4-5 --with-callees --function work");
    assert_eq!(instructions(&two).len(), 2 * one.len());
    let calls = recorded.show("--as functions --unit-number 5-6");
    assert_eq!(calls.lines().filter(|line| line.ends_with(" modes!work")).count(), 2, "{calls}");
    assert!(calls.contains("unit of work 5 begins") && !calls.contains("unit of work 4"), "{calls}");
}

#[test]
fn addresses_are_all_there_in_every_format() {
    let recorded = record("--unit work --units 1 :ev5/modes work");
    let kinds: BTreeMap<String, usize> = recorded
        .table("kinds", "")
        .into_iter()
        .skip(1)
        .map(|row| (row[0].clone(), row[1].parse().unwrap()))
        .collect();
    let rows = csv(&recorded.show("--as addresses --format csv"));
    assert_eq!(rows[0], ["process", "thread", "kind", "address", "size"]);
    let count = |kind: &str| rows[1..].iter().filter(|row| row[2] == kind).count();
    assert_eq!(count("fetch"), kinds["instructions"]);
    assert_eq!((count("load"), count("store")), (kinds["loads"], kinds["stores"]));
    assert_eq!(recorded.show("--as addresses").lines().count(), rows.len());
    let json: serde_json::Value =
        serde_json::from_str(&recorded.show("--as addresses --format json")).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), rows.len() - 1);
    // The data of one address only.
    let address = rows.iter().find(|row| row[2] == "store").unwrap()[3].clone();
    let some = csv(&recorded.show(&format!("--as addresses --format csv --data-range {address}")));
    let same = rows.iter().filter(|row| row[3] == address).count();
    assert!(some.len() > same && some[1..].iter().all(|row| row[2] != "fetch"), "{some:?}");
}

#[test]
fn every_thread_is_shown() {
    let recorded = record(":ev5/threads");
    let threads = recorded.table("threads", "");
    let names: Vec<&str> = threads[1..].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["0.0", "0.1", "0.2", "0.3", "0.4", "total"]);
    let calls = |options: &str| {
        let shown = recorded.show(&format!("--as functions {options}"));
        shown.lines().filter(|line| line.ends_with(" threads!work")).count()
    };
    assert_eq!((calls(""), calls("--thread 0.0"), calls("--thread 0.2 --thread 0.3")), (400, 0, 200));
    assert_eq!(recorded.table("instructions", "--thread 0.1").last().unwrap()[2], threads[2][2]);
}

#[test]
fn what_is_not_in_the_trace_is_told() {
    let recorded = record(":ev5/tiny");
    let failure = |options: &str| run(&format!("show {} {options}", recorded.path().display())).failure();
    assert!(failure("--function nothing").contains("no function 'nothing'"));
    assert!(failure("--function mian").ends_with("; did you mean main?"));
    assert!(failure("--image tinny").ends_with("; did you mean tiny?"));
    assert!(failure("--thread 0.7").contains("no thread 0.7"));
    assert!(
        failure("--table nothing").contains("there is no table 'nothing'; the tables are trace, threads")
    );
    assert!(failure("--format csv").contains("name a directory with -o"));
    let program = crate::support::guest("ev5/tiny");
    assert!(run(&format!("show {}", program.display())).failure().contains("not a trace"));
    assert!(run("show /nowhere/file.trace").failure().contains("/nowhere/file.trace"));
    let usage = run(&format!("show {} --unit-number 5-3", recorded.path().display()));
    assert_eq!(usage.code(), 2, "{}", usage.stderr);
}

/// The readable parts of a damaged trace are shown, and the others are reported.
#[test]
fn damaged_traces_are_shown_as_far_as_they_can_be_read() {
    let recorded = record(":ev5/modes work");
    let whole = fs::read(recorded.path()).unwrap();
    let damaged = recorded.folder.path().join("damaged.trace");
    let show = |bytes: &[u8], view: &str| {
        fs::write(&damaged, bytes).unwrap();
        let outcome = run(&format!("show {} --as {view}", damaged.display()));
        assert!(matches!(outcome.code(), 0 | 1), "{}: {}", outcome.code(), outcome.stderr);
        outcome
    };
    let mut flipped = whole.clone();
    let last = flipped.len() - 100;
    flipped[last] ^= 1;
    let outcome = show(&flipped, "summary");
    assert_eq!(outcome.code(), 1);
    assert!(outcome.stderr.starts_with("pathlength: ") && outcome.stdout.contains("The trace"));
    let views = ["summary", "instructions", "functions", "addresses"].into_iter().cycle();
    for (view, bytes) in views.zip(crate::support::damaged(&whole, 7)).take(40) {
        let outcome = show(&bytes, view);
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
        assert_eq!(outcome.code() == 0, outcome.stderr.is_empty(), "{}", outcome.stderr);
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let recorded = record(":ev5/modes work");
    for view in ["instructions", "functions", "addresses"] {
        ends_when_nobody_reads(&format!("show {} --as {view}", recorded.path().display()));
    }
}

/// The tables of a summary, in a folder.
#[test]
fn a_summary_goes_to_a_folder() {
    let recorded = record(":ev5/tiny");
    let folder = recorded.folder.path().join("tables");
    recorded.show(&format!("--format csv -o {}", folder.display()));
    let has = |name: &str| Path::new(&folder).join(format!("{name}.csv")).exists();
    assert!(["threads", "instructions", "line-use", "page-use", "working-set"].into_iter().all(has));
}

#[test]
fn check_finds_nothing_in_what_was_recorded_and_tells_what_is_damaged() {
    for words in
        [":ev5/modes work", ":ev56/halves", ":ev5/threads", "--unit work --units 3 --values :ev5/modes work"]
    {
        let recorded = record(words);
        let checked = run(&format!("check {}", recorded.path().display())).quiet_success();
        let violations = checked.lines().find(|line| line.starts_with("violations")).unwrap();
        assert!(violations.ends_with(" 0"), "{words}: {checked}");
    }
    let recorded = record(":ev5/tiny");
    let mut bytes = fs::read(recorded.path()).unwrap();
    bytes.truncate(bytes.len() - 10);
    fs::write(recorded.path(), bytes).unwrap();
    let outcome = run(&format!("check {}", recorded.path().display()));
    assert_eq!(outcome.code(), 1);
    assert!(outcome.stderr.contains("at byte"), "{}", outcome.stderr);
}
