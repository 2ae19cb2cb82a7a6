//! `pathlength spike`: optimizes linked images by profiles.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use output_files::OutputError;
use spike::layout::{BlockOrder, LayoutSteps, ProcedureOrder};
use spike::optimize::{self, Options};
use spike::profile::matching::{self, Method};
use spike::profile::{ImageProfiles, IndirectCall};
use spike::program::Program;
use spike::tables::{self, number};

use super::spike_environment;
use crate::arguments::{
    BlockAlgorithm, InstrumentOptions, LayoutStep, Optimization, OptimizeOptions, ProcedureAlgorithm,
    ReportRows, SpikeCommand,
};

/// Does what the options say.
pub fn run(command: &SpikeCommand) -> anyhow::Result<ExitCode> {
    match command {
        SpikeCommand::Profile(options) => super::spike_profile::run(options),
        SpikeCommand::Optimize(options) => match (&options.profile, &options.output) {
            (Some(profile), Some(output)) => optimize(options, profile, output),
            _ => spike_environment::optimize(options, settings(options)),
        },
        SpikeCommand::Instrument(options) => match &options.output {
            Some(output) => instrument(options, output),
            None => spike_environment::instrument(options),
        },
        SpikeCommand::Register(options) => spike_environment::register(options),
        SpikeCommand::Collect(options) => spike_environment::collect(options),
        SpikeCommand::Run(options) => spike_environment::run(options),
        SpikeCommand::Use(options) => spike_environment::choose(options),
        SpikeCommand::Export(options) => spike_environment::export(options),
        SpikeCommand::List(options) => spike_environment::list(options),
        SpikeCommand::Remove(options) => spike_environment::remove(options),
        SpikeCommand::Manager(options) => spike_environment::manager(options),
        SpikeCommand::Check(options) => super::spike_check::run(options),
    }
}

fn optimize(options: &OptimizeOptions, file: &Path, output: &Path) -> anyhow::Result<ExitCode> {
    let mut program = optimize::open(&options.image)?;
    let profile = ImageProfiles::open(file)?;
    let calls = match optimize::find(&profile, &program) {
        Some(image) => image.apply(&mut program),
        None => match_profile(&profile, file, &mut program, options)?,
    };
    let instructions = program.instructions();
    let problem = |problem| spike::Error::Unsuitable { path: options.image.to_path_buf(), problem };
    let optimized = optimize::optimize(program, &calls, settings(options)).map_err(problem)?;
    write_image(output, &optimized.bytes, &options.image)?;
    let shown = match options.by {
        Some(ReportRows::Procedure) => vec![tables::procedures(&optimized)],
        None if optimized.outcomes.is_empty() => vec![tables::reduction(&optimized, instructions)],
        None => vec![tables::reduction(&optimized, instructions), tables::coverage(&optimized)],
    };
    crate::console::write(&shown, &options.report())?;
    Ok(ExitCode::SUCCESS)
}

/// Applies a profile of another build of the image.
fn match_profile(
    profile: &ImageProfiles,
    file: &Path,
    program: &mut Program,
    options: &OptimizeOptions,
) -> anyhow::Result<Vec<IndirectCall>> {
    let method = if options.whole_procedures { Method::Signatures } else { Method::Blocks };
    let Some((matched, image)) = matching::best(profile, &options.image, method)? else {
        anyhow::bail!(
            "{}: is a profile of other images ({}); make one of this image with pathlength spike profile",
            file.display(),
            profile.images.iter().map(|image| image.name.as_str()).collect::<Vec<_>>().join(", ")
        );
    };
    let (calls, _) = matching::apply(image, program, method);
    let of = |(all, matched): (u64, u64)| format!("{} of {}", number(matched), number(all));
    text::message!(
        "note: {} is of another build of {}: matched {} executed procedures, {} blocks, {:.1} % of the executed instructions",
        file.display(),
        image.name,
        of(matched.procedures),
        of(matched.blocks),
        100.0 * matched.share()
    );
    Ok(calls)
}

fn instrument(options: &InstrumentOptions, output: &Path) -> anyhow::Result<ExitCode> {
    let program = optimize::open(&options.image)?;
    let counts = options.counts.clone().unwrap_or_else(|| with_suffix(output, ".counts"));
    let absolute = absolute(&counts)?;
    let problem = |problem| spike::Error::Unsuitable { path: options.image.to_path_buf(), problem };
    let instrumented =
        spike::instrument::instrument(program, absolute.as_os_str().as_bytes(), options.update.into())
            .map_err(problem)?;
    report::write_file(&counts, |out| Ok(out.write_all(&instrumented.counts)?))?;
    if let Err(error) = write_image(output, &instrumented.bytes, &options.image) {
        // Counts without an image are of no use.
        let _ = fs::remove_file(&counts);
        return Err(error);
    }
    let summary = instrumented.summary;
    let growth = summary.instructions as f64 / summary.original_instructions.max(1) as f64 - 1.0;
    text::message!(
        "{}: {} counters, code {:.1} % larger; runs add to {}",
        output.display(),
        number((summary.block_counters + summary.edge_counters) as u64),
        100.0 * growth,
        counts.display()
    );
    if summary.frozen + summary.unmeasured > 0 {
        text::message!(
            "note: {} procedures that cannot be changed are not counted",
            summary.frozen + summary.unmeasured
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(options: &OptimizeOptions) -> Options {
    let has = |one| options.optimizations.as_ref().is_none_or(|chosen| chosen.contains(&Some(one)));
    Options {
        layout: steps(options),
        strip_nops: has(Optimization::Nops),
        linkage: has(Optimization::Linkage),
        hot_cold: has(Optimization::HotCold),
        inlining: has(Optimization::Inlining),
    }
}

fn steps(options: &OptimizeOptions) -> LayoutSteps {
    let has = |step| options.layout.as_ref().is_none_or(|chosen| chosen.contains(&Some(step)));
    LayoutSteps {
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

/// A path with something added to its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(suffix);
    name.into()
}

/// The absolute path of a file that is to be written, through no symbolic link.
pub fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).with_context(|| format!("{}: no such folder", folder.display()))?;
    let name = path.file_name().with_context(|| format!("{}: is not the name of a file", path.display()))?;
    Ok(folder.join(name))
}

/// Writes an image that can be executed if the original can, as soon as it has its name.
pub fn write_image(path: &Path, bytes: &[u8], original: &Path) -> anyhow::Result<()> {
    let failed = OutputError::at(path);
    let mode = fs::metadata(original)?.permissions().mode() & 0o777;
    let (mut file, name) = output_files::create(path)?;
    file.write_all(bytes).map_err(&failed)?;
    // Others need the permissions of a device.
    if file.metadata().map_err(&failed)?.is_file() {
        file.set_permissions(fs::Permissions::from_mode(mode)).map_err(&failed)?;
    }
    Ok(name.commit()?)
}
