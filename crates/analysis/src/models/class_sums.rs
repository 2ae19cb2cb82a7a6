//! Sums by class of the units of work in which they arise.

use std::collections::HashMap;
use std::hash::Hash;

use events::record::Mark;

use super::{ExecutionPart, UnitClasses};

/// Sums by key, divided among the classes of units of work. The class of a unit is known at its end.
#[derive(Debug)]
pub(crate) struct ClassSums<K, V> {
    /// By thread, the open unit, and what it has.
    open: HashMap<u32, (u64, HashMap<K, V>)>,
    /// By class, or outside of units.
    divided: HashMap<(Option<u32>, K), V>,
}

/// Values that can be added up.
pub(crate) trait Addable: Clone + Default {
    fn add(&mut self, other: &Self);
}

impl Addable for u64 {
    fn add(&mut self, other: &u64) {
        *self += other;
    }
}

impl Addable for Vec<u64> {
    fn add(&mut self, other: &Vec<u64>) {
        self.resize(self.len().max(other.len()), 0);
        self.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
    }
}

impl<K, V> Default for ClassSums<K, V> {
    fn default() -> ClassSums<K, V> {
        ClassSums { open: HashMap::new(), divided: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash, V: Addable> ClassSums<K, V> {
    /// The sum of what arises in a thread now.
    pub fn now(&mut self, thread: u32, key: K) -> &mut V {
        match self.open.get_mut(&thread) {
            Some((_, sums)) => sums.entry(key).or_default(),
            None => self.divided.entry((None, key)).or_default(),
        }
    }

    /// The sum of a class, or of what is outside of units.
    pub fn of(&mut self, class: Option<u32>, key: K) -> &mut V {
        self.divided.entry((class, key)).or_default()
    }

    /// The unit that a thread is in.
    pub fn unit(&self, thread: u32) -> Option<u64> {
        self.open.get(&thread).map(|(unit, _)| *unit)
    }

    /// A mark of a thread. If a unit ends, returns its class.
    pub fn mark(&mut self, thread: u32, mark: Mark, classes: &UnitClasses) -> Option<Option<u32>> {
        let ended = match mark {
            Mark::UnitBegins(_) | Mark::UnitCut(_) => None,
            Mark::UnitEnds(unit) | Mark::UnitLeft(unit) => Some(unit),
            _ => return None,
        };
        let closed = self.open.remove(&thread).map(|(unit, sums)| {
            let class = ended.filter(|ended| *ended == unit).and_then(|unit| classes.of(unit));
            sums.iter().for_each(|(&key, sum)| self.of(class, key).add(sum));
            class
        });
        if let Mark::UnitBegins(unit) = mark {
            self.open.insert(thread, (unit, HashMap::new()));
        }
        closed
    }

    /// All sums, with the class of each. What belongs to units that have not ended is outside of units.
    pub fn all(&self) -> impl Iterator<Item = (Option<u32>, K, &V)> {
        let open = self.open.values().flat_map(|(_, sums)| sums).map(|(&key, sum)| (None, key, sum));
        self.divided.iter().map(|(&(class, key), sum)| (class, key, sum)).chain(open)
    }

    /// The sums of a part of the execution.
    pub fn of_part(&self, part: ExecutionPart) -> impl Iterator<Item = (K, &V)> {
        self.all().filter(move |(class, ..)| part.has(*class)).map(|(_, key, sum)| (key, sum))
    }
}
