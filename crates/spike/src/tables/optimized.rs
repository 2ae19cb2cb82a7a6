//! Tables of an optimization: the instructions that it removed.

use table::{Kind, Table, Value};

use super::{count, number, share};
use crate::hot_cold::{HotColdCategory, ProcedureOutcome};
use crate::optimize::Optimized;

/// The sum of a number over all procedures.
fn sum(outcomes: &[ProcedureOutcome], number: impl Fn(&ProcedureOutcome) -> u64) -> u64 {
    outcomes.iter().map(number).fold(0, u64::saturating_add)
}

/// The executions that were removed from the profiled run of an image of so many instructions (the paper's Figure 16).
pub fn reduction(optimized: &Optimized, instructions: usize) -> Table {
    let columns = [("removed", Kind::Text), ("executions", Kind::Count), ("share (%)", Kind::Percent(2))];
    let mut table = Table::new("reduction", "Executions removed from the profiled run", &columns);
    let outcomes = &optimized.outcomes;
    let rows = [
        ("instructions that do nothing", optimized.nops.1),
        ("computations of the global pointer", optimized.linkage.global_pointers),
        ("returns before tail calls", optimized.linkage.tail_calls),
        ("partially dead code", sum(outcomes, |one| one.reduction.dead_code)),
        ("saves and restores of registers", sum(outcomes, |one| one.reduction.saves)),
        ("adjustments of the stack pointer", sum(outcomes, |one| one.reduction.adjustments)),
        ("copies of a register to itself", sum(outcomes, |one| one.reduction.peephole)),
        ("calls and returns of inlined procedures", sum(outcomes, |one| one.reduction.inlining)),
    ];
    for (name, executions) in rows {
        table.row(vec![Value::Text(name.into()), count(executions), share(executions, optimized.executed)]);
    }
    let total = rows.iter().map(|row| row.1).sum();
    table.total_row(vec![Value::Text("total".into()), count(total), share(total, optimized.executed)]);
    table.notes.push(format!(
        "The profiled run executed {} instructions of the image. The image had {} instructions, and has {}.",
        number(optimized.executed),
        number(instructions as u64),
        number(optimized.code_bytes / 4)
    ));
    table.notes.push(
        "Branches that code layout removes or adds are not included: pathlength compare counts all.".into(),
    );
    table
}

/// The procedures by what became of them (the paper's Figure 15).
pub fn coverage(optimized: &Optimized) -> Table {
    let columns = [
        ("category", Kind::Text),
        ("procedures", Kind::Count),
        ("executed", Kind::Count),
        ("share (%)", Kind::Percent(1)),
    ];
    let mut table = Table::new("coverage", "Procedures by what hot-cold optimization did", &columns);
    let total = sum(&optimized.outcomes, |one| one.executed);
    for category in HotColdCategory::ALL {
        let those: Vec<ProcedureOutcome> =
            optimized.outcomes.iter().filter(|one| one.category == category).cloned().collect();
        let executed = sum(&those, |one| one.executed);
        let name = Value::Text(category.name().into());
        table.row(vec![name, count(those.len() as u64), count(executed), share(executed, total)]);
    }
    table.total_row(vec![
        Value::Text("total".into()),
        count(optimized.outcomes.len() as u64),
        count(total),
        share(total, total),
    ]);
    table
}

/// Each procedure that was executed, the most frequent first.
pub fn procedures(optimized: &Optimized) -> Table {
    let columns = [
        ("procedure", Kind::Text),
        ("category", Kind::Text),
        ("executed", Kind::Count),
        ("removed", Kind::Count),
        ("size", Kind::Count),
        ("hot size", Kind::Count),
        ("stub size", Kind::Count),
        ("reason", Kind::Text),
    ];
    let mut table = Table::new("procedures", "Procedures of the image, in instructions", &columns);
    let mut outcomes: Vec<&ProcedureOutcome> =
        optimized.outcomes.iter().filter(|one| one.executed > 0).collect();
    outcomes.sort_by_key(|one| (std::cmp::Reverse(one.executed), one.procedure));
    for one in outcomes {
        let procedure = &optimized.program.procedures[one.procedure as usize];
        let reason = procedure.frozen.map_or(one.category.reason(), |frozen| frozen.name());
        table.row(vec![
            Value::Text(procedure.name.clone()),
            Value::Text(one.category.name().into()),
            count(one.executed),
            count(one.reduction.total()),
            count(one.size as u64),
            count(one.hot_size as u64),
            count(one.stub_size as u64),
            Value::Text(reason.into()),
        ]);
    }
    table
}
