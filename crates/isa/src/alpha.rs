//! Alpha as an [`InstructionSet`]: summaries of its instructions, which follow from the table.

use crate::decode::PAL_NAMES;
use crate::instruction_set::{
    ControlCalls, ControlTransfer, InstructionSet, InstructionSummary, IntegerResult, LoadExtension,
    MemoryAccess, PipelineSummary, Register, ReturnStackUse, SourceOperand, TransferKind, TransferTarget,
    ValueModel, ValuePrediction,
};
use crate::{
    CpuModel, Flags, Group, Instruction, InstructionFormat, Nop, Op, Operands, REGISTER_NAMES, decode,
    operation,
};

/// The Alpha instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Alpha;

/// The machine in the headers of ELF files.
const ELF_MACHINE: u16 = 0x9026;
/// Bytes of each instruction.
const LENGTH: u8 = 4;
/// The system calls in which a thread may wait for another one.
const MAY_WAIT: [u32; 24] = [
    3, 94, 99, 102, 111, 113, 120, 125, 131, 202, 206, 340, 355, 357, 358, 365, 394, 409, 422, 438, 463, 464,
    479, 502,
];
const V0: u8 = 0;
const A0: u8 = 16;
const A3: u8 = 19;
const A4: u8 = 20;
const SP: u8 = 30;
/// The zero registers, integer and floating-point.
pub(crate) const ZERO: u8 = 31;

const FLOAT_REGISTER_NAMES: [&str; 32] = [
    "$f0", "$f1", "$f2", "$f3", "$f4", "$f5", "$f6", "$f7", "$f8", "$f9", "$f10", "$f11", "$f12", "$f13",
    "$f14", "$f15", "$f16", "$f17", "$f18", "$f19", "$f20", "$f21", "$f22", "$f23", "$f24", "$f25", "$f26",
    "$f27", "$f28", "$f29", "$f30", "$f31",
];

impl InstructionSet for Alpha {
    fn name(&self) -> &'static str {
        "alpha"
    }

    fn length(&self, _word: u32) -> u64 {
        LENGTH.into()
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        decode(word).map(Instruction::summary)
    }

    fn zero_register(&self) -> u8 {
        ZERO
    }

    fn stack_pointer(&self) -> u8 {
        SP
    }

    fn code_alignment(&self) -> u64 {
        LENGTH.into()
    }

    fn elf_machine(&self) -> u16 {
        ELF_MACHINE
    }

    fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        decode(word).map(|instruction| instruction.disassemble(address).to_string())
    }

    fn register_name(&self, register: Register) -> &'static str {
        match register {
            Register::Integer(number) => REGISTER_NAMES[usize::from(number)],
            Register::Float(number) => FLOAT_REGISTER_NAMES[usize::from(number)],
        }
    }

    /// Mnemonics without qualifiers; of PAL calls, those of their functions. No-operations are counted separately from
    /// the `bis`, `ldq_u` and `cpys` that encode them: they do no work, and compilers and linkers insert many of them.
    fn mnemonic(&self, word: u32) -> Option<&'static str> {
        let instruction = decode(word)?;
        Some(match instruction.nop_kind() {
            Some(Nop::Nop) => "nop",
            Some(Nop::Unop) => "unop",
            Some(Nop::Fnop) => "fnop",
            None => instruction.name(),
        })
    }

    fn mnemonics(&self) -> Vec<(&'static str, Group)> {
        let calls = PAL_NAMES.iter().map(|&(_, name)| name);
        let others = calls.chain(["nop", "unop", "fnop"]).map(|name| (name, Group::Other));
        Op::ALL.iter().map(|op| (op.mnemonic(), op.group())).chain(others).collect()
    }

    fn is_implemented(&self, word: u32, cpu: CpuModel) -> bool {
        decode(word).is_some_and(|instruction| cpu.has(instruction.op.extension()))
    }

    fn pipeline_summary(&self, word: u32) -> Option<PipelineSummary> {
        decode(word).map(Instruction::pipeline_summary)
    }

    /// The calls of Linux are those of OSF/1 below 300.
    fn control_calls(&self) -> ControlCalls {
        ControlCalls {
            execute: 59,
            signal_returns: &[103, 351],
            creates_thread: 312,
            may_wait: &MAY_WAIT,
            futex: 394,
        }
    }

    /// After the two instructions that compute the global pointer from the procedure value, for callers with the same
    /// global pointer (Calling Standard for Alpha, 3.1).
    fn second_entry(&self) -> u64 {
        2 * u64::from(LENGTH)
    }
}

impl Instruction {
    /// The register whose value is recorded ([`InstructionSummary::value`]).
    pub fn value_register(self) -> Option<Register> {
        let op = self.op;
        let register = match op.format() {
            InstructionFormat::Memory => self.ra(),
            InstructionFormat::Branch if op.is(Flags::CONDITIONAL) => self.ra(),
            InstructionFormat::MemoryFunction if reads_counter(op) => self.ra(),
            InstructionFormat::Operate => self.rc(),
            InstructionFormat::FloatOperate if op != Op::MtFpcr => self.rc(),
            _ => return None,
        };
        let is_dropped = register == ZERO && !op.is(Flags::STORE) && op.format() != InstructionFormat::Branch;
        let is_float = op.is_float() && op.row().operands != Operands::FaRc;
        (!is_dropped).then_some(if is_float {
            Register::Float(register)
        } else {
            Register::Integer(register)
        })
    }

    fn summary(self) -> InstructionSummary {
        let transfer = self.transfer();
        let (written, read) = self.registers();
        InstructionSummary {
            access: self.memory_access(),
            second_access: None,
            value: self.value_register(),
            result: self.integer_result(),
            unknown: self.unknown_registers(),
            transfer,
            is_system_call: self.name() == "callsys",
            enters_system: self.op.format() == InstructionFormat::Pal,
            written,
            read,
            value_model: self.value_model(),
        }
    }

    fn memory_access(self) -> Option<MemoryAccess> {
        let (op, ra) = (self.op, self.ra());
        let is_store = op.is(Flags::STORE);
        let is_quadword = matches!(op, Op::Ldq | Op::Stq | Op::LdqL | Op::StqC) && (is_store || ra != ZERO);
        Some(MemoryAccess {
            size: self.access_size()?,
            is_store,
            base: self.rb(),
            displacement: self.displacement().into(),
            mask: if op.is_rounded() { !7 } else { !0 },
            is_locked: op.is(Flags::LOCKED),
            quadword: is_quadword.then_some(ra),
        })
    }

    /// The second operand of an integer operation.
    fn second(self) -> SourceOperand {
        match self.literal() {
            Some(literal) => SourceOperand::Constant(literal.into()),
            None => SourceOperand::Register(self.rb()),
        }
    }

    /// The constant that `lda` and `ldah` add to the base register.
    fn address_constant(self) -> Option<SourceOperand> {
        let displacement = i64::from(self.displacement());
        match self.op {
            Op::Lda => Some(SourceOperand::Constant(displacement as u64)),
            Op::Ldah => Some(SourceOperand::Constant((displacement << 16) as u64)),
            _ => None,
        }
    }

    fn integer_result(self) -> Option<(u8, IntegerResult)> {
        use IntegerResult::*;
        if let Some(constant) = self.address_constant() {
            return Some((self.ra(), Sum(SourceOperand::Register(self.rb()), constant)));
        }
        let (a, b) = (SourceOperand::Register(self.ra()), self.second());
        match self.op {
            Op::Addq => Some((self.rc(), Sum(a, b))),
            Op::Subq => Some((self.rc(), Difference(a, b))),
            Op::Bis => Some((self.rc(), Or(a, b))),
            _ => self.transfer()?.link.map(|link| (link, Relative(LENGTH.into()))),
        }
    }

    fn unknown_registers(self) -> u32 {
        let (op, ra, rc) = (self.op, self.ra(), self.rc());
        match op.format() {
            // A store-conditional writes its success. Quadwords that are loaded are results of the access.
            InstructionFormat::Memory
                if self.memory_access().is_some_and(|one| !one.is_store && one.quadword.is_some()) =>
            {
                0
            }
            InstructionFormat::Memory if !op.is_float() && (op.is(Flags::LOAD) || op.is(Flags::LOCKED)) => {
                1 << ra
            }
            InstructionFormat::Operate if !matches!(op, Op::Addq | Op::Subq | Op::Bis) => 1 << rc,
            InstructionFormat::FloatOperate if op.row().operands == Operands::FaRc => 1 << rc,
            InstructionFormat::MemoryFunction if reads_counter(op) => 1 << ra,
            // A system call returns in v0, a3 and a4; other PAL calls at most in v0.
            InstructionFormat::Pal => 1 << V0 | 1 << A3 | 1 << A4,
            _ => 0,
        }
    }

    fn transfer(self) -> Option<ControlTransfer> {
        let op = self.op;
        if !op.is(Flags::BRANCH) {
            return None;
        }
        let kind = match () {
            () if op.is(Flags::CALL) => TransferKind::Call,
            () if op.is(Flags::RETURN) => TransferKind::Return,
            () => TransferKind::Jump,
        };
        let distance = i64::from(LENGTH) + i64::from(self.displacement());
        let target = match op.format() {
            InstructionFormat::MemoryJump => TransferTarget::Register { base: self.rb(), displacement: 0 },
            _ => TransferTarget::Relative(distance),
        };
        let is_conditional = op.is(Flags::CONDITIONAL);
        Some(ControlTransfer {
            kind,
            is_conditional,
            target,
            link: Some(self.ra()).filter(|&ra| !is_conditional && ra != ZERO),
            hint: (op.format() == InstructionFormat::MemoryJump).then_some(distance),
            return_stack: ReturnStackUse {
                pops: matches!(op, Op::Ret | Op::JsrCoroutine),
                pushes: matches!(op, Op::Bsr | Op::Jsr | Op::JsrCoroutine),
            },
        })
    }

    fn value_model(self) -> ValueModel {
        let (op, ra, rb, rc) = (self.op, self.ra(), self.rb(), self.rc());
        let is_float = op.is_float();
        let first = if is_float { Register::Float(ra) } else { Register::Integer(ra) };
        let (prediction, destination) = match op.format() {
            InstructionFormat::Memory if op.is(Flags::STORE) => {
                (ValuePrediction::Register(first), op.is(Flags::LOCKED).then_some(first))
            }
            InstructionFormat::Memory if op.is(Flags::LOAD) => (ValuePrediction::Memory, Some(first)),
            InstructionFormat::Memory => {
                let constant = self.address_constant().unwrap_or(SourceOperand::Constant(0));
                (ValuePrediction::Operation(|a, b, _| a.wrapping_add(b), rb, constant, ZERO), Some(first))
            }
            InstructionFormat::Branch if op.is(Flags::CONDITIONAL) => {
                (ValuePrediction::Register(first), None)
            }
            // The model takes barriers and `mt_fpcr`, too, for writers of their register: that is part of the format.
            InstructionFormat::Branch | InstructionFormat::MemoryJump | InstructionFormat::MemoryFunction => {
                (ValuePrediction::History, Some(first))
            }
            InstructionFormat::Operate => {
                let prediction = |operation| ValuePrediction::Operation(operation, ra, self.second(), rc);
                (operation(op).map_or(ValuePrediction::History, prediction), Some(Register::Integer(rc)))
            }
            InstructionFormat::FloatOperate => {
                let prediction = match op {
                    Op::Cpys | Op::Ftoit => ValuePrediction::Register(Register::Float(ra)),
                    Op::Itoft => ValuePrediction::Register(Register::Integer(ra)),
                    _ => ValuePrediction::History,
                };
                let is_integer = op.row().operands == Operands::FaRc;
                (prediction, Some(if is_integer { Register::Integer(rc) } else { Register::Float(rc) }))
            }
            InstructionFormat::Pal => (ValuePrediction::History, None),
        };
        let is_zero =
            |register: &Register| matches!(register, Register::Integer(ZERO) | Register::Float(ZERO));
        ValueModel {
            prediction,
            destination: destination.filter(|register| !is_zero(register)),
            success: (op.is(Flags::STORE) && op.is(Flags::LOCKED)).then_some(1),
            memory: loaded(op),
        }
    }

    /// The registers that it writes and reads. Of a system call: it takes its number and first arguments in v0, a0, a1
    /// and a2, and returns in v0 and a3.
    fn registers(self) -> ([Option<Register>; 2], [Option<Register>; 4]) {
        let op = self.op;
        let integer = |number: u8| Some(Register::Integer(number)).filter(|_| number != ZERO);
        let float = |number: u8| Some(Register::Float(number)).filter(|_| number != ZERO);
        let [a, b, c] = [self.ra(), self.rb(), self.rc()];
        let second = if self.literal().is_some() { None } else { integer(b) };
        match op.row().operands {
            operands @ (Operands::RaMemory | Operands::FaMemory) => {
                let data = if operands == Operands::FaMemory { float(a) } else { integer(a) };
                let (loaded, stored) = if op.is(Flags::STORE) { (None, data) } else { (data, None) };
                // A store-conditional writes its success.
                let loaded = if op.is(Flags::LOCKED) { data } else { loaded };
                ([loaded, None], [integer(b), stored, None, None])
            }
            Operands::RaRbRc | Operands::RegistersRaRbRc => {
                // A conditional move reads its destination.
                let kept = if op.mnemonic().starts_with("cmov") { integer(c) } else { None };
                ([integer(c), None], [integer(a), second, kept, None])
            }
            Operands::RbRc | Operands::RegisterRbRc => ([integer(c), None], [second, None, None, None]),
            Operands::Rc => ([integer(c), None], [None; 4]),
            Operands::FaFbFc => {
                let kept = if op.mnemonic().starts_with("fcmov") { float(c) } else { None };
                ([float(c), None], [float(a), float(b), kept, None])
            }
            Operands::FbFc => ([float(c), None], [float(b), None, None, None]),
            Operands::FaRc => ([integer(c), None], [float(a), None, None, None]),
            Operands::RaFc => ([float(c), None], [integer(a), None, None, None]),
            Operands::Fpcr if op == Op::MtFpcr => ([None; 2], [float(a), None, None, None]),
            Operands::Fpcr => ([float(a), None], [None; 4]),
            Operands::Ra | Operands::RaRb => ([integer(a), None], [None; 4]),
            Operands::Address => ([None; 2], [integer(b), None, None, None]),
            Operands::PalFunction => ([V0, A3].map(integer), [V0, A0, A0 + 1, A0 + 2].map(integer)),
            Operands::Jump => ([integer(a), None], [integer(b), None, None, None]),
            Operands::RaBranch if op.is(Flags::CONDITIONAL) => ([None; 2], [integer(a), None, None, None]),
            Operands::RaBranch => ([integer(a), None], [None; 4]),
            Operands::FaBranch => ([None; 2], [float(a), None, None, None]),
            Operands::Nothing => ([None; 2], [None; 4]),
        }
    }
}

/// Whether it is a miscellaneous instruction that writes a register.
fn reads_counter(op: Op) -> bool {
    matches!(op, Op::Rpcc | Op::Rc | Op::Rs)
}

/// The contents of memory after a load or a store in the model of values. A load that drops its result counts, too.
fn loaded(op: Op) -> Option<LoadExtension> {
    let (bits, is_signed) = match op {
        Op::Stb => (8, false),
        Op::Stw => (16, false),
        Op::Stl | Op::StlC => (32, true),
        _ if op.is(Flags::LOAD) || op.is(Flags::STORE) => return Some(LoadExtension::WHOLE),
        _ => return None,
    };
    Some(LoadExtension { bits, is_signed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{INSTRUCTION_SETS, InstructionClass};

    /// Words of all instructions, with registers and displacements of all kinds.
    fn words() -> impl Iterator<Item = u32> {
        let mut random = fastrand::Rng::with_seed(1);
        std::iter::repeat_with(move || random.u32(..)).take(1_000_000)
    }

    #[test]
    fn pipelines_have_the_registers_of_the_summary() {
        let mut checked = 0;
        for (word, instruction) in words().filter_map(|word| Some((word, decode(word)?))) {
            let (summary, pipeline) = (instruction.summary(), instruction.pipeline_summary());
            // Pipelines wait for no register of a system call, and read what `rpcc` ignores.
            if instruction.op == Op::CallPal || instruction.op == Op::Rpcc {
                continue;
            }
            let [written, none] = summary.written;
            assert_eq!((pipeline.destination, none), (written, None), "{word:#x}");
            for source in pipeline.sources.into_iter().flatten() {
                assert!(summary.read.contains(&Some(source)), "{word:#x}: {source:?}");
            }
            let is_store = summary.access.is_some_and(|access| access.is_store);
            let is_conditional = summary.transfer.is_some_and(|transfer| transfer.is_conditional);
            let moves = instruction.op.mnemonic().contains("cmov");
            assert_eq!(pipeline.special.is_some(), is_store || is_conditional || moves, "{word:#x}");
            checked += 1;
        }
        assert!(checked > 300_000, "{checked}");
    }

    #[test]
    fn pipelines_have_accesses_and_transfers_of_the_summary() {
        use InstructionClass::*;
        let (loads, stores) = ([Load, FloatLoad, LoadLocked], [Store, FloatStore, StoreConditional]);
        for (word, instruction) in words().filter_map(|word| Some((word, decode(word)?))) {
            let (summary, class) = (instruction.summary(), instruction.pipeline_summary().class);
            if let Some(access) = summary.access {
                assert!(if access.is_store { stores } else { loads }.contains(&class), "{word:#x}");
                assert_eq!(access.is_locked, [LoadLocked, StoreConditional].contains(&class), "{word:#x}");
            }
            let is_branch = [Branch, FloatBranch].contains(&class);
            assert_eq!(
                summary.transfer.map(|one| one.is_conditional),
                match class {
                    Jump => Some(false),
                    _ => is_branch.then_some(true),
                }
            );
            assert_eq!(summary.enters_system, [CallPal, ThreadPointer].contains(&class), "{word:#x}");
        }
    }

    #[test]
    fn pipelines_tell_accesses_to_the_thread_pointer_from_other_calls() {
        let summary = |function| decode(function).unwrap().pipeline_summary();
        let integer = |number| Some(Register::Integer(number));
        let (read, write, call) = (summary(0x9e), summary(0x9f), summary(0x83));
        assert_eq!((read.class, read.destination), (InstructionClass::ThreadPointer, integer(0)));
        assert_eq!((write.class, write.sources), (InstructionClass::ThreadPointer, [integer(16), None]));
        assert_eq!((call.class, call.destination), (InstructionClass::CallPal, None));
    }

    #[test]
    fn mnemonics_are_all_that_instructions_have() {
        let all = Alpha.mnemonics();
        let has = |name| all.iter().any(|&(one, _)| one == name);
        // The opcode of PAL calls is 0: the first words are the calls.
        for word in words().chain(0..=0xff) {
            assert_eq!(Alpha.mnemonic(word).is_some(), decode(word).is_some());
            assert!(Alpha.mnemonic(word).is_none_or(has), "{word:#x}");
        }
        assert_eq!(Alpha.mnemonic(0x47ff_041f), Some("nop"));
    }

    #[test]
    fn names_of_registers_are_those_of_the_listing() {
        assert_eq!(Alpha.register_name(Register::Integer(30)), "sp");
        assert_eq!(Alpha.register_name(Register::Float(31)), "$f31");
        for number in 0..32 {
            assert_eq!(Alpha.register_name(Register::Float(number)), format!("$f{number}"));
        }
    }

    #[test]
    fn a_return_pops_and_a_call_pushes() {
        let stack = |word| decode(word).unwrap().transfer().unwrap().return_stack;
        let of = |pops, pushes| ReturnStackUse { pops, pushes };
        // `ret`, `jsr`, `jsr_coroutine`, `jmp`, `bsr`, `br`.
        assert_eq!([0x6bfa_8001, 0x6b5b_4000].map(stack), [of(true, false), of(false, true)]);
        assert_eq!([0x6b5b_c000, 0x6bfb_0000].map(stack), [of(true, true), of(false, false)]);
        assert_eq!([0xd340_0000, 0xc3e0_0000].map(stack), [of(false, true), of(false, false)]);
    }

    #[test]
    fn sets_are_found_by_machine_and_name_and_agree_on_groups() {
        assert!(crate::of_elf_machine(0x9026).is_some_and(|set| set == (&Alpha as &dyn InstructionSet)));
        assert!(crate::of_elf_machine(62).is_none());
        let mut groups = std::collections::BTreeMap::new();
        for (name, group) in INSTRUCTION_SETS.iter().flat_map(|set| set.mnemonics()) {
            assert_eq!(*groups.entry(name).or_insert(group), group, "{name}");
        }
    }
}
