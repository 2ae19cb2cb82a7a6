//! `pathlength time`: how long machines take, and what for.

use std::process::ExitCode;

use analysis::models;
use analysis::names::Names;
use analysis::replay::Dictionary;
use analysis::table::Table;
use machine::{Machine, Time};

use super::caches::find;
use super::hear::{Heard, check_rows, hear, place};
use crate::arguments::TimeOptions;

/// Lets the machines hear the trace or the program, and writes the tables.
pub fn run(options: &TimeOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    let several = options.by.is_none() || options.machines.len() > 1;
    report::check(several, output.format, output.path.as_deref())?;
    check_rows(options.by, &options.heard)?;
    let machines = find(&options.machines)?;
    let times = machines.iter().map(Time::new).collect::<Result<Vec<_>, _>>()?;
    let heard = hear(&options.heard, &machines, times)?;
    let tables = tables(options, &machines, &heard);
    heard.write(tables, output)?;
    heard.finish(&options.heard)
}

fn tables(options: &TimeOptions, machines: &[Machine], heard: &Heard<Vec<Time>>) -> Vec<Table> {
    let named: Vec<(&str, &Time)> = options.machines.iter().map(String::as_str).zip(&heard.model).collect();
    let Some(by) = options.by else { return summary(&named, machines) };
    let Some((place, name)) = place(by) else {
        return models::named(&named, "units", "Cycles of units of work on", models::unit_times);
    };
    let names = Names::of_trace(&heard.trace);
    let dictionary = Dictionary::new(&heard.trace, &names);
    models::named(&named, name, &format!("Cycles of {name} on"), |name, title, time| {
        models::places(name, title, place, &dictionary, time)
    })
}

/// How long it takes, what for, and how branches are predicted.
fn summary(named: &[(&str, &Time)], machines: &[Machine]) -> Vec<Table> {
    let both: Vec<_> =
        named.iter().zip(machines).map(|(&(name, time), machine)| (name, machine, time)).collect();
    let mut tables = vec![models::times(&both)];
    let pairs: Vec<_> = both.iter().map(|&(name, machine, time)| (name, (machine, time))).collect();
    let pairs: Vec<_> = pairs.iter().map(|(name, pair)| (*name, pair)).collect();
    tables.extend(models::named(&pairs, "cycles", "What cycles were spent for on", |name, title, pair| {
        models::causes(name, title, pair.0, pair.1)
    }));
    tables.extend(models::named(named, "predictions", "How branches were predicted on", models::predictions));
    tables
}
