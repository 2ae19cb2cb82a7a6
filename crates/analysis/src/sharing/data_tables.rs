//! Tables of shared data: cache lines, variables and blocks of the heap, pairs of threads.

use std::collections::BTreeMap;

use trace::Trace;

use super::groups::{SharingGroup, listed, thread_name, thread_names};
use super::{SharingAnalysis, SharingCounts};
use crate::models::ExecutionPart;
use machine::SharingClass;
use table::{Column, Kind, Table, Value};

/// The columns of counts of a table: those of units only if there are units.
fn count_columns(sharing: &SharingAnalysis) -> Vec<Column> {
    let per_unit = (sharing.units() > 0).then_some(("per unit", Kind::Real(1)));
    let interconnect = sharing.nodes().map(|_| ("interconnect", Kind::Count));
    let counts = std::iter::once(("operations", Kind::Count)).chain(interconnect);
    let columns = counts.chain([("share", Kind::Percent(1))]).chain(per_unit).chain([
        ("true misses", Kind::Count),
        ("false misses", Kind::Count),
        ("upgrades", Kind::Count),
        ("transfers", Kind::Count),
        ("avoidable", Kind::Count),
    ]);
    columns.map(|(name, kind)| Column { name: name.into(), kind }).collect()
}

fn count_cells(sharing: &SharingAnalysis, part: ExecutionPart, counts: &SharingCounts) -> Vec<Value> {
    let per_unit = sharing.weight(counts) as f64 / sharing.units_of(part) as f64;
    let per_unit = (sharing.units() > 0).then_some(Value::from(per_unit));
    let interconnect = sharing.nodes().map(|_| Value::from(counts.exchanged()));
    std::iter::once(Value::from(counts.operations()))
        .chain(interconnect)
        .chain([Value::from(sharing.share(counts))])
        .chain(per_unit)
        .chain([
            counts.misses[SharingClass::True as usize].into(),
            counts.misses[SharingClass::False as usize].into(),
            counts.upgrades.into(),
            counts.transfers.into(),
            counts.needless().into(),
        ])
        .collect()
}

fn text_columns(names: &[&str]) -> Vec<Column> {
    names.iter().map(|&name| Column { name: name.into(), kind: Kind::Text }).collect()
}

/// The notes on a table of shared data, and what is said of an empty one.
fn notes(sharing: &SharingAnalysis, table: &mut Table) {
    if table.rows.is_empty() {
        let what = match sharing.threads() {
            0 | 1 => "The program has one thread: no processor shares a line with another one.",
            _ if sharing.memory.processors() == 1 => {
                "There is one processor: it shares no line with another one."
            }
            _ => "No line moved between processors.",
        };
        table.notes.push(what.into());
        return;
    }
    table.notes.push(
        "avoidable: operations that would not occur if no two processors used different bytes of a line."
            .into(),
    );
    if sharing.not_attributed > 0 {
        table.notes.push(format!(
            "{} operations are at so many other addresses that they are in no row.",
            sharing.not_attributed
        ));
    }
}

/// The cache lines that moved between processors in a part of the execution, those with most operations first, and what would avoid
/// these.
pub fn by_cache_line(sharing: &SharingAnalysis, part: ExecutionPart, trace: &Trace) -> Table {
    let title = "Cache lines that moved between processors";
    let mut table = Table::new("cache-lines", title, &[("cache line", Kind::Address)]);
    table.columns.extend(text_columns(&["data", "threads", "sharing"]));
    table.columns.extend(count_columns(sharing));
    table.columns.extend(text_columns(&["suggestion", "written in", "missed in"]));
    let lines = lines(sharing);
    for (number, line) in sharing.groups(part, |access| Some(access.key.line)) {
        // Processes may map it at different addresses.
        let address = line.accesses.first().map_or(0, |first| sharing.line_address(first));
        let diagnosis = sharing.diagnose(&lines[&number]);
        let mut row = vec![
            address.into(),
            listed(&line.names(|access| sharing.label(access))).into(),
            thread_names(&line.threads(), trace).into(),
            diagnosis.kind.into(),
        ];
        row.extend(count_cells(sharing, part, &line.counts));
        row.extend([
            diagnosis.suggestion.into(),
            writers(sharing, &line, trace),
            missed_in(sharing, &line, trace),
        ]);
        table.row(row);
    }
    notes(sharing, &mut table);
    table
}

/// All lines that moved, by number: what would avoid that depends on all their accesses.
fn lines(sharing: &SharingAnalysis) -> BTreeMap<u32, SharingGroup<'_>> {
    sharing.groups(ExecutionPart::Whole, |access| Some(access.key.line)).into_iter().collect()
}

/// Where the line was written before it moved.
fn writers(sharing: &SharingAnalysis, group: &SharingGroup, trace: &Trace) -> Value {
    let name = |access: &super::SharedAccess| {
        access.key.writer.map_or(String::new(), |writer| sharing.location(writer, trace))
    };
    let mut names = group.names(name);
    names.retain(|name| !name.is_empty());
    if names.is_empty() { Value::Missing } else { listed(&names).into() }
}

fn missed_in(sharing: &SharingAnalysis, group: &SharingGroup, trace: &Trace) -> Value {
    listed(&group.names(|access| sharing.location(access.key.by, trace))).into()
}

/// The variables and blocks of the heap on lines that moved in a part of the execution, those with most operations first.
pub fn by_data(sharing: &SharingAnalysis, part: ExecutionPart, trace: &Trace) -> Table {
    let mut table = Table::new("data", "Data on cache lines that moved between processors", &[]);
    table.columns.extend(text_columns(&["data", "where", "type", "threads", "sharing"]));
    table.columns.push(Column { name: "cache lines".into(), kind: Kind::Count });
    table.columns.extend(count_columns(sharing));
    table.columns.extend(text_columns(&["suggestion", "accessed by"]));
    let lines = lines(sharing);
    for ((array, member), group) in sharing.groups(part, |access| Some(access.data)) {
        let mut of_lines: BTreeMap<u32, u64> = BTreeMap::new();
        for access in &group.accesses {
            *of_lines.entry(access.key.line).or_default() += access.counts.operations();
        }
        // The line with most operations tells what to do; of equal ones the first.
        let main = of_lines.iter().max_by_key(|&(line, count)| (count, std::cmp::Reverse(line)));
        let diagnosis = main.and_then(|(line, _)| lines.get(line)).map(|line| sharing.diagnose(line));
        let described = &sharing.layout.arrays()[array as usize];
        let mut row = vec![
            sharing.layout.name(array, member).into(),
            described.location.clone().into(),
            described.shape.clone().into(),
            thread_names(&group.threads(), trace).into(),
            diagnosis.as_ref().map(|diagnosis| diagnosis.kind).into(),
            (of_lines.len() as u64).into(),
        ];
        row.extend(count_cells(sharing, part, &group.counts));
        row.extend([
            diagnosis.and_then(|diagnosis| diagnosis.suggestion).into(),
            missed_in(sharing, &group, trace),
        ]);
        table.row(row);
    }
    notes(sharing, &mut table);
    table
}

/// The pairs of threads between which lines moved in a part of the execution: the one that had written the line, and the one that used
/// it next.
pub fn by_thread(sharing: &SharingAnalysis, part: ExecutionPart, trace: &Trace) -> Table {
    let mut table = Table::new("threads", "Threads between which cache lines moved", &[]);
    table.columns.extend(text_columns(&["from thread", "to thread"]));
    table.columns.extend(count_columns(sharing));
    table.columns.extend(text_columns(&["data", "written in", "missed in"]));
    let pair = |access: &super::SharedAccess| Some((access.key.writer?.thread, access.key.by.thread));
    for ((from, to), group) in sharing.groups(part, pair).into_iter().filter(|((from, to), _)| from != to) {
        let mut row = vec![thread_name(from, trace).into(), thread_name(to, trace).into()];
        row.extend(count_cells(sharing, part, &group.counts));
        row.extend([
            listed(&group.names(|access| sharing.layout.name(access.data.0, access.data.1))).into(),
            writers(sharing, &group, trace),
            missed_in(sharing, &group, trace),
        ]);
        table.row(row);
    }
    notes(sharing, &mut table);
    table
}
