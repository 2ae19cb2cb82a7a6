//! What is counted of a coherent memory.

use super::CoherenceState;

/// An operation on the bus that a load or a store needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BusOperation {
    /// A load or a fetch missed.
    Read,
    /// A store missed: the line is read, and all other copies are invalidated.
    ReadForOwnership,
    /// A store hit a line that may be in other caches: their copies are invalidated.
    Upgrade,
}

/// What a processor requests of the cache at the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProcessorRequest {
    /// A line of instructions.
    Fetch,
    /// A load.
    Load,
    /// A store.
    Store,
}

impl ProcessorRequest {
    /// All, in order.
    pub const ALL: [ProcessorRequest; 3] =
        [ProcessorRequest::Fetch, ProcessorRequest::Load, ProcessorRequest::Store];
}

/// Requests that the innermost cache did not serve alone, by their kind and the state in which the copy was found: those that
/// missed it, and stores that hit it in a line which other caches may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestStates([[u64; 5]; 3]);

impl RequestStates {
    /// How many requests of a kind found a state.
    pub fn get(&self, request: ProcessorRequest, state: CoherenceState) -> u64 {
        self.0[request as usize][state as usize]
    }

    /// How many requests of a kind there were.
    pub fn all(&self, request: ProcessorRequest) -> u64 {
        self.0[request as usize].iter().sum()
    }

    pub(super) fn add(&mut self, request: ProcessorRequest, state: CoherenceState) {
        self.0[request as usize][state as usize] += 1;
    }
}

/// Why an access missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SharingClass {
    /// The processor's first access to the line.
    Cold,
    /// The line was evicted for another one: a miss of capacity or conflict.
    Replacement,
    /// The copy was invalidated, and the processor then uses bytes that others wrote since the last miss that was not
    /// [`SharingClass::False`].
    True,
    /// The copy was invalidated, and the processor uses no such byte before it loses the line again.
    False,
}

impl SharingClass {
    /// All classes, in order.
    pub const ALL: [SharingClass; 4] =
        [SharingClass::Cold, SharingClass::Replacement, SharingClass::True, SharingClass::False];
}

/// Why a copy of a line changes its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionCause {
    /// A load of the processor.
    Load,
    /// A store of the processor.
    Store,
    /// Another processor's read on the bus.
    BusRead,
    /// Another processor's read for ownership or upgrade on the bus.
    BusInvalidate,
    /// The cache needs room.
    Eviction,
}

impl TransitionCause {
    /// All causes, in order.
    pub const ALL: [TransitionCause; 5] = [
        TransitionCause::Load,
        TransitionCause::Store,
        TransitionCause::BusRead,
        TransitionCause::BusInvalidate,
        TransitionCause::Eviction,
    ];
}

/// Changes of state, by cause, state before and state after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateCounts([[[u64; 5]; 5]; 5]);

impl StateCounts {
    /// How often copies went from one state to another one for a cause.
    pub fn get(&self, cause: TransitionCause, before: CoherenceState, after: CoherenceState) -> u64 {
        self.0[cause as usize][before as usize][after as usize]
    }

    pub(super) fn add(&mut self, cause: TransitionCause, before: CoherenceState, after: CoherenceState) {
        self.0[cause as usize][before as usize][after as usize] += 1;
    }
}

/// Copies that were invalidated, by whether they had been worth fetching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyLosses {
    /// All copies.
    pub all: u64,
    /// Copies that were fetched by misses of [`SharingClass::False`].
    pub needless: u64,
}

/// The counts of a coherent memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Misses by class: of loads and fetches, and of stores.
    pub misses: [[u64; 4]; 2],
    /// Reads for loads and fetches that missed.
    pub reads: u64,
    /// Reads for ownership.
    pub reads_for_ownership: u64,
    /// Upgrades.
    pub upgrades: u64,
    /// Upgrades that invalidated no copy: there was none any more, or the protocol has no Exclusive state.
    pub upgrades_alone: u64,
    /// Upgrades that invalidated only copies which had been fetched by misses of [`SharingClass::False`].
    pub upgrades_needless: u64,
    /// Stores to lines in the state Exclusive, which without that state would be upgrades.
    pub silent_upgrades: u64,
    /// Dirty lines that were evicted and written to memory.
    pub write_backs: u64,
    /// Dirty lines that were written to memory when another processor read them, in protocols without the Owned state.
    pub memory_updates: u64,
    /// Lines that another cache supplied, because its copy was dirty.
    pub transfers: u64,
    /// Copies that were invalidated.
    pub invalidations: CopyLosses,
    /// Changes of state.
    pub states: StateCounts,
    /// The states that requests found.
    pub requests: RequestStates,
}

impl BusCounts {
    /// All misses.
    pub fn all_misses(&self) -> u64 {
        self.misses.iter().flatten().sum()
    }

    /// The misses of a class.
    pub fn misses_of(&self, class: SharingClass) -> u64 {
        self.misses.iter().map(|misses| misses[class as usize]).sum()
    }

    /// All operations that occupy the bus: reads, reads for ownership, upgrades and write-backs. A transfer or a memory
    /// update is a part of the read that causes it.
    pub fn operations(&self) -> u64 {
        self.reads + self.reads_for_ownership + self.upgrades + self.write_backs
    }

    /// The operations that would not occur if no two processors used different bytes of the same line.
    pub fn needless(&self) -> u64 {
        self.misses_of(SharingClass::False) + self.upgrades_needless
    }
}
