//! The processors' time by cause, estimated from a sample of an execution.

use std::collections::BTreeMap;

use machine::{Estimate, Multiprocessor, ProcessorCause, SampledTime, WindowSums};

use super::{cause_name, causes};
use crate::models::{ExecutionPart, UnitClasses, part_cells};
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

/// The measurements of a sample by class of units of work, and of what is outside of units; and all of them.
pub(super) struct EstimatesByClass {
    classes: BTreeMap<Option<u32>, WindowSums<1>>,
    whole: WindowSums<1>,
}

/// The measurements of a sample by class; None if everything was simulated in time.
pub(super) fn estimates_by_class(model: &Multiprocessor, classes: &UnitClasses) -> Option<EstimatesByClass> {
    let by_class = model.sampled_by(|owner| owner.unit.and_then(|unit| classes.of(unit)))?;
    let whole = model.sampled_by(|_| ())?.remove(&()).unwrap_or_default();
    Some(EstimatesByClass { classes: by_class, whole })
}

impl EstimatesByClass {
    /// The estimates of a part of the execution.
    pub fn cells(&self, model: &Multiprocessor, part: ExecutionPart) -> Vec<Value> {
        let none = WindowSums::default();
        let of = |class| self.classes.get(&class).unwrap_or(&none);
        let sums = match part {
            ExecutionPart::Whole => &self.whole,
            ExecutionPart::Class(class) => of(Some(class)),
            ExecutionPart::OutsideUnits => of(None),
        };
        part_cells(sums, model.cycle())
    }
}
