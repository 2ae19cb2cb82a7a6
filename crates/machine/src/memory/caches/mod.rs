//! The cache model: the misses of caches and TLBs by instruction and unit of work. It has no notion of cycles.

mod simulation;
mod tally;

use events::{Block, Consumer, HitFilter, Thread, UnfilteredAccess};

use crate::memory::block_template::{BlockTemplate, BlockTemplates};
use crate::memory::growing_lists::at;
use crate::memory::hierarchy::TrafficEvent;
use crate::{
    CacheCounts, Hierarchy, LineTraffic, Machine, MergeableModel, MissClass, Model, Request, WritePolicy,
};
use simulation::CacheSimulation;
use tally::MissTally;
pub use tally::UnitMisses;

/// The caches and TLBs (translation buffers) of a machine, with the misses of each instruction.
///
/// Accesses are those of the records. Loads to the zero register (prefetches), `fetch`, `wh64` and `ecb` have no
/// recorded address and are no accesses; a locked load is a load, and a conditional store a store, whether it
/// succeeds or not. Accesses by PALcode and the system are not simulated.
///
/// ```
/// use pathlength_machine::{Caches, Machine};
/// use events::{Block, Consumer, Thread};
/// let mut caches = Caches::new(&Machine::find("qemu").unwrap());
/// caches.define(&Block::new(&isa::Alpha, 0x1_2000_0000, [0xa41e_0010; 20])); // ldq v0,16(sp), 20 times
/// caches.executed(Thread::default(), &[vec![!0], vec![0x11_ff00; 20]].concat());
/// let counts = caches.structures();
/// assert_eq!((counts[0].name.as_str(), counts[0].accesses, counts[0].misses), ("icache", 20, 2));
/// assert_eq!((counts[1].name.as_str(), counts[1].accesses, counts[1].misses), ("dcache", 20, 1));
/// assert_eq!((counts[2].name.as_str(), counts[2].accesses, counts[2].misses), ("l2", 3, 3));
/// ```
#[derive(Debug)]
pub struct Caches {
    names: Vec<String>,
    hierarchy: Box<Hierarchy>,
    templates: BlockTemplates,
    tally: MissTally,
}

/// The accesses and misses of a cache or TLB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its name in the machine's description.
    pub name: String,
    /// Accesses by the processor and by the level before it. L1 of instructions has one for each instruction.
    pub accesses: u64,
    /// Accesses that missed.
    pub misses: u64,
    /// The misses by [`MissClass`].
    pub classes: [u64; MissClass::COUNT],
    /// Lines that a cache of data moved from and to the next level, by [`LineTraffic`].
    pub traffic: Option<[u64; LineTraffic::COUNT]>,
    /// Further counts of a cache; TLBs have none.
    pub counts: Option<CacheCounts>,
}

impl Caches {
    /// The caches and TLBs of a machine, empty.
    pub fn new(machine: &Machine) -> Caches {
        Caches::of(machine, Hierarchy::new(machine))
    }

    /// The same, with the class of each miss ([`MissClass`]). That takes several times as long.
    pub fn classified(machine: &Machine) -> Caches {
        Caches::of(machine, Hierarchy::classified(machine))
    }

    fn of(machine: &Machine, hierarchy: Hierarchy) -> Caches {
        let caches = machine.caches.iter().map(|cache| cache.name.clone());
        let buffers = machine.translation_buffers.iter().map(|buffer| buffer.name.clone());
        let names: Vec<String> = caches.chain(buffers).collect();
        Caches {
            tally: MissTally::new(machine.caches.len(), names.len(), hierarchy.is_classified()),
            names,
            templates: BlockTemplates::new(hierarchy.fetch_granule()),
            hierarchy: Box::new(hierarchy),
        }
    }

    /// How many structures [`Caches::structures`] has. It counts nothing, and takes no time.
    pub fn structure_count(&self) -> usize {
        self.names.len()
    }

    /// Accesses and misses of each structure: the machine's caches in order, then its TLBs.
    pub fn structures(&self) -> Vec<Structure> {
        debug_assert!(self.hierarchy.is_drained());
        let counts: Vec<&CacheCounts> = self.hierarchy.counts().collect();
        let of_processor = self.of_processor();
        let buffer_misses: Vec<_> = self.hierarchy.buffer_misses().collect();
        let mut structures = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            let cache = counts.get(index).copied();
            let mut accesses: u64 =
                cache.map_or(0, |counts| counts.requests[..Request::OF_PROCESSOR].iter().sum());
            for (kind, &of_kind) in of_processor.iter().enumerate() {
                let request = Request::ALL[kind];
                let (list, number) = match cache {
                    Some(_) => (self.hierarchy.caches_of(request), index),
                    None => (self.hierarchy.buffers_of(request), index - counts.len()),
                };
                match list.iter().position(|&one| one == number) {
                    Some(0) => accesses += of_kind,
                    Some(depth) if cache.is_none() => accesses += buffer_misses[list[depth - 1]][kind],
                    _ => {}
                }
            }
            structures.push(Structure {
                name: name.clone(),
                accesses,
                misses: self.tally.misses[index],
                classes: MissClass::ALL
                    .map(|class| self.tally.sites[index][class as usize].iter().flatten().sum()),
                traffic: cache.filter(|_| self.data_caches().contains(&index)).map(CacheCounts::traffic),
                counts: cache.cloned(),
            });
        }
        structures
    }

    /// Instructions, loads and stores executed.
    fn of_processor(&self) -> [u64; Request::OF_PROCESSOR] {
        let mut of_processor = [0; Request::OF_PROCESSOR];
        for template in self.templates.iter() {
            let executions = template.executions.get();
            let accesses = self.templates.accesses(template);
            let stores = accesses.iter().filter(|access| access.is_store()).count() as u64;
            of_processor[Request::Fetch as usize] += executions * u64::from(template.instructions);
            of_processor[Request::Load as usize] += executions * (accesses.len() as u64 - stores);
            of_processor[Request::Store as usize] += executions * stores;
        }
        of_processor
    }

    /// Instructions executed.
    pub fn instructions(&self) -> u64 {
        self.tally.instructions
    }

    /// Whether misses are classified.
    pub fn is_classified(&self) -> bool {
        self.hierarchy.is_classified()
    }

    /// Executions of a block.
    pub fn executions(&self, block: u32) -> u64 {
        self.templates.get(block).map_or(0, |template| template.executions.get())
    }

    /// Misses of a class in a structure, at each instruction of a block.
    pub fn misses_of(&self, structure: usize, class: MissClass, block: u32) -> impl Iterator<Item = u64> {
        let by_request = &self.tally.sites[structure][class as usize];
        self.sites(block).map(|site| by_request.iter().map(|misses| at(misses, site)).sum::<u64>())
    }

    fn sites(&self, block: u32) -> std::ops::Range<usize> {
        self.templates.get(block).map_or(0..0, BlockTemplate::sites)
    }

    /// The caches of data, which have [`LineTraffic`], as indices of [`Caches::structures`].
    pub fn data_caches(&self) -> &[usize] {
        self.hierarchy.caches_of(Request::Load)
    }

    /// Lines that a cache moved while each instruction of a block was executed. Where stores wait in a write buffer, that is the
    /// store which makes an earlier one leave it.
    pub fn traffic_of(&self, cache: usize, traffic: LineTraffic, block: u32) -> impl Iterator<Item = u64> {
        let event = move |event, site| self.hierarchy.site_events(cache, event, site);
        let misses = move |request: Request, site| -> u64 {
            self.tally.sites[cache].iter().map(|by_request| at(&by_request[request as usize], site)).sum()
        };
        self.sites(block).map(move |site| match traffic {
            LineTraffic::LoadFill => misses(Request::Load, site) - event(TrafficEvent::UnfilledLoad, site),
            LineTraffic::StoreFill => {
                misses(Request::Store, site) - event(TrafficEvent::UnfilledStore, site)
                    + event(TrafficEvent::WriteFill, site)
            }
            LineTraffic::WriteBack => event(TrafficEvent::WriteBack, site),
        })
    }

    /// The units of work that ended, in the order of their ends, each with the counts of its own thread.
    pub fn units(&self) -> &[UnitMisses] {
        &self.tally.units
    }
}

impl Consumer for Caches {
    fn define(&mut self, block: &Block) {
        self.hierarchy.adopt_time(0);
        self.templates.define(block);
        self.publish();
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        if self.tally.is_other(thread.number) {
            self.drain();
            self.tally.enter(thread.number, &self.hierarchy);
        }
        self.hierarchy.set_process(thread.process);
        self.hierarchy.adopt_time(0);
        let stores = self.hierarchy.stores();
        let mut simulation = self.simulation();
        match stores {
            WritePolicy::Back => simulation.run::<BACK>(records),
            WritePolicy::Through => simulation.run::<THROUGH>(records),
            WritePolicy::Ignored => simulation.run::<IGNORED>(records),
        };
        self.publish();
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        self.publish();
        let is_ignored = self.hierarchy.stores() == WritePolicy::Ignored;
        self.hierarchy.hit_filter(if is_ignored {
            consume_reported::<IGNORED>
        } else {
            consume_reported::<BACK>
        })
    }

    fn first_instruction(&self, block: u32) -> u32 {
        self.templates.get(block).map_or(0, |template| template.first_site)
    }

    fn executed_filtered(&mut self, block: u32, executions: u64) {
        self.drain();
        if let Some(template) = self.templates.get(block) {
            template.executions.update(|times| times + executions);
            let [instructions, accesses] = [template.instructions, template.accesses].map(u64::from);
            self.tally.executed(instructions * executions, accesses * executions);
        }
    }
}

impl MergeableModel for Caches {
    fn merge(&mut self, mut ended: Caches) {
        self.drain();
        ended.drain();
        self.templates.add_executions(&ended.templates);
        self.hierarchy.add_counts(&ended.hierarchy);
        self.tally.add(ended.tally);
    }

    fn totals(&self) -> Vec<u64> {
        let misses = self.tally.misses.iter().copied();
        let classes = self.tally.classes.iter().copied();
        let counts = std::iter::once(self.tally.instructions).chain(misses);
        counts.chain(self.hierarchy.traffic()).chain(classes).collect()
    }
}

impl Model for Caches {
    fn reset_counts(&mut self) {
        self.drain();
        self.templates.reset_executions();
        self.hierarchy.reset_counts();
        self.tally.reset();
    }
}

const BACK: u8 = WritePolicy::Back as u8;
const THROUGH: u8 = WritePolicy::Through as u8;
const IGNORED: u8 = WritePolicy::Ignored as u8;

impl Caches {
    fn simulation(&mut self) -> CacheSimulation<'_> {
        let Caches { hierarchy, templates, tally, .. } = self;
        CacheSimulation { templates, hierarchy, tally }
    }

    /// Sends misses that compiled code has deferred through the next levels.
    fn drain(&mut self) {
        self.hierarchy.adopt_time(0);
        self.simulation().drain();
        self.publish();
    }

    /// Simulates all levels for an access that compiled code reports.
    #[inline(never)]
    fn simulate_reported<const STORES: u8>(&mut self, reported: UnfilteredAccess) {
        self.hierarchy.adopt_time(u64::from(reported.number) - 1);
        let address = self.hierarchy.recorded_word(reported.index);
        self.simulation().reported_access::<STORES>(reported, address);
        self.publish();
    }

    /// Gives the time back to compiled code, and the address of this model, to which it reports accesses.
    fn publish(&mut self) {
        let own = (&raw mut *self).cast();
        self.hierarchy.publish_time(own);
    }
}

/// [`FilterTable::on_unfiltered`](events::FilterTable::on_unfiltered), where `STORES` is the write policy of L1.
unsafe extern "C" fn consume_reported<const STORES: u8>(consumer: *mut u8, reported: u64) {
    // SAFETY: the address is the one that `publish` gave, and the model was not used since.
    let caches = unsafe { &mut *consumer.cast::<Caches>() };
    let reported = UnfilteredAccess::new(reported);
    if !caches.simulation().try_defer_reported(reported) {
        caches.simulate_reported::<STORES>(reported);
    }
}
