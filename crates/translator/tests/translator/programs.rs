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

/// A program that executes itself with one argument more, and so on; then another one.
const EXECUTIONS: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void work(void) { for (volatile int i = 0; i < 100000; i++) ; }
int main(int count, char **words) {
    FILE *output = fopen(words[1], "a");
    struct sigaction action;
    sigaction(SIGPIPE, 0, &action);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, 0, &mask);
    fprintf(output, "%d %s %d %d\n", count, words[0], action.sa_handler == SIG_IGN, sigismember(&mask, SIGUSR1));
    fclose(output);
    work();
    char path[4096] = "";
    readlink("/proc/self/exe", path, sizeof path - 1);
    signal(SIGPIPE, SIG_IGN);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_SETMASK, &mask, 0);
    if (execl("/nonexistent", "none", (char *)0) == 0) return 1;
    if (count == 2) execl(path, "once more", words[1], "x", (char *)0);
    if (count == 3) execl("/bin/sh", "sh", "-c", "exec \"$0\" \"$1\" y z", path, words[1], (char *)0);
    return 7;
}
"#;

#[test]
fn executed_programs_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let written = compare("executions", EXECUTIONS, &["-O1"], &[]);
    assert_eq!(written.lines().count(), 3, "{written}");
    let program = compile(folder.path(), "executions", EXECUTIONS, &["-O1"]);
    let run = translated(&program, &["/dev/null"]);
    assert_eq!(run.end, ProcessEnd::Exited(7));
    let images: Vec<_> = run.counts.images.iter().filter_map(|image| image.path.file_name()).collect();
    assert!(images.iter().any(|&name| name != "executions"), "{images:?}");
    // Three times the loop, of at least three instructions.
    let own = |image: Option<u32>| {
        image.is_some_and(|image| run.counts.images[image as usize].path.ends_with("executions"))
    };
    let blocks = run.counts.blocks.iter().zip(&run.counts.executions);
    let executed: u64 =
        blocks.filter(|(block, _)| own(block.image)).map(|(block, n)| block.words.len() as u64 * n).sum();
    assert!((900_000..3_000_000).contains(&executed), "{executed}");
}
