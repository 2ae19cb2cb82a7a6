//! How often strides occurred: small for the many series of references that are rare or regular, fast for those
//! that are frequent.

use rustix::mm::{Advice, madvise};

/// Counters that are not 0, in order.
type Few = Vec<(u16, u64)>;

/// What the strides of a series are added to.
pub enum Sums<'a> {
    /// Counters that are not 0.
    Few(&'a mut Few),
    /// All counters.
    Many(Many<'a>),
}

/// All counters of a series: small ones, as many as can be in the host's caches; and what went beyond them.
pub struct Many<'a> {
    small: &'a mut [u16],
    beyond: &'a mut Few,
}

/// The counters of all series.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Counters in each series.
    width: usize,
    /// By series: which it is of those that have all counters, or [`FEW`]. What is frequent is looked for here.
    numbers: Vec<u32>,
    /// By series: the counters that it has alone, or what went beyond its small ones; and how often they were asked for.
    few: Vec<(Few, u32)>,
    /// The small counters of the series that have all.
    chunks: Vec<Vec<u16>>,
    /// Of how many series a chunk has them: of two to this power.
    power: u32,
    /// How many have all.
    many: u32,
    /// How many can.
    room: u32,
}

/// A series that has only the counters that are not 0.
const FEW: u32 = u32::MAX;
/// References from which on a series gets all counters, but for those that repeat a stride.
const FREQUENT: u32 = 1024;
/// So many counters that are not 0 take longer to find than all of them take room.
const MOST_FEW: usize = 24;
/// Bytes of the series that have all counters. What comes later keeps the counters that are not 0.
const ROOM: usize = 256 << 20;
/// Bytes of a chunk, at most, but for one that has a single series.
const CHUNK: usize = 16 << 20;

impl Counters {
    /// Of series with so many counters.
    pub fn new(width: usize) -> Counters {
        assert!(width <= usize::from(u16::MAX), "counters are numbered with 16 bits");
        let bytes = width * size_of::<u16>();
        let (room, power) = ((ROOM / bytes) as u32, (CHUNK / bytes).max(1).ilog2());
        let (numbers, few, chunks) = (Vec::new(), Vec::new(), Vec::new());
        Counters { width, numbers, few, chunks, power, many: 0, room }
    }

    /// Sees to it that there are so many series.
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
        let (chunk, start) = place(number, self.width, self.power);
        let small = &self.chunks[chunk][start..start + self.width];
        let mut counts: Vec<u64> = small.iter().copied().map(u64::from).collect();
        few.for_each(|(slot, count)| counts[slot] += count);
        counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    }

    /// What the strides of a reference are to be added to.
    #[inline(always)]
    pub fn sums(&mut self, series: u32) -> Sums<'_> {
        if self.numbers[series as usize] == FEW {
            self.ask(series);
        }
        match self.numbers[series as usize] {
            FEW => Sums::Few(&mut self.few[series as usize].0),
            number => {
                let (chunk, start) = place(number, self.width, self.power);
                let small = &mut self.chunks[chunk][start..start + self.width];
                Sums::Many(Many { small, beyond: &mut self.few[series as usize].0 })
            }
        }
    }

    /// Gives a series all counters when it is asked for often.
    fn ask(&mut self, series: u32) {
        let (few, times) = &mut self.few[series as usize];
        *times = times.saturating_add(1);
        if *times >= FREQUENT || few.len() > MOST_FEW {
            self.grow(series);
        }
    }

    /// What was counted of a series was counted of another one, too.
    pub fn copy(&mut self, from: u32, to: u32) {
        let counts = self.of(from);
        let (few, _) = &mut self.few[to as usize];
        counts.into_iter().for_each(|(slot, count)| few.add(slot, count));
    }

    /// Gives a series all counters, while there is room.
    #[cold]
    fn grow(&mut self, series: u32) {
        if self.many == self.room {
            return;
        }
        let (chunk, _) = place(self.many, self.width, self.power);
        if chunk == self.chunks.len() {
            self.chunks.push(in_large_pages(self.width << self.power));
        }
        self.numbers[series as usize] = self.many;
        self.many += 1;
    }
}

/// Where the counters of a series are that has all, so many: in which chunk, and where there.
#[inline(always)]
fn place(number: u32, width: usize, power: u32) -> (usize, usize) {
    let (number, series) = (number as usize, 1 << power);
    (number / series, number % series * width)
}

/// Zeroes, in large pages if the host has such: counters are far apart, and each page is another to find. Memory that
/// is not touched is not taken.
fn in_large_pages(counters: usize) -> Vec<u16> {
    let mut zeroes = vec![0u16; counters];
    let bytes = counters * size_of::<u16>();
    // SAFETY: the advice is of memory that is there, and changes nothing in it.
    let _ = unsafe { madvise(zeroes.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
    zeroes
}

/// Adds up what is counted.
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
    /// Adds what a small counter cannot have of a sum.
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

    /// Counts the same whether a series has all its counters or not.
    #[test]
    fn counts_do_not_depend_on_their_form() {
        let mut roomy = Counters::new(500);
        let mut tight = Counters { room: 1, ..Counters::new(500) };
        let mut single = Counters { power: 0, ..Counters::new(500) };
        for counters in [&mut roomy, &mut tight, &mut single] {
            counters.reach(3);
            for number in 0..6000usize {
                let slots = [number % 7, number * number % 499];
                // More than a small counter can have, at once or little by little.
                let times = if number % 40 == 0 { 70_000 } else { 70 };
                match counters.sums((number % 3) as u32) {
                    Sums::Few(few) => slots.map(|slot| few.add(slot, times)),
                    Sums::Many(mut all) => slots.map(|slot| all.add(slot, times)),
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
