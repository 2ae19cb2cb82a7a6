//! Runs a program and records a trace.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::{AttachError, Attached, Configuration, Missing, Plan, Process, Recorded, Recorder};
use output_files::PendingName;
use trace::{EnvironmentSummary, Header, Trace, Writer};

use crate::attached_program::{AttachedProgram, ObservationEnd};
use crate::descriptors;
use crate::measure::{self, Ending, Error};
use crate::objects::ObjectRules;

/// A finished recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The result of the recording.
    pub recorded: Recorded,
    /// How the program ended.
    pub ending: Ending,
}

/// Runs the program to its end and records it into a file as planned. The file replaces an existing one as soon as it
/// has records, so that these are kept however the recording ends.
pub fn record(configuration: &Configuration, plan: &Plan, path: &Path) -> Result<Recording, Error> {
    let not_written = |reason| not_written(path, reason);
    // The program cannot access files that were opened before its process was created.
    let (file, name) = create(path)?;
    let name = Arc::new(name);
    let mut process = Process::new(configuration)?;
    let pending = name.clone();
    let commit = move || Ok(pending.commit()?);
    let writer = Writer::notifying(file, &header(configuration, plan), commit);
    let recorder = writer.and_then(|writer| Recorder::new(plan.clone(), writer));
    let recorder = recorder.map_err(not_written)?;
    let (recorded, ending) = run(&mut process, recorder, configuration, not_written)?;
    check_reached(&recorded, plan)?;
    name.commit()?;
    Ok(Recording { recorded, ending })
}

/// The trace could not be written, at least not all of it.
fn not_written(path: &Path, reason: io::Error) -> Error {
    let is_partial = path.is_file() && Trace::open(path).is_ok_and(|trace| !trace.chunks().is_empty());
    Error::NotWritten { path: path.into(), reason, is_partial }
}

/// Runs a program to its end with a recorder, and checks whether it has what the plan names. `failed` makes the error if
/// recording failed.
pub fn run(
    process: &mut Process,
    mut recorder: Recorder,
    configuration: &Configuration,
    failed: impl Fn(io::Error) -> Error,
) -> Result<(Recorded, Ending), Error> {
    let end = measure::run(process, &mut recorder, configuration);
    let missing = recorder.missing();
    let recorded = recorder.finish().map_err(failed)?;
    let ending = Ending::new(end?, &process.images);
    match missing {
        Some(Missing::Function(name)) => Err(Error::no_such_function(&name, &process.images)),
        Some(Missing::Location(location)) => Err(Error::no_such_location(&location, &process.images)),
        None => Ok((recorded, ending)),
    }
}

/// Whether the program came to what was to be recorded.
pub fn check_reached(recorded: &Recorded, plan: &Plan) -> Result<(), Error> {
    match (&plan.from, &plan.unit) {
        (Some(from), _) if !recorded.has_begun => Err(Error::NeverReached(from.to_string())),
        (_, Some(unit)) if recorded.units <= unit.skip => Err(Error::TooFewUnits {
            function: unit.function.clone(),
            units: recorded.units,
            skip: unit.skip,
        }),
        _ => Ok(()),
    }
}

/// The trace header for a plan.
pub fn header(configuration: &Configuration, plan: &Plan) -> Header {
    let arguments = configuration.arguments.iter().map(|one| one.to_string_lossy().into()).collect();
    let environment = Some(EnvironmentSummary::new(&configuration.environment));
    Header { environment, ..plan.header(configuration.program.clone(), arguments, configuration.model) }
}

/// Creates the file, to which all processes that are recorded append.
fn create(path: &Path) -> Result<(File, PendingName), Error> {
    let (file, name) = output_files::create(path)?;
    Ok((descriptors::out_of_reach(file), name.renumbered(linux_user::out_of_reach)))
}

/// Records a running process of the engine into a file: until Ctrl-C, its end, the end of the plan, or for a duration. The file
/// replaces an existing one as soon as it has records.
pub fn attach(attached: &AttachedProgram, plan: &Plan, path: &Path) -> Result<Attached, AttachFailure> {
    let (file, name) = create(path)?;
    let end = ObservationEnd::of(attached);
    let has_records = || Trace::open(&name.written_path()).is_ok_and(|trace| !trace.chunks().is_empty());
    let is_named = Cell::new(!name.is_pending());
    let is_enough = |has_begun: bool| {
        if !is_named.get() && has_records() {
            // If that fails, it will again at the end.
            is_named.set(name.commit().is_ok());
        }
        end.has_come(has_begun)
    };
    let plan = ObjectRules::plan_of_process(attached.process, plan);
    let attached = attached.target().record(&plan, &file, &is_enough);
    let attached = attached.map_err(|error| match error {
        AttachError::Failed(..) => AttachFailure::from(not_written(path, io::Error::other(error))),
        error => error.into(),
    })?;
    name.commit().map_err(Error::from)?;
    Ok(attached)
}

/// Why a process that runs already could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum AttachFailure {
    /// The file could not be written.
    Measure(#[from] Error),
    /// The process could not be recorded.
    Attach(#[from] AttachError),
}
