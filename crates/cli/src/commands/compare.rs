//! `pathlength compare`: what two builds of a program execute.

use std::cmp::Reverse;
use std::path::Path;
use std::process::ExitCode;

use analysis::classes::owner_differences;
use analysis::environment::environment_difference;
use analysis::mix;
use analysis::names::check_executed;
use analysis::pairing::Pairing;
use analysis::profile::{FunctionName, Profile, function_differences, image_shares};
use analysis::run_counts::{self, RunCounts};
use analysis::units::path_lengths;
use anyhow::{Context, bail};
use image::{Image, SymbolPattern};
use report::Format;
use session::console::RunProgress;
use session::measure::{self, CountRequest};
use session::program::{check_ending, check_names, protect_images};
use table::{Table, Value, separated};
use trace::Trace;

use super::count::description;
use super::show::report_problems;
use super::{named_in_unit, unit};
use crate::arguments::{CompareOptions, GateOptions, words_of};
use crate::console::{CommandRun, write, write_after_run};
use crate::messages;

/// The exit status if the second side executes too much more than the first.
const ABOVE: u8 = 3;
/// How many functions the gate's message names.
const WORST: usize = 3;
/// How many rows a table of Markdown has unless --top says otherwise.
const MARKDOWN_ROWS: usize = 10;

/// One part of the comparison.
struct Side {
    label: String,
    counts: RunCounts,
    /// A program was run for it.
    has_run: bool,
    /// The program ended with another status than 0, or parts of the trace cannot be read.
    has_failed: bool,
}

/// Runs the programs with the same arguments, or reads saved counts and traces, and writes the tables of their
/// differences.
pub fn run(options: &CompareOptions) -> anyhow::Result<ExitCode> {
    if options.unit.unit.len() > 1 {
        bail!(
            "builds are compared by one unit of work: give --unit once, or save the counts of classes of each (count --unit … --unit … -o \
             A.counts) and compare these"
        );
    }
    let output = &options.output;
    output.check(true)?;
    // Check the second program before a long run of the first.
    for program in [&options.program_a, &options.program_b] {
        if RunCounts::is_saved(program) || Trace::is_trace(program) {
            continue;
        }
        Image::open(program)?;
        let configuration =
            options.engine.program().configuration(program, &words_of(&options.arguments), true);
        let unit = unit(&options.unit);
        check_names(&configuration, &named_in_unit(unit.as_ref()))
            .with_context(|| program.display().to_string())?;
    }
    let [label_a, label_b] = labels(&options.program_a, &options.program_b);
    let a = side(options, &options.program_a, label_a)?;
    let b = side(options, &options.program_b, label_b)?;
    for (side, other) in [(&a, &b), (&b, &a)] {
        if let (Some(unit), None) = (side.counts.unit(), other.counts.unit()) {
            bail!("{} has units of work, calls of '{unit}', and {} has none", side.label, other.label);
        }
    }
    let pairing = Pairing::new(&a.counts.images, &b.counts.images);
    let profiles = [pairing.rename(0, &a.counts.profile()), pairing.rename(1, &b.counts.profile())];
    let mut tables = tables(options, [&a, &b], &profiles, pairing);
    let sorted = options.rows.sort(&mut tables);
    let is_short = output.format() == Format::Markdown;
    for table in tables.iter_mut().filter(|table| ["instructions", "functions"].contains(&&*table.name)) {
        options.rows.shorten(table, is_short.then_some(MARKDOWN_ROWS), "--top shows more");
    }
    match a.has_run || b.has_run {
        true => write_after_run(&tables, output)?,
        false => write(&tables, output)?,
    }
    sorted?;
    if a.has_failed || b.has_failed {
        return Ok(ExitCode::FAILURE);
    }
    let span = a.counts.span();
    Ok(if is_above(&options.gate, span, &profiles)? { ABOVE.into() } else { ExitCode::SUCCESS })
}

fn tables(
    options: &CompareOptions,
    sides: [&Side; 2],
    [profile_a, profile_b]: &[Profile; 2],
    pairing: Pairing,
) -> Vec<Table> {
    let [a, b] = sides;
    let pair = [a.label.as_str(), b.label.as_str()];
    let mut tables = Vec::new();
    if let (Some(first), Some(second)) = (a.counts.measurement(), b.counts.measurement()) {
        let title = "Path length: instructions a unit of work";
        tables.push(path_lengths("path-length", title, &[(pair[0], first), (pair[1], second)]));
    }
    let (mix_a, mix_b) = (profile_a.mix(), profile_b.mix());
    let mixes = [(pair[0], &mix_a), (pair[1], &mix_b)];
    let mut images = image_shares("images", "Images", &[(pair[0], profile_a), (pair[1], profile_b)]);
    images.notes.extend(pairing.notes);
    let mut instructions =
        mix::difference("instructions", "Instructions, most changed first", pair, &mix_a, &mix_b);
    let title = "Functions, most changed first";
    let mut functions = function_differences("functions", title, pair, profile_a, profile_b);
    most_changed(&mut instructions, "instructions");
    most_changed(&mut functions, "functions");
    if options.output.format() == Format::Markdown {
        tables.push(functions);
    } else {
        let groups = mix::group_shares("groups", "Instruction groups", &mixes);
        tables.extend([images, groups, instructions, functions]);
    }
    if sides.iter().all(|side| side.counts.has_owners()) {
        tables.insert(0, owner_differences(pair, sides.map(|side| &side.counts)));
    }
    for side in sides {
        let notes = side.counts.description.notes.iter().map(|note| format!("{}: {note}", side.label));
        tables[0].notes.extend(notes);
    }
    let environments = sides.map(|side| side.counts.description.environment.as_ref());
    tables[0].notes.extend(environment_difference(pair, environments));
    tables[0].notes.extend(path_difference(sides.map(|side| side.counts.description.program.as_str())));
    tables
}

/// A note on programs whose paths have different lengths: a program may process its own path, as a server that finds its files by it.
fn path_difference([a, b]: [&str; 2]) -> Option<String> {
    let (of_a, of_b) = (a.chars().count(), b.chars().count());
    (of_a != of_b).then(|| {
        format!(
            "The paths of the programs have {of_a} and {of_b} characters: programs that look at their own path, as PostgreSQL \
             does, execute some instructions more for a longer one."
        )
    })
}

/// Whether the second profile has too much more than the first; says so on standard error.
fn is_above(gate: &GateOptions, span: &str, [a, b]: &[Profile; 2]) -> anyhow::Result<bool> {
    let Some(threshold) = gate.fail_above else { return Ok(false) };
    let of = |profile: &Profile, pattern: &SymbolPattern| -> f64 {
        let named = profile.functions.iter().filter(|(function, _)| function.is_named(pattern));
        named.map(|(_, n)| *n).sum()
    };
    let (what, before, after) = match &gate.function {
        Some(name) => {
            let executed = a.functions.keys().chain(b.functions.keys());
            check_executed(std::slice::from_ref(name), executed).context("on neither side")?;
            let pattern = SymbolPattern::new(name);
            (name.clone(), of(a, &pattern), of(b, &pattern))
        }
        None => (span.into(), a.total, b.total),
    };
    if !threshold.is_exceeded(before, after) {
        return Ok(false);
    }
    let digits = |n: f64| separated(&format!("{n:.0}"));
    let share =
        if before > 0.0 { format!(", {:+.2} %", 100.0 * (after - before) / before) } else { String::new() };
    text::message!(
        "{what} grew from {} to {} instructions (+{}{share}), more than --fail-above allows",
        digits(before),
        digits(after),
        digits(after - before)
    );
    let growth = |(name, n): (_, &f64)| (name, n - a.functions.get(name).unwrap_or(&0.0));
    let mut worst: Vec<(&FunctionName, f64)> =
        b.functions.iter().map(growth).filter(|(_, n)| *n >= 0.5).collect();
    worst.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    for (name, n) in worst.iter().take(if gate.function.is_some() { 0 } else { WORST }) {
        text::message!("note: {} in {}: +{}", name.function, name.image, digits(*n));
    }
    Ok(true)
}

fn side(options: &CompareOptions, program: &Path, label: String) -> anyhow::Result<Side> {
    if RunCounts::is_saved(program) {
        return Ok(Side { label, counts: RunCounts::open(program)?, has_run: false, has_failed: false });
    }
    if Trace::is_trace(program) {
        let trace = Trace::open(program)?;
        let (counts, problems) = run_counts::of_trace(&trace)?;
        report_problems(&trace, program);
        problems.iter().for_each(|problem| messages::report_problem(&problem.to_string()));
        let has_failed = !problems.is_empty() || !trace.problems().is_empty();
        return Ok(Side { label, counts, has_run: false, has_failed });
    }
    let mut configuration =
        options.engine.program().configuration(program, &words_of(&options.arguments), true);
    let run = CommandRun::begin(&options.output, true);
    configuration.settings.executed = run.instructions();
    let request = CountRequest { configuration, unit: unit(&options.unit) };
    let counted = measure::count(&request, &mut |seen, phase| run.unit(seen, phase));
    drop(run);
    let counted = counted.with_context(|| program.display().to_string())?;
    let has_failed = check_ending(&counted.ending, program, &options.ending.expected())? != ExitCode::SUCCESS;
    protect_images(counted.counts.images.iter().map(|image| image.path.as_path()));
    let description = description(&request.configuration, &counted);
    let unit = options.unit.unit.first().map(String::as_str);
    let counts = RunCounts::new(description, &counted.counts, unit.zip(counted.measurement));
    Ok(Side { label, counts, has_run: true, has_failed })
}

/// Leaves only the rows of a table that changed, those that changed most first.
fn most_changed(table: &mut Table, what: &str) {
    let Some(column) = table.columns.iter().position(|column| column.name == "delta") else { return };
    let total = if table.total { table.rows.pop() } else { None };
    let delta = |row: &Vec<Value>| match row[column] {
        Value::Integer(delta) => delta.unsigned_abs(),
        _ => 0,
    };
    let all = table.rows.len();
    table.rows.retain(|row| delta(row) != 0);
    let changed = table.rows.len();
    table.rows.sort_by_key(|row| Reverse(delta(row)));
    if changed < all {
        let unchanged = separated(&(all - changed).to_string());
        table.notes.push(format!("{unchanged} {what} did not change and are left out."));
    }
    table.rows.extend(total);
}

/// Names for the two columns: the last components of the paths in which they differ.
fn labels(a: &Path, b: &Path) -> [String; 2] {
    let parts = |path: &Path| -> Vec<String> {
        path.components().rev().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let (parts_a, parts_b) = (parts(a), parts(b));
    match parts_a.iter().zip(&parts_b).find(|(a, b)| a != b) {
        Some((a, b)) => [a.clone(), b.clone()],
        None => ["first".into(), "second".into()],
    }
}
