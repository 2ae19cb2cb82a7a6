//! Caches and translation buffers without time: what misses, where, and why.

use std::collections::HashMap;
use std::ops::Range;

use trace::record::{Event, Mark};

use crate::hierarchy::STEP;
use crate::script::{Access, Script, Scripts};
use crate::{Class, Counts, Hierarchy, Machine, Model, Request, Served, Write};

/// The caches and translation buffers of a machine, and the instructions that miss.
///
/// Accesses are those of the trace: loads whose result is dropped (prefetches), `fetch`, `wh64` and `ecb` have
/// no recorded address and ask for nothing; a locked load is a load, and a conditional store a store, whether it
/// succeeds or not. What PALcode and the system do is not in it.
///
/// ```
/// use pathlength_machine::{Caches, Machine, Model};
/// let mut caches = Caches::new(&Machine::find("qemu").unwrap());
/// caches.define(0x1_2000_0000, &[0xa41e_0010; 20]); // ldq v0,16(sp), 20 times
/// caches.executed(0, &[vec![!0], vec![0x11_ff00; 20]].concat());
/// let counts = caches.structures();
/// assert_eq!((counts[0].name.as_str(), counts[0].accesses, counts[0].misses), ("icache", 20, 2));
/// assert_eq!((counts[1].name.as_str(), counts[1].accesses, counts[1].misses), ("dcache", 20, 1));
/// assert_eq!((counts[2].name.as_str(), counts[2].accesses, counts[2].misses), ("l2", 3, 3));
/// ```
#[derive(Debug)]
pub struct Caches {
    names: Vec<String>,
    hierarchy: Hierarchy,
    scripts: Scripts,
    /// Executions of each block.
    executions: Vec<u64>,
    /// Of each structure and [`Class`], misses by site.
    misses: Vec<[Vec<u64>; Class::COUNT]>,
    totals: Totals,
    open: HashMap<u64, Totals>,
    units: Vec<UnitMisses>,
    now: u64,
}

/// Sums over a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    instructions: u64,
    accesses: u64,
    misses: Vec<u64>,
}

/// What happened at a cache or translation buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// What the machine calls it.
    pub name: String,
    /// What the processor, or a nearer structure that missed, asked for: one for each instruction at the
    /// nearest of instructions.
    pub accesses: u64,
    /// What it did not have.
    pub misses: u64,
    /// The misses, by [`Class`].
    pub classes: [u64; Class::COUNT],
    /// More about caches.
    pub counts: Option<Counts>,
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

impl Caches {
    /// Those of a machine: its caches, then its translation buffers.
    pub fn new(machine: &Machine) -> Caches {
        Caches::of(machine, Hierarchy::new(machine))
    }

    /// The same, which tell why accesses miss ([`Class`]). That takes several times as long.
    pub fn classified(machine: &Machine) -> Caches {
        Caches::of(machine, Hierarchy::classified(machine))
    }

    fn of(machine: &Machine, hierarchy: Hierarchy) -> Caches {
        let caches = machine.caches.iter().map(|cache| cache.name.clone());
        let buffers = machine.translation_buffers.iter().map(|buffer| buffer.name.clone());
        let names: Vec<String> = caches.chain(buffers).collect();
        Caches {
            misses: names.iter().map(|_| Default::default()).collect(),
            totals: Totals { misses: vec![0; names.len()], ..Totals::default() },
            names,
            scripts: Scripts::new(hierarchy.piece_of_instructions()),
            hierarchy,
            executions: Vec::new(),
            open: HashMap::new(),
            units: Vec::new(),
            now: 0,
        }
    }

    /// Executions and marks, where stores do what `STORES` says.
    fn run<const STORES: u8>(&mut self, records: &[u64]) {
        let mut words = records;
        while let Some((&word, rest)) = words.split_first() {
            words = match Event::new(word) {
                Event::Block(block) => {
                    let Some(script) = self.scripts.get(block) else { return };
                    let Some((addresses, rest)) = rest.split_at_checked(script.accesses as usize) else {
                        return;
                    };
                    self.executions[block as usize] += 1;
                    self.totals.instructions += u64::from(script.instructions);
                    self.totals.accesses += u64::from(script.accesses);
                    self.execute::<STORES>(script, addresses);
                    rest
                }
                Event::Mark(mark) => {
                    self.mark(mark);
                    rest
                }
                Event::Access(_) => return,
            };
        }
    }

    /// A block was executed. Mostly the nearest cache has all its instructions; then its accesses follow each
    /// other without looking at lines.
    #[inline(always)]
    fn execute<const STORES: u8>(&mut self, script: Script, addresses: &[u64]) {
        if !self.hierarchy.can_expel_instructions() {
            let mut known = 0;
            for line in self.scripts.lines(script.lines()) {
                self.now += STEP;
                if !self.hierarchy.fetches_known(self.now, line.address) {
                    return self.fetch_and_access::<STORES>(script, known, addresses);
                }
                known += 1;
            }
            self.access::<STORES>(script.own_accesses(), addresses);
        } else {
            self.fetch_and_access::<STORES>(script, 0, addresses);
        }
    }

    /// The lines and accesses of a block in their order, where the first lines are fetched already.
    #[cold]
    #[inline(never)]
    fn fetch_and_access<const STORES: u8>(&mut self, script: Script, fetched: usize, addresses: &[u64]) {
        let (mut access, mut addresses) = (script.own_accesses().start, addresses);
        for (number, place) in script.lines().enumerate() {
            let line = self.scripts.lines(place..place + 1)[0];
            if number >= fetched {
                self.now += STEP;
                let served = self.hierarchy.fetch_at(self.now, line.address);
                if !served.is_near() {
                    self.note(Request::Fetch, line.site, served);
                }
            }
            let (of_line, others) = addresses.split_at(line.accesses as usize);
            self.access::<STORES>(access..access + of_line.len(), of_line);
            access += of_line.len();
            addresses = others;
        }
    }

    /// Accesses to data, one behind the other.
    #[inline(always)]
    fn access<const STORES: u8>(&mut self, accesses: Range<usize>, addresses: &[u64]) {
        let mut now = self.now;
        for (place, &address) in accesses.zip(addresses) {
            let does = self.scripts.accesses(place..place + 1)[0];
            let last = address.wrapping_add(does.more.into());
            now += STEP;
            let served = self.hierarchy.data_at::<STORES>(now, address, does.is_store);
            if !served.is_near() {
                self.note_data(does, served);
            }
            if self.hierarchy.crosses(address, last) {
                now += STEP;
                let served = self.hierarchy.data_at::<STORES>(now, last, does.is_store);
                self.note_data(does, served);
            }
        }
        self.now = now;
    }

    #[cold]
    fn note_data(&mut self, does: Access, served: Served) {
        self.note(if does.is_store { Request::Store } else { Request::Load }, does.site, served);
    }

    /// Counts misses at the instruction that met them.
    #[cold]
    fn note(&mut self, request: Request, site: u32, served: Served) {
        for depth in 0..served.missed as usize {
            let structure = self.hierarchy.caches_of(request)[depth];
            self.count(structure, self.hierarchy.cache_class(depth), site);
        }
        for depth in 0..served.untranslated as usize {
            let structure = self.hierarchy.counts().count() + self.hierarchy.buffers_of(request)[depth];
            self.count(structure, self.hierarchy.buffer_class(depth), site);
        }
    }

    fn count(&mut self, structure: usize, class: Class, site: u32) {
        self.totals.misses[structure] += 1;
        let misses = &mut self.misses[structure][class as usize];
        if misses.len() <= site as usize {
            misses.resize(self.scripts.sites(), 0);
        }
        misses[site as usize] += 1;
    }

    #[cold]
    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::UnitBegins(number) => drop(self.open.insert(number, self.totals.clone())),
            Mark::UnitEnds(number) => {
                let Some(begin) = self.open.remove(&number) else { return };
                let misses = self.totals.misses.iter().zip(&begin.misses).map(|(end, begin)| end - begin);
                self.units.push(UnitMisses {
                    number,
                    instructions: self.totals.instructions - begin.instructions,
                    accesses: self.totals.accesses - begin.accesses,
                    misses: misses.collect(),
                });
            }
            Mark::UnitLeft(number) => drop(self.open.remove(&number)),
            _ => {}
        }
    }

    /// What happened at each structure: the machine's caches in order, then its translation buffers.
    pub fn structures(&self) -> Vec<Structure> {
        let counts: Vec<&Counts> = self.hierarchy.counts().collect();
        let of_processor = self.of_processor();
        let buffer_misses: Vec<_> = self.hierarchy.buffer_misses().collect();
        let mut structures = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            let cache = counts.get(index).copied();
            let mut accesses: u64 =
                cache.map_or(0, |counts| counts.requests[..Request::OF_PROCESSOR].iter().sum());
            for (kind, &of_kind) in of_processor.iter().enumerate() {
                let request = Request::ALL[kind];
                let (list, place) = match cache {
                    Some(_) => (self.hierarchy.caches_of(request), index),
                    None => (self.hierarchy.buffers_of(request), index - counts.len()),
                };
                match list.iter().position(|&one| one == place) {
                    Some(0) => accesses += of_kind,
                    Some(depth) if cache.is_none() => accesses += buffer_misses[list[depth - 1]][kind],
                    _ => {}
                }
            }
            structures.push(Structure {
                name: name.clone(),
                accesses,
                misses: self.totals.misses[index],
                classes: Class::ALL.map(|class| self.misses[index][class as usize].iter().sum()),
                counts: cache.cloned(),
            });
        }
        structures
    }

    /// Instructions, loads and stores executed.
    fn of_processor(&self) -> [u64; Request::OF_PROCESSOR] {
        let mut of_processor = [0; Request::OF_PROCESSOR];
        for (script, executions) in self.scripts.iter().zip(&self.executions) {
            let accesses = self.scripts.accesses(script.own_accesses());
            let stores = accesses.iter().filter(|access| access.is_store).count() as u64;
            of_processor[Request::Fetch as usize] += executions * u64::from(script.instructions);
            of_processor[Request::Load as usize] += executions * (accesses.len() as u64 - stores);
            of_processor[Request::Store as usize] += executions * stores;
        }
        of_processor
    }

    /// Executions of each block, in the order of their definitions.
    pub fn executions(&self) -> &[u64] {
        &self.executions
    }

    /// Misses of a structure for this reason at each instruction of a block.
    pub fn misses_of(&self, structure: usize, class: Class, block: u32) -> impl Iterator<Item = u64> {
        let sites = self.scripts.get(block).map_or(0..0, Script::sites);
        let misses = &self.misses[structure][class as usize];
        sites.map(|site| misses.get(site).copied().unwrap_or(0))
    }

    /// The units of work that ended as they should, in the order of their ends. What other threads did in
    /// between is in it.
    pub fn units(&self) -> &[UnitMisses] {
        &self.units
    }
}

impl Model for Caches {
    fn define(&mut self, address: u64, words: &[u32]) {
        self.scripts.define(address, words);
        self.executions.push(0);
    }

    fn executed(&mut self, space: u32, records: &[u64]) {
        self.hierarchy.set_space(space);
        match self.hierarchy.stores() {
            Write::Back => self.run::<{ Write::Back as u8 }>(records),
            Write::Through => self.run::<{ Write::Through as u8 }>(records),
            Write::Ignored => self.run::<{ Write::Ignored as u8 }>(records),
        }
    }
}
