//! `pathlength spike`: optimizes linked images by profiles.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use spike::layout::Steps;
use spike::optimize::{self, Options};
use spike::profile::Profile;

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
    let Some(image) = optimize::find(&profile, &program) else {
        anyhow::bail!(
            "{}: is a profile of other images ({}); make one of this image with pathlength profile",
            options.profile.display(),
            profile.images.iter().map(|image| image.name.as_str()).collect::<Vec<_>>().join(", ")
        );
    };
    let calls = image.apply(&mut program);
    let settings = Options { layout: steps(options), strip_nops: !options.keep_nops };
    let problem = |problem| spike::Error::Unsuitable { path: options.image.clone(), problem };
    let optimized = optimize::optimize(program, &calls, settings).map_err(problem)?;
    write_image(&options.output, &optimized.bytes, &options.image)?;
    Ok(ExitCode::SUCCESS)
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
