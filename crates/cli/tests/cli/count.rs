//! `count`: tables that agree with each other, with what the program is known to do, and with
//! themselves.

use std::fs;
use std::path::Path;

use crate::support::{command, csv, guest, outcome, run};

/// A table as CSV, from a file, so that the program's own output is not in it.
fn table(words: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let (before, program) = words.split_once(':').unwrap();
    run(&format!("count {before} --format csv -o {} :{program}", path.display())).noted_success();
    csv(&fs::read_to_string(path).unwrap())
}

fn column(table: &[Vec<String>], name: &str) -> usize {
    table[0].iter().position(|heading| heading == name).unwrap_or_else(|| panic!("{name}: {:?}", table[0]))
}

fn number(table: &[Vec<String>], row: &str, heading: &str) -> u64 {
    let found = table.iter().find(|cells| cells[0] == row).unwrap_or_else(|| panic!("no row {row}"));
    found[column(table, heading)].parse().unwrap()
}

#[test]
fn every_table_adds_up_to_the_same_total() {
    for (unit, program) in [("", "modes"), ("--unit work", "modes"), ("--unit half", "halves")] {
        let tables = ["image", "function", "line", "instruction"].map(|by| (by, "instructions"));
        let totals: Vec<u64> = tables
            .into_iter()
            .chain([("mnemonic", "count")])
            .map(|(by, heading)| {
                let table = table(&format!("{unit} --by {by} :ev5/{program} work"));
                let at = column(&table, heading);
                let (total, rows) = table[1..].split_last().unwrap();
                let sum: u64 = rows.iter().map(|row| row[at].parse::<u64>().unwrap()).sum();
                assert_eq!(total[usize::from(by == "instruction")], "total");
                assert_eq!(total[at], sum.to_string(), "{unit} {by}");
                sum
            })
            .collect();
        assert!(totals[0] > 0 && totals.iter().all(|total| *total == totals[0]), "{unit}: {totals:?}");
    }
}

#[test]
fn the_same_command_twice_gives_the_same_bytes() {
    for words in [
        "count --by function --format json :ev56/modes work",
        "count --unit work :ev5/modes work",
        "compare --format json :ev5/modes :ev56/modes -- work",
        "static --format json :ev5/modes --against :ev56/modes",
    ] {
        assert_eq!(run(words).quiet_success(), run(words).quiet_success(), "{words}");
    }
}

/// When a timer expires, the clock shows exactly the time to which the timer was set: the program prints it, and its
/// counts depend on what it prints.
#[test]
fn timers_go_off_at_the_same_times_in_each_run() {
    let runs = [(); 2].map(|()| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        let output = run(&format!("count --by mnemonic --format csv -o {} :ev5/timers", path.display()));
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        (output.stdout, fs::read_to_string(path).unwrap())
    });
    assert_eq!(runs[0], runs[1]);
    for (line, set) in runs[0].0.lines().zip([15_000_000u64, 15_000_000, 15_000_000, 25_000_000]) {
        let passed: u64 = line.split(' ').next().unwrap().parse().unwrap();
        // Less than a millisecond's instructions around it.
        assert!((set..set + 1_000_000).contains(&passed), "{line}");
    }
}

#[test]
fn each_call_of_a_function_that_always_does_the_same_has_the_same_length() {
    let units = table("--unit work --units 40 --by unit :ev5/modes work");
    let at = column(&units, "instructions");
    assert_eq!(units.len(), 1 + 40);
    // Three batches of 50 units make the steady state.
    assert_eq!(units[1][0], "150");
    let length: u64 = units[1][at].parse().unwrap();
    assert!(units[1..].iter().all(|unit| unit[at] == units[1][at]));
    // The loop's 20 rounds: its instructions as the disassembler has them.
    let whole = number(&table("--by function :ev5/modes work"), "work", "instructions");
    assert_eq!(whole, 200 * length);
}

#[test]
fn calls_in_every_thread_are_counted() {
    let units = table("--unit work --units 40 --by unit :ev5/threads");
    let length: u64 = units[1][column(&units, "instructions")].parse().unwrap();
    let functions = table("--by function :ev5/threads");
    assert_eq!(number(&functions, "work", "instructions"), 4 * 100 * length);
    // What the program itself does, but for its libraries, depends on no timing.
    let own =
        |table: &[Vec<String>]| ["main", "body", "work"].map(|name| number(table, name, "instructions"));
    for _ in 0..5 {
        assert_eq!(own(&table("--by function :ev5/threads")), own(&functions));
    }
}

#[test]
fn units_that_never_become_steady_are_counted_and_it_is_said() {
    let outcome = run("count --unit work :ev5/modes grow");
    let units = table("--unit work --by unit :ev5/modes grow");
    assert_eq!(units.len(), 1 + 20);
    let printed = outcome.quiet_success().to_lowercase();
    assert!(
        printed.contains("not steady") || printed.contains("never steady") || printed.contains("no steady"),
        "{printed}"
    );
    // A round more each time.
    let at = column(&units, "instructions");
    let lengths: Vec<i64> = units[1..].iter().map(|unit| unit[at].parse().unwrap()).collect();
    let steps: Vec<i64> = lengths.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps[0] > 0 && steps.iter().all(|step| *step == steps[0]), "{lengths:?}");
}

#[test]
fn recursion_is_one_unit() {
    let units = table("--unit factorial --by unit :ev5/modes factorial");
    // 200 calls from outside, 150 of them to warm up; not the five of each.
    assert_eq!(units.len(), 1 + 50);
    assert_eq!(units.last().unwrap()[0], "199");
}

#[test]
fn a_function_of_a_shared_library_is_a_unit() {
    for name in ["half", "libhalf!half", "libhalf.so!half"] {
        let images = table(&format!("--unit {name} --by image :ev56/halves"));
        assert_eq!(images[1][0], "libhalf.so");
        assert_eq!(images.len(), 3, "{images:?}");
        let units = table(&format!("--unit {name} --by unit :ev56/halves"));
        assert_eq!(units.len(), 1 + 100);
    }
}

#[test]
fn gauges_tell_the_hit_ratio() {
    let summary = run("count --unit work --cache hits misses :ev5/modes work").quiet_success();
    assert!(summary.contains("Cache hits (%)") && summary.contains("100.0"), "{summary}");
}

#[test]
fn json_is_one_document_and_parquet_has_its_marks() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("all.json");
    run(&format!("count --by mnemonic --format json -o {} :ev5/tiny", json.display())).quiet_success();
    let document: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(document["rows"].as_array().unwrap().len() > 20);
    for format in ["csv", "json", "parquet"] {
        let several = folder.path().join(format);
        run(&format!("count --unit work --format {format} -o {} :ev5/modes work", several.display()))
            .noted_success();
        let names = ["functions", "groups", "images", "path-length"].map(|name| format!("{name}.{format}"));
        assert_eq!(crate::support::listing(&several), names);
    }
    let parquet = fs::read(folder.path().join("parquet/images.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

/// The program shares our process; what it does to it must not hurt the tables.
#[test]
fn programs_that_spoil_their_surroundings() {
    let expected: u64 = number(&table("--by function :ev5/modes elsewhere"), "work", "instructions");
    let folder = tempfile::tempdir().unwrap();
    for (mode, note) in [
        ("close-streams", "exited with status 7"),
        ("redirect spoiled", "exited with status 7"),
        ("elsewhere", ""),
        ("alarm", ""),
    ] {
        for output in [None, Some("table.csv")] {
            let to = output.map_or(String::new(), |path| format!("-o {path}"));
            let mut relative = command(&format!("count --by function --format csv {to} ./modes {mode}"));
            relative.current_dir(in_folder(folder.path()));
            let outcome = outcome(relative);
            assert_eq!(outcome.code(), i32::from(!note.is_empty()), "{mode}: {}", outcome.stderr);
            assert!(
                outcome.stderr.contains(note) && (!note.is_empty() || outcome.stderr.is_empty()),
                "{mode}: {}",
                outcome.stderr
            );
            let text = output.map(|path| fs::read_to_string(folder.path().join(path)).unwrap());
            let rows = csv(&text.unwrap_or(outcome.stdout));
            assert_eq!(number(&rows, "work", "instructions"), expected, "{mode}");
        }
    }
    assert_eq!(fs::read_to_string(folder.path().join("spoiled")).unwrap(), "redirected\n");
}

/// The folder with a copy of the program.
fn in_folder(folder: &Path) -> &Path {
    let program = folder.join("modes");
    if !program.exists() {
        fs::copy(guest("ev5/modes"), program).unwrap();
    }
    folder
}

/// `/dev/stderr` may be a file that others write to: it is not replaced.
#[test]
fn output_to_a_stream_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all");
    let mut stream = fs::File::create(&path).unwrap();
    std::io::Write::write_all(&mut stream, b"before\n").unwrap();
    for name in ["/proc/self/fd/2", "/dev/fd/2"] {
        let mut command = command(&format!("count --by image --format csv -o {name} :ev5/modes exit 0"));
        assert!(command.stderr(stream.try_clone().unwrap()).status().unwrap().success());
    }
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with("before\nimage,") && text.matches("\ntotal,").count() == 2, "{text}");
}

/// The ones that are ours stay open.
#[test]
fn a_program_that_closes_every_descriptor() {
    assert!(run("count --by group :ev5/modes close").quiet_success().starts_with("Instruction groups"));
    let table = table("--by function :ev5/modes close");
    assert!(number(&table, "work", "instructions") > 0);
}

/// Lines and addresses have what models of caches count, which follow each block as it is executed.
#[test]
fn lines_and_addresses_have_the_instructions_that_models_execute() {
    let folder = crate::caches::Folder::new();
    for (plan, program) in
        [("", "ev56/calls"), ("--unit work --skip 150 --units 50", "ev5/modes work"), ("", "ev5/halves")]
    {
        for (by, names) in [("line", 3), ("instruction", 3)] {
            let counted =
                table(&format!("{} --by {by} :{program}", if plan.is_empty() { "" } else { "--unit work" }));
            let simulated = folder.table(&format!("caches --machine qemu --by {by} {plan} :{program}"));
            let units = if plan.is_empty() { 1 } else { 50 };
            let instructions = |rows: &[Vec<String>], units: u64| {
                let at = column(rows, "instructions");
                let mut all: Vec<(Vec<String>, u64)> = rows[1..]
                    .iter()
                    .map(|row| (row[..names].to_vec(), row[at].parse::<u64>().unwrap() / units))
                    .collect();
                all.sort();
                all
            };
            assert_eq!(instructions(&counted, 1), instructions(&simulated, units), "{program} {by}");
        }
    }
}

/// Also where they pass between processes of the command, and into its database.
#[test]
fn names_of_files_are_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(OsStr::from_bytes(b"modes\xff"));
    std::fs::copy(crate::support::guest("ev5/modes"), &program).unwrap();
    for words in ["count --unit work", "count --children", "calls", "spike register --name odd"] {
        let mut command = crate::support::pathlength(words.split(' ').map(OsStr::new));
        command.arg(&program).current_dir(folder.path()).env("XDG_DATA_HOME", folder.path());
        if !words.starts_with("spike") {
            command.arg("work");
        }
        let outcome = crate::support::outcome(command);
        assert_eq!(outcome.code(), 0, "{words}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{words}: {}", outcome.stderr);
    }
}
