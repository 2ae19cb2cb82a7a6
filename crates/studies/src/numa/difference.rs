//! The difference of the means of two samples, with the interval in which it lies.

/// A difference in percent of the first mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeanDifference {
    pub(super) percent: f64,
    /// Half of the interval that has the true difference with a confidence of 95 %; None of a sample of one.
    pub(super) half_width: Option<f64>,
}

/// Quantiles of Student's distribution for intervals of 95 %, from one degree of freedom on.
const QUANTILES: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
];

/// The difference of two samples whose variances need not be equal (B. L. Welch, "The generalization of 'Student's' problem when several
/// different population variances are involved", Biometrika 1947). The variance of a ratio is that of its logarithm, to the first order.
pub(super) fn difference(before: &[f64], after: &[f64]) -> MeanDifference {
    let [(mean, of_before), (after_mean, of_after)] = [before, after].map(|sample| {
        let mean = sample.iter().sum::<f64>() / sample.len() as f64;
        let squares: f64 = sample.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
        // Of the mean, relative to it.
        (mean, squares / (sample.len() as f64 - 1.0) / sample.len() as f64)
    });
    let ratio = after_mean / mean;
    let variance = of_before + of_after;
    let of_sample = |variance: f64, sample: &[f64]| variance.powi(2) / (sample.len() as f64 - 1.0);
    let freedom = variance.powi(2) / (of_sample(of_before, before) + of_sample(of_after, after));
    // Equal values have no variance, and any quantile will do. The least one of a fraction is on the safe side.
    let index = if freedom.is_finite() { freedom as usize } else { QUANTILES.len() };
    let quantile = QUANTILES[index.clamp(1, QUANTILES.len()) - 1];
    let is_known = before.len() > 1 && after.len() > 1;
    MeanDifference {
        percent: 100.0 * (ratio - 1.0),
        half_width: is_known.then(|| 100.0 * ratio * quantile * variance.sqrt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_intervals() {
        // Welch's interval of 0.95 for 100 +- 10 and 60 +- 6, three values each: each mean has a relative error of 0.1 / sqrt(3); the
        // variances are equal, so that there are four degrees of freedom.
        let found = difference(&[90.0, 100.0, 110.0], &[54.0, 60.0, 66.0]);
        assert!((found.percent + 40.0).abs() < 1e-9, "{found:?}");
        let expected = 60.0 * 2.776 * (2.0f64 * 0.01 / 3.0).sqrt();
        assert!((found.half_width.unwrap() - expected).abs() < 1e-9, "{found:?} {expected}");
    }

    #[test]
    fn samples_of_one_have_no_interval() {
        assert_eq!(difference(&[100.0], &[50.0]), MeanDifference { percent: -50.0, half_width: None });
    }

    #[test]
    fn equal_values_have_an_interval_of_nothing() {
        let found = difference(&[100.0, 100.0], &[50.0, 50.0]);
        assert_eq!(found, MeanDifference { percent: -50.0, half_width: Some(0.0) });
    }

    #[test]
    fn the_interval_contains_the_difference_as_often_as_it_says() {
        // Samples of four with a known difference, by a generator of Lehmer; sums of uniform numbers are nearly normal.
        let mut state = 1u64;
        let mut normal = || {
            let uniform = || {
                state = state * 48271 % 0x7fff_ffff;
                state as f64 / f64::from(0x7fff_ffff)
            };
            std::iter::repeat_with(uniform).take(12).sum::<f64>() - 6.0
        };
        let mut sample = |mean: f64| -> Vec<f64> { (0..4).map(|_| mean * (1.0 + 0.05 * normal())).collect() };
        let contains = (0..4000).filter(|_| {
            let found = difference(&sample(100.0), &sample(70.0));
            (found.percent + 30.0).abs() <= found.half_width.unwrap()
        });
        let share = contains.count() as f64 / 4000.0;
        assert!((0.94..0.975).contains(&share), "{share}");
    }
}
