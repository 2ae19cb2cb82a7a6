//! `run`: the program, and nothing else.

use std::process::Stdio;

use crate::support::{command, guest, outcome, run};

#[test]
fn the_exit_status_is_the_programs() {
    for status in [0, 1, 7, 255] {
        let outcome = run(&format!("run :ev5/modes exit {status}"));
        assert_eq!((outcome.code(), outcome.stdout.as_str(), outcome.stderr.as_str()), (status, "", ""));
    }
}

#[test]
fn arguments_with_dashes_are_the_programs() {
    let arguments = ["--help", "-V", "--cpu", "ev5", "--", "--", "-o", "file"];
    let expected: String = arguments.iter().map(|argument| format!("[{argument}]\n")).collect();
    for words in ["run", "count --by group -o /dev/null", "run --cpu ev5"] {
        let printed = run(&format!("{words} :ev5/modes arguments {}", arguments.join(" "))).quiet_success();
        assert_eq!(printed, format!("[arguments]\n{expected}0\n"), "{words}");
    }
}

#[test]
fn standard_streams_are_the_programs() {
    let mut command = command("run :ev56/modes copy");
    let mut input = crate::support::file();
    std::io::Write::write_all(&mut input, b"one\ntwo\0three").unwrap();
    std::io::Seek::rewind(&mut input).unwrap();
    command.stdin(input);
    let outcome = outcome(command);
    assert_eq!(outcome.code(), 3);
    assert_eq!(outcome.stdout, "one\ntwo\0three");
    assert_eq!(outcome.stderr, "to standard error\n");
}

#[test]
fn a_closed_pipe_ends_the_program_as_it_does_natively() {
    let mut child = command("run :ev5/modes lines").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 5];
    std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"line\n");
    let status = crate::support::ends_within(&mut child, std::time::Duration::from_secs(60));
    let signal = status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status));
    assert_eq!(signal, Some(libc::SIGPIPE));
}

#[test]
fn the_program_is_found_by_relative_path_and_knows_its_name() {
    let folder = guest("ev5");
    let mut command = command("run ./tiny");
    command.current_dir(folder);
    assert_eq!(outcome(command).quiet_success(), "338350 ./tiny\n");
}
