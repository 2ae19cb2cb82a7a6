//! Instructions whose references move in lockstep, so that counting the strides of one counts those of all.
//!
//! Accesses of a block relative to the same value of a register have constant distances. As long as the instructions
//! are executed in the same blocks only, their strides are equal. They share a **track**; a block that has only some
//! of them, or has them relative to different values, splits the track.
//!
//! Running programs are counted in this way. Traces, which may be damaged, are counted reference by reference.

use std::collections::BTreeMap;

use events::record::Register;
use isa::{InstructionSummary, MemoryAccess};

use super::BlockAccess;

/// The base of an address in a block, and the offset from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relative {
    origin: Origin,
    /// The offset in bytes.
    displacement: i16,
}

/// The base of addresses in a block: addresses with equal bases have constant distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    /// The register.
    base: u8,
    /// The number of earlier instructions of the block that may have written it.
    writes: u16,
    /// The part of the displacement that affects the rounding of the address, for accesses that round.
    rounding: Option<u8>,
    /// The unit of strides in bytes.
    element: u32,
}

/// Follows the values of registers through a block.
#[derive(Default)]
pub(super) struct Origins {
    writes: [u16; 32],
}

/// The track of each series.
#[derive(Clone, Debug, Default)]
pub(super) struct Lockstep {
    /// [`NONE`] before it has references.
    of_series: Vec<u32>,
    tracks: Vec<Track>,
    /// Lists of blocks: each one, and the number of the next, or [`NONE`].
    blocks: Vec<(u32, u32)>,
    /// By block: whether its series have tracks.
    has: Vec<bool>,
}

/// Series whose strides are equal.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// The number of series.
    series: u32,
    /// The list of blocks that contain all of them.
    blocks: u32,
}

/// The tracks that a new block splits.
#[derive(Debug, Default)]
pub(super) struct Splits {
    /// Old tracks, and the new tracks of a part of their series; the state of the old one is copied.
    pub tracks: Vec<(u32, u32)>,
    /// Blocks some of whose accesses have new tracks.
    pub blocks: Vec<u32>,
}

/// The access of a block that is counted for its track.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedAccess {
    pub track: u32,
    /// Its index in the block.
    pub index: u16,
    /// The offset of its address from the base of the track.
    pub displacement: i16,
}

/// No track, and no further block.
const NONE: u32 = u32::MAX;

impl Origins {
    /// The base of the address of the block's next instruction, if it accesses memory at a short displacement from it.
    pub fn next(&mut self, summary: &InstructionSummary, element: u32) -> Option<Relative> {
        let relative = summary.access.and_then(|access| self.relative(access, element));
        for (register, writes) in self.writes.iter_mut().enumerate() {
            // A service of the system may write any register.
            let may_write = summary.enters_system
                || summary.unknown >> register & 1 != 0
                || summary.written.contains(&Some(Register::Integer(register as u8)));
            // Blocks are too short for the number to wrap around.
            *writes = writes.wrapping_add(may_write.into());
        }
        relative
    }

    fn relative(&self, access: MemoryAccess, element: u32) -> Option<Relative> {
        let MemoryAccess { base, displacement, mask, .. } = access;
        let rounding = (mask != !0).then_some((displacement as u64 & !mask) as u8);
        let origin = Origin { base, writes: self.writes[usize::from(base)], rounding, element };
        Some(Relative { origin, displacement: displacement.try_into().ok()? })
    }
}

impl Lockstep {
    /// The track of a series; None before it has references.
    #[inline]
    pub fn of(&self, series: u32) -> Option<u32> {
        self.of_series.get(series as usize).copied().filter(|&track| track != NONE)
    }

    /// How many tracks there are.
    pub fn len(&self) -> usize {
        self.tracks.len()
    }

    /// Makes a track for a single series.
    pub fn alone(&mut self, series: u32) -> u32 {
        match self.of(series) {
            Some(track) => track,
            None => self.start(&[series], NONE),
        }
    }

    #[cold]
    fn start(&mut self, series: &[u32], blocks: u32) -> u32 {
        let track = self.tracks.len() as u32;
        self.tracks.push(Track { series: series.len() as u32, blocks });
        for &series in series {
            if self.of_series.len() <= series as usize {
                self.of_series.resize(series as usize + 1, NONE);
            }
            self.of_series[series as usize] = track;
        }
        track
    }

    /// Prepends a block to a list; lists share their tails.
    fn list(&mut self, block: u32, next: u32) -> u32 {
        self.blocks.push((block, next));
        self.blocks.len() as u32 - 1
    }

    /// The blocks of a list.
    fn blocks_from(&self, first: u32) -> impl Iterator<Item = u32> {
        let follow = |link: &(u32, u32)| self.blocks.get(link.1 as usize).copied();
        std::iter::successors(self.blocks.get(first as usize).copied(), follow).map(|(block, _)| block)
    }

    /// Adds a block with these accesses, unless it was added before.
    pub fn add(&mut self, block: u32, accesses: &[BlockAccess]) -> Splits {
        if self.has.len() <= block as usize {
            self.has.resize(block as usize + 1, false);
        }
        let mut splits = Splits::default();
        if std::mem::replace(&mut self.has[block as usize], true) {
            return splits;
        }
        let mut parts: BTreeMap<(Option<u32>, Origin), Vec<u32>> = BTreeMap::new();
        for &BlockAccess { series, relative, .. } in accesses {
            match (series, relative) {
                (Some(series), Some(Relative { origin, .. })) => {
                    parts.entry((self.of(series), origin)).or_default().push(series);
                }
                (Some(series), None) => drop(self.alone(series)),
                (None, _) => {}
            }
        }
        for ((track, _), series) in parts {
            let Some(number) = track else {
                let blocks = self.list(block, NONE);
                self.start(&series, blocks);
                continue;
            };
            let Track { series: count, blocks: known } = self.tracks[number as usize];
            let blocks = self.list(block, known);
            if count == series.len() as u32 {
                self.tracks[number as usize].blocks = blocks;
                continue;
            }
            self.tracks[number as usize].series -= series.len() as u32;
            splits.blocks.extend(self.blocks_from(known));
            splits.tracks.push((number, self.start(&series, blocks)));
        }
        splits
    }

    /// The counted accesses of a block that was added.
    pub fn counted(&self, accesses: &[BlockAccess]) -> Vec<CountedAccess> {
        let mut counted: Vec<CountedAccess> = Vec::new();
        for (index, access) in (0..).zip(accesses) {
            let Some(track) = access.series.and_then(|series| self.of(series)) else { continue };
            let displacement = access.relative.map(|relative| relative.displacement);
            if displacement.is_none() || counted.iter().all(|other| other.track != track) {
                counted.push(CountedAccess { index, track, displacement: displacement.unwrap_or(0) });
            }
        }
        counted
    }
}
