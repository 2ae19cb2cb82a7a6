//! Alpha's instruction summaries, which records and traces are made by, agree with the interpreter.

use std::collections::BTreeSet;

use guest::{Break, Guest, InstructionProperties};
use guest_memory::{Layout, Memory, RegionBacking};
use isa::encode::{self, SecondOperand};
use isa::{
    Alpha, InstructionFormat, InstructionSet, InstructionSummary, IntegerResult, Op, Qualifiers, Register,
    SourceOperand, TransferTarget, ValuePrediction,
};
use pathlength_alpha::cpu::Cpu;
use proptest::prelude::*;
use proptest::sample::select;

const DATA: u64 = 1 << 38;
const PAGE: u64 = 8192;
/// The address of the instruction.
const PC: u64 = 0x1_2000_0000;
const ZERO: u8 = 31;

/// The fields of an instruction word.
#[derive(Clone, Debug)]
struct Fields {
    registers: [u8; 3],
    literal: Option<u8>,
    displacement: i16,
    function: u32,
}

fn fields() -> impl Strategy<Value = Fields> {
    let register = || prop_oneof![0u8..32, select(vec![0, 1, 2, 19, 30, 31])];
    let function = select(vec![0x83u32, 0x9e, 0x9f, 0x86, 0x80]);
    ([register(), register(), register()], any::<Option<u8>>(), any::<i16>(), function).prop_map(
        |(registers, literal, displacement, function)| Fields { registers, literal, displacement, function },
    )
}

/// The word of an instruction with these fields; register 31 is in the fields that have to be so.
fn word(op: Op, fields: &Fields) -> u32 {
    let Fields { registers: [a, b, c], literal, displacement, function } = *fields;
    let second = literal.map_or(SecondOperand::Register(b), SecondOperand::Literal);
    let mut candidates =
        [(a, b), (ZERO, b), (a, ZERO), (a, a)].into_iter().flat_map(|(a, b)| match op.format() {
            InstructionFormat::Memory => vec![encode::memory(op, a, b, displacement)],
            InstructionFormat::MemoryFunction => vec![encode::memory_function(op, a, b)],
            InstructionFormat::MemoryJump => vec![encode::jump(op, a, b, 0)],
            InstructionFormat::Branch => vec![encode::branch(op, a, 4 * i64::from(displacement))],
            InstructionFormat::Operate => [second, SecondOperand::Register(b), SecondOperand::Literal(1)]
                .into_iter()
                .flat_map(|second| [a, ZERO].map(|a| encode::operate(op, a, second, c)))
                .collect(),
            InstructionFormat::FloatOperate => {
                [c, a].map(|c| encode::float_operate(op, Qualifiers::NONE, a, b, c)).to_vec()
            }
            InstructionFormat::Pal => vec![encode::call_pal(function)],
        });
    candidates.find_map(Result::ok).unwrap_or_else(|| panic!("{op:?} has such operands"))
}

/// Registers with which the instruction accesses mapped memory.
fn cpu(summary: &InstructionSummary, registers: &[u64; 64], offset: u64) -> Option<Cpu> {
    let mut cpu = Cpu { model: isa::CpuModel::Ev67, ..Cpu::default() };
    cpu.r[..31].copy_from_slice(&registers[..31]);
    cpu.f[..31].copy_from_slice(&registers[32..63]);
    if let Some(access) = summary.access {
        if access.base == ZERO {
            return None;
        }
        cpu.r[usize::from(access.base)] = (DATA + 8 * offset).wrapping_add_signed(-access.displacement);
    }
    cpu.pc = PC + Alpha.length(0);
    Some(cpu)
}

fn operand(cpu: &Cpu, operand: SourceOperand) -> u64 {
    match operand {
        SourceOperand::Register(register) => cpu.r[usize::from(register)],
        SourceOperand::Constant(constant) => constant,
    }
}

fn result(cpu: &Cpu, result: IntegerResult) -> u64 {
    match result {
        IntegerResult::Sum(a, b) => operand(cpu, a).wrapping_add(operand(cpu, b)),
        IntegerResult::Difference(a, b) => operand(cpu, a).wrapping_sub(operand(cpu, b)),
        IntegerResult::Or(a, b) => operand(cpu, a) | operand(cpu, b),
        IntegerResult::Relative(distance) => PC.wrapping_add_signed(distance),
    }
}

/// What the value is predicted to be before the instruction is executed, if registers determine it.
fn predicted(cpu: &Cpu, prediction: ValuePrediction) -> Option<u64> {
    match prediction {
        ValuePrediction::History | ValuePrediction::Memory => None,
        ValuePrediction::Register(register) => Some(cpu.value(register)),
        ValuePrediction::Operation(operation, a, b, old) => {
            let [a, old] = [a, old].map(|register| cpu.r[usize::from(register)]);
            Some(operation(a, operand(cpu, b), old))
        }
    }
}

/// The addresses at which control may continue.
fn successors(cpu: &Cpu, summary: &InstructionSummary) -> Vec<u64> {
    let next = PC + Alpha.length(0);
    let Some(transfer) = summary.transfer else { return vec![next] };
    let target = match transfer.target {
        TransferTarget::Relative(distance) => PC.wrapping_add_signed(distance),
        TransferTarget::Register { base, displacement } => {
            cpu.r[usize::from(base)].wrapping_add_signed(displacement) & !(Alpha.code_alignment() - 1)
        }
    };
    if transfer.is_conditional { vec![target, next] } else { vec![target] }
}

/// Checks the summary against the registers before and after the execution.
fn agree(
    op: Op,
    summary: &InstructionSummary,
    before: &Cpu,
    after: &Cpu,
    memory: &Memory,
) -> Result<(), TestCaseError> {
    let access = summary.access.filter(|access| access.quadword.is_some());
    let quadword = access.and_then(|access| access.quadword.filter(|_| !access.is_store));
    for register in 0..31u8 {
        let (old, new) = (before.r[usize::from(register)], after.r[usize::from(register)]);
        if let Some((_, value)) = summary.result.filter(|&(number, _)| number == register) {
            prop_assert_eq!(new, result(before, value));
        } else if quadword == Some(register) {
            let base = before.r[usize::from(access.expect("a quadword").base)];
            let address = base.wrapping_add_signed(access.expect("a quadword").displacement);
            prop_assert_eq!(new, memory.load::<8>(address).expect("memory"));
        } else if old != new {
            prop_assert!(summary.unknown >> register & 1 == 1, "register {} is written", register);
        }
        let is_written = summary.written.contains(&Some(Register::Integer(register)));
        prop_assert!(old == new || is_written, "register {} is written", register);
    }
    for register in (0..31).filter(|&register| before.f[register] != after.f[register]) {
        prop_assert!(summary.written.contains(&Some(Register::Float(register as u8))));
    }
    prop_assert!(successors(before, summary).contains(&after.pc));
    let link = summary.transfer.and_then(|transfer| transfer.link);
    prop_assert!(link.is_none_or(|link| after.r[usize::from(link)] == PC + Alpha.length(0)));
    let Some(register) = summary.value else { return Ok(()) };
    let is_store = summary.access.is_some_and(|access| access.is_store);
    let value = if is_store { before.value(register) } else { after.value(register) };
    // Only a sign that is copied to its own value does not change it.
    let prediction = predicted(before, summary.value_model.prediction).filter(|_| op != Op::Cpys);
    prop_assert!(prediction.is_none_or(|predicted| predicted == value), "{:?}, not {:#x}", prediction, value);
    if let (Some(destination), None) = (summary.value_model.destination, summary.value_model.success) {
        prop_assert_eq!(after.value(destination), value);
    }
    Ok(())
}

/// What a load of an access's size reads.
fn bytes(memory: &Memory, address: u64, size: u8) -> u64 {
    let loaded = match size {
        1 => memory.load::<1>(address),
        2 => memory.load::<2>(address),
        4 => memory.load::<4>(address),
        _ => memory.load::<8>(address),
    };
    loaded.expect("memory")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn summaries_agree_with_the_interpreter(
        fields in fields(),
        registers: [u64; 64],
        stored: u64,
        offset in 0..PAGE / 8,
    ) {
        let memory = Memory::new(Layout { page: PAGE, bytes: 1 << 42, map_base: DATA, large_page: 1 << 22, large_base: 1 << 41 })?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        memory.map_anonymous(DATA, PAGE, protection, false, RegionBacking::Anonymous).expect("memory");
        let mut executed = BTreeSet::new();
        for op in Op::ALL {
            let word = word(op, &fields);
            let summary = Alpha.summary(word).expect("an instruction");
            let Some(mut cpu) = cpu(&summary, &registers, offset) else { continue };
            memory.store::<8>(DATA + 8 * offset, stored).expect("memory");
            let step = Cpu::decode(word, PC, isa::CpuModel::Ev67).expect("an instruction");
            let (before, address) = (cpu.clone(), step.address(&cpu));
            prop_assert_eq!(summary.access.is_some(), step.is_access());
            if let Some(access) = summary.access {
                let base = cpu.r[usize::from(access.base)];
                prop_assert_eq!(base.wrapping_add_signed(access.displacement) & access.mask, address);
                prop_assert_eq!(access.is_store, step.is_store());
            }
            let outcome = cpu.execute(&step, &memory);
            prop_assert_eq!(summary.is_system_call, outcome == Err(Break::SystemCall));
            if outcome.is_err() {
                continue;
            }
            executed.insert(op);
            agree(op, &summary, &before, &cpu, &memory)?;
            // Memory has what the model says; of floating-point values it depends on their format.
            let integer = summary.access.filter(|access| access.is_store && summary.value_model.success.is_none());
            if let (Some(access), Some(Register::Integer(number))) = (integer, summary.value) {
                let extension = summary.value_model.memory.expect("a store");
                let expected = extension.apply(before.r[usize::from(number)]);
                let bits = 8 * u32::from(access.size);
                let (kept, held) = (u64::MAX >> (64 - bits), bytes(&memory, address, access.size));
                prop_assert_eq!(u32::from(extension.bits), bits);
                prop_assert_eq!(expected & kept, held & kept);
            }
        }
        // The others trap on these operands, or have no base register.
        prop_assert!(executed.len() > Op::COUNT / 2, "{} instructions", executed.len());
    }
}
