//! `pathlength machines`: the machines that are described.

use std::process::ExitCode;

use analysis::table::{Kind, Table};
use machine::Machine;

use crate::arguments::MachinesOptions;

/// Writes a row for each machine.
pub fn run(options: &MachinesOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    report::check(false, output.format, output.path.as_deref())?;
    let columns = [("machine", Kind::Text), ("what it is", Kind::Text), ("MHz", Kind::Real(0))];
    let mut table = Table::new("machines", "Machines that are described", &columns);
    for (name, machine) in Machine::all() {
        table.row(vec![name.into(), machine.title.into(), machine.processor.clock_mhz.into()]);
    }
    table.notes.push("Your own is a file: pathlength caches --machine mine.toml …".into());
    report::write_all(&[table], output.format, output.path.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
