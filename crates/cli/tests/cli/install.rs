//! `doctor`, `completions` and `man`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Outcome, csv, listing, outcome, pathlength, run};

/// The library of an installed sysroot.
const LIBRARY: &str = "/usr/alpha-linux-gnu/lib/libc.so.6.1";

/// `doctor` with the commands in one directory, and a sysroot.
fn doctor(path: &Path, sysroot: &Path) -> Outcome {
    let words = ["doctor", "--format", "csv", "--sysroot"].map(Into::into);
    let mut command = pathlength(words.iter().chain([&sysroot.as_os_str().to_owned()]));
    command.env("PATH", path);
    outcome(command)
}

/// The cells of the row of one check.
fn row(outcome: &Outcome, what: &str) -> Vec<String> {
    csv(&outcome.stdout).into_iter().find(|row| row[0] == what).expect(what)
}

#[test]
fn doctor_finds_all_that_the_tests_need() {
    let found = run("doctor");
    assert_eq!(found.code(), 0, "{}", found.stdout);
    let found = run("doctor --format csv");
    for what in ["address space of 4 TiB", "memfd_create", "/proc", "temporary files", "C library for Alpha"]
    {
        assert_eq!(row(&found, what)[1..3], ["ok", "needed"], "{what}");
    }
    for what in ["addresses from 64 KiB", "alpha-linux-gnu-gcc", "gdb-multiarch", "qemu-alpha"] {
        assert_eq!(row(&found, what)[1..3], ["ok", "optional"], "{what}");
    }
}

#[test]
fn doctor_says_what_is_missing_and_how_to_get_it() {
    let nothing = tempfile::tempdir().unwrap();
    let found = doctor(nothing.path(), nothing.path());
    assert_eq!(found.code(), 1);
    let library = row(&found, "C library for Alpha");
    assert_eq!(library[1..3], ["missing", "needed"]);
    assert!(library[5].starts_with("apt-get install libc6.1-alpha-cross;"), "{library:?}");
    let compiler = row(&found, "alpha-linux-gnu-gcc");
    assert_eq!(compiler[1..3], ["missing", "optional"]);
    assert_eq!(compiler[4..], ["not in PATH", "apt-get install gcc-alpha-linux-gnu"]);
    assert!(found.stderr.contains("Needed and missing: 2,"), "{}", found.stderr);

    let found = doctor(nothing.path(), Path::new("/usr/alpha-linux-gnu"));
    assert_eq!(found.code(), 0, "all that is needed is present: {}", found.stdout);
    assert_eq!(row(&found, "gdb-multiarch")[1], "missing");
}

#[test]
fn doctor_finds_a_damaged_library() {
    let sysroot = tempfile::tempdir().unwrap();
    let folder = sysroot.path().join("lib");
    fs::create_dir(&folder).unwrap();
    let library = fs::read(LIBRARY).unwrap();
    fs::write(folder.join("libc.so.6.1"), &library[..library.len() / 2]).unwrap();
    let found = doctor(Path::new("/usr/bin"), sysroot.path());
    assert_eq!(found.code(), 1);
    let library = row(&found, "C library for Alpha");
    assert!(library[5].starts_with("apt-get install --reinstall libc6.1-alpha-cross;"), "{library:?}");
}

#[test]
fn doctor_finds_a_limit_of_the_address_space() {
    let mut shell = Command::new("sh");
    let doctor =
        concat!("ulimit -v 4000000; exec ", env!("CARGO_BIN_EXE_pathlength"), " doctor --format csv");
    shell.args(["-c", doctor]);
    let found = outcome(shell);
    assert_eq!(found.code(), 1);
    let space = row(&found, "address space of 4 TiB");
    assert_eq!(space[1..3], ["missing", "needed"]);
    assert!(space[5].starts_with("ulimit -v unlimited"), "{space:?}");
}

/// What bash completes for the last of these words; nothing means files.
fn completed(words: &str) -> Vec<String> {
    let script = run("completions bash").quiet_success();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), script).unwrap();
    let mut bash = Command::new("bash");
    let complete = "source \"$1\"; shift
        complete -p pathlength | grep -q -- '-o default' || exit 9
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
        function=$(complete -p pathlength | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
        $function pathlength \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        for word in \"${COMPREPLY[@]}\"; do echo \"$word\"; done";
    bash.args(["-c", complete, "bash"]).arg(file.path()).args(words.split(' '));
    outcome(bash).quiet_success().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_values_and_files() {
    assert_eq!(completed("pathlength cou"), ["count"]);
    assert_eq!(completed("pathlength show --as "), ["summary", "instructions", "functions", "addresses"]);
    assert_eq!(completed("pathlength count --by f"), ["function"]);
    assert_eq!(completed("pathlength trace --val"), ["--values"]);
    assert_eq!(completed("pathlength completions z"), ["zsh"]);
    for files in
        ["pathlength show ", "pathlength show sort.tr", "pathlength run ", "pathlength count ./sort "]
    {
        assert_eq!(completed(files), [""; 0], "{files}");
    }
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&format!("completions {shell}")).quiet_success();
        assert!(script.contains("sysroot") && script.contains("doctor"), "{shell}");
    }
    assert_eq!(run("completions csh").code(), 2);
}

/// The commands that `pathlength help` or `pathlength COMMAND help` lists.
fn commands(help: &str) -> Vec<String> {
    let help = run(help).quiet_success();
    let listed = help.lines().take_while(|line| *line != "Options:");
    let names =
        listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    assert_eq!(run(&format!("man -o {}", pages.display())).quiet_success(), "");
    let of = commands;
    let commands = of("help");
    assert!(commands.len() > 15, "{commands:?}");
    let mut expected: Vec<_> = commands.iter().map(|name| format!("pathlength-{name}.1")).collect();
    expected.push("pathlength.1".into());
    for (command, least) in [("spike", 6), ("system", 4), ("branch-log", 5), ("study", 11)] {
        let own = of(&format!("{command} help"));
        assert!(own.len() >= least, "{own:?}");
        expected.extend(own.iter().map(|name| format!("pathlength-{command}-{name}.1")));
    }
    expected.sort();
    assert_eq!(listing(&pages), expected);
    for name in &commands {
        let page = fs::read_to_string(pages.join(format!("pathlength-{name}.1"))).unwrap();
        assert_eq!(run(&format!("man {name}")).quiet_success(), page);
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}\n")), "{name}: {section}");
        }
    }
    let page = run("man count").quiet_success();
    let title =
        format!(".TH pathlength-count 1 \"\" \"pathlength {}\" Pathlength\n", env!("CARGO_PKG_VERSION"));
    assert!(page.starts_with(&title), "{page}");
    let example = "pathlength count ./sort data.txt ";
    assert!(page.contains(&format!(".nf\n{example}")), "examples keep their lines: {page}");
}

#[test]
fn every_command_is_in_the_reference_once() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path();
    assert_eq!(run(&format!("man --format markdown -o {}", pages.display())).quiet_success(), "");
    let contents = fs::read_to_string(pages.join("SUMMARY.md")).unwrap();
    let links = contents.lines().filter_map(|line| line.split_once("(reference/")?.1.strip_suffix(')'));
    let mut links: Vec<String> = links.map(str::to_owned).collect();
    links.extend(["README.md".into(), "SUMMARY.md".into()]);
    links.sort();
    assert_eq!(listing(pages), links, "QUESTIONS names each command once");
    let index = fs::read_to_string(pages.join("README.md")).unwrap();
    for name in commands("help") {
        assert!(index.contains(&format!("- [{name}]({name}.md): ")), "{name}: {index}");
        let page = fs::read_to_string(pages.join(format!("{name}.md"))).unwrap();
        assert!(page.starts_with(&format!("# pathlength {name}\n\n")), "{page}");
        assert!(page.contains("\n## Examples\n\n```text\npathlength "), "{page}");
    }
    // Help lists the same commands below the same questions.
    let help = run("help").quiet_success();
    assert_eq!(run("--help").quiet_success(), help);
    assert_eq!(commands("-h"), commands("help"));
    let listed = help.lines().take_while(|line| *line != "Options:").filter_map(|line| {
        let name = || Some(line.strip_prefix("  ")?.split(' ').next()?.to_owned());
        line.strip_suffix(':').map(str::to_owned).or_else(name).filter(|name| !name.is_empty())
    });
    let expected = index.lines().filter_map(|line| {
        let name = || line.strip_prefix("- [")?.split_once(']').map(|(name, _)| name);
        line.strip_prefix("## ").or_else(name).map(str::to_owned)
    });
    assert_eq!(listed.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    let page = run("man --format markdown mrc").quiet_success();
    assert!(page.contains("- `--streams <STREAMS>`"), "{page}");
}

#[test]
fn a_page_of_no_command_is_rejected() {
    assert_eq!(run("man counts").failure(), "there is no command 'counts': pathlength help lists all");
}
