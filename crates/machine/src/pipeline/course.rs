//! The course that a piece takes: what was found when its instructions were issued one by one. It takes the same
//! course whenever it begins in the same state and hears the same of memory.

use super::cycles::Cycles;
use super::issue::{Issue, SiteCycles};
use super::memory::Stored;
use super::piece::Piece;

/// What a piece did. Times are since the last cycle before it.
#[derive(Default)]
pub(super) struct Course {
    /// The last cycle.
    pub cycles: u64,
    /// When the last group arrived that began in it; 0 if none did.
    pub arrived: u64,
    /// Its stores, by their numbers in the block, and when each was issued.
    pub stores: Vec<(u32, u64)>,
    /// There is nothing in `lines` and `compared`.
    pub is_plain: bool,
    pub more: Box<More>,
}

/// What is seldom looked at.
#[derive(Default)]
pub(super) struct More {
    /// The lines that are still on their way, by their numbers.
    pub lines: Box<[u32]>,
    /// Loads in the cycle behind a store, and that store: an access of the block, or none for the last one before
    /// it. They were not of the same data.
    pub compared: Vec<(Option<u32>, u32)>,
    /// It depends on more than states and what is heard of memory.
    pub is_unique: bool,
    /// Numbers of cycles, by the indices of their causes.
    cycles: Vec<(u8, u64)>,
    /// Instructions that were emulated.
    pub emulated: u64,
    /// Instructions that were issued in vain.
    pub replays: u64,
    /// What each instruction costs.
    pub sites: Box<[SiteCycles]>,
}

impl More {
    /// Cycles were spent for a cause.
    pub fn spend(&mut self, cause: usize, cycles: u64) {
        match self.cycles.iter_mut().find(|one| one.0 as usize == cause) {
            Some(one) => one.1 += cycles,
            None => self.cycles.push((cause as u8, cycles)),
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
    pub(super) fn add(&mut self, course: &Course, executions: u64) {
        for &(cause, cycles) in &course.more.cycles {
            self.cycles.0[cause as usize] += cycles * executions;
        }
        self.emulated += course.more.emulated * executions;
        self.replays += course.more.replays * executions;
    }
}

impl Issue {
    /// Whether a piece takes a course again that it took in this state, having heard the same: what depends on
    /// addresses must come out as it did then, and stores must find place in the write buffer.
    #[inline(always)]
    pub fn repeats(&mut self, course: &Course, addresses: &[u64]) -> bool {
        (course.is_plain || self.keeps_apart(course, addresses))
            && (course.stores.is_empty()
                || self.write_buffer.has_room(course.stores.len(), self.board.last)
                || self.finds_room(course, addresses))
    }

    fn keeps_apart(&self, course: &Course, addresses: &[u64]) -> bool {
        !course.more.compared.iter().any(|&(store, load)| {
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
            let time = self.board.last + time;
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
    pub fn repeat(&mut self, course: &Course, addresses: &[u64]) {
        let now = self.board.last;
        for &(store, time) in &course.stores {
            self.finish_store(addresses[store as usize], now + time, self.served.get(store));
        }
        if course.arrived != 0 {
            self.front.arrived = now + course.arrived;
        }
        self.board.last = now + course.cycles;
        if course.is_plain { self.lines.clear() } else { self.keep_lines(&course.more.lines) }
    }

    /// Of the lines that loads may have found on their way these are still.
    pub fn keep_lines(&mut self, kept: &[u32]) {
        self.lines = kept.iter().map(|&line| self.lines[line as usize]).collect();
    }
}
