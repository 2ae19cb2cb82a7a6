//! What a program that runs this command can hear of it (the Python package does): if the environment names a
//! descriptor, a line goes there for each [`Message`].

use std::env;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::RawFd;
use std::sync::OnceLock;

use analysis::units::Phase;
use lab::measure::Counted;
use serde::Serialize;

/// The variable with the descriptor's number.
const VARIABLE: &str = "PATHLENGTH_MESSAGES";

static LISTENER: OnceLock<File> = OnceLock::new();

/// What is told: its name in lower case, and what it holds as JSON.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Message<'a> {
    /// So many units of work ended; what the last was to the measurement.
    Units(u64, Phase),
    /// The program has ended, and this was counted.
    Counted(&'a Counted),
    /// Why the command failed.
    Failed(&'a str),
}

/// Finds out whether anybody listens.
///
/// # Safety
/// There must be no other thread yet: the environment is changed, so that the program that is run does not
/// find the variable.
pub unsafe fn begin() {
    let Some(number) = env::var_os(VARIABLE) else { return };
    // SAFETY: the caller's promise.
    unsafe { env::remove_var(VARIABLE) };
    let Some(number) = number.to_str().and_then(|text| text.parse::<RawFd>().ok()) else { return };
    let kept = linux::high_copy(number);
    // SAFETY: the descriptor was meant for us alone.
    unsafe { libc::close(number) };
    if let Some(kept) = kept {
        let _ = LISTENER.set(kept.into());
    }
}

/// Whether anybody listens: then tables need not be written, nor errors to standard error.
pub fn has_listener() -> bool {
    LISTENER.get().is_some()
}

/// Tells why the command failed: who listens, or else whoever reads standard error.
pub fn tell_failure(reason: &str) {
    match has_listener() {
        true => tell(&Message::Failed(reason)),
        false => eprintln!("pathlength: {reason}"),
    }
}

/// Tells it, if anybody listens.
pub fn tell(message: &Message) {
    let Some(file) = LISTENER.get() else { return };
    let mut out = BufWriter::new(file);
    // If the listener has gone there is nobody to tell so.
    let _ = serde_json::to_writer(&mut out, message).map_err(std::io::Error::from).and_then(|()| {
        out.write_all(b"\n")?;
        out.flush()
    });
}
