//! TAGE: tables of tagged counters for histories of geometric lengths (Seznec and Michaud, 2006).

use super::counters::SaturatingCounters;
use super::direction::{ConditionalBranch, DirectionPredictor};

/// A tagged entry.
#[derive(Clone, Copy, Default)]
struct TaggedEntry {
    tag: u16,
    /// -4 to 3; 0 and above predict taken.
    counter: i8,
    /// 0 to 3: whether it predicted correctly where the others did not.
    useful: u8,
}

/// A table of tagged entries.
struct TaggedTable {
    entries: Vec<TaggedEntry>,
    /// Branches whose directions find an entry.
    history: u32,
}

/// The predictor TAGE.
pub(super) struct Tage {
    base: SaturatingCounters,
    /// With ascending lengths of history.
    tables: Vec<TaggedTable>,
    index_bits: u32,
    tag_bits: u32,
    /// Branches trained so far: every 2^18, usefulness is halved.
    trained: u64,
}

const AGES_EVERY: u64 = 1 << 18;
const MOST_TABLES: usize = 16;

/// Where the tables have the entries of a branch.
type TableEntries = [(usize, u16); MOST_TABLES];

/// The last directions, as many as `bits` at a time, combined by exclusive or.
fn fold(mut history: u128, bits: u32) -> u64 {
    let mut folded = 0;
    while history != 0 {
        folded ^= history as u64 & ((1 << bits) - 1);
        history >>= bits;
    }
    folded
}

impl Tage {
    /// Tables of `entries` for each of these lengths of history, at most 16.
    pub fn new(base: SaturatingCounters, entries: u32, tag_bits: u32, histories: &[u32]) -> Tage {
        let table =
            |&history: &u32| TaggedTable { entries: vec![TaggedEntry::default(); entries as usize], history };
        Tage {
            base,
            tables: histories.iter().take(MOST_TABLES).map(table).collect(),
            index_bits: entries.ilog2().max(1),
            tag_bits,
            trained: 0,
        }
    }

    fn slots(&self, branch: ConditionalBranch) -> TableEntries {
        let mut slots = [(0, 0); MOST_TABLES];
        let (at, bits, tag_bits) = (branch.index(), self.index_bits, self.tag_bits);
        for (number, (slot, table)) in (0..).zip(slots.iter_mut().zip(&self.tables)) {
            let history = branch.recent(table.history);
            let index = at ^ at >> (bits - number % bits) ^ fold(history, bits);
            let tag = at ^ fold(history, tag_bits) ^ fold(history, tag_bits - 1) << 1;
            *slot =
                (index as usize & (table.entries.len() - 1), tag as u16 & ((1u32 << tag_bits) - 1) as u16);
        }
        slots
    }

    /// The tables that have the branch, the one with the longest history first.
    fn matches<'a>(&'a self, slots: &'a TableEntries) -> impl Iterator<Item = usize> + 'a {
        let tables = self.tables.iter().zip(slots).enumerate().rev();
        tables.filter(|(_, (table, (at, tag)))| table.entries[*at].tag == *tag).map(|(number, _)| number)
    }

    fn entry(&self, number: usize, slots: &TableEntries) -> TaggedEntry {
        self.tables[number].entries[slots[number].0]
    }

    /// The table that provides the prediction, the prediction, and what would be predicted without that table.
    fn look_up(&self, branch: ConditionalBranch, slots: &TableEntries) -> (Option<usize>, bool, bool) {
        let base = self.base.is_taken(self.base.index(branch.index()));
        let mut found = self.matches(slots);
        let Some(provider) = found.next() else { return (None, base, base) };
        let direction = |number| self.entry(number, slots).counter >= 0;
        (Some(provider), direction(provider), found.next().map_or(base, direction))
    }

    /// Gives the branch an entry in a table with a longer history than the provider's.
    fn allocate(&mut self, provider: Option<usize>, slots: &TableEntries, is_taken: bool) {
        let longer = provider.map_or(0, |number| number + 1)..self.tables.len();
        for number in longer.clone() {
            let (at, tag) = slots[number];
            let entry = &mut self.tables[number].entries[at];
            if entry.useful == 0 {
                *entry = TaggedEntry { tag, counter: if is_taken { 0 } else { -1 }, useful: 0 };
                return;
            }
        }
        for number in longer {
            let entry = &mut self.tables[number].entries[slots[number].0];
            entry.useful -= 1;
        }
    }

    fn age(&mut self) {
        let entries = self.tables.iter_mut().flat_map(|table| &mut table.entries);
        entries.for_each(|entry| entry.useful /= 2);
    }
}

impl DirectionPredictor for Tage {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        self.look_up(branch, &self.slots(branch)).1
    }

    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool {
        let slots = self.slots(branch);
        let (provider, predicted, alternative) = self.look_up(branch, &slots);
        match provider {
            None => drop(self.base.train(self.base.index(branch.index()), is_taken)),
            Some(number) => {
                let entry = &mut self.tables[number].entries[slots[number].0];
                entry.counter = (entry.counter + if is_taken { 1 } else { -1 }).clamp(-4, 3);
                if predicted != alternative {
                    let useful =
                        entry.useful.saturating_add_signed(if predicted == is_taken { 1 } else { -1 });
                    entry.useful = useful.min(3);
                }
            }
        }
        if predicted != is_taken {
            self.allocate(provider, &slots, is_taken);
        }
        self.trained += 1;
        if self.trained.is_multiple_of(AGES_EVERY) {
            self.age();
        }
        predicted
    }
}
