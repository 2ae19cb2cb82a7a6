//! Small numbers for lines or pages.

use std::collections::HashMap;

/// Numbers lines densely, so that tables indexed by line are short. Aligned regions of lines are numbered in the
/// order of their first use; the lines of a region have consecutive numbers.
#[derive(Debug)]
pub struct LineNumbering {
    /// The numbers of regions, from 1 on.
    regions: HashMap<u64, u32>,
    /// A direct-mapped cache of `regions`.
    recent: RecentRegions,
    /// The number of regions from which on unused ones should be dropped.
    limit: usize,
}

/// Region and number, by the low bits of the region.
type RecentRegions = Box<[(u64, u32); 256]>;

/// A line with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedLine {
    /// Its small number, never 0.
    pub number: u32,
    /// The low bits of its address (in lines), which select its set.
    pub low: u32,
}

/// Logarithm of the lines of a region.
const REGION_SHIFT: u32 = 6;
/// The bits of a number that select the line within its region.
const IN_REGION: u32 = (1 << REGION_SHIFT) - 1;
/// Regions up to which none is dropped.
const MIN_LIMIT: usize = 1 << 14;

impl LineNumbering {
    /// Without lines.
    pub fn new() -> LineNumbering {
        LineNumbering { regions: HashMap::new(), recent: no_recent_regions(), limit: MIN_LIMIT }
    }

    /// Numbers a line, given by its address divided by the line size.
    #[inline(always)]
    pub fn line(&mut self, line: u64) -> NumberedLine {
        let (region, low) = (line >> REGION_SHIFT, line as u32);
        let (recent, number) = self.recent[region as usize % self.recent.len()];
        let number = if recent == region { number } else { self.look_up(region) };
        NumberedLine { number: number << REGION_SHIFT | low & IN_REGION, low }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, region: u64) -> u32 {
        let next = self.regions.len() as u32 + 1;
        assert!(next <= u32::MAX >> REGION_SHIFT, "caches hold lines of less than {next} regions");
        let number = *self.regions.entry(region).or_insert(next);
        self.recent[region as usize % self.recent.len()] = (region, number);
        number
    }

    /// Whether unused regions should be dropped.
    pub fn should_compact(&self) -> bool {
        self.regions.len() >= self.limit
    }

    /// Drops regions without lines in use, and renumbers the others. `visit_used` calls its argument with the
    /// number of each line in use.
    pub fn compact(&mut self, visit_used: impl FnOnce(&mut dyn FnMut(u32))) -> Renumbering {
        let mut regions = vec![0; self.regions.len() + 1];
        visit_used(&mut |number| regions[(number >> REGION_SHIFT) as usize] = 1);
        let mut next = 0;
        for region in regions.iter_mut().filter(|region| **region != 0) {
            next += 1;
            *region = next;
        }
        self.regions.retain(|_, number| {
            *number = regions[*number as usize];
            *number != 0
        });
        self.recent = no_recent_regions();
        self.limit = MIN_LIMIT.max(2 * self.regions.len());
        Renumbering { regions }
    }
}

fn no_recent_regions() -> RecentRegions {
    Box::new([(u64::MAX, 0); 256])
}

/// The new numbers of the lines in use.
#[derive(Debug)]
pub struct Renumbering {
    /// New numbers of regions, by their old ones.
    regions: Vec<u32>,
}

impl Renumbering {
    /// The new number of a line in use, by its old one.
    pub fn number(&self, number: u32) -> u32 {
        self.regions[(number >> REGION_SHIFT) as usize] << REGION_SHIFT | number & IN_REGION
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Lines keep their numbers, and lines in use have distinct numbers after compaction.
        #[test]
        fn each_line_has_its_number(lines in prop::collection::vec((0..1u64 << 57, 0..300u64, any::<bool>()), 1..50)) {
            let mut numbers = LineNumbering::new();
            let lines: Vec<_> = lines.into_iter().flat_map(|(high, low, held)| [(high, held), (low, held)]).collect();
            let mut of = HashMap::new();
            for &(line, held) in &lines {
                let NumberedLine { number, low } = numbers.line(line);
                prop_assert!(number != 0 && low == line as u32);
                let (first, is_held) = of.entry(line).or_insert((number, false));
                prop_assert_eq!(*first, number);
                *is_held |= held;
            }
            let held = of.into_iter().filter(|(_, (_, held))| *held);
            let held: HashMap<u64, u32> = held.map(|(line, (number, _))| (line, number)).collect();
            let regions: std::collections::HashSet<u64> = held.keys().map(|line| line >> REGION_SHIFT).collect();
            let renumbered = numbers.compact(|visit| held.values().for_each(|&number| visit(number)));
            prop_assert_eq!(numbers.regions.len(), regions.len());
            let mut seen = HashMap::new();
            for &(line, _) in &lines {
                let number = numbers.line(line).number;
                prop_assert_eq!(*seen.entry(number).or_insert(line), line);
                if let Some(&before) = held.get(&line) {
                    prop_assert_eq!(renumbered.number(before), number);
                }
            }
        }
    }
}
