//! What a statement costs on the machines: of the whole statement, and of each component of the database.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use analysis::components::Components;
use analysis::models::InstructionResults;
use analysis::names::{FunctionName, Names};
use events::{Block, BlockId};
use machine::{Caches, Holds, Machine, Request, TimingModel};
use serde::{Deserialize, Serialize};
use trace::Trace;

use crate::byteword::schemes::{KINDS, kind};
use crate::models::Models;

/// A statement that was executed once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) instructions: u64,
    /// Loads and stores.
    pub(super) references: u64,
    /// On each machine.
    pub(super) machines: Vec<MachineMeasured>,
}

/// On one machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MachineMeasured {
    /// The caches and TLBs, in the order of the machine's description.
    pub(super) structures: Vec<StructureMisses>,
    /// Cycles by kind of cause ([`KINDS`]), if they were measured.
    pub(super) cycles: [u64; KINDS.len()],
    /// The parts of the database. All together are the whole.
    pub(super) components: BTreeMap<String, ComponentMeasured>,
}

/// The misses of a cache or TLB.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StructureMisses {
    pub(super) name: String,
    /// The level of a cache; 0 of a TLB.
    pub(super) level: u32,
    pub(super) misses: u64,
    /// Those of instructions.
    pub(super) of_instructions: u64,
}

/// What is spent in a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ComponentMeasured {
    pub(super) instructions: u64,
    /// Of each cache and TLB.
    pub(super) misses: Vec<u64>,
    pub(super) cycles: u64,
}

impl MachineMeasured {
    /// Cycles of all kinds.
    pub(super) fn all_cycles(&self) -> u64 {
        self.cycles.iter().sum()
    }

    /// Misses of instructions, and of data, at a level of caches.
    pub(super) fn level(&self, level: u32) -> [u64; 2] {
        let caches = self.structures.iter().filter(|cache| cache.level == level);
        caches.fold([0, 0], |[instructions, data], cache| {
            [instructions + cache.of_instructions, data + cache.misses - cache.of_instructions]
        })
    }

    /// What is spent in these components, or in all.
    pub(super) fn spent_in(&self, components: Option<&[&str]>) -> ComponentMeasured {
        let mut sum =
            ComponentMeasured { misses: vec![0; self.structures.len()], ..ComponentMeasured::default() };
        for (name, one) in &self.components {
            if components.is_none_or(|names| names.contains(&name.as_str())) {
                sum.add(one.instructions, &one.misses, one.cycles);
            }
        }
        sum
    }
}

impl ComponentMeasured {
    /// Adds what is spent elsewhere.
    pub(super) fn add(&mut self, instructions: u64, misses: &[u64], cycles: u64) {
        self.instructions += instructions;
        self.misses.resize(misses.len(), 0);
        self.misses.iter_mut().zip(misses).for_each(|(sum, misses)| *sum += misses);
        self.cycles += cycles;
    }
}

/// What models are made of machines.
#[derive(Clone)]
pub(super) struct MachineModels {
    pub(super) machines: Vec<Machine>,
    /// Whether cycles are wanted, too, which take several times as long as misses.
    pub(super) have_cycles: bool,
}

impl MachineModels {
    /// Models that begin empty.
    pub(super) fn make(&self) -> Result<Models, String> {
        let timed = if self.have_cycles { &self.machines[..] } else { &[] };
        let times = timed.iter().map(|machine| TimingModel::new(machine).map_err(|error| error.to_string()));
        let caches = self.machines.iter().map(Caches::new).collect();
        Ok(Models { caches, times: times.collect::<Result<_, _>>()? })
    }
}

/// The components of the functions of a trace.
pub(super) struct FunctionComponents<'a> {
    trace: &'a Trace,
    names: Names,
    components: Components,
    /// The components of the functions that were executed so far.
    known: RefCell<HashMap<Arc<FunctionName>, String>>,
}

impl<'a> FunctionComponents<'a> {
    pub(super) fn of(trace: &'a Trace) -> FunctionComponents<'a> {
        let files = trace.images().iter().filter_map(|image| image.path.file_name());
        let names: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
        let components = Components::of_images(names.iter().map(String::as_str));
        FunctionComponents { trace, names: Names::of_trace(trace), components, known: RefCell::default() }
    }

    /// What the models of machines found.
    pub(super) fn measured(&self, models: &Models, machines: &[Machine]) -> Measured {
        let first = &models.caches[0];
        let times = models.times.iter().map(Some).chain(std::iter::repeat(None));
        let all = models.caches.iter().zip(times).zip(machines);
        Measured {
            instructions: first.instructions(),
            references: references(first, &machines[0]),
            machines: all.map(|((caches, time), machine)| self.on(caches, time, machine)).collect(),
        }
    }

    fn on(&self, caches: &Caches, time: Option<&TimingModel>, machine: &Machine) -> MachineMeasured {
        let mut cycles = [0; KINDS.len()];
        if let Some(time) = time {
            time.cycles().iter().for_each(|(cause, number)| cycles[kind(cause)] += number);
        }
        MachineMeasured {
            structures: structures(caches, machine),
            cycles,
            components: self.components(caches, time),
        }
    }

    fn components(&self, caches: &Caches, time: Option<&TimingModel>) -> BTreeMap<String, ComponentMeasured> {
        let mut components: BTreeMap<String, ComponentMeasured> = BTreeMap::new();
        let structures = caches.structure_count();
        for (id, block) in self.trace.blocks().iter().enumerate() {
            let Some(rows) = caches.rows(id as BlockId) else { continue };
            let sites = time.map_or_else(Vec::new, |time| time.sites(id as BlockId));
            let cycles = sites.iter().map(|site| site.issuing + site.front_end_stall + site.back_end_stall);
            for ((address, row), cycles) in
                block.addresses().zip(rows).zip(cycles.chain(std::iter::repeat(0)))
            {
                let component = self.component(block, address);
                let spent = components.entry(component).or_default();
                // Lines that the caches moved follow the misses.
                spent.add(row[0], &row[1..=structures], cycles);
            }
        }
        components
    }

    /// The component of the function at an address of a block. Files of source take long to find: they are looked up once for each
    /// function, and only if rules name files.
    fn component(&self, block: &Block, address: u64) -> String {
        let function = self.names.name(block.image, address);
        let find = || {
            let is_needed = self.components.have_sources();
            let file = is_needed.then(|| self.names.source(block.image, address)).flatten();
            self.components.of(&function, file.as_deref()).to_string()
        };
        self.known.borrow_mut().entry(function.clone()).or_insert_with(find).clone()
    }
}

fn references(caches: &Caches, machine: &Machine) -> u64 {
    let data = machine.caches.iter().position(|cache| cache.level == 1 && cache.holds == Holds::Data);
    data.map_or(0, |index| caches.structures()[index].accesses)
}

fn structures(caches: &Caches, machine: &Machine) -> Vec<StructureMisses> {
    let of_instructions = |index: usize, one: &machine::Structure| {
        let holds = match machine.caches.get(index) {
            Some(cache) => cache.holds,
            None => machine.translation_buffers[index - machine.caches.len()].holds,
        };
        match (holds, &one.counts) {
            (Holds::Instructions, _) => one.misses,
            (Holds::Both, Some(counts)) => counts.misses[Request::Fetch as usize],
            // A TLB of both does not tell them apart.
            _ => 0,
        }
    };
    let all = caches.structures().into_iter().enumerate();
    all.map(|(index, one)| StructureMisses {
        of_instructions: of_instructions(index, &one),
        level: machine.caches.get(index).map_or(0, |cache| cache.level.into()),
        misses: one.misses,
        name: one.name,
    })
    .collect()
}
