//! `count --children`: all processes of a program, and units of work in them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Outcome, command, csv, ends_within, file, listing, outcome, pathlength, run, text};

/// A table as CSV, from a file, so that the program's own output is not in it.
fn table(options: &[&str], words: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let mut command = counting(options, &path);
    command.arg(crate::support::guest("ev56/family")).args(words.split_whitespace());
    outcome(command).noted_success();
    csv(&fs::read_to_string(path).unwrap())
}

fn counting(options: &[&str], path: &Path) -> Command {
    let mut command = pathlength(["count"]);
    command.args(options).args(["--format", "csv", "-o"]).arg(path);
    command
}

fn by<'a>(rows: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--children", "--by", rows], more].concat()
}

fn column<'t>(table: &'t [Vec<String>], heading: &str) -> Vec<&'t str> {
    let at = table[0].iter().position(|name| name == heading).unwrap_or_else(|| panic!("{:?}", table[0]));
    table[1..].iter().map(|row| row[at].as_str()).collect()
}

fn instructions(table: &[Vec<String>], row: &str) -> u64 {
    let row = table[1..].iter().position(|cells| cells[0] == row).unwrap_or_else(|| panic!("no row {row}"));
    column(table, "instructions")[row].parse().unwrap()
}

/// What `work` executes when it is called so often, with so many steps in all: by the counts of a single call in a program
/// of one process.
fn in_work(calls: u64, steps: u64) -> u64 {
    let one = instructions(&table(&["--by", "function"], "work"), "work");
    let (a_step, a_call) = (one / 70_000, one % 70_000);
    assert!((3..20).contains(&a_step) && a_call < 20, "{one}");
    calls * a_call + steps * a_step
}

#[test]
fn all_processes_are_counted() {
    let processes = table(&by("process", &[]), "serve");
    assert_eq!(column(&processes, "process"), ["1", "1.1", "1.2", "1.3", "total"]);
    let ends =
        ["exited with status 0", "exited with status 1", "exited with status 2", "exited with status 3"];
    assert_eq!(column(&processes, "end")[..4], ends);
    let counts: Vec<u64> = column(&processes, "instructions").iter().map(|n| n.parse().unwrap()).collect();
    assert_eq!(counts[4], counts[..4].iter().sum::<u64>());
    let functions = table(&by("function", &[]), "serve");
    assert_eq!(instructions(&functions, "work"), in_work(9, 67_000));
    for rows in ["function", "image", "line", "instruction", "component", "process"] {
        let table = table(&by(rows, &[]), "serve");
        let counts = column(&table, "instructions");
        let (total, rest) = counts.split_last().unwrap();
        assert_eq!(total.parse::<u64>().unwrap(), counts_sum(rest), "{rows}");
        assert_eq!(*total, counts_total(&processes), "{rows}");
    }
    assert_eq!(processes, table(&by("process", &[]), "serve"));
}

fn counts_sum(counts: &[&str]) -> u64 {
    counts.iter().map(|n| n.parse::<u64>().unwrap()).sum()
}

fn counts_total(processes: &[Vec<String>]) -> &str {
    column(processes, "instructions").last().unwrap()
}

#[test]
fn threads_and_executed_programs_are_counted() {
    assert_eq!(instructions(&table(&by("function", &[]), "threads"), "work"), in_work(3, 120_000));
    assert_eq!(instructions(&table(&by("function", &[]), "executes"), "work"), in_work(1, 70_000));
    let processes = table(&by("process", &[]), "executes");
    assert_eq!(column(&processes, "process"), ["1", "1.1", "total"]);
    // What it executed before is its own, too.
    let alone = table(&["--by", "image"], "work");
    assert!(instructions(&processes, "1.1") > instructions(&alone, "total"));
}

#[test]
fn what_killed_processes_counted_is_kept() {
    for (how, end) in
        [("killed", "killed, or replaced by a program of the host"), ("ended", "killed by signal 15")]
    {
        let processes = table(&by("process", &[]), how);
        assert_eq!(column(&processes, "end")[1], end);
        assert_eq!(instructions(&table(&by("function", &[]), how), "work"), in_work(1, 50_000), "{how}");
    }
}

#[test]
fn interpreted_and_compiled_code_count_alike() {
    let unit = ["--unit", "request"];
    let units = table(&by("unit", &unit), "serve");
    assert_eq!(column(&units, "process"), ["1.1", "1.2", "1.2", "1.3", "1.3", "1.3"]);
    let lengths: Vec<u64> = column(&units, "instructions").iter().map(|n| n.parse().unwrap()).collect();
    let work = |steps| in_work(1, steps);
    let around = lengths[0] - work(500);
    assert!(around < 20);
    assert_eq!(
        lengths[1..],
        [work(1000), work(1000), work(1500), work(1500), work(1500)].map(|n| n + around)
    );
}

/// The same in one process, where units are counted otherwise.
#[test]
fn classes_come_from_the_program() {
    let rules = [
        "--unit",
        "begin_transaction through commit_transaction",
        "--class",
        "mark_*()",
        "--class",
        "statement($1) ~ (?<writes>update|insert)",
    ];
    let shares = |children: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables");
        let mut command = counting(&[children, &rules].concat(), &path);
        command.arg(crate::support::guest("ev56/family")).arg("transactions");
        outcome(command).noted_success();
        csv(&fs::read_to_string(path.join("classes.csv")).unwrap())
    };
    let classes = shares(&["--children"]);
    let mut counted: Vec<_> = column(&classes, "class").into_iter().zip(column(&classes, "units")).collect();
    counted.sort_unstable();
    let expected = [
        ("(outside units)", ""),
        ("begin_transaction through commit_transaction", "1"),
        ("payment", "1"),
        ("total", "6"),
        ("writes", "4"),
    ];
    assert_eq!(counted, expected);
    let sums: Vec<u64> = column(&classes, "instructions").iter().map(|n| n.parse().unwrap()).collect();
    let (total, parts) = sums.split_last().unwrap();
    assert_eq!(*total, parts.iter().sum::<u64>());
    let single = shares(&[]);
    for name in ["payment", "writes", "(outside units)", "total"] {
        assert_eq!(instructions(&classes, name), instructions(&single, name), "{name}");
    }
}

#[test]
fn units_end_at_the_entry_or_the_return_of_their_last_function() {
    let lengths = |unit: &str| {
        let units = table(&by("unit", &["--unit", unit]), "transactions");
        let ended: Vec<String> = column(&units, "ended").into_iter().map(String::from).collect();
        let lengths: Vec<u64> = column(&units, "instructions").iter().map(|n| n.parse().unwrap()).collect();
        (lengths, ended)
    };
    let (to, ended) = lengths("begin_transaction to commit_transaction");
    let (through, _) = lengths("begin_transaction through commit_transaction");
    assert_eq!(ended, ["by return", "by return", "by return", "by return", "left", "by return"]);
    let (commit, _) = lengths("commit_transaction");
    for (with, without) in through.iter().zip(&to).enumerate().filter(|(n, _)| *n != 4).map(|(_, pair)| pair)
    {
        assert_eq!(with - without, commit[0]);
    }
    assert_eq!(through[4], to[4]);
}

#[test]
fn saved_counts_have_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.counts");
    run(&format!("count --children -o {} :ev56/family serve", path.display())).noted_success();
    assert!(!folder.path().join("run.counts.d").exists());
    let shown = run(&format!("count --by process --format csv {}", path.display())).noted_success();
    assert_eq!(csv(&shown), table(&by("process", &[]), "serve"));
}

/// Starts `family waits` in a process group of its own, and waits until it has done its work.
fn waiting(options: &str, temporary: &Path) -> (std::process::Child, fs::File) {
    let (stdout, stderr) = (file(), file());
    let mut command = command(&format!("count --children {options} :ev56/family waits"));
    command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap()).env("TMPDIR", temporary);
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn().unwrap();
    for _ in 0..1000 {
        if text(&stdout).contains("ready") {
            // The other process does the same work.
            sleep(Duration::from_millis(500));
            return (child, stderr);
        }
        sleep(Duration::from_millis(20));
    }
    kill_group(&child, libc::SIGKILL);
    child.wait().unwrap();
    panic!("{}", text(&stderr));
}

fn kill_group(child: &std::process::Child, signal: i32) {
    // SAFETY: the child has not been waited for, so that the group is its own.
    assert_eq!(unsafe { libc::kill(-(child.id() as i32), signal) }, 0);
}

#[test]
fn interrupted_counts_are_shown() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut child, stderr) = waiting("--by process", temporary.path());
    kill_group(&child, libc::SIGINT);
    let status = ends_within(&mut child, Duration::from_secs(20)).expect("it ends");
    let outcome = Outcome { status, stdout: String::new(), stderr: text(&stderr), has_format: false };
    assert_eq!(outcome.code(), 128 + libc::SIGINT);
    let rows =
        outcome.stderr.lines().filter(|line| line.starts_with('1') && line.ends_with("killed by signal 2"));
    assert_eq!(rows.count(), 2, "{}", outcome.stderr);
    assert_eq!(listing(temporary.path()), [""; 0]);
}

/// Nobody would read what they count in a temporary folder, which the next command removes.
#[test]
fn processes_end_with_a_killed_command() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut child, _) = waiting("", temporary.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let left = fs::read_dir(temporary.path()).unwrap().next().expect("the folder is left").unwrap();
    let folder = fs::File::open(left.path()).unwrap();
    // Each process of the program holds the folder's lock.
    let is_free = |_| {
        sleep(Duration::from_millis(20));
        folder.try_lock().is_ok()
    };
    assert!((0..500).any(is_free), "the processes go on");
}

#[test]
fn counts_outlive_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.counts");
    let (mut child, _) = waiting(&format!("-o {}", path.display()), folder.path());
    kill_group(&child, libc::SIGKILL);
    child.wait().unwrap();
    let left = folder.path().join("run.counts.d");
    let shown = run(&format!("count --by function --format csv {}", left.display())).noted_success();
    assert_eq!(instructions(&csv(&shown), "work"), in_work(2, 60_000));
    let again = run(&format!("count --children -o {} :ev56/family serve", path.display())).failure();
    assert!(again.contains("was interrupted"), "{again}");
    run(&format!("count --children -o {} {}", path.display(), left.display())).noted_success();
    let saved = run(&format!("count --by process --format csv {}", path.display())).noted_success();
    assert_eq!(column(&csv(&saved), "process"), ["1", "1.1", "total"]);
}

#[test]
fn wrong_options_say_what_to_do() {
    for (words, part) in [
        ("count --by process :ev56/family", "add --children"),
        ("count --class f() :ev56/family", "--unit FUNCTION"),
        ("count --children --unit nowhere :ev56/family", "a function 'nowhere'"),
    ] {
        let outcome = run(words);
        assert!(outcome.code() == 1 && outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    let wrong = run("count --unit request --class request($9) :ev56/family");
    assert!(wrong.code() == 2 && wrong.stderr.contains("$1 to $6"), "{}", wrong.stderr);
}
