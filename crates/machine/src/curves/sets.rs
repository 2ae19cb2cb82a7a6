//! Caches of all numbers of sets at once, that replace the least recently used.

use super::front::{bring_to_front, bring_to_front_of_any};

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
    levels: Vec<Level>,
    /// Lines of the smallest and the largest cache.
    sizes: (u64, u64),
}

/// Some number of sets.
#[derive(Debug)]
struct Level {
    sets: u64,
    ways: usize,
    /// The number of each line plus 1, or 0 for none: what is never used costs no memory.
    lines: Vec<u64>,
    /// How often a line was found so far behind the first; at last, not at all.
    found: [u64; MOST_WAYS + 1],
}

impl AllSets {
    /// Caches of so many lines, powers of two.
    pub fn new(smallest: u64, largest: u64) -> AllSets {
        let fewest = (smallest / MOST_WAYS as u64).max(1);
        let levels = (fewest.ilog2()..=largest.ilog2()).map(|power| {
            let sets = 1u64 << power;
            let ways = (largest / sets).min(MOST_WAYS as u64) as usize;
            Level { sets, ways, lines: vec![0; sets as usize * ways], found: [0; MOST_WAYS + 1] }
        });
        AllSets { levels: levels.collect(), sizes: (smallest, largest) }
    }

    /// Uses a line.
    #[inline(always)]
    pub fn touch(&mut self, line: u64) {
        let key = line + 1;
        for level in &mut self.levels {
            let first = (line & (level.sets - 1)) as usize * level.ways;
            if level.lines[first] == key {
                return;
            }
            level.bring_to_front(first, key);
        }
    }

    /// The caches: lines, ways, misses; by ways, then by size.
    pub fn misses(&self) -> impl Iterator<Item = (u64, u32, u64)> {
        let of_ways = |ways: u32| {
            let sized = self.levels.iter().map(move |level| (level.sets * u64::from(ways), level));
            let wanted = sized.filter(|(lines, _)| (self.sizes.0..=self.sizes.1).contains(lines));
            wanted.map(move |(lines, level)| (lines, ways, level.found[ways as usize..].iter().sum()))
        };
        WAYS.into_iter().flat_map(of_ways)
    }
}

impl Level {
    /// A line comes to the front of its set.
    #[inline(always)]
    fn bring_to_front(&mut self, first: usize, key: u64) {
        let lines = &mut self.lines[first..first + self.ways];
        let place = match <&mut [u64; MOST_WAYS]>::try_from(&mut *lines) {
            Ok(lines) => bring_to_front(lines, key),
            Err(_) => bring_to_front_of_any(lines, key).unwrap_or(MOST_WAYS),
        };
        self.found[place] += 1;
    }
}
