//! Saturating counters.

/// A table of saturating counters; the upper half of their values predicts taken branches.
#[derive(Clone, Debug)]
pub(super) struct SaturatingCounters {
    values: Vec<u8>,
    highest: u8,
}

impl SaturatingCounters {
    /// This number of counters, a power of two; all are weakly not taken.
    pub fn new(entries: u32, bits: u8) -> SaturatingCounters {
        let highest = ((1u16 << bits) - 1) as u8;
        SaturatingCounters { values: vec![highest / 2; entries as usize], highest }
    }

    /// The index of a number in the table, by its low bits.
    #[inline]
    pub fn index(&self, number: u64) -> usize {
        number as usize & (self.values.len() - 1)
    }

    /// Whether a counter predicts taken.
    #[inline]
    pub fn is_taken(&self, index: usize) -> bool {
        self.values[index] > self.highest / 2
    }

    /// Counts a direction. Returns what the counter had predicted.
    #[inline]
    pub fn train(&mut self, index: usize, is_taken: bool) -> bool {
        let before = self.is_taken(index);
        let counter = &mut self.values[index];
        *counter = if is_taken { (*counter + 1).min(self.highest) } else { counter.saturating_sub(1) };
        before
    }

    /// Sets a counter to the weakest value of a direction.
    pub fn set_weakly(&mut self, index: usize, is_taken: bool) {
        self.values[index] = self.highest / 2 + u8::from(is_taken);
    }
}
