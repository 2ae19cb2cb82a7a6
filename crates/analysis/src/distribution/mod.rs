//! The cost of calls: the exact distribution over all units of work, its percentiles and its histogram.

mod histogram;
mod tables;

use std::collections::BTreeMap;

pub use histogram::{Bin, bins};
pub use tables::{DistributionRequest, distribution_tables, thread_name};

/// How many values are equal, for each value. All results are exact; the memory depends on the number of different values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// By value.
    counts: BTreeMap<u64, u64>,
    number: u64,
    sum: u128,
}

impl Distribution {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        *self.counts.entry(value).or_default() += 1;
        self.number += 1;
        self.sum += u128::from(value);
    }

    /// The number of values.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The smallest value.
    pub fn minimum(&self) -> Option<u64> {
        self.counts.first_key_value().map(|(value, _)| *value)
    }

    /// The largest value.
    pub fn maximum(&self) -> Option<u64> {
        self.counts.last_key_value().map(|(value, _)| *value)
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (self.number > 0).then(|| self.sum as f64 / self.number as f64)
    }

    /// The percentile by the nearest-rank method: the smallest value that `percent` of all values, 1 to 100, do not exceed.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (u128::from(percent) * u128::from(self.number)).div_ceil(100);
        let mut before = 0;
        let mut values = self.counts.iter();
        let found = values.find(|(_, count)| {
            before += u128::from(**count);
            before >= rank
        });
        found.map(|(value, _)| *value)
    }

    /// The number of values in a range that includes both ends.
    pub fn number_in(&self, from: u64, to: u64) -> u64 {
        self.counts.range(from..=to).map(|(_, count)| count).sum()
    }
}

impl FromIterator<u64> for Distribution {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Distribution {
        let mut distribution = Distribution::default();
        values.into_iter().for_each(|value| distribution.add(value));
        distribution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(0_u64..50, 1..300),
            percent in 1_u64..=100,
        ) {
            let distribution: Distribution = values.iter().copied().collect();
            values.sort_unstable();
            let exceed_not = |value: u64| values.iter().filter(|&&other| other <= value).count() as u64;
            let smallest = values.iter().find(|&&value| 100 * exceed_not(value) >= percent * values.len() as u64);
            prop_assert_eq!(distribution.percentile(percent), smallest.copied());
            prop_assert_eq!(distribution.percentile(100), distribution.maximum());
            prop_assert_eq!(distribution.number_in(0, u64::MAX), values.len() as u64);
        }
    }

    #[test]
    fn nothing_has_no_percentiles() {
        let nothing = Distribution::default();
        assert_eq!((nothing.percentile(50), nothing.minimum(), nothing.mean()), (None, None, None));
    }

    #[test]
    fn nearest_rank_takes_a_value_that_there_is() {
        let distribution: Distribution = [15, 20, 35, 40, 50].into_iter().collect();
        assert_eq!([5, 30, 40, 50, 100].map(|p| distribution.percentile(p).unwrap()), [15, 20, 20, 35, 50]);
    }
}
