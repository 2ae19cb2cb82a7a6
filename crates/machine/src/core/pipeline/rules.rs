//! The tables of a described pipeline, and blocks of instructions decoded by them.

use events::Block;
use isa::{CpuModel, InstructionClass, InstructionSet, PipelineSummary};

use super::description::{ClassRules, OperandRole, Pipeline};
use super::registers::{self, NONE};

/// Columns of [`Rules::latencies`]: two for each class, the second for the operand that is tested or stored.
const COLUMNS: usize = 64;
const CLASSES: usize = 32;
const _: () = assert!(2 * InstructionClass::COUNT <= COLUMNS && InstructionClass::COUNT <= CLASSES);

/// The pipeline's tables.
pub(super) struct Rules {
    /// Logarithm of a group's bytes: those of as many instructions of four bytes as are issued together.
    pub group_shift: u32,
    /// Cycles from the issue of a producer until that of a consumer.
    latencies: [u8; CLASSES * COLUMNS],
    /// Cycles from the issue of an instruction until that of another one which writes the same register.
    orders: [u8; CLASSES * CLASSES],
    /// The longest that any consumer waits, for each producer.
    horizon: [u64; CLASSES],
    pub classes: Vec<ClassTables>,
    units: Vec<ExecutionUnitName>,
    left_to_next: u16,
    split: Vec<String>,
    /// Barriers of traps wait for nothing.
    pub has_precise_traps: bool,
    /// The thread pointer is a register that needs no call of the system.
    has_thread_pointer: bool,
}

struct ExecutionUnitName(String);

/// The rules of a class.
#[derive(Clone, Default)]
pub(super) struct ClassTables {
    /// Masks of units; the second is the first one's if there is no choice.
    units: [u16; 2],
    pub latency: u8,
    pub to_register: u8,
    pub from_registers: bool,
    /// The unit that works on one instruction at a time, and for how long.
    pub occupies: Option<(usize, u8)>,
    /// The units that are blocked, and how many cycles after the issue.
    pub blocks: Option<(u16, Vec<u8>)>,
    letter: u8,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineInstruction {
    /// The units that it can take, the preferred ones first.
    pub units: [u16; 2],
    pub sources: [u8; 2],
    /// Where [`Rules::latency`] finds the latencies of its sources.
    pub columns: [u8; 2],
    /// The register it writes, [`NONE`] if none.
    pub destination: u8,
    pub class: u8,
    pub flags: u8,
    /// Bytes that it accesses.
    pub bytes: u8,
}

/// It needs a group that the bytes before it did not: its last byte is in another one than theirs, or in another one
/// than its own first byte, if its block begins with it; or the instruction before traps.
pub(super) const GROUP: u8 = 1 << 0;
/// Issued only after the earlier ones of its group.
pub(super) const SPLIT: u8 = 1 << 1;
/// Has rules beyond units and latencies.
pub(super) const SPECIAL: u8 = 1 << 2;
/// It reads memory.
pub(super) const LOAD: u8 = 1 << 3;
/// It writes memory.
pub(super) const STORE: u8 = 1 << 4;
/// The processor lacks it.
pub(super) const EMULATED: u8 = 1 << 5;
/// It calls the system.
pub(super) const CALL: u8 = 1 << 6;

impl Rules {
    /// Of a pipeline whose L1 data cache has a latency of `hit` cycles.
    pub fn new(pipeline: &Pipeline, hit: u32) -> Rules {
        let names = pipeline.units();
        let mut rules = Rules {
            group_shift: pipeline.group.ilog2() + 2,
            latencies: [0; CLASSES * COLUMNS],
            orders: [0; CLASSES * CLASSES],
            horizon: [0; CLASSES],
            classes: Vec::new(),
            left_to_next: pipeline.left_to_next.iter().map(|name| mask(&names, name)).sum(),
            units: names.iter().map(|&name| ExecutionUnitName(name.into())).collect(),
            split: pipeline.split.clone(),
            has_precise_traps: pipeline.precise_traps,
            has_thread_pointer: pipeline.has_thread_pointer(InstructionClass::ThreadPointer),
        };
        let latencies = InstructionClass::ALL.map(|class| pipeline.latency(class, hit));
        let described = InstructionClass::ALL.map(|class| pipeline.rules(class).expect("it was checked"));
        let written = |index: usize| described[index].write.unwrap_or(latencies[index]);
        let mut occupied: Vec<&str> = Vec::new();
        for (producer, one) in described.iter().enumerate() {
            rules.latencies[producer * COLUMNS..][..COLUMNS].fill(latencies[producer]);
            for second in 0..described.len() {
                let after = written(producer).saturating_add(1);
                rules.orders[producer * CLASSES + second] = after.saturating_sub(written(second)).max(1);
            }
            let tables = rules.class(one, latencies[producer], &mut occupied);
            rules.classes.push(tables);
        }
        for bypass in &pipeline.bypasses {
            for (&from, &to) in bypass.from.iter().flat_map(|from| bypass.to.iter().map(move |to| (from, to)))
            {
                let of_producer = &mut rules.latencies[from as usize * COLUMNS..][..COLUMNS];
                let columns = &mut of_producer[2 * to as usize..][..2];
                match bypass.operand {
                    None => columns.fill(bypass.latency),
                    Some(OperandRole::Tested | OperandRole::Stored) => columns[1] = bypass.latency,
                }
            }
        }
        for (producer, (horizon, class)) in rules.horizon.iter_mut().zip(&rules.classes).enumerate() {
            let latencies = &rules.latencies[producer * COLUMNS..][..COLUMNS];
            let orders = &rules.orders[producer * CLASSES..][..CLASSES];
            let longest = latencies.iter().chain(orders).copied().max().unwrap_or(0).max(class.latency);
            *horizon = u64::from(longest) + u64::from(class.to_register);
        }
        rules
    }

    fn class<'a>(&self, rules: &'a ClassRules, latency: u8, occupied: &mut Vec<&'a str>) -> ClassTables {
        let names: Vec<&str> = self.units.iter().map(|name| name.0.as_str()).collect();
        let units = |text: &String| text.split(' ').map(|name| mask(&names, name)).sum::<u16>();
        let first = units(&rules.units[0]);
        let occupies = rules.occupies.as_ref().map(|occupies| {
            let index = occupied.iter().position(|unit| *unit == occupies.unit).unwrap_or_else(|| {
                occupied.push(&occupies.unit);
                occupied.len() - 1
            });
            (index, occupies.cycles)
        });
        let blocks = rules.blocks.as_ref().map(|blocks| {
            let after = blocks.before.iter().map(|before| latency - before).collect();
            (mask(&names, &blocks.unit), after)
        });
        ClassTables {
            units: [first, rules.units.get(1).map_or(first, units)],
            latency,
            to_register: rules.to_register,
            from_registers: rules.from_registers,
            occupies,
            blocks,
            letter: rules.units[0].bytes().next().unwrap_or(b'-'),
        }
    }

    /// Cycles until the result of a producer can be used, by its class and the consumer's column.
    #[inline(always)]
    pub fn latency(&self, producer: u8, column: u8) -> u64 {
        self.latencies[producer as usize % CLASSES * COLUMNS + column as usize % COLUMNS].into()
    }

    /// Cycles until the register that one class writes can be written by another.
    #[inline(always)]
    pub fn order(&self, before: u8, after: u8) -> u64 {
        self.orders[before as usize % CLASSES * CLASSES + after as usize % CLASSES].into()
    }

    /// Cycles after which no consumer waits for a producer of this class.
    pub fn horizon(&self, producer: u8) -> u64 {
        self.horizon[producer as usize % CLASSES]
    }

    /// Whether a class calls the system.
    pub fn is_call(&self, class: InstructionClass) -> bool {
        match class {
            InstructionClass::CallPal => true,
            InstructionClass::ThreadPointer => !self.has_thread_pointer,
            _ => false,
        }
    }

    /// Appends the steps of a block.
    pub fn decode(&self, block: &Block, cpu: Option<CpuModel>, steps: &mut Vec<PipelineInstruction>) {
        let (set, start) = (block.instruction_set, steps.len());
        let mut groups = Vec::with_capacity(block.words.len());
        // A block is entered in the group of its first byte.
        let mut before = block.address >> self.group_shift;
        for (&word, at) in block.words.iter().zip(block.addresses()) {
            let mut step = self.step(set, word, cpu);
            // All of an instruction has arrived with the group of its last byte.
            let group = at.wrapping_add(set.length(word) - 1) >> self.group_shift;
            let trapped = steps[start..].last().is_some_and(|before| before.traps());
            if std::mem::replace(&mut before, group) != group || trapped {
                step.flags |= GROUP;
            }
            groups.push(group);
            steps.push(step);
        }
        self.slot(&groups, &mut steps[start..]);
    }

    fn step(&self, set: &dyn InstructionSet, word: u32, cpu: Option<CpuModel>) -> PipelineInstruction {
        let summary = set.pipeline_summary(word);
        let class = summary.map_or(InstructionClass::Nothing, |summary| summary.class);
        let tables = &self.classes[class as usize];
        let mut step = PipelineInstruction {
            units: tables.units,
            sources: [NONE; 2],
            columns: [2 * class as u8; 2],
            destination: NONE,
            class: class as u8,
            flags: 0,
            bytes: 0,
        };
        let Some(PipelineSummary { sources, special, destination, .. }) = summary else { return step };
        let is_special = tables.occupies.is_some() || tables.blocks.is_some() || tables.from_registers;
        let is_barrier = match class {
            InstructionClass::MemoryBarrier => true,
            InstructionClass::TrapBarrier => !self.has_precise_traps,
            _ => self.is_call(class),
        };
        if is_special || is_barrier {
            step.flags |= SPECIAL;
        }
        if self.is_call(class) {
            step.flags |= CALL;
        }
        if class != InstructionClass::Nothing {
            let number = |register| registers::number(register, set.zero_register());
            (step.sources, step.destination) = (sources.map(number), number(destination));
            if let Some(special) = special {
                step.columns[special] += 1;
            }
        }
        if let Some(access) = set.summary(word).and_then(|summary| summary.access) {
            step.flags |= if access.is_store { STORE } else { LOAD };
            step.bytes = access.size;
        }
        if cpu.is_some_and(|cpu| !set.is_implemented(word, cpu)) {
            step.flags |= EMULATED;
        }
        step
    }

    /// Applies the rules that depend on the other instructions of the group. `groups` are the instructions' groups.
    fn slot(&self, groups: &[u64], steps: &mut [PipelineInstruction]) {
        let mut start = 0;
        for group in groups.chunk_by(|one, next| one == next) {
            let end = start + group.len();
            let letters: String = steps[start..end]
                .iter()
                .map(|step| self.classes[step.class as usize].letter as char)
                .collect();
            if self.split.contains(&letters) {
                steps[start + 2].flags |= SPLIT;
            }
            for index in start..end {
                let [first, second] = steps[index].units;
                let next = steps[index + 1..end].iter().find(|step| {
                    let theirs = step.units[0] | step.units[1];
                    theirs & (first | second) != 0
                });
                let wants_first = next.is_some_and(|next| {
                    let [one, other] = next.units;
                    one == other
                        && one & first & self.left_to_next != 0
                        && one & second & self.left_to_next == 0
                });
                if wants_first {
                    steps[index].units = [second, first];
                }
            }
            start = end;
        }
    }
}

impl PipelineInstruction {
    /// Whether the next instruction is fetched anew.
    pub fn traps(self) -> bool {
        self.flags & (EMULATED | CALL) != 0
    }

    /// Whether it is a load or a store.
    pub fn accesses(self) -> bool {
        self.flags & (LOAD | STORE) != 0
    }
}

/// The bits of a unit.
fn mask(names: &[&str], unit: &str) -> u16 {
    names.iter().position(|name| *name == unit).map_or(0, |index| 1 << index)
}
