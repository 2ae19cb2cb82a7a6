//! x86-64 machine code: the few forms of instructions that the compiler writes (AMD64 Architecture
//! Programmer's Manual, volume 3: encoding in chapter 1, opcodes in appendix A).

use super::code::{Distance, Jump, Label, MachineCode};
use super::vector::XMM1;
pub(crate) use super::vector::{Vector, XMM0};

/// A general-purpose register by its number in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRegister(pub(crate) u8);

pub(crate) const RAX: HostRegister = HostRegister(0);
pub(crate) const RCX: HostRegister = HostRegister(1);
pub(crate) const RDX: HostRegister = HostRegister(2);
pub(crate) const RBX: HostRegister = HostRegister(3);
pub(crate) const RSP: HostRegister = HostRegister(4);
pub(crate) const RBP: HostRegister = HostRegister(5);
pub(crate) const RSI: HostRegister = HostRegister(6);
pub(crate) const RDI: HostRegister = HostRegister(7);
pub(crate) const R8: HostRegister = HostRegister(8);
pub(crate) const R9: HostRegister = HostRegister(9);
pub(crate) const R10: HostRegister = HostRegister(10);
pub(crate) const R11: HostRegister = HostRegister(11);
pub(crate) const R12: HostRegister = HostRegister(12);
pub(crate) const R13: HostRegister = HostRegister(13);
pub(crate) const R14: HostRegister = HostRegister(14);
pub(crate) const R15: HostRegister = HostRegister(15);

/// A memory operand: a register plus a displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryOperand {
    pub(crate) base: HostRegister,
    pub(crate) displacement: i32,
}

/// The second operand of an instruction, or its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(HostRegister),
    Memory(MemoryOperand),
    /// Base plus index times 1, 2, 4 or 8 (as a power of two) plus displacement.
    Indexed(HostRegister, HostRegister, u8, i32),
    /// An absolute address within reach of a relative displacement.
    Near(u64),
}

impl From<HostRegister> for Operand {
    fn from(register: HostRegister) -> Operand {
        Operand::Register(register)
    }
}

impl From<MemoryOperand> for Operand {
    fn from(operand: MemoryOperand) -> Operand {
        Operand::Memory(operand)
    }
}

/// The operand size of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandSize {
    Byte,
    Word,
    Long,
    Quad,
}

/// Arithmetic with two operands, by its number in the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shifts, by their number in the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    RotateLeft = 0,
    RotateRight = 1,
    Left = 4,
    Right = 5,
    Arithmetic = 7,
}

/// Bit counts, by the opcode; the count is 64 if all bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitCount {
    Ones = 0xb8,
    TrailingZeros = 0xbc,
    LeadingZeros = 0xbd,
}

/// Operations with one operand (opcode f7), by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Not = 2,
    /// rdx:rax = rax * operand, unsigned.
    Multiply = 4,
    /// The same, signed.
    MultiplySigned = 5,
    /// rax = rdx:rax / operand, unsigned; rdx = the remainder.
    Divide = 6,
    /// The same, signed.
    DivideSigned = 7,
}

/// Conditions, by their number in the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Below = 2,
    AboveOrEqual = 3,
    Equal = 4,
    NotEqual = 5,
    BelowOrEqual = 6,
    Above = 7,
    /// Of a comparison of floating-point numbers: one is not a number.
    Unordered = 10,
    Ordered = 11,
    Less = 12,
    GreaterOrEqual = 13,
    LessOrEqual = 14,
    Greater = 15,
}

impl Condition {
    pub(crate) fn opposite(self) -> Condition {
        use Condition::*;
        match self {
            Below => AboveOrEqual,
            AboveOrEqual => Below,
            Equal => NotEqual,
            NotEqual => Equal,
            BelowOrEqual => Above,
            Above => BelowOrEqual,
            Unordered => Ordered,
            Ordered => Unordered,
            Less => GreaterOrEqual,
            GreaterOrEqual => Less,
            LessOrEqual => Greater,
            Greater => LessOrEqual,
        }
    }
}

/// Machine code that is being written. It will run at `origin`.
pub(crate) struct Assembler {
    origin: u64,
    bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    jumps: Vec<Jump>,
    distances: Vec<Distance>,
}

impl Assembler {
    /// Assembles code for an address.
    pub(crate) fn new(origin: u64) -> Assembler {
        let (labels, jumps, distances) = (Vec::new(), Vec::new(), Vec::new());
        Assembler { origin, bytes: Vec::new(), labels, jumps, distances }
    }

    /// Completes the code.
    pub(crate) fn finish(self) -> MachineCode {
        MachineCode::complete(self.origin, &self.bytes, self.labels, self.jumps, &self.distances)
    }

    /// The present position. It may move until the code is complete.
    pub(crate) fn position(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    /// Places a label at the present position.
    pub(crate) fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(self.bytes.len());
    }

    /// Moves a register, or loads it from memory.
    pub(crate) fn load(&mut self, size: OperandSize, to: HostRegister, from: impl Into<Operand>) {
        let from = from.into();
        if size == OperandSize::Quad && from == Operand::Register(to) {
            return;
        }
        self.instruction(size, &[0x8b], to.0, from, 0);
    }

    /// Moves a register, or stores it in memory.
    pub(crate) fn store(&mut self, size: OperandSize, to: impl Into<Operand>, from: HostRegister) {
        let to = to.into();
        if size == OperandSize::Quad && to == Operand::Register(from) {
            return;
        }
        self.instruction(size, if size == OperandSize::Byte { &[0x88] } else { &[0x89] }, from.0, to, 0);
    }

    /// Stores a constant, sign-extended from 32 bits.
    pub(crate) fn store_constant(&mut self, to: impl Into<Operand>, value: i32) {
        self.instruction(OperandSize::Quad, &[0xc7], 0, to.into(), 4);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Loads a smaller operand, zero-extended.
    pub(crate) fn load_zero_extended(
        &mut self,
        size: OperandSize,
        to: HostRegister,
        from: impl Into<Operand>,
    ) {
        match size {
            OperandSize::Byte => {
                self.extending(OperandSize::Byte, OperandSize::Long, &[0x0f, 0xb6], to, from.into())
            }
            OperandSize::Word => {
                self.extending(OperandSize::Word, OperandSize::Long, &[0x0f, 0xb7], to, from.into())
            }
            OperandSize::Long | OperandSize::Quad => self.instruction(size, &[0x8b], to.0, from.into(), 0),
        }
    }

    /// Loads a smaller operand, sign-extended.
    pub(crate) fn load_sign_extended(
        &mut self,
        size: OperandSize,
        to: HostRegister,
        from: impl Into<Operand>,
    ) {
        match size {
            OperandSize::Byte => {
                self.extending(OperandSize::Byte, OperandSize::Quad, &[0x0f, 0xbe], to, from.into())
            }
            OperandSize::Word => {
                self.extending(OperandSize::Word, OperandSize::Quad, &[0x0f, 0xbf], to, from.into())
            }
            OperandSize::Long => self.instruction(OperandSize::Quad, &[0x63], to.0, from.into(), 0),
            OperandSize::Quad => self.instruction(OperandSize::Quad, &[0x8b], to.0, from.into(), 0),
        }
    }

    /// Sets a register to zero. Flags change.
    pub(crate) fn zero(&mut self, register: HostRegister) {
        self.alu(Alu::Xor, OperandSize::Long, register, register);
    }

    /// Loads a constant. Flags are unchanged.
    pub(crate) fn constant(&mut self, to: HostRegister, value: u64) {
        if let Ok(low) = u32::try_from(value) {
            self.prefix(OperandSize::Long, 0, Operand::Register(to), false);
            self.bytes.push(0xb8 | to.0 & 7);
            self.bytes.extend(low.to_le_bytes());
        } else if let Ok(low) = i32::try_from(value as i64) {
            self.store_constant(to, low);
        } else {
            self.prefix(OperandSize::Quad, 0, Operand::Register(to), false);
            self.bytes.push(0xb8 | to.0 & 7);
            self.bytes.extend(value.to_le_bytes());
        }
    }

    /// Loads the address of a memory operand.
    pub(crate) fn address(&mut self, size: OperandSize, to: HostRegister, of: impl Into<Operand>) {
        self.instruction(size, &[0x8d], to.0, of.into(), 0);
    }

    pub(crate) fn alu(
        &mut self,
        operation: Alu,
        size: OperandSize,
        to: HostRegister,
        from: impl Into<Operand>,
    ) {
        self.instruction(size, &[(operation as u8) << 3 | 3], to.0, from.into(), 0);
    }

    pub(crate) fn alu_constant(
        &mut self,
        operation: Alu,
        size: OperandSize,
        to: impl Into<Operand>,
        value: i32,
    ) {
        let to = to.into();
        if let Ok(short) = i8::try_from(value) {
            self.instruction(
                size,
                if size == OperandSize::Byte { &[0x80] } else { &[0x83] },
                operation as u8,
                to,
                1,
            );
            self.bytes.push(short as u8);
        } else {
            self.instruction(size, &[0x81], operation as u8, to, 4);
            self.bytes.extend(value.to_le_bytes());
        }
    }

    /// Adds one to a memory operand.
    pub(crate) fn increment(&mut self, to: impl Into<Operand>) {
        self.instruction(OperandSize::Quad, &[0xff], 0, to.into(), 0);
    }

    /// Compares a register with zero.
    pub(crate) fn test(&mut self, size: OperandSize, register: HostRegister) {
        self.instruction(size, &[0x85], register.0, register.into(), 0);
    }

    /// Tests bits of the low byte.
    pub(crate) fn test_bits(&mut self, operand: impl Into<Operand>, bits: u8) {
        self.instruction(OperandSize::Byte, &[0xf6], 0, operand.into(), 1);
        self.bytes.push(bits);
    }

    /// Sets bits of a byte.
    pub(crate) fn set_bits(&mut self, operand: impl Into<Operand>, bits: u8) {
        self.instruction(OperandSize::Byte, &[0x80], 1, operand.into(), 1);
        self.bytes.push(bits);
    }

    pub(crate) fn shift(&mut self, shift: Shift, size: OperandSize, register: HostRegister, by: u8) {
        if by != 0 {
            self.instruction(size, &[0xc1], shift as u8, register.into(), 1);
            self.bytes.push(by);
        }
    }

    /// Shifts by the low bits of rcx.
    pub(crate) fn shift_by_rcx(&mut self, shift: Shift, register: HostRegister) {
        self.instruction(OperandSize::Quad, &[0xd3], shift as u8, register.into(), 0);
    }

    pub(crate) fn negate(&mut self, size: OperandSize, register: HostRegister) {
        self.instruction(size, &[0xf7], 3, register.into(), 0);
    }

    pub(crate) fn unary(&mut self, operation: Unary, operand: impl Into<Operand>) {
        self.instruction(OperandSize::Quad, &[0xf7], operation as u8, operand.into(), 0);
    }

    pub(crate) fn multiply(&mut self, size: OperandSize, to: HostRegister, by: impl Into<Operand>) {
        self.instruction(size, &[0x0f, 0xaf], to.0, by.into(), 0);
    }

    pub(crate) fn set(&mut self, condition: Condition, low_byte: HostRegister) {
        self.instruction(OperandSize::Byte, &[0x0f, 0x90 | condition as u8], 0, low_byte.into(), 0);
    }

    pub(crate) fn move_if(&mut self, condition: Condition, to: HostRegister, from: impl Into<Operand>) {
        self.instruction(OperandSize::Quad, &[0x0f, 0x40 | condition as u8], to.0, from.into(), 0);
    }

    pub(crate) fn count_bits(&mut self, what: BitCount, to: HostRegister, of: impl Into<Operand>) {
        self.bytes.push(0xf3);
        self.instruction(OperandSize::Quad, &[0x0f, what as u8], to.0, of.into(), 0);
    }

    /// Compares the eight bytes of two registers: bit i of `to` is set if byte i of `a` is greater than or equal to
    /// that of `b`, unsigned. Clobbers xmm0 and xmm1.
    pub(crate) fn compare_bytes(&mut self, to: HostRegister, a: HostRegister, b: HostRegister) {
        for (operation, register, operand) in [
            (Vector::SET, XMM0, a),
            (Vector::SET, XMM1, b),
            (Vector::GREATER_BYTES, XMM1, XMM0),
            (Vector::EQUAL_BYTES, XMM1, XMM0),
            (Vector::HIGHEST_BITS, to, XMM1),
        ] {
            self.vector(operation, register, operand);
        }
        // The upper halves of the vectors are equal.
        self.load_zero_extended(OperandSize::Byte, to, to);
    }

    pub(crate) fn vector(&mut self, operation: Vector, register: HostRegister, operand: impl Into<Operand>) {
        let Vector(prefix, size, opcode) = operation;
        self.bytes.push(prefix);
        self.instruction(size, &[0x0f, opcode], register.0, operand.into(), 0);
    }

    /// Atomic compare-and-exchange: compares rax with memory; if they are equal, stores a register there and sets the
    /// zero flag.
    pub(crate) fn compare_and_exchange(
        &mut self,
        size: OperandSize,
        operand: MemoryOperand,
        new: HostRegister,
    ) {
        self.bytes.push(0xf0);
        self.instruction(size, &[0x0f, 0xb1], new.0, operand.into(), 0);
    }

    /// A memory fence: earlier writes become visible to other processors before later reads are made.
    pub(crate) fn fence(&mut self) {
        self.bytes.extend([0x0f, 0xae, 0xf0]);
    }

    pub(crate) fn push(&mut self, register: HostRegister) {
        self.prefix(OperandSize::Long, 0, register.into(), false);
        self.bytes.push(0x50 | register.0 & 7);
    }

    pub(crate) fn pop(&mut self, register: HostRegister) {
        self.prefix(OperandSize::Long, 0, register.into(), false);
        self.bytes.push(0x58 | register.0 & 7);
    }

    pub(crate) fn push_flags(&mut self) {
        self.bytes.push(0x9c);
    }

    pub(crate) fn pop_flags(&mut self) {
        self.bytes.push(0x9d);
    }

    /// A privileged instruction, which raises SIGSEGV.
    pub(crate) fn halt(&mut self) {
        self.bytes.push(0xf4);
    }

    pub(crate) fn ret(&mut self) {
        self.bytes.push(0xc3);
    }

    pub(crate) fn jump(&mut self, label: Label) {
        self.jump_to_label(None, label);
    }

    pub(crate) fn jump_if(&mut self, condition: Condition, label: Label) {
        self.jump_to_label(Some(condition), label);
    }

    fn jump_to_label(&mut self, condition: Option<Condition>, to: Label) {
        self.jumps.push(Jump { at: self.bytes.len(), to, condition, is_long: false });
        self.bytes.extend([0; Jump::SHORT]);
    }

    /// Jumps into the preceding instruction, this many bytes before its end.
    pub(crate) fn jump_into(&mut self, condition: Condition, back: u8) {
        self.bytes.extend([0x70 | condition as u8, (back + Jump::SHORT as u8).wrapping_neg()]);
    }

    /// Jumps to an absolute address.
    pub(crate) fn jump_to(&mut self, target: u64) {
        self.bytes.push(0xe9);
        self.distance(target, 0);
    }

    pub(crate) fn call_to(&mut self, target: u64) {
        self.bytes.push(0xe8);
        self.distance(target, 0);
    }

    /// Jumps to the address in the operand.
    pub(crate) fn jump_through(&mut self, operand: impl Into<Operand>) {
        self.instruction(OperandSize::Long, &[0xff], 4, operand.into(), 0);
    }

    /// Calls the address in the operand.
    pub(crate) fn call_through(&mut self, operand: impl Into<Operand>) {
        self.instruction(OperandSize::Long, &[0xff], 2, operand.into(), 0);
    }

    /// The distance to an absolute address from the end of the instruction, which has `trailing` more bytes.
    fn distance(&mut self, target: u64, trailing: usize) {
        self.distances.push(Distance { at: self.bytes.len(), target, trailing });
        self.bytes.extend([0; 4]);
    }

    /// Writes operand-size and REX prefixes.
    fn prefix(&mut self, size: OperandSize, register: u8, operand: Operand, low_bytes: bool) {
        if size == OperandSize::Word {
            self.bytes.push(0x66);
        }
        let (base, index) = match operand {
            Operand::Register(base) | Operand::Memory(MemoryOperand { base, .. }) => (base.0, 0),
            Operand::Indexed(base, index, ..) => (base.0, index.0),
            Operand::Near(_) => (0, 0),
        };
        let wide = u8::from(size == OperandSize::Quad);
        let rex = wide << 3 | (register >> 3) << 2 | (index >> 3) << 1 | base >> 3;
        // Without a REX prefix 4 to 7 are ah, ch, dh and bh.
        let is_plain = matches!(operand, Operand::Register(_));
        let needs = low_bytes && (register >= 4 || is_plain && base >= 4);
        if rex != 0 || needs {
            self.bytes.push(0x40 | rex);
        }
    }

    /// Loads whose source is smaller than their destination.
    fn extending(
        &mut self,
        part: OperandSize,
        size: OperandSize,
        opcode: &[u8],
        to: HostRegister,
        from: Operand,
    ) {
        let low_bytes = part == OperandSize::Byte && matches!(from, Operand::Register(HostRegister(4..)));
        self.prefix(size, to.0, from, low_bytes);
        self.bytes.extend(opcode);
        self.operand(to.0, from, 0);
    }

    /// Writes prefixes, opcode and operands; `trailing` bytes of a constant follow.
    pub(crate) fn instruction(
        &mut self,
        size: OperandSize,
        opcode: &[u8],
        register: u8,
        operand: Operand,
        trailing: usize,
    ) {
        self.prefix(size, register, operand, size == OperandSize::Byte);
        self.bytes.extend(opcode);
        self.operand(register, operand, trailing);
    }

    /// Writes ModRM, SIB and displacement.
    fn operand(&mut self, register: u8, operand: Operand, trailing: usize) {
        let field = (register & 7) << 3;
        match operand {
            Operand::Register(HostRegister(number)) => self.bytes.push(0xc0 | field | number & 7),
            Operand::Memory(MemoryOperand { base, displacement }) => {
                let mode = displacement_mode(base, displacement);
                self.bytes.push(mode << 6 | field | base.0 & 7);
                // rsp and r12 as a base need a second byte.
                if base.0 & 7 == 4 {
                    self.bytes.push(0x24);
                }
                self.displacement(mode, displacement);
            }
            Operand::Indexed(base, index, scale, displacement) => {
                debug_assert!(index != RSP);
                let mode = displacement_mode(base, displacement);
                self.bytes.push(mode << 6 | field | 4);
                self.bytes.push(scale << 6 | (index.0 & 7) << 3 | base.0 & 7);
                self.displacement(mode, displacement);
            }
            Operand::Near(target) => {
                self.bytes.push(field | 5);
                self.distance(target, trailing);
            }
        }
    }

    fn displacement(&mut self, mode: u8, displacement: i32) {
        match mode {
            0 => {}
            1 => self.bytes.push(displacement as u8),
            _ => self.bytes.extend(displacement.to_le_bytes()),
        }
    }
}

/// The size of a displacement in bytes. rbp and r13 as a base always have one.
fn displacement_mode(base: HostRegister, displacement: i32) -> u8 {
    match displacement {
        0 if base.0 & 7 != 5 => 0,
        -128..=127 => 1,
        _ => 2,
    }
}
