//! Traces that are read from a pipe. A reader seeks in a trace, so what comes through a pipe is copied to a temporary
//! file.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::container::{FILE_MAGIC, FIRST_CHUNK};

/// The file name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Whether the file is a pipe, so that its contents cannot be inspected before it is opened.
pub fn is_pipe(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT) || path.metadata().is_ok_and(|there| is_stream(&there))
}

/// Opens a file for random access.
pub fn open(path: &Path) -> io::Result<File> {
    let file = match path == Path::new(STANDARD_INPUT) {
        true => io::stdin().as_fd().try_clone_to_owned()?.into(),
        false => File::open(path)?,
    };
    if is_stream(&file.metadata()?) { keep(file) } else { Ok(file) }
}

fn is_stream(there: &Metadata) -> bool {
    there.file_type().is_fifo() || there.file_type().is_socket()
}

/// Copies a pipe to a temporary file. If it does not begin as a trace only its beginning is copied, since it may be
/// endless.
fn keep(mut pipe: File) -> io::Result<File> {
    let mut start = Vec::new();
    (&mut pipe).take(FIRST_CHUNK).read_to_end(&mut start)?;
    let not_kept = |error: io::Error| {
        let folder = std::env::temp_dir();
        let what = format!("it comes through a pipe, and cannot be kept in {}: {error}", folder.display());
        io::Error::new(error.kind(), what)
    };
    let mut file = tempfile::tempfile().map_err(not_kept)?;
    file.write_all(&start).map_err(not_kept)?;
    if start.starts_with(&FILE_MAGIC) {
        io::copy(&mut pipe, &mut file).map_err(not_kept)?;
    }
    Ok(file)
}
