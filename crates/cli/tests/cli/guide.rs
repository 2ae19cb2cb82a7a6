//! The sessions (`console`) of README.md, docs/GUIDE.md and its chapters print what these show, but for numbers: those depend
//! on the C library and on the names of folders.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::outcome;

/// The output after each command.
const END: &str = "=== end of an example ===";

/// The file that all of a session's output goes to.
const OUTPUT: &str = "output";

/// The blocks of a page, each a session of a shell: commands, each with the lines that it is said to print.
fn sessions(page: &str) -> Vec<Vec<(&str, Vec<&str>)>> {
    let mut sessions = Vec::new();
    for block in page.split("\n```console\n").skip(1) {
        let mut session: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in block.lines().take_while(|line| !line.starts_with("```")) {
            match line.strip_prefix("$ ") {
                Some(command) => session.push((command, Vec::new())),
                None => session.last_mut().expect("a command comes first").1.push(line),
            }
        }
        sessions.push(session);
    }
    sessions
}

/// What the shell executes for a session; what runs in the background is waited for until others can reach it.
fn script(session: &[(&str, Vec<&str>)]) -> String {
    let mut script = format!("exec >{OUTPUT} 2>&1\n");
    for (command, _) in session {
        script += &format!("{command}\n");
        if command.ends_with('&') {
            let reached = if command.contains("--gdb ./socket") {
                format!("grep -q 'waiting for GDB' {OUTPUT}")
            } else {
                "grep -qx orders /proc/$!/comm".into()
            };
            script += &format!("until {reached}; do sleep 0.01; done\n");
        }
        script += &format!("echo; echo '{END}'\n");
    }
    script
}

/// The words of a line, of which those with digits are all alike, and so are lines that are drawn.
fn words(line: &str) -> Vec<&str> {
    let word = |word| match word {
        word if str::contains(word, |c: char| c.is_ascii_digit()) => "0",
        word if word.starts_with('─') => "─",
        word => word,
    };
    line.split_whitespace().map(word).collect()
}

/// Whether a line equals the documented one, or begins with it if that is shortened.
fn is_as_shown(line: &str, shown: &str) -> bool {
    match shown.strip_suffix('…') {
        Some(beginning) => words(line).starts_with(&words(beginning)),
        None => words(line) == words(shown),
    }
}

/// Checks that lines come in the order in which they are shown, others between them where that is said.
fn check(command: &str, shown: &[&str], printed: &str) {
    let mut lines = printed.lines().filter(|line| !line.trim().is_empty());
    let mut may_skip = false;
    for expected in shown.iter().filter(|line| !line.is_empty()) {
        if *expected == "…" {
            may_skip = true;
            continue;
        }
        let is_there = match may_skip {
            true => lines.any(|line| is_as_shown(line, expected)),
            false => lines.next().is_some_and(|line| is_as_shown(line, expected)),
        };
        assert!(is_there, "{command} does not print this where it is shown:\n{expected}\nbut:\n{printed}");
        may_skip = false;
    }
    let rest: Vec<&str> = lines.collect();
    assert!(may_skip || rest.is_empty(), "{command} prints more than is shown:\n{}", rest.join("\n"));
}

/// The pages with sessions, by the folder in which these are executed: the chapters of the guide go on where the one before ends.
pub fn pages(root: &Path) -> [Vec<PathBuf>; 2] {
    let guide = root.join("docs/GUIDE.md");
    let contents = std::fs::read_to_string(&guide).unwrap();
    let chapters =
        contents.lines().filter_map(|line| line.strip_prefix("- [")?.split_once("](")?.1.strip_suffix(')'));
    let chapters: Vec<PathBuf> = chapters.map(|chapter| root.join("docs").join(chapter)).collect();
    [vec![root.join("README.md")], std::iter::once(guide).chain(chapters).collect()]
}

/// Executes the sessions of pages in a new folder; how many there were.
fn check_sessions(root: &Path, pages: &[PathBuf]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    symlink(root.join("docs"), folder.path().join("docs")).unwrap();
    // The programs' stacks, and with them their misses and cycles, begin where the environment ends.
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_pathlength"), folder.path().join("bin/pathlength")).unwrap();
    let mut count = 0;
    for path in pages {
        let page = std::fs::read_to_string(path).unwrap();
        for session in sessions(&page) {
            check_session(folder.path(), &session);
            count += 1;
        }
    }
    count
}

fn check_session(folder: &Path, session: &[(&str, Vec<&str>)]) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &script(session)]).current_dir(folder).env_clear().env("PATH", "bin:/usr/bin:/bin");
    outcome({
        shell.stdin(Stdio::null());
        shell
    });
    let printed = std::fs::read_to_string(folder.join(OUTPUT)).unwrap();
    let mut printed = printed.split(END);
    for (command, shown) in session {
        check(command, shown, printed.next().unwrap());
    }
}

#[test]
fn readme_shows_what_its_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let [readme, _] = pages(&root);
    let sessions = check_sessions(&root, &readme);
    assert!(sessions >= 6, "{sessions} sessions");
}

#[test]
fn guide_shows_what_its_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let [_, guide] = pages(&root);
    assert!(guide.len() >= 8, "{guide:?}");
    let sessions = check_sessions(&root, &guide);
    assert!(sessions >= 25, "{sessions} sessions");
}
