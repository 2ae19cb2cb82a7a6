//! The client of an attach session: requests that running processes are recorded.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::connection::send;
use super::listener::RequestListener;
use super::messages::{AttachAnswer, AttachRequest};
use crate::counting::UnitOfWork;
use crate::recording::plan::Plan;
use crate::recording::session::SharedCounters;

/// Timeout of a connection. The process may be in a system call that must not be interrupted.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of kicks: a process has only one pending signal of a kind, so that a kick is lost behind an earlier one.
const KICK_INTERVAL: Duration = Duration::from_millis(200);
/// Interval of checks whether the user has stopped the recording.
const READ_TIMEOUT: Duration = Duration::from_millis(50);
/// Interval of checks for a connection.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(2);

/// Why a process could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The process does not exist.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It is a zombie.
    #[error("process {0} has ended; its parent has not waited for it yet")]
    Ended(u32),
    /// It does not run on this engine.
    #[error(
        "process {0} ({1}) is no Alpha program that this pathlength runs: start it with pathlength run, and give \
         the number of that process"
    )]
    NotOurs(u32, String),
    /// It belongs to another user.
    #[error("process {0} belongs to another user")]
    NotPermitted(u32),
    /// It does not answer.
    #[error(
        "process {0} does not answer: it must be run by pathlength run, and not be stopped; other commands \
         cannot be attached to"
    )]
    Silent(u32),
    /// It refused, for this reason.
    #[error("process {0} cannot be recorded: {1}")]
    Refused(u32, String),
    /// Recording ended early.
    #[error("process {0} could not go on recording: {1}")]
    Failed(u32, String),
    /// The host refused an operation.
    #[error("cannot reach process {0}: {1}")]
    Host(u32, io::Error),
}

/// The recording of attached processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Number of instructions.
    pub instructions: u64,
    /// Number of units of work that began.
    pub units: u64,
    /// Number of processes, including those forked meanwhile.
    pub processes: u64,
}

/// Whether a recording is over, asked again and again, with whether it has begun in all processes.
pub type IsEnough<'a> = &'a dyn Fn(bool) -> bool;

/// A running process to record, until it has ended or [`IsEnough`] says so.
#[derive(Clone, Copy, Debug)]
pub struct AttachTarget {
    /// The process.
    pub process: u32,
    /// Whether those that it has forked are recorded, too.
    pub with_children: bool,
}

impl AttachTarget {
    /// Counts the process in a folder, as [`ProcessTreeCounts`](crate::ProcessTreeCounts) reads it. Processes that are forked meanwhile
    /// are counted, too.
    pub fn count(
        self,
        work: &UnitOfWork,
        folder: &File,
        is_enough: IsEnough,
    ) -> Result<Attached, AttachError> {
        self.request(folder, &|number| AttachRequest::Count(work.clone(), number + 1), is_enough)
    }

    /// Records the process into an empty file that was opened for appending, until the plan is carried out.
    pub fn record(self, plan: &Plan, file: &File, is_enough: IsEnough) -> Result<Attached, AttachError> {
        self.request(file, &|number| AttachRequest::Record(plan.clone(), number == 0), is_enough)
    }

    /// Lets the process report what it executes as planned to consumers that [`AttachedConsumers`](crate::AttachedConsumers) makes there
    /// of a file.
    pub fn observe(self, plan: &Plan, file: &File, is_enough: IsEnough) -> Result<Attached, AttachError> {
        self.request(file, &|number| AttachRequest::Observe(plan.clone(), number + 1), is_enough)
    }

    /// Sends requests, and waits for the end of what was requested. `request` makes the request to a process by its number, from 0.
    fn request(
        self,
        file: &File,
        request: &dyn Fn(u32) -> AttachRequest,
        is_enough: IsEnough,
    ) -> Result<Attached, AttachError> {
        let AttachTarget { process, with_children } = self;
        check(process)?;
        let host = |error| AttachError::Host(process, error);
        let counters = SharedCounters::shared().map_err(host)?;
        let mut recorded = Vec::new();
        let members = if with_children { members(process) } else { vec![process] };
        for member in members {
            let begins = recorded.is_empty();
            let request = serde_json::to_string(&request(recorded.len() as u32));
            let request = request.map_err(|error| host(error.into()))?;
            match ask(member, &request, file, &counters, is_enough) {
                Ok(Some(connection)) => {
                    recorded.push(RecordedProcess { process: member, connection, partial: String::new() })
                }
                Ok(None) => break,
                Err(error) if begins => return Err(error),
                // The process has ended or is ending.
                Err(_) => {}
            }
        }
        listen(process, recorded, is_enough)
    }
}

/// Sends a request to a process; None if the user has stopped the recording.
fn ask(
    process: u32,
    request: &str,
    file: &File,
    counters: &File,
    is_enough: IsEnough,
) -> Result<Option<BufReader<UnixStream>>, AttachError> {
    let host = |error| AttachError::Host(process, error);
    let listener = RequestListener::new(process).map_err(host)?;
    let asked = Instant::now();
    let mut kicks = 0;
    let stream = loop {
        if asked.elapsed() >= KICK_INTERVAL * kicks {
            kick(process, listener.request);
            kicks += 1;
        }
        if let Some(stream) = listener.accept().map_err(host)? {
            break stream;
        }
        if is_enough(false) {
            return Ok(None);
        }
        if asked.elapsed() > CONNECT_TIMEOUT {
            return Err(AttachError::Silent(process));
        }
        std::thread::sleep(ACCEPT_INTERVAL);
    };
    stream.set_nonblocking(false).map_err(host)?;
    stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(host)?;
    // A process that refuses does not wait for the request.
    let sent = send(&stream, request, file, counters.as_fd());
    let mut recorded = BufReader::new(stream);
    let mut answer = String::new();
    // The process has connected, so it lives; how long it prepares depends on the host's load.
    let read = loop {
        match recorded.read_line(&mut answer) {
            Err(error) if is_temporary(&error) && !is_enough(false) => {}
            Err(error) if is_temporary(&error) => return Ok(None),
            read => break read,
        }
    };
    match serde_json::from_str(&answer) {
        Ok(AttachAnswer::Begun) => Ok(Some(recorded)),
        Ok(AttachAnswer::Refused(reason)) => Err(AttachError::Refused(process, reason)),
        _ => sent.and(read).map_err(host).and(Err(AttachError::Silent(process))),
    }
}

/// Whether a read may succeed when it is repeated.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A recorded process.
struct RecordedProcess {
    process: u32,
    connection: BufReader<UnixStream>,
    /// The beginning of a line received from it.
    partial: String,
}

/// Receives messages until all processes have ended or their recordings have.
fn listen(
    process: u32,
    mut recorded: Vec<RecordedProcess>,
    is_enough: IsEnough,
) -> Result<Attached, AttachError> {
    let mut attached = Attached::default();
    let mut failure = None;
    let mut is_over = false;
    while !recorded.is_empty() {
        let mut ended = is_enough(true);
        recorded.retain_mut(|RecordedProcess { process, connection, partial }| {
            let alive = match connection.read_line(partial) {
                Ok(bytes) => bytes > 0,
                Err(error) => is_temporary(&error),
            };
            let Some(message) = partial.strip_suffix('\n') else { return alive };
            match serde_json::from_str(message) {
                Ok(AttachAnswer::Over) => ended = true,
                Ok(AttachAnswer::Done { instructions, units }) => {
                    attached.instructions += instructions;
                    attached.units = attached.units.max(units);
                    attached.processes += 1;
                }
                Ok(AttachAnswer::Failed(reason)) => failure = Some(AttachError::Failed(*process, reason)),
                _ => failure = Some(AttachError::Failed(*process, format!("it answered {message}"))),
            }
            partial.clear();
            alive
        });
        if ended && !is_over {
            is_over = true;
            recorded.iter().for_each(|member| drop(member.connection.get_ref().shutdown(Shutdown::Write)));
            kick_process_tree(process, 0);
        }
    }
    failure.map_or(Ok(attached), Err)
}

/// Whether a process runs on this engine.
fn check(process: u32) -> Result<(), AttachError> {
    let folder = format!("/proc/{process}");
    let name = fs::read_to_string(format!("{folder}/comm")).map_err(|_| AttachError::NoProcess(process))?;
    if is_ours(process) {
        return Ok(());
    }
    let state = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    if state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')) {
        return Err(AttachError::Ended(process));
    }
    // Another user's program may be an Alpha program, but that cannot be seen. Root can see every program; one that
    // root cannot inspect is not attachable.
    let user = rustix::process::geteuid();
    let owner = fs::metadata(&folder).map_err(|_| AttachError::NoProcess(process))?.uid();
    match fs::metadata(format!("{folder}/exe")) {
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && owner != user.as_raw()
                && !user.is_root() =>
        {
            Err(AttachError::NotPermitted(process))
        }
        _ => Err(AttachError::NotOurs(process, name.trim_end().to_string())),
    }
}

/// Whether a process runs the same executable as this one and has its SIGBUS handler: the signal would end other
/// processes.
fn is_ours(process: u32) -> bool {
    let identity = |process: &str| {
        fs::metadata(format!("/proc/{process}/exe")).map(|file| (file.dev(), file.ino())).ok()
    };
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    identity("self") == identity(&process.to_string()) && caught >> (libc::SIGBUS - 1) & 1 != 0
}

/// Makes all threads of a process check for attach requests: this one, or 0 for the end of a session.
fn kick(process: u32, request: u64) {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let counters = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    counters.for_each(|thread| host::send_attach_request(process, thread, request));
}

/// The same for the process and its descendants on this engine.
pub(super) fn kick_process_tree(process: u32, request: u64) {
    members(process).into_iter().for_each(|member| kick(member, request));
}

/// A process and its descendants that run on this engine.
fn members(process: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<(u32, u32)> = processes
        .filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            let parent = status.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
            Some((number, parent))
        })
        .collect();
    let mut members = vec![process];
    let mut next = 0;
    while let Some(&member) = members.get(next) {
        members.extend(all.iter().filter(|(_, parent)| *parent == member).map(|(number, _)| number));
        next += 1;
    }
    members.retain(|&member| is_ours(member));
    members
}
