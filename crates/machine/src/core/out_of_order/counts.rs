//! What an out-of-order core counts beside cycles: what held dispatch, what the wrong paths did, and what misses would cost
//! if nothing overlapped.

use crate::core::pipeline::{LEVELS, MAX_ISSUE};

/// The structures that can be full when an instruction is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The reorder buffer.
    ReorderBuffer,
    /// The registers for renaming.
    Registers,
    /// The load queue.
    LoadQueue,
    /// The store queue.
    StoreQueue,
    /// A reservation station.
    Station,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 5] = [
        Resource::ReorderBuffer,
        Resource::Registers,
        Resource::LoadQueue,
        Resource::StoreQueue,
        Resource::Station,
    ];
}

/// What an out-of-order core counts beside cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutOfOrderCounts {
    /// Cycles in which a full resource held dispatch, in the order of [`Resource::ALL`].
    pub held: [u64; Resource::ALL.len()],
    /// Cycles by the number of instructions that were dispatched in them, also those of wrong paths; 0 is not counted. The last
    /// number stands for more, too.
    pub dispatched: [u64; MAX_ISSUE + 1],
    /// Branches and jumps that were looked up in the branch target buffer, and those that it did not have.
    pub targets: [u64; 2],
    /// Branches and jumps that were mispredicted.
    pub mispredicted: u64,
    /// Instructions of wrong paths that were fetched, and those that were issued.
    pub wrong_fetched: u64,
    /// See `wrong_fetched`.
    pub wrong_issued: u64,
    /// Loads of wrong paths that accessed the cache.
    pub wrong_loads: u64,
    /// Wrong paths that ended where the code is not known, or where a jump had no predicted target.
    pub lost_paths: u64,
    /// Instruction lines that missed L1, by the level that served them.
    pub fetched_from: [u64; LEVELS + 1],
    /// Loads and stores that missed L1, by the level.
    pub accessed_from: [u64; LEVELS + 1],
    /// Cycles of TLB misses: of instructions, and of data.
    pub translations: [u64; 2],
    /// Loads that an older store in the queue supplied.
    pub forwarded: u64,
    /// Loads that were replayed.
    pub replays: u64,
}

/// The cycle of the last dispatch on any path, and the instructions dispatched in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastDispatch {
    cycle: u64,
    instructions: usize,
}

impl LastDispatch {
    /// An instruction is dispatched in a cycle, which is not before the last one.
    #[inline(always)]
    pub fn dispatch(&mut self, cycle: u64, counts: &mut OutOfOrderCounts) {
        if cycle != self.cycle {
            self.finish(counts);
            self.cycle = cycle;
        }
        self.instructions += 1;
    }

    /// Counts the cycle.
    #[inline(always)]
    pub fn finish(&mut self, counts: &mut OutOfOrderCounts) {
        let number = std::mem::take(&mut self.instructions).min(MAX_ISSUE);
        counts.dispatched[number] += u64::from(number > 0);
    }
}

/// The cycles that would be needed if nothing overlapped: each event at its full penalty, as in the study of the quad
/// Pentium Pro (Keeton and others, 1998, Figures 2 and 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonOverlapped {
    /// Cycles in which instructions retired.
    pub computation: u64,
    /// Cycles in which a full resource held dispatch.
    pub resources: u64,
    /// Mispredictions: their number, and the cycles of each.
    pub branches: (u64, u64),
    /// Instruction lines from each level beyond L1: their number, and the cycles of each.
    pub instructions: Vec<(u64, u64)>,
    /// Loads and stores that missed L1, in the same way.
    pub data: Vec<(u64, u64)>,
    /// Cycles of TLB misses: of instructions, and of data.
    pub translations: [u64; 2],
}

/// Adds numbers one by one.
fn add_all(own: &mut [u64], others: &[u64]) {
    own.iter_mut().zip(others).for_each(|(own, other)| *own += other);
}

impl OutOfOrderCounts {
    /// Adds the counts of another core.
    pub fn add(&mut self, other: &OutOfOrderCounts) {
        add_all(&mut self.held, &other.held);
        add_all(&mut self.dispatched, &other.dispatched);
        add_all(&mut self.targets, &other.targets);
        add_all(&mut self.fetched_from, &other.fetched_from);
        add_all(&mut self.accessed_from, &other.accessed_from);
        add_all(&mut self.translations, &other.translations);
        self.mispredicted += other.mispredicted;
        self.wrong_fetched += other.wrong_fetched;
        self.wrong_issued += other.wrong_issued;
        self.wrong_loads += other.wrong_loads;
        self.lost_paths += other.lost_paths;
        self.forwarded += other.forwarded;
        self.replays += other.replays;
    }
}

impl NonOverlapped {
    /// Adds the cycles of another core of the same machine.
    pub fn add(&mut self, other: &NonOverlapped) {
        self.computation += other.computation;
        self.resources += other.resources;
        add_all(&mut self.translations, &other.translations);
        self.branches = (self.branches.0 + other.branches.0, other.branches.1);
        for (own, other) in [(&mut self.instructions, &other.instructions), (&mut self.data, &other.data)] {
            own.resize(own.len().max(other.len()), (0, 0));
            for (own, other) in own.iter_mut().zip(other) {
                *own = (own.0 + other.0, other.1);
            }
        }
    }

    /// All cycles.
    pub fn total(&self) -> u64 {
        let misses = self.instructions.iter().chain(&self.data).chain([&self.branches]);
        let misses: u64 = misses.map(|(number, cycles)| number * cycles).sum();
        self.computation + self.resources + misses + self.translations.iter().sum::<u64>()
    }
}
