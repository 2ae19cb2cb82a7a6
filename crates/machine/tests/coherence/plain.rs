//! The plain model: states of each copy, values, and sets of bytes.

use std::collections::{BTreeMap, BTreeSet};

use pathlength_machine::{BusOperation, CoherenceState, Machine, Protocol, SharingClass, TransitionCause};

use super::plain_cache::{PlainCache, remove_inner, use_first};

/// A copy of a line.
#[derive(Clone)]
pub struct PlainCopy {
    pub state: CoherenceState,
    pub data: BTreeMap<u64, u64>,
    /// The miss that fetched it: an index of [`Plain::misses`].
    pub miss: usize,
}

/// A miss, and its class when that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainMiss {
    pub is_store: bool,
    pub class: Option<SharingClass>,
}

/// The events on the bus of an access.
#[derive(Debug, PartialEq)]
pub struct PlainEvent {
    pub operation: BusOperation,
    pub supplier: Option<u8>,
    pub invalidated: Vec<u8>,
    pub needless: Vec<u8>,
}

/// The plain model.
pub struct Plain {
    pub protocol: Protocol,
    pub line: u64,
    /// By processor, from the innermost.
    pub caches: Vec<Vec<PlainCache>>,
    pub copies: Vec<BTreeMap<u64, PlainCopy>>,
    pub memory: BTreeMap<u64, u64>,
    /// The last value of each byte.
    pub latest: BTreeMap<u64, u64>,
    pub touched: Vec<BTreeSet<u64>>,
    pub evicted: Vec<BTreeSet<u64>>,
    /// Bytes that are not told apart: one in lines of up to 64 bytes.
    pub grain: u64,
    /// By processor: the bytes that others wrote since its last essential miss of their line.
    pub unseen: Vec<BTreeSet<u64>>,
    pub misses: Vec<PlainMiss>,
    pub transitions: BTreeMap<(u8, CoherenceState, CoherenceState), u64>,
    pub write_backs: u64,
    pub memory_updates: u64,
    pub transfers: u64,
}

impl Plain {
    pub fn new(machine: &Machine, processors: usize) -> Plain {
        let coherence = machine.coherence.as_ref().unwrap();
        let private = coherence.private_caches(&machine.caches);
        let caches =
            || private.iter().map(|cache| PlainCache::new(cache.line, cache.ways, cache.sets())).collect();
        Plain {
            protocol: coherence.protocol,
            line: private.last().unwrap().line,
            grain: (private.last().unwrap().line / 64).max(1),
            caches: (0..processors).map(|_| caches()).collect(),
            copies: vec![BTreeMap::new(); processors],
            memory: BTreeMap::new(),
            latest: BTreeMap::new(),
            touched: vec![BTreeSet::new(); processors],
            evicted: vec![BTreeSet::new(); processors],
            unseen: vec![BTreeSet::new(); processors],
            misses: Vec::new(),
            transitions: BTreeMap::new(),
            write_backs: 0,
            memory_updates: 0,
            transfers: 0,
        }
    }

    pub fn state(&self, processor: usize, line: u64) -> CoherenceState {
        self.copies[processor].get(&line).map_or(CoherenceState::Invalid, |copy| copy.state)
    }

    fn change(&mut self, cause: TransitionCause, before: CoherenceState, after: CoherenceState) {
        if before != after {
            *self.transitions.entry((cause as u8, before, after)).or_default() += 1;
        }
    }

    /// A copy is lost: a sharing miss that has used nothing new was false.
    fn lose(&mut self, processor: usize, line: u64) -> PlainCopy {
        let copy = self.copies[processor].remove(&line).unwrap();
        self.misses[copy.miss].class.get_or_insert(SharingClass::False);
        copy
    }

    fn write_to_memory(&mut self, copy: &PlainCopy) {
        self.memory.extend(&copy.data);
    }

    /// Uses the processor's caches; what the outermost evicts is written back.
    fn use_caches(&mut self, processor: usize, address: u64) {
        for index in (0..use_first(&mut self.caches[processor], address)).rev() {
            let caches = &mut self.caches[processor];
            let line = address / caches[index].line;
            let evicted = caches[index].fill(line);
            if let Some(evicted) = evicted.filter(|_| index + 1 == caches.len()) {
                remove_inner(&mut self.caches[processor], evicted);
                let copy = self.lose(processor, evicted);
                if matches!(copy.state, CoherenceState::Modified | CoherenceState::Owned) {
                    self.write_backs += 1;
                    self.write_to_memory(&copy);
                }
                self.change(TransitionCause::Eviction, copy.state, CoherenceState::Invalid);
                self.evicted[processor].insert(evicted);
            }
        }
    }

    pub fn access(
        &mut self,
        processor: usize,
        address: u64,
        size: u64,
        value: Option<u64>,
    ) -> Option<PlainEvent> {
        let line = address / self.line;
        let before = self.state(processor, line);
        let cause = if value.is_some() { TransitionCause::Store } else { TransitionCause::Load };
        self.use_caches(processor, address);
        let (mut supplier, mut invalidated, mut needless) = (None, Vec::new(), Vec::new());
        let operation = match (before, value.is_some()) {
            (CoherenceState::Invalid, false) => Some(BusOperation::Read),
            (CoherenceState::Invalid, true) => Some(BusOperation::ReadForOwnership),
            (CoherenceState::Shared | CoherenceState::Owned, true) => Some(BusOperation::Upgrade),
            _ => None,
        };
        let others: Vec<usize> = (0..self.copies.len())
            .filter(|&other| other != processor && self.copies[other].contains_key(&line))
            .collect();
        let mut data: BTreeMap<u64, u64> = self
            .memory
            .range(line * self.line..(line + 1) * self.line)
            .map(|(&at, &value)| (at, value))
            .collect();
        if let Some(operation) = operation {
            for &other in &others {
                let state = self.state(other, line);
                let is_dirty = matches!(state, CoherenceState::Modified | CoherenceState::Owned);
                if is_dirty && operation != BusOperation::Upgrade {
                    supplier = Some(other as u8);
                    self.transfers += 1;
                    data = self.copies[other][&line].data.clone();
                }
                if operation == BusOperation::Read {
                    let after = match (is_dirty, self.protocol) {
                        (true, Protocol::Moesi) => CoherenceState::Owned,
                        _ => CoherenceState::Shared,
                    };
                    if is_dirty && after == CoherenceState::Shared {
                        self.memory_updates += 1;
                        let copy = self.copies[other][&line].clone();
                        self.write_to_memory(&copy);
                    }
                    self.copies[other].get_mut(&line).unwrap().state = after;
                    self.change(TransitionCause::BusRead, state, after);
                } else {
                    let miss = self.copies[other][&line].miss;
                    if self.misses[miss].class.is_none() {
                        needless.push(other as u8);
                    }
                    invalidated.push(other as u8);
                    self.lose(other, line);
                    self.caches[other].last_mut().unwrap().remove(line);
                    remove_inner(&mut self.caches[other], line);
                    self.change(TransitionCause::BusInvalidate, state, CoherenceState::Invalid);
                }
            }
        }
        if before == CoherenceState::Invalid {
            let is_first = self.touched[processor].insert(line);
            let was_evicted = self.evicted[processor].remove(&line);
            let class = match (is_first, was_evicted) {
                (true, _) => Some(SharingClass::Cold),
                (_, true) => Some(SharingClass::Replacement),
                _ => None,
            };
            if class.is_some() {
                self.see_all(processor, line);
            }
            let miss = self.misses.len();
            self.misses.push(PlainMiss { is_store: value.is_some(), class });
            let state = match self.protocol {
                Protocol::Mesi | Protocol::Moesi if others.is_empty() => CoherenceState::Exclusive,
                _ => CoherenceState::Shared,
            };
            self.copies[processor].insert(line, PlainCopy { state, data, miss });
        }
        // Whether it uses what others wrote.
        let is_new =
            (address..address + size).any(|byte| self.unseen[processor].contains(&(byte / self.grain)));
        let miss = self.copies[processor][&line].miss;
        if is_new && self.misses[miss].class.is_none() {
            self.misses[miss].class = Some(SharingClass::True);
            self.see_all(processor, line);
        }
        let copy = self.copies[processor].get_mut(&line).unwrap();
        match value {
            Some(value) => {
                copy.state = CoherenceState::Modified;
                for byte in address..address + size {
                    copy.data.insert(byte, value);
                    self.latest.insert(byte, value);
                    for (other, unseen) in self.unseen.iter_mut().enumerate() {
                        if other != processor && self.touched[other].contains(&line) {
                            unseen.insert(byte / self.grain);
                        }
                    }
                }
            }
            None => {
                for byte in address..address + size {
                    assert_eq!(copy.data.get(&byte), self.latest.get(&byte), "the value of {byte:#x}");
                }
            }
        }
        let after = copy.state;
        self.change(cause, before, after);
        operation.map(|operation| PlainEvent { operation, supplier, invalidated, needless })
    }

    fn see_all(&mut self, processor: usize, line: u64) {
        let grains = line * self.line / self.grain..(line + 1) * self.line / self.grain;
        self.unseen[processor].retain(|grain| !grains.contains(grain));
    }

    /// A modified or exclusive copy is the only one; at most one is owned; shared copies are alike.
    pub fn check(&self, line: u64) {
        let copies: Vec<&PlainCopy> = self.copies.iter().filter_map(|copies| copies.get(&line)).collect();
        let count = |state| copies.iter().filter(|copy| copy.state == state).count();
        let alone = count(CoherenceState::Modified) + count(CoherenceState::Exclusive);
        assert!(alone == 0 || copies.len() == 1, "single writer or multiple readers");
        assert!(count(CoherenceState::Owned) <= 1);
        assert!(copies.windows(2).all(|pair| pair[0].data == pair[1].data), "copies differ");
    }
}
