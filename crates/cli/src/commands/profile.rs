//! `pathlength profile`: exact counts of blocks and edges, for `pathlength spike`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use analysis::names::Names;
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use anyhow::Context;
use session::edges;
use session::input::Input;
use session::measure::Ending;
use session::program::check_ending;
use session::simulation::is_parallel;
use spike::profile::{EdgeCounter, EdgeCounts, ImageProfile, ImageProfiles};
use table::separated;
use trace::Trace;

use crate::arguments::ProfileOptions;
use crate::progress::Replaying;

/// Counts, and writes the profile.
pub fn run(options: &ProfileOptions) -> anyhow::Result<ExitCode> {
    if options.samples.sample {
        return super::samples::run(options);
    }
    output(options)?;
    let input = options.input.resolve()?;
    let Some(path) = input.path() else {
        anyhow::bail!("--attach samples a program that runs already: add --sample")
    };
    if let Some(counts) = &options.from_counts {
        let profile = ImageProfiles::new(vec![from_counts(counts, path)?]);
        return write(options, earlier(options)?, profile).map(|()| ExitCode::SUCCESS);
    }
    let earlier = earlier(options)?;
    let (counter, ending) = match &input {
        Input::Trace(path) => (replay(path)?, None),
        Input::Program { arguments, .. } => {
            count(options, path, arguments).map(|(counter, ending)| (counter, Some(ending)))?
        }
        _ => anyhow::bail!("{input} holds saved counts, which have no edges: name the program, or a trace"),
    };
    let (profile, left_out) = profile(&counter);
    if profile.images.is_empty() {
        left_out.iter().for_each(|reason| text::message!("note: {reason}"));
        anyhow::bail!("{}: no image that was executed can be optimized", path.display());
    }
    write(options, earlier, profile)?;
    ending.map_or(Ok(ExitCode::SUCCESS), |ending| check_ending(&ending, path, &options.ending.expected()))
}

/// The profile to write.
fn output(options: &ProfileOptions) -> anyhow::Result<&Path> {
    let path = options.output.path.as_deref();
    path.context("a profile for spike needs a file: give -o FILE; to see where a program is, give --sample")
}

/// The profile that new counts are added to.
fn earlier(options: &ProfileOptions) -> anyhow::Result<ImageProfiles> {
    let output = output(options)?;
    Ok(match output.is_file() && !options.replace {
        true => ImageProfiles::open(output)?,
        false => ImageProfiles::default(),
    })
}

fn write(options: &ProfileOptions, earlier: ImageProfiles, profile: ImageProfiles) -> anyhow::Result<()> {
    let names: Vec<&str> = profile.images.iter().map(|image| image.name.as_str()).collect();
    let output = output(options)?;
    text::message!("{}: profile of {}", output.display(), names.join(", "));
    let bytes = earlier.merge(profile).encode();
    report::write_file(output, |out| Ok(out.write_all(&bytes)?))?;
    Ok(())
}

/// The profile of an image from the counts of its instrumented one.
fn from_counts(counts: &Path, path: &Path) -> anyhow::Result<ImageProfile> {
    let mut program = spike::optimize::open(path)?;
    let problem = |problem| spike::Error::Unsuitable { path: path.into(), problem };
    let failed = |problem: String| spike::Error::Profile { path: counts.into(), problem };
    let file = spike::profile::read(counts).map_err(failed)?;
    let update = spike::counts::update(&file);
    let plan =
        spike::instrument::InstrumentationPlan::new(spike::optimize::open(path)?, update).map_err(problem)?;
    let calls = plan.apply(&file, &mut program).map_err(failed)?;
    Ok(ImageProfile::of(&program, &name(path), &calls))
}

/// The name of an image in a profile.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Counts the program and the processes that it forks.
fn count(
    options: &ProfileOptions,
    path: &Path,
    arguments: &[OsString],
) -> anyhow::Result<(EdgeCounts, Ending)> {
    let configuration = options.engine.program().configuration(path, arguments, true);
    let counted = edges::count(&configuration, is_parallel(None))?;
    if counted.lost > 0 {
        let [lost, forked] = [counted.lost, counted.forked].map(|number| separated(&number.to_string()));
        text::message!(
            "note: {lost} of {forked} forked processes are not in the profile: they were killed, still run, or became programs of the host"
        );
    }
    Ok((counted.counts, counted.ending))
}

fn replay(path: &Path) -> anyhow::Result<EdgeCounts> {
    let trace = Trace::open(path)?;
    let (names, accesses) = (Names::of_trace(&trace), Accesses::new(&trace));
    let dictionary = Dictionary::new(&trace, &names);
    let filter = Filter::new(&Selection::default(), &dictionary)?;
    let replay =
        Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: ReplayOrder::Time };
    let bar = Replaying::new(trace.chunks().iter().map(|chunk| chunk.instructions).sum(), true);
    let mut counter = EdgeCounter::default();
    let Ok(problems) = replay.run_consumer(&mut counter, &mut |instructions| {
        bar.show(instructions);
        Ok::<(), Infallible>(())
    });
    bar.clear();
    match problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(counter.into_counts()),
    }
}

/// The profiles of the images that can be optimized, and why the others cannot.
fn profile(counter: &EdgeCounts) -> (ImageProfiles, Vec<String>) {
    let (mut images, mut left_out) = (Vec::new(), Vec::new());
    for path in counter.images() {
        match image_profile(counter, &path) {
            Ok(image) => images.push(image),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    (ImageProfiles::new(images), left_out)
}

fn image_profile(counter: &EdgeCounts, path: &Path) -> Result<ImageProfile, spike::Error> {
    let mut program = spike::optimize::open(path)?;
    let calls = counter.apply(&mut program, path);
    Ok(ImageProfile::of(&program, &name(path), &calls))
}
