//! Bytes of sections of exception tables and debug information, as `gimli` reads them.

use gimli::{EndianSlice, LittleEndian};

/// Bytes of a section.
pub type SectionBytes<'a> = EndianSlice<'a, LittleEndian>;
