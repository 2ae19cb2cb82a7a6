//! Counters of strides: sparse for the many series that are rare or regular, dense for frequent ones.

use rustix::mm::{Advice, madvise};

/// Counters that are not 0, in order.
type Few = Vec<(u16, u64)>;

/// The counters of one series.
pub enum CounterSums<'a> {
    /// Counters that are not 0.
    Few(&'a mut Few),
    /// All counters.
    Many(Many<'a>),
}

/// Dense counters of a series: small ones, so that they fit the host's caches, and their overflow.
pub struct Many<'a> {
    small: &'a mut [u16],
    beyond: &'a mut Few,
}

/// The counters of all series.
#[derive(Clone, Debug)]
pub struct SeriesCounters {
    /// The number of counters of each series.
    width: usize,
    /// By series: its index among the dense ones, or [`FEW`] if it is sparse. Read at every reference.
    numbers: Vec<u32>,
    /// By series: its sparse counters, or the overflow of its dense ones; and how often they were accessed.
    few: Vec<(Few, u32)>,
    /// The small counters of dense series.
    chunks: Vec<Vec<u16>>,
    /// Logarithm of the series of a chunk.
    power: u32,
    /// The number of dense series.
    many: u32,
    /// The greatest number of dense series.
    room: u32,
}

/// Marks a sparse series.
const FEW: u32 = u32::MAX;
/// The number of references, but for those that repeat a stride, from which on a series is dense.
const FREQUENT: u32 = 1024;
/// The number of nonzero counters from which on a series is dense.
const MOST_FEW: usize = 24;
/// The greatest size of all dense series in bytes. Later series stay sparse.
const ROOM: usize = 256 << 20;
/// The greatest size of a chunk in bytes, unless it has a single series.
const CHUNK: usize = 16 << 20;

impl SeriesCounters {
    /// For series with this number of counters.
    pub fn new(width: usize) -> SeriesCounters {
        assert!(width <= usize::from(u16::MAX), "counters are numbered with 16 bits");
        let bytes = width * size_of::<u16>();
        let (room, power) = ((ROOM / bytes) as u32, (CHUNK / bytes).max(1).ilog2());
        let (numbers, few, chunks) = (Vec::new(), Vec::new(), Vec::new());
        SeriesCounters { width, numbers, few, chunks, power, many: 0, room }
    }

    /// Grows to this number of series.
    pub fn reach(&mut self, count: usize) {
        let count = count.max(self.numbers.len());
        self.numbers.resize(count, FEW);
        self.few.resize(count, (Few::new(), 0));
    }

    /// The counters of a series that are not 0, in order.
    pub fn of(&self, series: u32) -> Vec<(usize, u64)> {
        let (few, _) = &self.few[series as usize];
        let few = few.iter().map(|&(slot, count)| (usize::from(slot), count));
        let number = self.numbers[series as usize];
        if number == FEW {
            return few.collect();
        }
        let (chunk, start) = slot(number, self.width, self.power);
        let small = &self.chunks[chunk][start..start + self.width];
        let mut counts: Vec<u64> = small.iter().copied().map(u64::from).collect();
        few.for_each(|(slot, count)| counts[slot] += count);
        counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }

    /// The counters to which the strides of a reference are added.
    #[inline(always)]
    pub fn sums(&mut self, series: u32) -> CounterSums<'_> {
        if self.numbers[series as usize] == FEW {
            self.count_access(series);
        }
        match self.numbers[series as usize] {
            FEW => CounterSums::Few(&mut self.few[series as usize].0),
            number => {
                let (chunk, start) = slot(number, self.width, self.power);
                let small = &mut self.chunks[chunk][start..start + self.width];
                CounterSums::Many(Many { small, beyond: &mut self.few[series as usize].0 })
            }
        }
    }

    /// Makes a series dense when it is accessed often.
    fn count_access(&mut self, series: u32) {
        let (few, times) = &mut self.few[series as usize];
        *times = times.saturating_add(1);
        if *times >= FREQUENT || few.len() > MOST_FEW {
            self.grow(series);
        }
    }

    /// Copies the counts of a series to another one.
    pub fn copy(&mut self, from: u32, to: u32) {
        let counts = self.of(from);
        let (few, _) = &mut self.few[to as usize];
        counts.into_iter().for_each(|(slot, count)| few.add(slot, count));
    }

    /// Makes a series dense, if there is room.
    #[cold]
    fn grow(&mut self, series: u32) {
        if self.many == self.room {
            return;
        }
        let (chunk, _) = slot(self.many, self.width, self.power);
        if chunk == self.chunks.len() {
            self.chunks.push(in_large_pages(self.width << self.power));
        }
        self.numbers[series as usize] = self.many;
        self.many += 1;
    }
}

/// The chunk of a dense series, and the slot of its counters there.
#[inline(always)]
fn slot(number: u32, width: usize, power: u32) -> (usize, usize) {
    let (number, series) = (number as usize, 1 << power);
    (number / series, number % series * width)
}

/// Zeroed memory, in huge pages if the host has them: counters are far apart, and would miss its TLB. Memory that is not
/// touched is not allocated.
fn in_large_pages(counters: usize) -> Vec<u16> {
    let mut zeroes = vec![0u16; counters];
    let bytes = counters * size_of::<u16>();
    // SAFETY: the advice is on allocated memory, and does not change its contents.
    let _ = unsafe { madvise(zeroes.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
    zeroes
}

/// Adds to counters.
pub trait Add {
    /// Adds to the counter with this number.
    fn add(&mut self, slot: usize, times: u64);
}

impl Add for Many<'_> {
    #[inline(always)]
    fn add(&mut self, slot: usize, times: u64) {
        let sum = u64::from(self.small[slot]) + times;
        self.small[slot] = sum as u16;
        if sum > u16::MAX.into() {
            self.beyond(slot, sum);
        }
    }
}

impl Many<'_> {
    /// Adds the overflow of a small counter.
    #[cold]
    fn beyond(&mut self, slot: usize, sum: u64) {
        self.beyond.add(slot, sum & !u64::from(u16::MAX));
    }
}

impl Add for Few {
    fn add(&mut self, slot: usize, times: u64) {
        match self.binary_search_by_key(&slot, |(slot, _)| usize::from(*slot)) {
            Ok(index) => self[index].1 += times,
            Err(index) => self.insert(index, (slot as u16, times)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dense and sparse series have the same counts.
    #[test]
    fn counts_do_not_depend_on_their_form() {
        let mut roomy = SeriesCounters::new(500);
        let mut tight = SeriesCounters { room: 1, ..SeriesCounters::new(500) };
        let mut single = SeriesCounters { power: 0, ..SeriesCounters::new(500) };
        for counters in [&mut roomy, &mut tight, &mut single] {
            counters.reach(3);
            for number in 0..6000usize {
                let slots = [number % 7, number * number % 499];
                // More than a small counter can hold, in one step or in several.
                let times = if number % 40 == 0 { 70_000 } else { 70 };
                match counters.sums((number % 3) as u32) {
                    CounterSums::Few(few) => slots.map(|slot| few.add(slot, times)),
                    CounterSums::Many(mut all) => slots.map(|slot| all.add(slot, times)),
                };
            }
        }
        assert_ne!(roomy.numbers[2], FEW);
        assert_eq!(tight.numbers[2], FEW);
        assert_eq!(single.chunks.len(), 3);
        let small = u64::from(u16::MAX);
        assert!(roomy.of(0).iter().any(|&(slot, count)| slot > 7 && count > small));
        for series in 0..3 {
            assert_eq!(roomy.of(series), tight.of(series));
            assert_eq!(roomy.of(series), single.of(series));
            assert_eq!(
                roomy.of(series).iter().map(|(_, count)| count).sum::<u64>(),
                2 * (50 * 70_000 + 1950 * 70)
            );
        }
    }
}
