//! Programs write the same and end in the same way as natively.

use std::fs;
use std::path::Path;
use std::process::Command;

use std::os::unix::process::ExitStatusExt;

use events::ProcessEnd;

use crate::support::{compile, translated};

/// Runs a program natively and on the translator, and compares how it ends and what it writes to the file that its first argument names.
fn compare(name: &str, source: &str, options: &[&str], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), name, source, options);
    let [natively, here] = ["natively", "here"].map(|name| folder.path().join(name));
    let words = |output: &Path| {
        let output = output.to_str().unwrap().to_string();
        std::iter::once(output).chain(arguments.iter().map(|&it| it.into())).collect::<Vec<String>>()
    };
    let status = Command::new(&program).args(words(&natively)).env_clear().status().unwrap();
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => ProcessEnd::Exited(code),
        (None, signal) => ProcessEnd::Killed(signal.unwrap()),
    };
    let words = words(&here);
    let run = translated(&program, &words.iter().map(String::as_str).collect::<Vec<_>>());
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (expected, found) = (read(natively), read(here));
    assert_eq!(found, expected, "{name} {arguments:?}");
    assert_eq!(run.end, end, "{name} {arguments:?}");
    found
}

#[test]
fn a_program_of_the_system_runs() {
    let run = translated(Path::new("/bin/true"), &[]);
    assert_eq!(run.end, ProcessEnd::Exited(0));
    assert!(run.counts.instructions() > 10_000);
    // Once more: addresses, and with them counts, are the same.
    assert_eq!(translated(Path::new("/bin/true"), &[]).counts.instructions(), run.counts.instructions());
}

/// Handlers on the usual and on an alternate stack, masks, interrupted and restarted calls, faults with their addresses and registers.
const SIGNALS: &str = include_str!("programs/signals.c");

#[test]
fn signals_are_delivered() {
    let written = compare("signals", SIGNALS, &["-O2", "-pthread"], &[]);
    assert!(written.contains("end\n"), "{written}");
}

/// Threads, processes, programs started from others.
const PROCESSES: &str = include_str!("programs/processes.c");

#[test]
fn threads_and_processes_run() {
    let written = compare("processes", PROCESSES, &["-O2", "-pthread"], &[]);
    assert!(written.contains("end\n"), "{written}");
}

/// Code that is written, rewritten, unmapped, far from everything, or within its own page.
const WRITTEN_CODE: &str = include_str!("programs/written_code.c");

#[test]
fn written_code_runs() {
    let written = compare("written_code", WRITTEN_CODE, &["-O2"], &[]);
    assert!(written.contains("end\n"), "{written}");
}

/// Ends by signals and faults of all kinds.
const ENDS: &str = include_str!("programs/ends.c");

#[test]
fn programs_end_as_natively() {
    for end in 0..14 {
        compare("ends", ENDS, &["-O1", "-z", "execstack"], &[&end.to_string()]);
    }
}
