//! Caches and translation buffers without time: what misses, where, and why.

mod replay;
mod tally;

use trace::{Block, Consumer, Lookaside, Thread, Unusual};

use crate::script::{Script, Scripts};
use crate::{Class, Counts, Hierarchy, Machine, Model, Request, Write};
use replay::Replay;
use tally::Tally;
pub use tally::UnitMisses;

/// The caches and translation buffers of a machine, and the instructions that miss.
///
/// Accesses are those of the trace: loads whose result is dropped (prefetches), `fetch`, `wh64` and `ecb` have
/// no recorded address and ask for nothing; a locked load is a load, and a conditional store a store, whether it
/// succeeds or not. What PALcode and the system do is not in it.
///
/// ```
/// use pathlength_machine::{Caches, Machine};
/// use trace::{Block, Consumer, Thread};
/// let mut caches = Caches::new(&Machine::find("qemu").unwrap());
/// caches.define(&Block::new(0x1_2000_0000, [0xa41e_0010; 20])); // ldq v0,16(sp), 20 times
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
    scripts: Scripts,
    tally: Tally,
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
            tally: Tally::new(machine.caches.len(), names.len()),
            names,
            scripts: Scripts::new(hierarchy.fetch_granule()),
            hierarchy: Box::new(hierarchy),
        }
    }

    /// What happened at each structure: the machine's caches in order, then its translation buffers.
    pub fn structures(&self) -> Vec<Structure> {
        debug_assert!(self.hierarchy.is_drained());
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
                misses: self.tally.misses[index],
                classes: Class::ALL.map(|class| self.tally.sites[index][class as usize].iter().sum()),
                counts: cache.cloned(),
            });
        }
        structures
    }

    /// Instructions, loads and stores executed.
    fn of_processor(&self) -> [u64; Request::OF_PROCESSOR] {
        let mut of_processor = [0; Request::OF_PROCESSOR];
        for script in self.scripts.iter() {
            let executions = script.executions.get();
            let accesses = self.scripts.accesses(script);
            let stores = accesses.iter().filter(|access| access.is_store()).count() as u64;
            of_processor[Request::Fetch as usize] += executions * u64::from(script.instructions);
            of_processor[Request::Load as usize] += executions * (accesses.len() as u64 - stores);
            of_processor[Request::Store as usize] += executions * stores;
        }
        of_processor
    }

    /// Instructions executed.
    pub fn instructions(&self) -> u64 {
        self.tally.instructions
    }

    /// Executions of a block.
    pub fn executions(&self, block: u32) -> u64 {
        self.scripts.get(block).map_or(0, |script| script.executions.get())
    }

    /// Misses of a structure for this reason at each instruction of a block.
    pub fn misses_of(&self, structure: usize, class: Class, block: u32) -> impl Iterator<Item = u64> {
        let sites = self.scripts.get(block).map_or(0..0, Script::sites);
        let misses = &self.tally.sites[structure][class as usize];
        sites.map(|site| misses.get(site).copied().unwrap_or(0))
    }

    /// The units of work that ended as they should, in the order of their ends; each with what its own thread did.
    pub fn units(&self) -> &[UnitMisses] {
        &self.tally.units
    }
}

impl Consumer for Caches {
    fn define(&mut self, block: &Block) {
        self.hierarchy.adopt_time(0);
        self.scripts.define(block.address, &block.words);
        self.let_tell();
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        if self.tally.is_other(thread.number) {
            self.go_on();
            self.tally.enter(thread.number);
        }
        self.hierarchy.set_process(thread.process);
        self.hierarchy.adopt_time(0);
        let stores = self.hierarchy.stores();
        let mut replay = self.replay();
        match stores {
            Write::Back => replay.run::<BACK>(records),
            Write::Through => replay.run::<THROUGH>(records),
            Write::Ignored => replay.run::<IGNORED>(records),
        };
        self.let_tell();
    }

    fn lookaside(&mut self) -> Option<Lookaside> {
        self.let_tell();
        let is_ignored = self.hierarchy.stores() == Write::Ignored;
        self.hierarchy.lookaside(if is_ignored { unusual::<IGNORED> } else { unusual::<BACK> })
    }

    fn first_instruction(&self, block: u32) -> u32 {
        self.scripts.get(block).map_or(0, |script| script.first_site)
    }

    fn passed(&mut self, block: u32, executions: u64) {
        self.go_on();
        if let Some(script) = self.scripts.get(block) {
            script.executions.update(|times| times + executions);
            let [instructions, accesses] = [script.instructions, script.accesses].map(u64::from);
            self.tally.executed(instructions * executions, accesses * executions);
        }
    }
}

impl Model for Caches {
    fn forget_counts(&mut self) {
        self.go_on();
        self.scripts.forget_executions();
        self.hierarchy.forget_counts();
        self.tally.forget();
    }
}

const BACK: u8 = Write::Back as u8;
const THROUGH: u8 = Write::Through as u8;
const IGNORED: u8 = Write::Ignored as u8;

impl Caches {
    fn replay(&mut self) -> Replay<'_> {
        let Caches { hierarchy, scripts, tally, .. } = self;
        Replay { scripts, hierarchy, tally }
    }

    /// What compiled code told goes through all levels before anything else happens.
    fn go_on(&mut self) {
        self.hierarchy.adopt_time(0);
        self.replay().go_on();
        self.let_tell();
    }

    /// What is unusual goes through all levels.
    #[inline(never)]
    fn unusual_now<const STORES: u8>(&mut self, what: Unusual) {
        self.hierarchy.adopt_time(u64::from(what.number) - 1);
        let address = self.hierarchy.recorded_word(what.index);
        self.replay().unusual::<STORES>(what, address);
        self.let_tell();
    }

    /// Lets compiled code go on, and tell this what is unusual.
    fn let_tell(&mut self) {
        let own = (&raw mut *self).cast();
        self.hierarchy.publish_time(own);
    }
}

/// [`Lookaside::unusual`], where stores do what `STORES` says.
unsafe extern "C" fn unusual<const STORES: u8>(consumer: *mut u8, what: u64) {
    // SAFETY: what the caller has is from `let_tell`, which nobody has used the model after.
    let caches = unsafe { &mut *consumer.cast::<Caches>() };
    let what = Unusual::new(what);
    if !caches.replay().unusual_later(what) {
        caches.unusual_now::<STORES>(what);
    }
}
