//! Crashes of programs: signal, place and registers are reported.

use crate::support::{Outcome, command, guest, outcome, run};

/// Signal's number and name, the mode, and the function to blame, if it is the program's own.
const CRASHES: [(i32, &str, &str, Option<&str>); 5] = [
    (libc::SIGSEGV, "SIGSEGV (memory fault) at address 0x0", "null", Some("null_pointer")),
    (libc::SIGILL, "SIGILL (illegal instruction)", "illegal", Some("no_instruction")),
    (libc::SIGFPE, "SIGFPE (arithmetic exception)", "divide", None),
    (libc::SIGABRT, "SIGABRT (aborted)", "abort", None),
    // Alpha's SIGBUS is 10, the host's is 7.
    (libc::SIGBUS, "SIGBUS (bus error)", "raise 10", None),
];

fn assert_report(outcome: &Outcome, signal: &str, function: Option<&str>) {
    let report = &outcome.stderr;
    assert!(report.contains(&format!("the program was ended by {signal}\n")), "{report}");
    let place = report.lines().find(|line| line.starts_with("  pc ")).expect("the program counter");
    if let Some(function) = function {
        assert!(place.contains(&format!("modes!{function}+0x")), "{place}");
        let line = place.rsplit("modes.c:").next().and_then(|rest| rest.trim_end_matches(')').parse().ok());
        assert!(line.is_some_and(|line: u32| (15..35).contains(&line)), "{place}");
    }
    let registers = ["t0", "t12", "s0", "fp", "a5", "ra", "at", "gp", "sp", "zero"];
    let (_, state) = report.split_once("\n  v0 ").expect("the registers");
    for register in registers {
        let value = state.split_whitespace().skip_while(|word| *word != register).nth(1);
        assert!(value.is_some_and(|value| value.len() == 16), "{register}: {report}");
    }
    assert!(!report.contains("panicked"), "{report}");
}

#[test]
fn run_ends_by_the_programs_signal() {
    for (number, signal, mode, function) in CRASHES {
        let outcome = run(&format!("run :ev5/modes {mode}"));
        assert_eq!(outcome.code(), 128 + number, "{mode}");
        assert_report(&outcome, signal, function);
    }
}

#[test]
fn count_fails_and_still_shows_what_was_counted() {
    for (_, signal, mode, function) in CRASHES {
        let outcome = run(&format!("count --by image --format csv :ev5/modes {mode}"));
        assert_eq!(outcome.code(), 1, "{mode}");
        assert_report(&outcome, signal, function);
        assert!(outcome.stdout.contains("\nmodes,") && outcome.stdout.contains("\ntotal,"), "{mode}");
    }
}

#[test]
fn compare_fails_and_names_the_build() {
    let outcome = run("compare :ev5/modes :ev56/modes -- null");
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (1, ""));
    assert_report(&outcome, CRASHES[0].1, CRASHES[0].3);
    assert!(outcome.stderr.contains("ev5/modes: the program was ended"), "{}", outcome.stderr);
}

#[test]
fn a_thread_that_crashes_is_named() {
    let outcome = run("run :ev56/threads crash");
    assert_eq!(outcome.code(), 128 + libc::SIGSEGV);
    let report = &outcome.stderr;
    assert!(report.contains("SIGSEGV (memory fault) at address 0x0 in thread 3 (worker)\n"), "{report}");
    assert!(report.contains("threads!null_pointer+0x"), "{report}");
}

#[test]
fn an_instruction_that_the_cpu_lacks_is_illegal() {
    let outcome = run("run --cpu ev5 :ev56/modes work");
    assert_eq!(outcome.code(), 128 + libc::SIGILL);
    assert_report(&outcome, "SIGILL (illegal instruction)", Some("work"));
    assert_eq!(run("run --cpu ev56 :ev56/modes work").quiet_success(), "38000\n");
    assert_eq!(run("run --cpu ev5 :ev5/modes work").quiet_success(), "38000\n");
}

#[test]
fn the_place_is_known_after_the_program_changed_its_directory() {
    for (subcommand, code) in [("run", 128 + libc::SIGSEGV), ("count", 1)] {
        let mut command = command(&format!("{subcommand} ./modes lost"));
        command.current_dir(guest("ev5"));
        let outcome = outcome(command);
        assert_eq!(outcome.code(), code);
        assert_report(&outcome, CRASHES[0].1, CRASHES[0].3);
    }
}

/// What the program had written is there, and what it had in its own buffers is not: as under qemu-alpha.
#[test]
fn a_program_that_dies_loses_what_its_own_buffers_hold_and_no_more() {
    for how in [0, libc::SIGSEGV, libc::SIGTERM, libc::SIGKILL] {
        let words = ["-L", "/usr/alpha-linux-gnu"];
        let mut qemu = std::process::Command::new("qemu-alpha");
        let expected = qemu.args(words).arg(guest("ev5/dies")).arg(how.to_string()).output().unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        assert!(expected.ends_with("past the buffer\n") && !expected.contains("line 2999"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for command in ["run", "count -o", "trace -o"] {
            let option =
                if command == "run" { "run".into() } else { format!("{command} {}", file.display()) };
            let outcome = run(&format!("{option} :ev5/dies {how}"));
            assert_eq!(outcome.stdout, expected, "{command}, {how}: {}", outcome.stderr);
        }
    }
}
