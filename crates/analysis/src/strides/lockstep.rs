//! Which instructions' references move in lockstep, so that counting the strides of one counts those of all.
//!
//! What instructions of a block access relative to the same value of a register is always equally far apart. As
//! long as these instructions are executed in the same blocks only, their strides are the same, one by one. They
//! share a **track**; a block that has only some of them, or has them relative to different values, splits it.
//!
//! This holds of what the engine tells while a program runs. What a file says is counted reference by reference.

use std::collections::BTreeMap;

use events::record::{Register, value_register};
use isa::{Format, Instruction};

use super::Access;

/// What an address of a block is relative to, and how far it is from there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relative {
    origin: Origin,
    /// Bytes.
    displacement: i16,
}

/// What addresses of a block are relative to that are always equally far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    /// The register.
    base: u8,
    /// How many instructions of the block may have written it before.
    writes: u16,
    /// What of the displacement decides how the sum is rounded, if it is.
    rounding: Option<u8>,
    /// Bytes that strides are counted in.
    element: u32,
}

/// Follows what the registers hold from the beginning of a block on.
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

/// Series whose strides are the same.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// How many.
    series: u32,
    /// All of them are in the blocks of the list that begins here.
    blocks: u32,
}

/// What a new block splits.
#[derive(Debug, Default)]
pub(super) struct Splits {
    /// Tracks, and what parts of them are from now on: what is known of the one holds of the other.
    pub tracks: Vec<(u32, u32)>,
    /// Blocks whose accesses have other tracks now.
    pub blocks: Vec<u32>,
}

/// An access of a block that is counted for its track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub track: u32,
    /// Its index in the block.
    pub index: u16,
    /// Its address without this is the same for all of the track.
    pub displacement: i16,
}

/// No track, and no further block.
const NONE: u32 = u32::MAX;

impl Origins {
    /// What the address of the block's next instruction is relative to, if it has one.
    pub fn next(&mut self, instruction: Instruction, element: u32) -> Relative {
        let (base, displacement) = (instruction.rb(), instruction.displacement() as i16);
        let rounding = instruction.op.is_rounded().then_some((displacement & 7) as u8);
        let origin = Origin { base, writes: self.writes[usize::from(base)], rounding, element };
        // No block is so long that a number comes twice.
        let count = |writes: &mut u16| *writes = writes.wrapping_add(1);
        if instruction.op.format() == Format::Pal {
            // Some of the calls of privileged code write registers.
            self.writes.iter_mut().for_each(count);
        } else if let Some(Register::Integer(register)) = value_register(instruction) {
            count(&mut self.writes[usize::from(register)]);
        }
        Relative { origin, displacement }
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

    /// The track of a series that shares it with no other.
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

    /// A list of blocks with one more at its beginning; lists share their ends.
    fn list(&mut self, block: u32, next: u32) -> u32 {
        self.blocks.push((block, next));
        self.blocks.len() as u32 - 1
    }

    /// The blocks of a list.
    fn blocks_from(&self, first: u32) -> impl Iterator<Item = u32> {
        let follow = |link: &(u32, u32)| self.blocks.get(link.1 as usize).copied();
        std::iter::successors(self.blocks.get(first as usize).copied(), follow).map(|(block, _)| block)
    }

    /// A block with these accesses is executed; perhaps for the first time.
    pub fn add(&mut self, block: u32, accesses: &[Access]) -> Splits {
        if self.has.len() <= block as usize {
            self.has.resize(block as usize + 1, false);
        }
        let mut splits = Splits::default();
        if std::mem::replace(&mut self.has[block as usize], true) {
            return splits;
        }
        let mut parts: BTreeMap<(Option<u32>, Origin), Vec<u32>> = BTreeMap::new();
        for &Access { series, relative, .. } in accesses {
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

    /// The accesses that are counted of those of a block that was added.
    pub fn counted(&self, accesses: &[Access]) -> Vec<Counted> {
        let mut counted: Vec<Counted> = Vec::new();
        for (index, access) in (0..).zip(accesses) {
            let Some(track) = access.series.and_then(|series| self.of(series)) else { continue };
            let displacement = access.relative.map(|relative| relative.displacement);
            if displacement.is_none() || counted.iter().all(|other| other.track != track) {
                counted.push(Counted { index, track, displacement: displacement.unwrap_or(0) });
            }
        }
        counted
    }
}
