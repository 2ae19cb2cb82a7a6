//! From a word to an instruction.
//!
//! The opcode selects a slice of one array of candidates, indexed by the function; what remains to
//! be checked, such as register fields that must be 31, is one mask and value an instruction. Both
//! are computed from the table when the crate is compiled.

use crate::qualifiers::Qualifiers;
use crate::table::{Flags, InstructionFormat, InstructionRow, Op, Operands, ROWS};

/// A decoded instruction: its operation, and the word with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The operation.
    pub op: Op,
    /// The word it was decoded from.
    pub word: u32,
}

/// The name of an instruction that does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nop {
    /// An integer operation without traps into register 31, as `bis $31,$31,$31`.
    Nop,
    /// `cpys $f31,$f31,$f31`.
    Fnop,
    /// `ldq_u $31,disp(rb)`.
    Unop,
}

/// The user-mode functions of the privileged architecture library on OSF/1 and Linux, and the two
/// privileged ones that every system has.
pub(crate) static PAL_NAMES: [(u32, &str); 10] = [
    (0x00, "halt"),
    (0x02, "draina"),
    (0x80, "bpt"),
    (0x81, "bugchk"),
    (0x83, "callsys"),
    (0x86, "imb"),
    (0x9e, "rduniq"),
    (0x9f, "wruniq"),
    (0xaa, "gentrap"),
    (0xae, "clrfen"),
];

/// Decodes a word as any implementation through EV67 would; `None` if none has the instruction.
#[inline]
pub fn decode(word: u32) -> Option<Instruction> {
    decode_op(word).map(|op| Instruction { op, word })
}

/// The instruction that a word is.
#[inline]
pub fn decode_op(word: u32) -> Option<Op> {
    let slice = &SLICES[(word >> 26) as usize];
    let op = CANDIDATES[slice.start as usize + (word >> slice.shift & slice.mask) as usize]?;
    let fixed = &FIXED[op as usize];
    let fits = word & fixed.mask == fixed.value;
    let fpcr = matches!(op, Op::MtFpcr | Op::MfFpcr);
    (fits && (!fpcr || same_registers(word))).then_some(op)
}

/// Whether the three register fields are equal, as they have to be in accesses to the FPCR (4.10).
fn same_registers(word: u32) -> bool {
    let rc = word & 31;
    word >> 21 & 31 == rc && word >> 16 & 31 == rc
}

/// Which kind of no-operation a word is, if it is one.
pub fn nop_kind(word: u32) -> Option<Nop> {
    decode(word)?.nop_kind()
}

impl Instruction {
    /// Which kind of no-operation it is, if it is one.
    pub(crate) fn nop_kind(self) -> Option<Nop> {
        match self.op {
            Op::LdqU => (self.ra() == 31).then_some(Nop::Unop),
            Op::Cpys => (self.rc() == 31 && same_registers(self.word)).then_some(Nop::Fnop),
            op => (op.format() == InstructionFormat::Operate && !op.is(Flags::OVERFLOW) && self.rc() == 31)
                .then_some(Nop::Nop),
        }
    }

    /// The Ra or Fa field.
    #[inline]
    pub fn ra(self) -> u8 {
        (self.word >> 21 & 31) as u8
    }

    /// The Rb or Fb field.
    #[inline]
    pub fn rb(self) -> u8 {
        (self.word >> 16 & 31) as u8
    }

    /// The Rc or Fc field.
    #[inline]
    pub fn rc(self) -> u8 {
        (self.word & 31) as u8
    }

    /// The literal in the place of Rb, if an integer operation has one.
    #[inline]
    pub fn literal(self) -> Option<u8> {
        let operate = self.op.format() == InstructionFormat::Operate;
        (operate && self.word & LITERAL != 0).then_some((self.word >> 13) as u8)
    }

    /// The signed displacement in bytes of a load or store, a branch, or a jump's hint; 0 for the
    /// rest. `ldah` adds this 65,536 times.
    #[inline]
    pub fn displacement(self) -> i32 {
        let word = self.word as i32;
        match self.op.format() {
            InstructionFormat::Memory => word << 16 >> 16,
            InstructionFormat::Branch => word << 11 >> 9,
            InstructionFormat::MemoryJump => word << 18 >> 16,
            _ => 0,
        }
    }

    /// The target of a branch; None for jumps.
    pub fn target(self, pc: u64) -> Option<u64> {
        let branch = self.op.format() == InstructionFormat::Branch;
        branch.then(|| pc.wrapping_add(4).wrapping_add_signed(self.displacement().into()))
    }

    /// The function field, as wide as the format has it; 0 if it has none.
    pub fn function(self) -> u32 {
        match self.op.format() {
            InstructionFormat::Memory | InstructionFormat::Branch => 0,
            InstructionFormat::MemoryFunction => self.word & 0xffff,
            InstructionFormat::MemoryJump => self.word >> 14 & 3,
            InstructionFormat::Operate => self.word >> 5 & 0x7f,
            InstructionFormat::FloatOperate => self.word >> 5 & 0x7ff,
            InstructionFormat::Pal => self.word & 0x3ff_ffff,
        }
    }

    /// The rounding and trapping modes of a floating-point operation.
    pub fn qualifiers(self) -> Qualifiers {
        self.op.row().qualifiers.decode((self.word >> 5 & 0x7ff) as u16)
    }

    /// The name to count it under: the mnemonic without qualifiers; of a PAL call, its function's.
    pub fn name(self) -> &'static str {
        if self.op != Op::CallPal {
            return self.op.mnemonic();
        }
        let known = PAL_NAMES.iter().find(|(function, _)| *function == self.word);
        known.map_or(self.op.mnemonic(), |(_, name)| name)
    }

    /// Bytes it reads or writes in memory, if it does: a load whose result is dropped does not, except a
    /// locked one.
    #[inline]
    pub fn access_size(self) -> Option<u8> {
        let dropped = self.op.is(Flags::LOAD) && !self.op.is(Flags::LOCKED) && self.ra() == 31;
        if dropped { None } else { self.op.access_size() }
    }

    /// The address it accesses, from its base register's value: `ldq_u` and `stq_u` leave out the low bits.
    #[inline]
    pub fn effective_address(self, base: u64) -> u64 {
        let sum = base.wrapping_add_signed(self.displacement().into());
        if self.op.is_rounded() { sum & !7 } else { sum }
    }

    /// Whether it is a load whose result is dropped, which implementations take as a prefetch that
    /// does not fault (`ldq_u` is no-operation instead).
    pub fn is_prefetch(self) -> bool {
        let load = self.op.is(Flags::LOAD) && !self.op.is(Flags::LOCKED) && self.op != Op::LdqU;
        load && self.ra() == 31
    }
}

/// Bit 12 of an integer operation: the second operand is a literal.
pub(crate) const LITERAL: u32 = 1 << 12;
const RA_31: u32 = 31 << 21;
const RB_31: u32 = 31 << 16;

/// Where in [`CANDIDATES`] the instructions with one opcode are, and which bits choose among them.
#[derive(Clone, Copy)]
struct CandidateSlice {
    start: u16,
    shift: u8,
    mask: u32,
}

/// Bits of a word that must have a value.
#[derive(Clone, Copy)]
struct Fixed {
    mask: u32,
    value: u32,
}

/// The bits that distinguish instructions with the same opcode. All functions of the miscellaneous
/// instructions are multiples of 0x400; the bits below are checked as fixed ones.
const fn selector(row: &InstructionRow) -> (u8, u32) {
    match row.format {
        InstructionFormat::Memory | InstructionFormat::Branch | InstructionFormat::Pal => (0, 0),
        InstructionFormat::MemoryFunction => (10, 0x3f),
        InstructionFormat::MemoryJump => (14, 3),
        // The moves from floating-point registers share their opcode with integer operations.
        InstructionFormat::Operate => (5, 0x7f),
        InstructionFormat::FloatOperate if row.opcode == 0x1c => (5, 0x7f),
        InstructionFormat::FloatOperate => (5, 0x7ff),
    }
}

const fn fixed(row: &InstructionRow) -> Fixed {
    let (mask, value) = match row.operands {
        Operands::RegistersRaRbRc => (LITERAL, 0),
        Operands::RbRc => (RA_31, RA_31),
        Operands::RegisterRbRc => (RA_31 | LITERAL, RA_31),
        Operands::Rc => (RA_31 | 0xff << 13 | LITERAL, RA_31 | 1 << 13 | LITERAL),
        Operands::FbFc => (RA_31, RA_31),
        Operands::FaRc => (RB_31 | 0xf << 12, RB_31),
        Operands::RaFc => (RB_31, RB_31),
        Operands::Nothing | Operands::Ra | Operands::RaRb => (0x3ff, 0),
        Operands::Address => (RA_31 | 0x3ff, RA_31),
        _ => (0, 0),
    };
    Fixed { mask, value }
}

const fn slices() -> ([CandidateSlice; 64], usize) {
    // Unassigned opcodes have the one candidate at 0, which is none.
    let mut slices = [CandidateSlice { start: 0, shift: 0, mask: 0 }; 64];
    let (mut end, mut i) = (1, 0);
    while i < Op::COUNT {
        let slice = &mut slices[ROWS[i].opcode as usize];
        if slice.start == 0 {
            let (shift, mask) = selector(&ROWS[i]);
            *slice = CandidateSlice { start: end as u16, shift, mask };
            end += mask as usize + 1;
        }
        i += 1;
    }
    (slices, end)
}

const SLICES_AND_LENGTH: ([CandidateSlice; 64], usize) = slices();
static SLICES: [CandidateSlice; 64] = SLICES_AND_LENGTH.0;

static CANDIDATES: [Option<Op>; SLICES_AND_LENGTH.1] = {
    let mut candidates = [None; SLICES_AND_LENGTH.1];
    let mut i = 0;
    while i < Op::COUNT {
        let row = &ROWS[i];
        let slice = SLICES_AND_LENGTH.0[row.opcode as usize];
        let base = match row.format {
            InstructionFormat::MemoryFunction => row.function >> 10,
            _ => row.function,
        };
        let mut function = 0;
        while function as u32 <= slice.mask {
            if row.qualifiers.admits(base, function) {
                candidates[(slice.start + function) as usize] = Some(row.op);
            }
            function += 1;
        }
        i += 1;
    }
    candidates
};

static FIXED: [Fixed; Op::COUNT] = {
    let mut all = [Fixed { mask: 0, value: 0 }; Op::COUNT];
    let mut i = 0;
    while i < Op::COUNT {
        all[i] = fixed(&ROWS[i]);
        i += 1;
    }
    all
};
