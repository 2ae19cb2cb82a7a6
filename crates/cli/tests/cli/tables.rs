//! Where tables go, and which rows they have.

use std::fs;

use crate::support::{Streams, command, csv, marked_csv, on_terminal, run};

/// Commands that run a program, which prints 38000.
const RUNS: [&str; 9] = [
    "count",
    "compare :ev5/modes",
    "caches",
    "time",
    "mrc --streams data",
    "calls",
    "units --unit work",
    "annotate --function work",
    "strides",
];

/// The command with a program.
fn with_program(words: &str) -> String {
    let dashes = if words.starts_with("compare") { "--" } else { "" };
    format!("{words} :ev56/modes {dashes} work")
}

#[test]
fn tables_do_not_mix_with_the_programs_output() {
    let folder = tempfile::tempdir().unwrap();
    for words in RUNS {
        let output = if words.starts_with("compare") { "38000\n38000\n" } else { "38000\n" };
        // In a pipe standard output is the program's.
        let words = with_program(words);
        let piped = run(&words);
        assert_eq!((piped.code(), piped.stdout.as_str()), (0, output), "{words}");
        assert!(piped.stderr.contains("────"), "{words}: {}", piped.stderr);
        // With a format it is the tables'.
        let (command_name, rest) = words.split_once(' ').unwrap_or((&words, ""));
        let formatted = run(&format!("{command_name} --format table {rest}"));
        assert_eq!((formatted.code(), formatted.stderr.as_str()), (0, output), "{words}");
        assert_eq!(formatted.stdout, piped.stderr, "{words}");
        // A file has them where it is named.
        let file = folder.path().join("tables.txt");
        let in_file = run(&format!("{command_name} -o {} {rest}", file.display()));
        let streams = (in_file.code(), in_file.stdout.as_str(), in_file.stderr.as_str());
        assert_eq!(streams, (0, output, ""), "{words}");
        // strides shortens its table for readers of standard output and standard error.
        if !words.starts_with("strides") {
            assert_eq!(fs::read_to_string(&file).unwrap(), piped.stderr, "{words}");
        }
    }
}

#[test]
fn a_terminal_shows_both() {
    for streams in [Streams::All, Streams::Output] {
        let (code, printed) = on_terminal(command("count --by image :ev56/modes work"), 80, streams);
        assert_eq!(code, 0);
        assert!(printed.starts_with("38000\r\n") && printed.contains("Images in the run"), "{printed}");
    }
    let (_, printed) = on_terminal(command("count --by image :ev56/modes work"), 80, Streams::Error);
    assert!(!printed.contains("38000") && printed.contains("Images in the run"), "{printed}");
}

#[test]
fn a_format_alone_on_standard_output_is_valid() {
    let json = run("count --by image --format json :ev56/modes work");
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(value["rows"].as_array().unwrap().len() > 2, "{value}");
    assert_eq!(json.stderr, "38000\n");
}

/// The values of a column of CSV, without the total.
fn column(words: &str, name: &str) -> Vec<String> {
    let rows = csv(&run(words).stdout);
    let at = rows[0].iter().position(|heading| heading == name).unwrap_or_else(|| panic!("{:?}", rows[0]));
    rows[1..].iter().filter(|row| row[0] != "total").map(|row| row[at].clone()).collect()
}

#[test]
fn rows_are_sorted_by_any_column() {
    let words = "--by function --format csv :ev56/calls";
    let numbers = |sort: &str, name: &str| -> Vec<f64> {
        let values = column(&format!("caches --sort {sort} {words}"), name);
        values.iter().map(|value| value.parse().unwrap()).collect()
    };
    for (sort, name) in
        [("instructions", "instructions"), ("dcache-misses", "dcache misses"), ("SHARE", "share")]
    {
        let descending = numbers(sort, name);
        assert!(descending.len() > 50 && descending.is_sorted_by(|a, b| a >= b), "{sort}: {descending:?}");
        let ascending = numbers(&format!("-{sort}"), name);
        assert!(ascending.len() == descending.len() && ascending.is_sorted(), "{sort}: {ascending:?}");
    }
    let names = column(&format!("count --sort function {words}"), "function");
    assert!(names.len() > 50 && names.is_sorted(), "{names:?}");
    let reversed = column(&format!("count --sort=-function {words}"), "function");
    assert!(reversed.is_sorted_by(|a, b| a >= b), "{reversed:?}");
}

#[test]
fn an_unknown_column_is_rejected_with_the_columns_that_there_are() {
    let unknown = run("count --by group --sort sum --format table :ev56/tiny");
    assert_eq!(unknown.code(), 1);
    let problem = "pathlength: --sort: there is no column 'sum'; the columns are group, share\n";
    assert!(unknown.stderr.ends_with(problem), "{}", unknown.stderr);
    // The run is not lost.
    assert!(unknown.stdout.contains("Instruction groups"), "{}", unknown.stdout);
}

#[test]
fn the_first_rows_and_the_total_are_kept() {
    let all = csv(&run("count --by function --format csv :ev56/modes work").stdout);
    let first = csv(&run("count --by function --top 3 --format csv :ev56/modes work").stdout);
    assert_eq!(first.len(), 5);
    assert_eq!((&first[..4], first.last()), (&all[..4], all.last()));
    let table = run("count --top 2 --format table :ev56/modes work").stdout;
    let more = format!("{} more rows: --by function shows all functions.", all.len() - 4);
    assert!(table.contains(&more), "{table}");
    for words in ["caches --by line", "time --by instruction", "calls --by callee", "strides --by function"] {
        let rows = csv(&run(&format!("{words} --top 4 --format csv :ev56/modes work")).stdout);
        assert!((5..=6).contains(&rows.len()), "{words}: {rows:?}");
    }
    assert_eq!(run("count --top 0 :ev56/tiny").code(), 2);
}

/// A share for each row, and all of them together are the whole.
#[test]
fn tables_of_misses_and_cycles_have_shares() {
    for words in ["caches --by function", "time --by line", "calls --by line"] {
        let shares = column(&format!("{words} --format csv :ev56/modes work"), "share");
        let sum: f64 = shares.iter().map(|share| share.parse::<f64>().unwrap()).sum();
        // The total is a row of this column, too.
        assert!((sum - 200.0).abs() < 0.01 || (sum - 100.0).abs() < 0.01, "{words}: {sum}");
    }
}

/// Files for other programs have all rows, and pages all tables.
#[test]
fn files_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let all = column("count --by function --format csv :ev56/modes work", "function");
    assert!(all.len() > 50, "{all:?}");
    run(&format!("count --format csv -o {} :ev56/modes work", path("tables"))).quiet_success();
    let rows = marked_csv(&fs::read_to_string(path("tables/functions.csv")).unwrap());
    let (total, is_total) =
        (rows.last().unwrap(), rows[0].iter().position(|name| name == "is_total").unwrap());
    assert_eq!(
        (rows.len(), total[is_total].as_str(), rows[1][is_total].as_str()),
        (all.len() + 2, "true", "false")
    );
    for words in RUNS {
        let whole = with_program(words);
        let (command_name, rest) = whole.split_once(' ').unwrap_or((&whole, ""));
        let page = path(&format!("{command_name}.html"));
        let outcome = run(&format!("{command_name} -o {page} {rest}"));
        assert_eq!(outcome.code(), 0, "{words}: {}", outcome.stderr);
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{words}: {error}"));
        assert!(text.starts_with("<!DOCTYPE html>"), "{words}: {}", &text[..100]);
    }
    let annotated = fs::read_to_string(path("annotate.html")).unwrap();
    let section = |name: &str| annotated.find(&format!("id=\"section-{name}\""));
    assert!(
        section("lines").is_some() && section("lines") < section("work"),
        "the most expensive lines come first"
    );
    let refused = run(&format!("caches --format csv -o {} :ev56/modes work", path("other.html")));
    assert!(refused.code() == 1 && refused.stderr.contains("leave out --format csv"), "{}", refused.stderr);
    assert_eq!(refused.stdout, "", "it is refused before the program runs");
}
