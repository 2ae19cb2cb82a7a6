//! Bad input: one sentence that says what to do, exit status 1 or 2, no files left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{command, guest, listing, outcome, pathlength, run};

/// Files that are not Alpha programs, and the error for each.
fn bad_files(folder: &Path) -> Vec<(String, &'static str)> {
    let image = fs::read(guest("ev5/modes")).unwrap();
    let contents: [(&str, &[u8], &str); 7] = [
        ("text", b"hello, world\n", "not an ELF file but text; give an Alpha program"),
        ("script", b"#!/bin/sh\necho hello\n", "not an ELF file but a script; give"),
        ("empty", b"", "not an ELF file but an empty file; give"),
        ("noise", &[0, 1, 2, 3], "not an ELF file but data of an unknown kind; give"),
        (
            "start",
            &image[..40],
            "truncated: the ELF header reaches to byte 64 but the file has only 40 bytes",
        ),
        ("half", &image[..image.len() / 2], "truncated: "),
        ("object", b"", "a relocatable object file that has not been linked; an executable"),
    ];
    let mut files = vec![
        ("missing".to_string(), "there is no such file; check the path"),
        ("missing/too".to_string(), "there is no such file; check the path"),
        (".".to_string(), "not a regular file; name the program"),
        ("/dev/null".to_string(), "not a regular file; name the program"),
        ("text/below".to_string(), "cannot be read: Not a directory"),
        (
            "/proc/self/exe".to_string(),
            "an x86-64 ELF file, neither of Alpha nor of RISC-V; build it with alpha-linux-gnu-gcc",
        ),
    ];
    for (name, bytes, problem) in contents {
        fs::write(folder.join(name), bytes).unwrap();
        files.push((name.into(), problem));
    }
    let mut compiler = Command::new("alpha-linux-gnu-gcc");
    compiler.args(["-c", "-x", "c", "/dev/null", "-o", "object"]).current_dir(folder);
    assert!(compiler.status().expect("alpha-linux-gnu-gcc is needed: run ./setup").success());
    files
}

#[test]
fn files_that_are_no_alpha_programs() {
    let folder = tempfile::tempdir().unwrap();
    let files = bad_files(folder.path());
    let before = listing(folder.path());
    let good = guest("ev5/modes").to_str().unwrap().to_owned();
    for (file, problem) in files {
        let file = file.as_str();
        let lines: [&[&str]; 8] = [
            &["run", file],
            &["caches", file],
            &["count", "--by", "group", file],
            &["static", file],
            &["static", &good, file],
            &["static", &good, "--against", file],
            &["compare", file, &good],
            &["compare", &good, file, "--", "work"],
        ];
        // Programs of this machine are counted.
        let is_translated = cfg!(target_arch = "x86_64") && ["script", "/proc/self/exe"].contains(&file);
        let counts = |words: &&&[&str]| ["count", "compare"].contains(&words[0]);
        for words in lines.iter().filter(|words| !(is_translated && counts(words))) {
            let mut command = pathlength(*words);
            command.current_dir(&folder);
            let outcome = outcome(command);
            assert_eq!(outcome.stdout, "", "{words:?}");
            // `run` ends as env(1) does.
            let is_missing = file.starts_with("missing") || file == "text/below";
            let status = if words[0] != "run" {
                1
            } else if is_missing {
                127
            } else {
                126
            };
            let sentence = outcome.failure_with(status);
            assert!(sentence.starts_with(&format!("{file}: {problem}")), "{words:?}: {sentence}");
        }
    }
    assert_eq!(listing(folder.path()), before);
}

/// Hosts with programs of other instruction sets have loaders of the same name.
#[test]
fn files_of_the_host_are_no_loaders_of_the_guest() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let mut compiler = Command::new("alpha-linux-gnu-gcc");
    compiler.args(["-Wl,--dynamic-linker=/bin/sh", "-o"]).arg(&program).arg(&source);
    assert!(compiler.status().expect("alpha-linux-gnu-gcc is needed: run ./setup").success());
    let sentence = run(&format!("run --sysroot /nonexistent {}", program.display())).failure_with(126);
    assert!(sentence.contains("loader /bin/sh is not under the sysroot /nonexistent"), "{sentence}");
}

#[test]
fn files_without_permission_do_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("modes");
    fs::copy(guest("ev5/modes"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    for (command, status) in [("run", 126), ("count", 1), ("static", 0)] {
        let outcome = run(&format!("{command} {}", program.display()));
        assert_eq!(outcome.code(), status, "{command}");
        assert_eq!(outcome.stderr.contains("no permission to execute it"), status != 0, "{}", outcome.stderr);
    }
}

/// Commands that cannot work, and their errors.
const COMMANDS: [(&str, &str); 15] = [
    (
        "run --sysroot /nonexistent :ev5/modes",
        "is not under the sysroot /nonexistent: install Alpha's C library",
    ),
    ("count --sysroot /tmp :ev5/modes", "or name a sysroot with --sysroot DIR"),
    (
        "count --unit wrok :ev5/modes work",
        "(searched: ld-linux.so.2, libc.so.6.1, modes); did you mean work?",
    ),
    ("count --unit modes!factoral :ev5/modes work", "did you mean factorial?"),
    ("count --unit xyz :ev5/modes work", "; pathlength count --by function lists the functions that ran"),
    ("count --unit libc!work :ev5/modes work", "no image of the program has a function 'libc!work'"),
    ("count --unit never :ev5/modes work", "the function 'never' was never called: name one that runs"),
    (
        "count --unit work --cache hits mises :ev5/modes work",
        "no image of the program has a variable 'mises'",
    ),
    ("count --by unit :ev5/modes work", "name its function with --unit FUNCTION"),
    (
        "count --format csv :ev5/modes work",
        "several tables do not fit in one csv stream; name a directory with -o",
    ),
    ("compare --format parquet :ev5/modes :ev56/modes", "several tables do not fit in one parquet stream"),
    (
        "count -o /nonexistent/table :ev5/modes work",
        "cannot write /nonexistent/table: No such file or directory",
    ),
    (
        "count --format csv -o /dev/null/below :ev5/modes work",
        "cannot write /dev/null/below: Not a directory",
    ),
    ("count --by group -o /dev/full :ev5/modes work", "cannot write /dev/full: No space left on device"),
    (
        "static :ev5/modes --against :ev56/modes :ev56/tiny",
        "--against names the same images of another build",
    ),
];

#[test]
fn requests_that_cannot_be_met() {
    for (words, problem) in COMMANDS {
        // `run` ends as env(1) does.
        let sentence = run(words).failure_with(if words.starts_with("run") { 126 } else { 1 });
        assert!(sentence.contains(problem), "{words}: {sentence}");
    }
}

/// What can be known before the program runs is said before it runs.
#[test]
fn no_program_runs_in_vain() {
    for words in [
        "count -o /nonexistent/table :ev5/modes work",
        "count --format csv -o /proc/tables :ev5/modes work",
        "count --format csv :ev5/modes work",
        "count --by unit :ev5/modes work",
        "compare --format csv :ev5/modes :ev56/modes -- work",
        "compare :ev5/modes /nonexistent -- work",
    ] {
        assert_eq!(run(words).stdout, "", "{words}");
    }
}

/// Invalid command lines, and their errors.
const USAGE: [(&str, &str); 18] = [
    ("", "Usage: pathlength <COMMAND>"),
    ("measure", "unrecognized subcommand 'measure'"),
    ("run", "the following required arguments were not provided:\n  <PROGRAM>"),
    ("run --cpu ev7 program", "unknown Alpha implementation \"ev7\": use ev4, ev5, ev56, pca56, ev6 or ev67"),
    ("count --format xml program", "there is no format 'xml'; use table, csv, json, parquet or markdown"),
    (
        "count --by module program",
        "[possible values: mnemonic, group, function, line, instruction, image, component, unit, process, owner]",
    ),
    ("count --units 30 program", "--unit <FUNCTION>"),
    ("count --unit f --units 0 program", "0 is not in 1.."),
    ("static", "<IMAGE>..."),
    ("static image --against", "a value is required for '--against"),
    ("compare one", "<PROGRAM_B>"),
    ("study fractions", "unrecognized subcommand 'fractions'"),
    (
        "study tpch --queries 1,23",
        "invalid value '23' for '--queries <NUMBERS>': queries are numbered from 1 to 22",
    ),
    ("study tpch --queries first", "queries are numbered from 1 to 22"),
    (
        "study tpch --scale 0",
        "invalid value '0' for '--scale <FACTOR>': scale factors are numbers from 0.001 to 10",
    ),
    ("study tpch --scale=-1", "scale factors are numbers from 0.001 to 10"),
    ("study tpch --scale small", "scale factors are numbers from 0.001 to 10"),
    ("study tpch --scale NaN", "scale factors are numbers from 0.001 to 10"),
];

#[test]
fn wrong_command_lines() {
    for (words, problem) in USAGE {
        let outcome = run(words);
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (2, ""), "{words}");
        assert!(outcome.stderr.contains(problem), "{words}: {}", outcome.stderr);
    }
}

/// Files that are no machine, no trace and no program, and that are never read to an end that they do not have.
#[test]
fn what_never_ends_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let sparse = folder.path().join("sparse.toml");
    fs::File::create(&sparse).unwrap().set_len(100 << 30).unwrap();
    // A program of 100 GB.
    let huge = folder.path().join("huge");
    fs::copy(guest("ev5/tiny"), &huge).unwrap();
    fs::File::options().write(true).open(&huge).unwrap().set_len(100 << 30).unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let files = ["/dev/zero", "/dev/urandom", "/tmp"].map(String::from);
    let made = [&sparse, &huge, &fifo].map(|path| path.display().to_string());
    for file in files.iter().chain(&made) {
        for (words, reads_traces) in [
            (format!("caches --machine {file} :ev5/tiny"), false),
            (format!("show {file}"), true),
            (format!("check {file}"), true),
            (format!("export {file} --to din"), true),
            (format!("static {file}"), false),
            (format!("count {file}"), true),
            (format!("caches {file}"), true),
        ] {
            if reads_traces && file.ends_with("fifo") {
                // A trace may come through a pipe, whose writer is waited for.
                continue;
            }
            let mut limited = Command::new("sh");
            // Less than what it would take.
            let limit = "ulimit -t 20; exec \"$@\"";
            limited.args(["-c", limit, "sh"]);
            let inner = command(&words);
            limited.arg(inner.get_program()).args(inner.get_args()).stdin(std::process::Stdio::null());
            let outcome = outcome(limited);
            assert_eq!((outcome.code(), outcome.stdout.as_str()), (1, ""), "{words}: {}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "{words}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_missing_library() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(guest("ev5/halves"), folder.path().join("halves")).unwrap();
    for words in ["run ./halves", "count --by image ./halves", "count --unit half ./halves"] {
        let mut alone = command(words);
        alone.current_dir(&folder);
        let outcome = outcome(alone);
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (1, ""), "{words}");
        let mut lines = outcome.stderr.lines();
        let loader = lines.next().unwrap();
        assert!(loader.contains("libhalf.so: cannot open shared object file"), "{loader}");
        let ours = lines.next().unwrap();
        assert!(ours.starts_with("pathlength: ./halves did not start: "), "{ours}");
        assert!(ours.contains("a folder that LD_LIBRARY_PATH names"), "{ours}");
    }
    // The advice is good.
    let mut advised = command("run ./halves");
    advised.current_dir(&folder).env("LD_LIBRARY_PATH", guest("ev5"));
    assert_eq!(outcome(advised).quiet_success(), "");
}

#[test]
fn output_that_does_not_go_through() {
    for words in [
        "count --by function --format table :ev5/tiny",
        "count --by group --format json :ev5/tiny",
        "static :ev5/tiny",
    ] {
        let full = format!("exec \"$0\" {} > /dev/full", shell_words(words));
        let outcome = outcome(in_shell(&full));
        let told = "pathlength: cannot write the output: No space left on device (os error 28)";
        assert_eq!((outcome.code(), outcome.stderr.lines().last()), (1, Some(told)), "{words}");
        // The reader's end is no failure of ours.
        let closed = format!("\"$0\" {} 2>/dev/null | true; echo ${{PIPESTATUS[0]}}", shell_words(words));
        assert_eq!(crate::support::outcome(in_shell(&closed)).quiet_success(), "0\n", "{words}");
    }
}

/// The shell's `$0` is the command.
fn in_shell(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_pathlength")]);
    command
}

fn shell_words(words: &str) -> String {
    let words = words.split_whitespace().map(|word| match word.strip_prefix(':') {
        Some(name) => format!("'{}'", guest(name).display()),
        None => word.into(),
    });
    words.collect::<Vec<_>>().join(" ")
}
