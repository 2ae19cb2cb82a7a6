//! Sections of code.

use std::ops::Range;

/// A section that holds instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its name, such as `.text`.
    pub name: String,
    /// Link-time address of the first instruction.
    pub address: u64,
    /// Where its bytes are in the file.
    pub file: Range<usize>,
}

impl Code {
    /// First address after it.
    pub fn end(&self) -> u64 {
        self.address + self.file.len() as u64
    }
}
