//! Compares the assembler with an independent disassembler: every form, with every register, at the boundaries of
//! displacements, constants and distances; and random programs.

use iced_x86::{Instruction, Mnemonic, Register as X86};
use proptest::prelude::*;

use super::assembler::*;
use super::oracle::{
    ALU, CONDITIONS, DecodedOperand, LONG, ORIGIN, OperandSlot, OracleForm, QUAD, bytes, forms, general,
    memory, operands, registers, slot, vector,
};

/// Decodes what is written. Every byte must belong to a valid instruction.
fn disassemble(write: impl FnOnce(&mut Assembler)) -> Vec<Instruction> {
    let mut assembler = Assembler::new(ORIGIN);
    write(&mut assembler);
    super::oracle::disassemble(&assembler.finish())
}

/// Decodes a single instruction.
fn one(write: impl FnOnce(&mut Assembler)) -> Instruction {
    let decoded = disassemble(write);
    assert_eq!(decoded.len(), 1, "{decoded:?}");
    decoded[0]
}

/// Displacements at which the encoding changes.
const DISPLACEMENTS: [i32; 11] = [0, 1, -1, 127, 128, -128, -129, 255, 256, i32::MAX, i32::MIN];

/// All kinds of memory operands.
fn memory_operands() -> Vec<Operand> {
    let mut operands_in_memory = Vec::new();
    for base in registers() {
        operands_in_memory
            .extend(DISPLACEMENTS.map(|displacement| Operand::Memory(MemoryOperand { base, displacement })));
        for index in registers().filter(|&index| index != RSP) {
            for scale in 0..4 {
                operands_in_memory.extend([0, -128, 128].map(|by| Operand::Indexed(base, index, scale, by)));
            }
        }
    }
    operands_in_memory.extend([0, 1 << 20, (1 << 31) - 64].map(|distance| Operand::Near(ORIGIN + distance)));
    operands_in_memory.extend([1, 1 << 20, (1 << 31) - 64].map(|distance| Operand::Near(ORIGIN - distance)));
    operands_in_memory
}

/// Checks a form with all registers and all kinds of memory operands.
fn check(form: &OracleForm) {
    let check = |register: HostRegister, operand: Operand| {
        let decoded = one(|assembler| (form.write)(assembler, register, operand));
        let found = (decoded.mnemonic(), operands(&decoded));
        assert_eq!(found, form.expected(register, operand), "{register:?}, {operand:?}");
    };
    if form.has_registers {
        for register in form.slots[0].all() {
            form.slots[1].all().for_each(|other| check(register, other.into()));
        }
    }
    if form.has_memory {
        let operands_in_memory = memory_operands();
        for (number, register) in form.slots[0].all().enumerate() {
            // Every memory operand with some registers, and every register with some memory operands.
            operands_in_memory.iter().skip(number).step_by(3).for_each(|&operand| check(register, operand));
        }
    }
}

#[test]
fn two_operands() {
    let forms = forms();
    assert_eq!(forms.len(), 68);
    forms.iter().for_each(check);
}

#[test]
fn moves_between_quadword_registers() {
    for (to, from) in registers().flat_map(|to| registers().map(move |from| (to, from))) {
        let written = disassemble(|assembler| {
            assembler.load(OperandSize::Quad, to, from);
            assembler.store(OperandSize::Quad, to, from);
        });
        let expected: Vec<DecodedOperand> = [to, from].map(|register| QUAD.register(register)).into();
        assert_eq!(written.len(), if to == from { 0 } else { 2 });
        assert!(written.iter().all(|one| one.mnemonic() == Mnemonic::Mov && operands(one) == expected));
    }
}

/// Forms with one operand in a register or in memory, and optionally a constant.
#[test]
fn single_operands() {
    let check =
        |operand: Operand, mnemonic, slot: OperandSlot, constant: Option<i64>, decoded: Instruction| {
            let mut expected = vec![slot.operand(operand)];
            expected.extend(constant.map(DecodedOperand::Constant));
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, expected), "{operand:?}");
        };
    let operands_in_memory = memory_operands();
    let in_registers = registers().map(Operand::Register);
    let all: Vec<Operand> = in_registers.chain(operands_in_memory.iter().copied()).collect();
    for &operand in &all {
        let unaries = [
            (Unary::Not, Mnemonic::Not),
            (Unary::Multiply, Mnemonic::Mul),
            (Unary::MultiplySigned, Mnemonic::Imul),
            (Unary::Divide, Mnemonic::Div),
            (Unary::DivideSigned, Mnemonic::Idiv),
        ];
        for (unary, mnemonic) in unaries {
            check(operand, mnemonic, QUAD, None, one(|assembler| assembler.unary(unary, operand)));
        }
        check(operand, Mnemonic::Inc, QUAD, None, one(|assembler| assembler.increment(operand)));
        check(operand, Mnemonic::Jmp, QUAD, None, one(|assembler| assembler.jump_through(operand)));
        check(operand, Mnemonic::Call, QUAD, None, one(|assembler| assembler.call_through(operand)));
        for bits in [1, 0x7f, 0x80, 0xff] {
            let (slot, value) = (slot(OperandSize::Byte), Some(i64::from(bits as i8)));
            check(operand, Mnemonic::Test, slot, value, one(|code| code.test_bits(operand, bits)));
            check(operand, Mnemonic::Or, slot, value, one(|code| code.set_bits(operand, bits)));
        }
        for value in [0, 1, -1, i32::MAX, i32::MIN] {
            let decoded = one(|assembler| assembler.store_constant(operand, value));
            check(operand, Mnemonic::Mov, QUAD, Some(value.into()), decoded);
        }
        for (operation, mnemonic) in ALU {
            for value in [0, 127, 128, -128, -129, i32::MAX, i32::MIN] {
                let decoded = one(|code| code.alu_constant(operation, OperandSize::Quad, operand, value));
                check(operand, mnemonic, QUAD, Some(value.into()), decoded);
                let decoded = one(|code| code.alu_constant(operation, OperandSize::Long, operand, value));
                // The disassembler decodes constants of 32 bits as unsigned.
                let long = if i8::try_from(value).is_ok() { value.into() } else { i64::from(value as u32) };
                check(operand, mnemonic, LONG, Some(long), decoded);
            }
            for value in [0, 127, -128] {
                let decoded = one(|code| code.alu_constant(operation, OperandSize::Byte, operand, value));
                check(operand, mnemonic, slot(OperandSize::Byte), Some(value.into()), decoded);
            }
        }
    }
    for register in registers() {
        let operand = Operand::Register(register);
        for (condition, _, mnemonic, _) in CONDITIONS {
            let decoded = one(|assembler| assembler.set(condition, register));
            check(operand, mnemonic, slot(OperandSize::Byte), None, decoded);
        }
        check(operand, Mnemonic::Push, QUAD, None, one(|assembler| assembler.push(register)));
        check(operand, Mnemonic::Pop, QUAD, None, one(|assembler| assembler.pop(register)));
        for size in [OperandSize::Long, OperandSize::Quad] {
            check(operand, Mnemonic::Neg, slot(size), None, one(|code| code.negate(size, register)));
            let decoded = one(|assembler| assembler.test(size, register));
            assert_eq!(decoded.mnemonic(), Mnemonic::Test);
            assert_eq!(operands(&decoded), [slot(size).register(register); 2]);
        }
    }
}

#[test]
fn shifts() {
    let kinds = [
        (Shift::RotateLeft, Mnemonic::Rol),
        (Shift::RotateRight, Mnemonic::Ror),
        (Shift::Left, Mnemonic::Shl),
        (Shift::Right, Mnemonic::Shr),
        (Shift::Arithmetic, Mnemonic::Sar),
    ];
    for ((shift, mnemonic), register) in
        kinds.iter().flat_map(|&kind| registers().map(move |one| (kind, one)))
    {
        for (size, by) in
            [(OperandSize::Long, 1), (OperandSize::Long, 31), (OperandSize::Quad, 2), (OperandSize::Quad, 63)]
        {
            let decoded = one(|assembler| assembler.shift(shift, size, register, by));
            let expected = [slot(size).register(register), DecodedOperand::Constant(by.into())];
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, expected.into()));
        }
        assert_eq!(disassemble(|assembler| assembler.shift(shift, OperandSize::Quad, register, 0)), []);
        let decoded = one(|assembler| assembler.shift_by_rcx(shift, register));
        let expected = [QUAD.register(register), DecodedOperand::Register(X86::CL)];
        assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, expected.into()));
    }
}

#[test]
fn constants() {
    let boundaries = [7, 8, 15, 16, 31, 32, 63].map(|bits| 1u64 << bits);
    let values = boundaries.into_iter().flat_map(|value| [value - 1, value, value + 1]);
    let values = values.flat_map(|value| [value, value.wrapping_neg()]).chain([0]);
    for (value, register) in values.flat_map(|value| registers().map(move |register| (value, register))) {
        let decoded = one(|assembler| assembler.constant(register, value));
        assert_eq!(decoded.mnemonic(), Mnemonic::Mov);
        // A write to the low half clears the high half.
        let is_low = decoded.op_register(0) == general(register, OperandSize::Long);
        assert!(is_low || decoded.op_register(0) == general(register, OperandSize::Quad));
        assert_eq!(operands(&decoded)[1], DecodedOperand::Constant(value as i64), "{value:#x}");
        assert!(!is_low || value >> 32 == 0);
    }
    for register in registers() {
        let decoded = one(|assembler| assembler.zero(register));
        assert_eq!(decoded.mnemonic(), Mnemonic::Xor);
        assert_eq!(operands(&decoded), [LONG.register(register); 2]);
    }
}

#[test]
fn vector_status_and_comparison() {
    for operand in memory_operands() {
        let Operand::Memory(operand) = operand else { continue };
        for (decoded, mnemonic) in [
            (one(|assembler| assembler.load_float_status(operand)), Mnemonic::Ldmxcsr),
            (one(|assembler| assembler.store_float_status(operand)), Mnemonic::Stmxcsr),
        ] {
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, vec![memory(operand.into(), 4)]));
        }
    }
    for (to, a, b) in [(RAX, RBX, RSI), (RDI, R9, RAX), (R15, RSP, R8), (RSP, R15, RDI)] {
        let decoded = disassemble(|assembler| assembler.compare_bytes(to, a, b));
        let found: Vec<_> = decoded.iter().map(|one| (one.mnemonic(), operands(one))).collect();
        let [first, second] =
            [XMM0, HostRegister(1)].map(|register| DecodedOperand::Register(vector(register)));
        let expected = [
            (Mnemonic::Movq, vec![first, QUAD.register(a)]),
            (Mnemonic::Movq, vec![second, QUAD.register(b)]),
            (Mnemonic::Pmaxub, vec![second, first]),
            (Mnemonic::Pcmpeqb, vec![second, first]),
            (Mnemonic::Pmovmskb, vec![LONG.register(to), second]),
            (Mnemonic::Movzx, vec![LONG.register(to), slot(OperandSize::Byte).register(to)]),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn atomic_and_flags() {
    for operand in memory_operands() {
        let Operand::Memory(operand) = operand else { continue };
        for (size, register) in [OperandSize::Long, OperandSize::Quad]
            .iter()
            .flat_map(|&size| registers().map(move |r| (size, r)))
        {
            let decoded = one(|assembler| assembler.compare_and_exchange(size, operand, register));
            assert!(decoded.has_lock_prefix());
            let expected = [memory(operand.into(), bytes(size)), slot(size).register(register)];
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (Mnemonic::Cmpxchg, expected.into()));
        }
    }
    for (decoded, mnemonic) in [
        (one(Assembler::fence), Mnemonic::Mfence),
        (one(Assembler::push_flags), Mnemonic::Pushfq),
        (one(Assembler::pop_flags), Mnemonic::Popfq),
        (one(Assembler::halt), Mnemonic::Hlt),
        (one(Assembler::ret), Mnemonic::Ret),
    ] {
        assert_eq!(decoded.mnemonic(), mnemonic);
    }
}

/// Jumps to labels before and after them, at distances around the limit of the short form; calls and jumps to other
/// code.
#[test]
fn transfers() {
    let conditions = CONDITIONS.map(|(condition, jump, ..)| (Some(condition), jump));
    let kinds = conditions.into_iter().chain([(None, Mnemonic::Jmp)]);
    for ((condition, mnemonic), filler) in kinds.flat_map(|kind| {
        [0, 1, 120, 123, 124, 125, 126, 127, 128, 129, 130, 300].map(|filler| (kind, filler))
    }) {
        let jump = |assembler: &mut Assembler, label| match condition {
            Some(condition) => assembler.jump_if(condition, label),
            None => assembler.jump(label),
        };
        let forward = disassemble(|assembler| {
            let label = assembler.label();
            jump(assembler, label);
            (0..filler).for_each(|_| assembler.halt());
            assembler.bind(label);
            assembler.ret();
        });
        assert_eq!(operands(&forward[0]), [DecodedOperand::Target(forward.last().unwrap().ip())]);
        assert_eq!(forward[0].mnemonic(), mnemonic);
        assert_eq!(forward[0].len() == 2, filler <= 127, "{filler}");
        let backward = disassemble(|assembler| {
            let label = assembler.label();
            assembler.bind(label);
            (0..filler).for_each(|_| assembler.halt());
            jump(assembler, label);
        });
        let last = backward.last().unwrap();
        assert_eq!((last.mnemonic(), operands(last)), (mnemonic, vec![DecodedOperand::Target(ORIGIN)]));
        assert_eq!(last.len() == 2, filler <= 126, "{filler}");
    }
    for target in [ORIGIN, ORIGIN + (1 << 31), ORIGIN - (1 << 31) + 5] {
        for (decoded, mnemonic) in [
            (one(|assembler| assembler.jump_to(target)), Mnemonic::Jmp),
            (one(|assembler| assembler.call_to(target)), Mnemonic::Call),
        ] {
            assert_eq!(
                (decoded.mnemonic(), operands(&decoded)),
                (mnemonic, vec![DecodedOperand::Target(target)])
            );
        }
    }
    for (condition, mnemonic, ..) in CONDITIONS {
        let decoded = disassemble(|assembler| {
            assembler.halt();
            assembler.jump_into(condition, 1);
        });
        assert_eq!(
            (decoded[1].mnemonic(), operands(&decoded[1])),
            (mnemonic, vec![DecodedOperand::Target(ORIGIN)])
        );
        assert_eq!(condition.opposite().opposite(), condition);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_programs(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
        super::random_program::check(&bytes);
    }
}
