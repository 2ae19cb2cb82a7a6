//! Checks coherence while it is simulated, without the records by which [`CoherentMemory`] keeps its states.

use std::collections::HashMap;

use super::{BusEvent, BusOperation, CoherenceState, CoherentMemory, DeviceEvent, line_numbers::processors};

/// Follows the value of each line through caches and memory: the number of the store that made it. Each access must find the
/// last one (the data-value invariant), and a store must leave no other copy (single writer or multiple readers).
#[derive(Debug, Default)]
pub struct CoherenceCheck {
    lines: HashMap<u64, CheckedLine>,
    accesses: u64,
    error: Option<String>,
}

/// A line.
#[derive(Debug, Default)]
struct CheckedLine {
    /// The number of the last store.
    latest: u64,
    /// The store whose value memory has, or a cache of its node.
    memory: u64,
    /// The processor whose copy has what memory has not.
    dirty: Option<u8>,
    /// The processors that got a copy, each with the store whose value it has. Evicted copies are among them.
    copies: Vec<(u8, u64)>,
}

impl CheckedLine {
    fn value_of(&self, processor: u8) -> Option<u64> {
        self.copies.iter().find(|copy| copy.0 == processor).map(|copy| copy.1)
    }

    fn set(&mut self, processor: u8, value: u64) {
        self.copies.retain(|copy| copy.0 != processor);
        self.copies.push((processor, value));
    }

    /// A dirty copy that is there no more, and was not invalidated for somebody else's store, has been written back.
    fn write_back(&mut self, memory: &mut CoherentMemory, (processor, address): (u8, u64), invalidated: u64) {
        if let Some(owner) = self.dirty
            && invalidated >> owner & 1 == 0
            && (owner == processor || memory.state(owner, address) == CoherenceState::Invalid)
        {
            self.memory = self.value_of(owner).unwrap_or_default();
            self.dirty = None;
        }
    }

    /// The value that a miss brings, and what it changes in memory.
    fn fetch(
        &mut self,
        memory: &mut CoherentMemory,
        (processor, address): (u8, u64),
        event: &BusEvent,
    ) -> Option<u64> {
        let Some(supplier) = event.supplier else {
            self.write_back(memory, (processor, address), event.invalidated);
            return Some(self.memory);
        };
        let value = self.value_of(supplier)?;
        if event.operation == BusOperation::Read && memory.state(supplier, address) != CoherenceState::Owned {
            (self.memory, self.dirty) = (value, None);
        }
        Some(value)
    }
}

impl CoherenceCheck {
    /// Nothing has been checked.
    pub fn new() -> CoherenceCheck {
        CoherenceCheck::default()
    }

    /// An access of a processor to an address of a line, which needed the bus or not, has been simulated.
    pub fn accessed(
        &mut self,
        memory: &mut CoherentMemory,
        (processor, address, is_store): (u8, u64, bool),
        event: Option<&BusEvent>,
    ) {
        self.accesses += 1;
        let line = self.lines.entry(address / memory.line_size()).or_default();
        let found = match event {
            Some(event) if event.operation != BusOperation::Upgrade => {
                line.fetch(memory, (processor, address), event)
            }
            _ => line.value_of(processor),
        };
        for lost in processors(event.map_or(0, |event| event.invalidated)) {
            line.copies.retain(|copy| copy.0 != lost);
        }
        let mut error = (found != Some(line.latest)).then(|| match found {
            Some(found) => {
                format!("processor {processor} finds the value of store {found}, not {}", line.latest)
            }
            None => format!("processor {processor} uses a copy that nobody has"),
        });
        line.set(processor, line.latest);
        if is_store {
            line.latest += 1;
            line.dirty = Some(processor);
            line.set(processor, line.latest);
            let others = line.copies.iter().map(|copy| copy.0).filter(|&other| other != processor);
            let left =
                others.into_iter().find(|&other| memory.state(other, address) != CoherenceState::Invalid);
            let kept = left
                .map(|other| format!("processor {processor} stores, and processor {other} keeps its copy"));
            error = error.or(kept);
            line.copies.retain(|copy| copy.0 == processor);
        }
        let number = self.accesses;
        self.error = self
            .error
            .take()
            .or_else(|| error.map(|error| format!("access {number} to {address:#x}: {error}")));
    }

    /// A device has read from a line, or written to it.
    pub fn device_accessed(
        &mut self,
        memory: &mut CoherentMemory,
        (address, is_write): (u64, bool),
        event: &DeviceEvent,
    ) {
        self.accesses += 1;
        let number = self.accesses;
        let line = self.lines.entry(address / memory.line_size()).or_default();
        if is_write {
            line.latest += 1;
            line.copies = event.placed.map(|processor| (processor, line.latest)).into_iter().collect();
            line.dirty = event.placed;
            if event.placed.is_none() {
                line.memory = line.latest;
            }
            return;
        }
        let found = match event.supplier {
            Some(supplier) => line.value_of(supplier),
            None => {
                line.write_back(memory, (u8::MAX, address), 0);
                Some(line.memory)
            }
        };
        if let Some(supplier) = event.supplier
            && memory.state(supplier, address) != CoherenceState::Owned
        {
            (line.memory, line.dirty) = (found.unwrap_or_default(), None);
        }
        if found != Some(line.latest) {
            let latest = line.latest;
            let error = format!(
                "access {number} to {address:#x}: a device does not read the value of store {latest}"
            );
            self.error.get_or_insert(error);
        }
    }

    /// The number of accesses that were checked.
    ///
    /// # Errors
    /// The first access that violates an invariant.
    pub fn result(&self) -> Result<u64, String> {
        self.error.clone().map_or(Ok(self.accesses), Err)
    }
}
