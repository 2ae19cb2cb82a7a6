//! `pathlength spike profile`: exact counts of blocks and edges, for `pathlength spike optimize`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use session::edges;
use session::input::Input;
use session::measure::Ending;
use session::program::check_ending;
use session::simulation::is_parallel;
use spike::profile::{EdgeCounts, ImageProfile, ImageProfiles};
use table::separated;
use trace::Trace;

use crate::arguments::ProfileOptions;
use crate::progress::Replaying;

/// Counts, and writes the profile.
pub fn run(options: &ProfileOptions) -> anyhow::Result<ExitCode> {
    let input = options.input.resolve()?;
    let path = options.input.path();
    if let Some(counts) = &options.from_counts {
        let profile = ImageProfiles::new(vec![ImageProfile::from_counts(counts, path)?]);
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
    let (profile, left_out) = counter.profile();
    if profile.images.is_empty() {
        left_out.iter().for_each(|reason| text::message!("note: {reason}"));
        anyhow::bail!("{}: no image that was executed can be optimized", path.display());
    }
    write(options, earlier, profile)?;
    ending.map_or(Ok(ExitCode::SUCCESS), |ending| {
        check_ending(&ending, path, &options.execution.ending.expected())
    })
}

/// The profile that new counts are added to.
fn earlier(options: &ProfileOptions) -> anyhow::Result<ImageProfiles> {
    let output = &options.output;
    Ok(match output.is_file() && !options.replace {
        true => ImageProfiles::open(output)?,
        false => ImageProfiles::default(),
    })
}

fn write(options: &ProfileOptions, earlier: ImageProfiles, profile: ImageProfiles) -> anyhow::Result<()> {
    let names: Vec<&str> = profile.images.iter().map(|image| image.name.as_str()).collect();
    let output = &options.output;
    text::message!("{}: profile of {}", output.display(), names.join(", "));
    let bytes = earlier.merge(profile).encode();
    report::write_file(output, |out| Ok(out.write_all(&bytes)?))?;
    Ok(())
}

/// Counts the program and the processes that it forks.
fn count(
    options: &ProfileOptions,
    path: &Path,
    arguments: &[OsString],
) -> anyhow::Result<(EdgeCounts, Ending)> {
    let configuration = options.execution.engine.program().configuration(path, arguments, true);
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
    let bar = Replaying::new(trace.chunks().iter().map(|chunk| chunk.instructions).sum(), true);
    let counts = edges::of_trace(&trace, &mut |instructions| bar.show(instructions));
    bar.clear();
    counts
}
