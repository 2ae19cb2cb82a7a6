//! A directory with a bit for each node, as in present-day machines.

use super::entry::DirectoryEntry;
use crate::memory::coherence::line_numbers::bit;
use crate::memory::coherence::nodes::interconnect::{Exchange, InterconnectOperation};

/// What the home node knows of a line's copies in other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharerBits {
    /// The nodes that have a copy, or have evicted an unchanged one since.
    sharers: u64,
    /// The node with the only copy, which may store to it.
    owner: Option<u8>,
    /// The owner has stored to it: memory is stale.
    is_dirty: bool,
}

impl SharerBits {
    /// The owner sends the line to the node that asked, and to memory.
    fn take_from_owner(&mut self, exchange: &mut Exchange) {
        if self.owner.take().is_some() {
            exchange.add(InterconnectOperation::Forward);
            exchange.hops += 1;
        }
        self.is_dirty = false;
    }
}

impl DirectoryEntry for SharerBits {
    /// Whether the home node's memory may be read.
    fn is_memory_valid(&self) -> bool {
        self.owner.is_none()
    }

    /// Whether a node may store without asking: None is the home node.
    fn is_alone(&self, node: Option<u8>) -> bool {
        match node {
            None => self.sharers == 0,
            Some(node) => self.owner == Some(node),
        }
    }

    /// The nodes that may have copies, as a mask.
    fn sharers(&self) -> u64 {
        self.sharers
    }

    /// Nodes evict unchanged copies without a message.
    fn is_exact(&self) -> bool {
        false
    }

    /// A node without a copy reads the line. It owns it if nobody else has one.
    fn read(&mut self, node: Option<u8>, home_has_copies: bool, exchange: &mut Exchange) {
        let Some(node) = node else {
            exchange.wait(InterconnectOperation::Read);
            (self.owner, self.is_dirty) = (None, false);
            return;
        };
        exchange.ask_home(InterconnectOperation::Read);
        let is_only = self.sharers & !bit(node) == 0 && !home_has_copies;
        self.take_from_owner(exchange);
        self.owner = is_only.then_some(node);
        self.sharers |= bit(node);
    }

    /// A node stores that may not yet. Returns the nodes that lose their copies.
    fn write(&mut self, node: Option<u8>, has_copy: bool, exchange: &mut Exchange) -> u64 {
        let lost = self.sharers & !node.map_or(0, bit);
        let was_owned = self.owner.is_some();
        match (node, was_owned) {
            (None, true) => exchange.wait(InterconnectOperation::ReadExclusive),
            (None, false) => exchange.hops += 1,
            (Some(_), _) if has_copy => exchange.ask_home(InterconnectOperation::Upgrade),
            (Some(_), _) => exchange.ask_home(InterconnectOperation::ReadExclusive),
        }
        if was_owned && node.is_some() {
            self.take_from_owner(exchange);
        } else if !was_owned && lost != 0 {
            // All are told at the same time, and answer the node that asked.
            exchange.operations[InterconnectOperation::Invalidation as usize] += lost.count_ones() as u8;
            exchange.hops += 1;
        }
        (self.sharers, self.owner, self.is_dirty) = (node.map_or(0, bit), node, node.is_some());
        lost
    }

    /// The owner stores without asking.
    fn store(&mut self) {
        self.is_dirty = self.owner.is_some();
    }

    /// A node's far cache evicts the line: nobody is told of an unchanged copy that others may have, too.
    fn evict(&mut self, node: u8, exchange: &mut Exchange) {
        if self.owner != Some(node) {
            return;
        }
        exchange.add(match self.is_dirty {
            true => InterconnectOperation::WriteBack,
            false => InterconnectOperation::DirectoryUpdate,
        });
        *self = SharerBits::default();
    }
}
