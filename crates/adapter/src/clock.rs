//! Times in picoseconds, and the clocks of buses and memories.

/// A time, or a duration, in picoseconds: a u64 counts 213 days.
pub type Picoseconds = u64;

/// Later than any event.
pub(crate) const NEVER: Picoseconds = u64::MAX;

/// A nanosecond.
pub(crate) const NANOSECOND: Picoseconds = 1000;

/// A clock, whose edges are the multiples of its cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareClock {
    cycle: Picoseconds,
}

impl HardwareClock {
    /// The clock of a frequency; its cycle is rounded to picoseconds: 33 MHz have one of 30,303 ps.
    ///
    /// ```
    /// assert_eq!(pathlength_adapter::HardwareClock::of_mhz(33.0).duration(1), 30_303);
    /// ```
    pub fn of_mhz(mhz: f64) -> HardwareClock {
        HardwareClock { cycle: ((1e6 / mhz).round() as Picoseconds).max(1) }
    }

    /// The duration of a number of cycles.
    pub fn duration(self, cycles: u64) -> Picoseconds {
        self.cycle * cycles
    }

    /// The number of the first edge that is not before a time.
    pub fn edge(self, time: Picoseconds) -> u64 {
        time.div_ceil(self.cycle)
    }
}
