//! The units of work whose blocks are kept, in bounded memory.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use events::BlockId;

use crate::distribution::Distribution;

/// The most executions of different blocks that are kept: 64 MB.
const MOST_ENTRIES: usize = 4 << 20;

/// The executions of blocks in a unit of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitBlocks {
    /// The unit's number.
    pub number: u64,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// Instructions executed.
    pub instructions: u64,
    /// The blocks executed, and how often.
    pub blocks: Vec<(BlockId, u64)>,
}

/// There is no unit of this number among those that ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no call {number}: the calls that returned are among {} to {}", .known.start(), .known.end())]
pub struct NoSuchUnit {
    number: u64,
    known: RangeInclusive<u64>,
}

/// Keeps one unit of each length, so that the slowest and the median one are among them, and those that are asked for.
///
/// When the memory is full, units are dropped whose lengths are far from the median so far. The slowest one stays.
#[derive(Clone, Debug)]
pub struct KeptUnits {
    /// The numbers of the units that are kept in any case.
    requested: Vec<u64>,
    /// Those units, by number.
    found: BTreeMap<u64, UnitBlocks>,
    /// By length, the first unit of that length.
    by_length: BTreeMap<u64, UnitBlocks>,
    /// The lengths of all units.
    lengths: Distribution,
    /// The smallest and the largest number of a unit.
    known: Option<(u64, u64)>,
    /// The number of blocks in `by_length`.
    entries: usize,
    most_entries: usize,
}

impl KeptUnits {
    /// No unit yet.
    pub fn new(requested: Vec<u64>) -> KeptUnits {
        KeptUnits::with_room(requested, MOST_ENTRIES)
    }

    fn with_room(requested: Vec<u64>, most_entries: usize) -> KeptUnits {
        KeptUnits {
            requested,
            found: BTreeMap::new(),
            by_length: BTreeMap::new(),
            lengths: Distribution::default(),
            known: None,
            entries: 0,
            most_entries,
        }
    }

    /// Forgets all units.
    pub(super) fn clear(&mut self) {
        *self = KeptUnits::with_room(std::mem::take(&mut self.requested), self.most_entries);
    }

    /// Adds a unit that has ended.
    pub(super) fn add(&mut self, unit: UnitBlocks) {
        self.lengths.add(unit.instructions);
        let (first, last) = self.known.unwrap_or((unit.number, unit.number));
        self.known = Some((first.min(unit.number), last.max(unit.number)));
        if self.requested.contains(&unit.number) {
            self.found.insert(unit.number, unit.clone());
        }
        let same = self.by_length.get(&unit.instructions);
        if same.is_some_and(|same| same.number < unit.number) {
            return;
        }
        self.entries += unit.blocks.len();
        if let Some(replaced) = self.by_length.insert(unit.instructions, unit) {
            self.entries -= replaced.blocks.len();
        }
        if self.entries > self.most_entries {
            self.drop_far_from_median();
        }
    }

    /// Drops units until half of the memory is free, or only the slowest one and the one nearest to the median are left.
    #[cold]
    fn drop_far_from_median(&mut self) {
        let Some(median) = self.lengths.percentile(50) else { return };
        let slowest = self.by_length.last_key_value().map(|(length, _)| *length);
        let mut lengths: Vec<u64> = self.by_length.keys().copied().collect();
        lengths.retain(|length| Some(*length) != slowest);
        lengths.sort_by_key(|length| length.abs_diff(median));
        while self.entries > self.most_entries / 2 && lengths.len() > 1 {
            let Some(dropped) = lengths.pop().and_then(|length| self.by_length.remove(&length)) else {
                return;
            };
            self.entries -= dropped.blocks.len();
        }
    }

    /// The lengths of all units.
    pub fn lengths(&self) -> &Distribution {
        &self.lengths
    }

    /// The unit with most instructions; of several the first.
    pub fn slowest(&self) -> Option<&UnitBlocks> {
        self.by_length.last_key_value().map(|(_, unit)| unit)
    }

    /// The unit whose length is nearest to the median among those that are kept: it is the median unless units had to be
    /// dropped.
    pub fn median(&self) -> Option<&UnitBlocks> {
        let median = self.lengths.percentile(50)?;
        self.by_length.values().min_by_key(|unit| unit.instructions.abs_diff(median))
    }

    /// A unit that was asked for.
    pub fn requested(&self, number: u64) -> Result<&UnitBlocks, NoSuchUnit> {
        let (first, last) = self.known.unwrap_or((1, 0));
        self.found.get(&number).ok_or(NoSuchUnit { number, known: first..=last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(number: u64, instructions: u64) -> UnitBlocks {
        // As many blocks as there are bits in the number, so that units take different room.
        let blocks = (0..=number.count_ones()).map(|block| (block, number)).collect();
        UnitBlocks { number, thread: 0, instructions, blocks }
    }

    proptest! {
        #[test]
        fn the_slowest_is_kept_and_the_median_as_long_as_there_is_room(
            lengths in prop::collection::vec(1_u64..400, 1..300),
            room in 20_usize..2000,
            asked in 0_u64..300,
        ) {
            let mut kept = KeptUnits::with_room(vec![asked], room);
            let mut peak = 0;
            for (number, length) in (0..).zip(&lengths) {
                kept.add(unit(number, *length));
                prop_assert_eq!(kept.entries, kept.by_length.values().map(|unit| unit.blocks.len()).sum::<usize>());
                prop_assert!(kept.entries <= room || kept.by_length.len() <= 2);
                peak = peak.max(kept.by_length.len());
            }
            let most = *lengths.iter().max().unwrap();
            let first = lengths.iter().position(|length| *length == most).unwrap() as u64;
            prop_assert_eq!(kept.slowest().map(|unit| unit.instructions), Some(most));
            if room == 2000 || kept.by_length.len() == peak {
                prop_assert_eq!(kept.slowest().unwrap(), &unit(first, most));
                let mut sorted = lengths.clone();
                sorted.sort_unstable();
                let median = sorted[lengths.len().div_ceil(2) - 1];
                let first = lengths.iter().position(|length| *length == median).unwrap() as u64;
                prop_assert_eq!(kept.median().unwrap(), &unit(first, median));
            }
            let own = lengths.get(asked as usize).map(|length| unit(asked, *length));
            prop_assert_eq!(kept.requested(asked).ok(), own.as_ref());
        }
    }

    #[test]
    fn without_room_the_nearest_to_the_median_are_kept() {
        let mut kept = KeptUnits::with_room(Vec::new(), 64);
        for number in 0..10_000_u64 {
            // Lengths 1 to 1,000 in an irregular order, all equally often.
            kept.add(unit(number, number * 37 % 1000 + 1));
        }
        assert_eq!(kept.slowest().unwrap().instructions, 1000);
        let median = kept.median().unwrap().instructions;
        assert!((480..=520).contains(&median), "{median}");
    }
}
