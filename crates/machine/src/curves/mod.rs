//! Misses of caches of all sizes, from one pass.

mod front;
mod sets;

use std::mem::take;

use trace::record::Event;
use trace::{Block, Consumer, Thread};

use crate::description::Holds;
use crate::hierarchy::{Hierarchy, LruStack};
use crate::numbers::{Line, Numbers};
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
/// Lines that are counted together, mostly.
const MANY: usize = 1024;

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
    /// The line that was asked for last.
    last: u64,
    /// Room for lines that are asked for, by their numbers in memory.
    asked: Vec<u64>,
    /// The same, as they are counted.
    lines: Vec<Line>,
    numbers: Numbers,
    stack: LruStack,
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
            asked: vec![0; MANY],
            lines: Vec::new(),
            numbers: Numbers::new(),
            stack: LruStack::new(&entries),
            missed: vec![0; sizes.len() + 1],
            sizes,
            sets: AllSets::new(SMALLEST / line, largest / line),
        }
    }

    /// Counts lines that are asked for, of which no two follow each other that are the same.
    fn count(&mut self, asked: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(front) = Avx2::new() {
            // SAFETY: the host has it.
            return unsafe { self.count_with_avx2(front, asked) };
        }
        self.count_with(Any, asked);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn count_with_avx2(&mut self, front: Avx2, asked: &[u64]) {
        self.count_with(front, asked);
    }

    #[inline(always)]
    fn count_with(&mut self, front: impl Front<8>, asked: &[u64]) {
        self.lines.clear();
        self.lines.extend(asked.iter().map(|&line| self.numbers.line(line)));
        for line in &self.lines {
            self.missed[self.stack.touch(line.number)] += 1;
        }
        self.sets.touch(front, &mut self.lines);
        if self.numbers.are_many() {
            self.leave_out();
        }
    }

    /// Leaves out the numbers of lines that no cache holds any more.
    #[cold]
    #[inline(never)]
    fn leave_out(&mut self) {
        let Counting { numbers, stack, sets, .. } = self;
        let renumbered = numbers.leave_out(|tell| {
            stack.keys().for_each(&mut *tell);
            sets.numbers().for_each(|number| tell(*number));
        });
        stack.rename(|key| renumbered.number(key));
        sets.numbers().for_each(|number| *number = renumbered.number(*number));
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
        let space = Hierarchy::asid_bits(thread.process);
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
    /// Goes through records for the lines of this stream. Returns how many instructions that were.
    fn hear(&mut self, heard: &Heard) -> u64 {
        let Heard { scripts, line_shift, space, records } = *heard;
        let [code, data] = [true, false].map(|instructions| self.holds.has(instructions));
        let mut instructions = 0;
        let mut words = records;
        let (mut asked, mut count, mut last) = (take(&mut self.asked), 0, self.last);
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
            let most = script.lines as usize + 2 * addresses.len();
            if most > asked.len() - count {
                self.count(&asked[..count]);
                count = 0;
                asked.resize(asked.len().max(most), 0);
            }
            // Whether it is the same as the last one cannot be guessed, so that nothing depends on a guess.
            let mut ask = |line: u64| {
                asked[count] = line;
                count += usize::from(line != last);
                last = line;
            };
            let mut accesses = addresses.iter().zip(scripts.accesses(script));
            if !code {
                accesses.for_each(|access| heard.lines(access, &mut ask));
                continue;
            }
            for line in scripts.lines(script.own_lines()) {
                ask((line.address ^ space) >> line_shift);
                if data {
                    let own = accesses.by_ref().take(line.accesses as usize);
                    own.for_each(|access| heard.lines(access, &mut ask));
                }
            }
        }
        self.count(&asked[..count]);
        (self.asked, self.last) = (asked, last);
        instructions
    }
}

impl Heard<'_> {
    /// Tells the lines that an access asks for.
    #[inline(always)]
    fn lines(&self, (&address, does): (&u64, &Access), tell: &mut impl FnMut(u64)) {
        let first = address ^ self.space;
        let last = first.wrapping_add(does.more());
        tell(first >> self.line_shift);
        if (first ^ last) >> self.line_shift != 0 {
            tell(last >> self.line_shift);
        }
    }
}
