//! Caches of all numbers of sets at once, that replace the least recently used.

use trace::Words;

use super::front::{Front, bring_to_front_of_any};

/// Lines of the largest sets.
const MOST_WAYS: usize = 8;
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
    /// The number of each line plus 1, or 0 for none: what is never used costs no memory.
    lines: Words,
    /// How often a line was found so far behind the first; at last, not at all.
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

    /// Uses a line.
    #[inline(always)]
    pub fn touch(&mut self, front: impl Front, line: u64) {
        let key = line + 1;
        for level in &mut self.levels {
            let set = level.set(line);
            if set[0] == key {
                return;
            }
            let place = front.bring_to_front(set, key);
            level.found[place] += 1;
        }
        let _ = self.of_four.touch(line) || self.of_two.touch(line) || self.of_one.touch(line);
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

impl<const LINES: usize> Level<LINES> {
    fn new(sets: u64) -> Level<LINES> {
        Level { lines: Words::new(sets as usize * LINES), found: [0; MOST_WAYS + 1] }
    }

    /// Where a line may be.
    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut [u64; LINES] {
        let (sets, _) = self.lines.as_chunks_mut();
        let mask = sets.len() - 1;
        &mut sets[line as usize & mask]
    }

    /// Uses a line. Says whether it was the first in its set.
    fn touch(&mut self, line: u64) -> bool {
        let place = bring_to_front_of_any(self.set(line), line + 1);
        self.found[place.unwrap_or(MOST_WAYS)] += u64::from(place != Some(0));
        place == Some(0)
    }

    fn forget_counts(&mut self) {
        self.found.fill(0);
    }

    /// How many sets, and what was found.
    fn counts(&self) -> (u64, &[u64; MOST_WAYS + 1]) {
        ((self.lines.len() / LINES) as u64, &self.found)
    }
}
