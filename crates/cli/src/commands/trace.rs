//! `pathlength trace`: every instruction and every address of a run, or of a piece of it, in a file.

use std::process::ExitCode;

use engine::{Plan, UnitPlan};
use lab::record;

use super::{check_ending, configuration};
use crate::arguments::{PlanOptions, TraceOptions};

/// Runs the program and records it.
pub fn run(options: &TraceOptions) -> anyhow::Result<ExitCode> {
    let configuration = configuration(&options.engine, &options.program, &options.arguments, true);
    let recording = record::record(&configuration, &plan(&options.plan), &options.output)?;
    check_ending(&recording.ending, &options.program)?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be recorded.
fn plan(options: &PlanOptions) -> Plan {
    let unit =
        options.unit.clone().map(|function| UnitPlan { function, skip: options.skip, units: options.units });
    Plan { from: options.from.clone(), until: options.until.clone(), unit, values: options.values }
}
