//! The timing outcome of a segment: what issuing its instructions one by one found. A segment has the same
//! outcome whenever it begins in the same state with the same responses from memory.

use std::mem;

use super::accesses::BlockAccesses;
use super::cycles::{CAUSES, Cycles};
use super::issue::{Issue, SiteCycles};
use super::memory::LastStoreData;

/// Costs, and stores, that fit into a [`TimingOutcome`] itself.
const INLINE_COSTS: usize = 4;
const INLINE_STORES: usize = 5;

/// The outcome in a few bytes. Times are relative to the last cycle before it.
#[derive(Clone, Copy)]
pub(super) struct TimingOutcome {
    /// The last cycle.
    cycles: u16,
    /// When the last group that began in it arrived; 0 if none did.
    arrived: u16,
    /// Instructions issued in the last cycle, which may not be over.
    pub open: u8,
    /// Its stores, and cycles by the indices of their causes; neither if they do not fit.
    stores: u8,
    inline_stores: [(u8, u8); INLINE_STORES],
    spent: [(u8, u8); INLINE_COSTS],
}

/// A store's number in the block, and when it was issued.
pub(super) type StoreTime = (u32, u32);

/// A load in the cycle after a store, and that store: an access of the block, or None for the last store
/// before it.
pub(super) type StoreLoadPair = (Option<u32>, u32);

impl TimingOutcome {
    /// The outcome of a segment, if it can be repeated; and whether its stores and costs fit into it.
    pub fn of(details: &OutcomeDetails, open: usize) -> Option<(TimingOutcome, bool)> {
        let short = |time: u64| u16::try_from(time).ok();
        let mut outcome = TimingOutcome {
            cycles: short(details.cycles).filter(|_| !details.is_unique)?,
            arrived: short(details.arrived)?,
            open: open as u8,
            stores: 0,
            inline_stores: [(0, 0); INLINE_STORES],
            spent: [(0, 0); INLINE_COSTS],
        };
        let fits = outcome.inline_stores_of(&details.stores).and(details.costs.inline_costs());
        let is_short = fits.is_some();
        match fits {
            Some(spent) => outcome.spent = spent,
            None => outcome.stores = 0,
        }
        Some((outcome, is_short))
    }

    /// Puts the stores into it, if they fit.
    fn inline_stores_of(&mut self, stores: &[(u32, u64)]) -> Option<()> {
        for (few, &(store, time)) in self.inline_stores.get_mut(..stores.len())?.iter_mut().zip(stores) {
            *few = (store.try_into().ok()?, time.try_into().ok()?);
        }
        self.stores = stores.len() as u8;
        Some(())
    }

    #[inline(always)]
    fn inline_stores(&self) -> &[(u8, u8)] {
        &self.inline_stores[..usize::from(self.stores).min(INLINE_STORES)]
    }
}

/// A cached outcome, with the lists that it refers to.
#[derive(Clone, Copy)]
pub(super) struct CachedOutcome<'a> {
    pub outcome: &'a TimingOutcome,
    /// Its stores, if they do not fit into the outcome.
    pub more_stores: &'a [StoreTime],
    /// As in [`OutcomeDetails`].
    pub lines: &'a [u32],
    pub store_load_pairs: &'a [StoreLoadPair],
    /// Its costs, if they do not fit into the outcome.
    pub costs: Option<&'a Costs>,
}

impl<'a> CachedOutcome<'a> {
    #[inline(always)]
    fn stores(self) -> impl Iterator<Item = StoreTime> + 'a {
        let few = self.outcome.inline_stores().iter().map(|&(store, time)| (store.into(), time.into()));
        few.chain(self.more_stores.iter().copied())
    }
}

/// All that issuing a segment found.
#[derive(Default)]
pub(super) struct OutcomeDetails {
    /// As in [`TimingOutcome`].
    pub cycles: u64,
    pub arrived: u64,
    pub stores: Vec<(u32, u64)>,
    /// The lines that are still outstanding, by their numbers.
    pub lines: Box<[u32]>,
    /// Pairs of store and load that were not to the same data.
    pub store_load_pairs: Vec<StoreLoadPair>,
    /// It depends on more than the state and the responses of memory, and cannot be repeated.
    pub is_unique: bool,
    pub costs: Costs,
}

/// The costs of a segment.
#[derive(Default)]
pub(super) struct Costs {
    /// Cycles by the indices of their causes, and the other counts.
    spent: Vec<(u8, u64)>,
    /// The cycles of each instruction.
    pub sites: Box<[SiteCycles]>,
}

impl Costs {
    /// Cycles and counts in a few bytes, if they fit.
    fn inline_costs(&self) -> Option<[(u8, u8); INLINE_COSTS]> {
        let mut short = [(0, 0); INLINE_COSTS];
        for (short, &(cause, cycles)) in short.get_mut(..self.spent.len())?.iter_mut().zip(&self.spent) {
            *short = (cause, cycles.try_into().ok()?);
        }
        Some(short)
    }

    /// Adds cycles spent for a cause.
    pub fn spend(&mut self, cause: usize, cycles: u64) {
        match self.spent.iter_mut().find(|one| one.0 as usize == cause) {
            Some(one) => one.1 += cycles,
            None => self.spent.push((cause as u8, cycles)),
        }
    }

    /// Counts an emulated instruction.
    pub fn emulate(&mut self) {
        self.spend(EMULATED, 1);
    }

    /// Counts a replay.
    pub fn replay(&mut self) {
        self.spend(REPLAYS, 1);
    }

    /// Adds the cycles of each instruction for this number of executions to `sites`.
    pub fn add_sites(&self, executions: u64, sites: &mut [SiteCycles]) {
        for (totals, site) in sites.iter_mut().zip(&self.sites) {
            totals.issuing += site.issuing * executions;
            totals.front_end_stall += site.front_end_stall * executions;
            totals.back_end_stall += site.back_end_stall * executions;
        }
    }
}

/// The costs of all segments together.
#[derive(Clone)]
pub(crate) struct CycleTotals {
    /// Cycles by the indices of their causes, and the other counts; several sums of each, so that consecutive
    /// additions do not depend on each other.
    spent: [[u64; INDICES]; INLINE_COSTS],
}

/// The indices of the other counts follow those of causes; all are below a power of two.
const EMULATED: usize = CAUSES;
const REPLAYS: usize = CAUSES + 1;
const INDICES: usize = 64;

impl Default for CycleTotals {
    fn default() -> CycleTotals {
        const { assert!(REPLAYS < INDICES) };
        CycleTotals { spent: [[0; INDICES]; INLINE_COSTS] }
    }
}

impl CycleTotals {
    /// All cycles.
    pub fn cycles(&self) -> Cycles {
        Cycles(std::array::from_fn(|cause| self.of(cause)))
    }

    /// Instructions that were emulated.
    pub fn emulated(&self) -> u64 {
        self.of(EMULATED)
    }

    /// Instructions that were replayed.
    pub fn replays(&self) -> u64 {
        self.of(REPLAYS)
    }

    fn of(&self, index: usize) -> u64 {
        self.spent.iter().map(|spent| spent[index]).sum()
    }

    /// Adds cycles spent for a cause.
    #[inline(always)]
    pub(crate) fn spend(&mut self, cause: usize, cycles: u64) {
        self.spent[0][cause % INDICES] += cycles;
    }

    /// Adds costs.
    pub(super) fn add(&mut self, costs: &Costs) {
        for &(cause, cycles) in &costs.spent {
            self.spend(cause.into(), cycles);
        }
    }

    /// Adds other totals.
    pub(crate) fn merge(&mut self, other: &CycleTotals) {
        for (own, other) in self.spent.iter_mut().flatten().zip(other.spent.as_flattened()) {
            *own += other;
        }
    }

    /// Adds the costs that an outcome holds itself.
    #[inline(always)]
    pub(super) fn add_inline(&mut self, outcome: &TimingOutcome) {
        for (sums, (cause, cycles)) in self.spent.iter_mut().zip(outcome.spent) {
            sums[usize::from(cause) % INDICES] += u64::from(cycles);
        }
    }
}

impl Issue {
    /// Whether a cached outcome applies: its store-load pairs must again be to different data, and the write
    /// buffer must have room for its stores.
    #[inline(always)]
    pub fn applies(&mut self, cached: CachedOutcome, accesses: BlockAccesses) -> bool {
        let stores = cached.outcome.inline_stores().len() + cached.more_stores.len();
        cached
            .store_load_pairs
            .iter()
            .all(|&store_load_pairs| self.is_independent(store_load_pairs, accesses))
            && (stores == 0
                || self.write_buffer.has_room(stores, self.scoreboard.last)
                || self.fits_write_buffer(cached, accesses))
    }

    fn is_independent(&self, (store, load): StoreLoadPair, accesses: BlockAccesses) -> bool {
        let stored = match store {
            None => self.stored,
            Some(store) => {
                LastStoreData::new(accesses.address(store), accesses.bytes(store), accesses.served(store))
            }
        };
        !stored.overlaps(accesses.address(load), accesses.bytes(load))
    }

    /// Whether the write buffer has room whenever a store comes, though not for all of them at once.
    #[cold]
    fn fits_write_buffer(&self, cached: CachedOutcome, accesses: BlockAccesses) -> bool {
        let mut buffer = self.write_buffer.clone();
        cached.stores().all(|(store, time)| {
            let time = self.scoreboard.last + u64::from(time);
            let line = self.line(accesses.address(store));
            let served = accesses.served(store);
            let is_full = buffer.full(line, time, self.stores.full_replay == 0).is_some();
            buffer.push(line, time, self.drain_cycles(served));
            // The translation delays the store, which needs room before: its time differs from that of the
            // outcome.
            !is_full && served.translation == 0
        })
    }

    /// Applies a cached outcome.
    #[inline(always)]
    pub fn apply(&mut self, cached: CachedOutcome, accesses: BlockAccesses) {
        let now = self.scoreboard.last;
        let mut finish = |store: u32, time: u32| {
            let stored = (accesses.address(store), accesses.bytes(store));
            self.finish_store(stored, now + u64::from(time), accesses.served(store));
        };
        cached.outcome.inline_stores().iter().for_each(|&(store, time)| finish(store.into(), time.into()));
        cached.more_stores.iter().for_each(|&(store, time)| finish(store, time));
        if cached.outcome.arrived != 0 {
            self.front_end.arrived = now + u64::from(cached.outcome.arrived);
        }
        self.scoreboard.last = now + u64::from(cached.outcome.cycles);
        if cached.lines.is_empty() {
            self.lines.clear();
        } else {
            self.keep_outstanding(cached.lines);
        }
    }

    /// Keeps only these of the outstanding lines.
    pub fn keep_outstanding(&mut self, kept_lines: &[u32]) {
        self.kept_lines.clear();
        self.kept_lines.extend(kept_lines.iter().map(|&line| self.lines[line as usize]));
        mem::swap(&mut self.lines, &mut self.kept_lines);
    }
}
