//! Runs test suites that others wrote, built for Alpha, by `pathlength run` and by qemu-alpha, and built for
//! the host, and lists the differences: `make conformance`. Variables choose:
//!
//! - `SUITE`: the suites' names, as in `suites.toml` (all);
//! - `TEST`: one test's name, with or without its level.
//!
//! Sources come from Debian by apt, and builds are kept in `build/conformance/SUITE`, with what each test said
//! in `logs` there; `build/conformance/results.csv` has every result. The status is 1 if a test is not passed
//! that qemu-alpha or the host passes, and `known.toml` does not explain it, or if a suite cannot be run. Ctrl-C ends it.

mod build;
mod jobs;
mod plan;
mod results;
mod runner;
mod suite;
mod torture;

use std::path::Path;
use std::process::ExitCode;

use plan::SuitePlan;
use results::TestResult;
use runner::Runners;
use suite::{Known, TestSelection};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match conformance() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all was run, and all differences are explained.
fn conformance() -> Result<bool, Error> {
    jobs::stop_on_interrupt();
    let (suites, known) = (suite::suites()?, suite::known()?);
    let selection = TestSelection::from_variables(&suites)?;
    let scratch = tempfile::Builder::new().prefix("conformance-").tempdir()?;
    let runners = Runners::new(scratch.path())?;
    let (mut results, mut notes, mut is_complete) = (Vec::new(), Vec::new(), true);
    for suite in suites.iter().filter(|suite| selection.wants_suite(suite)) {
        let run = || {
            let plan = SuitePlan::new(suite, &runners, &selection)?;
            Ok::<_, Error>((plan.carry_out(scratch.path())?, plan.not_compiled))
        };
        let name = &suite.name;
        match run() {
            Ok((found, not_compiled)) => {
                results.extend(found);
                if not_compiled > 0 {
                    notes.push(format!("{name}: {not_compiled} programs cannot be compiled for Alpha."));
                }
            }
            Err(error) => {
                jobs::check_interrupt()?;
                // The other suites can be run all the same.
                eprintln!("conformance: {name}: {error}");
                notes.push(format!("{name} was not run."));
                is_complete = false;
            }
        }
    }
    if let (true, true, Some(test)) = (results.is_empty(), is_complete, selection.test()) {
        return Err(format!("TEST={test}: there is no such test").into());
    }
    show(&results, &known, notes)?;
    Ok(is_complete && results.iter().all(|result| !result.is_wrong() || result.reason(&known).is_some()))
}

/// The table, then every difference.
fn show(results: &[TestResult], known: &[Known], notes: Vec<String>) -> Result<(), Error> {
    results::write(results, known, Path::new(build::FOLDER).join("results.csv").as_path())?;
    let mut table = results::summary(results, known);
    table.notes.extend(notes);
    report::write_all(&[table], report::Format::Table, None)?;
    for result in results.iter().filter(|result| result.differs()) {
        println!("\n{}", result.difference(known));
    }
    Ok(())
}
