//! Misses by instruction, and by unit of work.

use std::mem::take;

use events::record::Mark;

use crate::memory::growing_lists::add_to;
use crate::observe::per_thread::{PerThread, Sums};
use crate::{Hierarchy, MissClass, Request, Served};

/// The counts of a cache model.
#[derive(Debug)]
pub struct MissTally {
    /// Instructions executed.
    pub instructions: u64,
    /// Loads and stores executed.
    pub accesses: u64,
    /// Misses of each structure.
    pub misses: Vec<u64>,
    /// Misses of each structure by [`MissClass::KNOWN`], one structure after another; empty if misses are not classified.
    pub classes: Vec<u64>,
    /// For each structure, [`MissClass`] and kind of request, misses by site.
    pub sites: Vec<[SiteMisses; MissClass::COUNT]>,
    /// The units of work that ended.
    pub units: Vec<UnitMisses>,
    /// The share of each thread.
    threads: PerThread<TallySums>,
    caches: usize,
}

/// Misses by the kind of the processor's request, and by site.
pub type SiteMisses = [Vec<u64>; Request::OF_PROCESSOR];

/// The counts of a unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitMisses {
    /// Its number.
    pub number: u64,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// Instructions executed.
    pub instructions: u64,
    /// Loads and stores executed.
    pub accesses: u64,
    /// Misses of each structure, in the order of [`Caches::structures`].
    pub misses: Vec<u64>,
    /// Lines that each of [`Caches::data_caches`](super::Caches::data_caches) moved, by [`LineTraffic`](crate::LineTraffic), one
    /// cache after another.
    pub traffic: Vec<u64>,
    /// Misses of each structure by [`MissClass::KNOWN`], one structure after another; empty if misses are not classified.
    pub classes: Vec<u64>,
}

/// The sums that are divided among threads.
#[derive(Clone, Debug, Default)]
struct TallySums {
    instructions: u64,
    accesses: u64,
    /// Misses of each structure; empty if all are 0.
    misses: Vec<u64>,
    /// Lines that each cache moved; empty if all are 0.
    traffic: Vec<u64>,
    /// Classified misses; empty if all are 0.
    classes: Vec<u64>,
}

impl Sums for TallySums {
    fn add(&mut self, other: &TallySums) {
        self.instructions += other.instructions;
        self.accesses += other.accesses;
        add_to(&mut self.misses, &other.misses);
        add_to(&mut self.traffic, &other.traffic);
        add_to(&mut self.classes, &other.classes);
    }

    fn since(&self, earlier: &TallySums) -> TallySums {
        let mut since = self.clone();
        since.instructions -= earlier.instructions;
        since.accesses -= earlier.accesses;
        since.misses.iter_mut().zip(&earlier.misses).for_each(|(misses, before)| *misses -= before);
        since.traffic.iter_mut().zip(&earlier.traffic).for_each(|(lines, before)| *lines -= before);
        since.classes.iter_mut().zip(&earlier.classes).for_each(|(misses, before)| *misses -= before);
        since
    }
}

impl MissTally {
    /// For this number of structures, of which the first `caches` are caches.
    pub fn new(caches: usize, structures: usize, is_classified: bool) -> MissTally {
        MissTally {
            instructions: 0,
            accesses: 0,
            misses: vec![0; structures],
            classes: if is_classified { vec![0; structures * MissClass::KNOWN.len()] } else { Vec::new() },
            sites: (0..structures).map(|_| Default::default()).collect(),
            units: Vec::new(),
            threads: PerThread::default(),
            caches,
        }
    }

    /// Resets the counts; units that have begun are dropped.
    pub fn reset(&mut self) {
        let mut threads = take(&mut self.threads);
        threads.reset();
        *self =
            MissTally { threads, ..MissTally::new(self.caches, self.misses.len(), !self.classes.is_empty()) };
    }

    /// Adds the counts of a tally of the same structures and blocks, whose threads have ended.
    pub fn add(&mut self, ended: MissTally) {
        self.instructions += ended.instructions;
        self.accesses += ended.accesses;
        add_to(&mut self.misses, &ended.misses);
        add_to(&mut self.classes, &ended.classes);
        for (own, ended) in self.sites.iter_mut().zip(&ended.sites) {
            for (own, ended) in own.iter_mut().flatten().zip(ended.iter().flatten()) {
                add_to(own, ended);
            }
        }
        self.units.extend(ended.units);
    }

    /// Whether a thread is another one than the current thread.
    #[inline]
    pub fn is_other(&self, thread: u32) -> bool {
        self.threads.is_other(thread)
    }

    /// Switches to a thread, after all earlier records are counted.
    pub fn enter(&mut self, thread: u32, hierarchy: &Hierarchy) {
        let sums = self.sums(hierarchy);
        self.threads.enter(thread, sums);
    }

    fn sums(&self, hierarchy: &Hierarchy) -> TallySums {
        TallySums {
            instructions: self.instructions,
            accesses: self.accesses,
            misses: self.misses.clone(),
            traffic: hierarchy.traffic(),
            classes: self.classes.clone(),
        }
    }

    /// Counts instructions, and loads and stores.
    #[inline]
    pub fn executed(&mut self, instructions: u64, accesses: u64) {
        self.instructions += instructions;
        self.accesses += accesses;
    }

    /// Counts the misses of an access at its site; there are `sites` sites.
    #[inline(always)]
    pub fn count_misses(
        &mut self,
        hierarchy: &Hierarchy,
        request: Request,
        site: u32,
        sites: usize,
        served: Served,
    ) {
        match (served.cache_misses, served.tlb_misses) {
            (0, 0) => {}
            (1, 0) => {
                let l1 = hierarchy.caches_of(request)[0];
                self.count(l1, hierarchy.cache_class(0), request, site, sites);
            }
            _ => self.count_misses_from(0, hierarchy, request, site, sites, served),
        }
    }

    /// The same for the caches from a depth on: misses of the others are counted elsewhere ([`MissTally::lend`]).
    #[inline(never)]
    pub fn count_misses_from(
        &mut self,
        first_depth: usize,
        hierarchy: &Hierarchy,
        request: Request,
        site: u32,
        sites: usize,
        served: Served,
    ) {
        let missed = &hierarchy.caches_of(request)[..served.cache_misses as usize];
        for (depth, &structure) in missed.iter().enumerate().skip(first_depth) {
            self.count(structure, hierarchy.cache_class(depth), request, site, sites);
        }
        let untranslated = &hierarchy.buffers_of(request)[..served.tlb_misses as usize];
        for (depth, &buffer) in untranslated.iter().enumerate() {
            self.count(self.caches + buffer, hierarchy.buffer_class(depth), request, site, sites);
        }
    }

    /// Lends the unclassified misses of a structure by a kind of request, by site, with room for all sites.
    pub fn lend(&mut self, structure: usize, request: Request, sites: usize) -> Vec<u64> {
        let mut counts = take(&mut self.sites[structure][MissClass::Unknown as usize][request as usize]);
        counts.resize(sites, 0);
        counts
    }

    /// Takes the lent counts back, to which `misses` were added.
    pub fn take_back(&mut self, structure: usize, request: Request, counts: Vec<u64>, misses: u64) {
        self.misses[structure] += misses;
        self.sites[structure][MissClass::Unknown as usize][request as usize] = counts;
    }

    #[inline(always)]
    fn count(&mut self, structure: usize, class: MissClass, request: Request, site: u32, sites: usize) {
        self.misses[structure] += 1;
        if class != MissClass::Unknown {
            self.classes[structure * MissClass::KNOWN.len() + class as usize - 1] += 1;
        }
        let misses = &mut self.sites[structure][class as usize][request as usize];
        if misses.len() <= site as usize {
            misses.resize(sites, 0);
        }
        misses[site as usize] += 1;
    }

    /// Begins or ends a unit of work.
    pub fn mark(&mut self, mark: Mark, hierarchy: &Hierarchy) {
        match mark {
            Mark::UnitBegins(number) => {
                let sums = self.sums(hierarchy);
                self.threads.begin_unit(number, &sums);
            }
            Mark::UnitEnds(number) | Mark::UnitLeft(number) => {
                let ended = self.threads.end_unit(number, &self.sums(hierarchy));
                self.units.extend(ended.map(|sums| UnitMisses {
                    number,
                    thread: self.threads.current(),
                    instructions: sums.instructions,
                    accesses: sums.accesses,
                    misses: sums.misses,
                    traffic: sums.traffic,
                    classes: sums.classes,
                }));
            }
            Mark::UnitCut(number) => drop(self.threads.end_unit(number, &self.sums(hierarchy))),
            _ => {}
        }
    }
}
