//! The trait of all directories.

use crate::memory::coherence::nodes::interconnect::Exchange;

/// A directory's entry of a line. A node is given as None if it is the home node.
pub trait DirectoryEntry {
    /// Whether the home node's memory has the line as it is.
    fn is_memory_valid(&self) -> bool;

    /// Whether a node may store without a request.
    fn is_alone(&self, node: Option<u8>) -> bool;

    /// The nodes that may have copies in their far caches, as a mask.
    fn sharers(&self) -> u64;

    /// Whether a node leaves [`DirectoryEntry::sharers`] as soon as its far cache evicts the line.
    fn is_exact(&self) -> bool;

    /// The nodes with copies in the order of the directory's list, if it has one.
    fn list(&self) -> Option<&[u8]> {
        None
    }

    /// A node without a copy reads the line. `home_has_copies` says whether processors of other nodes have copies.
    fn read(&mut self, node: Option<u8>, home_has_copies: bool, exchange: &mut Exchange);

    /// A node requests to store. Returns the nodes that lose their copies.
    fn write(&mut self, node: Option<u8>, has_copy: bool, exchange: &mut Exchange) -> u64;

    /// A node that may store without a request, or has just made it, stores.
    fn store(&mut self) {}

    /// A node's far cache evicts the line.
    fn evict(&mut self, node: u8, exchange: &mut Exchange);
}
