//! The course that a piece takes: what was found when its instructions were issued one by one. It takes the same
//! course whenever it begins in the same state and hears the same of memory.

use super::cycles::Cycles;
use super::issue::{Issue, SiteCycles};
use super::memory::Stored;

/// What a piece did, as far as it nearly always matters to those behind it. Times are since the last cycle before
/// it.
pub(super) struct Course {
    /// Its stores, by their numbers in the block, and when each was issued.
    stores: Box<[(u32, u32)]>,
    /// The last cycle.
    cycles: u32,
    /// When the last group arrived that began in it; 0 if none did.
    arrived: u32,
}

impl Course {
    /// What instructions did, if that can be repeated.
    pub fn of(details: &Details) -> Option<Course> {
        let short = |time: u64| u32::try_from(time).ok();
        let stores = details.stores.iter().map(|&(store, time)| Some((store, short(time)?)));
        let stores = stores.collect::<Option<_>>().filter(|_| !details.is_unique)?;
        Some(Course { stores, cycles: short(details.cycles)?, arrived: short(details.arrived)? })
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
    /// Loads in the cycle behind a store, and that store: an access of the block, or none for the last one before
    /// it. They were not of the same data.
    pub compared: Vec<(Option<u32>, u32)>,
    /// It depends on more than states and what is heard of memory.
    pub is_unique: bool,
    /// Numbers of cycles, by the indices of their causes.
    spent: Vec<(u8, u64)>,
    /// Instructions that were emulated.
    pub emulated: u64,
    /// Instructions that were issued in vain.
    pub replays: u64,
    /// What each instruction costs.
    pub sites: Box<[SiteCycles]>,
}

impl Details {
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
    /// Adds a course that was taken so often.
    pub(super) fn add(&mut self, course: &Details, executions: u64) {
        for &(cause, cycles) in &course.spent {
            self.cycles.0[cause as usize] += cycles * executions;
        }
        self.emulated += course.emulated * executions;
        self.replays += course.replays * executions;
    }
}

impl Issue {
    /// Whether a piece takes a course again that it took in this state, having heard the same: what depends on
    /// addresses must come out as it did then, and stores must find place in the write buffer.
    #[inline(always)]
    pub fn repeats(&mut self, course: &Course, details: Option<&Details>, addresses: &[u64]) -> bool {
        details.is_none_or(|details| self.keeps_apart(details, addresses))
            && (course.stores.is_empty()
                || self.write_buffer.has_room(course.stores.len(), self.board.last)
                || self.finds_room(course, addresses))
    }

    fn keeps_apart(&self, details: &Details, addresses: &[u64]) -> bool {
        !details.compared.iter().any(|&(store, load)| {
            let stored = match store {
                None => self.stored,
                Some(store) => Stored::new(addresses[store as usize], self.served.get(store)),
            };
            stored.is_of(addresses[load as usize])
        })
    }

    /// Whether there is room whenever a store comes, though not for all of them at the beginning.
    #[cold]
    fn finds_room(&self, course: &Course, addresses: &[u64]) -> bool {
        let mut buffer = self.write_buffer.clone();
        course.stores.iter().all(|&(store, time)| {
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
    pub fn repeat(&mut self, course: &Course, details: Option<&Details>, addresses: &[u64]) {
        let now = self.board.last;
        for &(store, time) in &course.stores {
            self.finish_store(addresses[store as usize], now + u64::from(time), self.served.get(store));
        }
        if course.arrived != 0 {
            self.front.arrived = now + u64::from(course.arrived);
        }
        self.board.last = now + u64::from(course.cycles);
        match details {
            None => self.lines.clear(),
            Some(details) => self.keep_lines(&details.lines),
        }
    }

    /// Of the lines that loads may have found on their way these are still.
    pub fn keep_lines(&mut self, kept: &[u32]) {
        self.lines = kept.iter().map(|&line| self.lines[line as usize]).collect();
    }
}
