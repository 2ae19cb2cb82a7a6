//! Misses of caches of all sizes, from one pass.

mod front;
mod sets;

use trace::record::Event;
use trace::{Block, Consumer, Thread};

use crate::description::Holds;
use crate::hierarchy::{Hierarchy, Stack};
use crate::script::{Access, Scripts};
use crate::{Error, Model};
#[cfg(target_arch = "x86_64")]
use front::Avx2;
use front::{Any, Front};
use sets::AllSets;

/// Bytes of the smallest caches.
const SMALLEST: u64 = 1024;
/// Bytes of the largest that may be asked for.
const LARGEST: u64 = 1 << 30;

/// Caches of instructions, of data, and of both, of all sizes from 1 KB up: fully associative ones, and those
/// with 1, 2, 4 and 8 ways. All replace the least recently used line, and bring in a line for a store as for a
/// load. Instructions of a line that a block executes one after the other are fetched once. An access that crosses
/// the end of a line asks for both.
///
/// ```
/// use pathlength_machine::{Curves, Holds};
/// use trace::{Block, Consumer, Thread};
/// let mut curves = Curves::new(64, 1 << 20, &[Holds::Data]).unwrap();
/// curves.define(&Block::new(0x1_2000_0000, [0xa41e_0000])); // ldq v0,0(sp)
/// for round in 0..2 {
///     for line in 0..32 {
///         curves.executed(Thread::default(), &[!0, 0x11_f000 + 64 * line]);
///     }
/// }
/// let curve = &curves.curves()[0];
/// let misses = |size, ways| curve.points.iter().find(|point| (point.size, point.ways) == (size, ways)).unwrap().misses;
/// assert_eq!((misses(1024, None), misses(2048, None)), (64, 32));
/// assert_eq!((misses(1024, Some(1)), misses(2048, Some(1))), (64, 32));
/// ```
#[derive(Debug)]
pub struct Curves {
    scripts: Scripts,
    line_shift: u32,
    curves: Vec<Counting>,
    instructions: u64,
}

/// One stream of lines, and what it has met.
#[derive(Debug)]
struct Counting {
    holds: Holds,
    last: u64,
    stack: Stack,
    sizes: Vec<u64>,
    /// How often so many of the fully associative caches, from the smallest on, missed.
    missed: Vec<u64>,
    sets: AllSets,
}

/// How many misses caches of each size have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// What the caches hold.
    pub holds: Holds,
    /// By the number of ways, fully associative ones first, then by size.
    pub points: Vec<Point>,
}

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Bytes.
    pub size: u64,
    /// Lines of a set; nothing if a line can be anywhere.
    pub ways: Option<u32>,
    /// Lines that were asked for and not there.
    pub misses: u64,
}

impl Curves {
    /// Of caches with lines of 16 to 256 bytes, up to a size; both powers of two.
    pub fn new(line: u64, largest: u64, streams: &[Holds]) -> Result<Curves, Error> {
        let impossible = |field: &str, reason: String| Err(Error::Impossible { field: field.into(), reason });
        if !line.is_power_of_two() || !(16..=256).contains(&line) {
            return impossible("line", format!("{line} is not a power of two from 16 to 256 bytes"));
        }
        if !largest.is_power_of_two() || !(SMALLEST..=LARGEST).contains(&largest) {
            return impossible("largest size", format!("{largest} is not a power of two from 1K to 1G"));
        }
        let curves = streams.iter().map(|&holds| Counting::new(holds, line, largest)).collect();
        Ok(Curves { scripts: Scripts::new(line), line_shift: line.ilog2(), curves, instructions: 0 })
    }

    /// Instructions executed, if anything is counted.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// What has been counted, in the order in which it was asked for.
    pub fn curves(&self) -> Vec<Curve> {
        self.curves.iter().map(|counting| counting.curve(1 << self.line_shift)).collect()
    }
}

impl Counting {
    fn new(holds: Holds, line: u64, largest: u64) -> Counting {
        // Each power of two, and one and a half times it.
        let powers = (SMALLEST.ilog2()..largest.ilog2()).map(|power| 1u64 << power);
        let sizes: Vec<u64> = powers.flat_map(|size| [size, size / 2 * 3]).chain([largest]).collect();
        let entries: Vec<u32> = sizes.iter().map(|size| (size / line) as u32).collect();
        Counting {
            holds,
            last: u64::MAX,
            stack: Stack::new(&entries),
            missed: vec![0; sizes.len() + 1],
            sizes,
            sets: AllSets::new(SMALLEST / line, largest / line),
        }
    }

    /// A line is asked for.
    #[inline(always)]
    fn touch(&mut self, front: impl Front, line: u64) {
        if line != self.last {
            self.last = line;
            self.missed[self.stack.touch(line)] += 1;
            self.sets.touch(front, line);
        }
    }

    /// Accesses ask for data.
    #[inline(always)]
    fn touch_data<'a>(
        &mut self,
        front: impl Front,
        heard: &Heard,
        accesses: impl Iterator<Item = (&'a u64, &'a Access)>,
    ) {
        for (&address, does) in accesses {
            let first = address ^ heard.space;
            let last = first.wrapping_add(does.more());
            self.touch(front, first >> heard.line_shift);
            if (first ^ last) >> heard.line_shift != 0 {
                self.touch(front, last >> heard.line_shift);
            }
        }
    }

    fn curve(&self, line: u64) -> Curve {
        let mut misses: u64 = self.missed.iter().sum();
        let mut points = Vec::new();
        for (&size, &hits) in self.sizes.iter().zip(&self.missed) {
            misses -= hits;
            points.push(Point { size, ways: None, misses });
        }
        let sets = self.sets.misses();
        points.extend(sets.map(|(lines, ways, misses)| Point {
            size: lines * line,
            ways: Some(ways),
            misses,
        }));
        Curve { holds: self.holds, points }
    }
}

impl Consumer for Curves {
    fn define(&mut self, block: &Block) {
        self.scripts.define(block.address, &block.words);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let space = Hierarchy::space(thread.process);
        let Curves { scripts, line_shift, curves, .. } = self;
        let mut heard = 0;
        for counting in curves {
            // All hear the same.
            heard = counting.hear(&Heard { scripts, line_shift: *line_shift, space, records });
        }
        self.instructions += heard;
    }
}

impl Model for Curves {
    fn forget_counts(&mut self) {
        self.instructions = 0;
        for counting in &mut self.curves {
            counting.missed.fill(0);
            counting.sets.forget_counts();
        }
    }
}

/// What was executed.
struct Heard<'a> {
    scripts: &'a Scripts,
    line_shift: u32,
    space: u64,
    records: &'a [u64],
}

impl Counting {
    /// Hears what was executed. Returns how many instructions that were.
    fn hear(&mut self, heard: &Heard) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Some(front) = Avx2::new() {
            // SAFETY: the host has it.
            return unsafe { self.follow_with_avx2(front, heard) };
        }
        self.follow(Any, heard)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn follow_with_avx2(&mut self, front: Avx2, heard: &Heard) -> u64 {
        self.follow(front, heard)
    }

    /// Goes through records for the lines of one stream.
    #[inline(always)]
    fn follow(&mut self, front: impl Front, heard: &Heard) -> u64 {
        let Heard { scripts, line_shift, space, records } = *heard;
        let [code, data] = [true, false].map(|instructions| self.holds.has(instructions));
        let mut instructions = 0;
        let mut words = records;
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            let block = match Event::new(word) {
                Event::Block(block) => block,
                Event::Mark(_) => continue,
                Event::Access(_) => break,
            };
            let Some(script) = scripts.get(block) else { break };
            let Some((addresses, rest)) = rest.split_at_checked(script.accesses as usize) else { break };
            words = rest;
            instructions += u64::from(script.instructions);
            let mut accesses = addresses.iter().zip(scripts.accesses(script));
            if !code {
                self.touch_data(front, heard, accesses);
                continue;
            }
            for line in scripts.lines(script.own_lines()) {
                self.touch(front, (line.address ^ space) >> line_shift);
                if data {
                    self.touch_data(front, heard, accesses.by_ref().take(line.accesses as usize));
                }
            }
        }
        instructions
    }
}
