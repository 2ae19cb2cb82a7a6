//! The course that a piece takes: what was found when its instructions were issued one by one. It takes the same
//! course whenever it begins in the same state and hears the same of memory.

use std::mem;

use super::cycles::Cycles;
use super::issue::{Issue, SiteCycles};
use super::memory::Stored;

/// What a piece did, in few bytes. Times are since the last cycle before it.
#[derive(Clone, Copy)]
pub(super) struct Course {
    /// The last cycle.
    cycles: u32,
    /// When the last group arrived that began in it; 0 if none did.
    arrived: u32,
    /// Where its stores are.
    first_store: u32,
    stores: u16,
    /// Instructions that were issued in the last cycle, which may not be over.
    pub open: u8,
    /// Numbers of cycles, by the indices of their causes; nothing if they do not fit.
    spent: [(u8, u8); 4],
}

/// A store, by its number in the block, and when it was issued.
pub(super) type StoreTime = (u32, u32);

/// A load in the cycle behind a store, and that store: an access of the block, or none for the last one before it.
pub(super) type Compared = (Option<u32>, u32);

impl Course {
    /// What instructions did, if that can be repeated. Appends its stores.
    pub fn of(details: &Details, open: usize, stores: &mut Vec<StoreTime>) -> Option<Course> {
        let short = |time: u64| u32::try_from(time).ok();
        let course = Course {
            cycles: short(details.cycles).filter(|_| !details.is_unique)?,
            arrived: short(details.arrived)?,
            first_store: short(stores.len() as u64)?,
            stores: details.stores.len().try_into().ok()?,
            open: open as u8,
            spent: details.costs.short_spent().unwrap_or_default(),
        };
        stores.extend(details.stores.iter().map(|&(store, time)| (store, time as u32)));
        Some(course)
    }

    /// Its stores, of those of all.
    #[inline(always)]
    pub fn stores<'a>(&self, stores: &'a [StoreTime]) -> &'a [StoreTime] {
        &stores[self.first_store as usize..][..self.stores.into()]
    }
}

/// A course, with what it refers to.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub course: &'a Course,
    pub stores: &'a [StoreTime],
    /// As in [`Details`].
    pub lines: &'a [u32],
    pub compared: &'a [Compared],
    /// What it cost, if the course has no room for that.
    pub costs: Option<&'a Costs>,
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
    /// Numbers of cycles, by the indices of their causes.
    spent: Vec<(u8, u64)>,
    /// Instructions that were emulated.
    pub emulated: u64,
    /// Instructions that were issued in vain.
    pub replays: u64,
    /// What each instruction costs.
    pub sites: Box<[SiteCycles]>,
}

impl Costs {
    /// Whether a [`Course`] has room for them.
    pub fn is_short(&self) -> bool {
        self.short_spent().is_some()
    }

    /// What was spent, in few bytes if it fits into them.
    fn short_spent(&self) -> Option<[(u8, u8); 4]> {
        let mut short = [(0, 0); 4];
        if self.spent.len() > short.len() || self.emulated + self.replays > 0 {
            return None;
        }
        for (short, &(cause, cycles)) in short.iter_mut().zip(&self.spent) {
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
#[derive(Clone, Default)]
pub(crate) struct Sum {
    pub cycles: Cycles,
    pub emulated: u64,
    pub replays: u64,
}

impl Sum {
    /// Adds what a course cost.
    pub(super) fn add(&mut self, costs: &Costs) {
        for &(cause, cycles) in &costs.spent {
            self.cycles.0[cause as usize] += cycles;
        }
        self.emulated += costs.emulated;
        self.replays += costs.replays;
    }

    /// The same of one that has room for it.
    #[inline(always)]
    pub(super) fn add_short(&mut self, course: &Course) {
        for (cause, cycles) in course.spent {
            self.cycles.0[cause as usize] += u64::from(cycles);
        }
    }
}

impl Issue {
    /// Whether a piece takes a course again that it took in this state, having heard the same: what depends on
    /// addresses must come out as it did then, and stores must find place in the write buffer.
    #[inline(always)]
    pub fn repeats(&mut self, known: Known, addresses: &[u64]) -> bool {
        known.compared.iter().all(|&compared| self.is_apart(compared, addresses))
            && (known.stores.is_empty()
                || self.write_buffer.has_room(known.stores.len(), self.board.last)
                || self.finds_room(known.stores, addresses))
    }

    fn is_apart(&self, (store, load): Compared, addresses: &[u64]) -> bool {
        let stored = match store {
            None => self.stored,
            Some(store) => Stored::new(addresses[store as usize], self.served.get(store)),
        };
        !stored.is_of(addresses[load as usize])
    }

    /// Whether there is room whenever a store comes, though not for all of them at the beginning.
    #[cold]
    fn finds_room(&self, stores: &[StoreTime], addresses: &[u64]) -> bool {
        let mut buffer = self.write_buffer.clone();
        stores.iter().all(|&(store, time)| {
            let time = self.board.last + u64::from(time);
            let line = self.line(addresses[store as usize]);
            let served = self.served.get(store);
            let is_full = buffer.full(line, time, self.stores.full_replay == 0).is_some();
            buffer.push(line, time, self.drain_cycles(served));
            // Room is needed before the address is translated: then it was asked for at another time.
            !is_full && served.translation == 0
        })
    }

    /// A piece takes a course once more.
    #[inline(always)]
    pub fn repeat(&mut self, known: Known, addresses: &[u64]) {
        let now = self.board.last;
        for &(store, time) in known.stores {
            self.finish_store(addresses[store as usize], now + u64::from(time), self.served.get(store));
        }
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
