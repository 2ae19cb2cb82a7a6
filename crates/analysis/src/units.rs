//! Units of work: when they have reached a steady state, and how long they are.

use std::collections::VecDeque;

use events::Unit;
use serde::{Deserialize, Serialize};

use table::{Kind, Table, Value};

/// How steady state is recognised and how much is measured then.
#[derive(Clone, Debug)]
pub struct SteadyRules {
    /// Units in a batch.
    pub batch: usize,
    /// How many successive batches must agree.
    pub batches: usize,
    /// By how much their mean path lengths may differ, relative to the smallest.
    pub tolerance: f64,
    /// The cache-hit ratio that the last batch must reach, if the units carry gauges of hits and
    /// misses (the first two).
    pub hit_ratio: Option<f64>,
    /// How many units to measure then.
    pub measure: usize,
}

impl Default for SteadyRules {
    fn default() -> SteadyRules {
        SteadyRules { batch: 50, batches: 3, tolerance: 0.01, hit_ratio: None, measure: 100 }
    }
}

/// The phase of the unit that was just added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Before the steady state.
    WarmingUp,
    /// Measured.
    Measuring,
    /// The last one to be measured was there before: no more are needed.
    Done,
}

/// A batch's figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitBatch {
    /// Mean path length, in instructions.
    pub mean: f64,
    /// Share of cache accesses that hit, if known.
    pub hit_ratio: Option<f64>,
}

/// Watches units as they come, waits for the steady state and keeps the units measured in it.
#[derive(Clone, Debug)]
pub struct SteadyState {
    rules: SteadyRules,
    current: Vec<u64>,
    /// Gauges of hits and misses where the current batch began.
    batch_start: Option<(u64, u64)>,
    batches: VecDeque<UnitBatch>,
    /// The last units before the steady state, in case it never comes.
    recent: VecDeque<Unit>,
    measured: Vec<Unit>,
    seen: u64,
    steady_after: Option<u64>,
}

impl SteadyState {
    /// Nothing seen yet.
    pub fn new(rules: SteadyRules) -> SteadyState {
        SteadyState {
            rules,
            current: Vec::new(),
            batch_start: None,
            batches: VecDeque::new(),
            recent: VecDeque::new(),
            measured: Vec::new(),
            seen: 0,
            steady_after: None,
        }
    }

    /// Takes the next unit.
    pub fn push(&mut self, unit: Unit) -> Phase {
        if self.steady_after.is_some() {
            if self.measured.len() < self.rules.measure {
                self.measured.push(unit);
            }
            return if self.measured.len() < self.rules.measure { Phase::Measuring } else { Phase::Done };
        }
        self.seen += 1;
        self.current.push(unit.instructions);
        let gauges = (unit.gauges.len() >= 2).then(|| (unit.gauges[0], unit.gauges[1]));
        let start = *self.batch_start.get_or_insert(gauges.unwrap_or_default());
        if self.recent.len() == self.rules.measure {
            self.recent.pop_front();
        }
        self.recent.push_back(unit);
        if self.current.len() == self.rules.batch {
            let mean = self.current.iter().sum::<u64>() as f64 / self.rules.batch as f64;
            let hit_ratio = gauges.and_then(|end| hit_ratio(start, end));
            self.current.clear();
            self.batch_start = gauges;
            self.batches.push_back(UnitBatch { mean, hit_ratio });
            if self.batches.len() > self.rules.batches {
                self.batches.pop_front();
            }
            if self.is_steady() {
                self.steady_after = Some(self.seen);
            }
        }
        Phase::WarmingUp
    }

    fn is_steady(&self) -> bool {
        let means = || self.batches.iter().map(|batch| batch.mean);
        let (low, high) = (means().fold(f64::MAX, f64::min), means().fold(0.0, f64::max));
        let warm = match self.rules.hit_ratio {
            Some(required) => {
                self.batches.back().and_then(|batch| batch.hit_ratio).is_none_or(|ratio| ratio >= required)
            }
            None => true,
        };
        self.batches.len() == self.rules.batches && high - low <= self.rules.tolerance * low && warm
    }

    /// The outcome: the measured units, or the last ones seen if the steady state never came.
    pub fn finish(self) -> Measurement {
        let last_batch = self.batches.back().copied();
        // A steady state with nothing after it to measure is of no use.
        let steady = !self.measured.is_empty();
        let units = if steady { self.measured } else { self.recent.into() };
        Measurement { units, warm_up: self.seen, steady, last_batch }
    }
}

fn hit_ratio(start: (u64, u64), end: (u64, u64)) -> Option<f64> {
    let hits = end.0.wrapping_sub(start.0) as f64;
    let misses = end.1.wrapping_sub(start.1) as f64;
    (hits + misses > 0.0).then(|| hits / (hits + misses))
}

/// The units that a result rests on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// In the order of their ends.
    pub units: Vec<Unit>,
    /// How many units went before and were not measured (all, if the state was never steady).
    pub warm_up: u64,
    /// Whether the steady state was reached.
    pub steady: bool,
    /// The last batch before the measurement.
    pub last_batch: Option<UnitBatch>,
}

/// Statistics of path lengths, in instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLength {
    /// How many units.
    pub units: usize,
    /// Geometric mean, as the 1997 paper took it.
    pub geometric_mean: f64,
    /// Arithmetic mean: what the tables by instruction add up to.
    pub mean: f64,
    /// Standard deviation of the sample.
    pub deviation: f64,
    /// Smallest.
    pub minimum: u64,
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// Largest.
    pub maximum: u64,
}

impl PathLength {
    /// Of at least one unit.
    pub fn of(units: &[Unit]) -> Option<PathLength> {
        PathLength::of_lengths(units.iter().map(|unit| unit.instructions).collect())
    }

    /// Of the path lengths of at least one unit.
    pub fn of_lengths(mut lengths: Vec<u64>) -> Option<PathLength> {
        lengths.sort_unstable();
        let (&minimum, &maximum) = (lengths.first()?, lengths.last()?);
        let n = lengths.len() as f64;
        let mean = lengths.iter().sum::<u64>() as f64 / n;
        let squares: f64 = lengths.iter().map(|&length| (length as f64 - mean).powi(2)).sum();
        let logarithms: f64 = lengths.iter().map(|&length| (length as f64).ln()).sum();
        let middle = lengths.len() / 2;
        let median = if lengths.len() % 2 == 1 {
            lengths[middle] as f64
        } else {
            (lengths[middle - 1] + lengths[middle]) as f64 / 2.0
        };
        Some(PathLength {
            units: lengths.len(),
            geometric_mean: (logarithms / n).exp(),
            mean,
            deviation: (squares / (n - 1.0).max(1.0)).sqrt(),
            minimum,
            median,
            maximum,
        })
    }
}

/// One row a measurement: its label and the statistics of its path lengths.
pub fn path_lengths(name: &str, title: &str, measurements: &[(&str, &Measurement)]) -> Table {
    let mut table = Table::new(
        name,
        title,
        &[
            ("Measured", Kind::Text),
            ("Units", Kind::Count),
            ("Geometric mean", Kind::Count),
            ("Mean", Kind::Real(1)),
            ("Std. deviation", Kind::Real(1)),
            ("Minimum", Kind::Count),
            ("Median", Kind::Real(1)),
            ("Maximum", Kind::Count),
            ("Warm-up units", Kind::Count),
            ("Cache hits", Kind::Percent(1)),
        ],
    );
    for (label, measurement) in measurements {
        let Some(length) = PathLength::of(&measurement.units) else { continue };
        let hits = measurement.last_batch.and_then(|batch| batch.hit_ratio).map(|ratio| 100.0 * ratio);
        table.row(vec![
            (*label).into(),
            (length.units as u64).into(),
            Value::Integer(length.geometric_mean.round() as i64),
            length.mean.into(),
            length.deviation.into(),
            length.minimum.into(),
            length.median.into(),
            length.maximum.into(),
            measurement.warm_up.into(),
            hits.into(),
        ]);
        table.notes.extend(unsteady_note(measurement).map(|note| format!("{label}: {note}")));
    }
    table
}

/// A note for readers on units that are not of the steady state.
pub fn unsteady_note(measurement: &Measurement) -> Option<String> {
    let Measurement { units, warm_up, .. } = measurement;
    (!measurement.steady && !units.is_empty()).then(|| {
        format!("no steady state was reached; these are the last {} of {warm_up} units.", units.len())
    })
}

/// One row a unit measured.
pub fn each_unit(measurement: &Measurement) -> Table {
    let columns = [("unit", Kind::Count), ("instructions", Kind::Count), ("system calls", Kind::Count)];
    let mut table = Table::new("units", "Units of work measured", &columns);
    for unit in sorted_by_number(&measurement.units, |unit| unit.number) {
        let calls: u64 = unit.system_calls.iter().map(|(_, n)| n).sum();
        table.row(vec![unit.number.into(), unit.instructions.into(), calls.into()]);
    }
    table
}

/// Units by their numbers: those of several threads may end in another order than they began.
pub(crate) fn sorted_by_number<T>(units: &[T], number: impl Fn(&T) -> u64) -> Vec<&T> {
    let mut sorted: Vec<&T> = units.iter().collect();
    sorted.sort_by_key(|unit| number(unit));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(instructions: u64, hits: u64, misses: u64) -> Unit {
        Unit { instructions, gauges: vec![hits, misses], returned: true, ..Unit::default() }
    }

    fn rules() -> SteadyRules {
        SteadyRules { batch: 10, batches: 3, tolerance: 0.01, hit_ratio: Some(0.95), measure: 30 }
    }

    /// Pushes units whose lengths and cumulative hit and miss counts are given until done.
    fn run(lengths: impl Iterator<Item = (u64, u64, u64)>) -> Measurement {
        let mut state = SteadyState::new(rules());
        for (length, hits, misses) in lengths {
            if state.push(unit(length, hits, misses)) == Phase::Done {
                break;
            }
        }
        state.finish()
    }

    #[test]
    fn a_cold_start_is_not_measured() {
        // 100 units that get shorter, then constant ones.
        let measurement = run((0..500u64).map(|i| (1000 + 10 * 100u64.saturating_sub(i), 100 * i, 0)));
        assert!(measurement.steady);
        assert_eq!(measurement.units.len(), 30);
        assert!(measurement.units.iter().all(|unit| unit.instructions == 1000));
    }

    #[test]
    fn a_stable_count_with_a_cold_cache_is_not_steady() {
        let measurement = run((0..500u64).map(|i| (1000, 90 * i, 10 * i)));
        assert!(!measurement.steady);
        assert_eq!(measurement.units.len(), 30);
        assert_eq!(measurement.warm_up, 500);
    }

    #[test]
    fn the_cache_must_be_warm_in_the_last_batch_not_on_the_whole() {
        // All misses for 200 units, then none: steady soon after, long before the sum is at 95 %.
        let measurement = run((0..500u64).map(|i| (1000, 10 * i.saturating_sub(200), 10 * i.min(200))));
        assert!(measurement.steady);
        assert!((200..=240).contains(&measurement.warm_up), "{}", measurement.warm_up);
    }

    #[test]
    fn a_slow_drift_is_not_steady() {
        let measurement = run((0..500u64).map(|i| (1000 + 2 * i, i, 0)));
        assert!(!measurement.steady || measurement.warm_up > 450, "{}", measurement.warm_up);
    }

    proptest! {
        #[test]
        fn statistics_are_ordered(lengths in prop::collection::vec(1u64..1_000_000, 1..100)) {
            let units: Vec<Unit> = lengths.iter().map(|&n| unit(n, 0, 0)).collect();
            let length = PathLength::of(&units).unwrap();
            prop_assert!(length.minimum as f64 <= length.geometric_mean * (1.0 + 1e-12));
            prop_assert!(length.geometric_mean <= length.mean * (1.0 + 1e-12));
            prop_assert!(length.mean <= length.maximum as f64 * (1.0 + 1e-12));
            prop_assert!(length.minimum as f64 <= length.median && length.median <= length.maximum as f64);
        }
    }
}
