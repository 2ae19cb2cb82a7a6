//! The error of shares that were sampled.

/// Standard deviations of an interval that holds the true value 95 times in 100.
const DEVIATIONS: f64 = 1.96;

/// The interval that holds the true share 95 times in 100, if `hits` of `samples` samples hit: Wilson's, which is good for small
/// shares, too.
pub fn interval(hits: u64, samples: u64) -> (f64, f64) {
    if samples == 0 {
        return (0.0, 1.0);
    }
    let (n, z) = (samples as f64, DEVIATIONS);
    let share = hits as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The standard deviation of the share that independent samples find of what has this true share.
pub fn standard_error(share: f64, samples: u64) -> f64 {
    if samples == 0 { f64::INFINITY } else { (share * (1.0 - share) / samples as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe's published examples: 81 of 263, and 0 of 20.
    #[test]
    fn intervals_are_those_in_the_literature() {
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 5e-4, "{value} {expected}");
        let (low, high) = interval(81, 263);
        near(low, 0.2553);
        near(high, 0.3662);
        let (low, high) = interval(0, 20);
        near(low, 0.0);
        near(high, 0.1611);
        assert_eq!(interval(0, 0), (0.0, 1.0));
        near(standard_error(0.5, 100), 0.05);
    }
}
