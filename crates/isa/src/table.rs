//! The table: one line an instruction, from which everything else in the crate derives.
//!
//! Section numbers are those of chapter 4 of the Alpha Architecture Reference Manual; opcodes and
//! functions are its appendix C.

use crate::classes::Group::{self, *};
use crate::qualifiers::QualifierSet::{self, *};
use {Extension::*, InstructionFormat::*, Operands::*};

/// How an instruction word is laid out (Alpha Architecture Reference Manual, 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionFormat {
    /// Register, base register, 16-bit displacement.
    Memory,
    /// Two registers and a 16-bit function in the place of the displacement.
    MemoryFunction,
    /// Two registers, 2 bits of function, a 14-bit hint of the target.
    MemoryJump,
    /// Register and 21-bit displacement in instructions.
    Branch,
    /// Register, register or 8-bit literal, 7-bit function, destination.
    Operate,
    /// Two registers, 11-bit function, destination.
    FloatOperate,
    /// 26-bit function of the privileged architecture library.
    Pal,
}

/// Which fields of the word name operands, and of which register file. The register fields that
/// are not named must be 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operands {
    /// Integer register and memory: `ldq ra,disp(rb)`.
    RaMemory,
    /// Floating-point register and memory: `ldt fa,disp(rb)`.
    FaMemory,
    /// Return-address register, register with the target, hint: `jsr ra,(rb),hint`.
    Jump,
    /// Integer register and branch displacement.
    RaBranch,
    /// Floating-point register and branch displacement.
    FaBranch,
    /// Two integer sources, the second of which may be a literal, and a destination.
    RaRbRc,
    /// Two integer registers and a destination.
    RegistersRaRbRc,
    /// An integer register or a literal, and a destination.
    RbRc,
    /// An integer register and a destination.
    RegisterRbRc,
    /// An integer destination; Rb is the literal 1.
    Rc,
    /// Two floating-point sources and a destination.
    FaFbFc,
    /// A floating-point source and destination.
    FbFc,
    /// From a floating-point register to an integer one.
    FaRc,
    /// From an integer register to a floating-point one.
    RaFc,
    /// One floating-point register, named by all three fields.
    Fpcr,
    /// No operands; the register fields are ignored.
    Nothing,
    /// An integer register; Rb is ignored.
    Ra,
    /// Two integer registers.
    RaRb,
    /// An address in an integer register: `fetch (rb)`.
    Address,
    /// A function of the privileged architecture library.
    PalFunction,
}

/// The extension of the architecture that brought an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extension {
    /// In every implementation.
    Base,
    /// Bytes and words.
    Bwx,
    /// Square roots and moves between the register files.
    Fix,
    /// Counts of bits.
    Cix,
    /// Packed bytes and words.
    Mvi,
}

/// Properties of an instruction that do not follow from its format and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// Reads memory into a register.
    pub const LOAD: Flags = Flags(1 << 0);
    /// Writes a register to memory.
    pub const STORE: Flags = Flags(1 << 1);
    /// Accesses 1 byte.
    pub const BYTE: Flags = Flags(1 << 2);
    /// Accesses 2 bytes.
    pub const WORD: Flags = Flags(1 << 3);
    /// Accesses 4 bytes.
    pub const LONG: Flags = Flags(1 << 4);
    /// Accesses 8 bytes.
    pub const QUAD: Flags = Flags(1 << 5);
    /// Load-locked or store-conditional.
    pub const LOCKED: Flags = Flags(1 << 6);
    /// May transfer control (PAL calls do not count).
    pub const BRANCH: Flags = Flags(1 << 7);
    /// Transfers control on a condition only.
    pub const CONDITIONAL: Flags = Flags(1 << 8);
    /// A transfer that calls.
    pub const CALL: Flags = Flags(1 << 9);
    /// A transfer that returns.
    pub const RETURN: Flags = Flags(1 << 10);
    /// Traps on integer overflow.
    pub const OVERFLOW: Flags = Flags(1 << 11);
    /// Works on a VAX floating-point format.
    pub const VAX: Flags = Flags(1 << 12);

    /// Whether all of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionRow {
    /// The instruction.
    pub op: Op,
    /// The manual's mnemonic, without qualifiers of floating-point operations.
    pub mnemonic: &'static str,
    /// How the word is laid out.
    pub format: InstructionFormat,
    /// Bits 31:26.
    pub opcode: u8,
    /// The function, as wide as the format has it; without qualifiers of floating-point operations.
    pub function: u16,
    /// Which fields name operands.
    pub operands: Operands,
    /// The group of the instruction mix.
    pub group: Group,
    /// The extension it came with.
    pub extension: Extension,
    /// More properties.
    pub flags: Flags,
    /// The qualifiers a floating-point operation may carry.
    pub qualifiers: QualifierSet,
}

/// Writes the instructions as variants of [`Op`] and rows of [`TABLE`].
macro_rules! instructions {
    ($($op:ident, $mnemonic:literal, $format:ident, $opcode:literal, $function:literal, $operands:ident,
       $group:ident, $extension:ident, [$($flag:ident)*] $(, $qualifiers:ident)?;)*) => {
        /// An instruction of the user mode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Op { $(#[doc = concat!("`", $mnemonic, "`")] $op,)* }

        /// Every instruction, in the order of [`Op`].
        pub static TABLE: [InstructionRow; Op::COUNT] = ROWS;

        /// The same for constant evaluation.
        pub(crate) const ROWS: [InstructionRow; Op::COUNT] = [$(InstructionRow {
            op: Op::$op,
            mnemonic: $mnemonic,
            format: $format,
            opcode: $opcode,
            function: $function,
            operands: $operands,
            group: $group,
            extension: $extension,
            flags: Flags(0 $(| Flags::$flag.0)*),
            qualifiers: last!(Unqualified $($qualifiers)?),
        },)*];

        impl Op {
            /// Every instruction.
            pub const ALL: [Op; Op::COUNT] = [$(Op::$op,)*];
            /// How many there are.
            pub const COUNT: usize = [$($opcode,)*].len();
        }
    };
}

/// The last of one or two names: a default and what replaces it.
macro_rules! last {
    ($default:ident) => {
        $default
    };
    ($default:ident $given:ident) => {
        $given
    };
}

#[rustfmt::skip]
instructions! {
    //  op        mnemonic         format          opcode function operands       group          extension flags, qualifiers
    // Loads and stores (4.2; 4.8 for floating-point)
    Lda,          "lda",           Memory,         0x08, 0,      RaMemory,        IntegerLoad,       Base, [];
    Ldah,         "ldah",          Memory,         0x09, 0,      RaMemory,        IntegerLoad,       Base, [];
    Ldbu,         "ldbu",          Memory,         0x0a, 0,      RaMemory,        IntegerLoad,       Bwx,  [LOAD BYTE];
    LdqU,         "ldq_u",         Memory,         0x0b, 0,      RaMemory,        IntegerLoad,       Base, [LOAD QUAD];
    Ldwu,         "ldwu",          Memory,         0x0c, 0,      RaMemory,        IntegerLoad,       Bwx,  [LOAD WORD];
    Stw,          "stw",           Memory,         0x0d, 0,      RaMemory,        IntegerStore,      Bwx,  [STORE WORD];
    Stb,          "stb",           Memory,         0x0e, 0,      RaMemory,        IntegerStore,      Bwx,  [STORE BYTE];
    StqU,         "stq_u",         Memory,         0x0f, 0,      RaMemory,        IntegerStore,      Base, [STORE QUAD];
    Ldf,          "ldf",           Memory,         0x20, 0,      FaMemory,        Other,             Base, [LOAD LONG VAX];
    Ldg,          "ldg",           Memory,         0x21, 0,      FaMemory,        Other,             Base, [LOAD QUAD VAX];
    Lds,          "lds",           Memory,         0x22, 0,      FaMemory,        Other,             Base, [LOAD LONG];
    Ldt,          "ldt",           Memory,         0x23, 0,      FaMemory,        Other,             Base, [LOAD QUAD];
    Stf,          "stf",           Memory,         0x24, 0,      FaMemory,        Other,             Base, [STORE LONG VAX];
    Stg,          "stg",           Memory,         0x25, 0,      FaMemory,        Other,             Base, [STORE QUAD VAX];
    Sts,          "sts",           Memory,         0x26, 0,      FaMemory,        Other,             Base, [STORE LONG];
    Stt,          "stt",           Memory,         0x27, 0,      FaMemory,        Other,             Base, [STORE QUAD];
    Ldl,          "ldl",           Memory,         0x28, 0,      RaMemory,        IntegerLoad,       Base, [LOAD LONG];
    Ldq,          "ldq",           Memory,         0x29, 0,      RaMemory,        IntegerLoad,       Base, [LOAD QUAD];
    LdlL,         "ldl_l",         Memory,         0x2a, 0,      RaMemory,        IntegerLoad,       Base, [LOAD LONG LOCKED];
    LdqL,         "ldq_l",         Memory,         0x2b, 0,      RaMemory,        IntegerLoad,       Base, [LOAD QUAD LOCKED];
    Stl,          "stl",           Memory,         0x2c, 0,      RaMemory,        IntegerStore,      Base, [STORE LONG];
    Stq,          "stq",           Memory,         0x2d, 0,      RaMemory,        IntegerStore,      Base, [STORE QUAD];
    StlC,         "stl_c",         Memory,         0x2e, 0,      RaMemory,        IntegerStore,      Base, [STORE LONG LOCKED];
    StqC,         "stq_c",         Memory,         0x2f, 0,      RaMemory,        IntegerStore,      Base, [STORE QUAD LOCKED];
    // Control (4.3; 4.9 for floating-point); the function is bits 15:14 of a jump
    Jmp,          "jmp",           MemoryJump,     0x1a, 0x000,  Jump,            IntegerControl,    Base, [BRANCH];
    Jsr,          "jsr",           MemoryJump,     0x1a, 0x001,  Jump,            IntegerControl,    Base, [BRANCH CALL];
    Ret,          "ret",           MemoryJump,     0x1a, 0x002,  Jump,            IntegerControl,    Base, [BRANCH RETURN];
    JsrCoroutine, "jsr_coroutine", MemoryJump,     0x1a, 0x003,  Jump,            IntegerControl,    Base, [BRANCH];
    Br,           "br",            Branch,         0x30, 0,      RaBranch,        IntegerControl,    Base, [BRANCH];
    Fbeq,         "fbeq",          Branch,         0x31, 0,      FaBranch,        Other,             Base, [BRANCH CONDITIONAL];
    Fblt,         "fblt",          Branch,         0x32, 0,      FaBranch,        Other,             Base, [BRANCH CONDITIONAL];
    Fble,         "fble",          Branch,         0x33, 0,      FaBranch,        Other,             Base, [BRANCH CONDITIONAL];
    Bsr,          "bsr",           Branch,         0x34, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CALL];
    Fbne,         "fbne",          Branch,         0x35, 0,      FaBranch,        Other,             Base, [BRANCH CONDITIONAL];
    Fbge,         "fbge",          Branch,         0x36, 0,      FaBranch,        Other,             Base, [BRANCH CONDITIONAL];
    Fbgt,         "fbgt",          Branch,         0x37, 0,      FaBranch,        Other,             Base, [BRANCH CONDITIONAL];
    Blbc,         "blbc",          Branch,         0x38, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Beq,          "beq",           Branch,         0x39, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Blt,          "blt",           Branch,         0x3a, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Ble,          "ble",           Branch,         0x3b, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Blbs,         "blbs",          Branch,         0x3c, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Bne,          "bne",           Branch,         0x3d, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Bge,          "bge",           Branch,         0x3e, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    Bgt,          "bgt",           Branch,         0x3f, 0,      RaBranch,        IntegerControl,    Base, [BRANCH CONDITIONAL];
    // Integer arithmetic (4.4)
    Addl,         "addl",          Operate,        0x10, 0x000,  RaRbRc,          IntegerArithmetic, Base, [];
    S4addl,       "s4addl",        Operate,        0x10, 0x002,  RaRbRc,          IntegerArithmetic, Base, [];
    Subl,         "subl",          Operate,        0x10, 0x009,  RaRbRc,          IntegerArithmetic, Base, [];
    S4subl,       "s4subl",        Operate,        0x10, 0x00b,  RaRbRc,          IntegerArithmetic, Base, [];
    Cmpbge,       "cmpbge",        Operate,        0x10, 0x00f,  RaRbRc,          IntegerArithmetic, Base, [];
    S8addl,       "s8addl",        Operate,        0x10, 0x012,  RaRbRc,          IntegerArithmetic, Base, [];
    S8subl,       "s8subl",        Operate,        0x10, 0x01b,  RaRbRc,          IntegerArithmetic, Base, [];
    Cmpult,       "cmpult",        Operate,        0x10, 0x01d,  RaRbRc,          IntegerArithmetic, Base, [];
    Addq,         "addq",          Operate,        0x10, 0x020,  RaRbRc,          IntegerArithmetic, Base, [];
    S4addq,       "s4addq",        Operate,        0x10, 0x022,  RaRbRc,          IntegerArithmetic, Base, [];
    Subq,         "subq",          Operate,        0x10, 0x029,  RaRbRc,          IntegerArithmetic, Base, [];
    S4subq,       "s4subq",        Operate,        0x10, 0x02b,  RaRbRc,          IntegerArithmetic, Base, [];
    Cmpeq,        "cmpeq",         Operate,        0x10, 0x02d,  RaRbRc,          IntegerArithmetic, Base, [];
    S8addq,       "s8addq",        Operate,        0x10, 0x032,  RaRbRc,          IntegerArithmetic, Base, [];
    S8subq,       "s8subq",        Operate,        0x10, 0x03b,  RaRbRc,          IntegerArithmetic, Base, [];
    Cmpule,       "cmpule",        Operate,        0x10, 0x03d,  RaRbRc,          IntegerArithmetic, Base, [];
    Addlv,        "addl/v",        Operate,        0x10, 0x040,  RaRbRc,          IntegerArithmetic, Base, [OVERFLOW];
    Sublv,        "subl/v",        Operate,        0x10, 0x049,  RaRbRc,          IntegerArithmetic, Base, [OVERFLOW];
    Cmplt,        "cmplt",         Operate,        0x10, 0x04d,  RaRbRc,          IntegerArithmetic, Base, [];
    Addqv,        "addq/v",        Operate,        0x10, 0x060,  RaRbRc,          IntegerArithmetic, Base, [OVERFLOW];
    Subqv,        "subq/v",        Operate,        0x10, 0x069,  RaRbRc,          IntegerArithmetic, Base, [OVERFLOW];
    Cmple,        "cmple",         Operate,        0x10, 0x06d,  RaRbRc,          IntegerArithmetic, Base, [];
    Mull,         "mull",          Operate,        0x13, 0x000,  RaRbRc,          IntegerArithmetic, Base, [];
    Mulq,         "mulq",          Operate,        0x13, 0x020,  RaRbRc,          Other,             Base, [];
    Umulh,        "umulh",         Operate,        0x13, 0x030,  RaRbRc,          IntegerArithmetic, Base, [];
    Mullv,        "mull/v",        Operate,        0x13, 0x040,  RaRbRc,          IntegerArithmetic, Base, [OVERFLOW];
    Mulqv,        "mulq/v",        Operate,        0x13, 0x060,  RaRbRc,          Other,             Base, [OVERFLOW];
    // Logical (4.5); what the processor implements (4.11)
    And,          "and",           Operate,        0x11, 0x000,  RaRbRc,          LogicalShift,      Base, [];
    Bic,          "bic",           Operate,        0x11, 0x008,  RaRbRc,          LogicalShift,      Base, [];
    Cmovlbs,      "cmovlbs",       Operate,        0x11, 0x014,  RaRbRc,          LogicalShift,      Base, [];
    Cmovlbc,      "cmovlbc",       Operate,        0x11, 0x016,  RaRbRc,          LogicalShift,      Base, [];
    Bis,          "bis",           Operate,        0x11, 0x020,  RaRbRc,          LogicalShift,      Base, [];
    Cmoveq,       "cmoveq",        Operate,        0x11, 0x024,  RaRbRc,          LogicalShift,      Base, [];
    Cmovne,       "cmovne",        Operate,        0x11, 0x026,  RaRbRc,          LogicalShift,      Base, [];
    Ornot,        "ornot",         Operate,        0x11, 0x028,  RaRbRc,          LogicalShift,      Base, [];
    Xor,          "xor",           Operate,        0x11, 0x040,  RaRbRc,          LogicalShift,      Base, [];
    Cmovlt,       "cmovlt",        Operate,        0x11, 0x044,  RaRbRc,          LogicalShift,      Base, [];
    Cmovge,       "cmovge",        Operate,        0x11, 0x046,  RaRbRc,          LogicalShift,      Base, [];
    Eqv,          "eqv",           Operate,        0x11, 0x048,  RaRbRc,          LogicalShift,      Base, [];
    Amask,        "amask",         Operate,        0x11, 0x061,  RbRc,            Other,             Base, [];
    Cmovle,       "cmovle",        Operate,        0x11, 0x064,  RaRbRc,          LogicalShift,      Base, [];
    Cmovgt,       "cmovgt",        Operate,        0x11, 0x066,  RaRbRc,          LogicalShift,      Base, [];
    Implver,      "implver",       Operate,        0x11, 0x06c,  Rc,              Other,             Base, [];
    // Shift and byte manipulation (4.5, 4.6)
    Mskbl,        "mskbl",         Operate,        0x12, 0x002,  RaRbRc,          ByteManipulation,  Base, [];
    Extbl,        "extbl",         Operate,        0x12, 0x006,  RaRbRc,          ByteManipulation,  Base, [];
    Insbl,        "insbl",         Operate,        0x12, 0x00b,  RaRbRc,          ByteManipulation,  Base, [];
    Mskwl,        "mskwl",         Operate,        0x12, 0x012,  RaRbRc,          ByteManipulation,  Base, [];
    Extwl,        "extwl",         Operate,        0x12, 0x016,  RaRbRc,          ByteManipulation,  Base, [];
    Inswl,        "inswl",         Operate,        0x12, 0x01b,  RaRbRc,          ByteManipulation,  Base, [];
    Mskll,        "mskll",         Operate,        0x12, 0x022,  RaRbRc,          ByteManipulation,  Base, [];
    Extll,        "extll",         Operate,        0x12, 0x026,  RaRbRc,          ByteManipulation,  Base, [];
    Insll,        "insll",         Operate,        0x12, 0x02b,  RaRbRc,          ByteManipulation,  Base, [];
    Zap,          "zap",           Operate,        0x12, 0x030,  RaRbRc,          ByteManipulation,  Base, [];
    Zapnot,       "zapnot",        Operate,        0x12, 0x031,  RaRbRc,          ByteManipulation,  Base, [];
    Mskql,        "mskql",         Operate,        0x12, 0x032,  RaRbRc,          ByteManipulation,  Base, [];
    Srl,          "srl",           Operate,        0x12, 0x034,  RaRbRc,          LogicalShift,      Base, [];
    Extql,        "extql",         Operate,        0x12, 0x036,  RaRbRc,          ByteManipulation,  Base, [];
    Sll,          "sll",           Operate,        0x12, 0x039,  RaRbRc,          LogicalShift,      Base, [];
    Insql,        "insql",         Operate,        0x12, 0x03b,  RaRbRc,          ByteManipulation,  Base, [];
    Sra,          "sra",           Operate,        0x12, 0x03c,  RaRbRc,          LogicalShift,      Base, [];
    Mskwh,        "mskwh",         Operate,        0x12, 0x052,  RaRbRc,          ByteManipulation,  Base, [];
    Inswh,        "inswh",         Operate,        0x12, 0x057,  RaRbRc,          ByteManipulation,  Base, [];
    Extwh,        "extwh",         Operate,        0x12, 0x05a,  RaRbRc,          ByteManipulation,  Base, [];
    Msklh,        "msklh",         Operate,        0x12, 0x062,  RaRbRc,          ByteManipulation,  Base, [];
    Inslh,        "inslh",         Operate,        0x12, 0x067,  RaRbRc,          ByteManipulation,  Base, [];
    Extlh,        "extlh",         Operate,        0x12, 0x06a,  RaRbRc,          ByteManipulation,  Base, [];
    Mskqh,        "mskqh",         Operate,        0x12, 0x072,  RaRbRc,          ByteManipulation,  Base, [];
    Insqh,        "insqh",         Operate,        0x12, 0x077,  RaRbRc,          ByteManipulation,  Base, [];
    Extqh,        "extqh",         Operate,        0x12, 0x07a,  RaRbRc,          ByteManipulation,  Base, [];
    // Sign extension, counts, packed bytes and words (4.4, 4.6, 4.13)
    Sextb,        "sextb",         Operate,        0x1c, 0x000,  RbRc,            ByteManipulation,  Bwx,  [];
    Sextw,        "sextw",         Operate,        0x1c, 0x001,  RbRc,            ByteManipulation,  Bwx,  [];
    Ctpop,        "ctpop",         Operate,        0x1c, 0x030,  RegisterRbRc,    LogicalShift,      Cix,  [];
    Perr,         "perr",          Operate,        0x1c, 0x031,  RegistersRaRbRc, ByteManipulation,  Mvi,  [];
    Ctlz,         "ctlz",          Operate,        0x1c, 0x032,  RegisterRbRc,    LogicalShift,      Cix,  [];
    Cttz,         "cttz",          Operate,        0x1c, 0x033,  RegisterRbRc,    LogicalShift,      Cix,  [];
    Unpkbw,       "unpkbw",        Operate,        0x1c, 0x034,  RegisterRbRc,    ByteManipulation,  Mvi,  [];
    Unpkbl,       "unpkbl",        Operate,        0x1c, 0x035,  RegisterRbRc,    ByteManipulation,  Mvi,  [];
    Pkwb,         "pkwb",          Operate,        0x1c, 0x036,  RegisterRbRc,    ByteManipulation,  Mvi,  [];
    Pklb,         "pklb",          Operate,        0x1c, 0x037,  RegisterRbRc,    ByteManipulation,  Mvi,  [];
    Minsb8,       "minsb8",        Operate,        0x1c, 0x038,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Minsw4,       "minsw4",        Operate,        0x1c, 0x039,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Minub8,       "minub8",        Operate,        0x1c, 0x03a,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Minuw4,       "minuw4",        Operate,        0x1c, 0x03b,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Maxub8,       "maxub8",        Operate,        0x1c, 0x03c,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Maxuw4,       "maxuw4",        Operate,        0x1c, 0x03d,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Maxsb8,       "maxsb8",        Operate,        0x1c, 0x03e,  RaRbRc,          ByteManipulation,  Mvi,  [];
    Maxsw4,       "maxsw4",        Operate,        0x1c, 0x03f,  RaRbRc,          ByteManipulation,  Mvi,  [];
    // Moves between the register files and square roots (4.10); function without qualifiers
    Ftoit,        "ftoit",         FloatOperate,   0x1c, 0x070,  FaRc,            Other,             Fix,  [];
    Ftois,        "ftois",         FloatOperate,   0x1c, 0x078,  FaRc,            Other,             Fix,  [];
    Itofs,        "itofs",         FloatOperate,   0x14, 0x004,  RaFc,            Other,             Fix,  [];
    Itoff,        "itoff",         FloatOperate,   0x14, 0x014,  RaFc,            Other,             Fix,  [VAX];
    Itoft,        "itoft",         FloatOperate,   0x14, 0x024,  RaFc,            Other,             Fix,  [];
    Sqrtf,        "sqrtf",         FloatOperate,   0x14, 0x08a,  FbFc,            Other,             Fix,  [VAX], VaxArithmetic;
    Sqrts,        "sqrts",         FloatOperate,   0x14, 0x08b,  FbFc,            Other,             Fix,  [], IeeeArithmetic;
    Sqrtg,        "sqrtg",         FloatOperate,   0x14, 0x0aa,  FbFc,            Other,             Fix,  [VAX], VaxArithmetic;
    Sqrtt,        "sqrtt",         FloatOperate,   0x14, 0x0ab,  FbFc,            Other,             Fix,  [], IeeeArithmetic;
    // VAX floating-point (4.10)
    Addf,         "addf",          FloatOperate,   0x15, 0x080,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Subf,         "subf",          FloatOperate,   0x15, 0x081,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Mulf,         "mulf",          FloatOperate,   0x15, 0x082,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Divf,         "divf",          FloatOperate,   0x15, 0x083,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Cvtdg,        "cvtdg",         FloatOperate,   0x15, 0x09e,  FbFc,            Other,             Base, [VAX], VaxArithmetic;
    Addg,         "addg",          FloatOperate,   0x15, 0x0a0,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Subg,         "subg",          FloatOperate,   0x15, 0x0a1,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Mulg,         "mulg",          FloatOperate,   0x15, 0x0a2,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Divg,         "divg",          FloatOperate,   0x15, 0x0a3,  FaFbFc,          Other,             Base, [VAX], VaxArithmetic;
    Cmpgeq,       "cmpgeq",        FloatOperate,   0x15, 0x0a5,  FaFbFc,          Other,             Base, [VAX], VaxCompare;
    Cmpglt,       "cmpglt",        FloatOperate,   0x15, 0x0a6,  FaFbFc,          Other,             Base, [VAX], VaxCompare;
    Cmpgle,       "cmpgle",        FloatOperate,   0x15, 0x0a7,  FaFbFc,          Other,             Base, [VAX], VaxCompare;
    Cvtgf,        "cvtgf",         FloatOperate,   0x15, 0x0ac,  FbFc,            Other,             Base, [VAX], VaxArithmetic;
    Cvtgd,        "cvtgd",         FloatOperate,   0x15, 0x0ad,  FbFc,            Other,             Base, [VAX], VaxArithmetic;
    Cvtgq,        "cvtgq",         FloatOperate,   0x15, 0x0af,  FbFc,            Other,             Base, [VAX], VaxToInteger;
    Cvtqf,        "cvtqf",         FloatOperate,   0x15, 0x0bc,  FbFc,            Other,             Base, [VAX], VaxFromInteger;
    Cvtqg,        "cvtqg",         FloatOperate,   0x15, 0x0be,  FbFc,            Other,             Base, [VAX], VaxFromInteger;
    // IEEE floating-point (4.10)
    Adds,         "adds",          FloatOperate,   0x16, 0x080,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Subs,         "subs",          FloatOperate,   0x16, 0x081,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Muls,         "muls",          FloatOperate,   0x16, 0x082,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Divs,         "divs",          FloatOperate,   0x16, 0x083,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Addt,         "addt",          FloatOperate,   0x16, 0x0a0,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Subt,         "subt",          FloatOperate,   0x16, 0x0a1,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Mult,         "mult",          FloatOperate,   0x16, 0x0a2,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Divt,         "divt",          FloatOperate,   0x16, 0x0a3,  FaFbFc,          Other,             Base, [], IeeeArithmetic;
    Cmptun,       "cmptun",        FloatOperate,   0x16, 0x0a4,  FaFbFc,          Other,             Base, [], IeeeCompare;
    Cmpteq,       "cmpteq",        FloatOperate,   0x16, 0x0a5,  FaFbFc,          Other,             Base, [], IeeeCompare;
    Cmptlt,       "cmptlt",        FloatOperate,   0x16, 0x0a6,  FaFbFc,          Other,             Base, [], IeeeCompare;
    Cmptle,       "cmptle",        FloatOperate,   0x16, 0x0a7,  FaFbFc,          Other,             Base, [], IeeeCompare;
    Cvtts,        "cvtts",         FloatOperate,   0x16, 0x0ac,  FbFc,            Other,             Base, [], IeeeArithmetic;
    Cvtst,        "cvtst",         FloatOperate,   0x16, 0x2ac,  FbFc,            Other,             Base, [], SingleToT;
    Cvttq,        "cvttq",         FloatOperate,   0x16, 0x0af,  FbFc,            Other,             Base, [], IeeeToInteger;
    Cvtqs,        "cvtqs",         FloatOperate,   0x16, 0x0bc,  FbFc,            Other,             Base, [], IeeeFromInteger;
    Cvtqt,        "cvtqt",         FloatOperate,   0x16, 0x0be,  FbFc,            Other,             Base, [], IeeeFromInteger;
    // Floating-point of either kind (4.10)
    Cvtlq,        "cvtlq",         FloatOperate,   0x17, 0x010,  FbFc,            Other,             Base, [];
    Cpys,         "cpys",          FloatOperate,   0x17, 0x020,  FaFbFc,          Other,             Base, [];
    Cpysn,        "cpysn",         FloatOperate,   0x17, 0x021,  FaFbFc,          Other,             Base, [];
    Cpyse,        "cpyse",         FloatOperate,   0x17, 0x022,  FaFbFc,          Other,             Base, [];
    MtFpcr,       "mt_fpcr",       FloatOperate,   0x17, 0x024,  Fpcr,            Other,             Base, [];
    MfFpcr,       "mf_fpcr",       FloatOperate,   0x17, 0x025,  Fpcr,            Other,             Base, [];
    Fcmoveq,      "fcmoveq",       FloatOperate,   0x17, 0x02a,  FaFbFc,          Other,             Base, [];
    Fcmovne,      "fcmovne",       FloatOperate,   0x17, 0x02b,  FaFbFc,          Other,             Base, [];
    Fcmovlt,      "fcmovlt",       FloatOperate,   0x17, 0x02c,  FaFbFc,          Other,             Base, [];
    Fcmovge,      "fcmovge",       FloatOperate,   0x17, 0x02d,  FaFbFc,          Other,             Base, [];
    Fcmovle,      "fcmovle",       FloatOperate,   0x17, 0x02e,  FaFbFc,          Other,             Base, [];
    Fcmovgt,      "fcmovgt",       FloatOperate,   0x17, 0x02f,  FaFbFc,          Other,             Base, [];
    Cvtql,        "cvtql",         FloatOperate,   0x17, 0x030,  FbFc,            Other,             Base, [], QuadToLong;
    // Miscellaneous (4.11)
    Trapb,        "trapb",         MemoryFunction, 0x18, 0x000,  Nothing,         Other,             Base, [];
    Excb,         "excb",          MemoryFunction, 0x18, 0x400,  Nothing,         Other,             Base, [];
    Mb,           "mb",            MemoryFunction, 0x18, 0x4000, Nothing,         Other,             Base, [];
    Wmb,          "wmb",           MemoryFunction, 0x18, 0x4400, Nothing,         Other,             Base, [];
    Fetch,        "fetch",         MemoryFunction, 0x18, 0x8000, Address,         Other,             Base, [];
    FetchM,       "fetch_m",       MemoryFunction, 0x18, 0xa000, Address,         Other,             Base, [];
    Rpcc,         "rpcc",          MemoryFunction, 0x18, 0xc000, RaRb,            Other,             Base, [];
    Rc,           "rc",            MemoryFunction, 0x18, 0xe000, Ra,              Other,             Base, [];
    Ecb,          "ecb",           MemoryFunction, 0x18, 0xe800, Address,         Other,             Base, [];
    Rs,           "rs",            MemoryFunction, 0x18, 0xf000, Ra,              Other,             Base, [];
    Wh64,         "wh64",          MemoryFunction, 0x18, 0xf800, Address,         Other,             Base, [];
    Wh64en,       "wh64en",        MemoryFunction, 0x18, 0xfc00, Address,         Other,             Base, [];
    CallPal,      "call_pal",      Pal,            0x00, 0,      PalFunction,     Other,             Base, [];
}

impl Op {
    /// The instruction's line of the table.
    #[inline]
    pub fn row(self) -> &'static InstructionRow {
        &TABLE[self as usize]
    }

    /// The manual's mnemonic, without qualifiers.
    pub fn mnemonic(self) -> &'static str {
        self.row().mnemonic
    }

    /// The layout of its word.
    pub fn format(self) -> InstructionFormat {
        self.row().format
    }

    /// Its group in the instruction mix.
    pub fn group(self) -> Group {
        self.row().group
    }

    /// The extension it came with.
    pub fn extension(self) -> Extension {
        self.row().extension
    }

    /// Whether all of `flags` hold for it.
    #[inline]
    pub fn is(self, flags: Flags) -> bool {
        self.row().flags.contains(flags)
    }

    /// Bytes read or written in memory, if it is a load or a store.
    pub fn access_size(self) -> Option<u8> {
        [(Flags::BYTE, 1), (Flags::WORD, 2), (Flags::LONG, 4), (Flags::QUAD, 8)]
            .into_iter()
            .find_map(|(flag, size)| self.is(flag).then_some(size))
    }

    /// Whether it leaves out the low bits of the address that it accesses.
    #[inline]
    pub fn is_rounded(self) -> bool {
        matches!(self, Op::LdqU | Op::StqU)
    }

    /// Whether any operand is a floating-point register.
    pub fn is_float(self) -> bool {
        matches!(self.row().operands, FaMemory | FaBranch | FaFbFc | FbFc | FaRc | RaFc | Fpcr)
    }
}
