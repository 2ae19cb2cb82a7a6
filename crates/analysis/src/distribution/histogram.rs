//! Histograms: bins of equal width, or of equal ratio where the largest values are far from the others.

use super::Distribution;

/// Bins of equal width are at most this many, and one for the incomplete bin at an end.
const MOST_BINS: u64 = 20;

/// Bins have equal ratios if the largest value is this many times the median.
const FAR: u64 = 10;

/// A range of values, which includes both ends, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The smallest value that belongs to the bin.
    pub from: u64,
    /// The largest value that belongs to it.
    pub to: u64,
    /// The number of values in it.
    pub number: u64,
}

/// The bins of a distribution, without gaps between them, from its smallest value to its largest.
pub fn bins(distribution: &Distribution) -> Vec<Bin> {
    let (Some(least), Some(median), Some(most)) =
        (distribution.minimum(), distribution.percentile(50), distribution.maximum())
    else {
        return Vec::new();
    };
    let is_far = most / FAR >= median.max(1);
    let starts = if is_far { ratio_starts(least, most) } else { equal_starts(least, most) };
    let ends = starts.iter().skip(1).map(|next| next - 1).chain([u64::MAX]);
    let bin = |(&from, to): (&u64, u64)| {
        // The last bin is as wide as its kind says, not without an end.
        let to = if to == u64::MAX { last_end(&starts, is_far) } else { to };
        Bin { from, to, number: distribution.number_in(from, to) }
    };
    starts.iter().zip(ends).map(bin).collect()
}

/// The largest value of the last bin.
fn last_end(starts: &[u64], is_far: bool) -> u64 {
    match starts {
        [.., last] if is_far => next_ratio(*last).saturating_sub(1),
        [.., before, last] => last.saturating_add(last - before - 1),
        _ => starts[0],
    }
}

/// The starts of bins of a round width.
fn equal_starts(least: u64, most: u64) -> Vec<u64> {
    let width = round_up((most - least) / MOST_BINS + 1);
    let first = least / width * width;
    (0..=(most - first) / width).map(|bin| first + bin * width).collect()
}

/// The starts of bins at 0, 1, 2, 5, 10, 20, 50 and so on.
fn ratio_starts(least: u64, most: u64) -> Vec<u64> {
    let mut starts = vec![0];
    let mut start = 1;
    while start <= most {
        starts.push(start);
        let next = next_ratio(start);
        if next <= start {
            break;
        }
        start = next;
    }
    let first = starts.iter().rposition(|start| *start <= least).unwrap_or(0);
    starts.split_off(first)
}

/// The start after this one among 1, 2, 5, 10 and so on; the same if there is none.
fn next_ratio(start: u64) -> u64 {
    let leading = start / 10_u64.pow(start.max(1).ilog10());
    match leading {
        0 => 1,
        2 => (start / 2).saturating_mul(5),
        _ => start.saturating_mul(2),
    }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on that is at least this.
fn round_up(width: u64) -> u64 {
    let mut round = 1;
    while round < width && next_ratio(round) > round {
        round = next_ratio(round);
    }
    round
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bins_of(values: &[u64]) -> Vec<Bin> {
        bins(&values.iter().copied().collect())
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_bin(
            values in prop::collection::vec(prop_oneof![0_u64..40, 0_u64..100_000, 0_u64..1 << 50], 1..200),
        ) {
            let bins = bins_of(&values);
            prop_assert!(bins.len() <= 60, "{bins:?}");
            prop_assert!(bins.windows(2).all(|pair| pair[0].to + 1 == pair[1].from), "{bins:?}");
            for bin in &bins {
                let own = values.iter().filter(|value| (bin.from..=bin.to).contains(value)).count();
                prop_assert_eq!(bin.number, own as u64);
            }
            prop_assert_eq!(bins.iter().map(|bin| bin.number).sum::<u64>(), values.len() as u64);
            prop_assert!(bins[0].number > 0 && bins[bins.len() - 1].number > 0, "{bins:?}");
        }
    }

    #[test]
    fn bins_have_round_limits() {
        let near: Vec<(u64, u64)> = bins_of(&[805, 990, 1257]).iter().map(|bin| (bin.from, bin.to)).collect();
        assert_eq!((near[0], near.last(), near.len()), ((800, 849), Some(&(1250, 1299)), 10));
        let far: Vec<(u64, u64)> = bins_of(&[7, 7, 900]).iter().map(|bin| (bin.from, bin.to)).collect();
        assert_eq!(far[..2], [(5, 9), (10, 19)]);
        assert_eq!(far.last(), Some(&(500, 999)));
        assert_eq!(bins_of(&[3, 3]), [Bin { from: 3, to: 3, number: 2 }]);
    }
}
