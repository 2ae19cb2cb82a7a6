//! The ports to which instructions are issued: which are taken in which cycle.

use std::collections::HashMap;

/// Cycles whose ports are in the table; the others are few, and in a map.
const CYCLES: usize = 1 << 10;

/// The ports that are taken, by cycle. Older instructions take theirs first.
pub(super) struct Ports {
    /// At a cycle's low bits: the cycle, and a bit for each port.
    table: Vec<(u64, u32)>,
    /// Cycles whose slot in the table is taken by another one.
    others: HashMap<u64, u32>,
}

impl Ports {
    pub fn new() -> Ports {
        Ports { table: vec![(0, 0); CYCLES], others: HashMap::new() }
    }

    #[inline(always)]
    fn taken(&self, cycle: u64) -> u32 {
        let (own, taken) = self.table[cycle as usize % CYCLES];
        if own == cycle {
            taken
        } else if self.others.is_empty() {
            0
        } else {
            self.others.get(&cycle).copied().unwrap_or(0)
        }
    }

    /// The first cycle from `cycle` on in which one of these ports is free, and the first of the free ones.
    #[inline(always)]
    pub fn find(&self, wanted: u32, mut cycle: u64) -> (u64, u32) {
        loop {
            let free = wanted & !self.taken(cycle);
            if free != 0 {
                return (cycle, free & free.wrapping_neg());
            }
            cycle += 1;
        }
    }

    /// Takes a port. Cycles before `now` are over.
    #[inline(always)]
    pub fn take(&mut self, cycle: u64, port: u32, now: u64) {
        let entry = &mut self.table[cycle as usize % CYCLES];
        if entry.0 == cycle {
            entry.1 |= port;
        } else if entry.0 < now && self.others.is_empty() {
            *entry = (cycle, port);
        } else {
            self.take_slow(cycle, port, now);
        }
    }

    #[cold]
    fn take_slow(&mut self, cycle: u64, port: u32, now: u64) {
        self.others.retain(|&other, _| other >= now);
        let entry = &mut self.table[cycle as usize % CYCLES];
        match entry.0 < now && !self.others.contains_key(&cycle) {
            true => *entry = (cycle, port),
            false => *self.others.entry(cycle).or_default() |= port,
        }
    }
}
