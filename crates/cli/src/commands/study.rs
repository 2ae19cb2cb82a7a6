//! `pathlength study`: from sources to a report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use report::Page;
use studies::spike::SpikeStudyProgress;
use studies::strides::StridesStudyProgress;
use studies::{
    StudyProgress, byteword, graphics, network, numa, rdb, smp, spike, strides, system, tpcc, tpch, vlm,
};
use table::Table;
use workloads::build::BuildProgress;

use crate::arguments::{BytewordSettings, StudyCommand};
use crate::progress::Steps;

/// The results of a study: a summary for the terminal, all tables, and the report.
type Results = (Vec<Table>, Vec<Table>, Page);

/// The results of a study that has all three.
macro_rules! results {
    ($study:expr) => {{
        let study = $study?;
        (study.summary(), study.tables(), study.page()?)
    }};
}

/// Studies, prints the summary, writes the report and its tables.
pub fn run(command: &StudyCommand) -> anyhow::Result<ExitCode> {
    let folder = command.folder();
    // Before minutes of work, check that its results can be written.
    report::check(true, report::Format::Csv, Some(&folder))?;
    let steps = Steps::new();
    let results = study(command, &steps);
    steps.clear();
    let (summary, tables, page) = results?;
    let page = write(&tables, &page, &folder)?;
    report::write_all(&summary, report::Format::Table, None)?;
    text::message!("the report is {}", page.display());
    Ok(ExitCode::SUCCESS)
}

fn study(command: &StudyCommand, steps: &Steps) -> anyhow::Result<Results> {
    let show = |step: StudyProgress| steps.show(&step);
    Ok(match command {
        StudyCommand::Byteword(options) => match options.settings()? {
            BytewordSettings::Embedded(settings) => results!(byteword::byteword(&settings, &show)),
            BytewordSettings::Server(settings) => results!(byteword::byteword_server(&settings, &show)),
        },
        StudyCommand::Strides(options) => {
            let study = strides::strides(&options.settings(), &|step| show_strides(steps, step))?;
            (study.tables(), study.tables(), study.page()?)
        }
        StudyCommand::Tpcc(options) => results!(tpcc::tpcc(&options.settings()?, &show)),
        StudyCommand::Tpch(options) => results!(tpch::tpch(&options.settings(), &show)),
        StudyCommand::Vlm(options) => {
            results!(vlm::vlm(&options.settings()?, &|step| steps.message(step)))
        }
        StudyCommand::Rdb(options) => results!(rdb::rdb(&options.settings(), &show)),
        StudyCommand::Smp(options) => results!(smp::smp(&options.settings(), &show)),
        StudyCommand::Numa(options) => results!(numa::numa(&options.settings(), &show)),
        StudyCommand::Spike(options) => {
            results!(spike::spike(&options.settings(), &|step| show_spike(steps, step)))
        }
        StudyCommand::System(options) => {
            let study = system::study(&options.settings(), &show)?;
            (system::summary(&study), system::tables(&study), system::page(&study)?)
        }
        StudyCommand::Graphics(options) => results!(graphics::graphics(&options.settings(), &show)),
        StudyCommand::Network(options) => {
            results!(network::network(&options.settings(), &|step| steps.message(step.into())))
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
fn write(tables: &[Table], page: &Page, folder: &Path) -> anyhow::Result<PathBuf> {
    for format in [report::Format::Csv, report::Format::Json, report::Format::Parquet] {
        report::write_all(tables, format, Some(&folder.join(format.to_string())))?;
    }
    let path = folder.join("index.html");
    report::write_file(&path, |out| page.write(out))?;
    Ok(path)
}
