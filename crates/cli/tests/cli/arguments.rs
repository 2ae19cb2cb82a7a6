//! Whose options are whose: all that follows the program's name is the program's.

use crate::support::{command, listing, outcome, run};

/// Words that look like options of ours, whatever the command.
const WORDS: &str = "--help -o out.txt --by function --unit main --machine none -h -V -- --format csv";

#[test]
fn all_that_follows_the_programs_name_is_its_own() {
    let expected: String = WORDS.split(' ').map(|word| format!("[{word}]")).collect();
    for words in [
        "run",
        "run --",
        "run --cpu ev5",
        "count",
        "count --by group --",
        "trace -o own.trace",
        "caches",
        "caches --by function --",
        "time",
        "strides --by all",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(&format!("{words} :ev5/words {WORDS}"));
        command.current_dir(&folder);
        let outcome = outcome(command);
        assert_eq!((outcome.code(), outcome.stdout.trim_end()), (0, expected.as_str()), "{words}");
        let own: &[&str] = if words.starts_with("trace") { &["own.trace"] } else { &[] };
        assert_eq!(listing(folder.path()), own, "{words}");
    }
}

/// `compare` has two programs; their arguments follow `--`.
#[test]
fn arguments_of_both_programs_come_behind_two_dashes() {
    let folder = tempfile::tempdir().unwrap();
    let mut both = command("compare :ev5/words :ev56/words --format csv -o tables -- --help -o out.txt");
    both.current_dir(&folder);
    assert_eq!(outcome(both).noted_success(), "[--help][-o][out.txt]\n".repeat(2));
    assert_eq!(listing(folder.path()), ["tables"]);
    let outcome = run("compare :ev5/words :ev56/words data.txt");
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (2, ""));
    assert!(
        outcome.stderr.contains("compare [OPTIONS] <PROGRAM_A> <PROGRAM_B> [-- <ARG>...]"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn options_may_follow_the_name_of_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("words.trace").display().to_string();
    run(&format!("trace -o {trace} --unit main :ev5/words one")).quiet_success();
    for (command, options) in [
        ("caches", "--machine dec3000 --by function --unit main --units 1"),
        ("time", "--by function"),
        ("strides", "--by function --function main"),
        ("show", "--table functions"),
        ("export", "--to din"),
    ] {
        let after = run(&format!("{command} {trace} {options}")).quiet_success();
        let before = run(&format!("{command} {options} {trace}")).quiet_success();
        assert_eq!(after, before, "{command}");
    }
    // Options that need each other may stand on both sides.
    let both = run(&format!("caches --units 1 {trace} --unit main")).quiet_success();
    assert_eq!(both, run(&format!("caches --units 1 --unit main {trace}")).quiet_success());
    // They are checked there, too; and a trace has no arguments.
    let wrong = run(&format!("caches {trace} --by lines"));
    assert_eq!(wrong.code(), 2);
    assert!(wrong.stderr.contains("[possible values: function, line"), "{}", wrong.stderr);
    for words in ["caches", "time", "strides"] {
        let failure = run(&format!("{words} {trace} other")).failure();
        assert!(
            failure.contains("is a trace: ") && failure.contains("for a program that is run"),
            "{failure}"
        );
    }
}

#[test]
fn options_of_ours_that_do_not_exist_are_refused_before_the_programs_name() {
    for words in ["run", "count", "trace -o x", "caches", "time", "strides"] {
        let outcome = run(&format!("{words} --mistaken :ev5/words"));
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (2, ""), "{words}");
        assert!(outcome.stderr.contains("unexpected argument '--mistaken'"), "{}", outcome.stderr);
    }
}
