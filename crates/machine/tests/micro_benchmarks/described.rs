//! The fields of a machine's description, in the terms of the formulas.

use isa::InstructionClass::{self, TrapBarrier};
use pathlength_machine::pipeline::{ClassRules, OperandRole, Pipeline};
use pathlength_machine::{ExecutionClass, Holds, Machine, OutOfOrder};

/// A machine with its name.
pub struct Described {
    pub name: &'static str,
    pub machine: Machine,
}

/// Its core.
pub enum Core<'a> {
    InOrder(&'a Pipeline),
    OutOfOrder(&'a OutOfOrder),
}

impl Described {
    /// Every machine that comes with the crate.
    pub fn all() -> Vec<Described> {
        Machine::all().map(|(name, machine)| Described { name, machine }).collect()
    }

    /// The core, if instructions of the machine take time.
    pub fn core(&self) -> Option<Core<'_>> {
        let out_of_order = self.machine.out_of_order.as_ref().map(Core::OutOfOrder);
        out_of_order.or_else(|| self.machine.pipeline.as_ref().map(Core::InOrder))
    }

    /// Latencies of instructions or of data, from L1 to memory, in cycles.
    pub fn latencies(&self, instructions: bool) -> Vec<f64> {
        let of_side = |holds: Holds| holds == Holds::Both || (holds == Holds::Instructions) == instructions;
        let caches =
            self.machine.caches.iter().filter(|cache| of_side(cache.holds)).map(|cache| cache.latency);
        let memory = self.machine.memory.latency_ns * self.machine.processor.clock_mhz / 1000.0;
        caches.chain([memory]).map(f64::round).collect()
    }

    pub fn hit(&self) -> f64 {
        self.latencies(false)[0]
    }

    pub fn fetch_hit(&self) -> f64 {
        self.latencies(true)[0]
    }

    /// Cycles of an access that misses in all TLBs, and whether software fills one of them.
    pub fn translation(&self, instructions: bool) -> (f64, bool) {
        let of_side = |holds: Holds| holds == Holds::Both || (holds == Holds::Instructions) == instructions;
        let buffers = self.machine.translation_buffers.iter().filter(|buffer| of_side(buffer.holds));
        let cycles = buffers.clone().map(|buffer| buffer.miss_cycles).sum();
        (cycles, buffers.into_iter().any(|buffer| buffer.software_refill))
    }

    /// Whether the machine emulates instructions of a later processor than this.
    pub fn has_bytes(&self) -> bool {
        !["ev4", "ev5"].contains(&self.machine.processor.cpu.as_deref().unwrap_or("ev6"))
    }
}

fn is_load(class: InstructionClass) -> bool {
    matches!(class, InstructionClass::Load | InstructionClass::FloatLoad | InstructionClass::LoadLocked)
}

/// The rules of a class of an in-order pipeline.
pub fn rules(pipeline: &Pipeline, class: InstructionClass) -> &ClassRules {
    &pipeline.classes[class.name()]
}

/// The rules of a class of an out-of-order core.
pub fn execution(core: &OutOfOrder, class: InstructionClass) -> &ExecutionClass {
    &core.classes[class.name()]
}

impl Core<'_> {
    /// Whether the core has the class; the thread pointer may need a call of the system.
    pub fn has(&self, class: InstructionClass) -> bool {
        match self {
            Core::InOrder(pipeline) => pipeline.classes.contains_key(class.name()),
            Core::OutOfOrder(core) => core.classes.contains_key(class.name()),
        }
    }

    /// Cycles from an instruction to another one of the same class that needs its result; of loads, if they hit.
    pub fn latency(&self, class: InstructionClass, hit: f64) -> f64 {
        match self {
            Core::InOrder(pipeline) => {
                let own = rules(pipeline, class);
                let mut bypassed = pipeline.bypasses.iter().filter(|bypass| {
                    let applies = bypass.from.contains(&class) && bypass.to.contains(&class);
                    applies && !matches!(bypass.operand, Some(OperandRole::Tested | OperandRole::Stored))
                });
                let latency = match is_load(class) {
                    true => hit + f64::from(own.beyond_cache),
                    false => own.latency.unwrap_or(1).into(),
                };
                let latency = bypassed.next_back().map_or(latency, |bypass| bypass.latency.into());
                latency + if own.from_registers { f64::from(own.to_register) } else { 0.0 }
            }
            Core::OutOfOrder(core) => match is_load(class) {
                true => hit + f64::from(execution(core, class).beyond_cache),
                false => execution(core, class).latency.unwrap_or(1).into(),
            },
        }
    }

    /// Cycles for which an instruction of a class takes a unit that is not pipelined.
    pub fn occupied(&self, class: InstructionClass) -> f64 {
        let cycles = match self {
            Core::InOrder(pipeline) => rules(pipeline, class).occupies.as_ref().map(|one| one.cycles.into()),
            Core::OutOfOrder(core) => execution(core, class).occupies.as_ref().map(|one| one.cycles),
        };
        cycles.map_or(0.0, f64::from)
    }

    /// Cycles that an independent instruction of a class takes among its like.
    pub fn cycles_each(&self, class: InstructionClass) -> f64 {
        let each = match self {
            Core::InOrder(pipeline) => {
                let group = pipeline.group as usize;
                group.div_ceil(issued_together(pipeline, class)) as f64 / group as f64
            }
            Core::OutOfOrder(core) => {
                let ports = execution(core, class).ports.len();
                let port = if ports == 0 { 0.0 } else { 1.0 / ports as f64 };
                port.max(1.0 / width(core))
            }
        };
        each.max(self.occupied(class))
    }
}

/// Instructions that an out-of-order core passes on in a cycle.
pub fn width(core: &OutOfOrder) -> f64 {
    core.fetch.width.min(core.dispatch).min(core.retire).into()
}

/// How many instructions of a class an in-order pipeline issues together: alternatives that share no unit, and as many as a group
/// has if they need none.
pub fn issued_together(pipeline: &Pipeline, class: InstructionClass) -> usize {
    let units = &rules(pipeline, class).units;
    if units.iter().any(|units| units.is_empty()) {
        return pipeline.group as usize;
    }
    let share = |one: &str, other: &str| one.split(' ').any(|unit| other.split(' ').any(|own| own == unit));
    if units.len() == 2 && !share(&units[0], &units[1]) { 2 } else { 1 }
}

/// Whether instructions of two classes are never issued together by an in-order pipeline: their only alternatives share a unit.
pub fn share_units(pipeline: &Pipeline, one: InstructionClass, other: InstructionClass) -> bool {
    let (one, other) = (&rules(pipeline, one).units, &rules(pipeline, other).units);
    one.iter().all(|one| {
        other.iter().all(|other| {
            !one.is_empty() && one.split(' ').any(|unit| other.split(' ').any(|own| own == unit))
        })
    })
}

/// Whether barriers of traps wait for results.
pub fn traps_are_imprecise(core: &Core) -> bool {
    match core {
        Core::InOrder(pipeline) => !pipeline.precise_traps,
        Core::OutOfOrder(core) => {
            execution(core, TrapBarrier).order != pathlength_machine::ExecutionOrder::Free
        }
    }
}
