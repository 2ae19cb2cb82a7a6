//! One module a subcommand.

pub mod annotate;
pub mod attach;
pub mod branch_log;
pub mod build;
pub mod caches;
pub mod calls;
pub mod check;
mod classes;
pub mod compare;
pub mod completions;
pub mod count;
mod counted_tree;
pub mod doctor;
pub mod export;
pub mod faults;
pub mod machines;
pub mod man;
mod models;
pub mod mrc;
pub mod objects;
pub mod profile;
pub mod qemu;
pub mod run;
mod samples;
pub mod sharing;
pub mod show;
pub mod spike;
mod spike_check;
mod spike_environment;
pub mod statics;
pub mod strides;
pub mod study;
pub mod system;
pub mod time;
pub mod trace;
pub mod units;

use analysis::units::SteadyRules;
use engine::UnitOfWork;
use session::startup::RequestedNames;

use crate::arguments::UnitOptions;

/// The unit of work and the rules of its measurement, if the options have one.
fn unit(options: &UnitOptions) -> Option<(UnitOfWork, SteadyRules)> {
    if options.unit.is_empty() {
        return None;
    }
    let gauges = options.cache.clone().unwrap_or_default();
    let hit_ratio = (!gauges.is_empty()).then_some(0.95);
    let rules = SteadyRules {
        window: options.window as usize,
        measure: options.units as usize,
        hit_ratio,
        ..SteadyRules::default()
    };
    Some((UnitOfWork { functions: options.unit.clone(), gauges, ..UnitOfWork::default() }, rules))
}

/// The names in a unit of work.
fn named_in_unit(unit: Option<&(UnitOfWork, SteadyRules)>) -> RequestedNames<'_> {
    unit.map_or(RequestedNames::default(), |(work, _)| RequestedNames {
        functions: work.functions.iter().map(String::as_str).collect(),
        variables: &work.gauges,
        ..RequestedNames::default()
    })
}
