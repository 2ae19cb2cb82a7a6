//! Symbolic execution of one of the images, from one thing that others can see to the next.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use isa::{Flags, Instruction, InstructionFormat, Op, Operands};

use super::context::ProofContext;
use super::convention::{F31, R31, RA, SAVED, SP, bit, has, registers};
use super::term::{ImageSide, Node, OffsetTerm};
use super::unwind_tables::UnwindTables;

/// The instructions of an image.
#[derive(Debug)]
pub struct ImageCode {
    /// Which image.
    pub side: ImageSide,
    /// The first address of each section, and its instructions.
    pub sections: Vec<(u64, Vec<Option<Instruction>>)>,
    /// Where procedures are entered, and the address of the same entry in the original.
    pub entries: HashMap<u64, u64>,
    /// Where a procedure begins that control does not fall into.
    pub starts: HashSet<u64>,
    /// The tables for unwinders.
    pub unwinding: UnwindTables,
}

impl ImageCode {
    /// The instruction at an address.
    pub fn at(&self, address: u64) -> Option<Instruction> {
        let (start, words) = self.section(address)?;
        words.get((address.wrapping_sub(*start) / 4) as usize).copied().flatten()
    }

    /// The address behind instructions that do nothing, such as those that fill the space up to the next procedure.
    pub fn behind_nops(&self, mut address: u64) -> u64 {
        while self.at(address).is_some_and(|one| isa::nop_kind(one.word).is_some()) {
            address += 4;
        }
        address
    }

    /// Whether there is code at an address.
    pub fn contains(&self, address: u64) -> bool {
        self.section(address).is_some() && address.is_multiple_of(4)
    }

    fn section(&self, address: u64) -> Option<&(u64, Vec<Option<Instruction>>)> {
        self.sections.iter().find(|(start, words)| address.wrapping_sub(*start) / 4 < words.len() as u64)
    }
}

/// An action of a machine that others can observe, or a division of control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A store, a barrier, an operation that may trap, or anything else whose order counts.
    Event(MachineEvent),
    /// A conditional branch.
    Conditional {
        /// The operation.
        op: Op,
        /// The value that it tests.
        operand: OffsetTerm,
        /// Where to if the condition holds.
        taken: u64,
        /// Where to otherwise.
        next: u64,
    },
    /// A call.
    Call {
        /// The register with the return address.
        link: u8,
        /// The called procedure.
        target: OffsetTerm,
        /// The return address.
        back: u64,
    },
    /// A branch to the entry of a procedure, or to where control has been since the last action.
    Branch(u64),
    /// A jump to an address that is not known, by the instruction at another one.
    Jump(OffsetTerm, u64),
    /// Control would fall into another procedure, where it cannot come: the last call does not return.
    End,
    /// No instruction, or one that cannot be understood.
    Invalid(&'static str),
}

/// See [`Action::MachineEvent`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineEvent {
    /// The operation.
    pub op: Op,
    /// Its qualifiers or its function.
    pub function: u32,
    /// Address and value, or operands.
    pub operands: [OffsetTerm; 2],
    /// The register that gets a result.
    pub result: Option<u8>,
}

impl MachineEvent {
    /// Whether loads after it may find something else than before it.
    pub fn changes_memory(&self) -> bool {
        !matches!(self.op.format(), InstructionFormat::Operate | InstructionFormat::FloatOperate)
    }
}

/// The state of one image.
#[derive(Clone, Debug)]
pub struct SymbolicMachine {
    /// The address of the next instruction.
    pub pc: u64,
    /// The registers.
    pub registers: [OffsetTerm; 64],
    /// Saved registers in the frame, by the distance from the stack pointer at the entry.
    pub slots: Vec<(i64, OffsetTerm)>,
    /// Expressions that are known to be smaller than a number, as numbers without a sign.
    pub bounds: Vec<(OffsetTerm, u64)>,
    /// Calls that are carried out here, as the other image has them inlined.
    pub inlined: Vec<Inlined>,
    /// Instructions that were executed, other than branches and those that do nothing.
    pub executed: u64,
}

/// A call that is carried out.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// The return address.
    pub back: u64,
    /// The stack pointer at the call.
    pub stack: OffsetTerm,
    /// The initial values of registers that the procedure must preserve, and the return address.
    pub saved: [OffsetTerm; SAVED.count_ones() as usize],
}

/// The most instructions between two actions.
const LONGEST: usize = 100_000;

impl SymbolicMachine {
    /// The value of a register.
    pub fn get(&self, register: u8) -> OffsetTerm {
        self.registers[register as usize]
    }

    /// Changes a register.
    pub fn set(&mut self, register: u8, value: OffsetTerm, context: &ProofContext) {
        if register == R31 || register == F31 {
            return;
        }
        self.registers[register as usize] = value;
        if register == SP
            && let Some(lowest) = context.in_frame(value)
        {
            self.slots.retain(|slot| slot.0 >= lowest);
        }
    }

    /// Carries out a call.
    pub fn enter(&mut self, target: u64, back: u64) {
        self.registers[RA as usize] = OffsetTerm::address(back);
        let mut saved = registers(SAVED);
        let saved =
            std::array::from_fn(|_| saved.next().map_or(OffsetTerm::constant(0), |one| self.get(one)));
        self.inlined.push(Inlined { back, stack: self.get(SP), saved });
        self.pc = target;
    }

    /// Whether an instruction saves a register in the frame: it has the value that it had at the entry.
    fn is_save(&self, register: u8, value: OffsetTerm, slot: i64, context: &ProofContext) -> bool {
        if let Some(call) = self.inlined.last()
            && context.in_frame(call.stack).is_some_and(|stack| slot < stack)
        {
            let number = (SAVED & (bit(register) - 1)).count_ones() as usize;
            return has(SAVED, register) && call.saved[number] == value;
        }
        matches!(context.terms.node(value.symbol), Node::Entry(saved, _) if has(SAVED, saved) && value.offset == 0)
    }

    /// Goes on to the next action.
    pub fn advance(&mut self, code: &ImageCode, context: &mut ProofContext) -> Action {
        self.advance_until(code, context, |_| false).unwrap_or(Action::Invalid("no action"))
    }

    /// The same, but stops at certain addresses, other than the first one.
    pub fn advance_until(
        &mut self,
        code: &ImageCode,
        context: &mut ProofContext,
        stops: impl Fn(u64) -> bool,
    ) -> Option<Action> {
        let mut seen = Vec::new();
        for step in 0..LONGEST {
            if step > 0 && stops(self.pc) {
                return None;
            }
            let Some(one) = code.at(self.pc) else { return Some(Action::Invalid("no instruction")) };
            if code.side == ImageSide::Optimized {
                context.covered.insert(self.pc);
            }
            match self.execute(one, code, context) {
                MachineStep::Next => {
                    self.pc += 4;
                    if code.side == ImageSide::Original && code.starts.contains(&self.pc) {
                        return Some(Action::End);
                    }
                }
                MachineStep::Go(target) if code.entries.contains_key(&target) || seen.contains(&target) => {
                    self.pc = target;
                    return Some(Action::Branch(target));
                }
                MachineStep::Go(target) => {
                    seen.push(target);
                    self.pc = target;
                }
                MachineStep::Stop(action) => {
                    self.pc += 4;
                    return Some(action);
                }
            }
        }
        Some(Action::Invalid("too many instructions without a branch"))
    }

    fn execute(&mut self, one: Instruction, code: &ImageCode, context: &mut ProofContext) -> MachineStep {
        let is_nop = isa::nop_kind(one.word).is_some();
        if is_nop || one.is_prefetch() {
            return MachineStep::Next;
        }
        if one.op.is(Flags::BRANCH) {
            return self.transfer(one, code);
        }
        self.executed += 1;
        match one.op.row().operands {
            Operands::RaMemory => self.memory(one, one.ra(), code, context),
            Operands::FaMemory => self.memory(one, one.ra() + 32, code, context),
            Operands::RaRbRc | Operands::RegistersRaRbRc | Operands::RbRc | Operands::RegisterRbRc => {
                let second =
                    one.literal().map_or(self.get(one.rb()), |value| OffsetTerm::constant(value.into()));
                self.operate(one, self.get(one.ra()), second, one.rc(), code, context)
            }
            Operands::Rc => {
                self.operate(one, OffsetTerm::constant(0), OffsetTerm::constant(1), one.rc(), code, context)
            }
            Operands::FaFbFc | Operands::FbFc => {
                let [a, b] = [one.ra(), one.rb()].map(|register| self.get(register + 32));
                self.operate(one, a, b, one.rc() + 32, code, context)
            }
            Operands::FaRc => {
                self.operate(one, self.get(one.ra() + 32), OffsetTerm::constant(0), one.rc(), code, context)
            }
            Operands::RaFc => {
                self.operate(one, self.get(one.ra()), OffsetTerm::constant(0), one.rc() + 32, code, context)
            }
            Operands::Fpcr => {
                let register = one.ra() + 32;
                match one.op {
                    Op::MtFpcr => event(one, [self.get(register), OffsetTerm::constant(0)], None),
                    _ => event(one, [OffsetTerm::constant(0); 2], Some(register)),
                }
            }
            Operands::Nothing => event(one, [OffsetTerm::constant(0); 2], None),
            Operands::Ra | Operands::RaRb => event(one, [OffsetTerm::constant(0); 2], Some(one.ra())),
            Operands::Address => event(one, [self.get(one.rb()), OffsetTerm::constant(0)], None),
            Operands::PalFunction => event(one, [OffsetTerm::constant(0); 2], None),
            Operands::Jump | Operands::RaBranch | Operands::FaBranch => MachineStep::Next,
        }
    }

    fn transfer(&mut self, one: Instruction, code: &ImageCode) -> MachineStep {
        let back = self.pc + 4;
        if one.op.is(Flags::CONDITIONAL) {
            let register = if one.op.is_float() { one.ra() + 32 } else { one.ra() };
            let operand = self.get(register);
            let taken = one.target(self.pc).unwrap_or_default();
            return match operand.as_constant().and_then(|value| holds(one.op, value)) {
                Some(true) => MachineStep::Go(taken),
                Some(false) => MachineStep::Next,
                None => MachineStep::Stop(Action::Conditional { op: one.op, operand, taken, next: back }),
            };
        }
        let link = one.ra();
        let target = one.target(self.pc).map_or_else(|| self.get(one.rb()), OffsetTerm::address);
        match one.op {
            Op::Bsr | Op::Jsr if link != R31 => MachineStep::Stop(Action::Call { link, target, back }),
            Op::JsrCoroutine => MachineStep::Stop(Action::Invalid("a jump to a coroutine")),
            _ => {
                if link != R31 {
                    self.registers[link as usize] = OffsetTerm::address(back);
                }
                match target.as_address() {
                    Some(address) if code.contains(address) => {
                        let is_return = one.op == Op::Ret;
                        self.inlined.pop_if(|call| is_return && call.back == address);
                        MachineStep::Go(address)
                    }
                    _ => MachineStep::Stop(Action::Jump(target, self.pc)),
                }
            }
        }
    }

    fn operate(
        &mut self,
        one: Instruction,
        a: OffsetTerm,
        b: OffsetTerm,
        to: u8,
        code: &ImageCode,
        context: &mut ProofContext,
    ) -> MachineStep {
        let is_trapping = one.op.is(Flags::OVERFLOW)
            || matches!(one.op.row().opcode, 0x15 | 0x16)
            || matches!(one.op, Op::Sqrts | Op::Sqrtt | Op::Sqrtf | Op::Sqrtg);
        if is_trapping {
            let function = one.function();
            return MachineStep::Stop(Action::Event(MachineEvent {
                op: one.op,
                function,
                operands: [a, b],
                result: Some(to),
            }));
        }
        let value = match (one.op, a.as_constant(), b.as_constant()) {
            (Op::Addq, _, Some(b)) => a.plus(b),
            (Op::Addq, Some(a), _) => b.plus(a),
            (Op::Subq, _, Some(b)) => a.plus(b.wrapping_neg()),
            (Op::Bis, _, Some(0)) => a,
            (Op::Bis, Some(0), _) => b,
            (Op::Bis, ..) if a == b => a,
            _ => {
                let is_move = one.op.mnemonic().contains("cmov");
                let old = if is_move { self.get(to) } else { OffsetTerm::constant(0) };
                let operands = [a, b, old].map(|operand| context.terms.named(operand, code));
                context.is_frame_used |=
                    self.inlined.is_empty() && operands.iter().any(|operand| operand.symbol == context.stack);
                let function = if one.op.is_float() { one.function() as u16 } else { 0 };
                context.terms.operation(one.op, function, operands)
            }
        };
        self.set(to, value, context);
        MachineStep::Next
    }

    fn memory(
        &mut self,
        one: Instruction,
        register: u8,
        code: &ImageCode,
        context: &mut ProofContext,
    ) -> MachineStep {
        let base = self.get(one.rb());
        let displacement = i64::from(one.displacement()) as u64;
        let address = base.plus(displacement);
        match one.op {
            Op::Lda => self.set(register, address, context),
            Op::Ldah => self.set(register, base.plus(displacement << 16), context),
            _ if one.op.is(Flags::LOCKED) => {
                let stored = one.op.is(Flags::STORE).then(|| self.get(register));
                return event(one, [address, stored.unwrap_or(OffsetTerm::constant(0))], Some(register));
            }
            _ if one.op.is(Flags::STORE) => return self.store(one, register, address, code.side, context),
            _ => return self.load(one, register, address, code, context),
        }
        MachineStep::Next
    }

    fn load(
        &mut self,
        one: Instruction,
        register: u8,
        address: OffsetTerm,
        code: &ImageCode,
        context: &mut ProofContext,
    ) -> MachineStep {
        let slot = context.in_frame(address).filter(|_| matches!(one.op, Op::Ldq | Op::Ldt));
        if let Some(saved) = slot.and_then(|slot| self.slot(slot)) {
            self.set(register, saved, context);
            return MachineStep::Next;
        }
        self.note_access(one, address, code.side, context);
        let symbol = context.terms.symbol(Node::Load(one.op, context.memory, address));
        let unwound = self.unwound(self.pc, code, context);
        match code.side {
            ImageSide::Original => context.terms.mark_loaded(symbol, unwound),
            ImageSide::Optimized => context.new_loads.push((symbol, unwound)),
        }
        self.set(register, OffsetTerm::of(symbol), context);
        MachineStep::Next
    }

    fn store(
        &mut self,
        one: Instruction,
        register: u8,
        address: OffsetTerm,
        side: ImageSide,
        context: &mut ProofContext,
    ) -> MachineStep {
        let value = self.get(register);
        if let Some(slot) = context.in_frame(address).filter(|&slot| slot < 0)
            && matches!(one.op, Op::Stq | Op::Stt)
            && context.in_frame(self.get(SP)).is_none_or(|lowest| slot >= lowest)
            && self.is_save(register, value, slot, context)
        {
            context.saves[side as usize].insert((slot, register));
            if self.inlined.is_empty() && side == ImageSide::Original {
                context.own_saves.insert(slot);
            }
            match self.slots.binary_search_by_key(&slot, |one| one.0) {
                Ok(at) => self.slots[at].1 = value,
                Err(at) => self.slots.insert(at, (slot, value)),
            }
            return MachineStep::Next;
        }
        self.note_access(one, address, side, context);
        context.is_frame_used |= self.inlined.is_empty() && value.symbol == context.stack;
        event(one, [address, value], None)
    }

    /// The value that is saved at a distance from the stack pointer at the entry.
    pub fn slot(&self, slot: i64) -> Option<OffsetTerm> {
        self.slots.binary_search_by_key(&slot, |one| one.0).ok().map(|at| self.slots[at].1)
    }

    /// Notes an access to the frame that is no save or restore.
    fn note_access(
        &self,
        one: Instruction,
        address: OffsetTerm,
        side: ImageSide,
        context: &mut ProofContext,
    ) {
        let Some(at) = context.in_frame(address).filter(|&at| at < 0) else { return };
        let is_below = context.in_frame(self.get(SP)).is_some_and(|lowest| at < lowest);
        context.is_below_stack[side as usize] |= is_below;
        context.is_frame_used |= self.inlined.is_empty();
        let (at, size) =
            if one.op.is_rounded() { (at - 7, 15) } else { (at, one.op.access_size().unwrap_or(8)) };
        if self.inlined.is_empty() {
            context.accesses.insert((at, size));
        }
        let is_hit = |slot: &&(i64, OffsetTerm)| at < slot.0 + 8 && at + i64::from(size) > slot.0;
        if let Some(slot) = self.slots.iter().find(is_hit) {
            context.overlap = Some(slot.0);
        }
    }
}

enum MachineStep {
    Next,
    Go(u64),
    Stop(Action),
}

fn event(one: Instruction, operands: [OffsetTerm; 2], result: Option<u8>) -> MachineStep {
    MachineStep::Stop(Action::Event(MachineEvent { op: one.op, function: one.function(), operands, result }))
}

/// Whether the condition of a branch on an integer holds.
fn holds(op: Op, value: u64) -> Option<bool> {
    let signed = value as i64;
    Some(match op {
        Op::Beq => value == 0,
        Op::Bne => value != 0,
        Op::Blt => signed < 0,
        Op::Ble => signed <= 0,
        Op::Bgt => signed > 0,
        Op::Bge => signed >= 0,
        Op::Blbc => value & 1 == 0,
        Op::Blbs => value & 1 != 0,
        _ => return None,
    })
}
