//! `pathlength study`: the whole way from sources to a report.

use std::path::Path;
use std::process::ExitCode;

use lab::build::BuildOptions;
use lab::study::{MODES, Mode, Options, Study, byteword};

use crate::arguments::StudyOptions;
use crate::progress::Steps;

/// Studies, prints the summary, writes the report and its tables.
pub fn run(options: &StudyOptions) -> anyhow::Result<ExitCode> {
    // Before minutes of work: can its results be written?
    report::check(true, report::Format::Csv, Some(&options.output))?;
    let wanted = |mode: &&Mode| options.mode.as_deref().is_none_or(|name| name == mode.name);
    let steps = Steps::new();
    let study = byteword(
        &Options {
            modes: MODES.iter().filter(wanted).copied().collect(),
            build: BuildOptions { folder: "build".into(), sources: None },
            sysroot: options.sysroot.clone(),
        },
        &|step| steps.show(&step),
    );
    steps.clear();
    let study = study?;
    let page = write(&study, &options.output)?;
    report::write_all(&study.summary(), report::Format::Table, None)?;
    eprintln!("\nThe report: {}", page.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the page, and every table as CSV, JSON and Parquet beside it. Returns the page's path.
fn write(study: &Study, folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    let tables = study.tables();
    for format in [report::Format::Csv, report::Format::Json, report::Format::Parquet] {
        report::write_all(&tables, format, Some(&folder.join(format.to_string())))?;
    }
    let path = folder.join("index.html");
    let page = study.page()?;
    report::write_file(&path, |out| page.write(out))?;
    Ok(path)
}
