//! The structures of the window: queues whose entries leave in order, and reservation stations, whose entries leave in any
//! order.
//!
//! Instructions are simulated in program order, so that the cycle in which an entry becomes free is known when the next
//! instruction wants one.

/// A cycle that never comes.
pub(super) const NEVER: u64 = 1 << 62;

/// A queue whose entries leave in the order in which they came: of each entry, the last cycle in which it is taken.
#[derive(Clone, Debug)]
pub(super) struct InOrderQueue {
    last: Vec<u64>,
    oldest: usize,
}

impl InOrderQueue {
    pub fn new(entries: u32) -> InOrderQueue {
        InOrderQueue { last: vec![0; entries as usize], oldest: 0 }
    }

    /// The last cycle in which the entry is taken that the next instruction gets.
    #[inline(always)]
    pub fn oldest(&self) -> u64 {
        self.last[self.oldest]
    }

    /// Gives the oldest entry to another instruction.
    #[inline(always)]
    pub fn replace(&mut self, until: u64) {
        self.last[self.oldest] = until;
        self.oldest += 1;
        if self.oldest == self.last.len() {
            self.oldest = 0;
        }
    }

    pub fn copy_from(&mut self, other: &InOrderQueue) {
        self.last.clone_from(&other.last);
        self.oldest = other.oldest;
    }
}

/// A reservation station: of each entry, the cycle in which its instruction is issued. A heap, with the first on top.
#[derive(Clone, Debug)]
pub(super) struct Station {
    issued: Vec<u64>,
}

impl Station {
    pub fn new(entries: u32) -> Station {
        Station { issued: vec![0; entries as usize] }
    }

    /// The last cycle in which the entry is taken that becomes free first.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.issued[0]
    }

    /// Gives the entry that becomes free first to another instruction.
    #[inline]
    pub fn replace(&mut self, until: u64) {
        let heap = &mut self.issued[..];
        let mut parent = 0;
        loop {
            let mut child = 2 * parent + 1;
            if child >= heap.len() {
                break;
            }
            child += usize::from(child + 1 < heap.len() && heap[child + 1] < heap[child]);
            if heap[child] >= until {
                break;
            }
            heap[parent] = heap[child];
            parent = child;
        }
        heap[parent] = until;
    }

    pub fn copy_from(&mut self, other: &Station) {
        self.issued.clone_from(&other.issued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_gives_the_entry_that_becomes_free_first() {
        let mut random = fastrand::Rng::with_seed(7);
        for entries in 1..40 {
            let (mut station, mut sorted) = (Station::new(entries), vec![0; entries as usize]);
            for _ in 0..300 {
                assert_eq!(station.first(), sorted[0]);
                let until = random.u64(..1000);
                station.replace(until);
                sorted[0] = until;
                sorted.sort_unstable();
            }
        }
    }
}
