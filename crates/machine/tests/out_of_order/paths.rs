//! The instructions of a program in program order, with what the front end predicts of them: a plain predictor, and wrong
//! paths along its predictions.

use std::collections::HashMap;

use isa::{IntegerResult, Register, SourceOperand, TransferTarget};
use pathlength_machine::predictor::{Predictor, PredictorScheme};
use pathlength_machine::{ExecutionClass, ExecutionOrder, Machine, OutOfOrder};

/// An instruction that is fetched.
#[derive(Clone, Debug)]
pub struct Dynamic {
    pub address: u64,
    class: isa::InstructionClass,
    pub sources: [Option<Register>; 2],
    pub data: Option<Register>,
    pub destination: Option<Register>,
    /// Address, bytes, and whether it stores.
    access: Option<(u64, u8, bool)>,
    /// Of a wrong path's instruction: the address of its access, if that is known.
    pub wrong_address: Option<Option<u64>>,
    pub redirect: Redirect,
}

/// The action of the front end after an instruction.
#[derive(Clone, Debug)]
pub enum Redirect {
    /// It continues with the next one.
    None,
    /// It loses this number of cycles.
    Lost(u64),
    /// It follows a wrong path, after these lost cycles.
    Wrong(Option<u64>, Vec<Dynamic>),
}

impl Dynamic {
    fn new(machine: &Machine, word: u32, address: u64, access: Option<u64>) -> Dynamic {
        let set = isa::Alpha;
        let summary = isa::InstructionSet::pipeline_summary(&set, word).unwrap();
        let accessed = isa::InstructionSet::summary(&set, word).unwrap().access;
        let mut sources = summary.sources;
        let is_store = accessed.is_some_and(|access| access.is_store);
        let splits = machine.out_of_order.as_ref().unwrap().stores.split && is_store;
        let data = summary.special.filter(|_| splits).and_then(|special| sources[special].take());
        Dynamic {
            address,
            class: summary.class,
            sources,
            data,
            destination: summary.destination,
            access: accessed.map(|one| (access.unwrap_or(0), one.size, one.is_store)),
            wrong_address: None,
            redirect: Redirect::None,
        }
    }

    /// The text of a failed case.
    pub fn text(&self) -> String {
        let path = self.wrong_path().len();
        let redirect = match &self.redirect {
            Redirect::Wrong(lost, _) => format!("mispredicted, lost {lost:?}, path of {path}"),
            other => format!("{other:?}"),
        };
        format!("{:#x} {:?} {:x?} {redirect}", self.address, self.class, self.access)
    }

    pub fn rules<'a>(&self, core: &'a OutOfOrder) -> &'a ExecutionClass {
        let is_call = self.class == isa::InstructionClass::ThreadPointer;
        let own = core.classes.get(self.class.name());
        own.or(core.classes.get("call-pal").filter(|_| is_call)).unwrap_or_else(|| &core.classes["default"])
    }

    pub fn accesses(&self) -> bool {
        self.access.is_some()
    }

    /// Whether its class is one of loads, also if it accesses nothing, as a load of the zero register.
    pub fn is_of_loads(&self) -> bool {
        use isa::InstructionClass::{FloatLoad, Load, LoadLocked};
        [Load, FloatLoad, LoadLocked].contains(&self.class)
    }

    pub fn is_load(&self) -> bool {
        self.access.is_some_and(|access| !access.2)
    }

    pub fn is_store(&self) -> bool {
        self.access.is_some_and(|access| access.2)
    }

    /// The address that it accesses.
    pub fn accessed(&self) -> u64 {
        self.access.unwrap().0
    }

    fn range(&self) -> std::ops::Range<u64> {
        let (address, bytes, _) = self.access.unwrap();
        address..address + u64::from(bytes)
    }

    pub fn overlaps(&self, other: &Dynamic) -> bool {
        self.range().start < other.range().end && other.range().start < self.range().end
    }

    pub fn contains(&self, other: &Dynamic) -> bool {
        self.range().start <= other.range().start && other.range().end <= self.range().end
    }

    /// Whether the next instruction is fetched after it retires.
    pub fn stops(&self, core: &OutOfOrder) -> bool {
        self.wrong_address.is_none() && self.rules(core).order == ExecutionOrder::System
    }

    pub fn wrong_path(&self) -> &[Dynamic] {
        match &self.redirect {
            Redirect::Wrong(_, path) => path,
            _ => &[],
        }
    }
}

/// A predictor: counters, a buffer of targets, a stack.
#[derive(Clone)]
struct Plain {
    description: Predictor,
    counters: HashMap<u64, i8>,
    history: u64,
    sets: HashMap<u64, Vec<(u64, u64)>>,
    /// Bits of the path to the next jump, the last one first, and targets by entry.
    path: Vec<bool>,
    targets: HashMap<u64, (u64, u64)>,
    stack: Vec<u64>,
    depth: usize,
}

impl Plain {
    fn new(description: &Predictor) -> Plain {
        Plain {
            description: description.clone(),
            counters: HashMap::new(),
            history: 0,
            sets: HashMap::new(),
            path: Vec::new(),
            targets: HashMap::new(),
            stack: vec![0; description.return_stack as usize],
            depth: 0,
        }
    }

    fn index(&self, address: u64) -> u64 {
        let history = match self.description.scheme {
            PredictorScheme::Gshare => self.history % (1 << self.description.history),
            _ => 0,
        };
        ((address / 4) ^ history) % u64::from(self.description.entries.max(1))
    }

    fn target(&self, address: u64) -> Option<u64> {
        let buffer = self.description.btb.as_ref()?;
        let set = self.sets.get(&(address / 4 % u64::from(buffer.entries / buffer.ways)))?;
        set.iter().find(|one| one.0 == address).map(|one| one.1)
    }

    /// The entry of a jump in the target cache: each bit of the path turns one of its bits.
    fn jump_entry(&self, address: u64) -> Option<u64> {
        let cache = self.description.indirect?;
        let mut entry = address / 4;
        let bits = self.path.iter().take(cache.history.into());
        for (number, _) in bits.enumerate().filter(|(_, is_set)| **is_set) {
            entry ^= 1 << (number % cache.entries.ilog2() as usize);
        }
        Some(entry % u64::from(cache.entries))
    }

    fn go_to(&mut self, target: u64) {
        let bits = ((target / 4) ^ (target / 32)) % 8;
        (0..3).rev().for_each(|bit| self.path.insert(0, bits >> bit & 1 == 1));
        self.path.truncate(64);
    }

    fn top(&self) -> u64 {
        let length = self.stack.len();
        self.stack[if self.depth == 0 { length - 1 } else { (self.depth - 1) % length }]
    }

    /// The predicted address, and whether it is known early.
    fn predict(&self, word: u32, at: u64) -> (Option<u64>, bool) {
        let summary = isa::InstructionSet::summary(&isa::Alpha, word).unwrap();
        let Some(transfer) = summary.transfer else { return (Some(at + 4), true) };
        let found = self.target(at);
        let known = self.jump_entry(at).and_then(|entry| self.targets.get(&entry));
        let known = known.filter(|known| known.0 == at).map(|known| known.1);
        let is_early = self.description.btb.is_none() || found.is_some();
        match transfer.target {
            TransferTarget::Relative(distance) => {
                let target = at.wrapping_add_signed(distance);
                let counter = self.counters.get(&self.index(at)).copied().unwrap_or(-1);
                let is_static = self.description.scheme == PredictorScheme::Static
                    || !is_early && self.description.btb.as_ref().is_some_and(|buffer| buffer.static_on_miss);
                let is_taken =
                    !transfer.is_conditional || if is_static { target <= at } else { counter >= 0 };
                if is_taken { (Some(target), is_early) } else { (Some(at + 4), true) }
            }
            _ if transfer.return_stack.pops && !self.stack.is_empty() => (Some(self.top()), is_early),
            _ if transfer.return_stack.pops => (found, true),
            _ if jumps_by_path(&transfer) && known.is_some() => (known, true),
            _ if self.description.btb.is_some() => (found, true),
            _ => {
                let hinted = at.wrapping_add_signed(transfer.hint.unwrap_or(0));
                if hinted == at { (None, true) } else { (Some(hinted), true) }
            }
        }
    }

    /// Follows a path, predicted or executed.
    fn follow(&mut self, word: u32, at: u64, to: u64) {
        let summary = isa::InstructionSet::summary(&isa::Alpha, word).unwrap();
        let Some(transfer) = summary.transfer else { return };
        if transfer.is_conditional {
            self.history = self.history << 1 | u64::from(to != at + 4);
            self.path.insert(0, to != at + 4);
        }
        if jumps_by_path(&transfer) {
            self.go_to(to);
        }
        if self.stack.is_empty() {
            return;
        }
        let length = self.stack.len();
        if transfer.return_stack.pops {
            self.depth = if self.depth == 0 { length - 1 } else { self.depth - 1 };
        }
        if transfer.return_stack.pushes {
            self.stack[self.depth % length] = at + 4;
            self.depth += 1;
        }
    }

    fn execute(&mut self, word: u32, at: u64, to: u64) {
        let summary = isa::InstructionSet::summary(&isa::Alpha, word).unwrap();
        let Some(transfer) = summary.transfer else { return };
        let is_taken = to != at + 4;
        if transfer.is_conditional {
            let index = self.index(at);
            let half = 1 << (self.description.bits - 1);
            let counter = self.counters.entry(index).or_insert(-1);
            *counter = (*counter + if is_taken { 1 } else { -1 }).clamp(-half, half - 1);
        }
        if let (Some(buffer), true) = (&self.description.btb, is_taken) {
            let set = self.sets.entry(at / 4 % u64::from(buffer.entries / buffer.ways)).or_default();
            set.retain(|one| one.0 != at);
            set.insert(0, (at, to));
            set.truncate(buffer.ways as usize);
        }
        if let (Some(entry), true) = (self.jump_entry(at), jumps_by_path(&transfer)) {
            self.targets.insert(entry, (at, to));
        }
        self.follow(word, at, to);
    }
}

/// Whether it is a jump that is no return.
fn jumps_by_path(transfer: &isa::ControlTransfer) -> bool {
    matches!(transfer.target, TransferTarget::Register { .. }) && !transfer.return_stack.pops
}

/// The knowledge of registers: values, and whether they are sums of constants of the block.
#[derive(Clone)]
struct Registers([Option<(u64, bool)>; 32]);

impl Registers {
    fn new() -> Registers {
        let mut registers = Registers([None; 32]);
        registers.0[31] = Some((0, true));
        registers
    }

    fn execute(&mut self, word: u32, at: u64, accessed: Option<u64>) {
        let summary = isa::InstructionSet::summary(&isa::Alpha, word).unwrap();
        if let (Some(access), Some(address)) = (summary.access, accessed)
            && access.mask == !0
            && access.base != 31
        {
            self.0[access.base as usize] = Some((address.wrapping_sub(access.displacement as u64), false));
        }
        let operand = |operand| match operand {
            SourceOperand::Constant(number) => Some((number, true)),
            SourceOperand::Register(register) => self.0[register as usize],
        };
        let result = summary.result.map(|(register, result)| {
            let value = match result {
                IntegerResult::Relative(distance) => Some((at.wrapping_add_signed(distance), true)),
                IntegerResult::Sum(one, other) => {
                    operand(one).zip(operand(other)).and_then(|(one, other)| {
                        (one.1 || other.1).then(|| (one.0.wrapping_add(other.0), one.1 && other.1))
                    })
                }
                IntegerResult::Difference(one, other) => operand(one)
                    .zip(operand(other))
                    .and_then(|(one, other)| other.1.then(|| (one.0.wrapping_sub(other.0), one.1))),
                IntegerResult::Or(one, other) => match operand(one).zip(operand(other)) {
                    Some((one, (0, true))) => Some(one),
                    Some(((0, true), other)) => Some(other),
                    Some(((one, true), (other, true))) => Some((one | other, true)),
                    _ => None,
                },
            };
            (register, value)
        });
        (0..32)
            .filter(|register| summary.unknown >> register & 1 != 0)
            .for_each(|register| self.0[register] = None);
        if let Some((register, value)) = result {
            self.0[register as usize] = value;
        }
        self.0[31] = Some((0, true));
    }

    fn mark(&mut self, is_constant: bool) {
        self.0[..31].iter_mut().flatten().for_each(|value| value.1 = is_constant);
    }
}

/// Blocks of a program: their addresses and words.
pub type Blocks = [(u64, Vec<u32>)];

/// The longest wrong path that is followed.
const LONGEST: usize = 400;

/// The instructions of these executions of blocks, each with the addresses of its accesses.
pub fn dynamic(machine: &Machine, blocks: &Blocks, path: &[(usize, Vec<u64>)]) -> Vec<Dynamic> {
    let fetch = &machine.out_of_order.as_ref().unwrap().fetch;
    let lost = |is_early: bool| u64::from(if is_early { fetch.taken } else { fetch.misfetch });
    let mut predictor = Plain::new(machine.predictor.as_ref().unwrap());
    let (mut registers, mut code) = (Registers::new(), HashMap::new());
    let mut program: Vec<Dynamic> = Vec::new();
    let mut before: Option<(u32, u64)> = None;
    for (block, addresses) in path {
        let (start, words) = &blocks[*block];
        code.extend(words.iter().zip((*start..).step_by(4)).map(|(&word, at)| (at, word)));
        if let Some((word, at)) = before {
            let (predicted, is_early) = predictor.predict(word, at);
            predictor.execute(word, at, *start);
            let last = program.last_mut().unwrap();
            last.redirect = match predicted {
                Some(to) if to == *start && to == at + 4 => Redirect::None,
                Some(to) if to == *start => Redirect::Lost(lost(is_early)),
                None => Redirect::Wrong(None, Vec::new()),
                Some(wrong) => {
                    let mut speculative = predictor.clone();
                    let transfer = isa::InstructionSet::summary(&isa::Alpha, word).unwrap().transfer.unwrap();
                    speculative.history ^= u64::from(transfer.is_conditional);
                    if transfer.is_conditional {
                        speculative.path[0] = !speculative.path[0];
                    }
                    if jumps_by_path(&transfer) {
                        speculative.path.drain(..3);
                        speculative.go_to(wrong);
                    }
                    let mut known = registers.clone();
                    known.mark(true);
                    let first = (wrong != at + 4).then(|| lost(is_early));
                    Redirect::Wrong(first, wrong_path(machine, &code, speculative, known, wrong, &lost))
                }
            };
        }
        registers.mark(false);
        let mut accesses = addresses.iter().copied();
        for (&word, at) in words.iter().zip((*start..).step_by(4)) {
            let has_access = isa::decode(word).unwrap().access_size().is_some();
            let access = if has_access { accesses.next() } else { None };
            program.push(Dynamic::new(machine, word, at, access));
            registers.execute(word, at, access);
            before = Some((word, at));
        }
    }
    program
}

fn wrong_path(
    machine: &Machine,
    code: &HashMap<u64, u32>,
    mut predictor: Plain,
    mut registers: Registers,
    mut at: u64,
    lost: &dyn Fn(bool) -> u64,
) -> Vec<Dynamic> {
    let mut path = Vec::new();
    while let Some(&word) = code.get(&at)
        && path.len() < LONGEST
    {
        let summary = isa::InstructionSet::summary(&isa::Alpha, word).unwrap();
        let address = summary.access.and_then(|access| {
            let (base, _) = registers.0[access.base as usize]?;
            Some(base.wrapping_add_signed(access.displacement) & access.mask)
        });
        let mut one = Dynamic::new(machine, word, at, address);
        one.wrong_address = Some(address);
        registers.execute(word, at, None);
        registers.mark(true);
        let (predicted, is_early) = predictor.predict(word, at);
        if let Some(to) = predicted
            && to != at + 4
        {
            one.redirect = Redirect::Lost(lost(is_early));
        }
        path.push(one);
        let Some(to) = predicted else { break };
        predictor.follow(word, at, to);
        at = to;
    }
    path
}
