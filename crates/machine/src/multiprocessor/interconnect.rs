//! The interconnect between nodes in time: when their interfaces and directories are free.

use super::bus::nanoseconds;
use crate::description::Nodes;
use crate::memory::coherence::Exchange;

/// How the interconnect was used. Times are picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterconnectUse {
    /// How long the interface of each node was occupied by operations that it began.
    pub interfaces: Vec<u64>,
    /// How long the directory of each node was.
    pub directories: Vec<u64>,
}

/// The interconnect. Times are picoseconds since the beginning.
#[derive(Clone, Debug)]
pub struct InterconnectClock {
    hop: u64,
    directory: u64,
    interface: u64,
    interfaces_free: Vec<u64>,
    directories_free: Vec<u64>,
    used: InterconnectUse,
}

impl InterconnectClock {
    /// An interconnect of a number of nodes, on which nothing happens.
    pub fn new(nodes: &Nodes, count: usize) -> InterconnectClock {
        InterconnectClock {
            hop: nanoseconds(nodes.hop_ns),
            directory: nanoseconds(nodes.directory_ns),
            interface: nanoseconds(nodes.interface_ns),
            interfaces_free: vec![0; count],
            directories_free: vec![0; count],
            used: InterconnectUse { interfaces: vec![0; count], directories: vec![0; count] },
        }
    }

    /// How it was used so far.
    pub fn used(&self) -> &InterconnectUse {
        &self.used
    }

    /// Resets what was counted.
    pub fn reset_counts(&mut self) {
        let InterconnectUse { interfaces, directories } = &mut self.used;
        interfaces.iter_mut().chain(directories).for_each(|time| *time = 0);
    }

    /// What an access of a node's processor needs, from a time on. The interface of the node sends all of it, one operation after
    /// the other, and the access waits for the messages and for the directory at the line's home. Returns when it has ended.
    pub fn exchange(&mut self, now: u64, node: usize, exchange: &Exchange) -> u64 {
        let start = now.max(self.interfaces_free[node]);
        let sent = self.interface * exchange.count();
        self.interfaces_free[node] = start + sent;
        self.used.interfaces[node] += sent;
        let mut end = start + self.hop * u64::from(exchange.hops);
        let lookups = self.directory * u64::from(exchange.lookups);
        if exchange.lookups > 0 {
            let home = usize::from(exchange.home);
            let asked = start + self.hop;
            let served = asked.max(self.directories_free[home]);
            self.directories_free[home] = served + lookups;
            self.used.directories[home] += lookups;
            end += served - asked + lookups;
        }
        end
    }

    /// How long the same takes where nothing else happens.
    pub fn unloaded(&self, exchange: &Exchange) -> u64 {
        self.hop * u64::from(exchange.hops) + self.directory * u64::from(exchange.lookups)
    }
}
