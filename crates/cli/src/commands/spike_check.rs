//! `pathlength spike check`: proves that an optimized image does what its original does.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use spike::check::{self, Category, Checked, Difference, Report};
use table::{Kind, Table, Value};

use crate::arguments::{CheckImagesOptions, OutputOptions, ReportRows};

/// Does what the options say. The exit status is 1 if anything could not be proved.
pub fn run(options: &CheckImagesOptions) -> anyhow::Result<ExitCode> {
    let read = |path: &std::path::Path| {
        let image = image::Image::open(path)?;
        image.check_sections()?;
        fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))
    };
    let (original, optimized) = (read(&options.original)?, read(&options.optimized)?);
    let report = check::check(original, optimized).map_err(|problem| {
        let path = match problem {
            spike::Problem::NotRewritten => &options.optimized,
            _ => &options.original,
        };
        spike::Error::Unsuitable { path: path.to_path_buf(), problem }
    })?;
    let table = match options.by {
        Some(ReportRows::Procedure) => differences(&report),
        None => categories(&report),
    };
    crate::console::write(&[table], &OutputOptions::standard(options.format))?;
    Ok(if report.is_proved() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn categories(report: &Report) -> Table {
    let columns = [("category", Kind::Text), ("procedures", Kind::Count), ("meaning", Kind::Text)];
    let mut table = Table::new("proved", "Procedures of the original by what was proved", &columns);
    let count = |number: usize| Value::Integer(number as i64);
    for category in Category::ALL {
        table.row(vec![
            Value::Text(category.name().into()),
            count(report.count(category)),
            Value::Text(category.meaning().into()),
        ]);
    }
    table.total_row(vec![Value::Text("total".into()), count(report.procedures.len()), Value::Missing]);
    for (name, difference) in unproved(&report.procedures).take(MOST_PLACES) {
        let (old, new) = difference.at;
        table.notes.push(format!(
            "{name} is not proved: at {new:#x} (in the original {old:#x}), {}. Show the path with --by procedure.",
            difference.reason
        ));
    }
    for place in report.data.iter().take(MOST_PLACES) {
        table.notes.push(format!("The data at {place:#x} is not that of the original."));
    }
    table
}

/// Differences that are listed.
const MOST_PLACES: usize = 20;

fn unproved(procedures: &[Checked]) -> impl Iterator<Item = (&str, &Difference)> {
    procedures.iter().filter_map(|one| Some((one.name.as_str(), &one.difference.as_ref()?.1)))
}

/// What could not be proved: where, and on which path.
fn differences(report: &Report) -> Table {
    let columns = [
        ("procedure", Kind::Text),
        ("original", Kind::Text),
        ("optimized", Kind::Text),
        ("difference", Kind::Text),
        ("path", Kind::Text),
    ];
    let mut table = Table::new("differences", "What could not be proved", &columns);
    for (name, difference) in unproved(&report.procedures) {
        let path: Vec<String> = difference.path.iter().map(|(old, _)| format!("{old:#x}")).collect();
        table.row(vec![
            Value::Text(name.into()),
            Value::Text(format!("{:#x}", difference.at.0)),
            Value::Text(format!("{:#x}", difference.at.1)),
            Value::Text(difference.reason.clone()),
            Value::Text(path.join(" ")),
        ]);
    }
    table
}
