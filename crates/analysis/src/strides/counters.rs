//! How often strides occurred: small for the many series of references that are rare or regular, fast for those
//! that are frequent.

use rustix::mm::{Advice, madvise};

/// The counters of a series of references.
#[derive(Clone, Debug)]
enum Counts {
    /// Only those that are not 0, in order; and how often they were asked for.
    Few(Vec<(u16, u64)>, u32),
    /// All, which have this number among those of all series.
    Many(u32),
}

/// What the strides of a series are added to.
pub enum Sums<'a> {
    /// Counters that are not 0, in order.
    Few(&'a mut Vec<(u16, u64)>),
    /// All counters.
    Many(&'a mut [u64]),
}

/// The counters of all series.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Counters in each series.
    width: usize,
    series: Vec<Counts>,
    /// Those of the series that have all.
    chunks: Vec<Vec<u64>>,
    /// Of how many series a chunk has them: of two to this power.
    power: u32,
    /// How many have all.
    many: u32,
    /// How many can.
    room: u32,
}

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
        let bytes = width * size_of::<u64>();
        let (room, power) = ((ROOM / bytes) as u32, (CHUNK / bytes).max(1).ilog2());
        Counters { width, series: Vec::new(), chunks: Vec::new(), power, many: 0, room }
    }

    /// Sees to it that there are so many series.
    pub fn reach(&mut self, count: usize) {
        self.series.resize(self.series.len().max(count), Counts::Few(Vec::new(), 0));
    }

    /// The counters of a series that are not 0, in order.
    pub fn of(&self, series: u32) -> Vec<(usize, u64)> {
        match &self.series[series as usize] {
            Counts::Few(few, _) => few.iter().map(|&(slot, count)| (slot.into(), count)).collect(),
            Counts::Many(number) => {
                let (chunk, start) = place(*number, self.width, self.power);
                let all = self.chunks[chunk][start..start + self.width].iter().copied();
                all.enumerate().filter(|(_, count)| *count > 0).collect()
            }
        }
    }

    /// What the strides of a reference are to be added to.
    #[inline(always)]
    pub fn sums(&mut self, series: u32) -> Sums<'_> {
        if let Counts::Few(few, times) = &mut self.series[series as usize] {
            *times = times.saturating_add(1);
            if *times >= FREQUENT || few.len() > MOST_FEW {
                self.grow(series);
            }
        }
        let Counters { width, power, .. } = *self;
        match &mut self.series[series as usize] {
            Counts::Few(few, _) => Sums::Few(few),
            Counts::Many(number) => {
                let (chunk, start) = place(*number, width, power);
                Sums::Many(&mut self.chunks[chunk][start..start + self.width])
            }
        }
    }

    /// Gives a series all counters, while there is room.
    #[cold]
    fn grow(&mut self, series: u32) {
        let Counts::Few(few, _) = &self.series[series as usize] else { return };
        if self.many == self.room {
            return;
        }
        let (chunk, start) = place(self.many, self.width, self.power);
        if chunk == self.chunks.len() {
            self.chunks.push(in_large_pages(self.width << self.power));
        }
        few.iter().for_each(|&(slot, count)| self.chunks[chunk][start + usize::from(slot)] = count);
        self.series[series as usize] = Counts::Many(self.many);
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
fn in_large_pages(words: usize) -> Vec<u64> {
    let mut zeroes = vec![0u64; words];
    let bytes = words * size_of::<u64>();
    // SAFETY: the advice is of memory that is there, and changes nothing in it.
    let _ = unsafe { madvise(zeroes.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
    zeroes
}

/// Adds up what is counted.
pub trait Add {
    /// Adds to the counter with this number.
    fn add(&mut self, slot: usize, times: u64);
}

impl Add for [u64] {
    #[inline(always)]
    fn add(&mut self, slot: usize, times: u64) {
        self[slot] += times;
    }
}

impl Add for Vec<(u16, u64)> {
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
                match counters.sums((number % 3) as u32) {
                    Sums::Few(few) => slots.map(|slot| few.add(slot, 1)),
                    Sums::Many(all) => slots.map(|slot| all.add(slot, 1)),
                };
            }
        }
        assert!(matches!(roomy.series[2], Counts::Many(_)));
        assert!(matches!(tight.series[2], Counts::Few(..)));
        assert_eq!(single.chunks.len(), 3);
        for series in 0..3 {
            assert_eq!(roomy.of(series), tight.of(series));
            assert_eq!(roomy.of(series), single.of(series));
            assert_eq!(roomy.of(series).iter().map(|(_, count)| count).sum::<u64>(), 2 * 2000);
        }
    }
}
