//! `sample`: samples agree with exact counts, and with what is known of a program.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{command, csv, guest, outcome, pathlength, run};

/// A table of `sample`.
fn table(options: &str, words: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let mut command = pathlength(["sample", "--format", "csv", "-o"]);
    command.arg(&path).args(options.split_whitespace());
    let mut words = words.split_whitespace();
    command.arg(guest(words.next().unwrap())).args(words);
    outcome(command).noted_success();
    csv(&fs::read_to_string(path).unwrap())
}

fn cell(table: &[Vec<String>], row: &str, heading: &str) -> f64 {
    let at = table[0].iter().position(|name| name == heading).unwrap_or_else(|| panic!("{:?}", table[0]));
    let row = table[1..].iter().find(|cells| cells[0] == row).unwrap_or_else(|| panic!("{row}: {table:?}"));
    row[at].parse().unwrap()
}

/// The chi-square statistic of samples against exact counts, and its degrees of freedom: rows with fewer than five expected
/// samples are one.
fn chi_square(table: &[Vec<String>]) -> (f64, usize) {
    let rows: Vec<&str> =
        table[1..].iter().map(|row| row[0].as_str()).filter(|name| *name != "total").collect();
    let pairs: Vec<[f64; 2]> =
        rows.iter().map(|row| ["samples", "instructions"].map(|heading| cell(table, row, heading))).collect();
    let [samples, all] = [0, 1].map(|column| pairs.iter().map(|pair| pair[column]).sum::<f64>());
    let (mut rest, mut sum, mut groups) = ([0.0, 0.0], 0.0, 0);
    let mut add = |found: f64, expected: f64| {
        sum += (found - expected).powi(2) / expected;
        groups += 1;
    };
    for [found, executed] in pairs {
        let expected = samples * executed / all;
        if expected >= 5.0 {
            add(found, expected);
        } else {
            rest = [rest[0] + found, rest[1] + expected];
        }
    }
    if rest[1] >= 5.0 {
        add(rest[0], rest[1]);
    }
    (sum, groups - 1)
}

/// Samples by instructions do not depend on the host: a run has the same ones each time, so that this test cannot fail by chance.
#[test]
fn samples_by_instructions_agree_with_exact_counts() {
    for (program, every) in [("ev56/sampled 100", 2000), ("ev56/calls", 100), ("ev5/faults", 100)] {
        let functions = table(&format!("--every {every} --by function"), program);
        let (chi, freedom) = chi_square(&functions);
        // Less than one in 10,000 independent samples would exceed it; those at regular distances differ less.
        let limit = freedom as f64 + 4.0 * (2.0 * freedom as f64).sqrt() + 5.0;
        assert!(freedom >= 2 && chi < limit, "{program}: {chi} of {freedom}: {functions:?}");
        assert_eq!(table(&format!("--every {every} --by function"), program), functions, "the same samples");
    }
}

#[test]
fn shares_are_those_of_the_program_however_it_is_sampled() {
    // A fast machine executes 12,000 rounds in 80 ms.
    for (options, rounds) in
        [("--every 100000", 12_000), ("--every 4ms", 100_000), ("--every 4ms --exact", 50_000)]
    {
        let functions = table(&format!("{options} --by function"), &format!("ev56/sampled {rounds}"));
        let samples = ["one", "two", "four"].map(|name| cell(&functions, name, "samples"));
        let all: f64 = samples.iter().sum();
        assert!(all > 20.0, "{functions:?}");
        for (share, known) in samples.map(|samples| samples / all).into_iter().zip([1.0, 2.0, 4.0]) {
            let (known, error) = (known / 7.0, 5.0 * (0.25 / all).sqrt());
            assert!((share - known).abs() < error, "{options}: {share} {known} {error}: {functions:?}");
        }
    }
}

#[test]
fn chains_of_calls_are_followed_and_killed_processes_keep_their_samples() {
    let processes = table("--every 5000 --by process", "ev56/sampled 300 2");
    let samples = ["1", "1.1", "1.2"].map(|process| cell(&processes, process, "samples"));
    assert!(samples.iter().all(|one| (0.9..1.1).contains(&(one / samples[0]))), "{processes:?}");
    let functions = table("--every 5000 --by function --inclusive", "ev56/sampled 300 2");
    let share = |name: &str| cell(&functions, name, "share");
    assert!(share("all") > 95.0 && share("main") > 95.0, "{functions:?}");
    assert!((50.0..65.0).contains(&share("four")), "{functions:?}");
    let callers = table("--every 5000 --by caller --function four", "ev56/sampled 300");
    assert_eq!(callers[1][..2], ["four", "all"], "{callers:?}");
}

/// A program with its processes, which are its group.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for, so that the number is its group's.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGKILL) };
        self.0.wait().unwrap();
    }
}

#[test]
fn a_running_program_is_sampled_and_goes_on() {
    let mut program = command("run :ev56/sampled 100000000 1");
    program.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = ProcessGroup(program.spawn().unwrap());
    sleep(Duration::from_millis(1500));
    let (id, folder) = (running.0.id().to_string(), tempfile::tempdir().unwrap());
    let path = folder.path().join("table.csv");
    for options in ["--by function --inclusive", "--children --by process", "--exact --by function"] {
        let mut sampling = pathlength(["sample", "--attach", &id, "--duration", "1", "-o"]);
        sampling.arg(&path).args(["--format", "csv"]).args(options.split_whitespace());
        outcome(sampling).noted_success();
        let rows = csv(&fs::read_to_string(&path).unwrap());
        if options.contains("inclusive") {
            assert!(cell(&rows, "all", "share") > 90.0, "{rows:?}");
        } else if options.contains("children") {
            assert!(rows.len() >= 3, "{rows:?}");
        } else {
            assert!(cell(&rows, "four", "samples") > 0.0, "{rows:?}");
        }
    }
    assert!(running.0.try_wait().unwrap().is_none(), "it goes on");
}

#[test]
fn samples_are_written_for_other_tools() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, options: &[&str]| {
        let path = folder.path().join(name);
        let mut command = pathlength(["sample", "--every", "5000", "-o"]);
        command.arg(&path).args(options).arg(guest("ev56/sampled")).arg("200");
        outcome(command).noted_success();
        fs::read(path).unwrap()
    };
    let tree = ["--by", "call-tree"];
    let folded = String::from_utf8(written("a.folded", &tree)).unwrap();
    assert!(folded.lines().any(|line| line.contains("main;") && line.contains("all;four ")), "{folded}");
    assert!(String::from_utf8(written("a.html", &tree)).unwrap().contains("four"));
    assert!(written("a.pb.gz", &tree).starts_with(&[0x1f, 0x8b]));
    let firefox = String::from_utf8(written("a.json", &[])).unwrap();
    assert!(firefox.contains("\"four\"") && firefox.contains("samples"), "a profile for Firefox");
}

#[test]
fn wrong_options_say_what_to_do() {
    for every in ["10", "5 ms", "1us", "ms"] {
        let outcome = run(&format!("sample --every {every} :ev56/sampled"));
        assert_eq!(outcome.code(), 2, "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("apart") || outcome.stderr.contains("a distance is"),
            "{}",
            outcome.stderr
        );
    }
    let failure = run("sample --children :ev56/sampled").failure();
    assert!(failure.contains("--children goes with --attach"), "{failure}");
    for words in ["--attach 1 --cpu ev5", "--attach 1 :ev56/sampled"] {
        let outcome = run(&format!("sample {words}"));
        assert_eq!(
            (outcome.code(), outcome.stderr.contains("--attach")),
            (2, true),
            "{words}: {}",
            outcome.stderr
        );
    }
    let printed = run("sample --live :ev56/sampled").failure();
    assert!(printed.contains("terminal"), "{printed}");
}
