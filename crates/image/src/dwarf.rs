//! Debug information as `gimli` reads it from an image's bytes.

use gimli::{DebuggingInformationEntry, EndianSlice, LittleEndian};

/// Bytes of a section of debug information.
pub(crate) type DwarfSlice<'a> = EndianSlice<'a, LittleEndian>;

/// An entry of debug information.
pub(crate) type DwarfEntry<'a> = DebuggingInformationEntry<DwarfSlice<'a>>;
