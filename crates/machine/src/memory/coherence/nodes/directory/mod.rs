//! Directories, a file each: what a line's home node knows of its copies in other nodes, and which messages keep them coherent.

mod bit_vector;
mod entry;
mod sci;

use serde::{Deserialize, Deserializer};

use super::interconnect::Exchange;
use crate::description::choice::{Choice, by_name};
use bit_vector::SharerBits;
pub use entry::DirectoryEntry;
use sci::SharingList;

/// A directory: what a line's home node knows of its copies in other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directory {
    /// The head of a doubly linked list of the nodes (SCI, IEEE 1596-1992). The head alone may store, once it has purged the
    /// others one after another.
    Sci,
    /// A bit for each node, and the owner: copies are invalidated in parallel, and the owner sends the line to who needs it.
    BitVector,
}

impl Choice for Directory {
    const KIND: &'static str = "directory";
    const NAMES: &'static [(&'static str, Directory)] =
        &[("sci", Directory::Sci), ("bit-vector", Directory::BitVector)];
}

impl<'de> Deserialize<'de> for Directory {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Directory, D::Error> {
        by_name(from)
    }
}

/// An entry of one of the directories.
#[derive(Clone, Debug)]
pub enum DirectoryEntryState {
    Sci(SharingList),
    BitVector(SharerBits),
}

/// Evaluates an expression with the entry of a directory, statically dispatched.
macro_rules! with_entry {
    ($state:expr, $entry:ident => $result:expr) => {
        match $state {
            DirectoryEntryState::Sci($entry) => $result,
            DirectoryEntryState::BitVector($entry) => $result,
        }
    };
}

impl DirectoryEntryState {
    /// The entry of a line without copies in other nodes.
    pub fn new(directory: Directory) -> DirectoryEntryState {
        match directory {
            Directory::Sci => DirectoryEntryState::Sci(SharingList::default()),
            Directory::BitVector => DirectoryEntryState::BitVector(SharerBits::default()),
        }
    }
}

impl DirectoryEntry for DirectoryEntryState {
    fn is_memory_valid(&self) -> bool {
        with_entry!(self, entry => entry.is_memory_valid())
    }

    fn is_alone(&self, node: Option<u8>) -> bool {
        with_entry!(self, entry => entry.is_alone(node))
    }

    fn sharers(&self) -> u64 {
        with_entry!(self, entry => entry.sharers())
    }

    fn is_exact(&self) -> bool {
        with_entry!(self, entry => entry.is_exact())
    }

    fn list(&self) -> Option<&[u8]> {
        with_entry!(self, entry => entry.list())
    }

    fn read(&mut self, node: Option<u8>, home_has_copies: bool, exchange: &mut Exchange) {
        with_entry!(self, entry => entry.read(node, home_has_copies, exchange));
    }

    fn write(&mut self, node: Option<u8>, has_copy: bool, exchange: &mut Exchange) -> u64 {
        with_entry!(self, entry => entry.write(node, has_copy, exchange))
    }

    fn store(&mut self) {
        with_entry!(self, entry => entry.store());
    }

    fn evict(&mut self, node: u8, exchange: &mut Exchange) {
        with_entry!(self, entry => entry.evict(node, exchange));
    }
}
