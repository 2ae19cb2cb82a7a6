//! Names that the program does not have are reported before it runs, if it cannot load them later.

use crate::support::{command, guest, outcome, run};

/// Misspelt names, and the errors.
const MISSPELT: [(&str, &str); 14] = [
    (
        "count --unit wrok",
        "has a function 'wrok' (searched: ld-linux.so.2, libc.so.6.1, modes); did you mean work?",
    ),
    ("count --unit modes!factoral", "did you mean factorial?"),
    ("count --unit libz!work", "no image of the program has a function 'libz!work' (searched: "),
    ("count --unit hits", "no image of the program has a function 'hits'"),
    ("count --unit work --cache hits mises", "no image of the program has a variable 'mises'"),
    ("trace -o x --unit wrok", "did you mean work?"),
    ("trace -o x --from wrok", "has a symbol 'wrok' (searched: "),
    ("trace -o x --from main --until wrok+8", "did you mean work?"),
    ("caches --unit wrok", "did you mean work?"),
    ("time --unit wrok", "did you mean work?"),
    ("strides --unit wrok", "did you mean work?"),
    (
        "strides --array no_such_thing",
        "no variable 'no_such_thing' is known in the program (searched: ld-linux.so.2, ",
    ),
    ("compare --unit wrok :ev5/modes", "did you mean work?"),
    ("mrc --from wrok", "did you mean work?"),
];

#[test]
fn misspelt_names_are_reported_before_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (words, problem) in MISSPELT {
        let dashes = if words.starts_with("compare") { "--" } else { "" };
        let mut command = command(&format!("{words} :ev5/modes {dashes} redirect made"));
        command.current_dir(&folder);
        let outcome = outcome(command);
        assert_eq!(outcome.stdout, "", "{words}");
        let failure = outcome.failure();
        assert!(failure.contains(problem), "{words}: {failure}");
        assert_eq!(crate::support::listing(folder.path()), [""; 0], "{words}");
    }
}

#[test]
fn what_is_loaded_later_may_be_named() {
    let library = guest("ev5/libhalf.so").display().to_string();
    let counted = run(&format!("count --unit half --by unit --format csv :ev5/loads {library}"));
    assert_eq!(counted.code(), 0, "{}", counted.stderr);
    assert!(counted.stdout.lines().count() > 10, "{}", counted.stdout);
    let note = "pathlength: note: so far no image of the program has a function 'half' (searched: ";
    assert!(counted.stderr.starts_with(note), "{}", counted.stderr);
    assert!(counted.stderr.ends_with("; the program may load it later\n1000\n"), "{}", counted.stderr);
    // At the end it is known what it has.
    let outcome = run(&format!("count --unit halv :ev5/loads {library}"));
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (1, "1000\n"));
    let failure = outcome.stderr.lines().last().unwrap();
    assert!(failure.contains("libhalf.so") && failure.ends_with("; did you mean half?"), "{failure}");
}

/// The libraries of a program that was not started are those that it is linked with.
#[test]
fn functions_of_libraries_are_found() {
    let counted = run("count --unit half --by unit --format csv --units 2 --batch 2 :ev5/halves");
    assert_eq!((counted.code(), counted.stderr.as_str()), (0, ""), "{}", counted.stdout);
    let failure = run("count --unit hafl :ev5/halves").failure();
    assert!(failure.contains("libhalf.so") && failure.ends_with("; did you mean half?"), "{failure}");
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    for (words, problem) in [
        ("count --unit work --units 0 :ev5/modes work", "0 is not in 1.."),
        ("count --unit work --batch 0 :ev5/modes work", "0 is not in 1.."),
        ("count --unit= :ev5/modes work", "a value is required for '--unit"),
        ("trace -o x --unit work --units 0 :ev5/modes work", "0 is not in 1.."),
        ("trace -o x --until 0 :ev5/modes work", "this records nothing: give 1 or more"),
        ("trace -o x --unit work --skip -1 :ev5/modes work", "unexpected argument '-1'"),
        ("caches --unit work --units 0 :ev5/modes work", "0 is not in 1.."),
        ("caches --host-processors 3 :ev5/modes work", "3 is not in 1..=2"),
        ("strides --depth 0 :ev5/modes work", "0 is not in 1..=64"),
        ("show --processors 0 x", "0 is not in 1..=4096"),
        ("show --processors 1 --time-slice 0 x", "0 is not in 1.."),
        ("show --window 0 x", "0 is not in 1.."),
        ("show --instructions 0-3 x", "they are numbered from 1"),
        ("trace -o x --attach 0", "a process has a number from 1"),
    ] {
        let outcome = run(words);
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (2, ""), "{words}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(problem), "{words}: {}", outcome.stderr);
    }
}

#[test]
fn the_exit_status_tells_whether_the_program_failed() {
    let folder = tempfile::tempdir().unwrap();
    for words in ["count", "trace -o x", "caches", "time", "strides", "compare :ev5/modes"] {
        for status in [0, 3] {
            let dashes = if words.starts_with("compare") { "--" } else { "" };
            let mut command = command(&format!("{words} :ev5/modes {dashes} exit {status}"));
            command.current_dir(&folder);
            let outcome = outcome(command);
            assert_eq!(outcome.code(), i32::from(status != 0), "{words}: {}", outcome.stderr);
            let note = format!("exited with status {status}\n");
            assert_eq!(outcome.stderr.contains(&note), status != 0, "{words}: {}", outcome.stderr);
            let is_shown = outcome.stderr.contains("────");
            assert_eq!(is_shown, !words.starts_with("trace"), "{words}: {}", outcome.stderr);
        }
    }
    // A status that the program should end with is no failure, and 0 is one then.
    for words in ["count", "trace", "caches", "time", "strides", "compare"] {
        let (output, other, dashes) = match words {
            "trace" => ("-o y", "", ""),
            "compare" => ("", ":ev5/modes", "--"),
            _ => ("", "", ""),
        };
        for (status, code) in [(3, 0), (20, 0), (0, 1)] {
            let words =
                format!("{words} --expect-status 20,3 {output} {other} :ev5/modes {dashes} exit {status}");
            let mut command = command(&words);
            command.current_dir(&folder);
            let outcome = outcome(command);
            assert_eq!(outcome.code(), code, "{words}: {}", outcome.stderr);
            assert_eq!(
                outcome.stderr.contains("exited with status"),
                code != 0,
                "{words}: {}",
                outcome.stderr
            );
        }
    }
    // As env(1), nohup(1) and shells do.
    for (program, status) in [("missing", 127), ("/dev/null", 126), ("/bin/true", 126), ("/etc/passwd", 126)]
    {
        let outcome = run(&format!("run {program}"));
        assert_eq!(outcome.code(), status, "{program}");
        assert!(outcome.stderr.starts_with(&format!("pathlength: {program}: ")), "{}", outcome.stderr);
    }
}
