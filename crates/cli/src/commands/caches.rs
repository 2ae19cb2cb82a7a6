//! `pathlength caches`: what misses in the caches and translation buffers of machines.

use std::process::ExitCode;

use analysis::models;
use analysis::names::Names;
use analysis::replay::Dictionary;
use analysis::table::Table;
use anyhow::Context;
use machine::{Caches, Machine};

use super::curves;
use super::hear::{Heard, check_rows, hear, place};
use crate::arguments::CachesOptions;

/// Lets the machines' caches hear the trace or the program, and writes the tables.
pub fn run(options: &CachesOptions) -> anyhow::Result<ExitCode> {
    if options.curves.curves {
        return curves::run(options);
    }
    let output = &options.output;
    let several = options.by.is_some() && options.machines.len() > 1;
    report::check(several, output.format, output.path.as_deref())?;
    check_rows(options.by, &options.heard)?;
    let machines = find(&options.machines)?;
    let make = if options.classify { Caches::classified } else { Caches::new };
    let model: Vec<Caches> = machines.iter().map(make).collect();
    let heard = hear(&options.heard, &machines, model)?;
    let tables = tables(options, &heard);
    heard.write(tables, output)?;
    heard.finish(&options.heard)
}

/// The machines with these names, or in these files.
pub fn find(names: &[String]) -> anyhow::Result<Vec<Machine>> {
    let find = |name: &String| Machine::find(name).with_context(|| format!("the machine {name}"));
    names.iter().map(find).collect()
}

fn tables(options: &CachesOptions, heard: &Heard<Vec<Caches>>) -> Vec<Table> {
    let trace = &heard.trace;
    let machines: Vec<(&str, &Caches)> =
        options.machines.iter().map(String::as_str).zip(&heard.model).collect();
    let Some(by) = options.by else { return vec![models::structures(&machines, options.classify)] };
    let Some((place, name)) = place(by) else {
        return models::named(&machines, "units", "Misses of units of work on", models::units);
    };
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    models::named(&machines, name, &format!("Misses of {name} on"), |name, title, caches| {
        models::places(name, title, place, &dictionary, caches)
    })
}
