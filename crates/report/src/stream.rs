//! Standard output and standard error as destinations of tables, and the pager before standard output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

/// A standard stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandardStream {
    /// Standard output.
    #[default]
    Output,
    /// Standard error.
    Error,
}

impl StandardStream {
    /// Whether it is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            StandardStream::Output => io::stdout().is_terminal(),
            StandardStream::Error => io::stderr().is_terminal(),
        }
    }

    /// The stream itself. Not through `Stdout`, which takes a closed descriptor for success.
    fn file(self) -> io::Result<File> {
        let copy = match self {
            StandardStream::Output => io::stdout().as_fd().try_clone_to_owned(),
            StandardStream::Error => io::stderr().as_fd().try_clone_to_owned(),
        };
        Ok(File::from(copy?))
    }
}

/// An open standard stream, behind a pager if there is one. It must be dropped before anything else is written to the
/// terminal: that waits for the pager to end.
pub struct PagedStream {
    out: Option<BufWriter<File>>,
    pager: Option<Pager>,
}

/// A pager that runs.
struct Pager {
    process: Child,
    /// The handler of Ctrl-C before.
    interrupt: libc::sighandler_t,
}

/// Opens a stream; standard output with a pager before it if `is_paged`, it is a terminal, and one is installed.
pub fn open_stream(stream: StandardStream, is_paged: bool) -> io::Result<PagedStream> {
    if is_paged
        && stream == StandardStream::Output
        && stream.is_terminal()
        && let Some(command) = pager_command()
    {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Quit if all fits on the screen, pass colours, leave the text on the screen: as git.
            shell.env("LESS", "FRX");
        }
        let mut process = shell.spawn()?;
        let pipe = process.stdin.take().map(OwnedFd::from).map(File::from);
        // SAFETY: no handler. Ctrl-C is for the pager, which began before, so that it does not inherit this.
        let interrupt = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        return Ok(PagedStream { out: pipe.map(BufWriter::new), pager: Some(Pager { process, interrupt }) });
    }
    Ok(PagedStream { out: Some(BufWriter::new(stream.file()?)), pager: None })
}

/// The command of the pager. None if there shall be none: its name is empty or `cat`, or the default is missing.
fn pager_command() -> Option<String> {
    let is_set = |name| std::env::var(name).ok();
    let command = is_set("PATHLENGTH_PAGER").or_else(|| is_set("PAGER"));
    let is_installed = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    match command {
        Some(command) => Some(command).filter(|command| !["", "cat"].contains(&command.trim())),
        None => Some("less".to_string()).filter(|less| is_installed(less)),
    }
}

impl Write for PagedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for PagedStream {
    fn drop(&mut self) {
        // The pager ends when its input does.
        drop(self.out.take());
        let Some(Pager { process, interrupt }) = &mut self.pager else { return };
        let _ = process.wait();
        // SAFETY: puts back what was there.
        unsafe { libc::signal(libc::SIGINT, *interrupt) };
    }
}
