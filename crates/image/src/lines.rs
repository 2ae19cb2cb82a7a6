//! From addresses to lines of source, by the image's debug information.

use addr2line::Context;
use gimli::{DwarfSections, EndianArcSlice, LittleEndian, SectionId};
use std::sync::Arc;

/// A line in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as the compiler recorded it.
    pub file: String,
    /// The line, from 1; none for code that belongs to no line.
    pub line: Option<u32>,
}

/// Debug information, read at the first use.
pub(crate) struct Lines(Option<Context<EndianArcSlice<LittleEndian>>>);

impl Lines {
    /// Takes the contents of debug sections by name. Without usable ones no address has a line.
    pub(crate) fn new<'data>(section: impl Fn(&str) -> Option<&'data [u8]>) -> Lines {
        let load = |id: SectionId| -> Result<Arc<[u8]>, gimli::Error> {
            Ok(Arc::from(section(id.name()).unwrap_or_default()))
        };
        let context = DwarfSections::load(load).and_then(|sections| {
            Context::from_dwarf(sections.borrow(|bytes| EndianArcSlice::new(bytes.clone(), LittleEndian)))
        });
        Lines(context.ok())
    }

    pub(crate) fn location(&self, address: u64) -> Option<SourceLocation> {
        // The library adds one to the address: the last one there is, where no instruction can be, overflows.
        address.checked_add(1)?;
        let found = self.0.as_ref()?.find_location(address).ok()??;
        Some(SourceLocation { file: found.file?.into(), line: found.line })
    }
}
