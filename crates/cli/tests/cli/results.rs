//! What becomes of results on their way: notes of tables, traces through pipes, disks without room.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::caches::Folder;
use crate::support::{Outcome, command, outcome, run};

/// What a command notes on standard error.
fn notes(words: &str) -> String {
    let outcome = run(words);
    assert_eq!(outcome.code(), 0, "{words}: {}", outcome.stderr);
    outcome.stderr
}

#[test]
fn notes_of_tables_are_never_lost() {
    const UNSTEADY: &str = "no steady state was reached; these are the last 20 of 20 units.";
    const PROGRAM: &str = "--unit work :ev56/modes grow";
    let folder = Folder::new();
    let file = folder.path("table").display().to_string();
    for by in ["function", "unit"] {
        for format in ["csv", "parquet"] {
            let reported = notes(&format!("count --by {by} --format {format} -o {file} {PROGRAM}"));
            assert_eq!(reported, format!("pathlength: note: {UNSTEADY}\n"));
        }
        assert_eq!(notes(&format!("count --by {by} --format json -o {file} {PROGRAM}")), "");
        let document: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(document["notes"][0], UNSTEADY);
        assert_eq!(notes(&format!("count --by {by} -o {file} {PROGRAM}")), "");
        assert!(fs::read_to_string(&file).unwrap().contains(UNSTEADY));
    }
    let several = folder.path("several").display().to_string();
    for command in ["count", "compare"] {
        let programs =
            if command == "count" { PROGRAM.into() } else { PROGRAM.replace("grow", ":ev56/modes -- grow") };
        let reported = notes(&format!("{command} --format csv -o {several} {programs}"));
        assert!(
            reported.contains("pathlength: note: path-length: ") && reported.contains(UNSTEADY),
            "{reported}"
        );
    }
    let reported = notes(&format!("caches --format csv -o {file} {PROGRAM}"));
    assert!(reported.contains("Only calls of work are simulated"), "{reported}");
}

#[test]
fn processes_that_are_left_out_are_reported() {
    const NOTE: &str = "10 processes that the program forked are not in the tables";
    for command in
        ["count", "count --by function", "caches", "time", "strides --by function", "mrc --streams code"]
    {
        let shown = run(&format!("{command} :ev56/forks")).quiet_success();
        assert_eq!(shown.matches(NOTE).count(), 1, "{command}: {shown}");
        assert!(!run(&format!("{command} :ev56/tiny")).quiet_success().contains("forked"));
    }
    let shown = run("compare :ev5/forks :ev56/forks").quiet_success();
    assert_eq!(shown.matches(NOTE).count(), 2, "{shown}");
}

/// Runs a command with a trace coming through a pipe: on standard input.
fn piped(words: &str, trace: &str) -> Outcome {
    let mut cat = Command::new("cat").arg(trace).stdout(Stdio::piped()).spawn().unwrap();
    let mut command = command(words);
    command.stdin(cat.stdout.take().unwrap());
    let outcome = outcome(command);
    // A file that is not a trace is not read to its end.
    let _ = cat.wait();
    outcome
}

#[test]
fn traces_come_through_pipes() {
    let folder = Folder::new();
    let trace = folder.trace("--unit work :ev56/modes work");
    let all = [
        "show",
        "show --as instructions --unit-number 7",
        "check",
        "caches --by unit",
        "time",
        "strides --by line",
        "export --to din",
    ];
    for words in all {
        let expected = run(&format!("{words} {trace}")).quiet_success();
        for name in ["-", "/dev/stdin"] {
            let shown = piped(&format!("{words} {name}"), &trace).quiet_success();
            assert_eq!(shown, expected, "{words} {name}");
        }
    }
    let named = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&named).status().unwrap().success());
    let mut cat =
        Command::new("sh").args(["-c", "cat \"$0\" > \"$1\""]).arg(&trace).arg(&named).spawn().unwrap();
    run(&format!("check {}", named.display())).quiet_success();
    assert!(cat.wait().unwrap().success());
    // A pipe that is not a trace may be endless.
    let mut yes = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
    let mut show = command("show -");
    show.stdin(yes.stdout.take().unwrap());
    assert!(outcome(show).failure().contains("not a trace"));
    let _ = yes.wait();
}

#[test]
fn a_full_disk_is_told_with_the_file() {
    let folder = Folder::new();
    let trace = folder.trace("--unit work :ev56/modes work");
    let commands = [
        "trace -o /dev/full :ev56/tiny".to_string(),
        "count -o /dev/full :ev56/tiny".into(),
        "count --by function --format parquet -o /dev/full :ev56/tiny".into(),
        "compare -o /dev/full :ev5/tiny :ev56/tiny".into(),
        "caches -o /dev/full :ev56/tiny".into(),
        format!("time -o /dev/full {trace}"),
        format!("strides -o /dev/full {trace}"),
        format!("show -o /dev/full {trace}"),
        format!("show --as addresses -o /dev/full {trace}"),
        format!("check -o /dev/full {trace}"),
        format!("export --to din -o /dev/full {trace}"),
        format!("export --to firefox -o /dev/full {trace}"),
        format!("export --to callgrind -o /dev/full {trace}"),
        format!("export --to champsim -o /dev/full {trace}"),
    ];
    for words in commands {
        let sentence = run(&words).failure();
        assert!(sentence.contains("/dev/full"), "{words}: {sentence}");
        assert!(sentence.contains("No space left on device"), "{words}: {sentence}");
    }
    for words in [
        format!("show {trace}"),
        format!("show --as instructions {trace}"),
        "count --format table :ev56/modes grow".into(),
    ] {
        let mut full = command(&words);
        full.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped());
        let ended = full.output().unwrap();
        let reported = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{words}: {reported}");
        assert!(reported.contains("No space left on device"), "{words}: {reported}");
    }
}

/// A trace in which nothing was recorded is none of a program that did nothing.
#[test]
fn nothing_recorded_is_nothing_checked() {
    let folder = Folder::new();
    let file = folder.path("none.trace").display().to_string();
    for plan in ["--unit nowhere", "--from nowhere", "--from never", "--unit work --skip 1000"] {
        run(&format!("trace -o {file} {plan} :ev56/modes work")).failure();
        assert!(!Path::new(&file).exists(), "{plan}");
    }
    let trace = fs::read(folder.trace(":ev56/tiny")).unwrap();
    let magic = &trace[12..20];
    let second = trace[20..].windows(8).position(|bytes| bytes == magic).unwrap() + 20;
    fs::write(&file, &trace[..second]).unwrap();
    assert!(run(&format!("check {file}")).failure().contains("nothing was recorded"));
}
