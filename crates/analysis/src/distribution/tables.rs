//! Distributions as tables.

use std::collections::BTreeMap;

use trace::Trace;

use super::{Distribution, bins};
use crate::call_tree::{NoEvent, find_event};
use crate::models::{InstructionResults, UnitResults};
use table::{Kind, Table, Value};

/// The percentiles that are shown.
const PERCENTILES: [(&str, u64); 3] = [("p50", 50), ("p90", 90), ("p99", 99)];

/// The width of the longest bar of a histogram in text.
const BAR: u64 = 40;

/// What is shown of the distribution.
#[derive(Clone, Debug, Default)]
pub struct DistributionRequest {
    /// The event of the histogram and of the table by thread, as a column is named.
    pub event: Option<String>,
    /// Whether the histogram has bars of text.
    pub has_bars: bool,
}

/// The distribution of each event over the units of work, its histogram, and a row for each thread if there are several.
/// None if no unit ended.
pub fn distribution_tables<R: InstructionResults>(
    results: &R,
    trace: &Trace,
    request: &DistributionRequest,
) -> Result<Option<Vec<Table>>, NoEvent> {
    let columns = results.columns();
    let event = find_event(&columns, request.event.as_deref())?.unwrap_or(R::UNIT_EVENT);
    let units = results.unit_results();
    if units.is_empty() {
        return Ok(None);
    }
    let function = trace.header().unit.as_deref().unwrap_or("the function");
    let name = &columns[event].name;
    let mut by_event =
        Table::new("distribution", format!("What one call of {function} costs"), &headings("event"));
    for (index, column) in columns.iter().enumerate() {
        by_event.row(row(column.name.clone(), units.iter(), index));
    }
    let mut tables = vec![by_event, histogram(&units, event, name, request.has_bars)];
    let mut threads: BTreeMap<u32, Vec<&UnitResults>> = BTreeMap::new();
    units.iter().for_each(|unit| threads.entry(unit.thread).or_default().push(unit));
    if threads.len() > 1 {
        let mut by_thread = Table::new("threads", format!("By thread: {name}"), &headings("thread"));
        for (thread, own) in threads {
            by_thread.row(row(thread_name(trace, thread), own.into_iter(), event));
        }
        tables.push(by_thread);
    }
    Ok(Some(tables))
}

/// The number of a thread's process, and its own number in that.
pub fn thread_name(trace: &Trace, thread: u32) -> String {
    match trace.streams().get(thread as usize) {
        Some(stream) => format!("{}.{}", stream.process, stream.thread),
        None => format!("0.{thread}"),
    }
}

fn headings(first: &str) -> Vec<(&str, Kind)> {
    let mut headings = vec![(first, Kind::Text), ("calls", Kind::Count), ("minimum", Kind::Count)];
    headings.extend(PERCENTILES.map(|(name, _)| (name, Kind::Count)));
    headings.extend([("maximum", Kind::Count), ("mean", Kind::Real(1)), ("maximum in call", Kind::Count)]);
    headings
}

/// The distribution of one column.
fn row<'u>(name: String, units: impl Iterator<Item = &'u UnitResults> + Clone, column: usize) -> Vec<Value> {
    let values: Distribution = units.clone().map(|unit| unit.row[column]).collect();
    // Of several calls with the same cost, the first.
    let slowest = units.max_by_key(|unit| (unit.row[column], std::cmp::Reverse(unit.number)));
    let mut row: Vec<Value> = vec![name.into(), values.number().into(), values.minimum().into()];
    row.extend(PERCENTILES.map(|(_, percent)| Value::from(values.percentile(percent))));
    row.extend([values.maximum().into(), values.mean().into(), slowest.map(|unit| unit.number).into()]);
    row
}

fn histogram(units: &[UnitResults], event: usize, name: &str, has_bars: bool) -> Table {
    let values: Distribution = units.iter().map(|unit| unit.row[event]).collect();
    let mut columns =
        vec![("from", Kind::Count), ("to", Kind::Count), ("calls", Kind::Count), ("share", Kind::Percent(1))];
    if has_bars {
        columns.push(("histogram", Kind::Code));
    }
    let mut table = Table::new("histogram", format!("Calls by their {name}"), &columns);
    let bins = bins(&values);
    let most = bins.iter().map(|bin| bin.number).max().unwrap_or(0);
    for bin in bins {
        let share = 100.0 * bin.number as f64 / values.number() as f64;
        let mut row: Vec<Value> = vec![bin.from.into(), bin.to.into(), bin.number.into(), share.into()];
        if has_bars {
            row.push("█".repeat((bin.number * BAR).div_ceil(most) as usize).into());
        }
        table.row(row);
    }
    table
}
