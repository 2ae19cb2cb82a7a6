//! Histograms of lengths, such as those of basic blocks.

/// Sizes above this are counted together.
const LARGEST: usize = 4096;

/// A histogram of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    counts: Vec<u64>,
    sum: u64,
    largest: u64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { counts: vec![0; LARGEST + 1], sum: 0, largest: 0 }
    }
}

impl Sizes {
    /// Counts a size; 0 is ignored.
    #[inline]
    pub fn add(&mut self, size: u64) {
        if size > 0 {
            self.counts[size.min(LARGEST as u64) as usize] += 1;
            self.sum += size;
            self.largest = self.largest.max(size);
        }
    }

    /// The count of these sizes; the largest ones are counted under 4096.
    pub fn of(&self, sizes: std::ops::RangeInclusive<usize>) -> u64 {
        let last = (*sizes.end()).min(LARGEST);
        self.counts.get(*sizes.start()..=last).unwrap_or_default().iter().sum()
    }

    /// The count of all sizes.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The largest size.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The mean size; of at least one.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }
}
