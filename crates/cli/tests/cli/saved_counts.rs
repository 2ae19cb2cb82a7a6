//! Saved counts: they show and compare as the run that they are of; and the limit on growth of `compare`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::caches::Folder;
use crate::support::{csv, run};

/// Saves the counts of a run.
fn save(folder: &Folder, name: &str, words: &str) -> PathBuf {
    let file = folder.path(name);
    run(&format!("count -o {} {words}", file.display())).noted_success();
    file
}

/// What a command prints on standard output, which may not fail.
fn printed(words: &str) -> String {
    run(words).noted_success()
}

/// The same without what the program prints first, and without the note on the environment.
fn tables(words: &str) -> String {
    let printed = printed(words);
    let tables = printed[printed.find('─').expect("a table")..].split_inclusive('\n');
    tables.filter(|line| !line.starts_with("The environment of the run: ")).collect()
}

#[test]
fn saved_counts_show_what_the_run_did() {
    let folder = Folder::new();
    for unit in ["", "--unit work --units 20"] {
        let file = save(&folder, "run.counts", &format!("{unit} :ev56/modes work"));
        for by in ["", "--by mnemonic", "--by function", "--by image", "--by group", "--by unit"] {
            if by == "--by unit" && unit.is_empty() {
                continue;
            }
            let live = tables(&format!("count {by} {unit} :ev56/modes work"));
            assert_eq!(tables(&format!("count {by} {}", file.display())), live, "{unit} {by}");
        }
        let again = save(&folder, "again.counts", &format!("{unit} :ev56/modes work"));
        assert!(fs::read(file).unwrap() == fs::read(again).unwrap(), "the same run has the same counts");
    }
    let file = save(&folder, "run.counts", ":ev56/modes work");
    let output = run(&format!("count --by unit {}", file.display()));
    assert!(output.code() != 0 && output.stderr.contains("unit"), "{}", output.stderr);
}

/// A trace has the counts of its run, but for lines and processes.
#[test]
fn counts_of_a_trace_are_those_of_the_run() {
    let folder = Folder::new();
    let trace = folder.path("run.trace");
    run(&format!("trace -o {} :ev56/modes work", trace.display())).quiet_success();
    let trace = trace.display();
    for by in
        ["", "--by mnemonic", "--by function", "--by image", "--by group", "--by line", "--by instruction"]
    {
        assert_eq!(tables(&format!("count {by} {trace}")), tables(&format!("count {by} :ev56/modes work")));
    }
    let counts = folder.path("run.counts");
    run(&format!("count -o {} {trace}", counts.display())).quiet_success();
    assert_eq!(tables(&format!("count {}", counts.display())), tables(&format!("count {trace}")));
    for (words, part) in [
        (format!("count --by line {}", counts.display()), "no lines"),
        (format!("count --unit work {trace}"), "--unit and --class are for a program"),
        (
            format!("compare --unit work {trace} {}", counts.display()),
            "both sides were recorded or counted before",
        ),
    ] {
        let failure = run(&words).failure();
        assert!(failure.contains(part), "{failure}");
    }
    for words in
        [format!("count --cpu ev4 {trace}"), format!("compare --cpu ev4 {trace} {}", counts.display())]
    {
        let refused = run(&words);
        assert_eq!(refused.code(), 2, "{words}");
        assert!(refused.stderr.contains("--cpu is for a program that is run"), "{}", refused.stderr);
    }
    let failure = run(&format!("count {trace} work")).failure();
    assert!(failure.contains("an argument is for a program that is run"), "{failure}");
    for command in ["caches", "strides", "calls", "sharing", "spike profile -o x"] {
        let failure = run(&format!("{command} {}", counts.display())).failure();
        assert!(failure.contains("holds saved counts"), "{command}: {failure}");
    }
}

#[test]
fn programs_saved_counts_and_traces_compare_alike() {
    let folder = Folder::new();
    let side = |build: &str| {
        let trace = folder.path(&format!("{build}.trace"));
        run(&format!("trace -o {} :{build}/modes work", trace.display())).quiet_success();
        let counts = save(&folder, &format!("{build}.counts"), &format!(":{build}/modes work"));
        [trace, counts]
    };
    let (first, second) = (side("ev5"), side("ev56"));
    let compared = |a: &Path, b: &Path| {
        let file = folder.path("tables");
        run(&format!("compare --format csv -o {} {} {}", file.display(), a.display(), b.display()))
            .noted_success();
        let read = |name: &str| fs::read_to_string(file.join(name)).unwrap();
        // The headings name the files.
        let rows = |text: String| text.split_once('\n').unwrap().1.to_owned();
        ["instructions.csv", "functions.csv"].map(|name| rows(read(name)))
    };
    let expected = compared(&first[1], &second[1]);
    // `ldwu`, `sextw` and `stw` come, others go.
    assert!(expected[0].contains("ldwu,0,"), "{expected:?}");
    for (a, b) in [(0, 0), (0, 1), (1, 0)] {
        assert_eq!(compared(&first[a], &second[b]), expected, "{a} {b}");
    }
    let file = folder.path("live");
    let programs = "--format csv -o";
    run(&format!("compare {programs} {} :ev5/modes :ev56/modes -- work", file.display())).noted_success();
    let live = fs::read_to_string(file.join("functions.csv")).unwrap();
    assert_eq!(live.split_once('\n').unwrap().1, expected[1]);
}

#[test]
fn growth_beyond_the_limit_has_a_status_of_its_own() {
    let folder = Folder::new();
    // The original build executes more instructions.
    let before = save(&folder, "before.counts", ":ev56/modes work");
    let after = save(&folder, "after.counts", ":ev5/modes work");
    let (before, after) = (before.display(), after.display());
    let check = |options: &str, code: i32, says: &str| {
        let output = run(&format!("compare {options} {before} {after}"));
        assert_eq!(output.code(), code, "{options}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{options}: {}", output.stderr);
    };
    check("", 0, "");
    check("--fail-above 99%", 0, "");
    check("--fail-above 0.01%", 3, "grew from");
    check("--fail-above 1", 3, "work in program: +");
    check("--fail-above 0% --function work", 3, "work grew from");
    check("--fail-above 1000000000 --function work", 0, "");
    check("--fail-above 0% --function no_such", 1, "no_such");
    check("--fail-above never", 2, "--fail-above");
    let same = run(&format!("compare --fail-above 0% {before} {before}"));
    assert_eq!((same.code(), same.stderr.as_str()), (0, ""));
    let shrunk = run(&format!("compare --fail-above 0% {after} {before}"));
    assert_eq!((shrunk.code(), shrunk.stderr.as_str()), (0, ""));
    let markdown = printed(&format!("compare --format markdown {before} {after}"));
    assert!(markdown.contains("| function") && markdown.contains("| work |"), "{markdown}");
}

#[test]
fn damaged_counts_are_refused() {
    let folder = Folder::new();
    let file = save(&folder, "run.counts", ":ev56/modes work");
    let whole = fs::read(&file).unwrap();
    let damaged = folder.path("damaged.counts");
    let mut refused = 0;
    for place in (0..whole.len()).step_by(whole.len() / 20) {
        for bytes in [whole[..place].to_vec(), {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            bytes
        }] {
            fs::write(&damaged, bytes).unwrap();
            let output = run(&format!("count {}", damaged.display()));
            assert!([1, 126, 127].contains(&output.code()), "{place}: {}", output.stderr);
            assert!(
                output.stderr.contains("damaged.counts") && !output.stderr.contains("panicked"),
                "{}",
                output.stderr
            );
            refused += 1;
        }
    }
    assert!(refused >= 40);
}

#[test]
fn saved_counts_have_no_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.counts");
    run(&format!("count -o {} :ev5/tiny", path.display())).quiet_success();
    for by in ["line", "instruction"] {
        let sentence = run(&format!("count --by {by} {}", path.display())).failure();
        assert!(sentence.contains("count the program again"), "{sentence}");
    }
}

/// Classes of units and processes, counted or saved.
#[test]
fn saved_counts_have_the_classes_of_the_run() {
    let folder = Folder::new();
    let units = "--unit begin_transaction --unit commit_transaction";
    for all in ["", "--children"] {
        let words = format!("{all} {units} :ev56/family transactions");
        let file = save(&folder, "classes.counts", &words);
        for by in ["", "--by owner", "--by function", "--by mnemonic", "--by component"] {
            let live = tables(&format!("count {by} {words}"));
            assert_eq!(tables(&format!("count {by} {}", file.display())), live, "{by} {all}");
        }
        let owners = printed(&format!("count --format csv --by owner {}", file.display()));
        let rows = csv(&owners);
        let (total, parts) = rows[1..].split_last().unwrap();
        for column in 1..rows[0].len() {
            let number = |row: &Vec<String>| row[column].parse::<u64>().unwrap();
            assert_eq!(parts.iter().map(number).sum::<u64>(), number(total), "{owners}");
        }
        let of_owners: u64 = total[2..].iter().map(|cell| cell.parse::<u64>().unwrap()).sum();
        assert_eq!(of_owners, total[1].parse::<u64>().unwrap(), "{owners}");
        let same = printed(&format!("compare {0} {0}", file.display()));
        assert!(same.contains("begin_transaction") && same.contains("(outside units)"), "{same}");
    }
}
