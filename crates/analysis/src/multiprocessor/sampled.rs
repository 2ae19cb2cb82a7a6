//! What processors spend their time on, estimated from a sample of an execution.

use machine::{Estimate, Multiprocessor, ProcessorCause, SampledTime};

use super::{cause_name, causes};
use table::{Kind, Table, Value, separated};

/// Cycles per instruction of all processors by cause, with half of the interval that has the exact value with a confidence of 99 %.
pub(super) fn sampled_time(model: &Multiprocessor, sampled: &SampledTime) -> Table {
    let columns = [
        ("cause", Kind::Text),
        ("cycles per instruction", Kind::Real(4)),
        ("± (99 %)", Kind::Real(4)),
        ("error", Kind::Percent(2)),
    ];
    let mut table = Table::new("processors", "Cycles per instruction, from a sample", &columns);
    let cells = |Estimate { value, error }: Estimate| {
        let cycle = model.cycle() as f64;
        [value / cycle, error / cycle, 100.0 * error / value].map(Value::from)
    };
    for cause in causes(model) {
        let estimate = sampled.of(cause);
        if cause != ProcessorCause::Idle && estimate.value > 0.0 {
            table.row(std::iter::once(cause_name(cause).into()).chain(cells(estimate)).collect());
        }
    }
    let total = cells(sampled.per_instruction());
    table.total_row(std::iter::once("total".into()).chain(total).collect());
    let number = |number: u64| separated(&number.to_string());
    table.notes.push(format!(
        "From {} windows with {} of {} instructions. The exact value differs from an estimate by at most the error, with a \
         confidence of 99 %. Between windows accesses change the caches, and nothing waits for the bus.",
        number(sampled.windows),
        number(sampled.measured),
        number(sampled.instructions)
    ));
    if sampled.per_instruction().error > 0.01 * sampled.per_instruction().value {
        let needed = number(sampled.windows_for(0.01));
        table.notes.push(format!("For an error of 1 % some {needed} windows are needed."));
    }
    table
}
