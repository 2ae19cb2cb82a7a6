//! The result of checking a trace, as tables.

use trace::check::{Report, Rule, Violation};

use super::Dictionary;
use super::text::thread;
use table::{Kind, Table, Value};

/// The numbers of checked facts, and the first violations, if there are any.
pub fn tables(dictionary: &Dictionary, report: &Report) -> Vec<Table> {
    let mut tables = vec![checked(report)];
    if report.violations > 0 {
        tables.push(violations(dictionary, report));
    }
    tables
}

fn checked(report: &Report) -> Table {
    let mut table = Table::new("checked", "Checked", &[("what", Kind::Text), ("count", Kind::Count)]);
    for (what, count) in [
        ("instructions", report.instructions),
        ("addresses", report.accesses),
        ("addresses that follow from registers", report.derived),
        ("calls", report.calls),
        ("returns", report.returns),
        ("calls left otherwise, as by longjmp", report.unwound),
        ("returns from calls before recording, or from signals", report.outside),
        ("violations", report.violations),
    ] {
        table.row(vec![what.into(), count.into()]);
    }
    table
}

fn violations(dictionary: &Dictionary, report: &Report) -> Table {
    let columns = [
        ("thread", Kind::Text),
        ("after instruction", Kind::Count),
        ("address", Kind::Address),
        ("rule", Kind::Text),
        ("what is wrong", Kind::Text),
    ];
    let mut table = Table::new("violations", "Violations: what cannot have happened", &columns);
    let streams = dictionary.trace.streams();
    for Violation { rule, stream, instruction, pc, what } in &report.listed {
        table.row(vec![
            thread(&streams[*stream as usize]).into(),
            Value::Integer(instruction.cast_signed()),
            Value::Integer(pc.cast_signed()),
            name(*rule).into(),
            what.clone().into(),
        ]);
    }
    let more = report.violations - report.listed.len() as u64;
    if more > 0 {
        table.notes.push(format!("And {more} more."));
    }
    table
}

fn name(rule: Rule) -> &'static str {
    match rule {
        Rule::Chunk => "chunks",
        Rule::Control => "control flow",
        Rule::Address => "addresses",
        Rule::Return => "returns",
        Rule::Order => "order",
        Rule::Unit => "units of work",
        Rule::SystemCall => "system calls",
        Rule::Heap => "blocks of the heap",
        Rule::Mapping => "mapped ranges",
    }
}
