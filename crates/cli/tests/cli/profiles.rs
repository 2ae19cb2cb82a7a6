//! Profiles for pprof and KCachegrind: of models, and of traces. They have the numbers of the tables; pprof's form is read
//! here field by field, without the messages that write it.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::by_class::{self, CLASSES};
use crate::caches::{Folder, column};
use crate::export::{CHOICES, Profile};
use crate::show::record;
use crate::support::{guest, outcome, pathlength, run};

/// The value of a field of protobuf: a number, or bytes.
#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    fn number(&self) -> u64 {
        match self {
            Field::Number(number) => *number,
            Field::Bytes(_) => panic!("not a number: {self:?}"),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("not bytes: {self:?}"),
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a number is complete");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The fields of a message, by their tags.
fn message(mut bytes: &[u8]) -> BTreeMap<u64, Vec<Field>> {
    let mut fields: BTreeMap<u64, Vec<Field>> = BTreeMap::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (own, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(own.into())
            }
            kind => panic!("wire type {kind}"),
        };
        fields.entry(key >> 3).or_default().push(field);
    }
    fields
}

/// A number that is 0 if it is left out.
fn number(message: &BTreeMap<u64, Vec<Field>>, tag: u64) -> u64 {
    message.get(&tag).map_or(0, |fields| fields[0].number())
}

/// Numbers that are packed.
fn numbers(message: &BTreeMap<u64, Vec<Field>>, tag: u64) -> Vec<u64> {
    let mut bytes = message.get(&tag).map_or(&[][..], |fields| fields[0].bytes());
    std::iter::from_fn(|| (!bytes.is_empty()).then(|| varint(&mut bytes))).collect()
}

/// A function and one of its lines: FILE:LINE, or nothing.
type Place = (String, String);

/// A profile in pprof's form.
struct Pprof {
    events: Vec<String>,
    default: String,
    /// Chains of calls, the innermost place first, with their values.
    samples: Vec<(Vec<Place>, Vec<u64>)>,
    /// The labels of each sample: keys and texts.
    labels: Vec<Vec<(String, String)>>,
}

impl Pprof {
    fn read(path: &Path) -> Pprof {
        let output = Command::new("gzip").args(["-dc"]).arg(path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Pprof::new(&output.stdout)
    }

    fn new(bytes: &[u8]) -> Pprof {
        let profile = message(bytes);
        let all = |tag: u64| -> Vec<_> {
            profile.get(&tag).into_iter().flatten().map(|field| message(field.bytes())).collect()
        };
        let strings: Vec<String> =
            profile[&6].iter().map(|field| String::from_utf8(field.bytes().to_vec()).unwrap()).collect();
        assert_eq!(strings[0], "");
        assert_eq!(strings.iter().collect::<HashSet<_>>().len(), strings.len(), "strings are there once");
        let text = |message: &BTreeMap<u64, Vec<Field>>, tag| strings[number(message, tag) as usize].clone();
        let by_id = |tag| -> BTreeMap<u64, BTreeMap<u64, Vec<Field>>> {
            let all = all(tag);
            let found: BTreeMap<_, _> = all.iter().map(|one| (number(one, 1), one.clone())).collect();
            assert!(found.len() == all.len() && !found.contains_key(&0), "identifiers are unique");
            found
        };
        let (mappings, locations, functions) = (by_id(3), by_id(4), by_id(5));
        let place = |id: &u64| {
            let location = &locations[id];
            let mapping = number(location, 2);
            let within = |mapping: &BTreeMap<u64, Vec<Field>>| {
                (number(mapping, 2)..number(mapping, 3)).contains(&number(location, 3))
            };
            assert!(mapping == 0 || within(&mappings[&mapping]), "{location:?}");
            let line = message(location[&4][0].bytes());
            let function = &functions[&number(&line, 1)];
            let (file, line) = (text(function, 4), number(&line, 2));
            let line = if file.is_empty() { String::new() } else { format!("{file}:{line}") };
            (text(function, 2), line)
        };
        let sample = |sample: &BTreeMap<u64, Vec<Field>>| {
            (numbers(sample, 1).iter().map(place).collect(), numbers(sample, 2))
        };
        let labels = |sample: &BTreeMap<u64, Vec<Field>>| {
            let labels = sample.get(&3).into_iter().flatten().map(|field| message(field.bytes()));
            labels.map(|label| (text(&label, 1), text(&label, 2))).collect()
        };
        Pprof {
            labels: all(2).iter().map(labels).collect(),
            events: all(1).iter().map(|kind| text(kind, 1)).collect(),
            default: text(&profile, 14),
            samples: all(2).iter().map(sample).collect(),
        }
    }

    /// The values of samples.
    fn sum(&self, is_counted: impl Fn(&[Place]) -> bool) -> Vec<u64> {
        let mut sum = vec![0; self.events.len()];
        for (_, values) in self.samples.iter().filter(|(chain, _)| is_counted(chain)) {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        sum
    }
}

/// The cells of a row.
fn row(rows: &[Vec<String>], names: &[&str], events: &[String]) -> Vec<u64> {
    let at = rows.iter().position(|row| row.iter().zip(names).all(|(cell, name)| cell == name));
    let at = at.unwrap_or_else(|| panic!("{names:?}: {rows:?}"));
    events.iter().map(|event| column(rows, event)[at - 1]).collect()
}

/// The cells of the last row.
fn total(rows: &[Vec<String>], events: &[String]) -> Vec<u64> {
    events.iter().map(|event| *column(rows, event).last().unwrap()).collect()
}

#[test]
fn a_trace_in_pprofs_form_has_the_selected_instructions() {
    for (what, choices) in [(":ev5/modes work", &CHOICES[..]), (":ev56/calls", &CHOICES[..1])] {
        let recorded = record(what);
        for options in choices.iter().filter(|options| !options.contains("--unit-number")) {
            let pprof = Pprof::new(&fs::read(recorded.export("pprof", options)).unwrap());
            assert_eq!(pprof.events, ["instructions", "loads", "stores"]);
            assert_eq!(pprof.sum(|_| true), recorded.totals(options), "{what} {options}");
        }
        let exported = fs::read(recorded.export("pprof", "")).unwrap();
        assert!(
            exported == fs::read(recorded.export("pprof", "")).unwrap(),
            "{what}: another file each time"
        );
        let pprof = Pprof::new(&exported);
        let function = if what.contains("calls") { "fibonacci" } else { "work" };
        assert_eq!(
            pprof.sum(|chain| chain[0].0 == function),
            recorded.totals(&format!("--function {function}"))
        );
        let is_within = |chain: &[Place]| chain.iter().any(|(name, _)| name == function);
        let all = recorded.totals(&format!("--function {function} --with-callees"));
        assert_eq!(pprof.sum(is_within), all, "{what}");
    }
}

#[test]
fn models_in_pprofs_form_have_the_numbers_of_the_tables() {
    let folder = Folder::new();
    let path = folder.path("profile.pb.gz");
    for (command, all, default) in [
        ("calls", "calls --by function", "instructions"),
        (
            "caches --machine dec3000 --by call-tree",
            "caches --machine dec3000 --by function",
            "icache_misses",
        ),
        ("time --machine dec3000 --by call-tree", "time --machine dec3000 --by function", "cycles"),
    ] {
        run(&format!("{command} -o {} :ev56/calls", path.display())).noted_success();
        let pprof = Pprof::read(&path);
        assert_eq!(pprof.default, default);
        let lines = folder.table(&format!("{} --by line :ev56/calls", all.rsplit_once(" --by").unwrap().0));
        let headings = &lines[0][4..];
        assert_eq!(pprof.sum(|_| true), total(&lines, headings), "{command}");
        let mut by_line: BTreeMap<Place, Vec<u64>> = BTreeMap::new();
        for (chain, values) in &pprof.samples {
            let sum = by_line.entry(chain[0].clone()).or_insert_with(|| vec![0; values.len()]);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        let own: Vec<_> = lines[1..].iter().filter(|row| row[2] == "calls" && !row[0].is_empty()).collect();
        assert!(own.len() > 20, "{lines:?}");
        for line in own {
            let expected = row(&lines, &[&line[0], &line[1], "calls"], headings);
            let found = by_line.get(&(line[1].clone(), line[0].clone()));
            assert_eq!(found.cloned().unwrap_or(vec![0; expected.len()]), expected, "{command} {line:?}");
        }
        // A caller's line is the one that calls.
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests/calls.c");
        let source = fs::read_to_string(source).unwrap();
        let callers = pprof.samples.iter().flat_map(|(chain, _)| chain.windows(2));
        let of_leaf = callers.filter(|pair| pair[0].0 == "leaf" && pair[1].0 == "fibonacci");
        let called: HashSet<&str> = of_leaf
            .map(|pair| {
                source.lines().nth(pair[1].1.rsplit_once(':').unwrap().1.parse::<usize>().unwrap() - 1)
            })
            .map(|line| line.unwrap())
            .collect();
        assert!(!called.is_empty() && called.iter().all(|line| line.contains("leaf(")), "{called:?}");
    }
}

#[test]
fn models_in_callgrinds_form_have_the_numbers_of_the_tables() {
    let folder = Folder::new();
    let path = folder.path("profile.callgrind");
    for (command, machine, event) in [
        ("calls", "", "loads"),
        ("caches", "--machine dec3000", "dcache misses"),
        ("time", "--machine dec3000", "cycles"),
    ] {
        run(&format!("{command} {machine} --by call-tree -o {} :ev56/calls", path.display())).noted_success();
        let text = fs::read_to_string(&path).unwrap();
        let profile = Profile::new(&text);
        let events = text.lines().find_map(|line| line.strip_prefix("events: ")).unwrap();
        let name = if event == "loads" { "Dr".into() } else { event.replace(' ', "_") };
        let at = events.split(' ').position(|one| one == name).unwrap_or_else(|| panic!("{events}"));
        let of = |rows: &[Vec<String>], names: &[&str]| row(rows, names, &[event.to_owned()])[0];
        let own = folder.table(&format!("{command} {machine} --by line :ev56/calls"));
        assert_eq!(profile.summary[at], total(&own, &[event.to_owned()])[0], "{command}");
        assert_eq!(profile.own.values().map(|own| own[at]).sum::<u64>(), profile.summary[at], "{command}");
        for function in ["fibonacci", "leaf", "main"] {
            let lines = own[1..].iter().zip(column(&own, event)).filter(|(row, _)| row[1] == function);
            assert_eq!(
                profile.own[function][at],
                lines.map(|(_, cost)| cost).sum::<u64>(),
                "{command} {function}"
            );
        }
        let callers = folder.table(&format!("{command} {machine} --by caller :ev56/calls"));
        for (callee, caller) in [("leaf", "fibonacci"), ("fibonacci", "main"), ("leaf", "handler")] {
            let (count, cost) = &profile.calls[&(caller.into(), callee.into())];
            assert_eq!(cost[at], of(&callers, &[callee, caller]), "{command} {caller} {callee}");
            assert_eq!(*count, row(&callers, &[callee, caller], &["calls".into()])[0], "{command} {caller}");
        }
        let annotated = Command::new("callgrind_annotate").args(["--threshold=100"]).arg(&path).output();
        let annotated = annotated.expect("callgrind_annotate is needed: run ./setup");
        assert!(annotated.status.success() && annotated.stderr.is_empty(), "{annotated:?}");
        let printed = String::from_utf8(annotated.stdout).unwrap().replace(',', "");
        let total = printed.lines().find(|line| line.ends_with("PROGRAM TOTALS")).unwrap();
        assert!(total.split(' ').any(|word| word == profile.summary[at].to_string()), "{total}");
    }
}

/// By class and function, the numbers of a table from its fifth column on.
fn by_class_and_function(table: &by_class::Csv) -> BTreeMap<(String, String), Vec<u64>> {
    let mut sums = BTreeMap::new();
    for row in table[1..].iter().filter(|row| !row[0].is_empty()) {
        let numbers = row[4..].iter().map(|cell| cell.parse::<u64>().unwrap());
        let numbers = numbers.collect::<Vec<_>>();
        add_costs(&mut sums, (row[0].clone(), row[1].clone()), &numbers);
    }
    sums
}

fn add_costs<K: Ord>(sums: &mut BTreeMap<K, Vec<u64>>, key: K, costs: &[u64]) {
    let sum = sums.entry(key).or_insert_with(|| vec![0; costs.len()]);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
}

/// pprof has classes as labels; in callgrind's form, they are contexts of functions.
#[test]
fn profiles_of_classes_have_the_numbers_of_the_tables() {
    let folder = Folder::new();
    let machine = ["caches", "--machine", "dec3000"];
    let expected = by_class::table(&[&machine[..], &["--by", "function"], &CLASSES].concat(), "transactions");
    let expected = by_class_and_function(&expected);
    let write = |name: &str| {
        let path = folder.path(name);
        let mut command = pathlength(machine);
        command.args(["--by", "call-tree", "-o"]).arg(&path).args(CLASSES);
        command.arg(guest("ev56/family")).arg("transactions");
        outcome(command).noted_success();
        path
    };
    let pprof = Pprof::read(&write("profile.pb.gz"));
    let mut found = BTreeMap::new();
    for ((chain, values), labels) in pprof.samples.iter().zip(&pprof.labels) {
        let [(key, class)] = &labels[..] else { panic!("one label: {labels:?}") };
        assert_eq!(key, "class");
        add_costs(&mut found, (class.clone(), chain[0].0.clone()), values);
    }
    assert_eq!(found, expected);

    let path = write("profile.callgrind");
    let profile = Profile::new(&fs::read_to_string(&path).unwrap());
    let found = profile.own.iter().map(|(name, costs)| {
        let (function, class) = name.split_once('\'').unwrap();
        ((class.to_string(), function.to_string()), costs.clone())
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    let calls = |caller: &str, callee: &str| {
        profile.calls.get(&(caller.into(), callee.into())).map(|(count, _)| *count)
    };
    assert_eq!(calls("main'writes", "statement'writes"), Some(8));
    assert_eq!(calls("main'payment", "statement'payment"), Some(2));
    assert_eq!(calls("main'(outside units)", "begin_transaction'(outside units)"), None);
    // Calls that began in another class are calls, too, and their costs are not the caller's own.
    assert!(profile.calls.values().all(|(count, _)| *count > 0));
    let annotated = Command::new("callgrind_annotate").args(["--threshold=100"]).arg(&path).output();
    let annotated = annotated.expect("callgrind_annotate is needed: run ./setup");
    assert!(annotated.status.success() && annotated.stderr.is_empty(), "{annotated:?}");
    let printed = String::from_utf8(annotated.stdout).unwrap();
    assert!(printed.contains(":work'payment ["), "{printed}");
}

/// The Firefox Profiler's form, whose frames are lines.
struct Firefox(serde_json::Value);

impl Firefox {
    fn number(&self, thread: usize, table: &str, name: &str, row: u64) -> Option<u64> {
        self.0["threads"][thread][table][name][row as usize].as_u64()
    }

    fn text(&self, thread: usize, string: u64) -> &str {
        self.0["threads"][thread]["stringArray"][string as usize].as_str().unwrap()
    }

    /// The function and the line of a frame; the line is empty if it is not known.
    fn place(&self, thread: usize, frame: u64) -> Place {
        let function = self.number(thread, "frameTable", "func", frame).unwrap();
        let name = self.number(thread, "funcTable", "name", function).unwrap();
        let file = self.number(thread, "funcTable", "fileName", function);
        let line = self.number(thread, "frameTable", "line", frame);
        let line = file.zip(line).map(|(file, line)| format!("{}:{line}", self.text(thread, file)));
        (self.text(thread, name).into(), line.unwrap_or_default())
    }
}

#[test]
fn firefox_profiles_have_lines_files_and_categories() {
    let recorded = record(":ev56/calls");
    let text = fs::read_to_string(recorded.export("firefox", "")).unwrap();
    let profile = Firefox(serde_json::from_str(&text).unwrap());
    let samples = &profile.0["threads"][0]["samples"];
    let weights = samples["weight"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
    let stacks = samples["stack"].as_array().unwrap().iter().map(|stack| stack.as_u64().unwrap());
    let (mut own, mut calls) = (BTreeMap::new(), HashSet::new());
    let mut categories: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, weight) in stacks.zip(weights) {
        let frame = |stack| profile.number(0, "stackTable", "frame", stack).unwrap();
        let place = profile.place(0, frame(stack));
        if let Some(caller) = profile.number(0, "stackTable", "prefix", stack) {
            calls.insert((place.0.clone(), profile.place(0, frame(caller))));
        }
        *own.entry(place).or_insert(0) += weight;
        let category = profile.number(0, "frameTable", "category", frame(stack)).unwrap() as usize;
        let category = profile.0["meta"]["categories"][category]["name"].as_str().unwrap();
        *categories.entry(category.into()).or_default() += weight;
    }
    let folder = Folder::new();
    let lines = folder.table(&format!("calls --by line {}", recorded.path().display()));
    let mut compared = 0;
    for (row, instructions) in lines[1..].iter().zip(column(&lines, "instructions")) {
        if row[2] == "calls" && !row[0].is_empty() {
            assert_eq!(own.get(&(row[1].clone(), row[0].clone())), Some(&instructions), "{row:?}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{lines:?}");
    // The frame of a caller is the line that calls.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests/calls.c");
    let source = fs::read_to_string(source).unwrap();
    let of_leaf = calls.iter().filter(|(called, (caller, _))| called == "leaf" && caller == "fibonacci");
    for (_, (_, line)) in of_leaf.clone() {
        let number: usize = line.rsplit_once(':').unwrap().1.parse().unwrap();
        assert!(source.lines().nth(number - 1).unwrap().contains("leaf("), "{line}");
    }
    assert!(of_leaf.count() > 0, "{calls:?}");
    // Categories are kinds of images.
    let images = folder.table("count --by image :ev56/calls");
    let kinds = [("calls", "Program"), ("libc.so.6.1", "Libraries"), ("ld-linux.so.2", "Dynamic linker")];
    for (image, category) in kinds {
        let expected = row(&images, &[image], &["instructions".into()])[0];
        assert_eq!(categories.get(category), Some(&expected), "{categories:?}");
    }
}
