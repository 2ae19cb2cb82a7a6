//! `export`: every format contains the executed instructions exactly.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::show::{Recorded, record};
use crate::support::{csv, ends_when_nobody_reads, listing, run};

impl Recorded {
    /// The path of an exported file.
    pub fn export(&self, form: &str, options: &str) -> PathBuf {
        // Tables go to a folder; a name that ends with .parquet is one file's.
        let name = if form == "parquet" { "exported".into() } else { format!("exported.{form}") };
        let path = self.folder.path().join(name);
        let output = format!("export {} --to {form} -o {} {options}", self.path().display(), path.display());
        assert_eq!(run(&output).quiet_success(), "");
        path
    }

    fn text(&self, form: &str, options: &str) -> String {
        fs::read_to_string(self.export(form, options)).unwrap()
    }

    /// How many instructions, loads and stores `show` counts.
    pub fn totals(&self, options: &str) -> [u64; 3] {
        let kinds = self.table("kinds", options);
        ["instructions", "loads", "stores"]
            .map(|kind| kinds.iter().find(|row| row[0] == kind).map_or(0, |row| row[1].parse().unwrap()))
    }
}

/// Ways to choose, and programs.
pub const CHOICES: [&str; 6] = [
    "",
    "--function work",
    "--function main --with-callees",
    "--image modes",
    "--unit-number 2-3",
    "--instructions 5-777",
];

/// A profile in callgrind's form, as its readers have it.
#[derive(Default)]
pub struct Profile {
    pub summary: Vec<u64>,
    /// By function.
    pub own: HashMap<String, Vec<u64>>,
    /// By function and function called: how often, and what it cost.
    pub calls: HashMap<(String, String), (u64, Vec<u64>)>,
}

impl Profile {
    pub fn new(text: &str) -> Profile {
        let mut profile = Profile::default();
        let mut names: HashMap<(char, String), String> = HashMap::new();
        let mut name = |kind: char, text: &str| {
            let (number, name) = text.split_once(' ').unwrap_or((text, ""));
            if !name.is_empty() {
                let before = names.insert((kind, number.into()), name.into());
                assert_eq!(before, None, "{text} is defined once");
            }
            names[&(kind, number.to_owned())].clone()
        };
        let (mut function, mut callee, mut calls) = (String::new(), String::new(), None);
        let numbers = |text: &str| -> Vec<u64> { text.split(' ').map(|one| one.parse().unwrap()).collect() };
        let mut totals = Vec::new();
        for line in text.lines() {
            if let Some((key, rest)) = line.split_once('=') {
                match key {
                    "fn" => function = name('f', rest),
                    "cfn" => callee = name('f', rest),
                    "ob" | "cob" => drop(name('o', rest)),
                    "fl" | "fi" | "fe" | "cfi" => drop(name('l', rest)),
                    "calls" => calls = Some(rest.split_once(' ').unwrap().0.parse::<u64>().unwrap()),
                    _ => panic!("{line}"),
                }
            } else if line.starts_with("0x") {
                let costs = numbers(line.splitn(3, ' ').nth(2).unwrap());
                let sum = match calls.take() {
                    None => profile.own.entry(function.clone()).or_default(),
                    Some(count) => {
                        let call = profile.calls.entry((function.clone(), callee.clone())).or_default();
                        call.0 += count;
                        &mut call.1
                    }
                };
                sum.resize(costs.len(), 0);
                sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
            } else if let Some(rest) = line.strip_prefix("summary: ") {
                profile.summary = numbers(rest);
            } else if let Some(rest) = line.strip_prefix("totals: ") {
                totals = numbers(rest);
            }
        }
        assert_eq!(profile.summary, totals);
        profile
    }
}

#[test]
fn callgrind_adds_up() {
    let recorded = record("--unit work :ev5/modes work");
    assert_eq!(recorded.totals("")[0], recorded.totals("--unit-number 0-199")[0]);
    let recorded = record(":ev5/modes work");
    for options in CHOICES.iter().filter(|options| !options.contains("--unit-number")) {
        let profile = Profile::new(&recorded.text("callgrind", options));
        assert_eq!(profile.summary, recorded.totals(options), "{options}");
        let own = profile
            .own
            .values()
            .fold(vec![0; 3], |sum, own| sum.iter().zip(own).map(|(sum, own)| sum + own).collect());
        assert_eq!(own, profile.summary, "{options}");
        for (call, (_, cost)) in &profile.calls {
            assert!(cost.iter().zip(&profile.summary).all(|(cost, all)| cost <= all), "{call:?}: {cost:?}");
        }
    }
    let profile = Profile::new(&recorded.text("callgrind", ""));
    let (count, cost) = &profile.calls[&("main".into(), "work".into())];
    assert_eq!((*count, &cost[..]), (200, &recorded.totals("--function work --with-callees")[..]));
    // What a function costs is what it does itself, and what it calls.
    let from = profile.calls.iter().filter(|((caller, _), _)| caller == "main");
    let inclusive = profile.own["main"][0] + from.map(|(_, (_, cost))| cost[0]).sum::<u64>();
    assert_eq!(inclusive, recorded.totals("--function main --with-callees")[0]);
}

/// A function that calls itself: the calls from within are part of the one from outside.
#[test]
fn recursion_is_not_counted_twice() {
    let recorded = record(":ev56/modes factorial");
    let profile = Profile::new(&recorded.text("callgrind", ""));
    let call = |caller: &str| &profile.calls[&(caller.into(), "factorial".into())];
    let all = recorded.totals("--function factorial --with-callees");
    assert_eq!((call("main").0, &call("main").1[..]), (200, &all[..]));
    assert_eq!(call("factorial").0, 800);
    assert!(call("factorial").1[0] < all[0]);
}

#[test]
fn callgrind_annotate_agrees() {
    for program in [":ev5/modes work", ":ev5/threads"] {
        let recorded = record(program);
        let path = recorded.export("callgrind", "");
        let annotated = Command::new("callgrind_annotate").args(["--threshold=100"]).arg(path).output();
        let annotated = annotated.expect("callgrind_annotate is needed: run ./setup");
        assert!(annotated.status.success() && annotated.stderr.is_empty(), "{annotated:?}");
        let text = String::from_utf8(annotated.stdout).unwrap().replace(',', "");
        let numbers =
            |line: &str| -> Vec<u64> { line.split(' ').filter_map(|word| word.parse().ok()).collect() };
        let total = text.lines().find(|line| line.ends_with("PROGRAM TOTALS")).unwrap();
        assert_eq!(numbers(total), recorded.totals(""));
        let work = text.lines().find(|line| line.contains(":work [")).unwrap();
        assert_eq!(numbers(work), recorded.totals("--function work"));
    }
}

/// What the format's documentation demands of columns and indexes.
fn check_table(table: &Value, references: &[(&str, &Value)]) {
    let length = table["length"].as_u64().unwrap();
    for (name, column) in table.as_object().unwrap() {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len() as u64, length, "{name}");
        }
    }
    for (column, to) in references {
        let most = to["length"].as_u64().unwrap_or_else(|| to.as_array().unwrap().len() as u64);
        for index in table[column].as_array().unwrap() {
            assert!(
                index.is_null() || index.as_i64() == Some(-1) || index.as_u64().unwrap() < most,
                "{column}"
            );
        }
    }
}

#[test]
fn firefox_profiles_are_whole() {
    for (program, options) in [
        (":ev5/modes work", ""),
        (":ev5/threads", ""),
        (":ev5/modes work", "--function main --with-callees"),
        (":ev56/modes factorial", "--function factorial"),
    ] {
        let recorded = record(program);
        let profile: Value = serde_json::from_str(&recorded.text("firefox", options)).unwrap();
        assert!(profile["meta"]["preprocessedProfileVersion"].is_u64());
        let threads = profile["threads"].as_array().unwrap();
        assert_eq!(threads.len(), recorded.table("threads", "").len() - 2);
        let mut sum = 0;
        for thread in threads {
            let at = |name: &str| &thread[name];
            check_table(at("samples"), &[("stack", at("stackTable"))]);
            check_table(at("stackTable"), &[("prefix", at("stackTable")), ("frame", at("frameTable"))]);
            check_table(
                at("frameTable"),
                &[("func", at("funcTable")), ("nativeSymbol", at("nativeSymbols"))],
            );
            check_table(at("funcTable"), &[("name", at("stringArray")), ("resource", at("resourceTable"))]);
            check_table(at("resourceTable"), &[("lib", &profile["libs"]), ("name", at("stringArray"))]);
            let weights = at("samples")["weight"].as_array().unwrap();
            let weight: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
            let times = at("samples")["timeDeltas"].as_array().unwrap();
            let time: f64 = times.iter().map(|delta| delta.as_f64().unwrap()).sum();
            assert!(time * 1000.0 > weight as f64 - 0.5, "{time} ms hold {weight} instructions");
            sum += weight;
        }
        assert_eq!(sum, recorded.totals(options)[0], "{program} {options}");
    }
}

/// The instructions that a path of calls leads to, by the paths' functions.
#[test]
fn firefox_call_paths_have_what_was_executed_in_them() {
    let recorded = record("--unit work --skip 3 --units 4 :ev5/modes work");
    let profile: Value = serde_json::from_str(&recorded.text("firefox", "")).unwrap();
    let thread = &profile["threads"][0];
    let index = |table: &str, column: &str, row: u64| thread[table][column][row as usize].as_u64();
    let name = |stack: u64| {
        let function = index("frameTable", "func", index("stackTable", "frame", stack).unwrap()).unwrap();
        let name = index("funcTable", "name", function).unwrap();
        thread["stringArray"][name as usize].as_str().unwrap()
    };
    let mut work = 0;
    let samples = &thread["samples"];
    let stacks = samples["stack"].as_array().unwrap().iter();
    for (stack, weight) in stacks.zip(samples["weight"].as_array().unwrap()) {
        let stack = stack.as_u64().unwrap();
        if name(stack) == "work" {
            work += weight.as_u64().unwrap();
            assert_eq!(index("stackTable", "prefix", stack), None, "recording begins in work");
        }
    }
    assert_eq!(work, recorded.totals("--function work")[0]);
    let markers = &thread["markers"];
    assert_eq!(markers["length"], 4);
    let numbers: Vec<_> =
        markers["data"].as_array().unwrap().iter().map(|unit| unit["number"].as_f64()).collect();
    assert_eq!(numbers, [3.0, 4.0, 5.0, 6.0].map(Some));
    let lengths = |row: &Value| row["instructions"].as_f64().unwrap() as u64;
    let sum: u64 = markers["data"].as_array().unwrap().iter().map(lengths).sum();
    assert_eq!(sum, recorded.totals("")[0]);
}

/// The lines of a `.din` as `show --as addresses` has them.
fn din(text: &str) -> Vec<(&'static str, u64)> {
    let line = |line: &str| {
        let (label, address) = line.split_once(' ').unwrap();
        let kind = ["load", "store", "fetch"][label.parse::<usize>().unwrap()];
        (kind, u64::from_str_radix(address, 16).unwrap())
    };
    text.lines().map(line).collect()
}

#[test]
fn din_has_every_address_in_order() {
    let recorded = record("--unit work --units 4 :ev56/modes work");
    let one = recorded.text("din", "--unit-number 1").lines().next().unwrap()[2..].to_owned();
    let by_data = format!("--data-range 0x{:x}-0x7fffffffffff", 0x1_2000_0000_u64);
    for options in CHOICES.into_iter().chain([by_data.as_str(), &format!("--range 0x{one}")]) {
        if options.contains("main") {
            continue;
        }
        let rows = csv(&recorded.show(&format!("--as addresses --format csv {options}")));
        let expected: Vec<_> = rows[1..]
            .iter()
            .map(|row| (row[2].as_str(), u64::from_str_radix(row[3].trim_start_matches("0x"), 16).unwrap()))
            .collect();
        assert_eq!(din(&recorded.text("din", options)), expected, "{options}");
    }
}

#[test]
fn champsim_has_every_instruction_in_order() {
    let recorded = record(":ev5/modes work");
    for options in ["", "--function work", "--instructions 100-30000"] {
        let bytes = fs::read(recorded.export("champsim", options)).unwrap();
        let number = |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        let records: Vec<&[u8]> = bytes.chunks_exact(64).collect();
        assert_eq!(64 * records.len(), bytes.len());
        let mut accesses = Vec::new();
        for record in &records {
            accesses.push(("fetch", number(record, 0)));
            let loads = [32, 40, 48, 56].map(|at| ("load", number(record, at)));
            let stores = [16, 24].map(|at| ("store", number(record, at)));
            accesses.extend(loads.into_iter().chain(stores).filter(|(_, address)| *address != 0));
        }
        assert_eq!(accesses, din(&recorded.text("din", options)), "{options}");
        if options.contains("function") {
            continue;
        }
        let mut branches = [0; 2];
        for pair in records.windows(2) {
            let [is_branch, is_taken] = [8, 9].map(|at| pair[0][at] != 0);
            let goes_on = number(pair[1], 0) == number(pair[0], 0) + 4;
            // A call of the next instruction computes an address.
            assert!(is_taken != goes_on || (is_branch && is_taken), "at {:#x}", number(pair[0], 0));
            branches[usize::from(is_taken)] += u64::from(is_branch);
        }
        assert!(branches[0] > 100 && branches[1] > 100, "{branches:?}");
    }
}

#[test]
fn champsim_takes_one_thread() {
    let recorded = record(":ev5/threads");
    let export = format!("export {} --to champsim -o /dev/null", recorded.path().display());
    let failure = run(&export).failure();
    assert!(failure.contains("5 threads are chosen") && failure.contains("--thread 0.0"), "{failure}");
    let bytes = fs::read(recorded.export("champsim", "--thread 0.2")).unwrap();
    assert_eq!(bytes.len() as u64, 64 * recorded.totals("--thread 0.2")[0]);
}

#[test]
fn tables_go_to_a_folder() {
    let recorded = record(":ev5/modes work");
    let folder = recorded.export("parquet", "--function work");
    assert_eq!(listing(&folder), ["blocks.parquet", "functions.parquet", "instructions.parquet"]);
    assert_eq!(&fs::read(folder.join("instructions.parquet")).unwrap()[..4], b"PAR1");
}

#[test]
fn a_name_that_ends_with_gz_is_compressed() {
    let recorded = record("--unit work --units 2 :ev5/modes work");
    let path = recorded.folder.path().join("file.din.gz");
    run(&format!("export {} --to din -o {}", recorded.path().display(), path.display())).quiet_success();
    let plain = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert_eq!(String::from_utf8(plain.stdout).unwrap(), recorded.text("din", ""));
}

/// No format and no output file: an error of one sentence, and existing files are unchanged.
#[test]
fn what_cannot_be_is_told() {
    let recorded = record(":ev5/modes work");
    for form in ["firefox", "callgrind", "pprof", "din", "champsim", "parquet"] {
        let path = recorded.folder.path().join(form);
        if form != "parquet" {
            fs::write(&path, "old").unwrap();
        }
        let export = format!("export {} --to {form}", recorded.path().display());
        let failure = run(&format!("{export} --instructions 9,999,999 -o {}", path.display())).failure();
        assert!(failure.contains("no instruction of the trace is selected"), "{failure}");
        if form != "parquet" {
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
            let failure = run(&format!("{export} -o /dev/full")).failure();
            assert!(failure.contains("/dev/full") && failure.contains("No space left"), "{failure}");
        }
        let failure = run(&format!("{export} -o /proc/nowhere/file")).failure();
        assert!(failure.contains("/proc/nowhere"), "{failure}");
    }
    let names = listing(recorded.folder.path());
    assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
    let usage = run(&format!("export {} --to parquet", recorded.path().display()));
    assert!(usage.code() == 2 && usage.stderr.contains("--output"), "{}", usage.stderr);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let recorded = record(":ev5/modes work");
    for form in ["firefox", "callgrind", "pprof", "din", "champsim"] {
        ends_when_nobody_reads(&format!("export {} --to {form}", recorded.path().display()));
    }
}

/// The readable parts of a damaged trace are exported, and the others are reported.
#[test]
fn damaged_traces_are_exported_as_far_as_they_can_be_read() {
    let recorded = record(":ev5/modes work");
    let whole = fs::read(recorded.path()).unwrap();
    let damaged = recorded.folder.path().join("damaged.trace");
    let output = recorded.folder.path().join("output");
    let forms = ["firefox", "callgrind", "pprof", "din", "champsim"].into_iter().cycle();
    for (form, bytes) in forms.zip(crate::support::damaged(&whole, 11)).take(40) {
        fs::write(&damaged, bytes).unwrap();
        let outcome = run(&format!("export {} --to {form} -o {}", damaged.display(), output.display()));
        assert!(matches!(outcome.code(), 0 | 1), "{}: {}", outcome.code(), outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
        assert_eq!(outcome.code() == 0, outcome.stderr.is_empty(), "{}", outcome.stderr);
    }
}
