//! The commands of builds.

use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use host::interrupt::InterruptGuard;

use crate::build_options::{Error, check_interrupted, io_error};

/// A command of a build, for the shell.
#[derive(Clone, Debug)]
pub struct BuildStep {
    /// The action, a verb.
    pub doing: &'static str,
    /// Its object.
    pub what: &'static str,
    /// The command; it is executed in the folder of the build.
    pub command: String,
    /// The source files of an image that builds of several workloads have.
    pub shared: Option<&'static [&'static str]>,
}

/// A shell that also finds administrators' commands (zic), and whose programs print
/// English messages.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    shell.args(["-e", "-c", command]).env("PATH", path).env("LC_ALL", "C");
    shell.env("MAKEFLAGS", format!("-j{jobs}")).env_remove("MAKELEVEL");
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    shell
}

/// Whether the shell finds a command.
pub fn is_installed(tool: &str) -> bool {
    shell(&format!("command -v {tool}")).status().is_ok_and(|status| status.success())
}

impl BuildStep {
    /// Executes the command.
    pub fn carry_out(&self, folder: &Path, interrupt: &InterruptGuard) -> Result<(), Error> {
        const LINES_SHOWN: usize = 40;
        let run = || {
            let mut output = tempfile::tempfile()?;
            // Temporary files of a compiler that is ended go with the folder.
            let mut shell = shell(&self.command);
            shell.current_dir(folder).env("TMPDIR", folder.canonicalize()?);
            let mut child = shell.process_group(0).stderr(output.try_clone()?).spawn()?;
            let status = interrupt.wait(&mut child)?;
            let mut text = Vec::new();
            output.rewind()?;
            output.read_to_end(&mut text)?;
            Ok((status, text))
        };
        let (status, output) = run().map_err(io_error("running", Path::new("sh")))?;
        check_interrupted(interrupt)?;
        if status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output);
        let lines: Vec<_> = text.trim_end().lines().collect();
        let shown = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        Err(Error::Command { command: self.command.clone(), output: shown.join("\n") })
    }
}
