//! SCI's directory (IEEE 1596-1992): the home node's memory has the head of a list of the nodes with a copy.

use super::entry::DirectoryEntry;
use crate::memory::coherence::line_numbers::bit;
use crate::memory::coherence::nodes::interconnect::{Exchange, InterconnectOperation};

/// A line's list. The home node itself is in none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingList {
    /// The nodes with a copy in their far caches, the head first.
    nodes: Vec<u8>,
    /// The head has stored to the line: the memory is stale (SCI's state GONE; with a list and without this, FRESH).
    is_gone: bool,
}

impl SharingList {
    /// Only the head may purge the others.
    fn become_head(&mut self, node: u8, exchange: &mut Exchange) {
        let position = self.nodes.iter().position(|&other| other == node);
        if let Some(position) = position
            && position > 0
        {
            (0..self.neighbours(position))
                .for_each(|_| exchange.wait(InterconnectOperation::DirectoryUpdate));
        }
        match position {
            Some(0) if self.is_gone => return,
            Some(_) => exchange.ask_home(InterconnectOperation::Upgrade),
            None => exchange.ask_home(InterconnectOperation::ReadExclusive),
        }
        let has_old_head = self.nodes.first().is_some_and(|&head| head != node);
        match has_old_head {
            true if self.is_gone && position.is_none() => exchange.wait(InterconnectOperation::Forward),
            true => exchange.wait(InterconnectOperation::DirectoryUpdate),
            false => {}
        }
    }

    /// How many nodes a node must tell that it leaves the list, beside the home node.
    fn neighbours(&self, position: usize) -> usize {
        usize::from(position > 0) + usize::from(position + 1 < self.nodes.len())
    }
}

impl DirectoryEntry for SharingList {
    /// Whether the home node's memory has the line as it is.
    fn is_memory_valid(&self) -> bool {
        !self.is_gone
    }

    /// Whether a node may store without asking: None is the home node.
    fn is_alone(&self, node: Option<u8>) -> bool {
        match node {
            None => self.nodes.is_empty(),
            Some(node) => self.is_gone && self.nodes == [node],
        }
    }

    /// The nodes that have copies, as a mask.
    fn sharers(&self) -> u64 {
        self.nodes.iter().fold(0, |mask, &node| mask | bit(node))
    }

    fn is_exact(&self) -> bool {
        true
    }

    /// The head first.
    fn list(&self) -> Option<&[u8]> {
        Some(&self.nodes)
    }

    /// A node without a copy reads the line. It becomes the head.
    fn read(&mut self, node: Option<u8>, _home_has_copies: bool, exchange: &mut Exchange) {
        let Some(node) = node else {
            // The head sends the line to the home node, whose memory has it from now on.
            exchange.wait(InterconnectOperation::Read);
            self.is_gone = false;
            return;
        };
        exchange.ask_home(InterconnectOperation::Read);
        if self.is_gone {
            exchange.wait(InterconnectOperation::Forward);
        } else if !self.nodes.is_empty() {
            // The data have come from memory; meanwhile the old head learns its predecessor.
            exchange.add(InterconnectOperation::DirectoryUpdate);
        }
        self.nodes.insert(0, node);
    }

    /// A node stores that may not yet. Returns the nodes that lose their copies.
    fn write(&mut self, node: Option<u8>, _has_copy: bool, exchange: &mut Exchange) -> u64 {
        match node {
            None if self.is_gone => exchange.wait(InterconnectOperation::ReadExclusive),
            None => {}
            Some(node) => self.become_head(node, exchange),
        }
        // The old head has given its copy up with the line.
        let has_given_up = usize::from(node.is_none() && self.is_gone);
        let others = self.nodes.iter().filter(|&&other| Some(other) != node);
        others.skip(has_given_up).for_each(|_| exchange.wait(InterconnectOperation::Invalidation));
        let lost = self.sharers() & !node.map_or(0, bit);
        self.nodes.clear();
        self.nodes.extend(node);
        self.is_gone = node.is_some();
        lost
    }

    /// A node's far cache evicts the line.
    fn evict(&mut self, node: u8, exchange: &mut Exchange) {
        let Some(position) = self.nodes.iter().position(|&other| other == node) else { return };
        let is_last = self.nodes.len() == 1;
        match is_last && self.is_gone {
            true => exchange.add(InterconnectOperation::WriteBack),
            false => {
                // The head tells the home node.
                let told = self.neighbours(position) + usize::from(position == 0);
                (0..told).for_each(|_| exchange.add(InterconnectOperation::DirectoryUpdate));
            }
        }
        self.nodes.remove(position);
        self.is_gone &= !is_last;
    }
}
