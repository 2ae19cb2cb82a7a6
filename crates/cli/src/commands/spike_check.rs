//! `pathlength spike check`: proves that an optimized image does what its original does.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use spike::check;
use spike::tables;

use crate::arguments::{CheckImagesOptions, OutputOptions, ReportRows};

/// Does what the options say. The exit status is 1 if anything could not be proved.
pub fn run(options: &CheckImagesOptions) -> anyhow::Result<ExitCode> {
    let read = |path: &std::path::Path| {
        let image = image::Image::open(path)?;
        image.check_sections()?;
        fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))
    };
    let (original, optimized) = (read(&options.original)?, read(&options.optimized)?);
    let report = check::check(original, optimized).map_err(|problem| {
        let path = match problem {
            spike::Problem::NotRewritten => &options.optimized,
            _ => &options.original,
        };
        spike::Error::Unsuitable { path: path.to_path_buf(), problem }
    })?;
    let table = match options.by {
        Some(ReportRows::Procedure) => tables::differences(&report),
        None => tables::proved(&report),
    };
    crate::console::write(&[table], &OutputOptions::standard(options.format))?;
    Ok(if report.is_proved() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
