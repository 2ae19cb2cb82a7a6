//! `caches`, `mrc` and `machines`: a running program and the trace of the same run have the same results.

use std::fs;
use std::path::PathBuf;

use crate::support::{csv, listing, run};

/// A folder with a file for results.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The rows of the one table that `caches` writes.
    fn caches(&self, words: &str) -> Vec<Vec<String>> {
        self.table(&format!("caches {words}"))
    }

    /// The rows of the one table that a command writes.
    pub fn table(&self, words: &str) -> Vec<Vec<String>> {
        let file = self.path("table.csv");
        let (command, options) = words.split_once(' ').unwrap();
        run(&format!("{command} --format csv -o {} {options}", file.display())).noted_success();
        csv(&fs::read_to_string(file).unwrap())
    }

    /// Records a trace.
    pub fn trace(&self, words: &str) -> String {
        let file = self.path("file.trace");
        run(&format!("trace -o {} {words}", file.display())).quiet_success();
        file.display().to_string()
    }
}

/// The column with a heading, as numbers.
pub fn column(rows: &[Vec<String>], heading: &str) -> Vec<u64> {
    let at = rows[0].iter().position(|one| one == heading).unwrap_or_else(|| panic!("{:?}", rows[0]));
    rows[1..].iter().map(|row| row[at].parse().unwrap()).collect()
}

/// The one cell with a heading in a row.
pub fn cell(rows: &[Vec<String>], row: usize, heading: &str) -> f64 {
    let at = rows[0].iter().position(|one| one == heading).unwrap_or_else(|| panic!("{:?}", rows[0]));
    rows[row][at].parse().unwrap()
}

#[test]
fn a_program_that_runs_and_its_trace_have_the_same_misses() {
    let folder = Folder::new();
    let unit = "--unit work --skip 7 --units 50";
    let tables = ["", "--by function", "--by line", "--by instruction", "--classify"];
    for (plan, again) in [("", ""), (unit, "--unit work"), ("--from main --until 20000", "")] {
        let trace = folder.trace(&format!("{plan} :ev56/modes work"));
        for table in tables.iter().chain(["--by unit"].iter().filter(|_| plan == unit)) {
            let machines = "--machine alphastation500";
            let replayed = folder.caches(&format!("{machines} {table} {again} {trace}"));
            assert!(replayed.len() > 2, "{table}: {replayed:?}");
            for processors in 1..=2 {
                let words =
                    format!("{machines} {table} {plan} --host-processors {processors} :ev56/modes work");
                assert_eq!(folder.caches(&words), replayed, "{words}");
            }
        }
    }
}

#[test]
fn units_of_a_trace_are_chosen_as_those_of_a_program() {
    let folder = Folder::new();
    let trace = folder.trace("--unit work --skip 5 --units 100 :ev56/modes work");
    let selected = folder.caches(&format!("--by unit --unit work --skip 2 --units 30 {trace}"));
    assert_eq!(column(&selected, "unit"), (7..37).collect::<Vec<u64>>());
    assert_eq!(folder.caches("--by unit --unit work --skip 7 --units 30 :ev56/modes work"), selected);
    // Values in a trace are not addresses.
    let trace = folder.trace("--values --unit work --skip 7 --units 30 :ev56/modes work");
    assert_eq!(folder.caches(&format!("--by unit --unit work {trace}")), selected);
}

#[test]
fn every_instruction_is_fetched_and_every_table_adds_up() {
    let folder = Folder::new();
    let counted = folder.table("count --by function :ev5/modes work");
    let instructions = *column(&counted, "instructions").last().unwrap();
    let structures = folder.caches("--machine dec3000 :ev5/modes work");
    let fetched = &structures.iter().find(|row| row[1] == "icache").unwrap()[2];
    assert_eq!(*fetched, instructions.to_string());
    for by in ["function", "line", "instruction"] {
        let rows = folder.caches(&format!("--machine dec3000 --by {by} :ev5/modes work"));
        for (at, name) in structures[0].iter().enumerate().skip(6) {
            for structure in structures[1..].iter().filter(|structure| !structure[at].is_empty()) {
                let lines = column(&rows, &format!("{} {name}", structure[1]));
                let (total, places) = lines.split_last().unwrap();
                assert_eq!(total.to_string(), structure[at], "{by}, {} {name}", structure[1]);
                assert_eq!(places.iter().sum::<u64>(), *total, "{by}, {} {name}", structure[1]);
            }
        }
        for structure in &structures[1..] {
            let misses = column(&rows, &format!("{} misses", structure[1]));
            let (total, places) = misses.split_last().unwrap();
            assert_eq!(total.to_string(), structure[3], "{by}, {}", structure[1]);
            assert_eq!(places.iter().sum::<u64>(), *total, "{by}, {}", structure[1]);
        }
        let instructions = column(&rows, "instructions");
        assert_eq!(instructions.last().unwrap().to_string(), *fetched, "{by}");
    }
    let classes = folder.caches("--machine dec3000 --classify :ev5/modes work");
    for (row, plain) in classes[1..].iter().zip(&structures[1..]) {
        assert_eq!(row[..6], plain[..6]);
        let classes: u64 = row[6..9].iter().map(|count| count.parse::<u64>().unwrap()).sum();
        assert_eq!(classes.to_string(), row[3]);
    }
}

#[test]
fn several_machines_hear_the_same_run() {
    let folder = Folder::new();
    let machines = ["alphastation500", "dec3000", "qemu"];
    let all = folder.caches(&format!("--machine {} :ev5/modes work", machines.join(" --machine ")));
    let each = machines.map(|machine| folder.caches(&format!("--machine {machine} :ev5/modes work")));
    assert_eq!(all[1..].to_vec(), each.iter().flat_map(|rows| rows[1..].to_vec()).collect::<Vec<_>>());
    let tables = folder.path("tables");
    let words =
        format!("caches --by function --machine dec3000 --machine qemu --format csv -o {}", tables.display());
    run(&format!("{words} :ev5/modes work")).quiet_success();
    assert_eq!(listing(&tables), ["functions-dec3000.csv", "functions-qemu.csv"]);
}

#[test]
fn threads_are_simulated_and_selected() {
    let folder = Folder::new();
    let rows = folder.caches("--by unit --unit work :ev56/threads");
    assert_eq!(column(&rows, "unit").len(), 400);
    let trace = folder.trace(":ev56/threads");
    let all = folder.caches(&format!("--by function {trace}"));
    let one = folder.caches(&format!("--by function --thread 0.1 {trace}"));
    let count = |rows: &[Vec<String>]| *column(rows, "instructions").last().unwrap();
    assert!(count(&one) > 0 && 4 * count(&one) < count(&all));
    assert_eq!(folder.caches(&format!("--by function --process 0 {trace}")), all);
}

#[test]
fn children_are_not_simulated() {
    let folder = Folder::new();
    let counted = folder.table("count --by function :ev5/forks");
    for processors in 1..=2 {
        let rows = folder.caches(&format!("--by function --host-processors {processors} :ev5/forks"));
        assert_eq!(column(&rows, "instructions").last(), column(&counted, "instructions").last());
    }
}

#[test]
fn a_machine_can_be_a_file() {
    let folder = Folder::new();
    let file = folder.path("mine.toml");
    fs::write(&file, "base = \"dec3000\"\ncaches.icache.size = \"16K\"\n").unwrap();
    let mine = folder.caches(&format!("--machine {} :ev5/modes work", file.display()));
    let known = folder.caches("--machine dec3000 :ev5/modes work");
    assert_eq!(mine[1][0], "mine");
    let misses = |rows: &[Vec<String>]| column(rows, "misses")[0];
    assert!(misses(&mine) < misses(&known));
    let listed = run("machines").quiet_success();
    assert!(listed.contains("dec3000") && listed.contains("alphaserver8400"), "{listed}");
    let line = |name: &str| listed.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
    assert!(line("alpha21264").contains("out of order") && line("dec3000").contains("in order"), "{listed}");
    assert!(!line("qemu").contains("order") && line("pentium-pro").contains("yes, --time"), "{listed}");
}

#[test]
fn impossible_simulations_are_rejected() {
    let folder = Folder::new();
    let trace = folder.trace("--unit work :ev56/modes work");
    let plain = {
        let other = Folder::new();
        let path = other.trace(":ev56/tiny");
        fs::copy(path, folder.path("plain.trace")).unwrap();
        folder.path("plain.trace").display().to_string()
    };
    let machine = |name: &str, text: &str| {
        fs::write(folder.path(name), text).unwrap();
        folder.path(name).display().to_string()
    };
    let odd = machine("odd.toml", "base = \"dec3000\"\ncaches.icache.ways = 3\n");
    let broken = machine("broken.toml", "title = \"A\nB\"");
    let misspelt = machine("misspelt.toml", "base = \"dec3000\"\ncaches.icache.weys = 1\n");
    let cases = [
        ("--machine vax :ev5/tiny".to_string(), "no machine is called \"vax\""),
        ("--machine missing.toml :ev5/tiny".into(), "missing.toml"),
        (format!("--machine {odd} :ev5/tiny"), "caches.icache."),
        (format!("--machine {misspelt} :ev5/tiny"), "unknown field `weys`"),
        (format!("--machine {broken} :ev5/tiny"), "at line 2"),
        ("--by unit :ev5/tiny".into(), "--unit FUNCTION"),
        ("--unit nowhere :ev5/tiny".into(), "has a function 'nowhere'"),
        ("--unit work --skip 500 :ev5/modes work".into(), "was called 200 times"),
        ("--from nowhere :ev5/tiny".into(), "has a symbol 'nowhere'"),
        ("--thread 0.0 :ev5/tiny".into(), "choose from a trace"),
        ("--by function --format csv --machine qemu --machine dec3000 :ev5/tiny".into(), "-o"),
        (format!("{trace} argument"), "an argument is for a program"),
        (format!("--unit other {trace}"), "are calls of 'work', not of 'other'"),
        (format!("--unit work {plain}"), "has no units of work"),
        (format!("--thread 0.9 {plain}"), "no thread 0.9"),
        (format!("--unit work --skip 1000 {trace}"), "has no unit of work 1000"),
    ];
    for (words, problem) in cases {
        let sentence = run(&format!("caches {words}")).failure();
        assert!(sentence.contains(problem), "{words}: {sentence}");
    }
    let wrong_usage = [
        (format!("--cpu ev5 {trace}"), "--cpu is for a program"),
        (format!("--from main {trace}"), "--from is for a program"),
    ];
    for (words, problem) in wrong_usage {
        let refused = run(&format!("caches {words}"));
        assert_eq!(refused.code(), 2, "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(problem), "{words}: {}", refused.stderr);
    }
}

/// A truncated trace, and a program that is killed, are simulated to their end, and the end is reported.
#[test]
fn partial_results_are_not_shown_as_whole() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/modes work");
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 9]).unwrap();
    let outcome = run(&format!("caches {trace}"));
    assert_eq!(outcome.code(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("pathlength: "), "{}", outcome.stderr);
    let crashed = run("caches :ev56/modes null");
    assert_eq!(crashed.code(), 1, "{}", crashed.stderr);
    let results = "A signal ended the program: these are its results until then.\npathlength: ";
    assert!(crashed.stderr.contains(results), "{}", crashed.stderr);
    assert!(crashed.stderr.contains("null_pointer"), "{}", crashed.stderr);
    let file = folder.path("table.csv");
    let killed = run(&format!("caches -o {} :ev56/modes raise 15", file.display()));
    assert_eq!(killed.code(), 128 + 15);
    assert!(fs::read_to_string(&file).unwrap().contains("icache"));
}

#[test]
fn miss_ratio_curves_agree_with_caches_of_each_size() {
    let folder = Folder::new();
    let tables = folder.path("mrc");
    let words = format!("mrc --largest 64K --format csv -o {} :ev5/modes work", tables.display());
    run(&words).noted_success();
    assert_eq!(listing(&tables), ["mrc-both.csv", "mrc-code.csv", "mrc-data.csv"]);
    let counted = folder.table("count --by function :ev5/modes work");
    let instructions = *column(&counted, "instructions").last().unwrap() as f64;
    let code = csv(&fs::read_to_string(tables.join("mrc-code.csv")).unwrap());
    let machine = folder.path("one.toml");
    for (size, ways) in [("4K", 1), ("8K", 2), ("32K", 8)] {
        let text = format!("base = \"qemu\"\ncaches.icache.size = \"{size}\"\ncaches.icache.ways = {ways}\n");
        fs::write(&machine, text).unwrap();
        let one = folder.table(&format!("caches --machine {} :ev5/modes work", machine.display()));
        let bytes = (size.trim_end_matches('K').parse::<u64>().unwrap() << 10).to_string();
        let row = code.iter().position(|row| row[0] == bytes).unwrap();
        let heading = if ways == 1 { "1 way".into() } else { format!("{ways} ways") };
        let misses = cell(&code, row, &heading) * instructions / 1000.0;
        assert_eq!(misses.round() as u64, column(&one, "misses")[0], "{size}, {ways}");
    }
    // One table needs no folder.
    let alone = folder.path("alone.csv");
    let words =
        format!("mrc --streams code --largest 64K --format csv -o {} :ev5/modes work", alone.display());
    run(&words).noted_success();
    assert_eq!(csv(&fs::read_to_string(alone).unwrap()), code);
    let two = run("mrc --streams data,code --largest 2K :ev5/tiny").quiet_success();
    assert!(two.find("Code:") < two.find("Data:") && !two.contains("Code and data"), "{two}");
    let page = folder.path("page.html");
    run(&format!("mrc -o {} :ev5/tiny", page.display())).quiet_success();
    let text = fs::read_to_string(page).unwrap();
    assert!(text.contains("How large must a cache be for tiny?") && text.contains("fully associative"));
}
