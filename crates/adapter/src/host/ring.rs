//! The host's side of the ring of commands.

use std::collections::VecDeque;

use crate::hardware::{DmaCommand, Hardware};

/// The commands that the host wants executed: those in the ring, and those for which it has no room yet.
#[derive(Clone, Debug, Default)]
pub struct CommandRing {
    producer: u32,
    in_ring: u32,
    waiting: VecDeque<DmaCommand>,
    is_changed: bool,
}

impl CommandRing {
    /// Appends a command. The adapter does not know before it is told of the new index.
    pub fn push(&mut self, hardware: &mut Hardware, command: DmaCommand) {
        self.waiting.push_back(command);
        self.fill(hardware);
    }

    /// A command was executed: its entry is free.
    pub fn executed(&mut self, hardware: &mut Hardware) {
        self.in_ring = self.in_ring.saturating_sub(1);
        self.fill(hardware);
    }

    /// The index to tell the adapter, if it has changed since the last time.
    pub fn take_producer(&mut self) -> Option<u32> {
        std::mem::take(&mut self.is_changed).then_some(self.producer)
    }

    fn fill(&mut self, hardware: &mut Hardware) {
        let ring = hardware.description().dma.ring;
        while self.in_ring + 1 < ring {
            let Some(command) = self.waiting.pop_front() else { return };
            hardware.write_command(self.producer, command);
            self.producer = (self.producer + 1) % ring;
            self.in_ring += 1;
            self.is_changed = true;
        }
    }
}
