//! `pathlength objects --by plan` on SQLite: its rows are the nodes that EXPLAIN QUERY PLAN lists, and their costs add up.

use std::path::{Path, PathBuf};
use std::process::Command;

use workloads::build::{BuildFolders, build};
use workloads::toolchain::BYTE_WORD;
use workloads::workload::Workload;

use crate::support::{csv, outcome, pathlength};

/// A program with a SQLite that keeps which operations belong to which node.
fn program(folder: &Path) -> PathBuf {
    let workload = Workload::named("tpcb").expect("the workload");
    let options = BuildFolders { folder: testing::builds(), sources: None };
    let builds = build(workload, &[BYTE_WORD], &options, &|_| {}).expect("the workload builds");
    let sources = builds[0].program.parent().expect("it is in a folder");
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests/sqlite_plans.c");
    let compile = |source: &Path, output: &str, more: &[&str]| {
        let mut compiler = Command::new("alpha-linux-gnu-gcc");
        compiler.current_dir(folder).args(["-g", "-mcpu=ev56", "-I"]).arg(sources).arg(source);
        compiler.args(["-o", output]).args(more);
        assert!(compiler.status().expect("the cross compiler is needed: run ./setup").success());
    };
    // Optimized, SQLite takes ten times as long to compile.
    let switches =
        ["-O0", "-fPIC", "-shared", "-DSQLITE_ENABLE_STMT_SCANSTATUS", "-DSQLITE_OMIT_LOAD_EXTENSION"];
    compile(&sources.join("sqlite3.c"), "libsqlite3.so", &[&switches[..], &["-lm"]].concat());
    compile(&guest, "plans", &["-O1", "-L.", "-lsqlite3", "-Wl,-rpath,$ORIGIN"]);
    folder.join("plans")
}

/// A node of a plan: its depth, and its text.
type Node = (usize, String);

/// The nodes that EXPLAIN QUERY PLAN lists for each query, with parents before what is below them.
fn explained(program: &Path) -> Vec<Vec<Node>> {
    let text = outcome(pathlength([Path::new("run"), program, Path::new("explain")])).quiet_success();
    let mut queries: Vec<Vec<Node>> = Vec::new();
    let mut depths: Vec<(u32, usize)> = Vec::new();
    for line in text.lines() {
        let [query, id, parent, node] = line.splitn(4, '|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let query: usize = query.parse().unwrap();
        if query == queries.len() {
            queries.push(Vec::new());
            depths.clear();
        }
        let above = depths.iter().find(|(id, _)| *id == parent.parse::<u32>().unwrap());
        let depth = above.map_or(1, |(_, depth)| depth + 1);
        depths.push((id.parse().unwrap(), depth));
        queries[query].push((depth, node.to_string()));
    }
    queries
}

#[test]
fn costs_of_plans_are_those_of_their_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let queries = explained(&program);
    assert_eq!(queries.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 5, 3], "{queries:?}");
    let mut command = pathlength(["objects", "--by", "plan", "--format", "csv"]);
    command.arg(&program);
    let outcome = outcome(command);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let rows = csv(&outcome.stdout);
    let column = |name: &str| rows[0].iter().position(|heading| heading == name).unwrap();
    let [inclusive, own, depth] = ["instructions", "own instructions", "depth"].map(column);
    let number = |row: &[String], column: usize| row[column].parse::<u64>().unwrap();
    // Each query's rows: its statement, then what is below.
    let begins = |word: &str| rows.iter().position(|row| row[0].starts_with(word));
    for (query, word) in queries.iter().zip([
        "SELECT c.name",
        "SELECT region",
        "SELECT id FROM orders",
        "SELECT name FROM customer",
    ]) {
        let first = begins(word).unwrap_or_else(|| panic!("no {word} in {}", outcome.stdout));
        let below = rows[first + 1..].iter().take_while(|row| row[depth] != "0" && !row[depth].is_empty());
        let below: Vec<&Vec<String>> = below.collect();
        let sum: u64 = below.iter().map(|row| number(row, own)).sum();
        assert_eq!(number(&rows[first], inclusive), number(&rows[first], own) + sum, "{word}");
        let nodes = below.iter().filter(|row| row[0] != "(preparing)");
        let mut found: Vec<Node> = nodes.map(|row| (number(row, depth) as usize, row[0].clone())).collect();
        let mut expected = query.clone();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{word}");
        // Reading tables is what these queries do.
        let scans = below.iter().filter(|row| row[0].starts_with("SCAN") || row[0].starts_with("SEARCH"));
        let of_scans: u64 = scans.map(|row| number(row, own)).sum();
        let preparing =
            below.iter().filter(|row| row[0] == "(preparing)").map(|row| number(row, own)).sum::<u64>();
        let executing = number(&rows[first], inclusive) - preparing;
        assert!(10 * of_scans > executing && of_scans < executing, "{word}: {of_scans} of {executing}");
    }
}
