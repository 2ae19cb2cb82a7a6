//! The table of RISC-V's instructions of four bytes, a line each; those of two bytes are in `compressed.rs`.
//!
//! *The RISC-V Instruction Set Manual*, volume I: encodings are those of its chapter "RV32/64G Instruction Set Listings" and of
//! the chapters of the extensions.

use super::extensions::RiscvExtension::{self, *};
use super::extensions::RiscvExtensions;
use crate::{Group, InstructionClass};

/// The operands of an instruction, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RiscvOperands {
    /// None.
    Nothing,
    /// Destination and two sources.
    RdRs1Rs2,
    /// Destination and a source.
    RdRs1,
    /// Destination, source, and a signed constant of 12 bits.
    RdRs1Imm,
    /// Destination, source, and a number of bits below 64.
    RdRs1Shift,
    /// Destination, source, and a number of bits below 32.
    RdRs1ShiftWord,
    /// Destination, and a constant for the bits from 12 on.
    RdUpper,
    /// Destination, displacement and base.
    RdMemory,
    /// Source, displacement and base.
    Rs2Memory,
    /// Floating-point destination, displacement and base.
    FdMemory,
    /// Floating-point source, displacement and base.
    Fs2Memory,
    /// Two sources and a target.
    Branch,
    /// Destination and a target.
    RdTarget,
    /// Destination, source and displacement of a jump.
    RdRs1Jump,
    /// Destination, source and base of an atomic access.
    Atomic,
    /// Destination and base of a load-reserved.
    LoadReserved,
    /// Base of an operation on a cache block.
    Block,
    /// Predecessor and successor accesses.
    Fence,
    /// Destination, control and status register, source.
    Csr,
    /// Destination, control and status register, a constant of 5 bits.
    CsrImm,
    /// Floating-point destination and three sources, rounded.
    FdFs1Fs2Fs3Round,
    /// Floating-point destination and two sources, rounded.
    FdFs1Fs2Round,
    /// Floating-point destination and two sources.
    FdFs1Fs2,
    /// Floating-point destination and source, rounded.
    FdFs1Round,
    /// Floating-point destination and source, exact.
    FdFs1,
    /// Integer destination and two floating-point sources.
    RdFs1Fs2,
    /// Integer destination and floating-point source, rounded.
    RdFs1Round,
    /// Integer destination and floating-point source.
    RdFs1,
    /// Floating-point destination and integer source, rounded.
    FdRs1Round,
    /// Floating-point destination and integer source, exact.
    FdRs1,
    /// Floating-point destination and the number of a constant.
    FdConstant,
}

/// A condition on a processor's set of extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirement {
    any: RiscvExtensions,
    all: RiscvExtensions,
}

impl Requirement {
    /// Whether a set fulfils it.
    pub(crate) fn holds(self, set: RiscvExtensions) -> bool {
        set.meets(self.any) && set.contains(self.all)
    }

    /// One of two.
    pub(crate) const fn either(one: RiscvExtension, other: RiscvExtension) -> Requirement {
        Requirement { any: RiscvExtensions::of(&[one, other]), all: RiscvExtensions::of(&[]) }
    }

    /// Both.
    pub(crate) const fn both(one: RiscvExtension, other: RiscvExtension) -> Requirement {
        let all = RiscvExtensions::of(&[one, other]);
        Requirement { any: all, all }
    }

    /// One.
    pub(crate) const fn only(one: RiscvExtension) -> Requirement {
        Requirement::either(one, one)
    }
}

/// The bits that identify an instruction, and their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) value: u32,
    pub(crate) mask: u32,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RiscvRow {
    pub(crate) op: RiscvOp,
    pub(crate) mnemonic: &'static str,
    pub(crate) encoding: Encoding,
    pub(crate) operands: RiscvOperands,
    pub(crate) group: Group,
    pub(crate) class: InstructionClass,
    pub(crate) requirement: Requirement,
}

const fn encoding(value: u32, mask: u32) -> Encoding {
    Encoding { value, mask }
}

/// By the opcode alone.
const fn u(opcode: u32) -> Encoding {
    encoding(opcode, 0x7f)
}

/// With a function of 3 bits.
const fn i(opcode: u32, function: u32) -> Encoding {
    encoding(opcode | function << 12, 0x707f)
}

/// With functions of 3 and 7 bits.
const fn r(opcode: u32, function: u32, high: u32) -> Encoding {
    encoding(opcode | function << 12 | high << 25, 0xfe00_707f)
}

/// With functions of 3 and 6 bits.
const fn shift(opcode: u32, function: u32, high: u32) -> Encoding {
    encoding(opcode | function << 12 | high << 26, 0xfc00_707f)
}

/// With functions of 3 and 12 bits.
const fn unary(opcode: u32, function: u32, high: u32) -> Encoding {
    encoding(opcode | function << 12 | high << 20, 0xfff0_707f)
}

/// An atomic operation of 2 to the power of `size` bytes.
const fn amo(size: u32, function: u32) -> Encoding {
    encoding(0x2f | size << 12 | function << 27, 0xf800_707f)
}

/// A load-reserved.
const fn reserved(size: u32) -> Encoding {
    encoding(0x2f | size << 12 | 2 << 27, 0xf9f0_707f)
}

/// A floating-point operation on two sources, with a rounding mode.
const fn fp(function: u32) -> Encoding {
    encoding(0x53 | function << 25, 0xfe00_007f)
}

/// A floating-point operation on one source, with a rounding mode.
const fn fp1(function: u32, second: u32) -> Encoding {
    encoding(0x53 | function << 25 | second << 20, 0xfff0_007f)
}

/// A fused multiply and add.
const fn fma(opcode: u32, format: u32) -> Encoding {
    encoding(opcode | format << 25, 0x0600_007f)
}

/// All bits.
const fn whole(word: u32) -> Encoding {
    encoding(word, u32::MAX)
}

const MUL: Requirement = Requirement::either(M, Zmmul);
const ZBB_ZBKB: Requirement = Requirement::either(Zbb, Zbkb);
const ZBC_ZBKC: Requirement = Requirement::either(Zbc, Zbkc);
const ZFA_D: Requirement = Requirement::both(Zfa, D);
const ZFA_H: Requirement = Requirement::both(Zfa, Zfh);
const ZFHMIN_D: Requirement = Requirement::both(Zfhmin, D);
const ZACAS_ZABHA: Requirement = Requirement::both(Zacas, Zabha);

/// Makes a requirement of an extension, or takes one.
macro_rules! requirement {
    ([$extension:ident]) => {
        Requirement::only(RiscvExtension::$extension)
    };
    ($requirement:ident) => {
        $requirement
    };
}

macro_rules! rows {
    ($($op:ident $mnemonic:literal $encoding:expr, $operands:ident $group:ident $class:ident $requirement:tt;)*) => {
        /// An operation of RISC-V. Instructions of two bytes have those of the instructions that they abbreviate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum RiscvOp { $(#[doc = $mnemonic] $op,)* }

        impl RiscvOp {
            /// The number of operations.
            pub const COUNT: usize = [$($mnemonic,)*].len();
            /// All operations.
            pub const ALL: [RiscvOp; RiscvOp::COUNT] = [$(RiscvOp::$op,)*];
        }

        pub(crate) static RISCV_ROWS: [RiscvRow; RiscvOp::COUNT] = [$(RiscvRow {
            op: RiscvOp::$op,
            mnemonic: $mnemonic,
            encoding: $encoding,
            operands: RiscvOperands::$operands,
            group: Group::$group,
            class: InstructionClass::$class,
            requirement: requirement!($requirement),
        },)*];
    };
}

// Integer division is of the class of the longest multiplication, which no machine here tells from it.
//
// Of instructions that match the same word, the first is taken.
rows! {
    // RV64I
    Lui "lui" u(0x37), RdUpper IntegerArithmetic Add [I];
    Auipc "auipc" u(0x17), RdUpper IntegerArithmetic Add [I];
    Jal "jal" u(0x6f), RdTarget IntegerControl Jump [I];
    Jalr "jalr" i(0x67, 0), RdRs1Jump IntegerControl Jump [I];
    Beq "beq" i(0x63, 0), Branch IntegerControl Branch [I];
    Bne "bne" i(0x63, 1), Branch IntegerControl Branch [I];
    Blt "blt" i(0x63, 4), Branch IntegerControl Branch [I];
    Bge "bge" i(0x63, 5), Branch IntegerControl Branch [I];
    Bltu "bltu" i(0x63, 6), Branch IntegerControl Branch [I];
    Bgeu "bgeu" i(0x63, 7), Branch IntegerControl Branch [I];
    Lb "lb" i(0x03, 0), RdMemory IntegerLoad Load [I];
    Lh "lh" i(0x03, 1), RdMemory IntegerLoad Load [I];
    Lw "lw" i(0x03, 2), RdMemory IntegerLoad Load [I];
    Ld "ld" i(0x03, 3), RdMemory IntegerLoad Load [I];
    Lbu "lbu" i(0x03, 4), RdMemory IntegerLoad Load [I];
    Lhu "lhu" i(0x03, 5), RdMemory IntegerLoad Load [I];
    Lwu "lwu" i(0x03, 6), RdMemory IntegerLoad Load [I];
    Sb "sb" i(0x23, 0), Rs2Memory IntegerStore Store [I];
    Sh "sh" i(0x23, 1), Rs2Memory IntegerStore Store [I];
    Sw "sw" i(0x23, 2), Rs2Memory IntegerStore Store [I];
    Sd "sd" i(0x23, 3), Rs2Memory IntegerStore Store [I];
    Addi "addi" i(0x13, 0), RdRs1Imm IntegerArithmetic Add [I];
    Slti "slti" i(0x13, 2), RdRs1Imm IntegerArithmetic Compare [I];
    Sltiu "sltiu" i(0x13, 3), RdRs1Imm IntegerArithmetic Compare [I];
    Xori "xori" i(0x13, 4), RdRs1Imm LogicalShift Logical [I];
    Ori "ori" i(0x13, 6), RdRs1Imm LogicalShift Logical [I];
    Andi "andi" i(0x13, 7), RdRs1Imm LogicalShift Logical [I];
    Slli "slli" shift(0x13, 1, 0), RdRs1Shift LogicalShift Shift [I];
    Srli "srli" shift(0x13, 5, 0), RdRs1Shift LogicalShift Shift [I];
    Srai "srai" shift(0x13, 5, 0x10), RdRs1Shift LogicalShift Shift [I];
    Add "add" r(0x33, 0, 0), RdRs1Rs2 IntegerArithmetic Add [I];
    Sub "sub" r(0x33, 0, 0x20), RdRs1Rs2 IntegerArithmetic Add [I];
    Sll "sll" r(0x33, 1, 0), RdRs1Rs2 LogicalShift Shift [I];
    Slt "slt" r(0x33, 2, 0), RdRs1Rs2 IntegerArithmetic Compare [I];
    Sltu "sltu" r(0x33, 3, 0), RdRs1Rs2 IntegerArithmetic Compare [I];
    Xor "xor" r(0x33, 4, 0), RdRs1Rs2 LogicalShift Logical [I];
    Srl "srl" r(0x33, 5, 0), RdRs1Rs2 LogicalShift Shift [I];
    Sra "sra" r(0x33, 5, 0x20), RdRs1Rs2 LogicalShift Shift [I];
    Or "or" r(0x33, 6, 0), RdRs1Rs2 LogicalShift Logical [I];
    And "and" r(0x33, 7, 0), RdRs1Rs2 LogicalShift Logical [I];
    Addiw "addiw" i(0x1b, 0), RdRs1Imm IntegerArithmetic Add [I];
    Slliw "slliw" r(0x1b, 1, 0), RdRs1ShiftWord LogicalShift Shift [I];
    Srliw "srliw" r(0x1b, 5, 0), RdRs1ShiftWord LogicalShift Shift [I];
    Sraiw "sraiw" r(0x1b, 5, 0x20), RdRs1ShiftWord LogicalShift Shift [I];
    Addw "addw" r(0x3b, 0, 0x0), RdRs1Rs2 IntegerArithmetic Add [I];
    Subw "subw" r(0x3b, 0, 0x20), RdRs1Rs2 IntegerArithmetic Add [I];
    Sllw "sllw" r(0x3b, 1, 0x0), RdRs1Rs2 LogicalShift Shift [I];
    Srlw "srlw" r(0x3b, 5, 0x0), RdRs1Rs2 LogicalShift Shift [I];
    Sraw "sraw" r(0x3b, 5, 0x20), RdRs1Rs2 LogicalShift Shift [I];
    Pause "pause" whole(0x0100_000f), Nothing Other MemoryHint [I];
    FenceTso "fence.tso" whole(0x8330_000f), Nothing Other MemoryBarrier [I];
    Fence "fence" i(0x0f, 0), Fence Other MemoryBarrier [I];
    Ecall "ecall" whole(0x0000_0073), Nothing Other CallPal [I];
    Ebreak "ebreak" whole(0x0010_0073), Nothing Other CallPal [I];
    // Zifencei, Zicsr
    FenceI "fence.i" i(0x0f, 1), Nothing Other TrapBarrier [Zifencei];
    Csrrw "csrrw" i(0x73, 1), Csr Other Miscellaneous [Zicsr];
    Csrrs "csrrs" i(0x73, 2), Csr Other Miscellaneous [Zicsr];
    Csrrc "csrrc" i(0x73, 3), Csr Other Miscellaneous [Zicsr];
    Csrrwi "csrrwi" i(0x73, 5), CsrImm Other Miscellaneous [Zicsr];
    Csrrsi "csrrsi" i(0x73, 6), CsrImm Other Miscellaneous [Zicsr];
    Csrrci "csrrci" i(0x73, 7), CsrImm Other Miscellaneous [Zicsr];
    // M
    Mul "mul" r(0x33, 0, 1), RdRs1Rs2 IntegerArithmetic MultiplyQuad MUL;
    Mulh "mulh" r(0x33, 1, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh MUL;
    Mulhsu "mulhsu" r(0x33, 2, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh MUL;
    Mulhu "mulhu" r(0x33, 3, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh MUL;
    Div "div" r(0x33, 4, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Divu "divu" r(0x33, 5, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Rem "rem" r(0x33, 6, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Remu "remu" r(0x33, 7, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Mulw "mulw" r(0x3b, 0, 1), RdRs1Rs2 IntegerArithmetic MultiplyLong MUL;
    Divw "divw" r(0x3b, 4, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Divuw "divuw" r(0x3b, 5, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Remw "remw" r(0x3b, 6, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    Remuw "remuw" r(0x3b, 7, 1), RdRs1Rs2 IntegerArithmetic MultiplyHigh [M];
    // A, Zabha, Zacas, Zawrs
    LrW "lr.w" reserved(2), LoadReserved IntegerLoad LoadLocked [Zalrsc];
    LrD "lr.d" reserved(3), LoadReserved IntegerLoad LoadLocked [Zalrsc];
    ScW "sc.w" amo(2, 0x03), Atomic IntegerStore StoreConditional [Zalrsc];
    ScD "sc.d" amo(3, 0x03), Atomic IntegerStore StoreConditional [Zalrsc];
    AmoswapW "amoswap.w" amo(2, 0x01), Atomic IntegerStore StoreConditional [Zaamo];
    AmoaddW "amoadd.w" amo(2, 0x00), Atomic IntegerStore StoreConditional [Zaamo];
    AmoxorW "amoxor.w" amo(2, 0x04), Atomic IntegerStore StoreConditional [Zaamo];
    AmoandW "amoand.w" amo(2, 0x0c), Atomic IntegerStore StoreConditional [Zaamo];
    AmoorW "amoor.w" amo(2, 0x08), Atomic IntegerStore StoreConditional [Zaamo];
    AmominW "amomin.w" amo(2, 0x10), Atomic IntegerStore StoreConditional [Zaamo];
    AmomaxW "amomax.w" amo(2, 0x14), Atomic IntegerStore StoreConditional [Zaamo];
    AmominuW "amominu.w" amo(2, 0x18), Atomic IntegerStore StoreConditional [Zaamo];
    AmomaxuW "amomaxu.w" amo(2, 0x1c), Atomic IntegerStore StoreConditional [Zaamo];
    AmoswapD "amoswap.d" amo(3, 0x01), Atomic IntegerStore StoreConditional [Zaamo];
    AmoaddD "amoadd.d" amo(3, 0x00), Atomic IntegerStore StoreConditional [Zaamo];
    AmoxorD "amoxor.d" amo(3, 0x04), Atomic IntegerStore StoreConditional [Zaamo];
    AmoandD "amoand.d" amo(3, 0x0c), Atomic IntegerStore StoreConditional [Zaamo];
    AmoorD "amoor.d" amo(3, 0x08), Atomic IntegerStore StoreConditional [Zaamo];
    AmominD "amomin.d" amo(3, 0x10), Atomic IntegerStore StoreConditional [Zaamo];
    AmomaxD "amomax.d" amo(3, 0x14), Atomic IntegerStore StoreConditional [Zaamo];
    AmominuD "amominu.d" amo(3, 0x18), Atomic IntegerStore StoreConditional [Zaamo];
    AmomaxuD "amomaxu.d" amo(3, 0x1c), Atomic IntegerStore StoreConditional [Zaamo];
    AmoswapB "amoswap.b" amo(0, 0x01), Atomic IntegerStore StoreConditional [Zabha];
    AmoaddB "amoadd.b" amo(0, 0x00), Atomic IntegerStore StoreConditional [Zabha];
    AmoxorB "amoxor.b" amo(0, 0x04), Atomic IntegerStore StoreConditional [Zabha];
    AmoandB "amoand.b" amo(0, 0x0c), Atomic IntegerStore StoreConditional [Zabha];
    AmoorB "amoor.b" amo(0, 0x08), Atomic IntegerStore StoreConditional [Zabha];
    AmominB "amomin.b" amo(0, 0x10), Atomic IntegerStore StoreConditional [Zabha];
    AmomaxB "amomax.b" amo(0, 0x14), Atomic IntegerStore StoreConditional [Zabha];
    AmominuB "amominu.b" amo(0, 0x18), Atomic IntegerStore StoreConditional [Zabha];
    AmomaxuB "amomaxu.b" amo(0, 0x1c), Atomic IntegerStore StoreConditional [Zabha];
    AmoswapH "amoswap.h" amo(1, 0x01), Atomic IntegerStore StoreConditional [Zabha];
    AmoaddH "amoadd.h" amo(1, 0x00), Atomic IntegerStore StoreConditional [Zabha];
    AmoxorH "amoxor.h" amo(1, 0x04), Atomic IntegerStore StoreConditional [Zabha];
    AmoandH "amoand.h" amo(1, 0x0c), Atomic IntegerStore StoreConditional [Zabha];
    AmoorH "amoor.h" amo(1, 0x08), Atomic IntegerStore StoreConditional [Zabha];
    AmominH "amomin.h" amo(1, 0x10), Atomic IntegerStore StoreConditional [Zabha];
    AmomaxH "amomax.h" amo(1, 0x14), Atomic IntegerStore StoreConditional [Zabha];
    AmominuH "amominu.h" amo(1, 0x18), Atomic IntegerStore StoreConditional [Zabha];
    AmomaxuH "amomaxu.h" amo(1, 0x1c), Atomic IntegerStore StoreConditional [Zabha];
    AmocasB "amocas.b" amo(0, 0x05), Atomic IntegerStore StoreConditional ZACAS_ZABHA;
    AmocasH "amocas.h" amo(1, 0x05), Atomic IntegerStore StoreConditional ZACAS_ZABHA;
    AmocasW "amocas.w" amo(2, 0x05), Atomic IntegerStore StoreConditional [Zacas];
    AmocasD "amocas.d" amo(3, 0x05), Atomic IntegerStore StoreConditional [Zacas];
    AmocasQ "amocas.q" amo(4, 0x05), Atomic IntegerStore StoreConditional [Zacas];
    WrsNto "wrs.nto" whole(0x00d0_0073), Nothing Other MemoryHint [Zawrs];
    WrsSto "wrs.sto" whole(0x01d0_0073), Nothing Other MemoryHint [Zawrs];
    // Zicbom, Zicboz, Zimop
    CboClean "cbo.clean" encoding(0x0010_200f, 0xfff0_7fff), Block Other MemoryHint [Zicbom];
    CboFlush "cbo.flush" encoding(0x0020_200f, 0xfff0_7fff), Block Other MemoryHint [Zicbom];
    CboZero "cbo.zero" encoding(0x0040_200f, 0xfff0_7fff), Block IntegerStore Store [Zicboz];
    MopR "mop.r" encoding(0x81c0_4073, 0xb3c0_707f), RdRs1 Other Logical [Zimop];
    MopRr "mop.rr" encoding(0x8200_4073, 0xb200_707f), RdRs1Rs2 Other Logical [Zimop];
    // Zba
    AddUw "add.uw" r(0x3b, 0, 0x4), RdRs1Rs2 IntegerArithmetic Add [Zba];
    Sh1add "sh1add" r(0x33, 2, 0x10), RdRs1Rs2 IntegerArithmetic Add [Zba];
    Sh2add "sh2add" r(0x33, 4, 0x10), RdRs1Rs2 IntegerArithmetic Add [Zba];
    Sh3add "sh3add" r(0x33, 6, 0x10), RdRs1Rs2 IntegerArithmetic Add [Zba];
    Sh1addUw "sh1add.uw" r(0x3b, 2, 0x10), RdRs1Rs2 IntegerArithmetic Add [Zba];
    Sh2addUw "sh2add.uw" r(0x3b, 4, 0x10), RdRs1Rs2 IntegerArithmetic Add [Zba];
    Sh3addUw "sh3add.uw" r(0x3b, 6, 0x10), RdRs1Rs2 IntegerArithmetic Add [Zba];
    SlliUw "slli.uw" shift(0x1b, 1, 0x02), RdRs1Shift LogicalShift Shift [Zba];
    // Zbb, Zbkb, Zbkx
    Andn "andn" r(0x33, 7, 0x20), RdRs1Rs2 LogicalShift Logical ZBB_ZBKB;
    Orn "orn" r(0x33, 6, 0x20), RdRs1Rs2 LogicalShift Logical ZBB_ZBKB;
    Xnor "xnor" r(0x33, 4, 0x20), RdRs1Rs2 LogicalShift Logical ZBB_ZBKB;
    Clz "clz" unary(0x13, 1, 0x600), RdRs1 LogicalShift Shift [Zbb];
    Ctz "ctz" unary(0x13, 1, 0x601), RdRs1 LogicalShift Shift [Zbb];
    Cpop "cpop" unary(0x13, 1, 0x602), RdRs1 LogicalShift Shift [Zbb];
    Clzw "clzw" unary(0x1b, 1, 0x600), RdRs1 LogicalShift Shift [Zbb];
    Ctzw "ctzw" unary(0x1b, 1, 0x601), RdRs1 LogicalShift Shift [Zbb];
    Cpopw "cpopw" unary(0x1b, 1, 0x602), RdRs1 LogicalShift Shift [Zbb];
    SextB "sext.b" unary(0x13, 1, 0x604), RdRs1 ByteManipulation Shift [Zbb];
    SextH "sext.h" unary(0x13, 1, 0x605), RdRs1 ByteManipulation Shift [Zbb];
    ZextH "zext.h" unary(0x3b, 4, 0x080), RdRs1 ByteManipulation Shift ZBB_ZBKB;
    Max "max" r(0x33, 6, 0x05), RdRs1Rs2 IntegerArithmetic Compare [Zbb];
    Maxu "maxu" r(0x33, 7, 0x05), RdRs1Rs2 IntegerArithmetic Compare [Zbb];
    Min "min" r(0x33, 4, 0x05), RdRs1Rs2 IntegerArithmetic Compare [Zbb];
    Minu "minu" r(0x33, 5, 0x05), RdRs1Rs2 IntegerArithmetic Compare [Zbb];
    OrcB "orc.b" unary(0x13, 5, 0x287), RdRs1 ByteManipulation Shift [Zbb];
    Rev8 "rev8" unary(0x13, 5, 0x6b8), RdRs1 ByteManipulation Shift ZBB_ZBKB;
    Brev8 "brev8" unary(0x13, 5, 0x687), RdRs1 ByteManipulation Shift [Zbkb];
    Rol "rol" r(0x33, 1, 0x30), RdRs1Rs2 LogicalShift Shift ZBB_ZBKB;
    Ror "ror" r(0x33, 5, 0x30), RdRs1Rs2 LogicalShift Shift ZBB_ZBKB;
    Rolw "rolw" r(0x3b, 1, 0x30), RdRs1Rs2 LogicalShift Shift ZBB_ZBKB;
    Rorw "rorw" r(0x3b, 5, 0x30), RdRs1Rs2 LogicalShift Shift ZBB_ZBKB;
    Rori "rori" shift(0x13, 5, 0x18), RdRs1Shift LogicalShift Shift ZBB_ZBKB;
    Roriw "roriw" r(0x1b, 5, 0x30), RdRs1ShiftWord LogicalShift Shift ZBB_ZBKB;
    Pack "pack" r(0x33, 4, 0x04), RdRs1Rs2 ByteManipulation Shift [Zbkb];
    Packh "packh" r(0x33, 7, 0x04), RdRs1Rs2 ByteManipulation Shift [Zbkb];
    Packw "packw" r(0x3b, 4, 0x04), RdRs1Rs2 ByteManipulation Shift [Zbkb];
    Xperm4 "xperm4" r(0x33, 2, 0x14), RdRs1Rs2 ByteManipulation Shift [Zbkx];
    Xperm8 "xperm8" r(0x33, 4, 0x14), RdRs1Rs2 ByteManipulation Shift [Zbkx];
    // Zbc, Zbs, Zicond
    Clmul "clmul" r(0x33, 1, 0x05), RdRs1Rs2 IntegerArithmetic MultiplyQuad ZBC_ZBKC;
    Clmulh "clmulh" r(0x33, 3, 0x05), RdRs1Rs2 IntegerArithmetic MultiplyQuad ZBC_ZBKC;
    Clmulr "clmulr" r(0x33, 2, 0x05), RdRs1Rs2 IntegerArithmetic MultiplyQuad [Zbc];
    Bclr "bclr" r(0x33, 1, 0x24), RdRs1Rs2 LogicalShift Shift [Zbs];
    Bclri "bclri" shift(0x13, 1, 0x12), RdRs1Shift LogicalShift Shift [Zbs];
    Bext "bext" r(0x33, 5, 0x24), RdRs1Rs2 LogicalShift Shift [Zbs];
    Bexti "bexti" shift(0x13, 5, 0x12), RdRs1Shift LogicalShift Shift [Zbs];
    Binv "binv" r(0x33, 1, 0x34), RdRs1Rs2 LogicalShift Shift [Zbs];
    Binvi "binvi" shift(0x13, 1, 0x1a), RdRs1Shift LogicalShift Shift [Zbs];
    Bset "bset" r(0x33, 1, 0x14), RdRs1Rs2 LogicalShift Shift [Zbs];
    Bseti "bseti" shift(0x13, 1, 0xa), RdRs1Shift LogicalShift Shift [Zbs];
    CzeroEqz "czero.eqz" r(0x33, 5, 0x07), RdRs1Rs2 LogicalShift ConditionalMove [Zicond];
    CzeroNez "czero.nez" r(0x33, 7, 0x07), RdRs1Rs2 LogicalShift ConditionalMove [Zicond];
    // F, D, Zfh, Zfhmin: accesses and moves
    Flh "flh" i(0x07, 1), FdMemory Other FloatLoad [Zfhmin];
    Fsh "fsh" i(0x27, 1), Fs2Memory Other FloatStore [Zfhmin];
    Flw "flw" i(0x07, 2), FdMemory Other FloatLoad [F];
    Fsw "fsw" i(0x27, 2), Fs2Memory Other FloatStore [F];
    Fld "fld" i(0x07, 3), FdMemory Other FloatLoad [D];
    Fsd "fsd" i(0x27, 3), Fs2Memory Other FloatStore [D];
    FmvXH "fmv.x.h" unary(0x53, 0, 0xe40), RdFs1 Other FloatCopy [Zfhmin];
    FmvXW "fmv.x.w" unary(0x53, 0, 0xe00), RdFs1 Other FloatCopy [F];
    FmvXD "fmv.x.d" unary(0x53, 0, 0xe20), RdFs1 Other FloatCopy [D];
    FmvHX "fmv.h.x" unary(0x53, 0, 0xf40), FdRs1 Other FloatCopy [Zfhmin];
    FmvWX "fmv.w.x" unary(0x53, 0, 0xf00), FdRs1 Other FloatCopy [F];
    FmvDX "fmv.d.x" unary(0x53, 0, 0xf20), FdRs1 Other FloatCopy [D];
    // Half precision
    FaddH "fadd.h" fp(0x02), FdFs1Fs2Round Other FloatAdd [Zfh];
    FsubH "fsub.h" fp(0x06), FdFs1Fs2Round Other FloatAdd [Zfh];
    FmulH "fmul.h" fp(0x0a), FdFs1Fs2Round Other FloatMultiply [Zfh];
    FdivH "fdiv.h" fp(0x0e), FdFs1Fs2Round Other FloatDivideSingle [Zfh];
    FsqrtH "fsqrt.h" fp1(0x2e, 0), FdFs1Round Other FloatDivideSingle [Zfh];
    FmaddH "fmadd.h" fma(0x43, 2), FdFs1Fs2Fs3Round Other FloatMultiply [Zfh];
    FmsubH "fmsub.h" fma(0x47, 2), FdFs1Fs2Fs3Round Other FloatMultiply [Zfh];
    FnmsubH "fnmsub.h" fma(0x4b, 2), FdFs1Fs2Fs3Round Other FloatMultiply [Zfh];
    FnmaddH "fnmadd.h" fma(0x4f, 2), FdFs1Fs2Fs3Round Other FloatMultiply [Zfh];
    FsgnjH "fsgnj.h" r(0x53, 0, 0x12), FdFs1Fs2 Other FloatCopy [Zfh];
    FsgnjnH "fsgnjn.h" r(0x53, 1, 0x12), FdFs1Fs2 Other FloatCopy [Zfh];
    FsgnjxH "fsgnjx.h" r(0x53, 2, 0x12), FdFs1Fs2 Other FloatCopy [Zfh];
    FminH "fmin.h" r(0x53, 0, 0x16), FdFs1Fs2 Other FloatAdd [Zfh];
    FmaxH "fmax.h" r(0x53, 1, 0x16), FdFs1Fs2 Other FloatAdd [Zfh];
    FminmH "fminm.h" r(0x53, 2, 0x16), FdFs1Fs2 Other FloatAdd ZFA_H;
    FmaxmH "fmaxm.h" r(0x53, 3, 0x16), FdFs1Fs2 Other FloatAdd ZFA_H;
    FeqH "feq.h" r(0x53, 2, 0x52), RdFs1Fs2 Other FloatAdd [Zfh];
    FltH "flt.h" r(0x53, 1, 0x52), RdFs1Fs2 Other FloatAdd [Zfh];
    FleH "fle.h" r(0x53, 0, 0x52), RdFs1Fs2 Other FloatAdd [Zfh];
    FltqH "fltq.h" r(0x53, 5, 0x52), RdFs1Fs2 Other FloatAdd ZFA_H;
    FleqH "fleq.h" r(0x53, 4, 0x52), RdFs1Fs2 Other FloatAdd ZFA_H;
    FclassH "fclass.h" unary(0x53, 1, 0xe40), RdFs1 Other FloatAdd [Zfh];
    FcvtWH "fcvt.w.h" fp1(0x62, 0), RdFs1Round Other FloatAdd [Zfh];
    FcvtHW "fcvt.h.w" fp1(0x6a, 0), FdRs1Round Other FloatAdd [Zfh];
    FcvtWuH "fcvt.wu.h" fp1(0x62, 1), RdFs1Round Other FloatAdd [Zfh];
    FcvtHWu "fcvt.h.wu" fp1(0x6a, 1), FdRs1Round Other FloatAdd [Zfh];
    FcvtLH "fcvt.l.h" fp1(0x62, 2), RdFs1Round Other FloatAdd [Zfh];
    FcvtHL "fcvt.h.l" fp1(0x6a, 2), FdRs1Round Other FloatAdd [Zfh];
    FcvtLuH "fcvt.lu.h" fp1(0x62, 3), RdFs1Round Other FloatAdd [Zfh];
    FcvtHLu "fcvt.h.lu" fp1(0x6a, 3), FdRs1Round Other FloatAdd [Zfh];
    FroundH "fround.h" fp1(0x22, 4), FdFs1Round Other FloatAdd ZFA_H;
    FroundnxH "froundnx.h" fp1(0x22, 5), FdFs1Round Other FloatAdd ZFA_H;
    FliH "fli.h" unary(0x53, 0, 0xf41), FdConstant Other FloatCopy ZFA_H;
    // Single precision
    FaddS "fadd.s" fp(0x00), FdFs1Fs2Round Other FloatAdd [F];
    FsubS "fsub.s" fp(0x04), FdFs1Fs2Round Other FloatAdd [F];
    FmulS "fmul.s" fp(0x08), FdFs1Fs2Round Other FloatMultiply [F];
    FdivS "fdiv.s" fp(0x0c), FdFs1Fs2Round Other FloatDivideSingle [F];
    FsqrtS "fsqrt.s" fp1(0x2c, 0), FdFs1Round Other FloatDivideSingle [F];
    FmaddS "fmadd.s" fma(0x43, 0), FdFs1Fs2Fs3Round Other FloatMultiply [F];
    FmsubS "fmsub.s" fma(0x47, 0), FdFs1Fs2Fs3Round Other FloatMultiply [F];
    FnmsubS "fnmsub.s" fma(0x4b, 0), FdFs1Fs2Fs3Round Other FloatMultiply [F];
    FnmaddS "fnmadd.s" fma(0x4f, 0), FdFs1Fs2Fs3Round Other FloatMultiply [F];
    FsgnjS "fsgnj.s" r(0x53, 0, 0x10), FdFs1Fs2 Other FloatCopy [F];
    FsgnjnS "fsgnjn.s" r(0x53, 1, 0x10), FdFs1Fs2 Other FloatCopy [F];
    FsgnjxS "fsgnjx.s" r(0x53, 2, 0x10), FdFs1Fs2 Other FloatCopy [F];
    FminS "fmin.s" r(0x53, 0, 0x14), FdFs1Fs2 Other FloatAdd [F];
    FmaxS "fmax.s" r(0x53, 1, 0x14), FdFs1Fs2 Other FloatAdd [F];
    FminmS "fminm.s" r(0x53, 2, 0x14), FdFs1Fs2 Other FloatAdd [Zfa];
    FmaxmS "fmaxm.s" r(0x53, 3, 0x14), FdFs1Fs2 Other FloatAdd [Zfa];
    FeqS "feq.s" r(0x53, 2, 0x50), RdFs1Fs2 Other FloatAdd [F];
    FltS "flt.s" r(0x53, 1, 0x50), RdFs1Fs2 Other FloatAdd [F];
    FleS "fle.s" r(0x53, 0, 0x50), RdFs1Fs2 Other FloatAdd [F];
    FltqS "fltq.s" r(0x53, 5, 0x50), RdFs1Fs2 Other FloatAdd [Zfa];
    FleqS "fleq.s" r(0x53, 4, 0x50), RdFs1Fs2 Other FloatAdd [Zfa];
    FclassS "fclass.s" unary(0x53, 1, 0xe00), RdFs1 Other FloatAdd [F];
    FcvtWS "fcvt.w.s" fp1(0x60, 0), RdFs1Round Other FloatAdd [F];
    FcvtSW "fcvt.s.w" fp1(0x68, 0), FdRs1Round Other FloatAdd [F];
    FcvtWuS "fcvt.wu.s" fp1(0x60, 1), RdFs1Round Other FloatAdd [F];
    FcvtSWu "fcvt.s.wu" fp1(0x68, 1), FdRs1Round Other FloatAdd [F];
    FcvtLS "fcvt.l.s" fp1(0x60, 2), RdFs1Round Other FloatAdd [F];
    FcvtSL "fcvt.s.l" fp1(0x68, 2), FdRs1Round Other FloatAdd [F];
    FcvtLuS "fcvt.lu.s" fp1(0x60, 3), RdFs1Round Other FloatAdd [F];
    FcvtSLu "fcvt.s.lu" fp1(0x68, 3), FdRs1Round Other FloatAdd [F];
    FroundS "fround.s" fp1(0x20, 4), FdFs1Round Other FloatAdd [Zfa];
    FroundnxS "froundnx.s" fp1(0x20, 5), FdFs1Round Other FloatAdd [Zfa];
    FliS "fli.s" unary(0x53, 0, 0xf01), FdConstant Other FloatCopy [Zfa];
    // Double precision
    FaddD "fadd.d" fp(0x01), FdFs1Fs2Round Other FloatAdd [D];
    FsubD "fsub.d" fp(0x05), FdFs1Fs2Round Other FloatAdd [D];
    FmulD "fmul.d" fp(0x09), FdFs1Fs2Round Other FloatMultiply [D];
    FdivD "fdiv.d" fp(0x0d), FdFs1Fs2Round Other FloatDivideDouble [D];
    FsqrtD "fsqrt.d" fp1(0x2d, 0), FdFs1Round Other FloatDivideDouble [D];
    FmaddD "fmadd.d" fma(0x43, 1), FdFs1Fs2Fs3Round Other FloatMultiply [D];
    FmsubD "fmsub.d" fma(0x47, 1), FdFs1Fs2Fs3Round Other FloatMultiply [D];
    FnmsubD "fnmsub.d" fma(0x4b, 1), FdFs1Fs2Fs3Round Other FloatMultiply [D];
    FnmaddD "fnmadd.d" fma(0x4f, 1), FdFs1Fs2Fs3Round Other FloatMultiply [D];
    FsgnjD "fsgnj.d" r(0x53, 0, 0x11), FdFs1Fs2 Other FloatCopy [D];
    FsgnjnD "fsgnjn.d" r(0x53, 1, 0x11), FdFs1Fs2 Other FloatCopy [D];
    FsgnjxD "fsgnjx.d" r(0x53, 2, 0x11), FdFs1Fs2 Other FloatCopy [D];
    FminD "fmin.d" r(0x53, 0, 0x15), FdFs1Fs2 Other FloatAdd [D];
    FmaxD "fmax.d" r(0x53, 1, 0x15), FdFs1Fs2 Other FloatAdd [D];
    FminmD "fminm.d" r(0x53, 2, 0x15), FdFs1Fs2 Other FloatAdd ZFA_D;
    FmaxmD "fmaxm.d" r(0x53, 3, 0x15), FdFs1Fs2 Other FloatAdd ZFA_D;
    FeqD "feq.d" r(0x53, 2, 0x51), RdFs1Fs2 Other FloatAdd [D];
    FltD "flt.d" r(0x53, 1, 0x51), RdFs1Fs2 Other FloatAdd [D];
    FleD "fle.d" r(0x53, 0, 0x51), RdFs1Fs2 Other FloatAdd [D];
    FltqD "fltq.d" r(0x53, 5, 0x51), RdFs1Fs2 Other FloatAdd ZFA_D;
    FleqD "fleq.d" r(0x53, 4, 0x51), RdFs1Fs2 Other FloatAdd ZFA_D;
    FclassD "fclass.d" unary(0x53, 1, 0xe20), RdFs1 Other FloatAdd [D];
    FcvtWD "fcvt.w.d" fp1(0x61, 0), RdFs1Round Other FloatAdd [D];
    FcvtDW "fcvt.d.w" fp1(0x69, 0), FdRs1Round Other FloatAdd [D];
    FcvtWuD "fcvt.wu.d" fp1(0x61, 1), RdFs1Round Other FloatAdd [D];
    FcvtDWu "fcvt.d.wu" fp1(0x69, 1), FdRs1Round Other FloatAdd [D];
    FcvtLD "fcvt.l.d" fp1(0x61, 2), RdFs1Round Other FloatAdd [D];
    FcvtDL "fcvt.d.l" fp1(0x69, 2), FdRs1Round Other FloatAdd [D];
    FcvtLuD "fcvt.lu.d" fp1(0x61, 3), RdFs1Round Other FloatAdd [D];
    FcvtDLu "fcvt.d.lu" fp1(0x69, 3), FdRs1Round Other FloatAdd [D];
    FroundD "fround.d" fp1(0x21, 4), FdFs1Round Other FloatAdd ZFA_D;
    FroundnxD "froundnx.d" fp1(0x21, 5), FdFs1Round Other FloatAdd ZFA_D;
    FliD "fli.d" unary(0x53, 0, 0xf21), FdConstant Other FloatCopy ZFA_D;
    // Conversions between the formats
    FcvtSD "fcvt.s.d" fp1(0x20, 1), FdFs1Round Other FloatAdd [D];
    FcvtDS "fcvt.d.s" fp1(0x21, 0), FdFs1Round Other FloatAdd [D];
    FcvtSH "fcvt.s.h" fp1(0x20, 2), FdFs1Round Other FloatAdd [Zfhmin];
    FcvtHS "fcvt.h.s" fp1(0x22, 0), FdFs1Round Other FloatAdd [Zfhmin];
    FcvtDH "fcvt.d.h" fp1(0x21, 2), FdFs1Round Other FloatAdd ZFHMIN_D;
    FcvtHD "fcvt.h.d" fp1(0x22, 1), FdFs1Round Other FloatAdd ZFHMIN_D;
    FcvtmodWD "fcvtmod.w.d" unary(0x53, 1, 0xc28), RdFs1Round Other FloatAdd ZFA_D;
}
