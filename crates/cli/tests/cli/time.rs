//! `time`: a running program and the trace of the same run take the same cycles, and each has one cause.

use crate::caches::{Folder, cell, column};
use crate::support::run;

/// The summary of some words: each table by its name.
fn summary(folder: &Folder, words: &str) -> impl Fn(&str) -> Vec<Vec<String>> {
    let tables = folder.path("tables");
    run(&format!("time --format csv -o {} {words}", tables.display())).noted_success();
    move |name| crate::support::csv(&std::fs::read_to_string(tables.join(format!("{name}.csv"))).unwrap())
}

#[test]
fn a_program_that_runs_and_its_trace_take_the_same_time() {
    let folder = Folder::new();
    let plan = "--unit work --skip 7 --units 50";
    let trace = folder.trace(&format!("{plan} :ev56/modes work"));
    for table in ["function", "line", "instruction", "unit"] {
        let replayed = folder.table(&format!("time --by {table} --unit work {trace}"));
        assert!(replayed.len() > 2, "{table}: {replayed:?}");
        for processors in 1..=2 {
            let words = format!("time --by {table} {plan} --host-processors {processors} :ev56/modes work");
            assert_eq!(folder.table(&words), replayed, "{words}");
        }
    }
}

#[test]
fn every_cycle_is_attributed_once() {
    let folder = Folder::new();
    let words = "--machine alphastation500 --unit work :ev56/modes work";
    let tables = summary(&folder, words);
    let (time, causes) = (tables("time"), tables("cycles"));
    let total = cell(&time, 1, "cycles");
    let cycles = column(&causes, "cycles");
    let (sum, parts) = cycles.split_last().unwrap();
    assert_eq!((*sum as f64, parts.iter().sum::<u64>()), (total, *sum));
    for by in ["function", "line", "instruction"] {
        let rows = folder.table(&format!("time --by {by} {words}"));
        let all = column(&rows, "cycles");
        let (sum, places) = all.split_last().unwrap();
        assert_eq!((*sum as f64, places.iter().sum::<u64>()), (total, *sum), "{by}");
        let sides = ["issuing", "front-end stall (dry)", "back-end stall (frozen)"]
            .map(|side| *column(&rows, side).last().unwrap());
        assert_eq!(sides.iter().sum::<u64>(), *sum, "{by}");
        let instructions = column(&rows, "instructions").last().copied().unwrap();
        assert_eq!(instructions as f64, cell(&time, 1, "instructions"), "{by}");
    }
    // The clock has 400 MHz.
    let units = folder.table(&format!("time --by unit {words}"));
    let cycles = column(&units, "cycles");
    assert_eq!(cycles.len(), 200);
    let mean = cycles.iter().sum::<u64>() as f64 / 200.0;
    assert!((cell(&time, 1, "cycles per unit") - mean).abs() < 1e-6 * mean);
    assert!((cell(&time, 1, "units a second") - 400e6 / mean).abs() < 1e-6 * 400e6 / mean);
    // The instructions are those of `count`.
    let counted = folder.table("count --by function :ev56/modes work");
    let whole = summary(&folder, ":ev56/modes work")("time");
    assert_eq!(cell(&whole, 1, "instructions") as u64, *column(&counted, "instructions").last().unwrap());
}

#[test]
fn a_sample_estimates_the_time_of_the_whole() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/modes work");
    for machine in ["alphastation500", "alpha21264"] {
        let exact = summary(&folder, &format!("--machine {machine} {trace}"))("time");
        let words = format!("--machine {machine} --sample 6000 {trace}");
        let tables = summary(&folder, &words);
        let (time, causes) = (tables("time"), tables("cycles"));
        let number = |name| cell(&time, 1, name);
        assert_eq!(number("instructions"), cell(&exact, 1, "instructions"), "{machine}");
        let error = number("± (99 %)");
        let difference = number("cycles per instruction") - cell(&exact, 1, "cycles per instruction");
        assert!(difference.abs() <= error && error > 0.0, "{machine}: {difference}, {error}");
        assert!(number("windows") > 10.0 && number("measured") < 20.0, "{machine}: {time:?}");
        let all: Vec<f64> =
            (1..causes.len()).map(|row| cell(&causes, row, "cycles per instruction")).collect();
        let (total, parts) = all.split_last().unwrap();
        assert!((total - parts.iter().sum::<f64>()).abs() < 1e-9 * total, "{machine}");
        // A program that runs, and all its processes, have the same windows.
        for way in ["", "--children"] {
            let words = format!("--machine {machine} {way} --sample 6000 :ev56/modes work");
            assert_eq!(summary(&folder, &words)("time"), time, "{words}");
        }
    }
    let noted = run(&format!("time --sample 6000 {trace}")).quiet_success();
    assert!(noted.contains("windows") && noted.contains("with a confidence of 99 %"), "{noted}");
}

#[test]
fn samples_are_not_for_functions() {
    let outcome = run("time --sample 0 :ev5/tiny");
    assert!(outcome.code() == 2 && outcome.stderr.contains("0 is not in 1.."), "{}", outcome.stderr);
    let sentence = run("time --sample 5000 --by function :ev5/tiny").failure();
    assert!(sentence.contains("--by process"), "{sentence}");
}

#[test]
fn emulated_instructions_name_the_processor_to_compile_for() {
    let folder = Folder::new();
    let trace = folder.trace(":ev56/modes work");
    let sentence = "instructions that its processor lacks were emulated by the system, 16 µs each; a program compiled with -mcpu=ev4 has none";
    let output = run(&format!("time --machine dec3000 {trace}")).quiet_success();
    // Long notes are wrapped.
    let words: Vec<&str> = output.split_whitespace().collect();
    assert!(words.join(" ").contains(sentence), "{output}");
    let output = run(&format!("time --machine alphastation500 {trace}")).quiet_success();
    assert!(!output.contains("emulated"), "{output}");
}

#[test]
fn a_machine_without_a_pipeline_has_no_time() {
    let sentence = run("time --machine qemu :ev5/tiny").failure();
    assert!(sentence.contains("no section [pipeline]"), "{sentence}");
    let sentence = run("time --format csv :ev5/tiny").failure();
    assert!(sentence.contains("-o"), "{sentence}");
}
