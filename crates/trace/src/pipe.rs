//! Traces that come through a pipe. A trace is read here and there, and a pipe from its beginning only: so what comes
//! through one is kept in a temporary file.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::container::{FILE_MAGIC, FIRST_CHUNK};

/// What stands for standard input in the place of a file's name.
const STANDARD_INPUT: &str = "-";

/// Whether a trace could only come through a pipe from there: nothing can be read and looked at first.
pub fn is_pipe(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT) || path.metadata().is_ok_and(|there| is_stream(&there))
}

/// Opens a file so that it can be read anywhere.
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

/// Keeps what comes through a pipe. Of what is no trace only the beginning: it may have no end.
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
