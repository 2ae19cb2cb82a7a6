//! Child processes, which isolate failures.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command for this program itself.
pub fn ourselves(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program's own path"));
    command.args(arguments);
    command
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildOutcome {
    /// The exit status; None after a timeout.
    pub status: Option<std::process::ExitStatus>,
    pub stdout: Vec<u8>,
}

impl ChildOutcome {
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The status as in a shell, where a signal is 128 plus its number.
    pub fn code(&self) -> Option<i32> {
        let status = self.status?;
        status.code().or_else(|| status.signal().map(|signal| 128 + signal))
    }

    pub fn end(&self) -> String {
        self.status.map_or("took too long".into(), |status| status.to_string())
    }
}

/// Runs a command with a time limit.
pub fn run(command: &mut Command, limit: Duration) -> Result<ChildOutcome, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot run {name}: {error}"))?;
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes)
    });
    let begin = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            break Some(status);
        }
        if begin.elapsed() > limit {
            child.kill().and_then(|()| child.wait()).map_err(|error| format!("{name}: {error}"))?;
            break None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let stdout =
        reader.join().map_err(|_| "the reader failed")?.map_err(|error| format!("{name}: {error}"))?;
    Ok(ChildOutcome { status, stdout })
}
