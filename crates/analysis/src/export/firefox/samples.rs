//! A timeline of executions in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;

/// Executions without a change, in the order of time.
pub struct Samples<P> {
    samples: Vec<PathSample<P>>,
    /// The greatest number of samples, unless one slice has more paths.
    most: usize,
    /// The length of a slice in instructions: each path has one sample in a slice.
    slice: u64,
}

/// Executions of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathSample<P> {
    path: P,
    /// The time after them, without samples that were merged into this one.
    end: u64,
    /// The number of instructions.
    weight: u64,
}

impl<P: Copy + Eq + Hash> Samples<P> {
    /// Without samples; `most` is the greatest number.
    pub fn new(most: usize) -> Samples<P> {
        Samples { samples: Vec::new(), most, slice: 1 }
    }

    /// Adds instructions of a path that were executed up to a time, if there are any.
    #[inline]
    pub fn add(&mut self, path: P, end: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        let begin = end.saturating_sub(weight);
        match self.samples.last_mut() {
            Some(last) if last.path == path && last.end == begin => {
                last.weight += weight;
                last.end = end;
            }
            _ => {
                if self.samples.len() >= self.most {
                    self.put_together();
                }
                self.samples.push(PathSample { path, end, weight });
            }
        }
    }

    /// Makes the slices longer until half of the samples are merged.
    #[cold]
    fn put_together(&mut self) {
        let Some(last) = self.samples.last() else { return };
        let last = last.end;
        self.merge();
        while self.samples.len() > self.most / 2 && self.slice <= last {
            self.slice = self.slice.saturating_mul(2);
            self.merge();
        }
        // A single slice has more paths than the limit.
        if self.samples.len() >= self.most {
            self.most = 2 * self.samples.len();
        }
    }

    /// Merges samples of the same path in the same slice.
    fn merge(&mut self) {
        let mut kept_indexes: HashMap<P, usize> = HashMap::new();
        let mut slice = 0;
        let mut kept = 0;
        for index in 0..self.samples.len() {
            let sample = self.samples[index];
            if sample.end / self.slice != slice {
                slice = sample.end / self.slice;
                kept_indexes.clear();
            }
            match kept_indexes.get(&sample.path) {
                Some(&index) => self.samples[index].weight += sample.weight,
                None => {
                    kept_indexes.insert(sample.path, kept);
                    self.samples[kept] = sample;
                    kept += 1;
                }
            }
        }
        self.samples.truncate(kept);
    }

    /// Calls its argument for each sample, with the time after it, its path and its instructions.
    pub fn finish(self, mut tell: impl FnMut(u64, P, u32)) {
        let mut time = 0_u64;
        for PathSample { path, end, mut weight } in self.samples {
            // Samples that were merged into this one move the following samples, for which there is room then.
            time = time.max(end.saturating_sub(weight));
            while weight > 0 {
                // A profile's weights have 31 bits.
                let part = weight.min(i32::MAX as u64);
                weight -= part;
                time = time.saturating_add(part);
                tell(time, path, part as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn weights_are_kept_and_times_do_not_overlap(
            most in 2_usize..40,
            runs in proptest::collection::vec((0_u8..6, 0_u64..100, 0_u64..20), 1..400),
        ) {
            let mut samples = Samples::new(most);
            let mut expected: HashMap<u8, u64> = HashMap::new();
            let mut end = 0;
            for (path, weight, gap) in runs {
                end += gap + weight;
                samples.add(path, end, weight);
                *expected.entry(path).or_default() += weight;
            }
            expected.retain(|_, weight| *weight > 0);
            prop_assert!(samples.samples.len() <= most.max(12));
            let mut found: HashMap<u8, u64> = HashMap::new();
            let mut before = 0;
            samples.finish(|end, path, weight| {
                assert!(before + u64::from(weight) <= end, "{before} and {weight} are more than {end}");
                before = end;
                *found.entry(path).or_default() += u64::from(weight);
            });
            prop_assert!(before <= end);
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn nothing_is_put_together_without_need() {
        let mut samples = Samples::new(10);
        for (path, end) in [(1, 5), (2, 7), (1, 8), (1, 10)] {
            samples.add(path, end, 1);
        }
        let mut found = Vec::new();
        samples.finish(|end, path, weight| found.push((end, path, weight)));
        assert_eq!(found, [(5, 1, 1), (7, 2, 1), (8, 1, 1), (10, 1, 1)]);
    }

    #[test]
    fn many_instructions_are_several_samples() {
        let mut samples = Samples::new(10);
        samples.add('a', 5_000_000_000, 5_000_000_000);
        let mut found = Vec::new();
        samples.finish(|end, _, weight| found.push((end, weight)));
        let most = i32::MAX as u32;
        assert_eq!(
            found,
            [(i32::MAX as u64, most), (2 * i32::MAX as u64, most), (5_000_000_000, 705_032_706)]
        );
    }
}
