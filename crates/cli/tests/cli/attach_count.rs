//! `count --attach`: counts of running programs, which continue afterwards.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{command, csv, ends_within, outcome, pathlength, run};

/// A running program: `family requests` repeats the same work in two processes, each with two threads.
pub struct Running(pub Child);

impl Running {
    pub fn new() -> Running {
        Running::of("run :ev56/family requests", "family")
    }

    /// A program of this name, which a command runs.
    pub fn of(words: &str, program: &str) -> Running {
        let mut command = command(words);
        // A group of its own, so that its children can be ended, too.
        command.process_group(0);
        let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let name = format!("/proc/{}/comm", running.0.id());
        for _ in 0..500 {
            if fs::read_to_string(&name).is_ok_and(|name| name.trim_end() == program) {
                sleep(Duration::from_millis(300));
                return running;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("process {} never ran", running.0.id());
    }

    /// A command that attaches to it.
    pub fn attaching(&self, command: &str, options: &str, path: &Path) -> std::process::Command {
        let id = self.0.id().to_string();
        let mut command = pathlength([command, "--attach", &id, "--format", "csv", "-o"]);
        command.arg(path).args(options.split_whitespace());
        command
    }

    fn counting(&self, options: &str, path: &Path) -> std::process::Command {
        self.attaching("count", options, path)
    }

    /// The table that such a command writes.
    pub fn table(&self, command: &str, options: &str) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        outcome(self.attaching(command, options, &path)).noted_success();
        csv(&fs::read_to_string(path).unwrap())
    }

    fn count(&self, options: &str) -> Vec<Vec<String>> {
        self.table("count", options)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for, so that the number is its group's.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGKILL) };
        self.0.wait().unwrap();
    }
}

pub fn column<'t>(table: &'t [Vec<String>], heading: &str) -> Vec<&'t str> {
    let at = table[0].iter().position(|name| name == heading).unwrap_or_else(|| panic!("{:?}", table[0]));
    table[1..].iter().map(|row| row[at].as_str()).collect()
}

pub fn sum(numbers: &[&str]) -> u64 {
    numbers.iter().map(|number| number.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_running_program_is_counted_and_goes_on() {
    let program = Running::new();
    // What a request costs is known from a run that is counted from its beginning.
    let known =
        run("count --children --unit request --by unit --format csv :ev56/family alike").noted_success();
    let known = csv(&known);
    let cost = column(&known, "instructions")[0];
    for _ in 0..3 {
        let units = program.count("--children --unit request --by unit --duration 0.3");
        let ended = column(&units, "ended");
        let lengths = column(&units, "instructions");
        let whole = lengths.iter().zip(&ended).filter(|(_, ended)| **ended == "by return");
        assert!(whole.clone().count() > 20, "{}", lengths.len());
        assert!(whole.clone().all(|(length, _)| *length == cost), "{cost}: {lengths:?}");
        let mut threads: Vec<_> = units[1..].iter().map(|row| row[..2].to_vec()).collect();
        threads.sort();
        threads.dedup();
        assert_eq!(threads.len(), 4, "{threads:?}");
    }
    let processes = program.count("--children --by process --duration 0.2");
    assert_eq!(column(&processes, "process"), ["1", "2", "total"]);
    assert_eq!(column(&processes, "end")[..2], ["still runs", "still runs"]);
    let counts = column(&processes, "instructions");
    assert_eq!(sum(&counts[..2]), sum(&counts[2..]));
    assert!(counts[..2].iter().all(|count| sum(&[count]) > 100_000), "{counts:?}");
    // Only the first process.
    let alone = program.count("--by process --duration 0.2");
    assert_eq!(column(&alone, "process"), ["1", "total"]);
    // The same program can be recorded then.
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace").display().to_string();
    let id = program.0.id().to_string();
    outcome(pathlength(["trace", "-o", &trace, "--unit", "request", "--units", "2", "--attach", &id]))
        .quiet_success();
}

#[test]
fn what_was_counted_is_shown_after_an_interrupt_and_a_kill() {
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let mut program = Running::new();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        let mut counting = program.counting("--children --by function", &path).spawn().unwrap();
        sleep(Duration::from_millis(700));
        if signal == libc::SIGKILL {
            program.0.kill().unwrap();
            // The other process ends with its parent.
            program.0.wait().unwrap();
        } else {
            // SAFETY: the command has not been waited for.
            assert_eq!(unsafe { libc::kill(counting.id() as i32, signal) }, 0);
        }
        let status = ends_within(&mut counting, Duration::from_secs(20)).expect("it ends");
        assert!(status.success(), "{status}");
        let functions = csv(&fs::read_to_string(path).unwrap());
        assert!(functions.iter().any(|row| row[0] == "work" && row[2].parse::<u64>().unwrap() > 100_000));
    }
}

/// Counts that are saved are in a folder beside their file until the command ends.
#[test]
fn the_folder_of_a_killed_command_has_what_was_counted() {
    let program = Running::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.counts");
    let id = program.0.id().to_string();
    let mut counting = pathlength(["count", "--attach", &id, "--children", "-o"]).arg(&path).spawn().unwrap();
    sleep(Duration::from_millis(700));
    counting.kill().unwrap();
    counting.wait().unwrap();
    let counts = folder.path().join("saved.counts.d");
    let mut showing = pathlength(["count", "--by", "process", "--format", "csv"]);
    showing.arg(counts);
    let shown = outcome(showing).noted_success();
    let processes = csv(&shown);
    assert_eq!(processes[0][0], "process");
    assert!(
        processes.len() >= 4 && sum(&column(&processes[..processes.len() - 1], "instructions")) > 100_000
    );
}

#[test]
fn wrong_options_say_what_to_do() {
    let program = Running::new();
    let id = program.0.id();
    for (words, code, part) in [
        ("count --attach 4000000".to_string(), 1, "there is no process 4000000"),
        (format!("count --attach {id} --unit nowhere"), 1, "has a function 'nowhere'"),
        (format!("count --attach {id} :ev56/family"), 2, "cannot be used with"),
        ("count --duration 1 :ev56/family".to_string(), 1, "--attach"),
        (format!("count --attach {id} --duration=-1"), 2, "number of seconds"),
    ] {
        let outcome = run(&words);
        assert!(outcome.code() == code && outcome.stderr.contains(part), "{words}: {}", outcome.stderr);
    }
}
