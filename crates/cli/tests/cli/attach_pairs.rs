//! No attach depends on an earlier one: every command gives correct results after every other one, whatever was
//! compiled for that.

use std::process::{Command, Stdio};
use std::time::Duration;

use trace::Trace;

use crate::attach_count::{Running, column, sum};
use crate::support::{csv, ends_within, pathlength, run};

/// A command that attaches to a program, and the check of its results.
struct Attaching<'t> {
    program: &'t Running,
    folder: tempfile::TempDir,
    /// Instructions of a call of `request`.
    cost: u64,
}

/// Attaches, and checks what it finds.
type Check = fn(&Attaching);

/// The commands that attach: each requires other code of the blocks that all of them execute.
const KINDS: [(&str, Check); 7] = [
    ("trace --unit", |it| it.records("--unit request --units 2", 2 * it.cost)),
    ("count", |it| it.counts_work("count", "--by function --duration 1", "instructions")),
    ("count --unit", |it| it.counts_units("count", "--children --unit request --by unit --duration 1")),
    ("sample --every", |it| it.samples()),
    ("caches --unit", |it| it.counts_units("caches", "--unit request --by unit --duration 1")),
    ("trace --until", |it| it.records("--until 100000", 100_000)),
    ("strides", |it| it.counts_work("strides", "--by function --duration 1", "references")),
];

impl Attaching<'_> {
    /// Waits for the end of a command, which must not wait for what it will never see.
    fn ends(&self, mut command: Command) {
        let mut running = command.stdout(Stdio::null()).spawn().unwrap();
        let status = ends_within(&mut running, Duration::from_secs(20));
        if status.is_none() {
            running.kill().unwrap();
        }
        assert!(status.is_some_and(|status| status.success()), "{command:?}: {status:?}");
    }

    fn table(&self, command: &str, options: &str) -> Vec<Vec<String>> {
        let path = self.folder.path().join("table.csv");
        self.ends(self.program.attaching(command, options, &path));
        csv(&std::fs::read_to_string(path).unwrap())
    }

    fn records(&self, plan: &str, instructions: u64) {
        let file = self.folder.path().join("file.trace");
        let id = self.program.0.id().to_string();
        let mut command = pathlength(["trace", "-o"]);
        command.arg(&file).args(plan.split_whitespace()).args(["--attach", &id]).stderr(Stdio::null());
        self.ends(command);
        let trace = Trace::open(&file).unwrap();
        let recorded: u64 = trace.chunks().iter().map(|chunk| chunk.instructions).sum();
        // Another thread may record some more until it sees that recording is over.
        assert!((instructions..=2 * instructions).contains(&recorded), "{plan}: {recorded}");
    }

    /// Calls of `request` all cost the same.
    fn counts_units(&self, command: &str, options: &str) {
        let units = self.table(command, options);
        let lengths = column(&units, "instructions");
        let whole = lengths.iter().filter(|length| sum(&[length]) == self.cost).count();
        // Only those that the end of the observation cuts are shorter, one for each thread.
        assert!(whole > 1 && whole + 4 >= lengths.len(), "{}: {lengths:?}", self.cost);
    }

    fn counts_work(&self, command: &str, options: &str, heading: &str) {
        let functions = self.table(command, options);
        let work = functions.iter().position(|row| row[0] == "work").expect("it is executed");
        assert!(sum(&[column(&functions, heading)[work - 1]]) > 10_000, "{functions:?}");
    }

    /// Samples are as many as the instructions say, and nearly all in the loop of `work`.
    fn samples(&self) {
        let options = "--every 5000 --by function --duration 1";
        let functions = self.table("sample", options);
        let work = functions.iter().position(|row| row[0] == "work").expect("it is sampled") - 1;
        let [samples, instructions] =
            ["samples", "instructions"].map(|heading| sum(&[column(&functions, heading)[work]]));
        let due = instructions / 5000;
        assert!(due > 5 && samples.abs_diff(due) <= due / 10 + 3, "{functions:?}");
    }
}

#[test]
fn no_attach_depends_on_an_earlier_one() {
    let program = Running::new();
    let known = csv(
        &run("count --children --unit request --by unit --format csv :ev56/family alike").noted_success()
    );
    let cost = sum(&column(&known, "instructions")[..1]);
    let attaching = Attaching { program: &program, folder: tempfile::tempdir().unwrap(), cost };
    // Every pair follows each other once: a cycle of de Bruijn, by the rule "the last one that is left".
    let kinds = testing::sample(4, KINDS.len());
    let mut left = [[true; KINDS.len()]; KINDS.len()];
    let (mut before, mut pairs) = (0, 0);
    while let Some(next) = (0..kinds).rev().find(|&next| left[before][next]) {
        left[before][next] = false;
        println!("{} after {}", KINDS[next].0, KINDS[before].0);
        KINDS[next].1(&attaching);
        (before, pairs) = (next, pairs + 1);
    }
    assert_eq!(pairs, kinds * kinds);
}
