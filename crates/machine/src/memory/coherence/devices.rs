//! Devices that read and write memory by DMA: their reads snoop, and their writes invalidate copies, or put lines into a cache.

use super::line_numbers::{bit, processors};
use super::{CoherenceState, CoherentMemory, bytes};

/// Counts of devices' accesses to lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Lines that devices read.
    pub reads: u64,
    /// Lines of these that a cache supplied, because its copy was dirty.
    pub supplied: u64,
    /// Lines that devices wrote, as a whole or in part.
    pub writes: u64,
    /// Dirty lines that caches wrote to memory first, because only a part was written.
    pub merged: u64,
    /// Copies that writes invalidated.
    pub invalidated: u64,
    /// Lines that writes put into a cache: direct cache access.
    pub placed: u64,
}

/// The effects of a device's access to a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceEvent {
    /// The processor whose dirty copy was supplied to a read.
    pub supplier: Option<u8>,
    /// The processors whose copies a write invalidated.
    pub invalidated: u64,
    /// The processor into whose cache a write put the line.
    pub placed: Option<u8>,
}

impl CoherentMemory {
    /// The counts of devices' accesses so far.
    pub fn devices(&self) -> &DeviceCounts {
        &self.device_counts
    }

    /// A device reads from a line. A dirty copy supplies it, and goes to the state that another processor's read gives it; the device
    /// keeps no copy.
    pub fn device_read(&mut self, address: u64) -> DeviceEvent {
        let line = address >> self.line_shift;
        let number = self.number(line);
        self.device_counts.reads += 1;
        let supplier = self.snoop_owner(line, number);
        self.device_counts.supplied += u64::from(supplier.is_some());
        DeviceEvent { supplier, ..DeviceEvent::default() }
    }

    /// A device writes `size` bytes of a line, all of them or a part. All copies are invalidated; a dirty one is written to memory first
    /// if a part of it stays. With [`Coherence::direct_cache_access`](crate::Coherence::direct_cache_access) the line is then in the outermost
    /// private cache of a processor, dirty.
    pub fn device_write(&mut self, processor: u8, address: u64, size: u16) -> DeviceEvent {
        let line = address >> self.line_shift;
        let number = self.number(line);
        self.device_counts.writes += 1;
        let is_whole = u64::from(size) == self.line_size();
        let offset = if is_whole { 0 } else { address };
        let written = bytes(offset, size, self.line_shift, self.grain_shift);
        self.publish(number);
        let record = &self.records[number as usize];
        if record.owner.is_some() && record.state.is_dirty() && !is_whole {
            self.device_counts.merged += 1;
        }
        let (invalidated, _) = self.invalidate_others(0, line, number);
        self.device_counts.invalidated += u64::from(invalidated.count_ones());
        let placed = self.direct_cache_access.then_some(processor);
        self.written_by_device(number, written, placed.map_or(0, bit));
        if placed.is_some() {
            self.place(processor, address, number);
        }
        DeviceEvent { supplier: None, invalidated, placed }
    }

    /// Bytes of a line are new to all processors that have used it, but for some.
    fn written_by_device(&mut self, number: u32, written: u64, excepted: u64) {
        let record = &mut self.records[number as usize];
        let others = record.touched & !excepted;
        if others == 0 {
            return;
        }
        let shared = *record.shared.get_or_insert_with(|| self.shared.add());
        for processor in processors(others) {
            *self.shared.foreign(shared, processor) |= written;
        }
    }

    /// Puts a line, of which there is no copy, into the outermost private cache of a processor.
    fn place(&mut self, processor: u8, address: u64, number: u32) {
        self.device_counts.placed += 1;
        if let Some(evicted) = self.caches[usize::from(processor)].place(address) {
            self.evict(processor, evicted);
        }
        let record = &mut self.records[number as usize];
        record.holders = bit(processor);
        record.evicted &= !bit(processor);
        (record.owner, record.state) = (Some(processor), CoherenceState::Modified);
    }
}
