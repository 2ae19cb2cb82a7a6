//! Compares the assembler with an independent disassembler (iced-x86): every form, with every register, at the
//! boundaries of displacements, constants and distances.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register as X86};

use super::assembler::*;

/// The address of the test code.
const ORIGIN: u64 = 0x7f00_0000_0000;

/// An operand as the disassembler decodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decoded {
    Register(X86),
    /// Base, index, scale, displacement, and bytes accessed.
    Memory(X86, X86, u32, u64, usize),
    /// Sign-extended.
    Constant(i64),
    Target(u64),
}

/// Decodes code. Every byte must belong to a valid instruction.
fn disassemble(write: impl FnOnce(&mut Assembler)) -> Vec<Instruction> {
    let mut assembler = Assembler::new(ORIGIN);
    write(&mut assembler);
    let code = assembler.finish();
    let decoder = Decoder::with_ip(64, &code.bytes, ORIGIN, DecoderOptions::NONE);
    let decoded: Vec<Instruction> = decoder.into_iter().collect();
    assert!(decoded.iter().all(|instruction| !instruction.is_invalid()), "{:x?}", code.bytes);
    assert_eq!(decoded.iter().map(Instruction::len).sum::<usize>(), code.bytes.len(), "{:x?}", code.bytes);
    decoded
}

/// Decodes a single instruction.
fn one(write: impl FnOnce(&mut Assembler)) -> Instruction {
    let decoded = disassemble(write);
    assert_eq!(decoded.len(), 1, "{decoded:?}");
    decoded[0]
}

fn operands(instruction: &Instruction) -> Vec<Decoded> {
    let operand = |index: u32| match instruction.op_kind(index) {
        OpKind::Register => Decoded::Register(instruction.op_register(index)),
        OpKind::Memory => {
            let bytes = instruction.memory_size().size();
            let (base, index) = (instruction.memory_base(), instruction.memory_index());
            let scale = instruction.memory_index_scale();
            Decoded::Memory(base, index, scale, instruction.memory_displacement64(), bytes)
        }
        OpKind::NearBranch64 => Decoded::Target(instruction.near_branch64()),
        OpKind::Immediate8 => Decoded::Constant(instruction.immediate8() as i8 as i64),
        OpKind::Immediate32 => Decoded::Constant(i64::from(instruction.immediate32())),
        OpKind::Immediate64 => Decoded::Constant(instruction.immediate64() as i64),
        OpKind::Immediate8to32 => Decoded::Constant(instruction.immediate8to32().into()),
        OpKind::Immediate8to64 => Decoded::Constant(instruction.immediate8to64()),
        OpKind::Immediate32to64 => Decoded::Constant(instruction.immediate32to64()),
        kind => panic!("{kind:?} in {instruction:?}"),
    };
    (0..instruction.op_count()).map(operand).collect()
}

fn registers() -> impl Iterator<Item = Register> {
    (0..16).map(Register)
}

/// The disassembler's name of a register.
fn general(register: Register, size: Size) -> X86 {
    let first = match size {
        // With a REX prefix, numbers 4 to 7 of byte registers are spl to dil instead of ah to bh.
        Size::Byte if register.0 < 4 => X86::AL,
        Size::Byte => return X86::SPL + u32::from(register.0 - 4),
        Size::Word => X86::AX,
        Size::Long => X86::EAX,
        Size::Quad => X86::RAX,
    };
    first + u32::from(register.0)
}

fn vector(register: Register) -> X86 {
    X86::XMM0 + u32::from(register.0)
}

/// Displacements at which the encoding changes.
const DISPLACEMENTS: [i32; 11] = [0, 1, -1, 127, 128, -128, -129, 255, 256, i32::MAX, i32::MIN];

/// All kinds of memory operands.
fn places() -> Vec<Operand> {
    let mut places = Vec::new();
    for base in registers() {
        places.extend(DISPLACEMENTS.map(|displacement| Operand::Memory(Place { base, displacement })));
        for index in registers().filter(|&index| index != RSP) {
            for scale in 0..4 {
                places.extend([0, -128, 128].map(|by| Operand::Indexed(base, index, scale, by)));
            }
        }
    }
    places.extend([0, 1 << 20, (1 << 31) - 64].map(|distance| Operand::Near(ORIGIN + distance)));
    places.extend([1, 1 << 20, (1 << 31) - 64].map(|distance| Operand::Near(ORIGIN - distance)));
    places
}

/// The decoding of a memory operand of this size in bytes.
fn memory(operand: Operand, bytes: usize) -> Decoded {
    match operand {
        Operand::Register(_) => panic!("a register"),
        Operand::Memory(Place { base, displacement }) => {
            Decoded::Memory(general(base, Size::Quad), X86::None, 1, displacement as i64 as u64, bytes)
        }
        Operand::Indexed(base, index, scale, displacement) => {
            let [base, index] = [base, index].map(|register| general(register, Size::Quad));
            Decoded::Memory(base, index, 1 << scale, displacement as i64 as u64, bytes)
        }
        Operand::Near(target) => Decoded::Memory(X86::RIP, X86::None, 1, target, bytes),
    }
}

const fn bytes(size: Size) -> usize {
    match size {
        Size::Byte => 1,
        Size::Word => 2,
        Size::Long => 4,
        Size::Quad => 8,
    }
}

/// An operand of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// A general-purpose register, with its size.
    General(Size),
    /// A vector register, or this many bytes of memory.
    Vector(usize),
}

impl Slot {
    fn register(self, register: Register) -> Decoded {
        Decoded::Register(match self {
            Slot::General(size) => general(register, size),
            Slot::Vector(_) => vector(register),
        })
    }

    fn operand(self, operand: Operand) -> Decoded {
        match (operand, self) {
            (Operand::Register(register), _) => self.register(register),
            (_, Slot::General(size)) => memory(operand, bytes(size)),
            (_, Slot::Vector(bytes)) => memory(operand, bytes),
        }
    }

    fn all(self) -> impl Iterator<Item = Register> {
        let count = if matches!(self, Slot::Vector(_)) { 2 } else { 16 };
        registers().take(count)
    }
}

/// A function that writes a form with its operands.
type Write = dyn Fn(&mut Assembler, Register, Operand);

/// A form with a register and a register or memory operand.
struct Form {
    mnemonic: Mnemonic,
    /// The register operand, and the other one.
    slots: [Slot; 2],
    /// Whether the register is the second operand.
    is_reversed: bool,
    has_registers: bool,
    has_memory: bool,
    write: Box<Write>,
}

impl Form {
    fn new(
        mnemonic: Mnemonic,
        slots: [Slot; 2],
        write: impl Fn(&mut Assembler, Register, Operand) + 'static,
    ) -> Form {
        let write = Box::new(write);
        Form { mnemonic, slots, is_reversed: false, has_registers: true, has_memory: true, write }
    }

    fn check(&self) {
        let check = |register: Register, operand: Operand| {
            let decoded = one(|assembler| (self.write)(assembler, register, operand));
            let mut expected = vec![self.slots[0].register(register), self.slots[1].operand(operand)];
            if self.is_reversed {
                expected.reverse();
            }
            let found = (decoded.mnemonic(), operands(&decoded));
            assert_eq!(found, (self.mnemonic, expected), "{register:?}, {operand:?}");
        };
        if self.has_registers {
            for register in self.slots[0].all() {
                self.slots[1].all().for_each(|other| check(register, other.into()));
            }
        }
        if self.has_memory {
            let places = places();
            for (number, register) in self.slots[0].all().enumerate() {
                // Every memory operand with some registers, and every register with some memory operands.
                places.iter().skip(number).step_by(3).for_each(|&place| check(register, place));
            }
        }
    }
}

const LONG: Slot = Slot::General(Size::Long);
const QUAD: Slot = Slot::General(Size::Quad);

fn slot(size: Size) -> Slot {
    Slot::General(size)
}

const ALU: [(Alu, Mnemonic); 6] = [
    (Alu::Add, Mnemonic::Add),
    (Alu::Or, Mnemonic::Or),
    (Alu::And, Mnemonic::And),
    (Alu::Sub, Mnemonic::Sub),
    (Alu::Xor, Mnemonic::Xor),
    (Alu::Cmp, Mnemonic::Cmp),
];

const CONDITIONS: [(Condition, Mnemonic, Mnemonic, Mnemonic); 10] = [
    (Condition::Below, Mnemonic::Jb, Mnemonic::Setb, Mnemonic::Cmovb),
    (Condition::AboveOrEqual, Mnemonic::Jae, Mnemonic::Setae, Mnemonic::Cmovae),
    (Condition::Equal, Mnemonic::Je, Mnemonic::Sete, Mnemonic::Cmove),
    (Condition::NotEqual, Mnemonic::Jne, Mnemonic::Setne, Mnemonic::Cmovne),
    (Condition::BelowOrEqual, Mnemonic::Jbe, Mnemonic::Setbe, Mnemonic::Cmovbe),
    (Condition::Above, Mnemonic::Ja, Mnemonic::Seta, Mnemonic::Cmova),
    (Condition::Less, Mnemonic::Jl, Mnemonic::Setl, Mnemonic::Cmovl),
    (Condition::GreaterOrEqual, Mnemonic::Jge, Mnemonic::Setge, Mnemonic::Cmovge),
    (Condition::LessOrEqual, Mnemonic::Jle, Mnemonic::Setle, Mnemonic::Cmovle),
    (Condition::Greater, Mnemonic::Jg, Mnemonic::Setg, Mnemonic::Cmovg),
];

#[test]
fn moves() {
    for size in [Size::Long, Size::Quad] {
        // Moving a quadword register to itself writes no instruction.
        let load =
            move |assembler: &mut Assembler, to: Register, from: Operand| assembler.load(size, to, from);
        Form { has_registers: size == Size::Long, ..Form::new(Mnemonic::Mov, [slot(size); 2], load) }.check();
    }
    for size in [Size::Byte, Size::Word, Size::Long, Size::Quad] {
        let form = Form::new(Mnemonic::Mov, [slot(size); 2], move |assembler, from, to| {
            assembler.store(size, to, from);
        });
        Form { is_reversed: true, has_registers: false, ..form }.check();
    }
    for (to, from) in registers().flat_map(|to| registers().map(move |from| (to, from))) {
        let written = disassemble(|assembler| {
            assembler.load(Size::Quad, to, from);
            assembler.store(Size::Quad, to, from);
        });
        let expected: Vec<Decoded> = [to, from].map(|register| QUAD.register(register)).into();
        assert_eq!(written.len(), if to == from { 0 } else { 2 });
        assert!(written.iter().all(|one| one.mnemonic() == Mnemonic::Mov && operands(one) == expected));
    }
}

#[test]
fn extensions() {
    for (size, mnemonic, to) in [
        (Size::Byte, Mnemonic::Movzx, Size::Long),
        (Size::Word, Mnemonic::Movzx, Size::Long),
        (Size::Long, Mnemonic::Mov, Size::Long),
        (Size::Quad, Mnemonic::Mov, Size::Quad),
    ] {
        Form::new(mnemonic, [slot(to), slot(size)], move |assembler, to, from| {
            assembler.load_zero_extended(size, to, from);
        })
        .check();
    }
    for (size, mnemonic) in [
        (Size::Byte, Mnemonic::Movsx),
        (Size::Word, Mnemonic::Movsx),
        (Size::Long, Mnemonic::Movsxd),
        (Size::Quad, Mnemonic::Mov),
    ] {
        Form::new(mnemonic, [QUAD, slot(size)], move |assembler, to, from| {
            assembler.load_sign_extended(size, to, from);
        })
        .check();
    }
}

#[test]
fn arithmetic() {
    for size in [Size::Long, Size::Quad] {
        for (operation, mnemonic) in ALU {
            Form::new(mnemonic, [slot(size); 2], move |assembler, to, from| {
                assembler.alu(operation, size, to, from);
            })
            .check();
        }
        Form::new(Mnemonic::Imul, [slot(size); 2], move |assembler, to, by| {
            assembler.multiply(size, to, by);
        })
        .check();
    }
    for (what, mnemonic) in [
        (BitCount::Ones, Mnemonic::Popcnt),
        (BitCount::TrailingZeros, Mnemonic::Tzcnt),
        (BitCount::LeadingZeros, Mnemonic::Lzcnt),
    ] {
        Form::new(mnemonic, [QUAD; 2], move |assembler, to, of| assembler.count_bits(what, to, of)).check();
    }
    for (condition, _, _, mnemonic) in CONDITIONS {
        Form::new(mnemonic, [QUAD; 2], move |assembler, to, from| {
            assembler.move_if(condition, to, from);
        })
        .check();
    }
}

/// lea computes an address, so the disassembler gives its operand no size.
#[test]
fn addresses() {
    for size in [Size::Long, Size::Quad] {
        let form = Form::new(Mnemonic::Lea, [slot(size), Slot::Vector(0)], move |assembler, to, of| {
            assembler.address(size, to, of);
        });
        Form { has_registers: false, ..form }.check();
    }
}

/// Forms with one operand in a register or in memory, and optionally a constant.
#[test]
fn single_operands() {
    let check = |operand: Operand, mnemonic, slot: Slot, constant: Option<i64>, decoded: Instruction| {
        let mut expected = vec![slot.operand(operand)];
        expected.extend(constant.map(Decoded::Constant));
        assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, expected), "{operand:?}");
    };
    let places = places();
    let in_registers = registers().map(Operand::Register);
    let all: Vec<Operand> = in_registers.chain(places.iter().copied()).collect();
    for &operand in &all {
        for (unary, mnemonic) in [(Unary::Not, Mnemonic::Not), (Unary::Multiply, Mnemonic::Mul)] {
            check(operand, mnemonic, QUAD, None, one(|assembler| assembler.unary(unary, operand)));
        }
        check(operand, Mnemonic::Inc, QUAD, None, one(|assembler| assembler.increment(operand)));
        check(operand, Mnemonic::Jmp, QUAD, None, one(|assembler| assembler.jump_through(operand)));
        check(operand, Mnemonic::Call, QUAD, None, one(|assembler| assembler.call_through(operand)));
        for bits in [1, 0x7f, 0x80, 0xff] {
            let (slot, value) = (slot(Size::Byte), Some(i64::from(bits as i8)));
            check(operand, Mnemonic::Test, slot, value, one(|code| code.test_bits(operand, bits)));
            check(operand, Mnemonic::Or, slot, value, one(|code| code.set_bits(operand, bits)));
        }
        for value in [0, 1, -1, i32::MAX, i32::MIN] {
            let decoded = one(|assembler| assembler.store_constant(operand, value));
            check(operand, Mnemonic::Mov, QUAD, Some(value.into()), decoded);
        }
        for (operation, mnemonic) in ALU {
            for value in [0, 127, 128, -128, -129, i32::MAX, i32::MIN] {
                let decoded = one(|code| code.alu_constant(operation, Size::Quad, operand, value));
                check(operand, mnemonic, QUAD, Some(value.into()), decoded);
                let decoded = one(|code| code.alu_constant(operation, Size::Long, operand, value));
                // The disassembler decodes constants of 32 bits as unsigned.
                let long = if i8::try_from(value).is_ok() { value.into() } else { i64::from(value as u32) };
                check(operand, mnemonic, LONG, Some(long), decoded);
            }
            for value in [0, 127, -128] {
                let decoded = one(|code| code.alu_constant(operation, Size::Byte, operand, value));
                check(operand, mnemonic, slot(Size::Byte), Some(value.into()), decoded);
            }
        }
    }
    for register in registers() {
        let operand = Operand::Register(register);
        for (condition, _, mnemonic, _) in CONDITIONS {
            let decoded = one(|assembler| assembler.set(condition, register));
            check(operand, mnemonic, slot(Size::Byte), None, decoded);
        }
        check(operand, Mnemonic::Push, QUAD, None, one(|assembler| assembler.push(register)));
        check(operand, Mnemonic::Pop, QUAD, None, one(|assembler| assembler.pop(register)));
        for size in [Size::Long, Size::Quad] {
            check(operand, Mnemonic::Neg, slot(size), None, one(|code| code.negate(size, register)));
            let decoded = one(|assembler| assembler.test(size, register));
            assert_eq!(decoded.mnemonic(), Mnemonic::Test);
            assert_eq!(operands(&decoded), [slot(size).register(register); 2]);
        }
    }
}

#[test]
fn shifts() {
    let kinds =
        [(Shift::Left, Mnemonic::Shl), (Shift::Right, Mnemonic::Shr), (Shift::Arithmetic, Mnemonic::Sar)];
    for ((shift, mnemonic), register) in
        kinds.iter().flat_map(|&kind| registers().map(move |one| (kind, one)))
    {
        for (size, by) in [(Size::Long, 1), (Size::Long, 31), (Size::Quad, 2), (Size::Quad, 63)] {
            let decoded = one(|assembler| assembler.shift(shift, size, register, by));
            let expected = [slot(size).register(register), Decoded::Constant(by.into())];
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, expected.into()));
        }
        assert_eq!(disassemble(|assembler| assembler.shift(shift, Size::Quad, register, 0)), []);
        let decoded = one(|assembler| assembler.shift_by_rcx(shift, register));
        let expected = [QUAD.register(register), Decoded::Register(X86::CL)];
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
        let is_low = decoded.op_register(0) == general(register, Size::Long);
        assert!(is_low || decoded.op_register(0) == general(register, Size::Quad));
        assert_eq!(operands(&decoded)[1], Decoded::Constant(value as i64), "{value:#x}");
        assert!(!is_low || value >> 32 == 0);
    }
    for register in registers() {
        let decoded = one(|assembler| assembler.zero(register));
        assert_eq!(decoded.mnemonic(), Mnemonic::Xor);
        assert_eq!(operands(&decoded), [LONG.register(register); 2]);
    }
}

#[test]
fn vectors() {
    let double = Slot::Vector(8);
    for (operation, mnemonic) in [
        (Vector::LOAD, Mnemonic::Movsd),
        (Vector::ADD, Mnemonic::Addsd),
        (Vector::SUBTRACT, Mnemonic::Subsd),
        (Vector::MULTIPLY, Mnemonic::Mulsd),
        (Vector::DIVIDE, Mnemonic::Divsd),
        (Vector::SQUARE_ROOT, Mnemonic::Sqrtsd),
        (Vector::COMPARE, Mnemonic::Ucomisd),
    ] {
        Form::new(mnemonic, [double; 2], move |code, to, from| code.vector(operation, to, from)).check();
    }
    for (operation, mnemonic, slots) in [
        (Vector::WIDEN, Mnemonic::Cvtss2sd, [double, Slot::Vector(4)]),
        (Vector::FROM_INTEGER, Mnemonic::Cvtsi2sd, [double, QUAD]),
        (Vector::TO_INTEGER, Mnemonic::Cvttsd2si, [QUAD, double]),
        (Vector::SET_LONG, Mnemonic::Movd, [double, LONG]),
        (Vector::SET, Mnemonic::Movq, [double, QUAD]),
        (Vector::GREATER_BYTES, Mnemonic::Pmaxub, [double, Slot::Vector(16)]),
        (Vector::EQUAL_BYTES, Mnemonic::Pcmpeqb, [double, Slot::Vector(16)]),
    ] {
        Form::new(mnemonic, slots, move |code, to, from| code.vector(operation, to, from)).check();
    }
    let get = Form::new(Mnemonic::Movq, [double, QUAD], |code, from, to| code.vector(Vector::GET, from, to));
    Form { is_reversed: true, ..get }.check();
    let bits = Form::new(Mnemonic::Pmovmskb, [LONG, double], |assembler, to, from| {
        assembler.vector(Vector::HIGHEST_BITS, to, from);
    });
    Form { has_memory: false, ..bits }.check();
    for place in places() {
        let Operand::Memory(place) = place else { continue };
        for (decoded, mnemonic) in [
            (one(|assembler| assembler.load_float_status(place)), Mnemonic::Ldmxcsr),
            (one(|assembler| assembler.store_float_status(place)), Mnemonic::Stmxcsr),
        ] {
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, vec![memory(place.into(), 4)]));
        }
    }
    for (to, a, b) in [(RAX, RBX, RSI), (RDI, R9, RAX), (R15, RSP, R8), (RSP, R15, RDI)] {
        let decoded = disassemble(|assembler| assembler.compare_bytes(to, a, b));
        let found: Vec<_> = decoded.iter().map(|one| (one.mnemonic(), operands(one))).collect();
        let [first, second] = [XMM0, Register(1)].map(|register| Decoded::Register(vector(register)));
        let expected = [
            (Mnemonic::Movq, vec![first, QUAD.register(a)]),
            (Mnemonic::Movq, vec![second, QUAD.register(b)]),
            (Mnemonic::Pmaxub, vec![second, first]),
            (Mnemonic::Pcmpeqb, vec![second, first]),
            (Mnemonic::Pmovmskb, vec![LONG.register(to), second]),
            (Mnemonic::Movzx, vec![LONG.register(to), slot(Size::Byte).register(to)]),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn atomic_and_flags() {
    for place in places() {
        let Operand::Memory(place) = place else { continue };
        for (size, register) in
            [Size::Long, Size::Quad].iter().flat_map(|&size| registers().map(move |r| (size, r)))
        {
            let decoded = one(|assembler| assembler.compare_and_exchange(size, place, register));
            assert!(decoded.has_lock_prefix());
            let expected = [memory(place.into(), bytes(size)), slot(size).register(register)];
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
            assembler.place(label);
            assembler.ret();
        });
        assert_eq!(operands(&forward[0]), [Decoded::Target(forward.last().unwrap().ip())]);
        assert_eq!(forward[0].mnemonic(), mnemonic);
        assert_eq!(forward[0].len() == 2, filler <= 127, "{filler}");
        let backward = disassemble(|assembler| {
            let label = assembler.label();
            assembler.place(label);
            (0..filler).for_each(|_| assembler.halt());
            jump(assembler, label);
        });
        let last = backward.last().unwrap();
        assert_eq!((last.mnemonic(), operands(last)), (mnemonic, vec![Decoded::Target(ORIGIN)]));
        assert_eq!(last.len() == 2, filler <= 126, "{filler}");
    }
    for target in [ORIGIN, ORIGIN + (1 << 31), ORIGIN - (1 << 31) + 5] {
        for (decoded, mnemonic) in [
            (one(|assembler| assembler.jump_to(target)), Mnemonic::Jmp),
            (one(|assembler| assembler.call_to(target)), Mnemonic::Call),
        ] {
            assert_eq!((decoded.mnemonic(), operands(&decoded)), (mnemonic, vec![Decoded::Target(target)]));
        }
    }
    for (condition, mnemonic, ..) in CONDITIONS {
        let decoded = disassemble(|assembler| {
            assembler.halt();
            assembler.jump_into(condition, 1);
        });
        assert_eq!((decoded[1].mnemonic(), operands(&decoded[1])), (mnemonic, vec![Decoded::Target(ORIGIN)]));
        assert_eq!(condition.opposite().opposite(), condition);
    }
}
