//! The course that a piece takes: what was found when its instructions were issued one by one. It takes the same
//! course whenever it begins in the same state and hears the same of memory.

use std::mem;

use super::accesses::Accesses;
use super::cycles::{CAUSES, Cycles};
use super::issue::{Issue, SiteCycles};
use super::memory::Stored;

/// Causes, and stores, for which a [`Course`] has room.
const SHORT: usize = 4;
const SHORT_STORES: usize = 5;

/// What a piece did, in few bytes. Times are since the last cycle before it.
#[derive(Clone, Copy)]
pub(super) struct Course {
    /// The last cycle.
    cycles: u16,
    /// When the last group arrived that began in it; 0 if none did.
    arrived: u16,
    /// Instructions that were issued in the last cycle, which may not be over.
    pub open: u8,
    /// Its stores, and numbers of cycles by the indices of their causes; nothing of either if they do not fit.
    stores: u8,
    few_stores: [(u8, u8); SHORT_STORES],
    spent: [(u8, u8); SHORT],
}

/// A store, by its number in the block, and when it was issued.
pub(super) type StoreTime = (u32, u32);

/// A load in the cycle behind a store, and that store: an access of the block, or none for the last one before it.
pub(super) type Compared = (Option<u32>, u32);

impl Course {
    /// What instructions did, if that can be repeated; and whether its stores and what was spent fit into it.
    pub fn of(details: &Details, open: usize) -> Option<(Course, bool)> {
        let short = |time: u64| u16::try_from(time).ok();
        let mut course = Course {
            cycles: short(details.cycles).filter(|_| !details.is_unique)?,
            arrived: short(details.arrived)?,
            open: open as u8,
            stores: 0,
            few_stores: [(0, 0); SHORT_STORES],
            spent: [(0, 0); SHORT],
        };
        let fits = course.put_stores(&details.stores).and(details.costs.short_spent());
        let is_short = fits.is_some();
        match fits {
            Some(spent) => course.spent = spent,
            None => course.stores = 0,
        }
        Some((course, is_short))
    }

    /// Puts stores into it, if they fit.
    fn put_stores(&mut self, stores: &[(u32, u64)]) -> Option<()> {
        for (few, &(store, time)) in self.few_stores.get_mut(..stores.len())?.iter_mut().zip(stores) {
            *few = (store.try_into().ok()?, time.try_into().ok()?);
        }
        self.stores = stores.len() as u8;
        Some(())
    }

    #[inline(always)]
    fn few_stores(&self) -> &[(u8, u8)] {
        &self.few_stores[..usize::from(self.stores).min(SHORT_STORES)]
    }
}

/// A course, with what it refers to.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub course: &'a Course,
    /// Its stores, if it has no room for them.
    pub many_stores: &'a [StoreTime],
    /// As in [`Details`].
    pub lines: &'a [u32],
    pub compared: &'a [Compared],
    /// What it cost, if the course has no room for that.
    pub costs: Option<&'a Costs>,
}

impl<'a> Known<'a> {
    #[inline(always)]
    fn stores(self) -> impl Iterator<Item = StoreTime> + 'a {
        let few = self.course.few_stores().iter().map(|&(store, time)| (store.into(), time.into()));
        few.chain(self.many_stores.iter().copied())
    }
}

/// All that a piece did.
#[derive(Default)]
pub(super) struct Details {
    /// As in [`Course`].
    pub cycles: u64,
    pub arrived: u64,
    pub stores: Vec<(u32, u64)>,
    /// The lines that are still on their way, by their numbers.
    pub lines: Box<[u32]>,
    /// What was not of the same data.
    pub compared: Vec<Compared>,
    /// It depends on more than states and what is heard of memory.
    pub is_unique: bool,
    pub costs: Costs,
}

/// What a piece cost.
#[derive(Default)]
pub(super) struct Costs {
    /// Numbers of cycles, by the indices of their causes, and what else is counted.
    spent: Vec<(u8, u64)>,
    /// What each instruction costs.
    pub sites: Box<[SiteCycles]>,
}

impl Costs {
    /// What was spent, in few bytes if it fits into them.
    fn short_spent(&self) -> Option<[(u8, u8); SHORT]> {
        let mut short = [(0, 0); SHORT];
        for (short, &(cause, cycles)) in short.get_mut(..self.spent.len())?.iter_mut().zip(&self.spent) {
            *short = (cause, cycles.try_into().ok()?);
        }
        Some(short)
    }

    /// Cycles were spent for a cause.
    pub fn spend(&mut self, cause: usize, cycles: u64) {
        match self.spent.iter_mut().find(|one| one.0 as usize == cause) {
            Some(one) => one.1 += cycles,
            None => self.spent.push((cause as u8, cycles)),
        }
    }

    /// An instruction was emulated.
    pub fn emulate(&mut self) {
        self.spend(EMULATED, 1);
    }

    /// An instruction was issued in vain.
    pub fn replay(&mut self) {
        self.spend(REPLAYS, 1);
    }

    /// Adds what instructions cost that were executed so often, to those before.
    pub fn add_sites(&self, executions: u64, sites: &mut [SiteCycles]) {
        for (sum, site) in sites.iter_mut().zip(&self.sites) {
            sum.issuing += site.issuing * executions;
            sum.dry += site.dry * executions;
            sum.frozen += site.frozen * executions;
        }
    }
}

/// What all instructions cost together.
#[derive(Clone)]
pub(crate) struct Sum {
    /// Cycles, by the indices of their causes, and what else is counted: several numbers each, so that additions to the
    /// same one need not wait for each other.
    spent: [[u64; INDICES]; SHORT],
}

/// Behind the indices of causes, those of what else is counted; all are less than a power of two.
const EMULATED: usize = CAUSES;
const REPLAYS: usize = CAUSES + 1;
const INDICES: usize = 64;

impl Default for Sum {
    fn default() -> Sum {
        const { assert!(REPLAYS < INDICES) };
        Sum { spent: [[0; INDICES]; SHORT] }
    }
}

impl Sum {
    /// All cycles.
    pub fn cycles(&self) -> Cycles {
        Cycles(std::array::from_fn(|cause| self.of(cause)))
    }

    /// Instructions that were emulated.
    pub fn emulated(&self) -> u64 {
        self.of(EMULATED)
    }

    /// Instructions that were issued in vain.
    pub fn replays(&self) -> u64 {
        self.of(REPLAYS)
    }

    fn of(&self, index: usize) -> u64 {
        self.spent.iter().map(|spent| spent[index]).sum()
    }

    /// Cycles were spent for a cause.
    #[inline(always)]
    pub(super) fn spend(&mut self, cause: usize, cycles: u64) {
        self.spent[0][cause % INDICES] += cycles;
    }

    /// Adds what a course cost.
    pub(super) fn add(&mut self, costs: &Costs) {
        for &(cause, cycles) in &costs.spent {
            self.spend(cause.into(), cycles);
        }
    }

    /// The same of one that has room for it.
    #[inline(always)]
    pub(super) fn add_short(&mut self, course: &Course) {
        for (sums, (cause, cycles)) in self.spent.iter_mut().zip(course.spent) {
            sums[usize::from(cause) % INDICES] += u64::from(cycles);
        }
    }
}

impl Issue {
    /// Whether a piece takes a course again that it took in this state, having heard the same: what depends on
    /// addresses must come out as it did then, and stores must find place in the write buffer.
    #[inline(always)]
    pub fn repeats(&mut self, known: Known, accesses: Accesses) -> bool {
        let stores = known.course.few_stores().len() + known.many_stores.len();
        known.compared.iter().all(|&compared| self.is_apart(compared, accesses))
            && (stores == 0
                || self.write_buffer.has_room(stores, self.board.last)
                || self.finds_room(known, accesses))
    }

    fn is_apart(&self, (store, load): Compared, accesses: Accesses) -> bool {
        let stored = match store {
            None => self.stored,
            Some(store) => Stored::new(accesses.address(store), accesses.served(store)),
        };
        !stored.is_of(accesses.address(load))
    }

    /// Whether there is room whenever a store comes, though not for all of them at the beginning.
    #[cold]
    fn finds_room(&self, known: Known, accesses: Accesses) -> bool {
        let mut buffer = self.write_buffer.clone();
        known.stores().all(|(store, time)| {
            let time = self.board.last + u64::from(time);
            let line = self.line(accesses.address(store));
            let served = accesses.served(store);
            let is_full = buffer.full(line, time, self.stores.full_replay == 0).is_some();
            buffer.push(line, time, self.drain_cycles(served));
            // Room is needed before the address is translated: then it was asked for at another time.
            !is_full && served.translation == 0
        })
    }

    /// A piece takes a course once more.
    #[inline(always)]
    pub fn repeat(&mut self, known: Known, accesses: Accesses) {
        let now = self.board.last;
        let mut finish = |store: u32, time: u32| {
            self.finish_store(accesses.address(store), now + u64::from(time), accesses.served(store));
        };
        known.course.few_stores().iter().for_each(|&(store, time)| finish(store.into(), time.into()));
        known.many_stores.iter().for_each(|&(store, time)| finish(store, time));
        if known.course.arrived != 0 {
            self.front.arrived = now + u64::from(known.course.arrived);
        }
        self.board.last = now + u64::from(known.course.cycles);
        if known.lines.is_empty() {
            self.lines.clear();
        } else {
            self.keep_lines(known.lines);
        }
    }

    /// Of the lines that loads may have found on their way these are still.
    pub fn keep_lines(&mut self, kept: &[u32]) {
        self.kept.clear();
        self.kept.extend(kept.iter().map(|&line| self.lines[line as usize]));
        mem::swap(&mut self.lines, &mut self.kept);
    }
}
