//! Instructions as an out-of-order core sees them.

use isa::{CpuModel, InstructionClass, InstructionSet};

use super::description::{ExecutionOrder, OutOfOrder};
use crate::core::pipeline::registers::{NONE, number};

/// The registers of both kinds, as [`number`] numbers them.
pub(super) const REGISTERS: usize = 64;
/// Floating-point registers have numbers from this one on.
const FIRST_FLOAT: u8 = 32;
/// No reservation station, or no unit.
pub(super) const NOTHING: u8 = u8::MAX;

/// The rules of a class.
#[derive(Clone, Copy, Debug)]
struct CoreClassRules {
    ports: u32,
    latency: u32,
    occupied: u32,
    unit: u8,
    station: u8,
    order: ExecutionOrder,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreInstruction {
    /// The ports to one of which it is issued: a bit each.
    pub ports: u32,
    pub latency: u32,
    /// Cycles for which its unit works, which is not pipelined.
    pub occupied: u32,
    /// The registers that it needs to be issued.
    pub sources: [u8; 2],
    /// The register with a store's data, if it does not need it to be issued.
    pub data: u8,
    pub destination: u8,
    pub station: u8,
    /// Its unit, if that is not pipelined.
    pub unit: u8,
    pub access: AccessKind,
    /// Bytes that it accesses.
    pub bytes: u8,
    /// Bytes of the instruction itself.
    pub length: u8,
    pub order: ExecutionOrder,
    /// The processor lacks it.
    pub is_emulated: bool,
}

/// Whether an instruction accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    None,
    Load,
    Store,
}

/// The rules of all classes.
pub(super) struct CoreRules {
    classes: Vec<CoreClassRules>,
    splits_stores: bool,
    cpu: Option<CpuModel>,
}

impl CoreRules {
    /// The rules of a core, which has the instructions of `cpu`, and an L1 data cache with a latency of `hit` cycles.
    pub fn new(core: &OutOfOrder, cpu: Option<CpuModel>, hit: u32) -> CoreRules {
        let (ports, units) = (core.ports(), core.units());
        let class = |class: InstructionClass| {
            let rules = core.rules(class).expect("a check found rules for each class");
            let index = |list: &[&str], name: &str| list.iter().position(|one| *one == name).unwrap_or(0);
            let station =
                rules.station.as_ref().and_then(|name| core.stations.keys().position(|one| one == name));
            let occupied = rules.occupies.as_ref();
            CoreClassRules {
                ports: rules
                    .ports
                    .iter()
                    .map(|port| 1 << index(&ports, port))
                    .fold(0, |all, port| all | port),
                latency: match class.is_load() {
                    true => hit + rules.beyond_cache,
                    false => rules.latency.unwrap_or(1),
                },
                occupied: occupied.map_or(0, |one| one.cycles),
                unit: occupied.map_or(NOTHING, |one| index(&units, &one.unit) as u8),
                station: station.map_or(NOTHING, |index| index as u8),
                order: rules.order,
            }
        };
        let classes = InstructionClass::ALL.map(class).into();
        CoreRules { classes, splits_stores: core.stores.split, cpu }
    }

    /// The instruction with this word.
    pub fn instruction(&self, set: &dyn InstructionSet, word: u32) -> CoreInstruction {
        let summary = set.pipeline_summary(word);
        let class = summary.map_or(InstructionClass::Nothing, |summary| summary.class);
        let CoreClassRules { ports, latency, occupied, unit, station, order } = self.classes[class as usize];
        let access = set.summary(word).and_then(|summary| summary.access);
        let mut instruction = CoreInstruction {
            ports,
            latency,
            occupied,
            sources: [NONE; 2],
            data: NONE,
            destination: NONE,
            station,
            unit,
            access: access.map_or(AccessKind::None, |access| {
                if access.is_store { AccessKind::Store } else { AccessKind::Load }
            }),
            bytes: access.map_or(0, |access| access.size),
            length: set.length(word) as u8,
            order,
            is_emulated: self.cpu.is_some_and(|cpu| !set.is_implemented(word, cpu)),
        };
        if instruction.is_emulated {
            instruction.order = ExecutionOrder::System;
        }
        let Some(summary) = summary.filter(|_| class != InstructionClass::Nothing) else {
            return instruction;
        };
        let number = |register| number(register, set.zero_register());
        (instruction.sources, instruction.destination) =
            (summary.sources.map(number), number(summary.destination));
        if let (true, AccessKind::Store, Some(stored)) =
            (self.splits_stores, instruction.access, summary.special)
        {
            instruction.data = std::mem::replace(&mut instruction.sources[stored], NONE);
        }
        instruction
    }
}

impl CoreInstruction {
    /// Whether it writes an integer register, and a floating-point register.
    #[inline(always)]
    pub fn writes(&self) -> [bool; 2] {
        let is_float = self.destination >= FIRST_FLOAT;
        [self.destination != NONE && !is_float, is_float]
    }
}
