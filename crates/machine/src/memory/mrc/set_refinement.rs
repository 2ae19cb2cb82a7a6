//! Set-associative LRU caches with all numbers of sets at once (Hill-Smith set refinement).

use std::array::from_mut;

use events::Words;

use super::move_to_front::{MoveToFront, Portable};
use crate::memory::line_numbering::NumberedLine;

/// The greatest number of ways.
const MAX_WAYS: usize = 8;
/// Partitions that are updated together for each line: their updates are independent, so that the host's processor overlaps
/// them.
const GROUP: usize = 4;
/// The number of no line.
const NONE: u32 = 0;
/// The numbers of ways that are reported.
const WAYS: [u32; 4] = [1, 2, 4, 8];

/// Sets as lists of lines, the most recently used first: a cache of N ways holds the first N of each. A line that is
/// first in its set is also first where there are more sets (set refinement: Hill and Smith, "Evaluating
/// associativity in CPU caches", 1989), so that an access to it changes nothing there and stops.
#[derive(Debug)]
pub struct SetRefinement {
    /// By the number of sets, from few to many.
    partitions: Vec<SetPartition<MAX_WAYS>>,
    /// The sets of the largest cache with four ways, with two, and with one.
    four_way: SetPartition<4>,
    two_way: SetPartition<2>,
    one_way: SetPartition<1>,
    /// Lines of the smallest and the largest cache.
    sizes: (u64, u64),
}

/// The lines of memory partitioned into a power of two of sets.
#[derive(Debug)]
struct SetPartition<const LINES: usize> {
    /// The small number of each line, or [`NONE`], two in a word. Words that are never used cost no memory.
    words: Words,
    last_set: u32,
    /// Accesses by the position of the line in its set; the last count is of those that missed. Accesses to the
    /// first line of a set are not all counted.
    positions: [u64; MAX_WAYS + 1],
}

impl SetRefinement {
    /// For caches of these numbers of lines, powers of two and at least four.
    pub fn new(smallest: u64, largest: u64) -> SetRefinement {
        let most = MAX_WAYS as u64;
        let numbers = (smallest / most).max(1).ilog2()..(2 * largest / most).max(1).ilog2();
        SetRefinement {
            partitions: numbers.map(|power| SetPartition::new(1 << power)).collect(),
            four_way: SetPartition::new(largest / 4),
            two_way: SetPartition::new(largest / 2),
            one_way: SetPartition::new(largest),
            sizes: (smallest, largest),
        }
    }

    /// Accesses lines, one after the other. The list is scratch memory afterwards.
    #[inline(always)]
    pub fn touch(&mut self, front: impl MoveToFront<MAX_WAYS>, lines: &mut [NumberedLine]) {
        let mut left = lines.len();
        let (groups, others) = self.partitions.as_chunks_mut::<GROUP>();
        for group in groups {
            left = touch_group(front, group, &mut lines[..left]);
        }
        for partition in others {
            left = touch_group(front, from_mut(partition), &mut lines[..left]);
        }
        // Few lines get here.
        left = touch_group(Portable, from_mut(&mut self.four_way), &mut lines[..left]);
        left = touch_group(Portable, from_mut(&mut self.two_way), &mut lines[..left]);
        touch_group(Portable, from_mut(&mut self.one_way), &mut lines[..left]);
    }

    /// The numbers of the lines that the caches hold; a number may occur several times.
    pub fn numbers(&mut self) -> impl Iterator<Item = &mut u32> {
        let partitions = self.partitions.iter_mut().map(SetPartition::lines_mut);
        let others = [self.four_way.lines_mut(), self.two_way.lines_mut(), self.one_way.lines_mut()];
        partitions.chain(others).flatten().filter(|number| **number != NONE)
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.partitions.iter_mut().for_each(SetPartition::reset_counts);
        self.four_way.reset_counts();
        self.two_way.reset_counts();
        self.one_way.reset_counts();
    }

    /// Adds the counts of caches of the same sizes.
    pub fn add_counts(&mut self, other: &SetRefinement) {
        self.partitions.iter_mut().zip(&other.partitions).for_each(|(own, other)| own.add_counts(other));
        self.four_way.add_counts(&other.four_way);
        self.two_way.add_counts(&other.two_way);
        self.one_way.add_counts(&other.one_way);
    }

    /// The caches: lines, ways, misses; by ways, then by size.
    pub fn misses(&self) -> impl Iterator<Item = (u64, u32, u64)> {
        let partitions = (self.partitions.iter().map(SetPartition::counts)).chain([
            self.four_way.counts(),
            self.two_way.counts(),
            self.one_way.counts(),
        ]);
        let partitions: Vec<_> = partitions.collect();
        let of_ways = move |ways: u32| {
            let sized = partitions
                .clone()
                .into_iter()
                .map(move |(sets, positions)| (sets * u64::from(ways), positions));
            let wanted = sized.filter(|(lines, _)| (self.sizes.0..=self.sizes.1).contains(lines));
            wanted.map(move |(lines, positions)| (lines, ways, positions[ways as usize..].iter().sum()))
        };
        WAYS.into_iter().flat_map(of_ways)
    }
}

/// Accesses lines in several partitions. Moves those that were not first in their sets of the last partition to the
/// front of the list, and returns their number. Branch-free, as which ones is unpredictable: accessing a line that is
/// first in its set changes nothing.
#[inline(always)]
fn touch_group<const N: usize, const LINES: usize>(
    front: impl MoveToFront<LINES>,
    partitions: &mut [SetPartition<LINES>; N],
    lines: &mut [NumberedLine],
) -> usize {
    let mut left = 0;
    for index in 0..lines.len() {
        let line = lines[index];
        let mut position = 0;
        for partition in partitions.iter_mut() {
            position = front.move_to_front(partition.set(line), line.number);
            partition.positions[position] += 1;
        }
        lines[left] = line;
        left += usize::from(position != 0);
    }
    left
}

impl<const LINES: usize> SetPartition<LINES> {
    /// With this number of sets: a power of two, at most 2^32.
    fn new(sets: u64) -> SetPartition<LINES> {
        let lines = sets as usize * LINES;
        SetPartition {
            words: Words::new(lines.div_ceil(2)),
            last_set: (sets - 1) as u32,
            positions: [0; MAX_WAYS + 1],
        }
    }

    /// The set of a line.
    #[inline(always)]
    fn set(&mut self, line: NumberedLine) -> &mut [u32; LINES] {
        let set = line.low & self.last_set;
        // SAFETY: the words hold `last_set` + 1 sets of `LINES` halves of words each.
        unsafe { &mut *self.words.as_mut_ptr().cast::<[u32; LINES]>().add(set as usize) }
    }

    /// The lines of all sets.
    fn lines_mut(&mut self) -> &mut [u32] {
        // SAFETY: each word has two halves.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), 2 * self.words.len()) }
    }

    fn reset_counts(&mut self) {
        self.positions.fill(0);
    }

    fn add_counts(&mut self, other: &SetPartition<LINES>) {
        self.positions.iter_mut().zip(other.positions).for_each(|(own, other)| *own += other);
    }

    /// The number of sets, and the counts.
    fn counts(&self) -> (u64, &[u64; MAX_WAYS + 1]) {
        (u64::from(self.last_set) + 1, &self.positions)
    }
}
