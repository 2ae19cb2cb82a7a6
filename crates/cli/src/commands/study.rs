//! `pathlength study`: from sources to a report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use studies::spike::SpikeStudyProgress;
use studies::strides::StridesStudyProgress;
use studies::{
    StudyProgress, StudyReport, byteword, graphics, network, numa, rdb, smp, spike, strides, system, tpcc,
    tpch, vlm,
};
use workloads::build::BuildProgress;

use crate::arguments::{BytewordSettings, StudyCommand};
use crate::progress::Steps;

/// Studies, prints the summary, writes the report and its tables.
pub fn run(command: &StudyCommand) -> anyhow::Result<ExitCode> {
    let folder = command.folder();
    // Before minutes of work, check that its results can be written.
    report::check(true, report::Format::Csv, Some(&folder))?;
    let steps = Steps::new();
    let found = study(command, &steps);
    steps.clear();
    let found = found?;
    let page = write(&found, &folder)?;
    report::write_all(&found.summary, report::Format::Table, None)?;
    text::message!("the report is {}", page.display());
    Ok(ExitCode::SUCCESS)
}

fn study(command: &StudyCommand, steps: &Steps) -> anyhow::Result<StudyReport> {
    let show = |step: StudyProgress| steps.show(&step);
    Ok(match command {
        StudyCommand::Byteword(options) => match options.settings()? {
            BytewordSettings::Embedded(settings) => byteword::byteword(&settings, &show)?.report()?,
            BytewordSettings::Server(settings) => byteword::byteword_server(&settings, &show)?.report()?,
        },
        StudyCommand::Strides(options) => {
            strides::strides(&options.settings(), &|step| show_strides(steps, step))?.report()?
        }
        StudyCommand::Tpcc(options) => tpcc::tpcc(&options.settings()?, &show)?.report()?,
        StudyCommand::Tpch(options) => tpch::tpch(&options.settings(), &show)?.report()?,
        StudyCommand::Vlm(options) => {
            vlm::vlm(&options.settings()?, &|step| steps.message(step))?.report()?
        }
        StudyCommand::Rdb(options) => rdb::rdb(&options.settings(), &show)?.report()?,
        StudyCommand::Smp(options) => smp::smp(&options.settings(), &show)?.report()?,
        StudyCommand::Numa(options) => numa::numa(&options.settings(), &show)?.report()?,
        StudyCommand::Spike(options) => {
            spike::spike(&options.settings(), &|step| show_spike(steps, step))?.report()?
        }
        StudyCommand::System(options) => system::study(&options.settings(), &show)?.report()?,
        StudyCommand::Graphics(options) => graphics::graphics(&options.settings(), &show)?.report()?,
        StudyCommand::Network(options) => {
            network::network(&options.settings(), &|step| steps.message(step.into()))?.report()?
        }
    })
}

fn show_strides(steps: &Steps, step: StridesStudyProgress) {
    match step {
        StridesStudyProgress::Building(step) => steps.show(&StudyProgress::Building(step)),
        StridesStudyProgress::Running(of, switches) => {
            steps.message(format!("running the {of} loop, {switches}"));
        }
    }
}

fn show_spike(steps: &Steps, step: SpikeStudyProgress) {
    match step {
        SpikeStudyProgress::Building(program, BuildProgress::Done { build }) => {
            steps.message(format!("{program}: the {build} build is ready"));
        }
        SpikeStudyProgress::Building(_, step) => steps.show(&StudyProgress::Building(step)),
        SpikeStudyProgress::Preparing(program) => steps.message(format!("{program}: preparing its files")),
        SpikeStudyProgress::Training(program) => steps.message(format!("{program}: training")),
        SpikeStudyProgress::Measuring(program, variant) => {
            steps.message(format!("{program}: measuring, {variant}"));
        }
    }
}

/// Writes the page, and every table as CSV, JSON and Parquet in the same folder. Returns the page's path.
fn write(found: &StudyReport, folder: &Path) -> anyhow::Result<PathBuf> {
    for format in [report::Format::Csv, report::Format::Json, report::Format::Parquet] {
        report::write_all(&found.tables, format, Some(&folder.join(format.to_string())))?;
    }
    let path = folder.join("index.html");
    report::write_file(&path, |out| found.page.write(out))?;
    Ok(path)
}
