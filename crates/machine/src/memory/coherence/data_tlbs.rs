//! The data TLBs (translation lookaside buffers) of a multiprocessor: each processor looks its virtual addresses up in its own one.

use crate::description::Machine;
use crate::memory::hierarchy::{Hierarchy, Tags};

/// The TLBs of data of several processors, and how often pages were missing.
///
/// An entry belongs to a page of a process. A context switch to another process empties the TLBs that the machine names
/// ([`Coherence::flushes`](crate::Coherence::flushes)). Granularity hints are not followed: each entry maps one page.
#[derive(Debug)]
pub struct DataTlbs {
    /// From the first level on.
    levels: Vec<TlbLevel>,
    processors: Vec<ProcessorTlbs>,
    now: u64,
}

#[derive(Debug)]
struct TlbLevel {
    name: String,
    page_shift: u32,
    is_flushed: bool,
    misses: u64,
}

#[derive(Debug)]
struct ProcessorTlbs {
    /// By level.
    tags: Vec<Tags>,
    /// The page that was used last: using it again changes nothing.
    last: u64,
    /// The process that is executed.
    running: Option<u32>,
}

const NO_PAGE: u64 = u64::MAX;

impl DataTlbs {
    /// Empty, of a machine with a number of processors.
    pub fn new(machine: &Machine, processors: usize) -> DataTlbs {
        let mut buffers: Vec<_> =
            machine.translation_buffers.iter().filter(|one| one.holds.has(false)).collect();
        buffers.sort_by_key(|buffer| buffer.level);
        let is_flushed = |name: &String| {
            machine.coherence.as_ref().is_some_and(|coherence| coherence.flushes.contains(name))
        };
        let of_processor = |_| ProcessorTlbs {
            tags: buffers.iter().map(|buffer| buffer.tags(true)).collect(),
            last: NO_PAGE,
            running: None,
        };
        DataTlbs {
            processors: (0..processors).map(of_processor).collect(),
            levels: buffers
                .iter()
                .map(|buffer| TlbLevel {
                    name: buffer.name.clone(),
                    page_shift: buffer.page.ilog2(),
                    is_flushed: is_flushed(&buffer.name),
                    misses: 0,
                })
                .collect(),
            now: 0,
        }
    }

    /// A processor executes a process from now on.
    pub fn runs(&mut self, processor: u8, process: u32) {
        let own = &mut self.processors[usize::from(processor)];
        if own.running.replace(process).is_some_and(|before| before != process) {
            let levels = self.levels.iter().zip(&mut own.tags);
            levels.filter(|(level, _)| level.is_flushed).for_each(|(_, tags)| tags.clear());
            own.last = NO_PAGE;
        }
    }

    /// A processor accesses an address of a process.
    #[inline]
    pub fn access(&mut self, processor: u8, process: u32, address: u64) {
        let Some(first) = self.levels.first() else { return };
        let address = address ^ Hierarchy::asid_bits(process);
        let page = address >> first.page_shift;
        let own = &mut self.processors[usize::from(processor)];
        if own.last != page {
            own.last = page;
            self.translate(processor, address);
        }
    }

    /// Uses a page in the first level that has it, and fills those before.
    fn translate(&mut self, processor: u8, address: u64) {
        self.now += 1;
        let tags = &mut self.processors[usize::from(processor)].tags;
        for (level, tags) in self.levels.iter_mut().zip(tags) {
            let page = address >> level.page_shift;
            if tags.touch(page, false, self.now) {
                return;
            }
            level.misses += 1;
            tags.fill(page, false, self.now);
        }
    }

    /// The name of each TLB, and how often all processors missed a page in it.
    pub fn misses(&self) -> impl Iterator<Item = (&str, u64)> {
        self.levels.iter().map(|level| (level.name.as_str(), level.misses))
    }

    /// Resets the counts; the TLBs keep their contents.
    pub fn reset_counts(&mut self) {
        self.levels.iter_mut().for_each(|level| level.misses = 0);
    }
}
