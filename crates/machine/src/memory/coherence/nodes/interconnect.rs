//! Operations on the interconnect between nodes.

/// An operation on the interconnect: a message from a node to another one, with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterconnectOperation {
    /// A load's request for a line to the node that has it in memory, or from there to the node that has changed it.
    Read,
    /// A store's request for a line.
    ReadExclusive,
    /// A request to the home node to store to a line that the node has.
    Upgrade,
    /// The home node does not have the line: the node that has changed it sends it.
    Forward,
    /// A node's copy is invalidated.
    Invalidation,
    /// The far cache has evicted a line that was changed: it is written to the home node's memory.
    WriteBack,
    /// A node enters a list or leaves it, or gives up a line that it might have changed.
    DirectoryUpdate,
}

impl InterconnectOperation {
    /// All, in order.
    pub const ALL: [InterconnectOperation; 7] = [
        InterconnectOperation::Read,
        InterconnectOperation::ReadExclusive,
        InterconnectOperation::Upgrade,
        InterconnectOperation::Forward,
        InterconnectOperation::Invalidation,
        InterconnectOperation::WriteBack,
        InterconnectOperation::DirectoryUpdate,
    ];
}

/// The operations on the interconnect that one access needs, and how long it waits for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// By [`InterconnectOperation`].
    pub operations: [u8; 7],
    /// Messages that are waited for, one after the other.
    pub hops: u8,
    /// Requests to a directory that are waited for.
    pub lookups: u8,
    /// The node whose memory has the line.
    pub home: u8,
}

impl Exchange {
    /// All operations.
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|&count| u64::from(count)).sum()
    }

    /// An operation for which the access does not wait.
    pub(super) fn add(&mut self, operation: InterconnectOperation) {
        self.operations[operation as usize] += 1;
    }

    /// An operation whose message and answer are waited for.
    pub(super) fn wait(&mut self, operation: InterconnectOperation) {
        self.add(operation);
        self.hops += 2;
    }

    /// A request to the directory of the home node.
    pub(super) fn ask_home(&mut self, operation: InterconnectOperation) {
        self.wait(operation);
        self.lookups += 1;
    }
}
