//! Private caches of several processors, kept coherent by a snooping bus: every operation on the bus, and which misses
//! are due to sharing, true or false ([design](../../../../../docs/design/multiprocessors.md)).

mod address_spaces;
mod between_nodes;
mod check;
mod classification;
mod counts;
mod data_tlbs;
mod devices;
mod line_numbers;
mod line_record;
mod nodes;
mod private_caches;
mod protocol;
mod state;

pub use address_spaces::AddressSpaces;
pub use check::CoherenceCheck;
pub use counts::{
    BusCounts, BusOperation, CopyLosses, ProcessorRequest, RequestStates, SharingClass, StateCounts,
    TransitionCause,
};
pub use data_tlbs::DataTlbs;
pub use devices::{DeviceCounts, DeviceEvent};
pub use nodes::{Directory, Exchange, InterconnectOperation, NodeCounts, NodeMemory};
pub use protocol::Protocol;
pub use state::CoherenceState;

use crate::description::{Coherence, Machine};
use line_numbers::{LineNumbers, bit, processors};
use line_record::{LineRecord, NOT_COUNTED, SharedBytes};
use private_caches::{CacheAccess, PrivateCaches};

/// An access that needed the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusEvent {
    /// The operation.
    pub operation: BusOperation,
    /// Of a miss, its class; None of an upgrade, and of a sharing miss that is not decided yet.
    pub class: Option<SharingClass>,
    /// The number of the coherence line: small, and the same for each access to it.
    pub line: u32,
    /// The processor whose dirty copy was supplied.
    pub supplier: Option<u8>,
    /// The processors whose copies were invalidated.
    pub invalidated: u64,
    /// Those of them whose copies had been fetched by misses of [`SharingClass::False`].
    pub needless: u64,
    /// Dirty lines that were evicted for it and written to memory.
    pub write_backs: u8,
    /// Its operations on the interconnect between nodes.
    pub exchange: Exchange,
}

impl BusEvent {
    /// An operation on a line, by its number, that needs no other cache and no other node.
    fn new(operation: BusOperation, line: u32) -> BusEvent {
        let exchange = Exchange::default();
        BusEvent {
            operation,
            class: None,
            line,
            supplier: None,
            invalidated: 0,
            needless: 0,
            write_backs: 0,
            exchange,
        }
    }

    /// Whether it is a sharing miss that is not decided yet: give it a token ([`CoherentMemory::set_token`]).
    pub fn is_undecided(&self) -> bool {
        self.operation != BusOperation::Upgrade && self.class.is_none()
    }
}

/// The class of a miss that had not been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The token of the miss.
    pub token: u32,
    /// Whether it is of [`SharingClass::True`], and not of [`SharingClass::False`].
    pub is_true: bool,
}

/// The private caches of all processors.
#[derive(Debug)]
pub struct CoherentMemory {
    protocol: Protocol,
    line_shift: u32,
    /// Logarithm of the bytes that a bit of a mask of written bytes stands for: 0 in lines of up to 64 bytes.
    grain_shift: u32,
    caches: Vec<PrivateCaches>,
    /// By processor, the process that it executes.
    running: Vec<Option<u32>>,
    numbers: LineNumbers,
    records: Vec<LineRecord>,
    shared: SharedBytes,
    /// The nodes that the processors are divided into.
    nodes: Option<NodeMemory>,
    counts: BusCounts,
    direct_cache_access: bool,
    device_counts: DeviceCounts,
    decisions: Vec<Decision>,
}

/// The greatest number of processors: sets of them are masks.
const MOST_PROCESSORS: usize = 64;

impl CoherentMemory {
    /// The greatest number of processors.
    pub const MOST_PROCESSORS: usize = MOST_PROCESSORS;

    /// Processors with the private caches that a machine describes.
    ///
    /// # Panics
    /// If there are no processors, or more than [`CoherentMemory::MOST_PROCESSORS`].
    pub fn new(machine: &Machine, coherence: &Coherence, processors: usize) -> CoherentMemory {
        assert!((1..=MOST_PROCESSORS).contains(&processors), "{processors} processors");
        let private = coherence.private_caches(&machine.caches);
        let instructions = coherence.instruction_cache(&machine.caches);
        let line_shift = private.last().map_or(0, |cache| cache.line.ilog2());
        CoherentMemory {
            protocol: coherence.protocol,
            line_shift,
            grain_shift: line_shift.saturating_sub(6),
            caches: (0..processors)
                .map(|_| PrivateCaches::new(&private, instructions, &coherence.flushes))
                .collect(),
            running: vec![None; processors],
            numbers: LineNumbers::new(),
            records: Vec::new(),
            shared: SharedBytes::new(processors),
            nodes: coherence.nodes.as_ref().map(|nodes| NodeMemory::new(nodes, processors)),
            counts: BusCounts::default(),
            direct_cache_access: coherence.direct_cache_access,
            device_counts: DeviceCounts::default(),
            decisions: Vec::new(),
        }
    }

    /// Bytes of a coherence line.
    pub fn line_size(&self) -> u64 {
        1 << self.line_shift
    }

    /// The number of processors.
    pub fn processors(&self) -> usize {
        self.caches.len()
    }

    /// The counts so far. Misses that are not decided yet belong to no class.
    pub fn counts(&self) -> &BusCounts {
        &self.counts
    }

    /// The nodes, if the machine has any.
    pub fn nodes(&self) -> Option<&NodeMemory> {
        self.nodes.as_ref()
    }

    /// Resets the counts; the caches keep their contents. Misses that are not decided yet are not counted when they are.
    pub fn reset_counts(&mut self) {
        self.counts = BusCounts::default();
        self.device_counts = DeviceCounts::default();
        self.nodes.iter_mut().for_each(NodeMemory::reset_counts);
        self.decisions.clear();
        for record in &self.records {
            for processor in processors(record.undecided) {
                record.shared.iter().for_each(|&shared| *self.shared.token(shared, processor) = NOT_COUNTED);
            }
        }
    }

    /// The state of a processor's copy of the line at an address.
    pub fn state(&mut self, processor: u8, address: u64) -> CoherenceState {
        let number = self.number(address >> self.line_shift);
        self.records[number as usize].state_of(processor)
    }

    /// A processor executes a process from now on: another one finds the caches empty that the machine flushes.
    pub fn runs(&mut self, processor: u8, process: u32) {
        let running = &mut self.running[usize::from(processor)];
        if running.replace(process).is_some_and(|before| before != process) {
            self.caches[usize::from(processor)].switch();
        }
    }

    /// A processor loads or stores `size` bytes, which do not cross the end of a line. Returns what it needed the bus for.
    #[inline]
    pub fn access(&mut self, processor: u8, address: u64, size: u8, is_store: bool) -> Option<BusEvent> {
        let caches = &mut self.caches[usize::from(processor)];
        match is_store {
            true => self.counts.stores += 1,
            false => self.counts.loads += 1,
        }
        let Some(record) = caches.filtered(address, is_store) else {
            return self.access_slow(processor, address, size, is_store);
        };
        if is_store {
            self.records[record as usize].written |= bytes(address, size, self.line_shift, self.grain_shift);
        }
        None
    }

    /// An access that the hit filter did not serve.
    #[inline(never)]
    fn access_slow(&mut self, processor: u8, address: u64, size: u8, is_store: bool) -> Option<BusEvent> {
        let line = address >> self.line_shift;
        let number = self.number(line);
        let used = bytes(address, size, self.line_shift, self.grain_shift);
        let before = self.records[number as usize].state_of(processor);
        let write_backs = self.counts.write_backs;
        let CacheAccess { is_first_hit, evicted } = self.caches[usize::from(processor)].access(address);
        if let Some(evicted) = evicted {
            self.evict(processor, evicted);
        }
        let may_be_shared = matches!(before, CoherenceState::Shared | CoherenceState::Owned);
        if !is_first_hit || is_store && may_be_shared {
            let request = if is_store { ProcessorRequest::Store } else { ProcessorRequest::Load };
            self.counts.requests.add(request, before);
        }
        let mut event = match (before, is_store) {
            (CoherenceState::Invalid, false) => {
                Some(self.read(processor, line, number, used, self.protocol.loaded_alone()))
            }
            (CoherenceState::Invalid, true) => Some(self.read_for_ownership(processor, line, number, used)),
            (_, false) | (CoherenceState::Modified, true) => None,
            (CoherenceState::Exclusive, true) => {
                self.counts.silent_upgrades += 1;
                None
            }
            (CoherenceState::Shared | CoherenceState::Owned, true) => {
                Some(self.upgrade(processor, line, number))
            }
        };
        let may_change_nodes = event.is_some() || is_store && before == CoherenceState::Exclusive;
        if may_change_nodes {
            let exchange = self.obtain(processor, line, number, is_store);
            if let Some(event) = &mut event {
                event.exchange = exchange;
                event.write_backs = (self.counts.write_backs - write_backs) as u8;
            }
        }
        self.use_bytes(processor, number, used);
        let record = &mut self.records[number as usize];
        if is_store {
            (record.owner, record.state) = (Some(processor), CoherenceState::Modified);
            record.written |= used;
        }
        let after = record.state_of(processor);
        if before != after {
            let cause = if is_store { TransitionCause::Store } else { TransitionCause::Load };
            self.counts.states.add(cause, before, after);
        }
        if record.undecided & bit(processor) == 0 {
            let is_writable = after == CoherenceState::Modified;
            self.caches[usize::from(processor)].add_to_filter(address, number, is_writable);
        }
        event
    }

    /// A processor fetches the line of `size` bytes of instructions at an address, which does not cross the end of a coherence
    /// line. Its copy is Shared, never Exclusive: instructions are not stored to. Returns what it needed the bus for:
    /// nothing without a [`Coherence::instruction_cache`].
    pub fn fetch(&mut self, processor: u8, address: u64, size: u8) -> Option<BusEvent> {
        let write_backs = self.counts.write_backs;
        let CacheAccess { is_first_hit, evicted } = self.caches[usize::from(processor)].fetch(address);
        if is_first_hit {
            return None;
        }
        if let Some(evicted) = evicted {
            self.evict(processor, evicted);
        }
        let line = address >> self.line_shift;
        let number = self.number(line);
        let used = bytes(address, size, self.line_shift, self.grain_shift);
        let before = self.records[number as usize].state_of(processor);
        self.counts.requests.add(ProcessorRequest::Fetch, before);
        let is_miss = before == CoherenceState::Invalid;
        let mut event = is_miss.then(|| self.read(processor, line, number, used, CoherenceState::Shared));
        if let Some(event) = &mut event {
            event.exchange = self.obtain(processor, line, number, false);
            event.write_backs = (self.counts.write_backs - write_backs) as u8;
        }
        self.use_bytes(processor, number, used);
        if is_miss {
            self.counts.states.add(TransitionCause::Load, before, CoherenceState::Shared);
        }
        event
    }

    /// A load or a fetch that missed. `if_alone` is the state of its copy if there is no other.
    fn read(
        &mut self,
        processor: u8,
        line: u64,
        number: u32,
        used: u64,
        if_alone: CoherenceState,
    ) -> BusEvent {
        self.counts.reads += 1;
        let supplier = self.take_from_owner(line, number, false);
        let class = self.classify(processor, number, used, false);
        let record = &mut self.records[number as usize];
        if record.holders == 0 && if_alone != CoherenceState::Shared {
            (record.owner, record.state) = (Some(processor), if_alone);
        }
        record.holders |= bit(processor);
        BusEvent { class, supplier, ..BusEvent::new(BusOperation::Read, number) }
    }

    /// A store that missed.
    fn read_for_ownership(&mut self, processor: u8, line: u64, number: u32, used: u64) -> BusEvent {
        self.counts.reads_for_ownership += 1;
        let supplier = self.take_from_owner(line, number, true);
        let (invalidated, needless) = self.invalidate_others(bit(processor), line, number);
        let class = self.classify(processor, number, used, true);
        self.records[number as usize].holders |= bit(processor);
        let event = BusEvent::new(BusOperation::ReadForOwnership, number);
        BusEvent { class, supplier, invalidated, needless, ..event }
    }

    /// A store to a copy that is not the only one, as far as its processor knows.
    fn upgrade(&mut self, processor: u8, line: u64, number: u32) -> BusEvent {
        self.counts.upgrades += 1;
        let (invalidated, needless) = self.invalidate_others(bit(processor), line, number);
        match invalidated {
            0 => self.counts.upgrades_alone += 1,
            _ => self.counts.upgrades_needless += u64::from(invalidated == needless),
        }
        BusEvent { invalidated, needless, ..BusEvent::new(BusOperation::Upgrade, number) }
    }

    /// Another processor than the owner reads a line. Returns the owner if it supplies the line, as its copy is dirty.
    fn take_from_owner(&mut self, line: u64, number: u32, invalidates: bool) -> Option<u8> {
        let supplier = match invalidates {
            false => self.snoop_owner(line, number),
            true => {
                self.publish(number);
                let record = &self.records[number as usize];
                record.owner.filter(|_| record.state.is_dirty())
            }
        };
        self.counts.transfers += u64::from(supplier.is_some());
        supplier
    }

    /// A line is read on the bus. Its owner keeps a copy, in another state. Returns the owner if it supplies the line.
    fn snoop_owner(&mut self, line: u64, number: u32) -> Option<u8> {
        self.publish(number);
        let record = &mut self.records[number as usize];
        let owner = record.owner?;
        let before = record.state;
        let after = match before.is_dirty() {
            true => self.protocol.dirty_after_read(),
            false => CoherenceState::Shared,
        };
        record.state = after;
        if after == CoherenceState::Shared {
            record.owner = None;
            self.counts.memory_updates += u64::from(before.is_dirty());
        }
        if before != after {
            self.counts.states.add(TransitionCause::BusRead, before, after);
        }
        self.caches[usize::from(owner)].protect(line);
        before.is_dirty().then_some(owner)
    }

    /// The line is no longer Modified: what its owner has written is new to all other processors.
    fn publish(&mut self, number: u32) {
        let record = &mut self.records[number as usize];
        let written = std::mem::take(&mut record.written);
        if let (Some(owner), Some(shared)) = (record.owner, record.shared)
            && written != 0
        {
            for other in processors(record.touched & !bit(owner)) {
                *self.shared.foreign(shared, other) |= written;
            }
        }
    }

    /// Invalidates all copies but those of some processors. Returns the processors that had one, and those of them that had
    /// fetched it needlessly.
    fn invalidate_others(&mut self, kept: u64, line: u64, number: u32) -> (u64, u64) {
        let record = &mut self.records[number as usize];
        let others = record.holders & !kept;
        let needless = others & record.undecided;
        for other in processors(others) {
            let before = self.records[number as usize].state_of(other);
            self.counts.states.add(TransitionCause::BusInvalidate, before, CoherenceState::Invalid);
            self.decide(other, number, false);
            self.caches[usize::from(other)].invalidate(line);
        }
        let record = &mut self.records[number as usize];
        record.holders &= kept;
        if record.owner.is_none_or(|owner| kept & bit(owner) == 0) {
            (record.owner, record.state) = (None, CoherenceState::Invalid);
        }
        self.counts.invalidations.all += u64::from(others.count_ones());
        self.counts.invalidations.needless += u64::from(needless.count_ones());
        (others, needless)
    }

    /// A cache has evicted a line.
    fn evict(&mut self, processor: u8, line: u64) {
        let number = self.number(line);
        let before = self.records[number as usize].state_of(processor);
        self.decide(processor, number, false);
        if before == CoherenceState::Modified {
            self.publish(number);
        }
        let record = &mut self.records[number as usize];
        record.holders &= !bit(processor);
        record.evicted |= bit(processor);
        if record.owner == Some(processor) {
            (record.owner, record.state) = (None, CoherenceState::Invalid);
        }
        self.counts.write_backs += u64::from(before.is_dirty());
        self.counts.states.add(TransitionCause::Eviction, before, CoherenceState::Invalid);
    }

    /// The number of a line.
    fn number(&mut self, line: u64) -> u32 {
        let number = self.numbers.number(line);
        if self.records.len() == number as usize {
            self.records.push(LineRecord::new());
        }
        number
    }

    /// Checks a line's copies: a dirty or exclusive one is the only one, but for the state Owned, and the caches have the
    /// copies that the record says.
    pub fn check(&mut self, address: u64) -> Result<(), String> {
        let line = address >> self.line_shift;
        let number = self.number(line);
        let record = &self.records[number as usize];
        let is_alone = record.holders.count_ones() == 1;
        let is_owned = record.owner.is_none_or(|owner| record.holders & bit(owner) != 0);
        let is_single = record.owner.is_none() || is_alone || record.state == CoherenceState::Owned;
        let are_there = (0..)
            .zip(&self.caches)
            .all(|(one, caches)| caches.holds(line) == (record.holders & bit(one) != 0));
        match is_owned && is_single && are_there {
            true => self.check_nodes(line),
            false => Err(format!("line {line:#x}: {record:?}")),
        }
    }
}

/// The bytes of a line that an access uses, a bit each.
#[inline(always)]
fn bytes(address: u64, size: impl Into<u64>, line_shift: u32, grain_shift: u32) -> u64 {
    let offset = address & ((1 << line_shift) - 1);
    let (first, last) = (offset >> grain_shift, (offset + size.into() - 1) >> grain_shift);
    let count = last - first + 1;
    (u64::MAX >> (64 - count)) << first
}
