//! `pathlength static`: the instructions in the images of one build, or of two.

use std::process::ExitCode;

use analysis::statics::{self, ImageStatics};
use anyhow::Context;
use image::Image;

use crate::arguments::{InputFile, StaticOptions};

/// Writes the tables of the images named.
pub fn run(options: &StaticOptions) -> anyhow::Result<ExitCode> {
    options.show.output.check(!options.against.is_empty())?;
    let build = read(&options.images)?;
    let mut tables = if options.against.is_empty() {
        vec![statics::images("images", "Images", &build)]
    } else {
        let baseline = read(&options.against)?;
        statics::comparison(baseline, build).context("--against names the same images of another build")?
    };
    let sorted = options.show.rows.apply(&mut tables);
    crate::console::write(&tables, &options.show.output)?;
    sorted?;
    Ok(ExitCode::SUCCESS)
}

fn read(paths: &[InputFile]) -> anyhow::Result<Vec<ImageStatics>> {
    let read = |path: &InputFile| {
        let image = Image::open(path)?;
        image.check_sections()?;
        Ok(ImageStatics::of(&image))
    };
    paths.iter().map(read).collect()
}
