//! Counts all processes of a program. The program runs in a process of its own: this one waits until all have ended, and
//! reads what they counted, however they or the program ended.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use analysis::classes::UnitClass;
use analysis::run_counts::{ProcessSums, RunDescription};
use engine::{Configuration, Family, FamilyCounter, Process, ProcessNumber, ProcessState, UnitOfWork};
use serde::{Deserialize, Serialize};

use crate::measure::{self, Ending, Error};

/// What was counted in all processes of a program.
#[derive(Debug)]
pub struct FamilyCounted {
    /// The counts.
    pub family: Family,
    /// How the first process ended, if it did.
    pub ending: Option<Ending>,
}

/// The file with the description of the run, in the folder of counts.
const DESCRIPTION: &str = "description.json";
/// The file with the result of the first process.
const RESULT: &str = "result.json";

/// The result of the process that ran the program.
#[derive(Debug, Serialize, Deserialize)]
enum RunResult {
    Ended(Ending),
    Failed(String),
}

/// Runs the program until all of its processes have ended, or until the user has enough of it: by a signal after the first
/// process has ended, or by a second one. All processes count in `folder`.
pub fn count(
    configuration: &Configuration,
    work: &UnitOfWork,
    folder: &Path,
    description: &RunDescription,
) -> Result<FamilyCounted, Error> {
    write_json(&folder.join(DESCRIPTION), description).map_err(Error::Simulation)?;
    let (alive, lives) = io::pipe().map_err(Error::Simulation)?;
    let [alive, lives] = [OwnedFd::from(alive), OwnedFd::from(lives)].map(linux::out_of_reach);
    let signals = Forwarding::begin();
    // SAFETY: the child only continues in `run`, which never returns; this process has no other thread that could hold a lock
    // which the child would need.
    let process = unsafe { libc::fork() };
    match process {
        -1 => return Err(Error::Simulation(io::Error::last_os_error())),
        0 => {
            drop((alive, signals));
            run(configuration, work, folder)
        }
        _ => drop(lives),
    }
    signals.to(process);
    let status = wait(process, &alive, &signals);
    drop(signals);
    let family = Family::read(folder).map_err(|error| Error::Simulation(io::Error::other(error)))?;
    let result = fs::read(folder.join(RESULT)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let ending = match (result, status) {
        (Some(RunResult::Failed(reason)), _) => return Err(Error::Simulation(io::Error::other(reason))),
        (Some(RunResult::Ended(ending)), _) => Some(ending),
        (None, Some(status)) if libc::WIFSIGNALED(status) => {
            let signal = libc::WTERMSIG(status);
            Some(Ending::Killed { signal, report: format!("killed by signal {signal}") })
        }
        (None, Some(status)) => Some(Ending::Exited(libc::WEXITSTATUS(status))),
        (None, None) => None,
    };
    Ok(FamilyCounted { family, ending })
}

/// What is in a folder of counts, whose command was killed or still runs.
pub fn read(folder: &Path) -> Result<(Family, RunDescription), Error> {
    let family = Family::read(folder).map_err(|error| Error::Simulation(io::Error::other(error)))?;
    let description = fs::read(folder.join(DESCRIPTION)).ok();
    let description = description.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    Ok((family, description))
}

/// Whether a path is a folder of counts.
pub fn is_folder(path: &Path) -> bool {
    path.join(DESCRIPTION).is_file()
}

/// The units of each class, the classes in the order of the instructions in them.
pub fn classes(family: &Family) -> Vec<UnitClass> {
    let mut classes: Vec<UnitClass> = Vec::new();
    for (name, executions) in &family.classes {
        let units = family.units.iter().filter(|unit| unit.class == *name);
        classes.push(UnitClass::of(name, units.map(|unit| unit.instructions).collect(), executions.clone()));
    }
    classes.retain(|class| class.units() > 0);
    classes.sort_by_key(|class| std::cmp::Reverse(class.instructions()));
    classes
}

/// The processes, for tables.
pub fn processes(family: &Family) -> Vec<ProcessSums> {
    let sums = |(index, process): (usize, &engine::CountedProcess)| ProcessSums {
        number: process.number.to_string(),
        program: process.programs.last().map_or_else(String::new, |path| name(path)),
        end: match process.state {
            ProcessState::Ended(events::ProcessEnd::Exited(status)) => format!("exited with status {status}"),
            ProcessState::Ended(events::ProcessEnd::Killed(signal)) => format!("killed by signal {signal}"),
            ProcessState::Gone => "killed, or replaced by a program of the host".into(),
            ProcessState::Running => "still runs".into(),
        },
        instructions: process.instructions(&family.counts),
        units: family.units.iter().filter(|unit| unit.process as usize == index).count() as u64,
    };
    family.processes.iter().enumerate().map(sums).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn write_json(path: &Path, what: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(File::create(path)?, what)?)
}

/// The process of the program.
fn run(configuration: &Configuration, work: &UnitOfWork, folder: &Path) -> ! {
    let result = match count_first(configuration, work, folder) {
        Ok(ending) => RunResult::Ended(ending),
        Err(error) => RunResult::Failed(error.to_string()),
    };
    // Without it, the status says how the program ended.
    let _ = write_json(&folder.join(RESULT), &result);
    // SAFETY: ends the process at once; buffers of the parent's must not be written twice.
    unsafe { libc::_exit(0) }
}

fn count_first(configuration: &Configuration, work: &UnitOfWork, folder: &Path) -> Result<Ending, Error> {
    let mut process = Process::new(configuration)?;
    let folder = File::open(folder).map_err(Error::Simulation)?;
    let counter = FamilyCounter::new(folder.into(), ProcessNumber::first(), work.clone());
    let end = measure::run(&mut process, &mut counter.map_err(Error::Simulation)?, configuration)?;
    Ok(Ending::new(end, &process.images))
}

/// Waits for the end of all processes, each of which holds the other end of a pipe. Returns the status of the first one, if
/// that has ended.
fn wait(process: libc::pid_t, alive: &OwnedFd, signals: &Forwarding) -> Option<i32> {
    const PAUSE: i32 = 100;
    let mut status = None;
    loop {
        let mut poll = libc::pollfd { fd: alive.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        let is_over = unsafe { libc::poll(&mut poll, 1, PAUSE) } > 0;
        if status.is_none() {
            let mut ended = 0;
            let option = if is_over { 0 } else { libc::WNOHANG };
            // SAFETY: waits for our own child.
            if unsafe { libc::waitpid(process, &mut ended, option) } == process {
                status = Some(ended);
                signals.to(0);
                signals.forget();
            }
        }
        let enough = if status.is_some() { 1 } else { 2 };
        if is_over || signals.seen() >= enough {
            return status;
        }
    }
}

/// Signals by which users end a command.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Signals that came.
static SEEN: AtomicU32 = AtomicU32::new(0);
/// The process that gets them, if there is one.
static RECEIVER: AtomicI32 = AtomicI32::new(0);

/// While a value exists, those signals do not end this process, but are those of the program. The terminal sends its own to
/// both.
struct Forwarding(Vec<(libc::c_int, libc::sigaction)>);

impl Forwarding {
    fn begin() -> Forwarding {
        SEEN.store(0, Ordering::Relaxed);
        RECEIVER.store(0, Ordering::Relaxed);
        let install = |signal| {
            // SAFETY: both structures are valid as zeros, and the handler calls only kill, which handlers may.
            unsafe {
                let mut former: libc::sigaction = std::mem::zeroed();
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut former);
                // As nohup leaves it.
                if former.sa_sigaction == libc::SIG_IGN {
                    return None;
                }
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = forward;
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_SIGINFO;
                libc::sigaction(signal, &action, std::ptr::null_mut());
                Some((signal, former))
            }
        };
        Forwarding(SIGNALS.into_iter().filter_map(install).collect())
    }

    fn to(&self, process: libc::pid_t) {
        RECEIVER.store(process, Ordering::Relaxed);
    }

    fn seen(&self) -> u32 {
        SEEN.load(Ordering::Relaxed)
    }

    fn forget(&self) {
        SEEN.store(0, Ordering::Relaxed);
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, former) in &self.0 {
            // SAFETY: the action is the one that the system returned.
            unsafe { libc::sigaction(*signal, former, std::ptr::null_mut()) };
        }
    }
}

/// `si_code` of a signal that the kernel sends, such as the terminal's.
const SI_KERNEL: libc::c_int = 0x80;

extern "C" fn forward(signal: libc::c_int, information: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    let receiver = RECEIVER.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a valid structure; kill accesses no memory.
    unsafe {
        if receiver > 0 && (*information).si_code != SI_KERNEL {
            libc::kill(receiver, signal);
        }
    }
}

/// A folder for counts: beside the file that they are saved to, or else a temporary one. It is removed when this is dropped.
#[derive(Debug)]
pub struct CountFolder(PathBuf);

impl CountFolder {
    /// Creates the folder.
    pub fn new(saved: Option<&Path>) -> Result<CountFolder, Error> {
        let Some(saved) = saved else {
            let made = tempfile::Builder::new().prefix("pathlength-count-").tempdir();
            return Ok(CountFolder(made.map_err(Error::Simulation)?.keep()));
        };
        let mut name = saved.file_name().unwrap_or_default().to_os_string();
        name.push(".d");
        let path = saved.with_file_name(name);
        match fs::create_dir(&path) {
            Ok(()) => Ok(CountFolder(std::path::absolute(&path).map_err(Error::Simulation)?)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::FolderExists { path }),
            Err(reason) => Err(Error::NotWritten { path, reason, is_partial: false }),
        }
    }

    /// Leaves it, for processes that still count there.
    pub fn keep(self) -> PathBuf {
        std::mem::ManuallyDrop::new(self).0.clone()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for CountFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
