//! On a terminal: tables fit it, a pager shows them, and a line shows the progress of a program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Streams, command, on_terminal, outcome, run};

/// A folder with a trace of a program with long names.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        run(&format!("trace -o {} --unit main :ev56/store", folder.path("store.trace").display()))
            .noted_success();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A pager that keeps what it is given.
    fn pager(&self) -> PathBuf {
        let pager = self.path("pager");
        fs::write(&pager, format!("#!/bin/sh\necho paged\ncat > {}\n", self.path("kept").display())).unwrap();
        fs::set_permissions(&pager, fs::Permissions::from_mode(0o755)).unwrap();
        pager
    }
}

/// The lines of a table: without the title, which is prose, and notes.
fn rows(printed: &str) -> Vec<&str> {
    printed
        .lines()
        .map(str::trim_end)
        .filter(|line| line.contains("libc") || line.contains("store "))
        .collect()
}

const FUNCTIONS: &str = "show --table functions";

#[test]
fn long_names_lose_their_middle_on_a_terminal_only() {
    let folder = Folder::new();
    let trace = folder.path("store.trace").display().to_string();
    let unpaged = |words: &str, streams| {
        let mut command = command(words);
        command.env("PATHLENGTH_PAGER", "");
        on_terminal(command, 60, streams)
    };
    let (code, narrow) = unpaged(&format!("{FUNCTIONS} {trace}"), Streams::All);
    assert_eq!(code, 0, "{narrow}");
    assert!(rows(&narrow).len() > 5, "{narrow}");
    assert!(
        narrow.lines().all(|line| line.trim_end().chars().count() <= 60 || line.contains('\x1b')),
        "{narrow}"
    );
    assert!(narrow.contains('…'), "{narrow}");
    let in_a_pipe = run(&format!("{FUNCTIONS} {trace}")).quiet_success();
    let (_, wide) = unpaged(&format!("{FUNCTIONS} --wide {trace}"), Streams::All);
    assert!(!in_a_pipe.contains('…') && !wide.contains('…'), "{in_a_pipe}{wide}");
    assert_eq!(rows(&wide), rows(&in_a_pipe));
    assert!(in_a_pipe.lines().any(|line| line.chars().count() > 60), "{in_a_pipe}");
    // A format for programs is never cut.
    let csv = format!("{FUNCTIONS} --format csv {trace}");
    let (_, on_a_terminal) = unpaged(&csv, Streams::Output);
    assert_eq!(on_a_terminal.replace("\r\n", "\n"), run(&csv).noted_success());
}

#[test]
fn a_pager_shows_tables_of_files_on_a_terminal() {
    let folder = Folder::new();
    let (trace, kept) = (folder.path("store.trace").display().to_string(), folder.path("kept"));
    let with = |words: &str, variable: &str, pager: &Path, streams| {
        let _ = fs::remove_file(&kept);
        let mut command = command(words);
        command.env_remove("PAGER").env("NO_COLOR", "1").env(variable, pager);
        let (code, printed) = on_terminal(command, 200, streams);
        assert_eq!(code, 0, "{words}: {printed}");
        (printed, fs::read_to_string(&kept).ok())
    };
    let pager = folder.pager();
    for words in ["show", "show --as functions", "caches", "check"] {
        let words = format!("{words} {trace}");
        let expected = run(&words).quiet_success();
        for variable in ["PAGER", "PATHLENGTH_PAGER"] {
            let (printed, kept) = with(&words, variable, &pager, Streams::All);
            assert!(printed.contains("paged"), "{words}: {printed}");
            assert!(kept.unwrap().lines().count() + 5 >= expected.lines().count(), "{words}");
        }
    }
    let words = format!("show {trace}");
    let unpaged = [
        with(&words, "PAGER", Path::new("cat"), Streams::All),
        with(&words, "PAGER", Path::new(""), Streams::All),
        with(&words, "PAGER", &pager, Streams::Error),
        // The program's output is on the terminal, too.
        with("count :ev56/modes work", "PAGER", &pager, Streams::All),
    ];
    for (printed, kept) in unpaged {
        assert!(!printed.contains("paged") && kept.is_none(), "{printed}");
    }
    // PATHLENGTH_PAGER comes first.
    let mut both = command(&words);
    both.env("PAGER", "false").env("PATHLENGTH_PAGER", &pager);
    assert!(on_terminal(both, 80, Streams::All).1.contains("paged"));
}

#[test]
fn a_pager_that_quits_early_is_no_failure() {
    let folder = Folder::new();
    let mut command = command(&format!("show --as addresses {}", folder.path("store.trace").display()));
    command.env("PAGER", "head -c 10 > /dev/null; echo gone");
    assert_eq!(on_terminal(command, 80, Streams::All), (0, "gone\r\n".into()));
}

#[test]
fn progress_is_on_a_terminal_that_the_program_does_not_write_to() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace").display().to_string();
    let progress = " instructions, ";
    for words in [
        "count --unit work",
        "count",
        "caches",
        "time --host-processors 1",
        "strides",
        &format!("trace -o {trace}"),
    ] {
        // Longer than the time between two lines of progress, however fast the machine is.
        let words = format!("{words} :ev56/modes slow");
        let (code, printed) = on_terminal(command(&words), 80, Streams::Error);
        assert_eq!(code, 0, "{words}: {printed}");
        assert!(printed.contains(progress), "{words}: {printed:?}");
        // The line is removed before tables are shown.
        let rest = printed.rsplit_once("\x1b[K\r").unwrap().1;
        assert_eq!(rest.contains("────"), !words.starts_with("trace"), "{words}: {rest}");
        let (_, printed) = on_terminal(command(&words), 80, Streams::All);
        assert!(!printed.contains(progress), "{words}: {printed:?}");
        let outcome = outcome(command(&words));
        assert!(!(outcome.stdout + &outcome.stderr).contains(progress), "{words}");
    }
}
