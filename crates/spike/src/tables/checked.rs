//! Tables of a check of an optimized image: the properties that it proved.

use table::{Kind, Table, Value};

use super::count;
use crate::check::{CheckedProcedure, ComparisonReport, Difference, ProofCategory};

/// The procedures of the original by what was proved.
pub fn proved(report: &ComparisonReport) -> Table {
    let columns = [("category", Kind::Text), ("procedures", Kind::Count), ("meaning", Kind::Text)];
    let mut table = Table::new("proved", "Procedures of the original by what was proved", &columns);
    for category in ProofCategory::ALL {
        table.row(vec![
            Value::Text(category.name().into()),
            count(report.count(category) as u64),
            Value::Text(category.meaning().into()),
        ]);
    }
    table.total_row(vec![Value::Text("total".into()), count(report.procedures.len() as u64), Value::Missing]);
    for (name, difference) in unproved(&report.procedures).take(MOST_LISTED) {
        let (old, new) = difference.at;
        table.notes.push(format!(
            "{name} is not proved: at {new:#x} (in the original {old:#x}), {}. Show the path with --by procedure.",
            difference.reason
        ));
    }
    for address in report.data.iter().take(MOST_LISTED) {
        table.notes.push(format!("The data at {address:#x} is not that of the original."));
    }
    table
}

/// Differences that are listed.
const MOST_LISTED: usize = 20;

fn unproved(procedures: &[CheckedProcedure]) -> impl Iterator<Item = (&str, &Difference)> {
    procedures.iter().filter_map(|one| Some((one.name.as_str(), &one.difference.as_ref()?.1)))
}

/// The program points that could not be proved, with the path to each.
pub fn differences(report: &ComparisonReport) -> Table {
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
