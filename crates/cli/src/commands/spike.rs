//! `pathlength spike`: optimizes linked images by profiles.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use output_files::OutputError;
use spike::hot_cold::{HotColdCategory, ProcedureOutcome};
use spike::layout::{BlockOrder, LayoutSteps, ProcedureOrder};
use spike::optimize::{self, Optimized, Options};
use spike::profile::matching::{self, LEAST_SHARE, Matched, Method};
use spike::profile::{ImageProfile, ImageProfiles, IndirectCall};
use spike::program::Program;
use table::{Kind, Table, Value, separated};

use super::spike_environment;
use crate::arguments::{
    BlockAlgorithm, InstrumentOptions, LayoutStep, Optimization, OptimizeOptions, ProcedureAlgorithm,
    ReportRows, SpikeCommand,
};

/// Does what the options say.
pub fn run(command: &SpikeCommand) -> anyhow::Result<ExitCode> {
    match command {
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
    let tables = match options.by {
        Some(ReportRows::Procedure) => vec![procedures(&optimized)],
        None if optimized.outcomes.is_empty() => vec![summary(&optimized, instructions)],
        None => vec![summary(&optimized, instructions), coverage(&optimized)],
    };
    crate::console::write(&tables, &options.report())?;
    Ok(ExitCode::SUCCESS)
}

/// Applies a profile of another build of the image.
fn match_profile(
    profile: &ImageProfiles,
    file: &Path,
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
    let counts = options.counts.clone().unwrap_or_else(|| {
        let mut name = output.to_path_buf().into_os_string();
        name.push(".counts");
        name.into()
    });
    let folder = counts.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).with_context(|| format!("{}: no such folder", folder.display()))?;
    let name =
        counts.file_name().with_context(|| format!("{}: is not the name of a file", counts.display()))?;
    let absolute = folder.join(name);
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

/// A number for people.
pub fn number(number: u64) -> String {
    separated(&number.to_string())
}

/// A cell with a number.
pub fn count(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The share of a part, in percent.
pub fn share(part: u64, whole: u64) -> Value {
    if whole == 0 { Value::Missing } else { Value::Real(part as f64 * 100.0 / whole as f64) }
}

/// The sum of a number over all procedures.
fn sum(outcomes: &[ProcedureOutcome], number: impl Fn(&ProcedureOutcome) -> u64) -> u64 {
    outcomes.iter().map(number).fold(0, u64::saturating_add)
}

/// What was removed, in executions of the profiled run (the paper's Figure 16).
fn summary(optimized: &Optimized, instructions: usize) -> Table {
    let columns = [("removed", Kind::Text), ("executions", Kind::Count), ("share (%)", Kind::Percent(2))];
    let mut table = Table::new("reduction", "Executions removed from the profiled run", &columns);
    let outcomes = &optimized.outcomes;
    let rows = [
        ("instructions that do nothing", optimized.nops.1),
        ("computations of the global pointer", optimized.linkage.global_pointers),
        ("returns before tail calls", optimized.linkage.tail_calls),
        ("partially dead code", sum(outcomes, |one| one.reduction.dead_code)),
        ("saves and restores of registers", sum(outcomes, |one| one.reduction.saves)),
        ("adjustments of the stack pointer", sum(outcomes, |one| one.reduction.adjustments)),
        ("copies of a register to itself", sum(outcomes, |one| one.reduction.peephole)),
        ("calls and returns of inlined procedures", sum(outcomes, |one| one.reduction.inlining)),
    ];
    for (name, executions) in rows {
        table.row(vec![Value::Text(name.into()), count(executions), share(executions, optimized.executed)]);
    }
    let total = rows.iter().map(|row| row.1).sum();
    table.total_row(vec![Value::Text("total".into()), count(total), share(total, optimized.executed)]);
    table.notes.push(format!(
        "The profiled run executed {} instructions of the image. The image had {} instructions, and has {}.",
        number(optimized.executed),
        number(instructions as u64),
        number(optimized.code_bytes / 4)
    ));
    table.notes.push(
        "Branches that code layout removes or adds are not included: pathlength compare counts all.".into(),
    );
    table
}

/// What became of the procedures (the paper's Figure 15).
fn coverage(optimized: &Optimized) -> Table {
    let columns = [
        ("category", Kind::Text),
        ("procedures", Kind::Count),
        ("executed", Kind::Count),
        ("share (%)", Kind::Percent(1)),
    ];
    let mut table = Table::new("coverage", "Procedures by what hot-cold optimization did", &columns);
    let total = sum(&optimized.outcomes, |one| one.executed);
    for category in HotColdCategory::ALL {
        let those: Vec<ProcedureOutcome> =
            optimized.outcomes.iter().filter(|one| one.category == category).cloned().collect();
        let executed = sum(&those, |one| one.executed);
        let name = Value::Text(category.name().into());
        table.row(vec![name, count(those.len() as u64), count(executed), share(executed, total)]);
    }
    table.total_row(vec![
        Value::Text("total".into()),
        count(optimized.outcomes.len() as u64),
        count(total),
        share(total, total),
    ]);
    table
}

/// Each procedure that was executed, the most frequent first.
fn procedures(optimized: &Optimized) -> Table {
    let columns = [
        ("procedure", Kind::Text),
        ("category", Kind::Text),
        ("executed", Kind::Count),
        ("removed", Kind::Count),
        ("size", Kind::Count),
        ("hot size", Kind::Count),
        ("stub size", Kind::Count),
        ("reason", Kind::Text),
    ];
    let mut table = Table::new("procedures", "Procedures of the image, in instructions", &columns);
    let mut outcomes: Vec<&ProcedureOutcome> =
        optimized.outcomes.iter().filter(|one| one.executed > 0).collect();
    outcomes.sort_by_key(|one| (std::cmp::Reverse(one.executed), one.procedure));
    for one in outcomes {
        let procedure = &optimized.program.procedures[one.procedure as usize];
        let reason = procedure.frozen.map_or(one.category.reason(), |frozen| frozen.name());
        table.row(vec![
            Value::Text(procedure.name.clone()),
            Value::Text(one.category.name().into()),
            count(one.executed),
            count(one.reduction.total()),
            count(one.size as u64),
            count(one.hot_size as u64),
            count(one.stub_size as u64),
            Value::Text(reason.into()),
        ]);
    }
    table
}
