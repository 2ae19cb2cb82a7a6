//! Descriptors of files that this process keeps while a program runs in it.

use std::fs::File;

/// Gives a file's descriptor a high number, so that the program's own have the ones they always have.
pub fn out_of_reach(file: File) -> File {
    linux::out_of_reach(file.into()).into()
}
