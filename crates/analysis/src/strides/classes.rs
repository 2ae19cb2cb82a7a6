//! Strides by class of units of work. References are compared with earlier ones of the same thread, whatever those belonged to;
//! what a unit adds to the counts of its thread belongs to its class, so that the counts of all classes and of what is outside of
//! units add up to those of all threads.

use std::collections::{BTreeMap, HashMap};

use super::Series;
use super::sums::StrideSums;
use crate::models::UnitClasses;

/// The counts of loads, and of stores.
pub(super) type LoadsAndStores = [StrideSums; 2];

/// The counts of classes.
#[derive(Default)]
pub(super) struct ClassStrides {
    pub(super) classes: UnitClasses,
    /// By thread: its open unit, and its counts when that began.
    open: HashMap<u32, (u64, LoadsAndStores)>,
    sums: BTreeMap<u32, LoadsAndStores>,
    /// Outside of units, once everything has been counted.
    outside: LoadsAndStores,
}

/// The group of what is outside of units; those of classes are their numbers.
const OUTSIDE: u32 = u32::MAX;

impl ClassStrides {
    /// A thread with these counts begins a unit.
    pub(super) fn begin(&mut self, thread: u32, unit: u64, counts: LoadsAndStores) {
        self.open.insert(thread, (unit, counts));
    }

    /// A thread with these counts ends a unit.
    pub(super) fn end(&mut self, thread: u32, unit: u64, mut counts: LoadsAndStores) {
        let began = self.open.remove(&thread).filter(|(open, _)| *open == unit);
        let Some(((_, began), class)) = began.zip(self.classes.of(unit)) else { return };
        counts.iter_mut().zip(&began).for_each(|(own, began)| own.subtract(began));
        let sums = self.sums.entry(class).or_default();
        sums.iter_mut().zip(&counts).for_each(|(sum, own)| sum.add(own));
    }

    /// Everything has been counted, and all threads have these counts.
    pub(super) fn finish(&mut self, threads: impl Iterator<Item = LoadsAndStores>) {
        let mut outside = LoadsAndStores::default();
        for counts in threads {
            outside.iter_mut().zip(&counts).for_each(|(sum, own)| sum.add(own));
        }
        for sums in self.sums.values() {
            outside.iter_mut().zip(sums).for_each(|(rest, own)| rest.subtract(own));
        }
        self.outside = outside;
    }

    /// The loads and the stores of each class and outside of units, where there are any.
    pub(super) fn series(&self) -> impl Iterator<Item = Series<'_>> {
        let classes = self.sums.iter().map(|(&class, sums)| (class, sums));
        let all = classes.chain([(OUTSIDE, &self.outside)]);
        let series = all.flat_map(|(group, sums)| {
            [false, true]
                .into_iter()
                .zip(sums)
                .map(move |(is_store, sums)| Series::summed(group, is_store, sums))
        });
        series.filter(|series| series.references > 0)
    }

    /// The name of a group.
    pub(super) fn name(&self, group: u32) -> &str {
        self.classes.names().get(group as usize).map_or(crate::run_counts::OUTSIDE_UNITS, String::as_str)
    }
}
