//! `pathlength spike`: optimizes linked images by profiles.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use spike::layout::Steps;
use spike::optimize::{self, Options};
use spike::profile::matching::{self, Matched, Method};
use spike::profile::{ImageProfile, IndirectCall, Profile};
use spike::program::Program;

use super::profile::number;
use crate::arguments::{InstrumentOptions, LayoutStep, OptimizeOptions, SpikeCommand};

/// Does what the options say.
pub fn run(command: &SpikeCommand) -> anyhow::Result<ExitCode> {
    match command {
        SpikeCommand::Optimize(options) => optimize(options),
        SpikeCommand::Instrument(options) => instrument(options),
    }
}

fn optimize(options: &OptimizeOptions) -> anyhow::Result<ExitCode> {
    let mut program = optimize::open(&options.image)?;
    let profile = Profile::open(&options.profile)?;
    let calls = match optimize::find(&profile, &program) {
        Some(image) => image.apply(&mut program),
        None => match_profile(&profile, &mut program, options)?,
    };
    let settings = Options { layout: steps(options), strip_nops: !options.keep_nops };
    let problem = |problem| spike::Error::Unsuitable { path: options.image.clone(), problem };
    let optimized = optimize::optimize(program, &calls, settings).map_err(problem)?;
    write_image(&options.output, &optimized.bytes, &options.image)?;
    Ok(ExitCode::SUCCESS)
}

/// The least share of executed instructions that must be matched: less is a profile of another program.
const LEAST_SHARE: f64 = 0.1;

/// Applies a profile of another build of the image.
fn match_profile(
    profile: &Profile,
    program: &mut Program,
    options: &OptimizeOptions,
) -> anyhow::Result<Vec<IndirectCall>> {
    let name = options.image.file_name().unwrap_or_default().to_string_lossy();
    let method = if options.whole_procedures { Method::Signatures } else { Method::Blocks };
    let best = profile.images.iter().map(|image| {
        // What does not fit leaves no counts behind: it is tried on a program of its own.
        optimize::open(&options.image).map(|mut trial| (matching::apply(image, &mut trial, method).1, image))
    });
    let best = best.collect::<Result<Vec<_>, _>>()?;
    let best = best.into_iter().max_by(|a, b| {
        let key = |one: &(Matched, &ImageProfile)| (one.0.share(), one.1.name == name);
        key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some((matched, image)) = best.filter(|(matched, _)| matched.share() >= LEAST_SHARE) else {
        anyhow::bail!(
            "{}: is a profile of other images ({}); make one of this image with pathlength profile",
            options.profile.display(),
            profile.images.iter().map(|image| image.name.as_str()).collect::<Vec<_>>().join(", ")
        );
    };
    let (calls, _) = matching::apply(image, program, method);
    let of = |(all, matched): (u64, u64)| format!("{} of {}", number(matched), number(all));
    eprintln!(
        "pathlength: note: {} is of another build of {}: matched {} executed procedures, {} blocks, {:.1} % of the executed instructions",
        options.profile.display(),
        image.name,
        of(matched.procedures),
        of(matched.blocks),
        100.0 * matched.share()
    );
    Ok(calls)
}

fn instrument(options: &InstrumentOptions) -> anyhow::Result<ExitCode> {
    let program = optimize::open(&options.image)?;
    let counts = options.counts.clone().unwrap_or_else(|| {
        let mut name = options.output.clone().into_os_string();
        name.push(".counts");
        name.into()
    });
    let folder = counts.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).with_context(|| format!("{}: no such folder", folder.display()))?;
    let name =
        counts.file_name().with_context(|| format!("{}: is not the name of a file", counts.display()))?;
    let absolute = folder.join(name);
    let problem = |problem| spike::Error::Unsuitable { path: options.image.clone(), problem };
    let instrumented =
        spike::instrument::instrument(program, absolute.as_os_str().as_bytes()).map_err(problem)?;
    report::write_file(&counts, |out| Ok(out.write_all(&instrumented.counts)?))?;
    write_image(&options.output, &instrumented.bytes, &options.image)?;
    let summary = instrumented.summary;
    let growth = summary.instructions as f64 / summary.original_instructions.max(1) as f64 - 1.0;
    eprintln!(
        "pathlength: {}: {} counters, code {:.1} % larger; runs add to {}",
        options.output.display(),
        number((summary.block_counters + summary.edge_counters) as u64),
        100.0 * growth,
        counts.display()
    );
    if summary.frozen + summary.unmeasured > 0 {
        eprintln!(
            "pathlength: note: {} procedures that cannot be changed are not counted",
            summary.frozen + summary.unmeasured
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn steps(options: &OptimizeOptions) -> Steps {
    let Some(chosen) = &options.layout else { return Steps::ALL };
    let has = |step| chosen.contains(&Some(step));
    Steps { chain: has(LayoutStep::Chain), split: has(LayoutStep::Split), order: has(LayoutStep::Order) }
}

/// Writes an image that can be executed if the original can.
fn write_image(path: &Path, bytes: &[u8], original: &Path) -> anyhow::Result<()> {
    report::write_file(path, |out| Ok(out.write_all(bytes)?))?;
    let mode = fs::metadata(original)?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777))?;
    Ok(())
}
