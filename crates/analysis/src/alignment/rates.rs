//! Faults over time, in a bounded number of windows: when there are too many, each two become one.

/// The greatest number of windows.
const MOST_WINDOWS: usize = 128;
/// The instructions of a window at first.
const FIRST_LENGTH: u64 = 1 << 14;

/// Faults in windows of the same number of instructions.
#[derive(Clone, Debug)]
pub(super) struct FaultRates {
    /// Instructions of a window.
    length: u64,
    /// The number of instructions at the end of the open window.
    end: u64,
    /// The number of faults before the open window.
    before: u64,
    /// Faults of each window that has ended.
    windows: Vec<u64>,
}

impl Default for FaultRates {
    fn default() -> FaultRates {
        FaultRates { length: FIRST_LENGTH, end: FIRST_LENGTH, before: 0, windows: Vec::new() }
    }
}

impl FaultRates {
    /// So many instructions and faults are counted now. The faults of a block belong to the window in which it begins.
    #[inline]
    pub fn reach(&mut self, instructions: u64, faults: u64) {
        if instructions >= self.end {
            self.end_windows(instructions, faults);
        }
    }

    #[cold]
    fn end_windows(&mut self, instructions: u64, faults: u64) {
        let mut new = faults - self.before;
        while instructions >= self.end {
            self.windows.push(std::mem::take(&mut new));
            if self.windows.len() == MOST_WINDOWS {
                self.windows = self.windows.chunks(2).map(|two| two.iter().sum()).collect();
                self.length *= 2;
            }
            self.end = self.length * (self.windows.len() as u64 + 1);
        }
        self.before = faults;
    }

    /// The instructions of a window, and the faults of each one; the last may be shorter.
    pub fn windows(&self, instructions: u64, faults: u64) -> (u64, Vec<u64>) {
        let mut windows = self.windows.clone();
        let is_open = instructions > self.length * windows.len() as u64;
        windows.extend(is_open.then(|| faults - self.before));
        (self.length, windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_however_long_it_takes() {
        let mut rates = FaultRates::default();
        let (mut instructions, mut faults) = (0u64, 0);
        // Blocks of up to 50,000 instructions, each with as many faults as its number modulo 3.
        for block in 0..10_000u64 {
            instructions += 1 + block * 7919 % 50_000;
            faults += block % 3;
            rates.reach(instructions, faults);
            let (length, windows) = rates.windows(instructions, faults);
            assert!(windows.len() <= MOST_WINDOWS);
            assert_eq!(windows.iter().sum::<u64>(), faults);
            assert_eq!(windows.len() as u64, instructions.div_ceil(length), "after {instructions}");
        }
    }
}
