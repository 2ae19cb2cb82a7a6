//! The end of an output's name decides its form, in every command: the file has that form, or nothing is run.

use std::fs;
use std::path::Path;

use crate::outputs::Folder;
use crate::support::{Outcome, guest, outcome, pathlength};

/// Every command that writes tables, with what its tables need; `-o FILE` follows its first words.
const COMMANDS: [(&str, &str); 31] = [
    ("count", "./prog work"),
    ("count", "--by image ./prog work"),
    ("count", "--by function --children ./prog work"),
    ("count", "--unit work --unit main ./prog work"),
    ("static", "prog"),
    ("static", "prog --against other"),
    ("compare", "./prog ./other -- work"),
    ("show", "t --as summary"),
    ("show", "t --as addresses"),
    ("show", "t --table mix"),
    ("check", "t"),
    ("strides", "./prog work"),
    ("caches", "--machine dec3000 ./prog work"),
    ("caches", "--machine dec3000 --by call-tree ./prog work"),
    ("caches", "--machine dec3000 --sweep dcache.size=8K,16K ./prog work"),
    ("annotate", "--function work ./prog work"),
    ("calls", "./prog work"),
    ("calls", "--by caller ./prog work"),
    ("calls", "--by call-tree ./prog work"),
    ("faults", "./prog work"),
    ("faults", "--by time ./prog work"),
    ("sharing", "./prog work"),
    ("sharing", "--by line ./prog work"),
    ("units", "--unit work ./prog work"),
    ("objects", "--rules rules.toml ./prog work"),
    ("mrc", "./prog work"),
    ("time", "--machine dec3000 ./prog work"),
    ("time", "--machine dec3000 --by function ./prog work"),
    ("sample", "--every 1000 ./prog work"),
    ("machines", ""),
    ("doctor", ""),
];

/// Ends of names, and how a file of the form begins. Collapsed stacks have no fixed beginning.
const FORMS: [(&str, &[&str]); 9] = [
    ("csv", &[]),
    ("html", &["<!DOCTYPE html>"]),
    ("svg", &["<svg", "<?xml"]),
    ("folded", &[]),
    ("json", &["{", "["]),
    ("parquet", &["PAR1"]),
    ("md", &["**", "|", "#"]),
    ("counts", &[]),
    ("png", &["never"]),
];

const RULES: &str = "[[rule]]\nkind = 'call'\nfunctions = ['work']\nname = 'work'\n";

/// A folder with programs, a trace and rules.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::copy(guest("ev56/modes"), folder.path("other")).unwrap();
    fs::write(folder.path("rules.toml"), RULES).unwrap();
    folder
}

/// Whether a file has the form that its name ends with.
fn check_content(end: &str, begins: &[&str], file: &Path, words: &str) {
    let bytes = fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!bytes.is_empty(), "{words}");
    match end {
        "csv" => {
            let columns: Vec<usize> = text.lines().map(|line| line.matches(',').count()).collect();
            assert!(columns.len() > 1 && columns[0] > 0, "{words}: {text}");
            assert!(!text.contains("---"), "{words}: {text}");
        }
        "folded" => {
            let is_chain = |line: &str| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok());
            assert!(text.lines().all(is_chain), "{words}: {text}");
        }
        "counts" => assert!(!text.starts_with("Images") && !text.contains("---"), "{words}: {text}"),
        _ => {
            let text = text.trim_start();
            assert!(begins.iter().any(|begin| text.starts_with(begin)), "{words}: {text:.200}");
        }
    }
    if end == "json" {
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
    }
}

#[test]
fn names_of_outputs_decide_their_form_in_every_command() {
    let folder = folder();
    let before = folder.listing();
    let mut written = 0;
    for (number, (command, rest)) in COMMANDS.into_iter().enumerate() {
        // The first forms of all commands, and the others in turns.
        let turn = |index: usize| index < 4 || (index + number).is_multiple_of(3);
        for (end, begins) in
            FORMS.into_iter().enumerate().filter(|(index, _)| turn(*index)).map(|(_, form)| form)
        {
            let (name, words) = (format!("out.{end}"), format!("{command} -o out.{end} {rest}"));
            let outcome = folder.run(&words);
            let file = folder.path(&name);
            if file.exists() {
                assert!(file.is_file(), "{words}");
                check_content(end, begins, &file, &words);
                fs::remove_file(&file).unwrap();
                written += 1;
                continue;
            }
            assert_eq!(outcome.stdout, "", "{words}: it ran, and wrote nothing");
            let failure = outcome.failure();
            let says = failure.contains(&name) || failure.contains("page");
            assert!(says, "{words}: {failure}");
            assert_eq!(folder.listing(), before, "{words}");
        }
    }
    // Pages are written by nearly all, CSV by those with one table, and one or two of the other forms.
    assert!(written > 2 * COMMANDS.len(), "{written}");
}

/// Every command with options of tables is in the list above.
#[test]
fn all_commands_with_tables_are_checked() {
    let help = folder_less("help").stdout;
    let names =
        help.lines().filter_map(|line| line.strip_prefix("  ")).filter_map(|line| line.split(' ').next());
    let mut with_tables = Vec::new();
    for name in names.filter(|name| !name.is_empty() && !name.starts_with('-')) {
        let help = folder_less(&format!("help {name}")).stdout;
        if help.contains("--format <FORMAT>") && help.contains("-o, --output <PATH>") {
            with_tables.push(name);
        }
    }
    assert!(with_tables.len() > 15, "{with_tables:?}");
    for name in with_tables {
        // A build takes long, and is of one small table.
        let is_checked = name == "build" || COMMANDS.iter().any(|(command, _)| *command == name);
        assert!(is_checked, "{name} is not checked");
    }
}

#[test]
fn a_name_and_a_format_must_agree() {
    let folder = folder();
    for (words, name) in [
        ("count --by image --format json -o out.csv ./prog work", "out.csv"),
        ("count --by image --format csv -o out.html ./prog work", "out.html"),
        ("calls --by call-tree --format csv -o out.svg ./prog work", "out.svg"),
        ("count --format csv -o out.counts ./prog work", "out.counts"),
        ("mrc --format csv -o out.html ./prog work", "out.html"),
        ("sharing --format table -o out.parquet ./prog work", "out.parquet"),
    ] {
        let outcome = folder.run(words);
        assert_eq!(outcome.stdout, "", "{words}");
        let failure = outcome.failure();
        assert!(failure.contains(name) && failure.contains("leave out --format"), "{words}: {failure}");
    }
    // Directories and other names are as they were.
    folder.run("count --by image --format csv -o out.txt ./prog work").quiet_success();
    assert!(fs::read_to_string(folder.path("out.txt")).unwrap().contains(','));
    fs::create_dir(folder.path("all.csv")).unwrap();
    folder.run("count --format csv -o all.csv ./prog work").quiet_success();
    assert!(folder.path("all.csv/images.csv").exists());
}

fn folder_less(words: &str) -> Outcome {
    outcome(pathlength(words.split_whitespace()))
}
