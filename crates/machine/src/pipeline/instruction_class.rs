//! The class of an instruction in a pipeline, and the registers that it reads and writes.

use isa::{Flags, Instruction, Op, Operands};
use serde::{Deserialize, Serialize};

/// Defines the classes as an enumeration with names.
macro_rules! classes {
    ($($class:ident, $name:literal, $what:literal;)*) => {
        /// Instructions that a pipeline treats alike. The names are those of `[pipeline.classes]`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum InstructionClass { $(#[doc = $what] $class,)* }

        impl InstructionClass {
            /// All classes.
            pub const ALL: [InstructionClass; InstructionClass::COUNT] = [$(InstructionClass::$class,)*];
            /// The number of classes.
            pub const COUNT: usize = [$($name,)*].len();

            /// Its name in descriptions.
            pub fn name(self) -> &'static str {
                [$($name,)*][self as usize]
            }
        }
    };
}

classes! {
    Load, "load", "Loads of integer registers.";
    FloatLoad, "float-load", "Loads of floating-point registers.";
    Store, "store", "Stores of integer registers.";
    FloatStore, "float-store", "Stores of floating-point registers.";
    LoadLocked, "load-locked", "`ldl_l`, `ldq_l`.";
    StoreConditional, "store-conditional", "`stl_c`, `stq_c`.";
    MemoryBarrier, "memory-barrier", "`mb`.";
    MemoryHint, "memory-hint", "`wmb`, `fetch`, `ecb`, `wh64`.";
    Branch, "branch", "Conditional branches on integer registers.";
    FloatBranch, "float-branch", "Conditional branches on floating-point registers.";
    Jump, "jump", "Jumps, and branches that are always taken.";
    CallPal, "call-pal", "Calls of the privileged architecture library.";
    Add, "add", "Integer addition and subtraction, `lda`, `ldah`.";
    Logical, "logical", "Logical operations.";
    Shift, "shift", "Shifts; bytes and words extracted, inserted, masked, extended; packed operations.";
    Compare, "compare", "Integer comparisons.";
    ConditionalMove, "conditional-move", "Integer conditional moves.";
    MultiplyLong, "multiply-long", "`mull`.";
    MultiplyQuad, "multiply-quad", "`mulq`.";
    MultiplyHigh, "multiply-high", "`umulh`.";
    FloatAdd, "float-add", "Floating-point operations that have no class of their own.";
    FloatMultiply, "float-multiply", "Floating-point multiplication.";
    FloatDivideSingle, "float-divide-single", "Division and square root, single precision.";
    FloatDivideDouble, "float-divide-double", "Division and square root, double precision.";
    FloatCopy, "float-copy", "`cpys`.";
    Miscellaneous, "miscellaneous", "`rpcc`.";
    TrapBarrier, "trap-barrier", "`trapb`, `excb`.";
    ReadFlag, "read-flag", "`rs`, `rc`.";
    Nothing, "nothing", "`unop`, and words that are no instruction.";
}

impl InstructionClass {
    /// The class of an instruction.
    pub fn of(instruction: Instruction) -> InstructionClass {
        use Op::*;
        let op = instruction.op;
        match op {
            LdqU if instruction.ra() == 31 => InstructionClass::Nothing,
            LdlL | LdqL => InstructionClass::LoadLocked,
            StlC | StqC => InstructionClass::StoreConditional,
            Mb => InstructionClass::MemoryBarrier,
            Wmb | Fetch | FetchM | Ecb | Wh64 | Wh64en => InstructionClass::MemoryHint,
            CallPal => InstructionClass::CallPal,
            Rpcc => InstructionClass::Miscellaneous,
            Trapb | Excb => InstructionClass::TrapBarrier,
            Rs | Rc => InstructionClass::ReadFlag,
            Lda | Ldah | Addl | Addq | Subl | Subq | Addlv | Addqv | Sublv | Subqv | S4addl | S4addq
            | S4subl | S4subq | S8addl | S8addq | S8subl | S8subq => InstructionClass::Add,
            Cmpeq | Cmplt | Cmple | Cmpult | Cmpule | Cmpbge => InstructionClass::Compare,
            And | Bic | Bis | Ornot | Xor | Eqv | Amask | Implver => InstructionClass::Logical,
            Mull | Mullv => InstructionClass::MultiplyLong,
            Mulq | Mulqv => InstructionClass::MultiplyQuad,
            Umulh => InstructionClass::MultiplyHigh,
            Mulf | Mulg | Muls | Mult => InstructionClass::FloatMultiply,
            Divf | Divs | Sqrtf | Sqrts => InstructionClass::FloatDivideSingle,
            Divg | Divt | Sqrtg | Sqrtt => InstructionClass::FloatDivideDouble,
            Cpys => InstructionClass::FloatCopy,
            _ if is_conditional_move(op) && !op.is_float() => InstructionClass::ConditionalMove,
            _ => InstructionClass::by_flags(op),
        }
    }

    fn by_flags(op: Op) -> InstructionClass {
        let of_kind = |integer, float| if op.is_float() { float } else { integer };
        if op.is(Flags::LOAD) {
            of_kind(InstructionClass::Load, InstructionClass::FloatLoad)
        } else if op.is(Flags::STORE) {
            of_kind(InstructionClass::Store, InstructionClass::FloatStore)
        } else if op.is(Flags::CONDITIONAL) {
            of_kind(InstructionClass::Branch, InstructionClass::FloatBranch)
        } else if op.is(Flags::BRANCH) {
            InstructionClass::Jump
        } else {
            of_kind(InstructionClass::Shift, InstructionClass::FloatAdd)
        }
    }
}

fn is_conditional_move(op: Op) -> bool {
    op.mnemonic().starts_with("cmov") || op.mnemonic().starts_with("fcmov")
}

/// Floating-point registers are numbered after the integer ones.
const FLOAT: u8 = 32;
/// The number of no register.
pub(super) const NONE: u8 = 31;

/// The registers of an instruction, floating-point ones from 32 on. Registers that are always zero, and
/// absent ones, are 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionRegisters {
    /// The registers that it reads. A conditional move that does not move writes nothing, so that it does not
    /// read its destination.
    pub sources: [u8; 2],
    /// The one of `sources` that it tests (a conditional branch or move) or stores.
    pub special: Option<usize>,
    /// The register that it writes.
    pub destination: u8,
}

impl InstructionRegisters {
    /// The registers of an instruction.
    pub fn of(instruction: Instruction) -> InstructionRegisters {
        use Operands::*;
        let op = instruction.op;
        let [ra, rb, rc] = [instruction.ra(), instruction.rb(), instruction.rc()];
        let (fa, fb, fc) = (ra + FLOAT, rb + FLOAT, rc + FLOAT);
        let second = if instruction.literal().is_some() { NONE } else { rb };
        let conditional = is_conditional_move(op);
        let test = conditional.then_some(0);
        let (sources, special, destination) = match op.row().operands {
            RaMemory | FaMemory => {
                let register = if op.row().operands == FaMemory { fa } else { ra };
                let conditional = if op.is(Flags::LOCKED) { register } else { NONE };
                match op.is(Flags::STORE) {
                    true => ([register, rb], Some(0), conditional),
                    false => ([NONE, rb], None, register),
                }
            }
            Jump => ([NONE, rb], None, ra),
            RaBranch if op.is(Flags::CONDITIONAL) => ([ra, NONE], Some(0), NONE),
            RaBranch => ([NONE; 2], None, ra),
            FaBranch => ([fa, NONE], Some(0), NONE),
            RaRbRc | RegistersRaRbRc => ([ra, second], test, rc),
            RbRc | RegisterRbRc => ([NONE, second], None, rc),
            Rc => ([NONE; 2], None, rc),
            FaFbFc => ([fa, fb], test, fc),
            FbFc => ([NONE, fb], None, fc),
            FaRc => ([fa, NONE], None, rc),
            RaFc => ([ra, NONE], None, fc),
            Fpcr if op == Op::MtFpcr => ([fa, NONE], None, NONE),
            Fpcr => ([NONE; 2], None, fa),
            Ra => ([NONE; 2], None, ra),
            RaRb => ([NONE, rb], None, ra),
            Address => ([NONE, rb], None, NONE),
            Nothing | PalFunction => ([NONE; 2], None, NONE),
        };
        let plain = |register: u8| if register == NONE + FLOAT { NONE } else { register };
        InstructionRegisters { sources: sources.map(plain), special, destination: plain(destination) }
    }
}
