//! Lists of ranges and of locations, in the forms of DWARF 5 and of the versions before it.

use gimli::constants;

/// Bytes of an address, and of a version 5 header.
const ADDRESS_SIZE: u8 = 8;
const HEADER: usize = 12;

/// New lists as they are made: of ranges, or of ranges with locations.
pub struct ListWriter {
    /// Those of version 5.
    new: Vec<u8>,
    /// Those of the versions before it.
    old: Vec<u8>,
    kind: ListKind,
}

/// The kind of a list's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Ranges.
    Ranges,
    /// Ranges with locations.
    Locations,
}

/// An entry of a list: a range, and a location if it has one.
pub type ListEntry<'a> = ((u64, u64), &'a [u8]);

impl ListWriter {
    /// No lists yet.
    pub fn new(kind: ListKind) -> ListWriter {
        ListWriter { new: vec![0; HEADER], old: Vec::new(), kind }
    }

    /// Adds a list. Returns its offset.
    pub fn add(&mut self, version: u16, entries: &[ListEntry]) -> Result<u32, String> {
        let offset = if version >= 5 { self.new.len() } else { self.old.len() };
        match version {
            5.. => self.add_new(entries),
            _ => self.add_old(entries)?,
        }
        u32::try_from(offset).map_err(|_| "lists are too large".into())
    }

    fn add_new(&mut self, entries: &[ListEntry]) {
        let (range, end) = match self.kind {
            ListKind::Ranges => (constants::DW_RLE_start_length.0, constants::DW_RLE_end_of_list.0),
            ListKind::Locations => (constants::DW_LLE_start_length.0, constants::DW_LLE_end_of_list.0),
        };
        for &((start, end), location) in entries {
            self.new.push(range);
            self.new.extend(start.to_le_bytes());
            // Writing to memory does not fail.
            let _ = gimli::leb128::write::unsigned(&mut self.new, end - start);
            if self.kind == ListKind::Locations {
                let _ = gimli::leb128::write::unsigned(&mut self.new, location.len() as u64);
                self.new.extend(location);
            }
        }
        self.new.push(end);
    }

    fn add_old(&mut self, entries: &[ListEntry]) -> Result<(), String> {
        // Addresses are relative to that of the unit, if it has one, unless another base is given first.
        let base = [u64::MAX, 0].map(u64::to_le_bytes);
        self.old.extend(base.as_flattened());
        for &((start, end), location) in entries {
            self.old.extend([start, end].map(u64::to_le_bytes).as_flattened());
            if self.kind == ListKind::Locations {
                let length = u16::try_from(location.len()).map_err(|_| "a location is too long")?;
                self.old.extend(length.to_le_bytes());
                self.old.extend(location);
            }
        }
        self.old.extend([0; 16]);
        Ok(())
    }

    /// The sections of version 5 and before it, if they have lists.
    pub fn finish(mut self) -> [Option<Vec<u8>>; 2] {
        let length = (self.new.len() - 4) as u32;
        self.new[..4].copy_from_slice(&length.to_le_bytes());
        self.new[4..6].copy_from_slice(&5u16.to_le_bytes());
        self.new[6] = ADDRESS_SIZE;
        [
            Some(self.new).filter(|bytes| bytes.len() > HEADER),
            Some(self.old).filter(|bytes| !bytes.is_empty()),
        ]
    }
}
