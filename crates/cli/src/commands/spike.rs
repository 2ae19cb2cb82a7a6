//! `pathlength spike`: optimizes linked images by profiles.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use spike::layout::{BlockOrder, ProcedureOrder, Steps};
use spike::optimize::{self, Options};
use spike::profile::Profile;

use crate::arguments::{BlockAlgorithm, LayoutStep, OptimizeOptions, ProcedureAlgorithm, SpikeCommand};

/// Does what the options say.
pub fn run(command: &SpikeCommand) -> anyhow::Result<ExitCode> {
    match command {
        SpikeCommand::Optimize(options) => optimize(options),
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
    let settings = Options { layout: steps(options), strip_nops: !options.keep_nops, ..Options::default() };
    let problem = |problem| spike::Error::Unsuitable { path: options.image.clone(), problem };
    let optimized = optimize::optimize(program, &calls, settings).map_err(problem)?;
    write_image(&options.output, &optimized.bytes, &options.image)?;
    Ok(ExitCode::SUCCESS)
}

fn steps(options: &OptimizeOptions) -> Steps {
    let has = |step| options.layout.as_ref().is_none_or(|chosen| chosen.contains(&Some(step)));
    Steps {
        chain: has(LayoutStep::Chain),
        split: has(LayoutStep::Split),
        order: has(LayoutStep::Order),
        blocks: match options.blocks {
            BlockAlgorithm::Greedy => BlockOrder::Greedy,
            BlockAlgorithm::ExtTsp => BlockOrder::ExtTsp,
        },
        procedures: match options.procedures {
            ProcedureAlgorithm::Collapse => ProcedureOrder::Collapse,
            ProcedureAlgorithm::Cluster => ProcedureOrder::Cluster,
        },
    }
}

/// Writes an image that can be executed if the original can.
fn write_image(path: &Path, bytes: &[u8], original: &Path) -> anyhow::Result<()> {
    report::write_file(path, |out| Ok(out.write_all(bytes)?))?;
    let mode = fs::metadata(original)?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777))?;
    Ok(())
}
