//! `pathlength machines`: lists the machines that come with pathlength.

use std::process::ExitCode;

use analysis::models;

use crate::arguments::MachinesOptions;

/// Writes a row for each machine.
pub fn run(options: &MachinesOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    output.check(false)?;
    let mut table = models::machines();
    table.notes.push("Your own is a file: pathlength caches --machine mine.toml …".into());
    crate::console::write(&[table], output)?;
    Ok(ExitCode::SUCCESS)
}
