//! How often strides occurred: small for the many series of references that are rare or regular, fast for those
//! that are frequent.

/// The counters of a series of references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Only those that are not 0, in order.
    Few(Vec<(u16, u64)>),
    /// All.
    Many(Box<[u64]>),
}

#[derive(Clone, Debug)]
struct Series {
    /// How often it was asked for while it had few.
    times: u32,
    counts: Counts,
}

/// The counters of all series.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Counters in each series.
    width: usize,
    series: Vec<Series>,
    /// How many series more can have all counters.
    room: usize,
}

/// References from which on a series gets all counters, but for those that repeat a stride.
const FREQUENT: u32 = 1024;
/// So many counters that are not 0 take longer to find than all of them take room.
const MOST_FEW: usize = 24;
/// Bytes of the series that have all counters. What comes later keeps the counters that are not 0.
const ROOM: usize = 256 << 20;

impl Counters {
    /// Of series with so many counters.
    pub fn new(width: usize) -> Counters {
        assert!(width <= usize::from(u16::MAX), "counters are numbered with 16 bits");
        Counters { width, series: Vec::new(), room: ROOM / (width * size_of::<u64>()) }
    }

    /// Sees to it that there are so many series.
    pub fn reach(&mut self, count: usize) {
        let none = Series { times: 0, counts: Counts::Few(Vec::new()) };
        self.series.resize(self.series.len().max(count), none);
    }

    /// The counters of a series that are not 0, in order.
    pub fn of(&self, series: u32) -> Vec<(usize, u64)> {
        match &self.series[series as usize].counts {
            Counts::Few(few) => few.iter().map(|&(slot, count)| (slot.into(), count)).collect(),
            Counts::Many(all) => all.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// What the strides of a reference are to be added to.
    #[inline(always)]
    pub fn counts(&mut self, series: u32) -> &mut Counts {
        let one = &mut self.series[series as usize];
        if let Counts::Few(few) = &one.counts {
            one.times = one.times.saturating_add(1);
            if one.times >= FREQUENT || few.len() > MOST_FEW {
                self.grow(series);
            }
        }
        &mut self.series[series as usize].counts
    }

    /// Gives a series all counters, while there is room.
    #[cold]
    fn grow(&mut self, series: u32) {
        let one = &mut self.series[series as usize];
        let Counts::Few(few) = &one.counts else { return };
        let Some(room) = self.room.checked_sub(1) else { return };
        self.room = room;
        let mut all = vec![0; self.width].into_boxed_slice();
        few.iter().for_each(|&(slot, count)| all[usize::from(slot)] = count);
        one.counts = Counts::Many(all);
    }
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
        for counters in [&mut roomy, &mut tight] {
            counters.reach(3);
            for number in 0..6000usize {
                let slots = [number % 7, number * number % 499];
                match counters.counts((number % 3) as u32) {
                    Counts::Few(few) => slots.map(|slot| few.add(slot, 1)),
                    Counts::Many(all) => slots.map(|slot| all.add(slot, 1)),
                };
            }
        }
        assert!(matches!(roomy.series[2].counts, Counts::Many(_)));
        assert!(matches!(tight.series[2].counts, Counts::Few(_)));
        for series in 0..3 {
            assert_eq!(roomy.of(series), tight.of(series));
            assert_eq!(roomy.of(series).iter().map(|(_, count)| count).sum::<u64>(), 2 * 2000);
        }
    }
}
