//! Commands that run in the background, and what they say.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use crate::commands::Prepared;

/// Bytes of a job's output that are kept: the last ones.
const KEPT: usize = 256 << 10;

/// Jobs that have ended and are remembered.
const REMEMBERED: usize = 50;

/// All jobs, the latest last.
#[derive(Default)]
pub struct Jobs {
    jobs: Mutex<Vec<Arc<ManagerJob>>>,
}

/// A job.
struct ManagerJob {
    id: u64,
    title: String,
    process: Pid,
    began: Instant,
    progress: Mutex<JobProgress>,
}

#[derive(Default)]
struct JobProgress {
    output: Vec<u8>,
    /// Seconds that it took, and how it ended.
    end: Option<(f64, JobEnding)>,
}

/// How a job ended.
#[derive(Clone, Debug, Serialize)]
struct JobEnding {
    succeeded: bool,
    description: String,
}

/// A job, for the page.
#[derive(Serialize)]
pub struct JobView {
    id: u64,
    title: String,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<JobEnding>,
    /// The last line of its output.
    line: String,
}

/// A job with all of its output.
#[derive(Serialize)]
pub struct JobOutput {
    #[serde(flatten)]
    view: JobView,
    output: String,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ManagerJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u64) -> Option<Arc<ManagerJob>> {
        self.lock().iter().find(|job| job.id == id).cloned()
    }

    /// Starts a command. Returns the job's number, or why it could not be started.
    pub fn start(&self, prepared: Prepared) -> Result<u64, String> {
        let failed = |error: std::io::Error| format!("It cannot be started: {error}");
        let (mut output, input) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(&prepared.program);
        command.args(&prepared.words).stdin(Stdio::null());
        command.stdout(input.try_clone().map_err(failed)?).stderr(input);
        // A group of its own, which is stopped together.
        command.process_group(0);
        if let Some(folder) = &prepared.folder {
            if !folder.is_dir() {
                return Err(format!("{}: is not a folder", folder.display()));
            }
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(failed)?;
        // The command holds the pipe's other end, which would keep it open.
        drop(command);
        let process = Pid::from_child(&child);
        let job = {
            let mut jobs = self.lock();
            let id = jobs.last().map_or(1, |last| last.id + 1);
            let began = Instant::now();
            let job = Arc::new(ManagerJob {
                id,
                title: prepared.title,
                process,
                began,
                progress: Mutex::default(),
            });
            jobs.push(job.clone());
            if jobs.len() > REMEMBERED {
                let ended = jobs.iter().position(|job| job.progress().end.is_some());
                ended.map(|ended| jobs.remove(ended));
            }
            job
        };
        let id = job.id;
        thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                job.progress().append(&bytes[..count]);
            }
            let end = child.wait().map_or_else(|error| JobEnding::failed(&error), JobEnding::of);
            job.progress().end = Some((job.began.elapsed().as_secs_f64(), end));
        });
        Ok(id)
    }

    /// Asks a job to end.
    pub fn stop(&self, id: u64) {
        if let Some(job) = self.find(id).filter(|job| job.progress().end.is_none()) {
            // It may have ended meanwhile.
            let _ = kill_process_group(job.process, Signal::TERM);
        }
    }

    /// All jobs, the latest first.
    pub fn views(&self) -> Vec<JobView> {
        self.lock().iter().rev().map(|job| job.view()).collect()
    }

    /// A job with its output.
    pub fn output(&self, id: u64) -> Option<JobOutput> {
        let job = self.find(id)?;
        let output = String::from_utf8_lossy(&job.progress().output).into_owned();
        Some(JobOutput { view: job.view(), output })
    }
}

impl ManagerJob {
    fn progress(&self) -> MutexGuard<'_, JobProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> JobView {
        let progress = self.progress();
        let text = String::from_utf8_lossy(&progress.output[progress.output.len().saturating_sub(1000)..]);
        JobView {
            id: self.id,
            title: self.title.clone(),
            seconds: progress.end.as_ref().map_or_else(|| self.began.elapsed().as_secs_f64(), |end| end.0),
            end: progress.end.as_ref().map(|end| end.1.clone()),
            line: text.lines().last().unwrap_or_default().into(),
        }
    }
}

impl JobProgress {
    fn append(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        let surplus = self.output.len().saturating_sub(KEPT);
        self.output.drain(..surplus);
    }
}

impl JobEnding {
    fn of(status: ExitStatus) -> JobEnding {
        let description = match (status.code(), status.signal()) {
            (Some(0), _) => "done".into(),
            (Some(code), _) => format!("failed: exit status {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended".into(),
        };
        JobEnding { succeeded: status.success(), description }
    }

    fn failed(error: &std::io::Error) -> JobEnding {
        JobEnding { succeeded: false, description: format!("lost: {error}") }
    }
}
