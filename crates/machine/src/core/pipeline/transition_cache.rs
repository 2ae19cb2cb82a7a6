//! The transition cache: by the state in which a segment begins, and the responses of memory, the outcome and
//! the state in which it ends.
//!
//! A pipeline meets few states between two segments, and programs repeat themselves: more than 99 of 100
//! executions of a segment are transitions that were made before (the memoization of FastSim: Schnarr and
//! Larus, 1998).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::ops::Range;

use hashbrown::HashTable;

use super::cycles::Cause;
use super::front_end::BlockEntry;
use super::issue::SiteCycles;
use super::memory_response::MemoryResponse;
use super::state::PipelineState;
use super::timing_outcome::{CachedOutcome, Costs, OutcomeDetails, StoreLoadPair, StoreTime, TimingOutcome};

/// The size of the cache: transitions, the instructions that they issue, and states.
const MAX_TRANSITIONS: usize = 1 << 17;
const MAX_INSTRUCTIONS: usize = 1 << 21;
const MAX_STATES: usize = 1 << 15;

/// How a segment begins: the state, the way it is entered, and its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TransitionKey {
    state_and_entry: u32,
    segment: u32,
}

impl TransitionKey {
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self.state_and_entry) << 32 | u64::from(self.segment)
    }
}

/// A transition: one line of the host's cache.
#[repr(align(64))]
struct Transition {
    key: TransitionKey,
    /// The first response as a word, or 0, and the number of responses.
    first: u64,
    count: u8,
    inline: Inline,
    drains_in: u16,
    to: u32,
    executions: u64,
    /// The transition that followed last: one without responses, and one with some.
    next: [u32; 2],
    outcome: TimingOutcome,
}

const _: () = assert!(mem::size_of::<Transition>() == 64);

/// What an outcome holds itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inline {
    All,
    /// All but lines and store-load pairs.
    CostsAndStores,
    /// Neither those nor costs and stores.
    Nothing,
}

/// Fields of a transition that are rarely read.
struct ColdFields {
    /// Ranges of its lines, of its store-load pairs, and of the stores that the outcome has no room for.
    lines: Range<u32>,
    store_load_pairs: Range<u32>,
    stores: Range<u32>,
    responses: Box<[MemoryResponse]>,
    costs: Box<Costs>,
    /// The previous transition of the same segment, from 1; 0 if this is the first.
    before: u32,
}

/// A state by its number, and the cycles until the pipeline has drained, or [`NEVER`].
#[derive(Clone, Copy)]
struct StateRef {
    state: u32,
    drains_in: u16,
}

const NEVER: u16 = u16::MAX;

/// The number of no transition.
const NONE: u32 = u32::MAX;

/// The cache.
pub(super) struct TransitionCache {
    /// The first one is the drained pipeline.
    states: Vec<PipelineState>,
    state_numbers: HashMap<PipelineState, StateRef, BuildHasherDefault<Mixer>>,
    /// The current state, and the instructions issued in the last cycle.
    at: StateRef,
    open: u8,
    entries: Vec<Transition>,
    /// By transition.
    cold: Vec<ColdFields>,
    /// The transition that led to the current state, or [`NONE`].
    previous: u32,
    /// The stores, outstanding lines and store-load pairs of outcomes that do not hold them.
    stores: Vec<StoreTime>,
    lines: Vec<u32>,
    store_load_pairs: Vec<StoreLoadPair>,
    /// Instructions of all transitions.
    instructions: usize,
    /// The numbers of transitions, by the hash of key and responses.
    table: HashTable<u32>,
}

impl TransitionCache {
    /// An empty cache for a drained pipeline.
    pub fn new(drained: PipelineState) -> TransitionCache {
        let mut transitions = TransitionCache {
            states: Vec::new(),
            state_numbers: HashMap::default(),
            at: StateRef { state: 0, drains_in: 0 },
            open: 0,
            entries: Vec::new(),
            cold: Vec::new(),
            previous: NONE,
            stores: Vec::new(),
            lines: Vec::new(),
            store_load_pairs: Vec::new(),
            instructions: 0,
            table: HashTable::new(),
        };
        transitions.enter(drained, Some(0));
        transitions
    }

    /// The current state.
    pub fn state(&self) -> &PipelineState {
        &self.states[self.at.state as usize]
    }

    /// The earliest arrival of the next group, and why, if the last instruction trapped.
    pub fn restart_after(&self, last: u64) -> Option<(u64, Cause)> {
        if self.at.drains_in == NEVER { self.state().restart_after(last) } else { None }
    }

    /// Instructions issued in the last cycle.
    pub fn open(&self) -> usize {
        self.open.into()
    }

    /// Lets cycles pass. Returns whether the pipeline has drained by then; if so, that is the current state.
    pub fn advance(&mut self, cycles: u64) -> bool {
        let settles = cycles > 0 && self.at.drains_in != NEVER && cycles >= u64::from(self.at.drains_in);
        if settles {
            (self.at, self.open, self.previous) = (StateRef { state: 0, drains_in: 0 }, 0, NONE);
        }
        settles
    }

    /// The key of a segment that is entered now.
    #[inline(always)]
    pub fn key(&self, entry: BlockEntry, segment: u32) -> TransitionKey {
        TransitionKey { state_and_entry: self.at.state * BlockEntry::COUNT + entry as u32, segment }
    }

    /// The number of a transition, if it is cached. The one that followed last is tried first, or `recent`
    /// if no transition led to the current state.
    #[inline(always)]
    pub fn find(&self, key: TransitionKey, responses: &[MemoryResponse], recent: u32) -> Option<u32> {
        let previous = self.entries.get(self.previous as usize);
        let probably = previous.map_or(recent, |previous| previous.next[usize::from(!responses.is_empty())]);
        if self.is(probably, key, responses) { Some(probably) } else { self.search(key, responses) }
    }

    /// Whether a number is that of a transition.
    #[inline(always)]
    fn is(&self, number: u32, key: TransitionKey, responses: &[MemoryResponse]) -> bool {
        let Some(transition) = self.entries.get(number as usize) else { return false };
        // Branch-free: which of them differs is unpredictable.
        let differences = (transition.key.word() ^ key.word())
            | (transition.first ^ first_word(responses))
            | (u64::from(transition.count) ^ responses.len() as u64);
        differences == 0 && (responses.len() < 2 || *self.cold[number as usize].responses == *responses)
    }

    fn search(&self, key: TransitionKey, responses: &[MemoryResponse]) -> Option<u32> {
        self.table.find(hash(key, responses), |&number| self.is(number, key, responses)).copied()
    }

    /// The outcome of a transition.
    #[inline(always)]
    pub fn cached(&self, number: u32) -> CachedOutcome<'_> {
        let Transition { outcome, inline, .. } = &self.entries[number as usize];
        let mut cached =
            CachedOutcome { outcome, more_stores: &[], lines: &[], store_load_pairs: &[], costs: None };
        if *inline != Inline::All {
            let ColdFields { lines, store_load_pairs, stores, costs, .. } = &self.cold[number as usize];
            cached.lines = &self.lines[lines.start as usize..lines.end as usize];
            cached.store_load_pairs =
                &self.store_load_pairs[store_load_pairs.start as usize..store_load_pairs.end as usize];
            cached.more_stores = &self.stores[stores.start as usize..stores.end as usize];
            cached.costs = (*inline == Inline::Nothing).then_some(costs);
        }
        cached
    }

    /// Makes a cached transition. If none led to the current state, it becomes `recent`.
    #[inline(always)]
    pub fn apply(&mut self, number: u32, has_responses: bool, recent: &mut u32) {
        let previous = self.entries.get_mut(self.previous as usize);
        *previous.map_or(recent, |previous| &mut previous.next[usize::from(has_responses)]) = number;
        self.previous = number;
        let transition = &mut self.entries[number as usize];
        transition.executions += 1;
        self.at = StateRef { state: transition.to, drains_in: transition.drains_in };
        self.open = transition.outcome.open;
    }

    /// Adds the transition that led to the current state, if its outcome can be repeated: returns its number,
    /// or else gives the costs back. `before` is the previous transition of the same segment.
    pub fn add(
        &mut self,
        key: TransitionKey,
        responses: &[MemoryResponse],
        details: OutcomeDetails,
        before: u32,
    ) -> Result<u32, Costs> {
        let outcome = TimingOutcome::of(&details, self.open()).filter(|_| !self.is_full());
        let (Some((outcome, is_short)), Ok(count)) = (outcome, u8::try_from(responses.len())) else {
            return Err(details.costs);
        };
        let number = self.entries.len() as u32;
        let OutcomeDetails { lines, store_load_pairs, stores, costs, .. } = details;
        self.instructions += costs.sites.len();
        let lines = append(&mut self.lines, lines);
        let store_load_pairs = append(&mut self.store_load_pairs, store_load_pairs);
        // The times of an outcome are short.
        let stores = stores.into_iter().filter(|_| !is_short).map(|(store, time)| (store, time as u32));
        let stores = append(&mut self.stores, stores);
        let inline = match is_short {
            true if lines.is_empty() && store_load_pairs.is_empty() => Inline::All,
            true => Inline::CostsAndStores,
            false => Inline::Nothing,
        };
        self.entries.push(Transition {
            key,
            first: first_word(responses),
            count,
            inline,
            drains_in: self.at.drains_in,
            to: self.at.state,
            executions: 1,
            next: [NONE; 2],
            outcome,
        });
        self.cold.push(ColdFields {
            responses: responses.into(),
            lines,
            store_load_pairs,
            stores,
            costs: costs.into(),
            before,
        });
        self.previous = number;
        let (entries, cold) = (&self.entries, &self.cold);
        let rehash = |&number: &u32| hash(entries[number as usize].key, &cold[number as usize].responses);
        self.table.insert_unique(hash(key, responses), number, rehash);
        Ok(number)
    }

    /// Sets the current state, which drains after this number of cycles.
    pub fn enter(&mut self, state: PipelineState, drains_in: Option<u64>) {
        self.open = state.open as u8;
        self.previous = NONE;
        self.at = match self.state_numbers.get(&state) {
            Some(&at) => at,
            None => {
                let drains_in = drains_in.and_then(|cycles| cycles.try_into().ok()).unwrap_or(NEVER);
                let at = StateRef { state: self.states.len() as u32, drains_in };
                self.state_numbers.insert(state.clone(), at);
                self.states.push(state);
                at
            }
        };
    }

    /// Whether the cache is full.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MAX_TRANSITIONS
            || self.instructions >= MAX_INSTRUCTIONS
            || self.states.len() >= MAX_STATES
    }

    /// Clears the cache, but for the current state.
    pub fn clear(&mut self) {
        let drained = self.states[0].clone();
        let (state, at) = (self.state().clone(), self.at);
        *self = TransitionCache::new(drained);
        self.enter(state, (at.drains_in != NEVER).then_some(at.drains_in.into()));
    }

    /// Resets the executions of all transitions.
    pub fn reset_executions(&mut self) {
        self.entries.iter_mut().for_each(|transition| transition.executions = 0);
    }

    /// Adds the cycles of a segment's instructions by its transitions, from the newest on.
    pub fn add_sites(&self, newest: u32, sites: &mut [SiteCycles]) {
        let mut number = newest as usize;
        while number != 0 {
            let ColdFields { costs, before, .. } = &self.cold[number - 1];
            costs.add_sites(self.entries[number - 1].executions, sites);
            number = *before as usize;
        }
    }
}

/// Appends to a list. Returns the range.
fn append<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Range<u32> {
    let first = list.len() as u32;
    list.extend(more);
    first..list.len() as u32
}

#[inline(always)]
fn hash(key: TransitionKey, responses: &[MemoryResponse]) -> u64 {
    let mut mixer = Mixer::default();
    mixer.write_u64(key.word());
    responses.iter().for_each(|one| mixer.write_u64(one.word()));
    // The table selects by the lowest bits, which a multiplication mixes least.
    mixer.finish().rotate_left(32)
}

/// The first response as a word, or 0.
#[inline(always)]
fn first_word(responses: &[MemoryResponse]) -> u64 {
    responses.first().map_or(0, |first| first.word())
}

/// A fast hash of a few words, which is the same in each run.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline(always)]
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
