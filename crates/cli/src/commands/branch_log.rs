//! `pathlength branch-log`: patched images, and what they executed.

use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use spike::branch_log::log::{LogHeader, MOST_IMAGES, POSITION, SWITCH};
use spike::branch_log::{self, BlockCounts, LogFile, LoggedImage, ReconstructedStep, reconstruct};
use spike::profile::{ImageProfiles, image_name};
use spike::tables::{LoggedInstructions, number};

use super::spike::{absolute, with_suffix, write_image};
use crate::arguments::{BranchLogCommand, PatchOptions, ReconstructOptions};

/// Does what the options say.
pub fn run(command: &BranchLogCommand) -> anyhow::Result<ExitCode> {
    match command {
        BranchLogCommand::Patch(options) => patch(options)?,
        BranchLogCommand::On(options) => put(&options.log, SWITCH, 1)?,
        BranchLogCommand::Off(options) => put(&options.log, SWITCH, 0)?,
        BranchLogCommand::Clear(options) => put(&options.log, POSITION, 0)?,
        BranchLogCommand::Reconstruct(options) => show(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn patch(options: &PatchOptions) -> anyhow::Result<()> {
    let outputs = outputs(options)?;
    let log = options.log.clone().unwrap_or_else(|| with_suffix(&options.output, ".log"));
    let path = absolute(&log)?;
    let (mut plans, id) = branch_log::plan(&options.images, options.records)?;
    let mut header = LogHeader { id, switches: Vec::new(), capacity: options.records };
    for ((plan, image), output) in plans.iter_mut().zip(&options.images).zip(&outputs) {
        let problem = |problem| spike::Error::Unsuitable { path: image.to_path_buf(), problem };
        let (bytes, switch) = plan.write(id, path.as_os_str().as_bytes()).map_err(problem)?;
        header.switches.push(switch);
        write_image(output, &bytes, image)?;
        let summary = plan.summary();
        let growth = summary.instructions as f64 / summary.original_instructions.max(1) as f64 - 1.0;
        text::message!(
            "{}: {} record points, code {:.1} % larger; runs log to {}",
            output.display(),
            number(summary.record_points as u64),
            100.0 * growth,
            log.display()
        );
        if summary.unpatched > 0 {
            let unpatched = number(summary.unpatched as u64);
            text::message!("note: procedures that cannot be changed, and are not logged: {unpatched}");
        }
    }
    report::write_file(&log, |out| Ok(out.write_all(&header.empty_file(!options.off))?))?;
    Ok(())
}

/// The patched images.
fn outputs(options: &PatchOptions) -> anyhow::Result<Vec<PathBuf>> {
    ensure!(options.images.len() <= MOST_IMAGES, "a log has {MOST_IMAGES} images at most");
    if let [_] = &options.images[..] {
        return Ok(vec![options.output.clone()]);
    }
    fs::create_dir_all(&options.output)
        .with_context(|| format!("{}: cannot be made", options.output.display()))?;
    let mut outputs = Vec::new();
    for image in &options.images {
        let name = image.file_name().with_context(|| format!("{}: is not a file", image.display()))?;
        let output = options.output.join(name);
        ensure!(!outputs.contains(&output), "{}: two images have this name", name.display());
        outputs.push(output);
    }
    Ok(outputs)
}

/// Changes a field of a log.
fn put(log: &Path, offset: usize, value: u64) -> anyhow::Result<()> {
    let file = LogFile::open(log)?;
    file.put(offset, value).with_context(|| format!("{}: cannot be written", log.display()))
}

fn show(options: &ReconstructOptions) -> anyhow::Result<()> {
    options.show.output.check(false)?;
    let log = LogFile::open(&options.log)?;
    let mut images = log.images(&options.images)?;
    let names: Vec<String> = options.images.iter().map(|path| image_name(path)).collect();
    let mut counts = BlockCounts::default();
    let mut instructions = LoggedInstructions::new(options.by.into());
    let mut listing = options
        .listing
        .then(|| BranchListing { out: BufWriter::new(std::io::stdout().lock()), failed: None });
    let found = reconstruct(&images, &log.header, &log.bytes, |step| {
        if options.profile.is_some() {
            counts.add(&step);
        }
        match &mut listing {
            Some(listing) => listing.write(&images, &step),
            None => instructions.add(&images, &step),
        }
    });
    if let Some(mut listing) = listing {
        listing.failed.map_or_else(|| listing.out.flush(), Err)?;
    } else {
        let mut tables = [instructions.table(&images, &names, &found, log.header.state(&log.bytes))];
        let sorted = options.show.rows.apply(&mut tables);
        crate::console::write(&tables, &options.show.output)?;
        sorted?;
    }
    if let Some(path) = &options.profile {
        let profiles = images.iter_mut().zip(&names).enumerate();
        let profiles = profiles.map(|(number, (image, name))| counts.profile(number, image, name));
        let bytes = ImageProfiles::new(profiles.collect()).encode();
        report::write_file(path, |out| Ok(out.write_all(&bytes)?))?;
    }
    Ok(())
}

/// Writes each instruction.
struct BranchListing<W: Write> {
    out: W,
    failed: Option<std::io::Error>,
}

impl<W: Write> BranchListing<W> {
    fn write(&mut self, images: &[LoggedImage], step: &ReconstructedStep) {
        if self.failed.is_some() {
            return;
        }
        for text in images[step.image].listing(step) {
            let line = writeln!(self.out, "{} {:#x} {text}", step.process, step.thread);
            if let Err(error) = line {
                self.failed = Some(error);
                return;
            }
        }
    }
}
