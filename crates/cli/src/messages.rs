//! Messages to a program that runs this command, such as the Python package: if the environment names a file
//! descriptor, each [`Message`] is written there as a line of JSON.

use std::env;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::RawFd;
use std::sync::OnceLock;

use analysis::units::Phase;
use serde::Serialize;
use session::measure::Counted;
use table::Table;

/// The variable with the descriptor's number.
const VARIABLE: &str = "PATHLENGTH_MESSAGES";

static CONNECTION: OnceLock<File> = OnceLock::new();

/// A message: in JSON an object with the variant's name in lower case and its value.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Message<'a> {
    /// Units of work that have ended, and the phase of the measurement.
    Units(u64, Phase),
    /// The counts, after the program has ended.
    Counted(&'a Counted),
    /// The tables.
    Tables(&'a [Table]),
    /// A part of a trace that cannot be read, and is left out.
    Problem(&'a str),
    /// Why the command failed.
    Failed(&'a str),
}

/// Connects to the calling program, if the environment names a descriptor.
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
    // SAFETY: the descriptor was passed for this purpose only.
    unsafe { libc::close(number) };
    if let Some(kept) = kept {
        let _ = CONNECTION.set(kept.into());
    }
}

/// Whether a calling program receives messages: then neither tables nor errors are written elsewhere.
pub fn is_connected() -> bool {
    CONNECTION.get().is_some()
}

/// Reports why the command failed: to the calling program, or else on standard error.
pub fn report_failure(reason: &str) {
    match is_connected() {
        true => send(&Message::Failed(reason)),
        false => text::message!("{reason}"),
    }
}

/// Reports a part of a trace that cannot be read: to the calling program, or else on standard error.
pub fn report_problem(problem: &str) {
    match is_connected() {
        true => send(&Message::Problem(problem)),
        false => text::message!("{problem}"),
    }
}

/// Sends a message, if a calling program is connected.
pub fn send(message: &Message) {
    let Some(file) = CONNECTION.get() else { return };
    let mut out = BufWriter::new(file);
    // Errors are ignored: the calling program may have closed its end.
    let _ = serde_json::to_writer(&mut out, message).map_err(std::io::Error::from).and_then(|()| {
        out.write_all(b"\n")?;
        out.flush()
    });
}
