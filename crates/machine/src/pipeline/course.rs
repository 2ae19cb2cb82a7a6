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
    /// When the last group arrived that began in it.
    pub arrived: Option<u64>,
    /// When each of its stores was issued.
    pub stores: Vec<u64>,
    /// Loads in the cycle behind a store, and that store: an access of the block, or none for the last one before
    /// it. They were not of the same data.
    pub compared: Vec<(Option<u32>, u32)>,
    /// The lines that are still on their way, by their numbers.
    pub lines: Box<[u32]>,
    /// It depends on more than states and what is heard of memory.
    pub is_unique: bool,
    pub spent: Box<Spent>,
}

/// What instructions cost.
#[derive(Default)]
pub(super) struct Spent {
    /// Numbers of cycles, by the indices of their causes.
    cycles: Vec<(u8, u64)>,
    /// Instructions that were emulated.
    pub emulated: u64,
    /// Instructions that were issued in vain.
    pub replays: u64,
    pub sites: Box<[SiteCycles]>,
}

impl Spent {
    /// Cycles were spent for a cause.
    pub fn add(&mut self, cause: usize, cycles: u64) {
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
    /// Adds what was spent so often.
    pub(super) fn add(&mut self, spent: &Spent, executions: u64) {
        for &(cause, cycles) in &spent.cycles {
            self.cycles.0[cause as usize] += cycles * executions;
        }
        self.emulated += spent.emulated * executions;
        self.replays += spent.replays * executions;
    }
}

impl Issue {
    /// Whether a piece takes a course again that it took in this state, having heard the same: what depends on
    /// addresses must have come out as it did then, and stores must find place in the write buffer.
    #[inline(always)]
    pub fn repeats(&mut self, course: &Course, piece: &Piece, addresses: &[u64]) -> bool {
        (course.compared.is_empty() || self.keeps_apart(course, addresses))
            && (course.stores.is_empty() || self.finds_room(course, piece, addresses))
    }

    fn keeps_apart(&self, course: &Course, addresses: &[u64]) -> bool {
        !course.compared.iter().any(|&(store, load)| {
            let stored = match store {
                None => self.stored,
                Some(store) => Stored::new(addresses[store as usize], self.served.get(store)),
            };
            stored.is_of(addresses[load as usize])
        })
    }

    #[inline(always)]
    fn finds_room(&mut self, course: &Course, piece: &Piece, addresses: &[u64]) -> bool {
        self.write_buffer.has_room(course.stores.len(), self.board.last)
            || self.finds_room_each(course, piece, addresses)
    }

    /// The same, store by store.
    #[cold]
    fn finds_room_each(&self, course: &Course, piece: &Piece, addresses: &[u64]) -> bool {
        let mut buffer = self.write_buffer.clone();
        course.stores.iter().zip(&piece.stores).all(|(time, &store)| {
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
    pub fn repeat(&mut self, course: &Course, piece: &Piece, addresses: &[u64]) {
        let now = self.board.last;
        for (time, &store) in course.stores.iter().zip(&piece.stores) {
            self.finish_store(addresses[store as usize], now + time, self.served.get(store));
        }
        if let Some(arrived) = course.arrived {
            self.front.arrived = now + arrived;
        }
        self.board.last = now + course.cycles;
        self.keep_lines(&course.lines);
    }

    /// Of the lines that loads may have found on their way these are still.
    #[inline(always)]
    pub fn keep_lines(&mut self, kept: &[u32]) {
        if kept.is_empty() {
            self.lines.clear();
        } else {
            self.lines = kept.iter().map(|&line| self.lines[line as usize]).collect();
        }
    }
}
