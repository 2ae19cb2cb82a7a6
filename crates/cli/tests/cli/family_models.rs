//! `caches`, `time` and `strides` with `--children`: models of all processes.

use std::fs;

use crate::support::{csv, guest, outcome, pathlength, run};

type Csv = Vec<Vec<String>>;

/// The tables of a command on the program `family`, or on a trace, by their names.
fn tables(command: &str, options: &str, what: &[&str]) -> Vec<(String, Csv)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables");
    let mut command = pathlength([command]);
    command.args(options.split_whitespace()).args(["--format", "csv", "-o"]).arg(&path).args(what);
    outcome(command).noted_success();
    let read = |path: &std::path::Path| csv(&fs::read_to_string(path).unwrap());
    if path.is_file() {
        return vec![("table".into(), read(&path))];
    }
    let mut tables: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), read(&path)))
        .collect();
    tables.sort();
    tables
}

fn family(command: &str, options: &str, how: &str) -> Vec<(String, Csv)> {
    let program = guest("ev56/family");
    tables(command, options, &[program.to_str().unwrap(), how])
}

/// The only table.
fn table(command: &str, options: &str, how: &str) -> Csv {
    family(command, options, how).remove(0).1
}

/// The rows without the given columns at their beginning.
fn numbers(table: &Csv, from: usize) -> Vec<Vec<u64>> {
    let row = |row: &Vec<String>| row[from..].iter().map(|cell| cell.parse().unwrap()).collect();
    table[1..].iter().map(row).collect()
}

/// By process, from the number of instructions or cycles on.
fn by_process(command: &str, how: &str) -> Vec<Vec<u64>> {
    numbers(&table(command, "--children --by process", how), 4)
}

fn without(name: &str, tables: Vec<(String, Csv)>) -> Vec<(String, Csv)> {
    tables.into_iter().filter(|(own, _)| own != name).collect()
}

/// Each process is simulated from where it comes to the place. The server itself does not come there.
#[test]
fn processes_that_come_to_the_place_are_simulated() {
    let of = |options: &str| {
        let table = table("caches", &format!("--children --by process {options}"), "serve");
        let rows = table[1..].iter().map(|row| (row[0].clone(), row[4].parse::<u64>().unwrap()));
        rows.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (all, part) = (of(""), of("--from request"));
    assert!(all.contains_key("1") && !part.contains_key("1"), "{part:?}");
    assert_eq!(part.len(), all.len() - 1);
    assert!(part.iter().all(|(process, instructions)| (1..all[process]).contains(instructions)), "{part:?}");
    let nobody = run("caches --children --from mark_payment :ev56/family serve").failure();
    assert!(nobody.contains("no process executed anything"), "{nobody}");
}

#[test]
fn a_single_process_is_as_without_children() {
    for command in ["caches", "caches --classify", "time"] {
        let (command, options) = command.split_once(' ').unwrap_or((command, ""));
        let together = without("processes", family(command, &format!("{options} --children"), "work"));
        let tables = |tables: Vec<(String, Csv)>| tables.into_iter().map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(tables(together), tables(family(command, options, "work")), "{command}");
        for rows in ["function", "line", "instruction"] {
            let options = format!("{options} --by {rows}");
            let together = table(command, &format!("{options} --children"), "work");
            assert_eq!(together, table(command, &options, "work"), "{command} {rows}");
        }
    }
    for rows in ["array", "line", "function", "instruction", "all"] {
        let options = format!("--histograms --by {rows}");
        let together = table("strides", &format!("{options} --children"), "work");
        assert_eq!(together, table("strides", &options, "work"), "{rows}");
    }
}

#[test]
fn processes_that_do_the_same_have_the_same_figures() {
    for (command, results) in [("caches", 16), ("time", 5)] {
        let processes = by_process(command, "alike");
        let [first, children @ .., total] = &processes[..] else { panic!("{processes:?}") };
        assert!(first.len() == results && children.len() == 3);
        assert!(children.iter().all(|child| *child == children[0] && child[0] > 1000), "{children:?}");
        let sum = |column: usize| processes[..4].iter().map(|row| row[column]).sum();
        assert_eq!(*total, (0..results).map(sum).collect::<Vec<u64>>());
        for rows in ["function", "line", "instruction"] {
            let table = table(command, &format!("--children --by {rows}"), "alike");
            let last = &table[table.len() - 1..];
            let from = table[0].len() - results;
            assert_eq!(numbers(&[&table[..1], last].concat(), from), [&total[..]], "{command} {rows}");
        }
    }
    let processes = table("strides", "--children --by process --histograms", "alike");
    let of = |process: &str| {
        let rows = processes.iter().filter(|row| row[0] == process);
        rows.map(|row| row[1..].to_vec()).collect::<Csv>()
    };
    assert!(of("1.1").len() > 4 && of("1.1") == of("1.2") && of("1.1") == of("1.3"));
    let references = |rows: &str| {
        let table = table("strides", &format!("--children --by {rows}"), "alike");
        let column = table[0].iter().position(|name| name == "references").unwrap();
        table[1..].iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(references("process"), references("function"));
    assert_eq!(references("process"), references("array"));
}

#[test]
fn the_figures_are_those_of_the_processes_in_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family.plt");
    let trace = path.to_str().unwrap();
    run(&format!("trace -o {trace} :ev56/family alike")).noted_success();
    for command in ["caches", "time"] {
        let replayed = tables(command, "--children --by process", &[trace]).remove(0).1;
        assert_eq!(replayed[1][..3], ["0", "", ""]);
        assert_eq!(numbers(&replayed, 4), by_process(command, "alike"), "{command}");
        let of_last = tables(command, "--by function --process 3", &[trace]).remove(0).1;
        let total = of_last.last().unwrap();
        let child = &replayed[4][4..];
        assert_eq!(&total[total.len() - child.len()..], child, "{command}");
    }
}

/// Models of ended processes are merged while the program runs, and those of a trace are not.
#[test]
fn curves_and_sweeps_of_all_processes_are_those_of_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family.plt");
    let trace = path.to_str().unwrap();
    run(&format!("trace -o {trace} :ev56/family alike")).noted_success();
    for (command, options) in [
        ("mrc", "--children --largest 64K"),
        ("mrc", "--children --streams code,data --largest 64K"),
        ("caches", "--children --sweep dcache.size=8K,16K --sweep dcache.ways=1,2"),
        ("time", "--children --sweep dcache.size=8K,16K"),
        ("time", "--children --by function --machine alpha21264"),
    ] {
        let live = family(command, options, "alike");
        assert_eq!(live, tables(command, options, &[trace]), "{command} {options}");
    }
    // The first configuration is the machine itself.
    let swept = table("caches", "--children --sweep dcache.size=8K,16K", "alike");
    let [first, second] = [&swept[1], &swept[2]].map(|row| row[1..].to_vec());
    let total = by_process("caches", "alike").pop().unwrap();
    let misses: Vec<String> = total[1..].iter().take(first.len()).map(u64::to_string).collect();
    assert!(first == misses && first != second, "{swept:?}");
    let of_one = table("mrc", "--largest 64K", "alike");
    assert_ne!(of_one, table("mrc", "--children --largest 64K", "alike"));
}

#[test]
fn killed_processes_keep_their_figures() {
    let counted = table("count", "--children --by process", "killed");
    let simulated = table("caches", "--children --by process", "killed");
    assert_eq!(simulated[2][2], "killed, or replaced by a program of the host");
    assert_eq!((&simulated[2][0], &simulated[2][4]), (&counted[2][0], &counted[2][2]));
    let ended = table("time", "--children --by process", "ended");
    assert_eq!((ended[2][2].as_str(), &ended[2][5]), ("killed by signal 15", &counted[2][2]));
}

#[test]
fn executed_programs_are_observed() {
    let counted = table("count", "--children --by process", "executes");
    let simulated = table("caches", "--children --by process", "executes");
    let instructions =
        |table: &Csv, column: usize| table[1..].iter().map(|row| row[column].clone()).collect();
    let (counted, simulated): (Vec<_>, Vec<_>) = (instructions(&counted, 2), instructions(&simulated, 4));
    assert_eq!(counted, simulated);
}

#[test]
fn units_of_all_processes_have_rows_and_warm_up() {
    let units = table("caches", "--children --unit request --by unit", "serve");
    let instructions: Vec<&str> = units[1..].iter().map(|row| row[1].as_str()).collect();
    let counted = table("count", "--children --unit request --by unit", "serve");
    let lengths: Vec<&str> = counted[1..].iter().map(|row| row[3].as_str()).collect();
    assert_eq!(instructions, lengths);
    let rest = table("caches", "--children --unit request --by unit --warm-up 2", "serve");
    assert_eq!(rest[1..].iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["2", "3", "4", "5"]);
    // The unit after the warm-up is the second of its process.
    assert_eq!(rest[1..], units[3..]);
}

#[test]
fn wrong_options_say_what_to_do() {
    for (words, part) in [
        ("caches --by process :ev56/family", "add --children"),
        ("time --by process :ev56/family", "add --children"),
        ("strides --by process :ev56/family", "add --children"),
        ("calls --by process :ev56/family", "with --children"),
        ("caches --children --unit nowhere :ev56/family", "a function 'nowhere'"),
        ("time --children --machine qemu :ev56/family", "no section [pipeline]"),
    ] {
        let outcome = run(words);
        assert!(outcome.code() == 1 && outcome.stderr.contains(part), "{words}: {}", outcome.stderr);
    }
}

/// The costs of calls in all processes are those in a trace of them, and their sums those of the processes.
#[test]
fn calls_of_all_processes_are_those_in_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family.plt");
    let trace = path.to_str().unwrap();
    run(&format!("trace -o {trace} :ev56/family alike")).noted_success();
    for rows in ["call-tree", "caller", "callee", "function"] {
        let threshold = if rows == "call-tree" { "--threshold 0" } else { "" };
        let options = format!("--by {rows} {threshold} --children");
        let live = table("calls", &options, "alike");
        assert!(live.len() > 20, "{live:?}");
        assert_eq!(live, tables("calls", &options, &[trace]).remove(0).1, "{rows}");
    }
    for command in ["caches", "time"] {
        let options = "--by call-tree --threshold 0 --children";
        let live = table(command, options, "alike");
        assert_eq!(live, tables(command, options, &[trace]).remove(0).1, "{command}");
        let results = live[0].len() - 5;
        // The costs of the calls that no other one made are those of all processes.
        let outermost = live[1..].iter().filter(|row| row[1] == "0");
        let sums = outermost.fold(vec![0; results], |sums: Vec<u64>, row| {
            sums.iter().zip(&row[5..]).map(|(sum, cell)| sum + cell.parse::<u64>().unwrap()).collect()
        });
        assert_eq!(by_process(command, "alike").last().unwrap()[..], sums[..], "{command}");
    }
}

#[test]
fn faults_of_all_processes_are_those_in_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family.plt");
    let trace = path.to_str().unwrap();
    run(&format!("trace --heap -o {trace} :ev56/family alike")).noted_success();
    for rows in ["function", "call-tree", "line"] {
        let options = format!("--by {rows} --children");
        let live = table("faults", &options, "alike");
        assert_eq!(live, tables("faults", &options, &[trace]).remove(0).1, "{rows}");
    }
    let summary = family("faults", "--children", "alike");
    let instructions =
        |tables: &[(String, Csv)]| tables.iter().find(|it| it.0 == "summary").unwrap().1[1][0].clone();
    let all = by_process("caches", "alike").last().unwrap()[0];
    assert_eq!(instructions(&summary), all.to_string());
}
