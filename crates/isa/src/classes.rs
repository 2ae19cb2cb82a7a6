//! Classifications of the instructions of any set: groups of the instruction mix, and classes of pipelines.

use serde::{Deserialize, Serialize};

/// The groups of the instruction mix: Table 13 of the 1997 paper, extended to instructions that it does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Loads to integer registers; of Alpha, `lda` and `ldah` among them.
    IntegerLoad,
    /// Stores of integer registers.
    IntegerStore,
    /// Jumps and branches on integer registers.
    IntegerControl,
    /// Integer addition, subtraction, comparison and multiplication (of Alpha, not `mulq`).
    IntegerArithmetic,
    /// Logical operations, shifts, conditional moves, counts of bits.
    LogicalShift,
    /// Extraction, insertion, masking and extension of bytes and words, and packed operations.
    ByteManipulation,
    /// Floating-point, barriers, system calls and the rest.
    Other,
}

impl Group {
    /// All groups in the paper's order.
    pub const ALL: [Group; 7] = [
        Group::IntegerLoad,
        Group::IntegerStore,
        Group::IntegerControl,
        Group::IntegerArithmetic,
        Group::LogicalShift,
        Group::ByteManipulation,
        Group::Other,
    ];

    /// The group's name, as in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Group::IntegerLoad => "Integer loads",
            Group::IntegerStore => "Integer stores",
            Group::IntegerControl => "Integer control",
            Group::IntegerArithmetic => "Integer arithmetic",
            Group::LogicalShift => "Logical shift",
            Group::ByteManipulation => "Byte manipulation",
            Group::Other => "Other",
        }
    }
}

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

            /// Whether its instructions load from memory.
            pub fn is_load(self) -> bool {
                matches!(self, InstructionClass::Load | InstructionClass::FloatLoad | InstructionClass::LoadLocked)
            }

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
    LoadLocked, "load-locked", "Loads that lock: Alpha's `ldl_l`, `ldq_l`.";
    StoreConditional, "store-conditional", "Stores that depend on the lock: `stl_c`, `stq_c`.";
    MemoryBarrier, "memory-barrier", "Barriers of loads and stores: `mb`.";
    MemoryHint, "memory-hint", "Barriers of stores only, and hints on lines: `wmb`, `fetch`, `ecb`, `wh64`.";
    Branch, "branch", "Conditional branches on integer registers.";
    FloatBranch, "float-branch", "Conditional branches on floating-point registers.";
    Jump, "jump", "Jumps, and branches that are always taken.";
    CallPal, "call-pal", "Calls of the system: of Alpha, of the privileged architecture library.";
    ThreadPointer, "thread-pointer", "Accesses to the thread pointer by a call of the system: Alpha's `call_pal rduniq`, `wruniq`.";
    Add, "add", "Integer addition and subtraction; Alpha's `lda`, `ldah`.";
    Logical, "logical", "Logical operations.";
    Shift, "shift", "Shifts; bytes and words extracted, inserted, masked, extended; packed operations.";
    Compare, "compare", "Integer comparisons.";
    ConditionalMove, "conditional-move", "Integer conditional moves.";
    MultiplyLong, "multiply-long", "Multiplication of 32 bits: `mull`.";
    MultiplyQuad, "multiply-quad", "Multiplication, low half: `mulq`.";
    MultiplyHigh, "multiply-high", "Multiplication, high half: `umulh`.";
    FloatAdd, "float-add", "Floating-point operations that have no class of their own.";
    FloatMultiply, "float-multiply", "Floating-point multiplication.";
    FloatDivideSingle, "float-divide-single", "Division and square root, single precision.";
    FloatDivideDouble, "float-divide-double", "Division and square root, double precision.";
    FloatCopy, "float-copy", "Moves between floating-point registers: `cpys`.";
    Miscellaneous, "miscellaneous", "Reads of counters: `rpcc`.";
    TrapBarrier, "trap-barrier", "Barriers of traps: `trapb`, `excb`.";
    ReadFlag, "read-flag", "Accesses to a flag of interrupts: `rs`, `rc`.";
    Nothing, "nothing", "No-operations that no unit executes, as `unop`, and words that are no instruction.";
}
