//! The environment of programs.

use std::fs;

use crate::caches::Folder;
use crate::support::{Outcome, command, outcome, run};

/// Runs the command in this environment only.
fn run_in(words: &str, environment: &[(&str, &str)]) -> Outcome {
    let mut command = command(words);
    command.env_clear().envs(environment.iter().copied());
    outcome(command)
}

const OWN: [(&str, &str); 3] = [("PATH", "/usr/bin:/bin"), ("LANG", "C"), ("SECRET", "hunter2")];

#[test]
fn options_set_the_environment_of_every_program_that_is_run() {
    let folder = Folder::new();
    let shown = |words: &str| {
        let mut variables: Vec<String> = run_in(words, &OWN).stdout.lines().map(String::from).collect();
        variables.sort();
        variables.join(" ")
    };
    let trace = format!("trace -o {}", folder.path("t").display());
    let commands = ["run", "count", "caches", "time", "mrc", "calls", "strides", "units --unit main", &trace];
    for command in commands {
        let shown = |options: &str| shown(&format!("{command} {options} :ev56/variables"));
        assert_eq!(shown(""), "LANG=C PATH=/usr/bin:/bin SECRET=hunter2", "{command}");
        assert_eq!(shown("--unset-env SECRET --env LANG=de --env A=b=c"), "A=b=c LANG=de PATH=/usr/bin:/bin");
        assert_eq!(shown("--clear-env"), "", "{command}");
        assert_eq!(shown("--clear-env --env ONLY="), "ONLY=", "{command}");
    }
    let twice = run_in("compare --clear-env --env A=1 :ev5/variables :ev56/variables", &OWN);
    assert_eq!(twice.stdout, "A=1\nA=1\n");
}

#[test]
fn wrong_variables_are_rejected() {
    for (option, problem) in [
        ("--env A", "give a value, as in NAME=VALUE"),
        ("--env =b", "a variable has a name"),
        ("--unset-env A=b", "give only the variable's name"),
    ] {
        let outcome = run(&format!("count {option} :ev56/tiny"));
        assert_eq!(outcome.code(), 2, "{option}");
        assert!(outcome.stderr.contains(problem), "{option}: {}", outcome.stderr);
    }
    let folder = Folder::new();
    let refused = run(&format!("caches --clear-env {}", folder.trace(":ev56/tiny")));
    assert_eq!(refused.code(), 2);
    let problem = "is a trace: --clear-env is for a program that is run";
    assert!(refused.stderr.contains(problem), "{}", refused.stderr);
}

#[test]
fn different_environments_of_saved_counts_and_traces_are_told() {
    let folder = Folder::new();
    let file = |name: &str| folder.path(name).display().to_string();
    let saved = |name: &str, options: &str| {
        let path = file(name);
        assert_eq!(run_in(&format!("count -o {path} {options} :ev56/tiny"), &OWN).code(), 0);
        path
    };
    let first = saved("a.counts", "");
    let second = saved("b.counts", "--env LANG=fr --unset-env SECRET --env NEW=x");
    let compared = |a: &str, b: &str| {
        let text = run_in(&format!("compare {a} {b}"), &OWN).stdout;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let difference = "The environments differ, which changes counts; other values: LANG; only in a.counts: SECRET; \
                      only in b.counts: NEW.";
    assert!(compared(&first, &second).contains(difference), "{}", compared(&first, &second));
    let third = saved("c.counts", "");
    assert!(!compared(&first, &third).contains("environment"), "{}", compared(&first, &third));
    // Of traces, too.
    let trace = file("t.trace");
    assert_eq!(run_in(&format!("trace -o {trace} --env LANG=fr :ev56/tiny"), &OWN).code(), 0);
    assert!(compared(&first, &trace).contains("changes counts; other values: LANG."), "{trace}");
    let shown = run(&format!("show --table trace {trace}")).quiet_success();
    let row = shown.lines().find(|line| line.starts_with("environment")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), "environment 3 variables, 42 bytes");
    // What is saved says how large the environment was, and has no values.
    let shown = run(&format!("count --by group {first}")).quiet_success();
    assert!(shown.contains("The environment of the run: 3 variables, 41 bytes."), "{shown}");
    let empty = saved("d.counts", "--clear-env");
    let shown = run(&format!("count --by group {empty}")).quiet_success();
    assert!(shown.contains("The environment of the run: empty."), "{shown}");
    let unpacked = zstd_json(&fs::read(&first).unwrap());
    assert!(unpacked.contains("SECRET") && !unpacked.contains("hunter2"), "{unpacked}");
}

/// The JSON in saved counts.
fn zstd_json(bytes: &[u8]) -> String {
    let frame = &bytes[bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1..];
    String::from_utf8(zstd::decode_all(frame).unwrap()).unwrap()
}
