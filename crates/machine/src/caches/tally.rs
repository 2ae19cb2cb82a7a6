//! Misses by instruction, and by unit of work.

use std::mem::take;

use trace::record::Mark;

use crate::per_thread::{PerThread, Sums};
use crate::{Class, Hierarchy, Request, Served};

/// Sums of what has happened.
#[derive(Debug)]
pub struct Tally {
    /// Instructions executed.
    pub instructions: u64,
    /// Loads and stores executed.
    pub accesses: u64,
    /// Misses of each structure.
    pub misses: Vec<u64>,
    /// Of each structure and [`Class`], misses by site.
    pub sites: Vec<[Vec<u64>; Class::COUNT]>,
    /// The units that ended.
    pub units: Vec<UnitMisses>,
    /// What each thread has of the sums.
    threads: PerThread<Shared>,
    caches: usize,
}

/// What happened during a unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitMisses {
    /// Its number.
    pub number: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Misses of each structure, in the order of [`Caches::structures`].
    pub misses: Vec<u64>,
}

/// The sums that threads have shares of.
#[derive(Clone, Debug, Default)]
struct Shared {
    instructions: u64,
    accesses: u64,
    /// Of each structure; or of none, as long as nothing was counted.
    misses: Vec<u64>,
}

impl Sums for Shared {
    fn add(&mut self, other: &Shared) {
        self.instructions += other.instructions;
        self.accesses += other.accesses;
        self.misses.resize(self.misses.len().max(other.misses.len()), 0);
        self.misses.iter_mut().zip(&other.misses).for_each(|(misses, more)| *misses += more);
    }

    fn since(&self, earlier: &Shared) -> Shared {
        let mut since = self.clone();
        since.instructions -= earlier.instructions;
        since.accesses -= earlier.accesses;
        since.misses.iter_mut().zip(&earlier.misses).for_each(|(misses, before)| *misses -= before);
        since
    }
}

impl Tally {
    /// Of so many structures, of which the first are caches.
    pub fn new(caches: usize, structures: usize) -> Tally {
        Tally {
            instructions: 0,
            accesses: 0,
            misses: vec![0; structures],
            sites: (0..structures).map(|_| Default::default()).collect(),
            units: Vec::new(),
            threads: PerThread::default(),
            caches,
        }
    }

    /// Forgets everything, and that units have begun.
    pub fn forget(&mut self) {
        let mut threads = take(&mut self.threads);
        threads.forget();
        *self = Tally { threads, ..Tally::new(self.caches, self.misses.len()) };
    }

    /// Whether it is another thread's turn to execute.
    #[inline]
    pub fn is_other(&self, thread: u32) -> bool {
        self.threads.is_other(thread)
    }

    /// It is a thread's turn, and all that was executed before is counted.
    pub fn enter(&mut self, thread: u32) {
        let sums = self.sums();
        self.threads.enter(thread, sums);
    }

    fn sums(&self) -> Shared {
        Shared { instructions: self.instructions, accesses: self.accesses, misses: self.misses.clone() }
    }

    /// Counts instructions, and loads and stores.
    #[inline]
    pub fn executed(&mut self, instructions: u64, accesses: u64) {
        self.instructions += instructions;
        self.accesses += accesses;
    }

    /// Counts misses at the instruction that met them, one of so many.
    #[inline(always)]
    pub fn note(&mut self, hierarchy: &Hierarchy, request: Request, site: u32, sites: usize, served: Served) {
        match (served.cache_misses, served.tlb_misses) {
            (0, 0) => {}
            (1, 0) => {
                let nearest = hierarchy.caches_of(request)[0];
                self.count(nearest, hierarchy.cache_class(0), site, sites);
            }
            _ => self.note_from(0, hierarchy, request, site, sites, served),
        }
    }

    /// The same, but without the caches nearer than a depth: what those miss is counted elsewhere ([`Tally::lend`]).
    #[inline(never)]
    pub fn note_from(
        &mut self,
        nearest: usize,
        hierarchy: &Hierarchy,
        request: Request,
        site: u32,
        sites: usize,
        served: Served,
    ) {
        let missed = &hierarchy.caches_of(request)[..served.cache_misses as usize];
        for (depth, &structure) in missed.iter().enumerate().skip(nearest) {
            self.count(structure, hierarchy.cache_class(depth), site, sites);
        }
        let untranslated = &hierarchy.buffers_of(request)[..served.tlb_misses as usize];
        for (depth, &buffer) in untranslated.iter().enumerate() {
            self.count(self.caches + buffer, hierarchy.buffer_class(depth), site, sites);
        }
    }

    /// Lends the counts of a structure's misses, which are not told apart, by site; all that are there.
    pub fn lend(&mut self, structure: usize, sites: usize) -> Vec<u64> {
        let mut counts = take(&mut self.sites[structure][Class::Unknown as usize]);
        counts.resize(sites, 0);
        counts
    }

    /// Takes them back, after so many misses.
    pub fn take_back(&mut self, structure: usize, counts: Vec<u64>, misses: u64) {
        self.misses[structure] += misses;
        self.sites[structure][Class::Unknown as usize] = counts;
    }

    #[inline(always)]
    fn count(&mut self, structure: usize, class: Class, site: u32, sites: usize) {
        self.misses[structure] += 1;
        let misses = &mut self.sites[structure][class as usize];
        if misses.len() <= site as usize {
            misses.resize(sites, 0);
        }
        misses[site as usize] += 1;
    }

    /// A unit of work begins or ends.
    pub fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::UnitBegins(number) => {
                let sums = self.sums();
                self.threads.begin_unit(number, &sums);
            }
            Mark::UnitEnds(number) => {
                let ended = self.threads.end_unit(number, &self.sums());
                self.units.extend(ended.map(|Shared { instructions, accesses, misses }| UnitMisses {
                    number,
                    instructions,
                    accesses,
                    misses,
                }));
            }
            Mark::UnitLeft(number) => drop(self.threads.end_unit(number, &self.sums())),
            _ => {}
        }
    }
}
