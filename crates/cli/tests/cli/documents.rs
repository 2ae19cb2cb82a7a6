//! Every command that README.md and docs/ print is executed as it is printed, or is listed here with the reason why not.
//! Sessions with their output (`console`) are `guide.rs`'s; examples in Python are those of python/tests/.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::guide;
use crate::support::csv;

/// How commands begin that are not executed here, and why.
const NOT_EXECUTED: [(&str, &str); 39] = [
    ("make study", "a long build"),
    ("make test", "it is what runs this"),
    ("apt-get install ./dist/", "needs root and a long build: packaging/test-dist does it"),
    ("tar -C /usr/local", "needs root and a long build: packaging/test-dist does it"),
    ("docker build", "needs Docker and a long build: packaging/test-dist takes the same steps"),
    ("pip install dist/", "needs a long build: packaging/test-dist does it"),
    ("pip install '.[charts]'", "needs a network and a long build: make test-python does it"),
    ("cargo install", "a long build: packaging/test-dist does it"),
    ("alias pathlength=", "the command under test is in PATH instead"),
    ("pathlength show hello.trace", "of pathlength system"),
    ("pathlength caches hello.trace", "of pathlength system"),
    ("pathlength faults hello.trace", "of pathlength system"),
    ("pathlength caches --by entry hello.trace", "of pathlength system"),
    ("pathlength caches --mode user hello.trace", "of pathlength system"),
    ("pathlength time --machine alphastation500 --by mode hello.trace", "of pathlength system"),
    ("pathlength study system", "builds kernels, which takes minutes"),
    ("pathlength system", "builds a kernel, which takes minutes: make system-check does it"),
    ("pathlength study tpch", "takes minutes: tpch.rs makes the study of three queries"),
    ("pathlength study smp", "records a server that takes minutes to build: its parts have tests"),
    ("pathlength study spike", "builds programs for minutes: its parts have tests"),
    ("sudo ", "changes the reader's machine: crates/vlm tests the commands on small pools"),
    ("vlm ", "needs sections of the reader's: crates/vlm tests the commands on small pools"),
    (
        "pathlength export three.trace --to din",
        "pipes into dineroIV, which no package has: export.rs does the same",
    ),
    ("pathlength sysroot", "fetches packages from the network"),
    ("pathlength count --sysroot sysroot-riscv64", "needs packages from the network"),
    ("pathlength build postgresql", "takes minutes: make postgresql-check does it"),
    ("cd ", "the reader's folders"),
    ("cp source/", "a build of PostgreSQL"),
    ("$EDITOR", "the reader's editor"),
    ("diff -u source/", "a build of PostgreSQL"),
    ("pathlength compare --unit exec_simple_query", "a build of PostgreSQL"),
    ("pathlength count --children --time-dilation 1000", "a server: make postgresql-check counts one"),
    ("pgbench", "asks a server: make clients-check does it"),
    ("pg_ctl", "stops a server"),
    ("pathlength compare --fail-above 0.5%", "a server's counts"),
    ("pathlength objects bin/postgres", "a build of PostgreSQL: objects.rs has small programs"),
    ("pathlength objects --by statement --children bin/postgres", "a build of PostgreSQL"),
    ("pathlength count --children bin/postgres", "a server: make postgresql-check counts one"),
    ("pathlength count --attach PID", "a server of the reader's: attach.rs attaches to others"),
];

/// How commands begin that are to fail, and with which exit status.
const FAILING: [(&str, i32); 1] = [("pathlength compare --fail-above", 3)];

/// A command, and the line of the page that it begins in.
#[derive(Debug, PartialEq)]
struct Printed {
    line: usize,
    command: String,
}

/// What a page has for its readers to execute.
#[derive(Debug, Default, PartialEq)]
struct PageCommands {
    /// The lines of indented blocks; those that end with a backslash go on in the next.
    commands: Vec<Printed>,
    /// Files that are shown: blocks with the name of the file as a comment in the first line.
    files: Vec<(String, String)>,
    /// Whether there are sessions with their output.
    has_sessions: bool,
}

fn read(page: &str) -> PageCommands {
    let mut found = PageCommands::default();
    let mut lines = (1..).zip(page.lines()).peekable();
    let mut before = "";
    while let Some((line, text)) = lines.next() {
        if let Some(language) = text.trim_start().strip_prefix("```") {
            let block = lines.by_ref().take_while(|(_, text)| !text.trim_start().starts_with("```"));
            let block: Vec<(usize, &str)> = block.collect();
            found.has_sessions |= language == "console";
            let name = block.first().and_then(|(_, first)| first.strip_prefix("# "));
            if let Some(name) = name.filter(|name| name.contains('.') && !name.contains(' ')) {
                let content: Vec<&str> = block.iter().map(|(_, text)| *text).collect();
                found.files.push((name.into(), content.join("\n")));
            }
        } else if text.starts_with("    ") && before.is_empty() {
            let mut block = vec![(line, text.trim_start())];
            while let Some((at, text)) = lines.next_if(|(_, text)| text.starts_with("    ")) {
                block.push((at, text.trim_start()));
            }
            if !block[0].1.starts_with(">>>") {
                found.add(block);
            }
        }
        before = text;
    }
    found
}

impl PageCommands {
    fn add<'p>(&mut self, lines: impl IntoIterator<Item = (usize, &'p str)>) {
        let mut is_continued = false;
        for (line, text) in lines {
            match self.commands.last_mut() {
                Some(last) if is_continued => last.command += &format!("\n{text}"),
                _ => self.commands.push(Printed { line, command: text.into() }),
            }
            is_continued = text.ends_with('\\');
        }
    }
}

#[test]
fn commands_of_a_page_are_found() {
    let page = "\
Text, `pathlength help`.

    pathlength count ./a    # here
    pathlength trace -o b \\
        ./a

- an item
    that is continued

    >>> pathlength.count(\"./a\")
    <Counts>

```text
pathlength is shown
```
```toml
# own.toml
base = \"dec3000\"
```
```console
$ pathlength show b
shown
```
";
    let commands = [(3, "pathlength count ./a    # here"), (4, "pathlength trace -o b \\\n./a")];
    let commands = commands.map(|(line, command)| Printed { line, command: command.into() });
    let files = [("own.toml".into(), "# own.toml\nbase = \"dec3000\"".into())];
    assert_eq!(
        read(page),
        PageCommands { commands: commands.into(), files: files.into(), has_sessions: true }
    );
}

/// The pages in the order in which they are read: later ones use what the guide's commands have made.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = guide::pages(root).concat();
    pages.push(root.join("python/README.md"));
    for folder in ["docs", "docs/design"] {
        let paths = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
        paths.retain(|path| !pages.contains(path));
        paths.sort();
        pages.extend(paths);
    }
    pages
}

/// A folder with what the commands use: the sources, and TPC-B with its database, as `make study` leaves them.
fn workplace(root: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["docs", "workloads"] {
        symlink(root.join(name), folder.path().join(name)).unwrap();
    }
    fs::create_dir(folder.path().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_pathlength"), folder.path().join("bin/pathlength")).unwrap();
    for workload in ["tpcb", "tpcc"] {
        link_builds(root, workload, &folder.path().join("build").join(workload));
    }
    let native = fs::read_dir(folder.path().join("build/tpcb")).unwrap().map(|entry| entry.unwrap().path());
    let native = native.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("native"));
    let runs = folder.path().join("build/tpcb/runs");
    fs::create_dir(&runs).unwrap();
    for build in native.collect::<Vec<_>>() {
        let loaded = Command::new(build.join("tpcb")).arg("load").arg(runs.join("loaded.db")).output();
        assert!(loaded.unwrap().status.success());
    }
    folder
}

/// Links to the builds of a workload, which are kept for other tests.
fn link_builds(root: &Path, workload: &str, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let mut build = Command::new(env!("CARGO_BIN_EXE_pathlength"));
    let built = build.args(["build", workload, "--format", "csv"]).current_dir(root).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let rows = csv(&String::from_utf8(built.stdout).unwrap());
    let program = column(&rows[0], "program");
    for row in &rows[1..] {
        let kept = root.join(&row[program]);
        let kept = kept.parent().unwrap();
        symlink(kept, folder.join(kept.file_name().unwrap())).unwrap();
    }
}

fn column(headings: &[String], name: &str) -> usize {
    headings.iter().position(|heading| heading == name).expect(name)
}

#[test]
fn commands_of_readme_and_docs_succeed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = workplace(&root);
    // Cargo finds the sources of workloads.
    let cargo = Path::new(env!("CARGO")).parent().expect("a folder");
    let sessions = guide::pages(&root).concat();
    let (mut executed, mut unused) = (0, NOT_EXECUTED.map(|(beginning, _)| beginning).to_vec());
    for path in pages(&root) {
        let page = read(&fs::read_to_string(&path).unwrap());
        let is_checked = sessions.contains(&path);
        assert!(!page.has_sessions || is_checked, "{}: guide.rs executes no sessions of it", path.display());
        for (name, content) in page.files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        for Printed { line, command } in page.commands {
            if let Some((listed, _)) = NOT_EXECUTED.iter().find(|(listed, _)| command.starts_with(listed)) {
                unused.retain(|unused| unused != listed);
                continue;
            }
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &command])
                .current_dir(&folder)
                .env("PATH", format!("bin:/usr/bin:/bin:{}", cargo.display()))
                .env("XDG_DATA_HOME", folder.path().join("data"))
                .stdin(Stdio::null());
            let output = shell.output().unwrap();
            let expected = FAILING.iter().find(|(beginning, _)| command.starts_with(beginning));
            assert_eq!(
                output.status.code(),
                Some(expected.map_or(0, |(_, status)| *status)),
                "{}:{line}: {command}\n{}{}\nA command that tests cannot execute belongs into the list NOT_EXECUTED of {}",
                path.display(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
                file!(),
            );
            executed += 1;
        }
    }
    assert!(executed > 50, "{executed} commands were found");
    assert_eq!(unused, [""; 0], "no page has these commands any more");
}
