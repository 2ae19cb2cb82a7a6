//! From a word to an instruction.

use std::sync::LazyLock;

use super::compressed::{COMPRESSED_ROWS, CompressedRow};
use super::extensions::RiscvExtensions;
use super::table::{RISCV_ROWS, RiscvOp, RiscvOperands, RiscvRow};
use crate::{Group, InstructionClass};

/// A decoded instruction. One of two bytes has the operation and operands of the one that it abbreviates.
#[derive(Clone, Copy, Debug)]
pub struct RiscvInstruction {
    /// The operation.
    pub op: RiscvOp,
    /// The word it was decoded from.
    pub word: u32,
    pub(crate) compressed: Option<&'static CompressedRow>,
    /// Destination register, of either file; 0 if there is none.
    pub rd: u8,
    /// First source.
    pub rs1: u8,
    /// Second source.
    pub rs2: u8,
    /// Third source.
    pub rs3: u8,
    /// The constant: displacement, distance of a target, number of bits, number of a control register.
    pub immediate: i32,
}

/// The number of bytes of the instruction with this word, or of a word that is no instruction.
#[inline]
pub fn riscv_length(word: u32) -> u64 {
    if word & 3 == 3 { 4 } else { 2 }
}

/// Decodes a word as a processor with all extensions would; `None` if none has the instruction.
pub fn decode_riscv(word: u32) -> Option<RiscvInstruction> {
    if riscv_length(word) == 2 {
        let word = word & 0xffff;
        let rows = &COMPRESSED[compressed_slot(word)];
        return rows.iter().find(|row| word & row.encoding.mask == row.encoding.value)?.expand(word);
    }
    let row = ROWS[slot(word)].iter().find(|row| word & row.encoding.mask == row.encoding.value)?;
    let (rd, rs1, rs2, rs3) =
        ((word >> 7 & 31) as u8, (word >> 15 & 31) as u8, (word >> 20 & 31) as u8, (word >> 27) as u8);
    let immediate = immediate(row.operands, word);
    let instruction = RiscvInstruction { op: row.op, word, compressed: None, rd, rs1, rs2, rs3, immediate };
    Some(instruction.without_unused())
}

/// The constant in a word with these operands.
fn immediate(operands: RiscvOperands, word: u32) -> i32 {
    use RiscvOperands::*;
    let signed = word as i32;
    match operands {
        RdRs1Imm | RdMemory | FdMemory | RdRs1Jump => signed >> 20,
        RdRs1Shift => signed >> 20 & 63,
        RdRs1ShiftWord => signed >> 20 & 31,
        RdUpper => signed & !0xfff,
        Rs2Memory | Fs2Memory => signed >> 25 << 5 | signed >> 7 & 31,
        Branch => signed >> 31 << 12 | (signed << 4 & 0x800) | (signed >> 20 & 0x7e0) | (signed >> 7 & 0x1e),
        RdTarget => signed >> 31 << 20 | (signed & 0xf_f000) | (signed >> 9 & 0x800) | (signed >> 20 & 0x7fe),
        Csr | CsrImm => (word >> 20) as i32,
        Fence => signed >> 20,
        _ => 0,
    }
}

impl RiscvInstruction {
    /// Sets the register fields that the operands do not name to 0.
    fn without_unused(self) -> RiscvInstruction {
        use RiscvOperands::*;
        let (rd, rs1, rs2, rs3) = match self.operands() {
            Nothing | Fence => (false, false, false, false),
            RdRs1Rs2 | Atomic | FdFs1Fs2Round | FdFs1Fs2 | RdFs1Fs2 => (true, true, true, false),
            FdFs1Fs2Fs3Round => (true, true, true, true),
            RdUpper | RdTarget => (true, false, false, false),
            Rs2Memory | Fs2Memory | Branch => (false, true, true, false),
            Block => (false, true, false, false),
            _ => (true, true, false, false),
        };
        let keep = |named: bool, register: u8| if named { register } else { 0 };
        let (rd, rs1) = (keep(rd, self.rd), keep(rs1, self.rs1));
        RiscvInstruction { rd, rs1, rs2: keep(rs2, self.rs2), rs3: keep(rs3, self.rs3), ..self }
    }

    /// The number of its bytes.
    pub fn length(&self) -> u64 {
        riscv_length(self.word)
    }

    /// The field of the rounding mode, which operands with rounding have.
    pub fn rounding(&self) -> u8 {
        (self.word >> 12 & 7) as u8
    }

    /// The number of the control and status register that it accesses.
    pub fn csr(&self) -> u16 {
        self.immediate as u16
    }

    /// The name under which it is counted: `c.` and a name for one of two bytes.
    pub fn mnemonic(&self) -> &'static str {
        self.compressed.map_or(self.op.mnemonic(), |row| row.mnemonic)
    }

    /// Its operands.
    pub fn operands(&self) -> RiscvOperands {
        self.op.operands()
    }

    /// Whether a processor with these extensions has it.
    pub fn is_in(&self, extensions: RiscvExtensions) -> bool {
        self.op.row().requirement.holds(extensions)
            && self.compressed.is_none_or(|row| row.requirement.holds(extensions))
    }
}

impl RiscvOp {
    pub(crate) fn row(self) -> &'static RiscvRow {
        &RISCV_ROWS[self as usize]
    }

    /// Its name.
    pub fn mnemonic(self) -> &'static str {
        self.row().mnemonic
    }

    /// Its operands.
    pub fn operands(self) -> RiscvOperands {
        self.row().operands
    }

    /// Whether its destination is a floating-point register.
    #[inline]
    pub fn has_float_result(self) -> bool {
        use RiscvOperands::*;
        matches!(
            self.operands(),
            FdMemory
                | FdFs1Fs2Fs3Round
                | FdFs1Fs2Round
                | FdFs1Fs2
                | FdFs1Round
                | FdFs1
                | FdRs1Round
                | FdRs1
                | FdConstant
        )
    }

    /// Its group in the mix of instructions.
    pub fn group(self) -> Group {
        self.row().group
    }

    /// Its class in pipelines.
    pub fn class(self) -> InstructionClass {
        self.row().class
    }

    /// Bytes that it accesses in memory, if it does.
    pub fn access_size(self) -> Option<u8> {
        use RiscvOperands::*;
        match self.operands() {
            RdMemory | Rs2Memory | FdMemory | Fs2Memory => Some(1 << (self.row().encoding.value >> 12 & 3)),
            Atomic | LoadReserved => Some(1 << (self.row().encoding.value >> 12 & 7)),
            Block if self == RiscvOp::CboZero => Some(CACHE_BLOCK),
            _ => None,
        }
    }

    /// The format of a floating-point operation: of its result, or of its operands if that is an integer.
    pub fn float_format(self) -> RiscvFloatFormat {
        match self.row().encoding.value >> 25 & 3 {
            0 => RiscvFloatFormat::Single,
            1 => RiscvFloatFormat::Double,
            _ => RiscvFloatFormat::Half,
        }
    }

    /// Whether it may store to memory.
    pub fn is_store(self) -> bool {
        use RiscvOperands::*;
        matches!(self.operands(), Rs2Memory | Fs2Memory | Atomic) || self == RiscvOp::CboZero
    }
}

/// A format of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiscvFloatFormat {
    /// 16 bits.
    Half,
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

/// The bytes of a cache block, as `cbo.zero` clears it and profiles promise it (Zic64b).
pub const CACHE_BLOCK: u8 = 64;

/// Which list of candidates a word of four bytes belongs to: by its opcode, and by its function of 3 bits, or of
/// floating-point operations by the bits above the format.
fn slot(word: u32) -> usize {
    let opcode = (word >> 2 & 31) as usize;
    let function = if opcode == FLOAT_OPERATIONS { word >> 27 } else { word >> 12 & 7 };
    opcode << 5 | function as usize
}

/// The opcode of floating-point operations.
const FLOAT_OPERATIONS: usize = 0x14;

fn compressed_slot(word: u32) -> usize {
    (word >> 13 << 2 | word & 3) as usize
}

static ROWS: LazyLock<Vec<Vec<&'static RiscvRow>>> = LazyLock::new(|| {
    let matches = |row: &RiscvRow, index: u32| {
        let (opcode, function) = (index >> 5, index & 31);
        let (bits, mask) = match opcode as usize {
            FLOAT_OPERATIONS => (function << 27, 31 << 27),
            _ => ((function & 7) << 12, 7 << 12),
        };
        let (bits, mask) = (bits | opcode << 2 | 3, mask | 0x7f);
        (bits ^ row.encoding.value) & mask & row.encoding.mask == 0
    };
    (0..32 << 5).map(|index| RISCV_ROWS.iter().filter(|row| matches(row, index)).collect()).collect()
});

static COMPRESSED: LazyLock<Vec<Vec<&'static CompressedRow>>> = LazyLock::new(|| {
    let matches =
        |row: &CompressedRow, index: u32| (index >> 2 << 13 | index & 3) ^ row.encoding.value & 0xe003 == 0;
    (0..32).map(|index| COMPRESSED_ROWS.iter().filter(|row| matches(row, index)).collect()).collect()
});
