//! `caches`, `time`, `calls`, `mrc`, `faults` and `strides` by class of units of work: what they divide is all that they count, and what belongs to a class is
//! what a recount of a trace finds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use events::record::{Entries, Entry, Event};
use machine::{Caches, Holds, Machine, MergeableModel, MissRatioCurves, TimingModel};
use trace::Trace;

use crate::support::{csv, guest, outcome, pathlength, run};

pub type Csv = Vec<Vec<String>>;

const UNIT: &str = "begin_transaction through commit_transaction";
pub const CLASSES: [&str; 6] =
    ["--unit", UNIT, "--class", "mark_*()", "--class", "statement($1) ~ (?<writes>update|insert)"];
/// The classes of the units of `family transactions`, one after the other; the last but one is left.
const EXPECTED: [&str; 6] = ["writes", "writes", "writes", "payment", "writes", UNIT];
const OUTSIDE: &str = "(outside units)";

/// The table of a command.
pub fn table(words: &[&str], how: &str) -> Csv {
    table_of(words, &[&guest("ev56/family"), Path::new(how)])
}

fn table_of(words: &[&str], program: &[&Path]) -> Csv {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let mut command = pathlength(words);
    command.args(["--format", "csv", "-o"]).arg(&path).args(program);
    outcome(command).noted_success();
    csv(&fs::read_to_string(path).unwrap())
}

fn by_class(command: &str, more: &[&str], how: &str) -> Csv {
    table(&[&[command, "--by", "class"], more].concat(), how)
}

/// By class: the numbers from a column on.
fn rows(table: &Csv, from: usize) -> BTreeMap<String, Vec<u64>> {
    let number = |cell: &String| cell.parse().unwrap_or_else(|_| panic!("{table:?}"));
    table[1..].iter().map(|row| (row[0].clone(), row[from..].iter().map(number).collect())).collect()
}

/// The parts of an execution by class: where they begin in the trace's stream, with the class from there on.
fn parts(trace: &Trace, records: &[u64]) -> Vec<(usize, &'static str)> {
    let entry = |name: &str| {
        let functions = trace.functions();
        functions.iter().find(|it| it.name == name).expect("the trace has it").address
    };
    let (begin, commit) = (entry("begin_transaction"), entry("commit_transaction"));
    let (mut parts, mut units) = (vec![(0, OUTSIDE)], EXPECTED.iter());
    let (mut position, mut previous_end, mut ends_at) = (0, 0, None);
    for found in Entries::new(records, trace.shapes()) {
        let Entry::Execution(execution) = found else {
            position += 1;
            continue;
        };
        let block = &trace.blocks()[execution.block as usize];
        // Callers that have the function's global pointer skip the two instructions that make it.
        let is_entry = |function: u64| [function, function + 8].contains(&block.address);
        if ends_at == Some(block.address) {
            parts.push((position, OUTSIDE));
            ends_at = None;
        }
        if is_entry(begin) {
            parts.push((position, units.next().unwrap()));
        }
        if is_entry(commit) {
            ends_at = Some(previous_end);
        }
        previous_end = block.address + 4 * block.words.len() as u64;
        position += 1 + execution.addresses.len();
    }
    assert!(units.next().is_none());
    parts
}

/// The records of a trace with one thread.
fn records(trace: &Trace) -> Vec<u64> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    for index in 0..trace.chunks().len() {
        trace.read(index, &mut words).unwrap();
        all.extend_from_slice(&words);
    }
    all
}

/// What a model counts of each part of an execution, by class.
fn recount(trace: &Trace, mut model: impl MergeableModel) -> BTreeMap<String, Vec<u64>> {
    trace.images().iter().for_each(|image| model.map(image));
    trace.blocks().iter().for_each(|block| model.define(block));
    let records = records(trace);
    let parts = parts(trace, &records);
    let ends = parts[1..].iter().map(|part| part.0).chain([records.len()]);
    let (mut sums, mut before) = (BTreeMap::<String, Vec<u64>>::new(), model.totals());
    for ((start, class), end) in parts.iter().zip(ends) {
        model.executed(events::Thread::default(), &records[*start..end]);
        let now = model.totals();
        let sum = sums.entry(class.to_string()).or_insert_with(|| vec![0; now.len()]);
        sum.iter_mut().zip(now.iter().zip(&before)).for_each(|(sum, (now, before))| *sum += now - before);
        before = now;
    }
    sums.insert("total".into(), before);
    sums
}

fn with_trace(check: impl FnOnce(&Trace)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family.plt");
    run(&format!("trace -o {} :ev56/family transactions", path.display())).noted_success();
    check(&Trace::open(Path::new(&path)).unwrap());
}

#[test]
fn misses_and_cycles_of_classes_are_those_of_a_recount() {
    with_trace(|trace| {
        for (name, machine) in Machine::all().filter(|(name, _)| name.starts_with("alpha")) {
            let on = ["--machine", name];
            let misses = recount(trace, Caches::new(&machine));
            let cycles = recount(trace, TimingModel::new(&machine).unwrap());
            assert_eq!(misses.len(), 5);
            for children in [&[][..], &["--children"]] {
                let options = [&CLASSES[..], &on, children].concat();
                assert_eq!(rows(&by_class("caches", &options, "transactions"), 3), misses, "{name}");
                assert_eq!(rows(&by_class("time", &options, "transactions"), 3), cycles, "{name}");
            }
        }
    });
}

/// The sums of numbers from a column on, by the class in the first column.
fn sums(table: &Csv, from: usize) -> BTreeMap<String, Vec<u64>> {
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in &table[1..] {
        let class = if row[0].is_empty() { "total" } else { &row[0] };
        let sum = sums.entry(class.into()).or_insert_with(|| vec![0; row.len() - from]);
        let numbers = row[from..].iter().map(|cell| cell.parse::<u64>().unwrap());
        sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    sums
}

/// Lines, addresses and groups of a mean unit have what it has by instruction, in one process or all.
#[test]
fn counts_of_classes_by_line_address_and_group_add_up() {
    let classes = ["--unit", "begin_transaction", "--unit", "statement"];
    for children in [&[][..], &["--children"]] {
        let of = |by: &str| table(&[&["count", "--by", by], &classes[..], children].concat(), "transactions");
        let instructions = of("mnemonic");
        let of_statement = instructions[0].iter().position(|heading| heading == "statement").unwrap();
        let total = &instructions.last().unwrap()[of_statement];
        for by in ["line", "instruction", "group"] {
            let found = of(by);
            let mean = |row: &Vec<String>, class: &str| -> u64 {
                let at = found[0].iter().position(|heading| heading == class).unwrap();
                row[at].parse().unwrap()
            };
            let (last, own) = found[1..].split_last().unwrap();
            let sum = |class: &str| own.iter().map(|row| mean(row, class)).sum::<u64>();
            // All units of the one are alike; means of the other are rounded.
            assert_eq!([mean(last, "begin_transaction"), sum("begin_transaction")], [74; 2], "{by}");
            assert_eq!(mean(last, "statement").to_string(), *total, "{by}");
            assert!(sum("statement").abs_diff(mean(last, "statement")) <= own.len() as u64 / 2, "{by}");
        }
    }
}

/// Units have their classes, which have what all their units have.
#[test]
fn units_of_classes_add_up_to_them() {
    for (command, from) in [("caches", 4), ("time", 3), ("faults", 3), ("calls", 3)] {
        let units = table(&[&[command, "--by", "unit"], &CLASSES[..]].concat(), "transactions");
        let classes: Vec<&str> = units[1..].iter().map(|row| row[1].as_str()).collect();
        assert_eq!(classes, EXPECTED, "{command}");
        let by_class = rows(&by_class(command, &CLASSES, "transactions"), 3);
        let column = |table: &Csv, name: &str| table[0].iter().position(|it| it == name);
        let instructions = column(&units, "instructions").unwrap();
        let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for row in &units[1..] {
            let sum = sums.entry(&row[1]).or_default();
            sum.0 += row[instructions].parse::<u64>().unwrap();
            sum.1 += row[from].parse::<u64>().unwrap();
        }
        for (class, sum) in sums {
            let own = &by_class[class];
            assert!(
                own.contains(&sum.0) && (command == "caches" || own.contains(&sum.1)),
                "{command} {class}"
            );
        }
    }
}

/// What functions and instructions have in a class is all that the class has, which models count in another way. An out-of-order
/// core retires the last instructions of a unit after its end.
#[test]
fn functions_and_instructions_of_classes_add_up_to_them() {
    let rows_of_models = [("function", 4), ("instruction", 5)];
    for (command, more, of_rows) in [
        ("caches", &["--machine", "alphastation500", "--children"][..], &rows_of_models[..]),
        ("time", &["--machine", "alphastation500"], &rows_of_models),
        ("time", &["--machine", "alpha21264"], &rows_of_models),
        ("faults", &["--children"], &[("function", 4), ("line", 5), ("instruction", 5)]),
        // Functions have what they call.
        ("calls", &[], &[("line", 5), ("instruction", 5)]),
    ] {
        let options = [&CLASSES[..], more].concat();
        let classes = rows(&by_class(command, &options, "transactions"), 3);
        for (by, from) in of_rows {
            let table = table(&[&[command, "--by", by], &options[..]].concat(), "transactions");
            assert_eq!(sums(&table, *from), classes, "{command} {more:?} {by}");
        }
    }
}

/// A function that only units call is in their classes, as often as they call it.
#[test]
fn calls_of_a_class_are_those_in_its_units() {
    calls_in_units("caches");
    calls_in_units("calls");
}

fn calls_in_units(command: &str) {
    let options = [&[command, "--by", "callee"], &CLASSES[..]].concat();
    let table = table(&options, "transactions");
    let calls = |class: &str, callee: &str| {
        let of = |row: &&Vec<String>| row[0] == class && row[1] == "main" && row[2] == callee;
        let row = table[1..].iter().find(of);
        row.map(|row| row[4].parse::<u64>().unwrap())
    };
    for (class, units) in [("writes", 4), ("payment", 1)] {
        assert_eq!(calls(class, "begin_transaction"), Some(units), "{table:?}");
        assert_eq!(calls(class, "statement"), Some(2 * units), "{table:?}");
    }
    assert_eq!(calls(UNIT, "statement"), None, "{table:?}");
    assert_eq!(calls(OUTSIDE, "begin_transaction"), None, "{table:?}");
}

/// A flame graph, or collapsed stacks, have the chains of each class below its name.
#[test]
fn chains_of_calls_are_below_their_class() {
    let classes = rows(&by_class("calls", &CLASSES, "transactions"), 3);
    let folder = tempfile::tempdir().unwrap();
    let stacks = folder.path().join("stacks.folded");
    let mut command = pathlength(["calls", "--by", "call-tree", "-o"]);
    command.arg(&stacks).args(CLASSES).arg(guest("ev56/family")).arg("transactions");
    outcome(command).noted_success();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in fs::read_to_string(stacks).unwrap().lines() {
        let (chain, instructions) = line.rsplit_once(' ').unwrap();
        let class = chain.split(';').next().unwrap();
        *sums.entry(class.into()).or_default() += instructions.parse::<u64>().unwrap();
    }
    let expected = classes.into_iter().filter(|(class, _)| class != "total");
    assert_eq!(sums, expected.map(|(class, row)| (class, row[0])).collect());
}

/// By cells other than those of these columns: the sums of the numbers in them.
fn sums_without(table: &Csv, class: Option<usize>, numbers: &[usize]) -> BTreeMap<Vec<String>, Vec<u64>> {
    let mut sums: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for row in &table[1..] {
        let is_key = |column: &usize| Some(*column) != class && !numbers.contains(column);
        let key = (0..row.len()).filter(is_key).map(|column| row[column].clone()).collect();
        let sum: &mut Vec<u64> = sums.entry(key).or_insert_with(|| vec![0; numbers.len()]);
        sum.iter_mut().zip(numbers).for_each(|(sum, column)| *sum += row[*column].parse::<u64>().unwrap());
    }
    sums
}

/// Without columns whose names begin so.
fn without(table: &Csv, left_out: &[&str]) -> Csv {
    let is_left_out = |name: &String| left_out.iter().any(|one| name.starts_with(one));
    let is_shown: Vec<bool> = table[0].iter().map(|name| !is_left_out(name)).collect();
    let shown = |row: &Vec<String>| {
        row.iter().zip(&is_shown).filter(|(_, is_shown)| **is_shown).map(|(cell, _)| cell.clone()).collect()
    };
    table.iter().map(shown).collect()
}

/// Data and windows of time have the faults of all classes, and a class has those that it has by function.
#[test]
fn faults_by_data_and_over_time_are_divided_among_classes() {
    let classes = ["--unit", "misplaced", "--unit", "anywhere"];
    let program = guest("ev56/faults");
    let of = |words: &[&str]| table_of(words, &[&program]);
    for (by, columns, left_out) in
        [("data", &["faults"][..], &["share"][..]), ("time", &["instructions", "faults"], &["per 1,000"])]
    {
        for children in [&[][..], &["--children"]] {
            let command = [&["faults", "--by", by], children].concat();
            let divided = without(&of(&[&command[..], &classes].concat()), left_out);
            let whole = without(&of(&command), left_out);
            let at = |table: &Csv| -> Vec<usize> {
                columns.iter().map(|name| table[0].iter().position(|it| it == name).unwrap()).collect()
            };
            let expected = sums_without(&whole, None, &at(&whole));
            assert_eq!(sums_without(&divided, Some(0), &at(&divided)), expected, "{by}");
            let by_class = of(&[&["faults", "--by", "class"], children, &classes[..]].concat());
            for row in &by_class[1..by_class.len() - 1] {
                let own: Csv = divided.iter().filter(|it| it[0] == row[0]).cloned().collect();
                let faults = own.iter().map(|it| it[*at(&divided).last().unwrap()].parse::<u64>().unwrap());
                assert_eq!(faults.sum::<u64>(), row[4].parse::<u64>().unwrap(), "{by} {row:?}");
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = pathlength(["faults", "--by", "time", "-o"]);
    outcome({
        command.arg(&page).args(classes).arg(&program);
        command
    })
    .noted_success();
    let text = fs::read_to_string(page).unwrap();
    assert!(text.contains("\"column\":\"misplaced\""), "a line for each class");
}

/// The faults of each function are known. The other classes have none of them.
#[test]
fn faults_are_in_the_class_of_their_unit() {
    let classes = ["--unit", "misplaced", "--unit", "anywhere"];
    let program = guest("ev56/faults");
    let faults = |by: &str, column: usize| {
        let table = table_of(&[&["faults", "--by", by], &classes[..]].concat(), &[&program]);
        let faults = |row: &Vec<String>| (row[0].clone(), row[column].parse::<u64>().unwrap());
        let faults = table[1..].iter().map(faults).filter(|(_, faults)| *faults > 0);
        faults.collect::<Vec<_>>()
    };
    let expected = |total: &str| {
        let expected = [("misplaced", 1000), ("anywhere", 280), (OUTSIDE, 20), (total, 1300)];
        expected.map(|(class, faults)| (class.to_string(), faults))
    };
    assert_eq!(faults("class", 4), expected("total"));
    assert_eq!(faults("function", 5), expected(""));
    let text = run("faults --unit misplaced --unit anywhere :ev56/faults").quiet_success();
    assert!(text.contains("Alignment faults of a unit of work, by class\n"), "{text}");
}

/// By class and size, the misses of a table of miss-ratio curves with these instructions. The table has rates.
fn misses(table: &Csv, instructions: &BTreeMap<String, u64>) -> BTreeMap<(String, u64), Vec<Option<u64>>> {
    let of_row = |row: &Vec<String>| {
        let misses = |rate: &String| {
            let rate: f64 = rate.parse().ok()?;
            Some((rate * instructions[&row[0]] as f64 / 1000.0).round() as u64)
        };
        ((row[0].clone(), row[1].parse().unwrap()), row[2..].iter().map(misses).collect())
    };
    table[1..].iter().map(of_row).collect()
}

/// The misses of a class are those of its accesses in a recount, in caches that all classes use. Together they are those of a run
/// without classes.
#[test]
fn miss_ratio_curves_of_classes_are_those_of_a_recount() {
    const ALL: &str = "(all)";
    let curves = || MissRatioCurves::new(64, 64 << 10, &[Holds::Both]).unwrap();
    let words = ["--streams", "both", "--largest", "64K"];
    with_trace(|trace| {
        let mut parts = recount(trace, curves());
        let total = parts.remove("total").unwrap();
        parts.insert(ALL.into(), total);
        let instructions = parts.iter().map(|(class, totals)| (class.clone(), totals[0])).collect();
        for children in [&[][..], &["--children"]] {
            let table = table(&[&["mrc"], &CLASSES[..], &words, children].concat(), "transactions");
            let found = misses(&table, &instructions);
            let mut points = 0;
            for (class, totals) in &parts {
                for point in &curves().curves_of(totals)[0].points {
                    let column = [None, Some(1), Some(2), Some(4), Some(8)];
                    let column = column.iter().position(|ways| *ways == point.ways).unwrap();
                    let misses = found[&(class.clone(), point.size)][column];
                    assert_eq!(misses, Some(point.misses), "{class} {point:?}");
                    points += 1;
                }
            }
            assert_eq!(points, found.values().flatten().flatten().count());
            let whole = self::table(&[&["mrc"], &words[..], children].concat(), "transactions");
            let all = table.iter().filter(|row| row[0] == ALL).map(|row| row[1..].to_vec());
            assert_eq!(whole[1..], all.collect::<Vec<_>>());
        }
    });
}

/// A class, the address of an instruction if each is a series of its own, and whether its references are loads or stores.
type SeriesKey = (String, u64, &'static str);

/// By series and steps back: the strides, in bytes.
type Strides = BTreeMap<(SeriesKey, u64), BTreeMap<u64, u64>>;

/// The references of series, and their strides, counted reference by reference.
fn recounted_strides(
    trace: &Trace,
    depth: usize,
    are_instructions: bool,
) -> (BTreeMap<SeriesKey, u64>, Strides) {
    let records = records(trace);
    let parts = parts(trace, &records);
    let (mut references, mut strides) = (BTreeMap::new(), Strides::new());
    let mut last: BTreeMap<(u64, &str), VecDeque<u64>> = BTreeMap::new();
    let (mut position, mut part) = (0, 0);
    for found in Entries::new(&records, trace.shapes()) {
        let Entry::Execution(execution) = found else {
            position += 1;
            continue;
        };
        while parts.get(part + 1).is_some_and(|next| next.0 <= position) {
            part += 1;
        }
        let class = parts[part].1.to_string();
        let block = &trace.blocks()[execution.block as usize];
        let accesses = block.addresses().zip(&block.words).filter_map(|(at, &word)| {
            Some((if are_instructions { at } else { 0 }, block.instruction_set.summary(word)?.access?))
        });
        for ((at, access), &word) in accesses.zip(execution.addresses) {
            let Event::Access(address) = Event::new(word) else { panic!("an address follows") };
            let kind = if access.is_store { "stores" } else { "loads" };
            let key = (class.clone(), at, kind);
            *references.entry(key.clone()).or_default() += 1;
            let last = last.entry((at, kind)).or_default();
            for (step, earlier) in (1..).zip(&*last) {
                let stride = address.abs_diff(*earlier);
                *strides.entry((key.clone(), step)).or_default().entry(stride).or_default() += 1;
            }
            last.push_front(address);
            last.truncate(depth);
        }
        position += 1 + execution.addresses.len();
    }
    (references, strides)
}

#[test]
fn strides_of_classes_are_those_of_a_recount() {
    with_trace(|trace| {
        for (by, children) in [("class", &[][..]), ("class", &["--children"]), ("instruction", &[])] {
            let are_instructions = by == "instruction";
            let (references, strides) = recounted_strides(trace, 3, are_instructions);
            let options = ["strides", "--by", by, "--minimum-stride", "0", "--depth", "3"];
            let options = [&options[..], &CLASSES[..], children].concat();
            let table = self::table(&options, "transactions");
            // Where the kind is.
            let kind = if are_instructions { 4 } else { 1 };
            let key = |row: &Vec<String>| {
                let address = row[1].strip_prefix("0x").filter(|_| are_instructions);
                let address = address.map_or(0, |address| u64::from_str_radix(address, 16).unwrap());
                (row[0].clone(), address, if row[kind] == "stores" { "stores" } else { "loads" })
            };
            let found = |row: &Vec<String>| (key(row), row[kind + 1].parse().unwrap());
            assert_eq!(table[1..].iter().map(found).collect::<BTreeMap<_, u64>>(), references);
            let histograms = self::table(&[&options[..], &["--histograms"]].concat(), "transactions");
            let mut all = 0;
            for row in &histograms[1..] {
                let number = |column: usize| row[kind + column].parse::<u64>().unwrap();
                let recounted = &strides[&(key(row), number(2))];
                let far = row[kind + 4].parse::<u64>().unwrap_or(u64::MAX);
                let expected: u64 = recounted.range(number(3)..=far).map(|(_, count)| count).sum();
                assert_eq!(number(5), expected, "{row:?}");
                all += expected;
            }
            assert_eq!(all, strides.values().flat_map(BTreeMap::values).sum::<u64>());
        }
    });
}

/// What all classes have of functions, lines, arrays and processes is what they have without classes, in several threads, too.
#[test]
fn strides_of_all_classes_are_those_of_the_run() {
    let threads = ["--unit", "thread", "--unit", "work"];
    for (how, by, classes) in [
        ("transactions", "function", &CLASSES[..]),
        ("transactions", "line", &CLASSES),
        ("transactions", "array", &CLASSES),
        ("work", "function", &threads),
        ("work", "process", &threads),
    ] {
        let children = if by == "process" { &["--children"][..] } else { &[] };
        let command = [&["strides", "--by", by, "--histograms"], children].concat();
        // Shares and references are of the class.
        let of = |words: &[&str]| without(&table(words, how), &["share", "references"]);
        let (divided, whole) = (of(&[&command[..], classes].concat()), of(&command));
        let count = |table: &Csv| [table[0].iter().position(|name| name == "count").unwrap()];
        let expected = sums_without(&whole, None, &count(&whole));
        assert!(sums_without(&divided, Some(0), &count(&divided)) == expected, "{how} {by}");
        let names: BTreeSet<&str> = divided[1..].iter().map(|row| row[0].as_str()).collect();
        assert!(names.len() >= 2, "{how} {by}: {names:?}");
    }
}

/// Without units, the same is counted. Of each class, `count` finds the same units and instructions.
#[test]
fn classes_add_up_to_the_run() {
    for how in ["transactions", "serve"] {
        let of_serve = ["--unit", "request", "--class", "request($1) ~ [a-z]+"];
        let classes = if how == "serve" { &of_serve[..] } else { &CLASSES[..] };
        let counted = {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("tables");
            let mut command = pathlength(["count", "--children"]);
            command.args(classes).args(["--format", "csv", "-o"]).arg(&path);
            outcome({
                command.arg(guest("ev56/family")).arg(how);
                command
            })
            .noted_success();
            csv(&fs::read_to_string(path.join("classes.csv")).unwrap())
        };
        let of = |name: &str| counted[0].iter().position(|heading| heading == name).unwrap();
        let cells = |units: usize, instructions: usize, table: &Csv| {
            let row = |row: &Vec<String>| [row[0].clone(), row[units].clone(), row[instructions].clone()];
            let mut all: Vec<_> = table[1..].iter().map(row).collect();
            all.sort();
            all
        };
        let counted = cells(of("units"), of("instructions"), &counted);
        for (command, instructions) in [("caches", 0), ("time", 1)] {
            let table = by_class(command, &[classes, &["--children"]].concat(), how);
            assert_eq!(cells(1, 3 + instructions, &table), counted, "{command} {how}");
            let all = rows(&table, 3);
            let (total, parts): (Vec<_>, Vec<_>) = all.iter().partition(|(name, _)| *name == "total");
            let sum = |column: usize| parts.iter().map(|(_, row)| row[column]).sum::<u64>();
            assert_eq!(*total[0].1, (0..total[0].1.len()).map(sum).collect::<Vec<_>>(), "{command} {how}");
            let whole = self::table(&[command, "--children", "--by", "process"], how);
            assert_eq!(rows(&whole, 4)["total"], *total[0].1, "{command} {how}");
        }
    }
}

/// A trace that was recorded with classes has the tables of the program.
#[test]
fn classes_of_a_trace_are_those_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let [trace, plain] = ["classes.plt", "plain.plt"].map(|name| folder.path().join(name));
    let record = |path: &Path, options: &[&str]| {
        let mut command = pathlength(["trace", "--heap", "-o"]);
        command.arg(path).args(options).arg(guest("ev56/family")).arg("transactions");
        outcome(command).noted_success();
    };
    record(&trace, &CLASSES);
    for words in [
        "caches --by class",
        "caches --by unit",
        "caches --by function",
        "caches --by class --sweep dcache.size=1K,8K",
        "time --by class --machine alpha21264",
        "time --by line",
        "calls --by callee",
        "faults --by class",
        "faults --by data",
        "mrc --streams data",
        "sharing --by class",
        "strides --by class",
        "calls --by unit",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let direct = table(&[&words[..], &CLASSES].concat(), "transactions");
        assert!(direct.len() > 3 || words.ends_with(&["data"]), "{words:?}: {direct:?}");
        assert_eq!(table_of(&words, &[&trace]), direct, "{words:?}");
    }
    // Columns of classes are in the order of the instructions in them, or of the options.
    let columns = |table: &Csv| -> BTreeSet<Vec<String>> {
        (0..table[0].len()).map(|column| table.iter().map(|row| row[column].clone()).collect()).collect()
    };
    for words in [["count", "--by", "function"], ["count", "--by", "mnemonic"], ["count", "--by", "line"]] {
        let direct = columns(&table(&[&words[..], &CLASSES].concat(), "transactions"));
        assert!(direct.len() > 3 && columns(&table_of(&words, &[&trace])) == direct, "{words:?}: {direct:?}");
    }
    // Rows that are not divided among classes are those of a trace without.
    record(&plain, &[]);
    for words in [["count", "--by", "line"], ["count", "--by", "instruction"]] {
        assert_eq!(table_of(&words, &[&plain]), table(&words, "transactions"), "{words:?}");
    }
    for words in [&["caches", "--sweep", "dcache.size=1K,8K"][..], &["sharing", "--by", "state"]] {
        assert_eq!(table_of(words, &[&trace]), table_of(words, &[&plain]), "{words:?}");
    }
    for (words, path, part) in [
        (&["caches", "--by", "class"][..], &plain, "is a trace without classes of units: record it"),
        (&["time", "--by", "class", "--unit", "statement"], &trace, "leave out --unit and --class"),
        (&["mrc", "--class", "statement($1)"], &trace, "leave out --unit and --class"),
        (&["strides", "--by", "class"], &plain, "is a trace without classes of units: record it"),
        (&["strides", "--unit", "statement"], &trace, "leave out --unit and --class"),
        (&["units"], &trace, "have classes"),
        (&["caches", "--skip", "100"], &trace, "leave out fewer"),
        (&["sharing", "--time", "--machine", "pentium-pro", "--skip", "1"], &trace, "leave out --skip"),
    ] {
        let mut command = pathlength(words);
        command.arg(path);
        let failure = outcome(command).failure();
        assert!(failure.contains(part), "{words:?}: {failure}");
    }
}

/// Of a window of units, with everything between them, classes have what a recount finds; and so has a trace.
#[test]
fn a_window_of_units_is_divided_among_classes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("classes.plt");
    let mut command = pathlength(["trace", "--heap", "-o"]);
    command.arg(&path).args(CLASSES).arg(guest("ev56/family")).arg("transactions");
    outcome(command).noted_success();
    let window = ["--skip", "1", "--warm-up", "1", "--units", "3"];
    with_trace(|trace| {
        let records = records(trace);
        let parts = parts(trace, &records);
        let ends: Vec<usize> = parts[1..].iter().map(|part| part.0).chain([records.len()]).collect();
        let units: Vec<usize> = (0..parts.len()).filter(|&part| parts[part].1 != OUTSIDE).collect();
        let mut model = Caches::new(&Machine::find("dec3000").unwrap());
        trace.images().iter().for_each(|image| events::Consumer::map(&mut model, image));
        trace.blocks().iter().for_each(|block| events::Consumer::define(&mut model, block));
        let mut sums = BTreeMap::<String, Vec<u64>>::new();
        for part in units[1]..=units[4] {
            let before = model.totals();
            let own = &records[parts[part].0..ends[part]];
            events::Consumer::executed(&mut model, events::Thread::default(), own);
            if part < units[2] {
                continue;
            }
            let now = model.totals();
            let sum = sums.entry(parts[part].1.to_string()).or_insert_with(|| vec![0; now.len()]);
            sum.iter_mut().zip(now.iter().zip(&before)).for_each(|(sum, (now, before))| *sum += now - before);
        }
        let words = ["caches", "--by", "class", "--machine", "dec3000"];
        let found = table(&[&words[..], &window, &CLASSES].concat(), "transactions");
        let mut rows = rows(&found, 3);
        rows.remove("total").unwrap();
        assert_eq!(rows, sums);
        let units: Vec<&str> = found[1..].iter().map(|row| row[1].as_str()).collect();
        assert_eq!(units, ["2", "1", "", "3"], "{found:?}");
    });
    for words in
        ["time --by class", "time --by line", "calls --by callee", "mrc --streams data", "sharing --by class"]
    {
        let words: Vec<&str> = words.split(' ').chain(window).collect();
        let direct = table(&[&words[..], &CLASSES].concat(), "transactions");
        assert!(direct.len() > 3, "{words:?}: {direct:?}");
        assert_eq!(table_of(&words, &[&path]), direct, "{words:?}");
    }
}

/// A sample with everything in its windows has the exact cycles of classes and processes, without an error; another one has
/// estimates whose instructions are all.
#[test]
fn samples_by_class_and_process_are_those_of_the_run() {
    let column = |table: &Csv, name: &str| table[0].iter().position(|it| it == name).unwrap();
    for rows in
        [&["--by", "class"][..], &["--by", "process"], &["--by", "class", "--sweep", "dcache.size=1K,8K"]]
    {
        let classes = if rows.contains(&"class") { &CLASSES[..] } else { &[] };
        let options = [&["time", "--children", "--machine", "dec3000"], rows, classes].concat();
        let exact = table(&options, "transactions");
        let cells = |table: &Csv, names: &[&str]| -> BTreeSet<Vec<String>> {
            let columns: Vec<usize> = names.iter().map(|name| column(table, name)).collect();
            table[1..].iter().map(|row| columns.iter().map(|&column| row[column].clone()).collect()).collect()
        };
        let label = exact[0][usize::from(rows.len() > 2)].clone();
        let names = [exact[0][0].as_str(), &label, "instructions", "cycles"];
        let whole = table(&[&options[..], &["--sample", "1"]].concat(), "transactions");
        assert_eq!(cells(&whole, &names[..3]), cells(&exact, &names[..3]), "{rows:?}");
        // The cycle that has not ended is in no window.
        for (of_whole, of_exact) in cells(&whole, &names).iter().zip(&cells(&exact, &names)) {
            let cycles = |row: &[String]| row[3].parse::<u64>().unwrap();
            assert!(cycles(of_exact) - cycles(of_whole) <= 1, "{of_whole:?} {of_exact:?}");
        }
        let error = column(&whole, "error");
        assert!(whole[1..].iter().all(|row| row[error].parse() == Ok(0.0)), "{whole:?}");
        let sample = table(&[&options[..], &["--sample", "2000"]].concat(), "transactions");
        assert_eq!(cells(&sample, &names[..3]), cells(&exact, &names[..3]), "{rows:?}");
        assert_ne!(cells(&sample, &names), cells(&exact, &names), "{rows:?}");
    }
}

/// In time, classes have the instructions that other models find, and all that processors have.
#[test]
fn processors_time_is_divided_among_classes() {
    let in_time = ["sharing", "--time", "--machine", "pentium-pro"];
    let divided = table(&[&in_time[..], &["--by", "class"], &CLASSES].concat(), "transactions");
    let column = |table: &Csv, name: &str| table[0].iter().position(|it| it == name).unwrap();
    let numbers = |table: &Csv, name: &str| -> BTreeMap<String, u64> {
        let own = column(table, name);
        table[1..].iter().map(|row| (row[0].clone(), row[own].parse().unwrap())).collect()
    };
    let caches = by_class("caches", &[&CLASSES[..], &["--children"]].concat(), "transactions");
    assert_eq!(numbers(&divided, "instructions"), numbers(&caches, "instructions"));
    let mut cycles = numbers(&divided, "cycles");
    let whole = table(&[&in_time[..], &["--by", "processor"]].concat(), "transactions");
    assert_eq!(cycles["total"], numbers(&whole, "cycles")["all"]);
    let total = cycles.remove("total").unwrap();
    // Each row's cycles are rounded down.
    assert!(total - cycles.values().sum::<u64>() < cycles.len() as u64, "{divided:?}");
    assert!(cycles["writes"] > 1000 && cycles[OUTSIDE] > 1000, "{divided:?}");
    let text = run(
        "sharing --time --machine pentium-pro --unit begin_transaction --unit statement :ev56/family transactions",
    );
    assert!(text.quiet_success().contains("Cycles per instruction by class of units of work"));
}

/// Each number of processors has the classes of a single simulation, and a sample with everything in its windows has its cycles.
#[test]
fn numbers_of_processors_and_samples_have_classes() {
    let in_time = ["sharing", "--machine", "pentium-pro", "--by", "class"];
    let of = |options: &[&str]| table(&[&in_time[..], options, &CLASSES].concat(), "transactions");
    let scaled = of(&["--scaling", "1,2"]);
    let singles = ["1", "2"].map(|number| {
        let single = of(&["--time", "--processors", number]);
        assert_eq!(scaled[0][1..], single[0]);
        let own = single[1..].iter().filter(|row| row[0] != "total");
        own.map(|row| [&[number.to_string()], &row[..]].concat()).collect::<Vec<_>>()
    });
    assert_eq!(scaled[1..], singles.concat());
    let column = |table: &Csv, name: &str| table[0].iter().position(|it| it == name).unwrap();
    let exact = of(&["--time"]);
    for period in ["1", "3000"] {
        let sample = of(&["--sample", period]);
        for (row, of_exact) in sample[1..].iter().zip(&exact[1..]) {
            assert_eq!(row[..2], of_exact[..2], "{sample:?}");
            let [own, all] = [(&sample, row), (&exact, of_exact)].map(|(table, row)| {
                ["instructions", "cycles"].map(|name| row[column(table, name)].parse::<u64>().unwrap())
            });
            assert_eq!(own[0], all[0], "{sample:?} {exact:?}");
            assert!(period != "1" || own[1].abs_diff(all[1]) <= 2, "{sample:?} {exact:?}");
        }
        assert_eq!(sample.len(), exact.len());
    }
    let both = run(
        "sharing --scaling 1,2 --machine pentium-pro --unit begin_transaction --unit statement :ev56/family transactions",
    );
    assert!(both.quiet_success().contains("by class of units of work"));
}

#[test]
fn wrong_options_say_what_to_do() {
    for (words, part) in [
        ("caches --by class :ev56/family", "--unit FUNCTION"),
        ("strides --by class :ev56/family", "--unit FUNCTION"),
        ("strides --advice --unit request --class request($1) :ev56/family", "--advice"),
        ("time --by class --unit request --skip 10 :ev56/family", "leave out fewer"),
        (
            "caches --unit statement --unit begin_transaction --warm-up 100 :ev56/family transactions",
            "--warm-up 100",
        ),
        ("caches --by entry --unit request --class request($1) :ev56/family", "--by class"),
        ("caches --by process --children --unit request --class request($1) :ev56/family", "--by class"),
        ("trace -o /nowhere/trace --class request($1) :ev56/family", "--unit FUNCTION"),
        ("trace -o /nowhere/trace --unit request --unit serve --skip 1 :ev56/family", "leave out --skip"),
        ("caches --by class --unit work :ev56/family work", ""),
        ("time --sample 1000 --by line :ev56/family", "--by class, --by process"),
        ("time --sample 1000 --by process :ev56/family", "add --children"),
        ("faults --by class :ev56/family", "--unit FUNCTION"),
        ("count --by unit --unit request --class request($1) :ev56/family", "calls --by unit"),
        (
            "count --batch 3 --unit request --unit statement :ev56/family",
            "--units and --batch are of the steady state",
        ),
        ("caches --by class --unit nowhere :ev56/family", "'nowhere'"),
        ("caches --by class --unit thread :ev56/family work", "no unit of work ended"),
    ] {
        let outcome = run(words);
        let is_expected = outcome.code() == i32::from(!part.is_empty());
        assert!(is_expected && outcome.stderr.contains(part), "{words}: {}", outcome.stderr);
    }
    // A page and CSV have one table; a summary has several.
    let text = run("caches --unit request --class request($1) --children :ev56/family serve").quiet_success();
    for part in ["Caches and TLBs", "Misses by class of units of work", "Misses of a unit of work, by class"]
    {
        assert!(text.contains(part), "{text}");
    }
}
