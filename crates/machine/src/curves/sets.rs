//! Caches of all numbers of sets at once, that replace the least recently used.

use std::array::from_mut;

use trace::Words;

use super::front::{Any, Front};
use crate::numbers::Line;

/// Lines of the largest sets.
const MOST_WAYS: usize = 8;
/// Levels that a line goes through in one step: while one waits for what was done to its set for the line before, the others
/// go on.
const GROUP: usize = 4;
/// No line's number.
const NONE: u32 = 0;
/// The numbers of ways that are told.
const WAYS: [u32; 4] = [1, 2, 4, 8];

/// Sets as lists of lines, the last used first, of which a cache of N ways holds the first N. What is first in
/// its set is first in its set wherever there are more sets (Hill and Smith, "Evaluating associativity in CPU
/// caches", 1989), so that an access goes no further.
#[derive(Debug)]
pub struct AllSets {
    /// By the number of sets, from few to many.
    levels: Vec<Level<MOST_WAYS>>,
    /// As many sets as the largest cache has of four lines, of two, and of one.
    of_four: Level<4>,
    of_two: Level<2>,
    of_one: Level<1>,
    /// Lines of the smallest and the largest cache.
    sizes: (u64, u64),
}

/// Some number of sets, a power of two.
#[derive(Debug)]
struct Level<const LINES: usize> {
    /// The small number of each line, or [`NONE`], two in a word: what is never used costs no memory.
    words: Words,
    last_set: u32,
    /// How often a line was found so far behind the first, or, behind them all, not found; what was the first may not be
    /// counted.
    found: [u64; MOST_WAYS + 1],
}

impl AllSets {
    /// Caches of so many lines, powers of two and at least four.
    pub fn new(smallest: u64, largest: u64) -> AllSets {
        let most = MOST_WAYS as u64;
        let numbers = (smallest / most).max(1).ilog2()..(2 * largest / most).max(1).ilog2();
        AllSets {
            levels: numbers.map(|power| Level::new(1 << power)).collect(),
            of_four: Level::new(largest / 4),
            of_two: Level::new(largest / 2),
            of_one: Level::new(largest),
            sizes: (smallest, largest),
        }
    }

    /// Uses lines, one after the other. What is left of them is of no use.
    #[inline(always)]
    pub fn touch(&mut self, front: impl Front<MOST_WAYS>, lines: &mut [Line]) {
        let mut left = lines.len();
        let (groups, others) = self.levels.as_chunks_mut::<GROUP>();
        for group in groups {
            left = touch_group(front, group, &mut lines[..left]);
        }
        for level in others {
            left = touch_group(front, from_mut(level), &mut lines[..left]);
        }
        // Few get here.
        left = touch_group(Any, from_mut(&mut self.of_four), &mut lines[..left]);
        left = touch_group(Any, from_mut(&mut self.of_two), &mut lines[..left]);
        touch_group(Any, from_mut(&mut self.of_one), &mut lines[..left]);
    }

    /// The numbers of lines that are held, each perhaps several times.
    pub fn numbers(&mut self) -> impl Iterator<Item = &mut u32> {
        let levels = self.levels.iter_mut().map(Level::lines_mut);
        let others = [self.of_four.lines_mut(), self.of_two.lines_mut(), self.of_one.lines_mut()];
        levels.chain(others).flatten().filter(|number| **number != NONE)
    }

    /// Forgets what was found where.
    pub fn forget_counts(&mut self) {
        self.levels.iter_mut().for_each(Level::forget_counts);
        self.of_four.forget_counts();
        self.of_two.forget_counts();
        self.of_one.forget_counts();
    }

    /// The caches: lines, ways, misses; by ways, then by size.
    pub fn misses(&self) -> impl Iterator<Item = (u64, u32, u64)> {
        let levels = (self.levels.iter().map(Level::counts)).chain([
            self.of_four.counts(),
            self.of_two.counts(),
            self.of_one.counts(),
        ]);
        let levels: Vec<_> = levels.collect();
        let of_ways = move |ways: u32| {
            let sized = levels.clone().into_iter().map(move |(sets, found)| (sets * u64::from(ways), found));
            let wanted = sized.filter(|(lines, _)| (self.sizes.0..=self.sizes.1).contains(lines));
            wanted.map(move |(lines, found)| (lines, ways, found[ways as usize..].iter().sum()))
        };
        WAYS.into_iter().flat_map(of_ways)
    }
}

/// Uses lines in several levels. Leaves those that were not the first in their sets at the last level, and returns how
/// many. Which ones cannot be guessed, so that nothing depends on a guess; using a line that is the first changes nothing.
#[inline(always)]
fn touch_group<const N: usize, const LINES: usize>(
    front: impl Front<LINES>,
    levels: &mut [Level<LINES>; N],
    lines: &mut [Line],
) -> usize {
    let mut left = 0;
    for index in 0..lines.len() {
        let line = lines[index];
        let mut place = 0;
        for level in levels.iter_mut() {
            place = front.bring_to_front(level.set(line), line.number);
            level.found[place] += 1;
        }
        lines[left] = line;
        left += usize::from(place != 0);
    }
    left
}

impl<const LINES: usize> Level<LINES> {
    /// Of so many sets: a power of two, at most 2^32.
    fn new(sets: u64) -> Level<LINES> {
        let lines = sets as usize * LINES;
        Level { words: Words::new(lines.div_ceil(2)), last_set: (sets - 1) as u32, found: [0; MOST_WAYS + 1] }
    }

    /// Where a line may be.
    #[inline(always)]
    fn set(&mut self, line: Line) -> &mut [u32; LINES] {
        let set = line.low & self.last_set;
        // SAFETY: there are as many sets, of so many halves of words each.
        unsafe { &mut *self.words.as_mut_ptr().cast::<[u32; LINES]>().add(set as usize) }
    }

    /// The lines of all sets.
    fn lines_mut(&mut self) -> &mut [u32] {
        // SAFETY: each word has two halves.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), 2 * self.words.len()) }
    }

    fn forget_counts(&mut self) {
        self.found.fill(0);
    }

    /// How many sets, and what was found.
    fn counts(&self) -> (u64, &[u64; MOST_WAYS + 1]) {
        (u64::from(self.last_set) + 1, &self.found)
    }
}
