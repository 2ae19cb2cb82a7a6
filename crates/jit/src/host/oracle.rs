//! The code that the assembler should have written, by an independent disassembler (iced-x86): the forms of instructions with two
//! operands as a table, and the decoding of an instruction in the terms of the assembler.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register as X86};

use super::assembler::*;
use super::code::MachineCode;

/// The address of the code.
pub(crate) const ORIGIN: u64 = 0x7f00_0000_0000;

/// An operand as the disassembler decodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodedOperand {
    Register(X86),
    /// Base, index, scale, displacement, and bytes accessed.
    Memory(X86, X86, u32, u64, usize),
    /// Sign-extended.
    Constant(i64),
    Target(u64),
}

/// Decodes code. Every byte must belong to a valid instruction.
pub(crate) fn disassemble(code: &MachineCode) -> Vec<Instruction> {
    let decoder = Decoder::with_ip(64, &code.bytes, ORIGIN, DecoderOptions::NONE);
    let decoded: Vec<Instruction> = decoder.into_iter().collect();
    assert!(decoded.iter().all(|instruction| !instruction.is_invalid()), "{:x?}", code.bytes);
    assert_eq!(decoded.iter().map(Instruction::len).sum::<usize>(), code.bytes.len(), "{:x?}", code.bytes);
    decoded
}

/// The operands of an instruction.
pub(crate) fn operands(instruction: &Instruction) -> Vec<DecodedOperand> {
    let operand = |index: u32| match instruction.op_kind(index) {
        OpKind::Register => DecodedOperand::Register(instruction.op_register(index)),
        OpKind::Memory => {
            let bytes = instruction.memory_size().size();
            let (base, index) = (instruction.memory_base(), instruction.memory_index());
            let scale = instruction.memory_index_scale();
            DecodedOperand::Memory(base, index, scale, instruction.memory_displacement64(), bytes)
        }
        OpKind::NearBranch64 => DecodedOperand::Target(instruction.near_branch64()),
        OpKind::Immediate8 => DecodedOperand::Constant(instruction.immediate8() as i8 as i64),
        OpKind::Immediate32 => DecodedOperand::Constant(i64::from(instruction.immediate32())),
        OpKind::Immediate64 => DecodedOperand::Constant(instruction.immediate64() as i64),
        OpKind::Immediate8to32 => DecodedOperand::Constant(instruction.immediate8to32().into()),
        OpKind::Immediate8to64 => DecodedOperand::Constant(instruction.immediate8to64()),
        OpKind::Immediate32to64 => DecodedOperand::Constant(instruction.immediate32to64()),
        kind => panic!("{kind:?} in {instruction:?}"),
    };
    (0..instruction.op_count()).map(operand).collect()
}

/// The general-purpose registers.
pub(crate) fn registers() -> impl Iterator<Item = HostRegister> {
    (0..16).map(HostRegister)
}

/// The disassembler's name of a register.
pub(crate) fn general(register: HostRegister, size: OperandSize) -> X86 {
    let first = match size {
        // With a REX prefix, numbers 4 to 7 of byte registers are spl to dil instead of ah to bh.
        OperandSize::Byte if register.0 < 4 => X86::AL,
        OperandSize::Byte => return X86::SPL + u32::from(register.0 - 4),
        OperandSize::Word => X86::AX,
        OperandSize::Long => X86::EAX,
        OperandSize::Quad => X86::RAX,
    };
    first + u32::from(register.0)
}

/// The disassembler's name of a vector register.
pub(crate) fn vector(register: HostRegister) -> X86 {
    X86::XMM0 + u32::from(register.0)
}

/// The decoding of a memory operand of this size in bytes.
pub(crate) fn memory(operand: Operand, bytes: usize) -> DecodedOperand {
    match operand {
        Operand::Register(_) => panic!("a register"),
        Operand::Memory(MemoryOperand { base, displacement }) => DecodedOperand::Memory(
            general(base, OperandSize::Quad),
            X86::None,
            1,
            displacement as i64 as u64,
            bytes,
        ),
        Operand::Indexed(base, index, scale, displacement) => {
            let [base, index] = [base, index].map(|register| general(register, OperandSize::Quad));
            DecodedOperand::Memory(base, index, 1 << scale, displacement as i64 as u64, bytes)
        }
        Operand::Near(target) => DecodedOperand::Memory(X86::RIP, X86::None, 1, target, bytes),
    }
}

/// The size in bytes.
pub(crate) const fn bytes(size: OperandSize) -> usize {
    match size {
        OperandSize::Byte => 1,
        OperandSize::Word => 2,
        OperandSize::Long => 4,
        OperandSize::Quad => 8,
    }
}

/// An operand of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandSlot {
    /// A general-purpose register, with its size.
    General(OperandSize),
    /// A vector register, or this many bytes of memory.
    Vector(usize),
}

impl OperandSlot {
    /// The decoding of a register.
    pub(crate) fn register(self, register: HostRegister) -> DecodedOperand {
        DecodedOperand::Register(match self {
            OperandSlot::General(size) => general(register, size),
            OperandSlot::Vector(_) => vector(register),
        })
    }

    /// The decoding of a register or memory operand.
    pub(crate) fn operand(self, operand: Operand) -> DecodedOperand {
        match (operand, self) {
            (Operand::Register(register), _) => self.register(register),
            (_, OperandSlot::General(size)) => memory(operand, bytes(size)),
            (_, OperandSlot::Vector(bytes)) => memory(operand, bytes),
        }
    }

    /// All registers that may stand here.
    pub(crate) fn all(self) -> impl Iterator<Item = HostRegister> {
        let count = if matches!(self, OperandSlot::Vector(_)) { 2 } else { 16 };
        registers().take(count)
    }
}

/// A function that writes a form with its operands.
type WriteForm = dyn Fn(&mut Assembler, HostRegister, Operand);

/// A form with a register and a register or memory operand.
pub(crate) struct OracleForm {
    mnemonic: Mnemonic,
    /// The register operand, and the other one.
    pub(crate) slots: [OperandSlot; 2],
    /// Whether the register is the second operand.
    is_reversed: bool,
    pub(crate) has_registers: bool,
    pub(crate) has_memory: bool,
    pub(crate) write: Box<WriteForm>,
}

impl OracleForm {
    fn new(
        mnemonic: Mnemonic,
        slots: [OperandSlot; 2],
        write: impl Fn(&mut Assembler, HostRegister, Operand) + 'static,
    ) -> OracleForm {
        let write = Box::new(write);
        OracleForm { mnemonic, slots, is_reversed: false, has_registers: true, has_memory: true, write }
    }

    /// The decoding of the form with these operands.
    pub(crate) fn expected(
        &self,
        register: HostRegister,
        operand: Operand,
    ) -> (Mnemonic, Vec<DecodedOperand>) {
        let mut expected = vec![self.slots[0].register(register), self.slots[1].operand(operand)];
        if self.is_reversed {
            expected.reverse();
        }
        (self.mnemonic, expected)
    }
}

pub(crate) const LONG: OperandSlot = OperandSlot::General(OperandSize::Long);
pub(crate) const QUAD: OperandSlot = OperandSlot::General(OperandSize::Quad);

pub(crate) fn slot(size: OperandSize) -> OperandSlot {
    OperandSlot::General(size)
}

pub(crate) const ALU: [(Alu, Mnemonic); 6] = [
    (Alu::Add, Mnemonic::Add),
    (Alu::Or, Mnemonic::Or),
    (Alu::And, Mnemonic::And),
    (Alu::Sub, Mnemonic::Sub),
    (Alu::Xor, Mnemonic::Xor),
    (Alu::Cmp, Mnemonic::Cmp),
];

/// The conditions, with the mnemonics of a jump, a set and a move.
pub(crate) const CONDITIONS: [(Condition, Mnemonic, Mnemonic, Mnemonic); 12] = [
    (Condition::Below, Mnemonic::Jb, Mnemonic::Setb, Mnemonic::Cmovb),
    (Condition::AboveOrEqual, Mnemonic::Jae, Mnemonic::Setae, Mnemonic::Cmovae),
    (Condition::Equal, Mnemonic::Je, Mnemonic::Sete, Mnemonic::Cmove),
    (Condition::NotEqual, Mnemonic::Jne, Mnemonic::Setne, Mnemonic::Cmovne),
    (Condition::BelowOrEqual, Mnemonic::Jbe, Mnemonic::Setbe, Mnemonic::Cmovbe),
    (Condition::Above, Mnemonic::Ja, Mnemonic::Seta, Mnemonic::Cmova),
    (Condition::Unordered, Mnemonic::Jp, Mnemonic::Setp, Mnemonic::Cmovp),
    (Condition::Ordered, Mnemonic::Jnp, Mnemonic::Setnp, Mnemonic::Cmovnp),
    (Condition::Less, Mnemonic::Jl, Mnemonic::Setl, Mnemonic::Cmovl),
    (Condition::GreaterOrEqual, Mnemonic::Jge, Mnemonic::Setge, Mnemonic::Cmovge),
    (Condition::LessOrEqual, Mnemonic::Jle, Mnemonic::Setle, Mnemonic::Cmovle),
    (Condition::Greater, Mnemonic::Jg, Mnemonic::Setg, Mnemonic::Cmovg),
];

/// All forms with two operands.
pub(crate) fn forms() -> Vec<OracleForm> {
    [moves(), extensions(), arithmetic(), vectors()].into_iter().flatten().collect()
}

fn moves() -> Vec<OracleForm> {
    let mut forms = Vec::new();
    for size in [OperandSize::Long, OperandSize::Quad] {
        // Moving a quadword register to itself writes no instruction.
        let load =
            OracleForm::new(Mnemonic::Mov, [slot(size); 2], move |code, to, from| code.load(size, to, from));
        forms.push(OracleForm { has_registers: size == OperandSize::Long, ..load });
        // The disassembler gives the operand of lea, an address, no size.
        let address =
            OracleForm::new(Mnemonic::Lea, [slot(size), OperandSlot::Vector(0)], move |code, to, of| {
                code.address(size, to, of);
            });
        forms.push(OracleForm { has_registers: false, ..address });
    }
    for size in [OperandSize::Byte, OperandSize::Word, OperandSize::Long, OperandSize::Quad] {
        let store = move |code: &mut Assembler, from: HostRegister, to: Operand| code.store(size, to, from);
        let store = OracleForm::new(Mnemonic::Mov, [slot(size); 2], store);
        forms.push(OracleForm { is_reversed: true, has_registers: false, ..store });
    }
    forms
}

fn extensions() -> Vec<OracleForm> {
    let zero = [
        (OperandSize::Byte, Mnemonic::Movzx, OperandSize::Long),
        (OperandSize::Word, Mnemonic::Movzx, OperandSize::Long),
        (OperandSize::Long, Mnemonic::Mov, OperandSize::Long),
        (OperandSize::Quad, Mnemonic::Mov, OperandSize::Quad),
    ]
    .map(|(size, mnemonic, to)| {
        OracleForm::new(mnemonic, [slot(to), slot(size)], move |code, to, from| {
            code.load_zero_extended(size, to, from);
        })
    });
    let sign = [
        (OperandSize::Byte, Mnemonic::Movsx),
        (OperandSize::Word, Mnemonic::Movsx),
        (OperandSize::Long, Mnemonic::Movsxd),
        (OperandSize::Quad, Mnemonic::Mov),
    ]
    .map(|(size, mnemonic)| {
        OracleForm::new(mnemonic, [QUAD, slot(size)], move |code, to, from| {
            code.load_sign_extended(size, to, from);
        })
    });
    zero.into_iter().chain(sign).collect()
}

fn arithmetic() -> Vec<OracleForm> {
    let mut forms = Vec::new();
    for size in [OperandSize::Long, OperandSize::Quad] {
        forms.extend(ALU.map(|(operation, mnemonic)| {
            OracleForm::new(mnemonic, [slot(size); 2], move |code, to, from| {
                code.alu(operation, size, to, from)
            })
        }));
        forms.push(OracleForm::new(Mnemonic::Imul, [slot(size); 2], move |code, to, by| {
            code.multiply(size, to, by);
        }));
    }
    forms.extend(
        [
            (BitCount::Ones, Mnemonic::Popcnt),
            (BitCount::TrailingZeros, Mnemonic::Tzcnt),
            (BitCount::LeadingZeros, Mnemonic::Lzcnt),
        ]
        .map(|(what, mnemonic)| {
            OracleForm::new(mnemonic, [QUAD; 2], move |code, to, of| code.count_bits(what, to, of))
        }),
    );
    forms.extend(CONDITIONS.map(|(condition, _, _, mnemonic)| {
        OracleForm::new(mnemonic, [QUAD; 2], move |code, to, from| code.move_if(condition, to, from))
    }));
    forms
}

fn vectors() -> Vec<OracleForm> {
    const DOUBLE: OperandSlot = OperandSlot::Vector(8);
    const SINGLE: OperandSlot = OperandSlot::Vector(4);
    const ALL: OperandSlot = OperandSlot::Vector(16);
    let table = [
        (Vector::LOAD, Mnemonic::Movsd, [DOUBLE, DOUBLE]),
        (Vector::ADD, Mnemonic::Addsd, [DOUBLE, DOUBLE]),
        (Vector::SUBTRACT, Mnemonic::Subsd, [DOUBLE, DOUBLE]),
        (Vector::MULTIPLY, Mnemonic::Mulsd, [DOUBLE, DOUBLE]),
        (Vector::DIVIDE, Mnemonic::Divsd, [DOUBLE, DOUBLE]),
        (Vector::SQUARE_ROOT, Mnemonic::Sqrtsd, [DOUBLE, DOUBLE]),
        (Vector::COMPARE, Mnemonic::Ucomisd, [DOUBLE, DOUBLE]),
        (Vector::WIDEN, Mnemonic::Cvtss2sd, [DOUBLE, SINGLE]),
        (Vector::NARROW, Mnemonic::Cvtsd2ss, [SINGLE, DOUBLE]),
        (Vector::LOAD_SINGLE, Mnemonic::Movss, [SINGLE, SINGLE]),
        (Vector::ADD_SINGLE, Mnemonic::Addss, [SINGLE, SINGLE]),
        (Vector::SUBTRACT_SINGLE, Mnemonic::Subss, [SINGLE, SINGLE]),
        (Vector::MULTIPLY_SINGLE, Mnemonic::Mulss, [SINGLE, SINGLE]),
        (Vector::DIVIDE_SINGLE, Mnemonic::Divss, [SINGLE, SINGLE]),
        (Vector::SQUARE_ROOT_SINGLE, Mnemonic::Sqrtss, [SINGLE, SINGLE]),
        (Vector::FROM_INTEGER, Mnemonic::Cvtsi2sd, [DOUBLE, QUAD]),
        (Vector::TO_INTEGER, Mnemonic::Cvttsd2si, [QUAD, DOUBLE]),
        (Vector::SET_LONG, Mnemonic::Movd, [DOUBLE, LONG]),
        (Vector::SET, Mnemonic::Movq, [DOUBLE, QUAD]),
        (Vector::GET, Mnemonic::Movq, [DOUBLE, QUAD]),
        (Vector::GREATER_BYTES, Mnemonic::Pmaxub, [DOUBLE, ALL]),
        (Vector::EQUAL_BYTES, Mnemonic::Pcmpeqb, [DOUBLE, ALL]),
        (Vector::HIGHEST_BITS, Mnemonic::Pmovmskb, [LONG, DOUBLE]),
    ];
    let form = |(operation, mnemonic, slots)| {
        let form = OracleForm::new(mnemonic, slots, move |code, register, operand| {
            code.vector(operation, register, operand);
        });
        OracleForm {
            is_reversed: operation == Vector::GET,
            has_memory: operation != Vector::HIGHEST_BITS,
            ..form
        }
    };
    table.map(form).into()
}
