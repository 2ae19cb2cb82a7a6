//! Strides by class of units of work. References are compared with earlier ones of the same series and thread, whatever those belonged
//! to; what a unit adds to the counts of its thread belongs to its class, so that the counts of all classes and of what is outside of
//! units add up to those of all threads.

use std::collections::BTreeMap;

use events::record::Mark;

use super::sums::StrideSums;
use super::{Key, Series, Strides};
use crate::models::{ExecutionPart, UnitClasses};

/// The counts of series.
type SeriesSums = BTreeMap<Key, StrideSums>;

/// The counts of classes.
#[derive(Default)]
pub(super) struct ClassStrides {
    pub(super) classes: UnitClasses,
    threads: Vec<ThreadSeries>,
    /// By a thread's own series, the unit that referred to it last, as a number in the order of beginnings from 1.
    last_units: Vec<u64>,
    /// How many units have begun.
    units: u64,
    of_classes: BTreeMap<u32, SeriesSums>,
    /// Outside of units and everywhere, once everything has been counted.
    outside: SeriesSums,
    whole: SeriesSums,
}

/// The series of a thread.
#[derive(Default)]
struct ThreadSeries {
    /// By series of all threads, the thread's own one of the same references.
    own: Vec<Option<u32>>,
    open: Option<OpenUnit>,
}

/// A unit of work that a thread is in.
struct OpenUnit {
    unit: u64,
    /// Its number in the order of beginnings.
    number: u64,
    /// The series to which it has referred, with their counts before.
    began: Vec<(u32, StrideSums)>,
}

impl ClassStrides {
    /// A thread is about to refer to a series of all threads. Returns its own one.
    #[inline]
    pub(super) fn reference(&mut self, thread: u32, series: u32, strides: &mut Strides) -> u32 {
        let ThreadSeries { own, open } = of_thread(&mut self.threads, thread);
        if own.len() <= series as usize {
            own.resize(series as usize + 1, None);
        }
        let own = *own[series as usize].get_or_insert_with(|| strides.duplicate(series));
        if let Some(open) = open {
            if self.last_units.len() <= own as usize {
                self.last_units.resize(own as usize + 1, 0);
            }
            if std::mem::replace(&mut self.last_units[own as usize], open.number) != open.number {
                open.began.push((own, strides.one(own).sums()));
            }
        }
        own
    }

    /// A mark of a thread.
    pub(super) fn mark(&mut self, thread: u32, mark: Mark, strides: &Strides) {
        let open = &mut of_thread(&mut self.threads, thread).open;
        match mark {
            Mark::UnitBegins(unit) => {
                self.units += 1;
                *open = Some(OpenUnit { unit, number: self.units, began: Vec::new() });
            }
            Mark::UnitCut(_) => *open = None,
            Mark::UnitEnds(unit) | Mark::UnitLeft(unit) => {
                let ended = open.take().filter(|open| open.unit == unit);
                let Some((ended, class)) = ended.zip(self.classes.of(unit)) else { return };
                let sums = self.of_classes.entry(class).or_default();
                for (series, began) in ended.began {
                    let mut counts = strides.one(series).sums();
                    counts.subtract(&began);
                    sums.entry(strides.keys[series as usize]).or_default().add(&counts);
                }
            }
            _ => {}
        }
    }

    /// Everything has been counted.
    pub(super) fn finish(&mut self, strides: &Strides) {
        for &series in self.threads.iter().flat_map(|thread| &thread.own).flatten() {
            let sum = self.whole.entry(strides.keys[series as usize]).or_default();
            sum.add(&strides.one(series).sums());
        }
        self.outside.clone_from(&self.whole);
        for (key, sums) in self.of_classes.values().flatten() {
            self.outside.entry(*key).or_default().subtract(sums);
        }
    }

    /// The classes, the one with most references first, and what is outside of units, with their names.
    pub(super) fn parts(&self) -> Vec<(String, ExecutionPart)> {
        self.classes.parts(|part| self.series(part).map(|series| series.references).sum::<u64>())
    }

    /// The series of a part of the execution that have references.
    pub(super) fn series(&self, part: ExecutionPart) -> impl Iterator<Item = Series<'_>> {
        let sums = match part {
            ExecutionPart::Whole => Some(&self.whole),
            ExecutionPart::Class(class) => self.of_classes.get(&class),
            ExecutionPart::OutsideUnits => Some(&self.outside),
        };
        let series = sums.into_iter().flatten().map(move |(&key, sums)| Series::summed(key, part, sums));
        series.filter(|series| series.references > 0)
    }

    /// The name of a part of the execution that is not the whole.
    pub(super) fn name(&self, part: ExecutionPart) -> &str {
        match part {
            ExecutionPart::Class(class) => &self.classes.names()[class as usize],
            ExecutionPart::OutsideUnits | ExecutionPart::Whole => crate::run_counts::OUTSIDE_UNITS,
        }
    }
}

#[inline]
fn of_thread(threads: &mut Vec<ThreadSeries>, thread: u32) -> &mut ThreadSeries {
    let thread = thread as usize;
    if threads.len() <= thread {
        threads.resize_with(thread + 1, ThreadSeries::default);
    }
    &mut threads[thread]
}
