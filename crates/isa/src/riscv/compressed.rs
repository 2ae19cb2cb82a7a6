//! The instructions of two bytes: each abbreviates one of four bytes (*The RISC-V Instruction Set Manual*, volume I, chapters
//! "C" and "Zc*").

use super::RiscvInstruction;
use super::extensions::RiscvExtension::*;
use super::table::{Encoding, Requirement, RiscvOp};

/// Where the operands of an instruction of two bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompressedFormat {
    /// No operands but those of the line.
    Fixed,
    /// Register of 3 bits, the stack pointer, and a constant.
    AddToStackPointer,
    /// Load or store of a word: register and base of 3 bits.
    Word,
    /// The same of a double word.
    Double,
    /// The same of a byte.
    Byte,
    /// The same of a half word.
    Half,
    /// Register, which is also the source, and a constant of 6 bits.
    Immediate,
    /// Register and a constant of 6 bits that is added to zero.
    Constant,
    /// A constant that is added to the stack pointer.
    StackPointer,
    /// Register and a constant for the bits from 12 on.
    Upper,
    /// Register, which is also the source, and a number of bits.
    Shift,
    /// The same with a register of 3 bits.
    ShortShift,
    /// Register of 3 bits, which is also the source, and a constant.
    ShortImmediate,
    /// Two registers of 3 bits, the first of which is also the destination.
    Short,
    /// A register of 3 bits, which is source and destination, and a constant of the line.
    ShortUnary(i32),
    /// Target of a jump.
    Jump,
    /// Register of 3 bits, and target of a branch.
    Branch,
    /// Load of a word by the stack pointer.
    LoadWord,
    /// Load of a double word by the stack pointer.
    LoadDouble,
    /// Store of a word by the stack pointer.
    StoreWord,
    /// Store of a double word by the stack pointer.
    StoreDouble,
    /// Register to which control is transferred; the register of the return address.
    Register(u8),
    /// Two registers, the first of which is also the destination.
    Registers,
    /// Destination and source.
    Move,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompressedRow {
    pub(crate) mnemonic: &'static str,
    pub(crate) encoding: Encoding,
    format: CompressedFormat,
    pub(crate) op: RiscvOp,
    pub(crate) requirement: Requirement,
}

const CA: Requirement = Requirement::either(C, Zca);
const CD: Requirement = Requirement::only(Zcd);
const CB: Requirement = Requirement::only(Zcb);

macro_rules! compressed {
    ($($mnemonic:literal $value:literal $mask:literal $format:ident $(($argument:expr))? $op:ident $requirement:ident;)*) => {
        /// The instructions of two bytes. Of those that match the same word, the first is taken.
        pub(crate) static COMPRESSED_ROWS: [CompressedRow; [$($mnemonic,)*].len()] = [$(CompressedRow {
            mnemonic: $mnemonic,
            encoding: Encoding { value: $value, mask: $mask },
            format: CompressedFormat::$format $(($argument))?,
            op: RiscvOp::$op,
            requirement: $requirement,
        },)*];
    };
}

const CMOP: Requirement = Requirement::only(Zcmop);

compressed! {
    // Quadrant 0
    "c.addi4spn" 0x0000 0xe003 AddToStackPointer Addi CA;
    "c.fld" 0x2000 0xe003 Double Fld CD;
    "c.lw" 0x4000 0xe003 Word Lw CA;
    "c.ld" 0x6000 0xe003 Double Ld CA;
    "c.lbu" 0x8000 0xfc03 Byte Lbu CB;
    "c.lhu" 0x8400 0xfc43 Half Lhu CB;
    "c.lh" 0x8440 0xfc43 Half Lh CB;
    "c.sb" 0x8800 0xfc03 Byte Sb CB;
    "c.sh" 0x8c00 0xfc43 Half Sh CB;
    "c.fsd" 0xa000 0xe003 Double Fsd CD;
    "c.sw" 0xc000 0xe003 Word Sw CA;
    "c.sd" 0xe000 0xe003 Double Sd CA;
    // Quadrant 1
    "c.nop" 0x0001 0xef83 Immediate Addi CA;
    "c.addi" 0x0001 0xe003 Immediate Addi CA;
    "c.addiw" 0x2001 0xe003 Immediate Addiw CA;
    "c.li" 0x4001 0xe003 Constant Addi CA;
    "c.addi16sp" 0x6101 0xef83 StackPointer Addi CA;
    "c.mop" 0x6081 0xf8ff Fixed MopR CMOP;
    "c.lui" 0x6001 0xe003 Upper Lui CA;
    "c.srli" 0x8001 0xec03 ShortShift Srli CA;
    "c.srai" 0x8401 0xec03 ShortShift Srai CA;
    "c.andi" 0x8801 0xec03 ShortImmediate Andi CA;
    "c.sub" 0x8c01 0xfc63 Short Sub CA;
    "c.xor" 0x8c21 0xfc63 Short Xor CA;
    "c.or" 0x8c41 0xfc63 Short Or CA;
    "c.and" 0x8c61 0xfc63 Short And CA;
    "c.subw" 0x9c01 0xfc63 Short Subw CA;
    "c.addw" 0x9c21 0xfc63 Short Addw CA;
    "c.mul" 0x9c41 0xfc63 Short Mul CB;
    "c.zext.b" 0x9c61 0xfc7f ShortUnary(0xff) Andi CB;
    "c.sext.b" 0x9c65 0xfc7f ShortUnary(0) SextB CB;
    "c.zext.h" 0x9c69 0xfc7f ShortUnary(0) ZextH CB;
    "c.sext.h" 0x9c6d 0xfc7f ShortUnary(0) SextH CB;
    "c.zext.w" 0x9c71 0xfc7f ShortUnary(0) AddUw CB;
    "c.not" 0x9c75 0xfc7f ShortUnary(-1) Xori CB;
    "c.j" 0xa001 0xe003 Jump Jal CA;
    "c.beqz" 0xc001 0xe003 Branch Beq CA;
    "c.bnez" 0xe001 0xe003 Branch Bne CA;
    // Quadrant 2
    "c.slli" 0x0002 0xe003 Shift Slli CA;
    "c.fldsp" 0x2002 0xe003 LoadDouble Fld CD;
    "c.lwsp" 0x4002 0xe003 LoadWord Lw CA;
    "c.ldsp" 0x6002 0xe003 LoadDouble Ld CA;
    "c.jr" 0x8002 0xf07f Register(0) Jalr CA;
    "c.mv" 0x8002 0xf003 Move Addi CA;
    "c.ebreak" 0x9002 0xffff Fixed Ebreak CA;
    "c.jalr" 0x9002 0xf07f Register(1) Jalr CA;
    "c.add" 0x9002 0xf003 Registers Add CA;
    "c.fsdsp" 0xa002 0xe003 StoreDouble Fsd CD;
    "c.swsp" 0xc002 0xe003 StoreWord Sw CA;
    "c.sdsp" 0xe002 0xe003 StoreDouble Sd CA;
}

/// Where bits of a constant are: of each group the lowest bit in the word, the number of bits, and the lowest bit in the
/// constant.
type Scattered = &'static [(u32, u32, u32)];

const ADD_TO_STACK_POINTER: Scattered = &[(5, 1, 3), (6, 1, 2), (7, 4, 6), (11, 2, 4)];
const WORD: Scattered = &[(5, 1, 6), (6, 1, 2), (10, 3, 3)];
const DOUBLE: Scattered = &[(5, 2, 6), (10, 3, 3)];
const BYTE: Scattered = &[(5, 1, 1), (6, 1, 0)];
const HALF: Scattered = &[(5, 1, 1)];
const SIX_BITS: Scattered = &[(2, 5, 0), (12, 1, 5)];
const STACK_POINTER: Scattered = &[(2, 1, 5), (3, 2, 7), (5, 1, 6), (6, 1, 4), (12, 1, 9)];
const JUMP: Scattered =
    &[(2, 1, 5), (3, 3, 1), (6, 1, 7), (7, 1, 6), (8, 1, 10), (9, 2, 8), (11, 1, 4), (12, 1, 11)];
const BRANCH: Scattered = &[(2, 1, 5), (3, 2, 1), (5, 2, 6), (10, 2, 3), (12, 1, 8)];
const LOAD_WORD: Scattered = &[(2, 2, 6), (4, 3, 2), (12, 1, 5)];
const LOAD_DOUBLE: Scattered = &[(2, 3, 6), (5, 2, 3), (12, 1, 5)];
const STORE_WORD: Scattered = &[(7, 2, 6), (9, 4, 2)];
const STORE_DOUBLE: Scattered = &[(7, 3, 6), (10, 3, 3)];

fn gather(word: u32, groups: Scattered) -> i32 {
    groups.iter().map(|&(from, bits, to)| ((word >> from & ((1 << bits) - 1)) << to) as i32).sum()
}

/// A constant, with the bit that is its sign.
fn signed(word: u32, groups: Scattered, sign: u32) -> i32 {
    gather(word, groups) << (31 - sign) >> (31 - sign)
}

impl CompressedRow {
    /// The instruction with a word that the line matches, by the operands of the instruction that it abbreviates; none if the
    /// word is reserved.
    pub(crate) fn expand(&'static self, word: u32) -> Option<RiscvInstruction> {
        use CompressedFormat::*;
        const SP: u8 = 2;
        let (first, second) = ((word >> 7 & 31) as u8, (word >> 2 & 31) as u8);
        // Registers of 3 bits are 8 to 15.
        let (short_first, short_second) = ((word >> 7 & 7) as u8 + 8, (word >> 2 & 7) as u8 + 8);
        let access = |immediate| (short_second, short_first, short_second, immediate);
        let six = signed(word, SIX_BITS, 5);
        let shift = gather(word, SIX_BITS);
        let (rd, rs1, rs2, immediate) = match self.format {
            Fixed => (0, 0, 0, 0),
            AddToStackPointer => (short_second, SP, 0, gather(word, ADD_TO_STACK_POINTER)),
            Word => access(gather(word, WORD)),
            Double => access(gather(word, DOUBLE)),
            Byte => access(gather(word, BYTE)),
            Half => access(gather(word, HALF)),
            Immediate => (first, first, 0, six),
            Constant => (first, 0, 0, six),
            StackPointer => (SP, SP, 0, signed(word, STACK_POINTER, 9)),
            Upper => (first, 0, 0, six << 12),
            Shift => (first, first, 0, shift),
            ShortShift => (short_first, short_first, 0, shift),
            ShortImmediate => (short_first, short_first, 0, six),
            Short => (short_first, short_first, short_second, 0),
            ShortUnary(constant) => (short_first, short_first, 0, constant),
            Jump => (0, 0, 0, signed(word, JUMP, 11)),
            Branch => (0, short_first, 0, signed(word, BRANCH, 8)),
            LoadWord => (first, SP, 0, gather(word, LOAD_WORD)),
            LoadDouble => (first, SP, 0, gather(word, LOAD_DOUBLE)),
            StoreWord => (0, SP, second, gather(word, STORE_WORD)),
            StoreDouble => (0, SP, second, gather(word, STORE_DOUBLE)),
            Register(link) => (link, first, 0, 0),
            Registers => (first, first, second, 0),
            Move => (first, second, 0, 0),
        };
        let is_reserved = match self.format {
            AddToStackPointer | StackPointer | Upper => immediate == 0,
            Immediate => self.op == RiscvOp::Addiw && rd == 0,
            LoadWord | LoadDouble => rd == 0 && self.op != RiscvOp::Fld,
            Register(_) => rs1 == 0,
            _ => false,
        };
        let is_store =
            matches!(self.op, RiscvOp::Sb | RiscvOp::Sh | RiscvOp::Sw | RiscvOp::Sd | RiscvOp::Fsd);
        let (rd, rs2) = match self.format {
            Word | Double | Byte | Half if is_store => (0, rs2),
            Word | Double | Byte | Half => (rd, 0),
            _ => (rd, rs2),
        };
        let instruction =
            RiscvInstruction { op: self.op, word, compressed: Some(self), rd, rs1, rs2, rs3: 0, immediate };
        (!is_reserved).then_some(instruction)
    }
}
