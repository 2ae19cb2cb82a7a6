//! Runs a program and records a trace.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::time::SystemTime;

use engine::{AttachError, Attached, Configuration, Plan, Process, Recorded, Recorder};
use trace::{Header, Writer};

use crate::interrupt::Caught;
use crate::measure::{self, Ending, Error};

/// A finished recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What was recorded.
    pub recorded: Recorded,
    /// How the program ended.
    pub ending: Ending,
}

/// Runs the program to its end and records what is planned into a file, which is replaced.
pub fn record(configuration: &Configuration, plan: &Plan, path: &Path) -> Result<Recording, Error> {
    let not_written = |reason| Error::NotWritten { path: path.into(), reason };
    // Files that are open when the process is made are out of the program's reach.
    let file = create(path).map_err(not_written)?;
    let mut process = Process::new(configuration)?;
    let writer = Writer::new(file, &header(configuration, plan));
    let recorder = writer.and_then(|writer| Recorder::new(plan.clone(), writer));
    let recorder = recorder.map_err(not_written)?;
    let (recorded, ending) = run(&mut process, recorder, configuration, plan, not_written)?;
    Ok(Recording { recorded, ending })
}

/// Runs a program to its end with a recorder, and finds out whether that recorded what is planned. `failed` says
/// what it means if it did not work.
pub(crate) fn run(
    process: &mut Process,
    mut recorder: Recorder,
    configuration: &Configuration,
    plan: &Plan,
    failed: impl Fn(io::Error) -> Error,
) -> Result<(Recorded, Ending), Error> {
    let end = measure::run(process, &mut recorder, configuration);
    let (is_unit_found, are_places_found) = (recorder.is_unit_found(), recorder.are_places_found());
    let recorded = recorder.finish().map_err(failed)?;
    let ending = Ending::new(end?, &process.images);
    if let Some(unit) = plan.unit.as_ref().filter(|_| !is_unit_found) {
        return Err(Error::no_such_function(&unit.function, &process.images));
    }
    let places = [&plan.from, &plan.until].into_iter().zip(are_places_found);
    if let Some(place) = places.filter(|(_, is_found)| !is_found).find_map(|(place, _)| place.as_ref()) {
        return Err(Error::no_such_place(place, &process.images));
    }
    match (&plan.from, &plan.unit) {
        (Some(from), _) if !recorded.has_begun => Err(Error::NeverReached(from.to_string())),
        (_, Some(unit)) if recorded.units <= unit.skip => Err(Error::TooFewUnits {
            function: unit.function.clone(),
            units: recorded.units,
            skip: unit.skip,
        }),
        _ => Ok((recorded, ending)),
    }
}

pub(crate) fn header(configuration: &Configuration, plan: &Plan) -> Header {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Header {
        program: configuration.program.clone(),
        arguments: configuration.arguments.iter().map(|one| one.to_string_lossy().into()).collect(),
        cpu: configuration.model.to_string(),
        has_values: plan.values,
        unit: plan.unit.as_ref().map(|unit| unit.function.clone()),
        time: time.map_or(0, |time| time.as_secs()),
        process: std::process::id(),
    }
}

/// Creates the file. All processes that are recorded append to it; so one that was there is replaced, and not
/// emptied: a process may still append to it.
fn create(path: &Path) -> io::Result<File> {
    if path.symlink_metadata().is_ok_and(|there| there.is_file()) {
        std::fs::remove_file(path)?;
    }
    Ok(out_of_reach(OpenOptions::new().create(true).append(true).open(path)?))
}

/// Gives a file's descriptor a high number, so that the program's own have the ones they always have.
pub(crate) fn out_of_reach(file: File) -> File {
    const HIGH: libc::c_int = 512;
    // SAFETY: duplicates a descriptor that is open; the new one is nobody else's.
    let kept = unsafe {
        let number = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH);
        (number >= 0).then(|| File::from_raw_fd(number))
    };
    kept.unwrap_or(file)
}

/// Records a process that runs already on the engine, and with `family` the ones that it has forked, into a
/// file, which is replaced: until Ctrl-C, its end, or the end of what is planned.
pub fn attach(process: u32, family: bool, plan: &Plan, path: &Path) -> Result<Attached, AttachFailure> {
    let file = create(path).map_err(|reason| Error::NotWritten { path: path.into(), reason })?;
    let caught = Caught::new();
    Ok(engine::attach(process, family, plan, &file, &|| caught.check().is_err())?)
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
