//! `run --gdb`: the program under a debugger.

mod debugger;
mod protocol;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Outcome, command, ends_within, file, text};

/// Waits until it is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program that waits for GDB.
struct Debugged {
    child: Child,
    /// What `target remote` takes.
    address: String,
    stdout: File,
    stderr: File,
}

impl Debugged {
    /// Runs `run --gdb PLACE` with these words.
    fn at(place: &str, words: &str, stdin: Stdio) -> Debugged {
        let (stdout, stderr) = (file(), file());
        let mut command = command(&format!("run --gdb {place} {words}"));
        command.stdin(stdin).stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
        // A Ctrl-C for GDB is none for the program.
        let child = command.process_group(0).spawn().unwrap();
        let mut address = String::new();
        eventually("waits", || {
            let said = text(&stderr);
            let words = said.strip_prefix("pathlength: waiting for GDB: target remote ");
            words.and_then(|words| words.strip_suffix('\n')).map(|words| address = words.into()).is_some()
        });
        Debugged { child, address, stdout, stderr }
    }

    /// On a port that is free.
    fn new(words: &str) -> Debugged {
        Debugged::at("0", words, Stdio::null())
    }

    /// Whether the program's first thread uses the processor.
    fn works(&self) -> bool {
        let id = self.child.id();
        let ticks = || {
            let status = std::fs::read_to_string(format!("/proc/{id}/task/{id}/stat")).unwrap();
            let ticks = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11));
            ticks.unwrap().parse::<u64>().unwrap()
        };
        let before = ticks();
        std::thread::sleep(Duration::from_millis(200));
        ticks() >= before + 5
    }

    /// Its end, and its messages, but for the one that it waits.
    fn outcome(mut self) -> Outcome {
        let status = ends_within(&mut self.child, Duration::from_secs(60)).unwrap_or_else(|| {
            self.child.kill().unwrap();
            panic!("the program goes on: {}{}", text(&self.stdout), text(&self.stderr));
        });
        let stderr = text(&self.stderr);
        let (_, stderr) = stderr.split_once('\n').unwrap();
        Outcome { status, stdout: text(&self.stdout), stderr: stderr.into(), has_format: false }
    }

    /// Status and output of a program that was debugged without a word about it.
    fn ending(self) -> (i32, String) {
        let outcome = self.outcome();
        assert_eq!(outcome.stderr, "");
        (outcome.code(), outcome.stdout)
    }
}
