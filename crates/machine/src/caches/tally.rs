//! Misses by instruction, and by unit of work.

use std::collections::HashMap;
use std::mem::take;

use trace::record::Mark;

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
    /// The units that have begun: what there was before.
    open: HashMap<u64, UnitMisses>,
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

impl Tally {
    /// Of so many structures, of which the first are caches.
    pub fn new(caches: usize, structures: usize) -> Tally {
        Tally {
            instructions: 0,
            accesses: 0,
            misses: vec![0; structures],
            sites: (0..structures).map(|_| Default::default()).collect(),
            units: Vec::new(),
            open: HashMap::new(),
            caches,
        }
    }

    /// Forgets everything, and that units have begun.
    pub fn forget(&mut self) {
        *self = Tally::new(self.caches, self.misses.len());
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
                let (instructions, accesses, misses) =
                    (self.instructions, self.accesses, self.misses.clone());
                self.open.insert(number, UnitMisses { number, instructions, accesses, misses });
            }
            Mark::UnitEnds(number) => {
                let Some(mut unit) = self.open.remove(&number) else { return };
                unit.instructions = self.instructions - unit.instructions;
                unit.accesses = self.accesses - unit.accesses;
                for (misses, all) in unit.misses.iter_mut().zip(&self.misses) {
                    *misses = all - *misses;
                }
                self.units.push(unit);
            }
            Mark::UnitLeft(number) => drop(self.open.remove(&number)),
            _ => {}
        }
    }
}
