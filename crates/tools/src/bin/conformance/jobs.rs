//! Commands under a time limit, on all processors, with progress on the terminal.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C end the run in order: jobs are ended, and partial builds are removed.
pub fn stop_on_interrupt() {
    extern "C" fn stop(_: i32) {
        INTERRUPTED.store(true, Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only sets a flag.
        unsafe { libc::signal(signal, stop as *const () as usize) };
    }
}

/// An error if Ctrl-C was pressed.
pub fn check_interrupt() -> Result<(), Error> {
    if INTERRUPTED.load(Relaxed) { Err("interrupted".into()) } else { Ok(()) }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Killed(i32),
    TimedOut,
}

/// Runs a command in a session of its own, and ends all that is left of it after `limit`, and after its end.
/// Its output goes to `log`.
pub fn run(command: &mut Command, limit: Duration, log: &Path) -> Result<End, Error> {
    let failed = |doing: &str, error: io::Error| format!("{doing} {}: {error}", log.display());
    let output = File::create(log).map_err(|error| failed("creating", error))?;
    let errors = output.try_clone().map_err(|error| failed("opening", error))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    // SAFETY: setsid is async-signal-safe.
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("cannot run {name}: {error}"))?;
    let begin = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            break Some(status);
        }
        if INTERRUPTED.load(Relaxed) || begin.elapsed() > limit {
            break None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    end_session(child.id());
    if status.is_none() {
        child.wait().map_err(|error| format!("{name}: {error}"))?;
    }
    check_interrupt()?;
    Ok(status.map_or(End::TimedOut, end))
}

fn end(status: ExitStatus) -> End {
    status.signal().map_or_else(|| End::Exited(status.code().unwrap_or_default()), End::Killed)
}

/// Kills all processes of a session, some of which may have made process groups of their own. The leader's
/// number stays that of the session as long as one of them lives.
fn end_session(session: u32) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for process in numbers.filter(|&process| session_of(process) == Some(session)) {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
}

/// The session that a process is in: the fourth word after its name in parentheses, which may have spaces.
fn session_of(process: i32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(3)?.parse().ok()
}

/// Does `work` for each item, on all processors; the results are in the items' order.
pub fn each<T: Sync, R: Send>(
    what: &str,
    items: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let [next, done] = [const { AtomicUsize::new(0) }; 2];
    let failed = AtomicBool::new(false);
    let worker = || {
        let mut results = Vec::new();
        while !failed.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            failed.fetch_or(result.is_err(), Relaxed);
            results.push((index, result));
            done.fetch_add(1, Relaxed);
        }
        results
    };
    let progress = Progress::new(what, items.len());
    let mut results: Vec<_> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            progress.show(done.load(Relaxed));
            thread::sleep(Duration::from_millis(100));
        }
        workers.into_iter().flat_map(|worker| worker.join().expect("no panics")).collect()
    });
    progress.end();
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A line on a terminal that changes, or a line in a pipe that says what begins.
struct Progress<'a> {
    what: &'a str,
    all: usize,
    begin: Instant,
    is_terminal: bool,
}

impl Progress<'_> {
    fn new(what: &str, all: usize) -> Progress<'_> {
        let is_terminal = io::stderr().is_terminal();
        if !is_terminal {
            eprintln!("conformance: {what}: {all}");
        }
        Progress { what, all, begin: Instant::now(), is_terminal }
    }

    fn show(&self, done: usize) {
        if self.is_terminal {
            let seconds = self.begin.elapsed().as_secs();
            eprint!("\r\x1b[Kconformance: {}: {done} of {}, {seconds} s", self.what, self.all);
            // Progress that cannot be shown is no reason to stop.
            let _ = io::stderr().flush();
        }
    }

    fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a command of bash that writes the number of a process that outlives it.
    fn leaves(script: &str, limit: Duration) -> (End, i32) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let end = run(Command::new("bash").args(["-c", script]), limit, &log).unwrap();
        let process = fs::read_to_string(&log).unwrap().trim().parse().unwrap();
        (end, process)
    }

    /// Waits until a process that was killed has ended.
    fn ends(process: i32) -> bool {
        let begin = Instant::now();
        let is_running = || {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
        };
        while is_running() && begin.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(10));
        }
        !is_running()
    }

    #[test]
    fn nothing_outlives_a_test() {
        // With -m bash gives it a process group of its own.
        let (end, process) = leaves("set -m; sleep 1000 & echo $!; exit 3", Duration::from_secs(60));
        assert_eq!(end, End::Exited(3));
        assert!(ends(process));
    }

    #[test]
    fn time_is_limited() {
        let script = "set -m; sleep 1000 & echo $!; wait";
        let (end, process) = leaves(script, Duration::from_secs(2));
        assert_eq!(end, End::TimedOut);
        assert!(ends(process));
    }

    #[test]
    fn results_are_in_order() {
        let items: Vec<_> = (0..100).collect();
        assert_eq!(each("numbers", &items, |&item| Ok(item * 2)).unwrap()[99], 198);
        let error = each("numbers", &items, |&item| if item == 7 { Err("seven".into()) } else { Ok(()) });
        assert_eq!(error.unwrap_err().to_string(), "seven");
    }
}
