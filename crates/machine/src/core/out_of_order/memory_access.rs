//! Loads and stores: lines, the store queue, and writes after retirement.

use super::core::{OutOfOrderCore, Stages};
use super::fetch::Wait;
use super::outstanding::LineState;
use super::rules::{CoreInstruction, REGISTERS};
use super::store_queue::QueuedStore;
use crate::core::pipeline::registers::NONE;
use crate::core::pipeline::{Cause, LEVELS, MemorySystem, ServedBy};

impl<M: MemorySystem> OutOfOrderCore<M> {
    /// Executes a load. Returns when its data are there.
    #[inline(always)]
    pub(super) fn load(
        &mut self,
        instruction: &CoreInstruction,
        address: u64,
        served: ServedBy,
        stages: Stages,
        late: &mut [Wait; 3],
    ) -> u64 {
        let Stages { dispatched, issued } = stages;
        let latency = u64::from(instruction.latency);
        let translated = issued + u64::from(served.translation);
        late[0] = (translated, Cause::DataTranslation);
        if let Some(store) = self.queue.find(address, instruction.bytes, issued) {
            self.counts.forwarded += 1;
            let data = match store.contains(address, instruction.bytes) {
                true => translated.max(store.data) + self.settings.forward,
                false => translated.max(store.written + self.settings.partial_forward) + latency,
            };
            late[1] = (data, Cause::Forwarding);
            return data;
        }
        let (requested, data, level) = self.line(address, served.level, translated, dispatched, latency);
        if level > 0 {
            late[1] = (requested, Cause::OutstandingMisses);
            late[2] = (data, Cause::DataMiss(level));
        }
        data
    }

    /// Reads a line in a cycle: when it is requested, when the data are there, and from which level they come.
    #[inline(always)]
    pub(super) fn line(
        &mut self,
        address: u64,
        level: u8,
        cycle: u64,
        dispatched: u64,
        latency: u64,
    ) -> (u64, u64, u8) {
        let line = address >> self.settings.line_shift;
        match self.lines.find(line, level, cycle, dispatched) {
            LineState::Present => (cycle, cycle + latency, 0),
            LineState::Arrives(arrives, level) => (cycle, arrives.max(cycle + latency), level),
            LineState::Absent(level) => {
                let level = level.clamp(1, LEVELS as u8);
                let requested = self.lines.next_request(cycle, level);
                let arrives = requested + latency + u64::from(self.settings.load_cycles[level as usize]);
                self.lines.request(line, requested, arrives, level);
                (requested, arrives, level)
            }
        }
    }

    /// Computes the address of a store.
    #[inline(always)]
    pub(super) fn address(
        &mut self,
        instruction: &CoreInstruction,
        address: u64,
        served: ServedBy,
        issued: u64,
        late: &mut Wait,
    ) -> QueuedStore {
        let known = issued + u64::from(instruction.latency) + u64::from(served.translation);
        *late = (issued + u64::from(served.translation), Cause::DataTranslation);
        let data = (issued + u64::from(instruction.latency)).max(match instruction.data {
            NONE => 0,
            data => self.window.ready[data as usize % REGISTERS],
        });
        let bytes = instruction.bytes;
        QueuedStore { address, bytes, known, data, written: 0 }
    }

    /// Writes a retired store to L1. Returns when it is written.
    #[inline(always)]
    pub(super) fn write(&mut self, mut store: QueuedStore, level: u8, retired: u64, dispatched: u64) -> u64 {
        let (_, arrives, _) = self.line(store.address, level, retired + 1, dispatched, 0);
        let (last, count) = self.window.written;
        store.written = arrives.max(last + u64::from(count == self.settings.writes));
        self.window.written = (store.written, if store.written == last { count + 1 } else { 1 });
        self.window.known_stores = self.window.known_stores.max(store.known);
        self.queue.add(store);
        store.written
    }
}
