//! Miss-ratio curves: the misses of caches of all sizes, from one pass (Mattson stacks and set refinement).

mod move_to_front;
mod set_refinement;

use std::mem::take;

use events::record::Event;
use events::{Block, Consumer, Thread};

use crate::description::{HintedRegions, Holds};
use crate::memory::block_template::{BlockTemplates, TemplateAccess};
use crate::memory::hierarchy::{Hierarchy, LruStack, PageMap};
use crate::memory::line_numbering::{LineNumbering, NumberedLine};
use crate::{DescriptionError, MergeableModel, Model};
#[cfg(target_arch = "x86_64")]
use move_to_front::Avx2;
use move_to_front::{MoveToFront, Portable};
use set_refinement::SetRefinement;

/// Bytes of the smallest caches, unless lines are so large that four of them are more.
const SMALLEST: u64 = 1024;
/// The longest lines, which are pages: caches of them are TLBs.
const LONGEST_LINE: u64 = 64 << 10;
/// Bytes of the largest caches that are supported.
const MAX_LARGEST: u64 = 1 << 30;
/// Lines of a batch, unless a block needs more.
const BATCH_LINES: usize = 1024;

/// Miss-ratio curves of instruction, data and unified caches of all sizes from 1 KB up: fully associative, and with
/// 1, 2, 4 and 8 ways. All have LRU replacement, and allocate on stores as on loads. A block fetches each of its
/// instruction lines once. An access that crosses the end of a line is an access to both lines.
///
/// ```
/// use pathlength_machine::{Holds, MissRatioCurves};
/// use events::{Block, Consumer, Thread};
/// let mut curves = MissRatioCurves::new(64, 1 << 20, &[Holds::Data]).unwrap();
/// curves.define(&Block::new(&isa::Alpha, 0x1_2000_0000, [0xa41e_0000])); // ldq v0,0(sp)
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
pub struct MissRatioCurves {
    templates: BlockTemplates,
    /// The lines of addresses.
    line_map: PageMap,
    counters: Vec<CurveCounter>,
    instructions: u64,
}

/// Counts one reference stream: of instructions, of data, or of both.
#[derive(Debug)]
struct CurveCounter {
    holds: Holds,
    /// The last line of the stream.
    last: u64,
    /// Scratch memory for a batch of lines: addresses divided by the line size, and the same lines numbered.
    batch: Vec<u64>,
    lines: Vec<NumberedLine>,
    numbers: LineNumbering,
    stack: LruStack,
    sizes: Vec<u64>,
    /// Accesses by the number of fully associative caches, from the smallest on, that missed.
    missed: Vec<u64>,
    sets: SetRefinement,
}

/// The misses of caches of each size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissRatioCurve {
    /// The contents of the caches: instructions, data, or both.
    pub holds: Holds,
    /// By the number of ways, fully associative ones first, then by size.
    pub points: Vec<CurvePoint>,
}

/// The misses of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurvePoint {
    /// The size of the cache in bytes.
    pub size: u64,
    /// Its ways; None if it is fully associative.
    pub ways: Option<u32>,
    /// Its misses.
    pub misses: u64,
}

impl MissRatioCurves {
    /// For caches with lines of 16 bytes to 64 KB, up to a size; both are powers of two. Caches of pages are TLBs.
    pub fn new(line: u64, largest: u64, streams: &[Holds]) -> Result<MissRatioCurves, DescriptionError> {
        let impossible =
            |field: &str, reason: String| Err(DescriptionError::Impossible { field: field.into(), reason });
        if !line.is_power_of_two() || !(16..=LONGEST_LINE).contains(&line) {
            return impossible("line", format!("{line} is not a power of two from 16 bytes to 64K"));
        }
        let smallest = smallest(line);
        if !largest.is_power_of_two() || !(smallest..=MAX_LARGEST).contains(&largest) {
            let smallest = smallest >> 10;
            return impossible(
                "largest size",
                format!("{largest} is not a power of two from {smallest}K to 1G"),
            );
        }
        let counters = streams.iter().map(|&holds| CurveCounter::new(holds, line, largest)).collect();
        let templates = BlockTemplates::new(line);
        let line_map = PageMap::with_blocks(line.ilog2(), &[], &HintedRegions::default());
        Ok(MissRatioCurves { templates, line_map, counters, instructions: 0 })
    }

    /// The same, where the operating system maps regions with granularity hints: a line is a page, and an entry maps a page or a
    /// block of these numbers of pages, ascending powers of two. What an entry holds counts as a line in a curve's sizes.
    pub fn with_granularity_hints(self, blocks: &[u32], hinted: &HintedRegions) -> MissRatioCurves {
        MissRatioCurves { line_map: PageMap::with_blocks(self.line_map.shift(), blocks, hinted), ..self }
    }

    /// Instructions executed; 0 without streams.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The curve of each stream.
    pub fn curves(&self) -> Vec<MissRatioCurve> {
        self.counters.iter().map(|counter| counter.curve(1 << self.line_map.shift())).collect()
    }

    /// The curves of a part of what was executed, from what was added to [`MergeableModel::totals`] by it.
    pub fn curves_of(&self, totals: &[u64]) -> Vec<MissRatioCurve> {
        let mut misses = totals.iter().skip(1);
        let of_part = |curve: MissRatioCurve| {
            let points = curve.points.into_iter().zip(misses.by_ref());
            let points = points.map(|(point, &misses)| CurvePoint { misses, ..point }).collect();
            MissRatioCurve { points, ..curve }
        };
        self.curves().into_iter().map(of_part).collect()
    }
}

/// Bytes of the smallest caches.
fn smallest(line: u64) -> u64 {
    SMALLEST.max(4 * line)
}

impl CurveCounter {
    fn new(holds: Holds, line: u64, largest: u64) -> CurveCounter {
        let smallest = smallest(line);
        // Each power of two, and one and a half times it.
        let powers = (smallest.ilog2()..largest.ilog2()).map(|power| 1u64 << power);
        let sizes: Vec<u64> = powers.flat_map(|size| [size, size / 2 * 3]).chain([largest]).collect();
        let entries: Vec<u32> = sizes.iter().map(|size| (size / line) as u32).collect();
        CurveCounter {
            holds,
            last: u64::MAX,
            batch: vec![0; BATCH_LINES],
            lines: Vec::new(),
            numbers: LineNumbering::new(),
            stack: LruStack::new(&entries),
            missed: vec![0; sizes.len() + 1],
            sizes,
            sets: SetRefinement::new(smallest / line, largest / line),
        }
    }

    /// Counts accesses to lines, of which no two consecutive ones are the same.
    fn count(&mut self, batch: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(front) = Avx2::new() {
            // SAFETY: the host has AVX2.
            return unsafe { self.count_with_avx2(front, batch) };
        }
        self.count_with(Portable, batch);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn count_with_avx2(&mut self, front: Avx2, batch: &[u64]) {
        self.count_with(front, batch);
    }

    #[inline(always)]
    fn count_with(&mut self, front: impl MoveToFront<8>, batch: &[u64]) {
        self.lines.clear();
        self.lines.extend(batch.iter().map(|&line| self.numbers.line(line)));
        for line in &self.lines {
            self.missed[self.stack.touch(line.number)] += 1;
        }
        self.sets.touch(front, &mut self.lines);
        if self.numbers.should_compact() {
            self.compact();
        }
    }

    /// Drops the numbers of lines that no cache holds any more.
    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        let CurveCounter { numbers, stack, sets, .. } = self;
        let renumbered = numbers.compact(|visit| {
            stack.keys().for_each(&mut *visit);
            sets.numbers().for_each(|number| visit(*number));
        });
        stack.rename(|key| renumbered.number(key));
        sets.numbers().for_each(|number| *number = renumbered.number(*number));
    }

    fn curve(&self, line: u64) -> MissRatioCurve {
        let mut misses: u64 = self.missed.iter().sum();
        let mut points = Vec::new();
        for (&size, &hits) in self.sizes.iter().zip(&self.missed) {
            misses -= hits;
            points.push(CurvePoint { size, ways: None, misses });
        }
        let sets = self.sets.misses();
        points.extend(sets.map(|(lines, ways, misses)| CurvePoint {
            size: lines * line,
            ways: Some(ways),
            misses,
        }));
        MissRatioCurve { holds: self.holds, points }
    }
}

impl Consumer for MissRatioCurves {
    fn define(&mut self, block: &Block) {
        self.templates.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let asid_bits = Hierarchy::asid_bits(thread.process);
        let MissRatioCurves { templates, line_map, counters, .. } = self;
        let executed = ExecutedRecords { templates, line_map, asid_bits, records };
        // The same number for each stream.
        let mut instructions = 0;
        for counter in counters {
            instructions = counter.consume(&executed);
        }
        self.instructions += instructions;
    }
}

impl MergeableModel for MissRatioCurves {
    fn merge(&mut self, ended: MissRatioCurves) {
        self.instructions += ended.instructions;
        for (own, ended) in self.counters.iter_mut().zip(&ended.counters) {
            own.missed.iter_mut().zip(&ended.missed).for_each(|(own, ended)| *own += ended);
            own.sets.add_counts(&ended.sets);
        }
    }

    /// Instructions, and the misses of each point of each curve.
    fn totals(&self) -> Vec<u64> {
        let curves = self.curves().into_iter().flat_map(|curve| curve.points);
        std::iter::once(self.instructions).chain(curves.map(|point| point.misses)).collect()
    }
}

impl Model for MissRatioCurves {
    fn reset_counts(&mut self) {
        self.instructions = 0;
        for counter in &mut self.counters {
            counter.missed.fill(0);
            counter.sets.reset_counts();
        }
    }
}

/// Records of a process, with what is needed to find the lines that they access.
struct ExecutedRecords<'a> {
    templates: &'a BlockTemplates,
    line_map: &'a PageMap,
    asid_bits: u64,
    records: &'a [u64],
}

impl CurveCounter {
    /// Counts the lines that records access in this stream. Returns the number of instructions.
    fn consume(&mut self, executed: &ExecutedRecords) -> u64 {
        let ExecutedRecords { templates, line_map, asid_bits, records } = *executed;
        let [code, data] = [true, false].map(|instructions| self.holds.has(instructions));
        let mut instructions = 0;
        let mut words = records;
        let (mut batch, mut count, mut last) = (take(&mut self.batch), 0, self.last);
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            let block = match Event::new(word) {
                Event::Block(block) => block,
                Event::Mark(_) => continue,
                Event::Access(_) => break,
            };
            let Some(template) = templates.get(block) else { break };
            let Some((addresses, rest)) = rest.split_at_checked(template.accesses as usize) else { break };
            words = rest;
            instructions += u64::from(template.instructions);
            let most = template.lines as usize + 2 * addresses.len();
            if most > batch.len() - count {
                self.count(&batch[..count]);
                count = 0;
                batch.resize(batch.len().max(most), 0);
            }
            // Branch-free: whether a line is the same as the last one is unpredictable.
            let mut append = |line: u64| {
                batch[count] = line;
                count += usize::from(line != last);
                last = line;
            };
            let mut accesses = addresses.iter().zip(templates.accesses(template));
            if !code {
                accesses.for_each(|access| executed.lines(access, &mut append));
                continue;
            }
            for line in templates.lines(template.own_lines()) {
                append(line_map.key(line.address ^ asid_bits));
                if data {
                    let own = accesses.by_ref().take(line.accesses as usize);
                    own.for_each(|access| executed.lines(access, &mut append));
                }
            }
        }
        self.count(&batch[..count]);
        (self.batch, self.last) = (batch, last);
        instructions
    }
}

impl ExecutedRecords<'_> {
    /// Calls `append` with each line of an access.
    #[inline(always)]
    fn lines(&self, (&address, access): (&u64, &TemplateAccess), append: &mut impl FnMut(u64)) {
        let first = address ^ self.asid_bits;
        let last = first.wrapping_add(access.last_byte());
        append(self.line_map.key(first));
        if (first ^ last) >> self.line_map.shift() != 0 {
            append(self.line_map.key(last));
        }
    }
}
