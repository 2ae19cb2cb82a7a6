//! Faults of the link, by a seed.

/// Cells that the link loses or damages, each with a probability.
#[derive(Clone, Copy, Debug)]
pub struct LinkFaults {
    state: u64,
    lost: u32,
    damaged: u32,
}

/// The outcome of a cell's way over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellFate {
    Arrives,
    Lost,
    /// A bit of its payload changes.
    Damaged(u16),
}

impl LinkFaults {
    /// A link without faults.
    pub const NONE: LinkFaults = LinkFaults { state: 1, lost: 0, damaged: 0 };

    /// A link that loses and damages so many of a million cells.
    pub fn new(seed: u64, lost: u32, damaged: u32) -> LinkFaults {
        LinkFaults { state: seed, lost, damaged }
    }

    pub(crate) fn next(&mut self) -> CellFate {
        if self.lost == 0 && self.damaged == 0 {
            return CellFate::Arrives;
        }
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ mixed >> 31;
        match (mixed >> 16) % 1_000_000 {
            share if share < self.lost.into() => CellFate::Lost,
            share if share < u64::from(self.lost) + u64::from(self.damaged) => {
                CellFate::Damaged(mixed as u16)
            }
            _ => CellFate::Arrives,
        }
    }
}
