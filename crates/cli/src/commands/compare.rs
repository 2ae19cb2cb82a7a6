//! `pathlength compare`: what two builds of a program execute.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use analysis::mix;
use analysis::pairing::Pairing;
use analysis::profile::{Attribution, Profile, function_differences, image_shares};
use analysis::table::{Table, Value, separated};
use analysis::units::{Measurement, path_lengths};
use anyhow::Context;
use events::LoadedImage;
use image::Image;
use lab::measure::{self, CountRequest, Counted};

use super::{check_ending, check_names, configuration, left_out, named_in_unit, protect_images, unit, write};
use crate::arguments::CompareOptions;
use crate::progress::Units;

/// One build's part of the comparison.
struct Side {
    label: String,
    profile: Profile,
    images: Vec<LoadedImage>,
    measurement: Option<Measurement>,
    /// The program ended with another status than 0.
    has_failed: bool,
    /// Processes that the program forked.
    forked: u64,
}

/// Runs both programs with the same arguments and writes the tables of their differences.
pub fn run(options: &CompareOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    report::check(true, output.format, output.path.as_deref())?;
    // Check the second program before a long run of the first.
    for program in [&options.program_a, &options.program_b] {
        Image::open(program)?;
        let configuration = configuration(&options.engine, program, &options.arguments, true);
        let unit = unit(&options.unit);
        check_names(&configuration, &named_in_unit(unit.as_ref()))
            .with_context(|| program.display().to_string())?;
    }
    let labels = labels(&options.program_a, &options.program_b);
    let [label_a, label_b] = labels;
    let a = side(options, &options.program_a, label_a)?;
    let b = side(options, &options.program_b, label_b)?;
    let has_failed = [&a, &b].iter().any(|side| side.has_failed);
    let pair = [a.label.as_str(), b.label.as_str()];
    let mut tables = Vec::new();
    if let (Some(first), Some(second)) = (&a.measurement, &b.measurement) {
        let title = "Path length: instructions a unit of work";
        tables.push(path_lengths("path-length", title, &[(pair[0], first), (pair[1], second)]));
    }
    let (mix_a, mix_b) = (a.profile.mix(), b.profile.mix());
    let mixes = [(pair[0], &mix_a), (pair[1], &mix_b)];
    let pairing = Pairing::new(&a.images, &b.images);
    let (profile_a, profile_b) = (pairing.rename(0, &a.profile), pairing.rename(1, &b.profile));
    let mut images = image_shares("images", "Images", &[(pair[0], &profile_a), (pair[1], &profile_b)]);
    images.notes.extend(pairing.notes);
    let mut instructions =
        mix::difference("instructions", "Instructions, most changed first", pair, &mix_a, &mix_b);
    let title = "Functions, most changed first";
    let mut functions = function_differences("functions", title, pair, &profile_a, &profile_b);
    most_changed(&mut instructions, "instructions", options.top);
    most_changed(&mut functions, "functions", options.top);
    let groups = mix::group_shares("groups", "Instruction groups", &mixes);
    tables.extend([images, groups, instructions, functions]);
    for (label, forked) in [(&a.label, a.forked), (&b.label, b.forked)] {
        tables[0].notes.extend(left_out(forked).map(|note| format!("{label}: {note}")));
    }
    write(&tables, output)?;
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn side(options: &CompareOptions, program: &Path, label: String) -> anyhow::Result<Side> {
    let configuration = configuration(&options.engine, program, &options.arguments, true);
    let request = CountRequest { configuration, unit: unit(&options.unit) };
    let mut units = Units::new(options.unit.units);
    let counted = measure::count(&request, &mut |seen, phase| units.show(seen, phase));
    units.clear();
    let counted = counted.with_context(|| program.display().to_string())?;
    let has_failed = check_ending(&counted.ending, program)? != ExitCode::SUCCESS;
    protect_images(counted.counts.images.iter().map(|image| image.path.as_path()));
    let attribution = Attribution::new(&counted.counts);
    let profile = match &counted.measurement {
        Some(measurement) => attribution.mean(&measurement.units),
        None => attribution.whole(&counted.counts),
    };
    let Counted { counts, measurement, forked, .. } = counted;
    Ok(Side { label, profile, images: counts.images, measurement, has_failed, forked })
}

/// Leaves only the rows of a table that changed, those that changed most first, and no more than `top`.
fn most_changed(table: &mut Table, what: &str, top: Option<NonZeroUsize>) {
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
    table.rows.truncate(top.map_or(changed, NonZeroUsize::get));
    let count = |number: usize| separated(&number.to_string());
    if table.rows.len() < changed {
        let left = changed - table.rows.len();
        table.notes.push(format!("{} more {what} changed less; --top shows more.", count(left)));
    }
    if changed < all {
        table.notes.push(format!("{} {what} did not change and are left out.", count(all - changed)));
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
