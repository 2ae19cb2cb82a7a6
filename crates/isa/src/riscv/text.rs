//! The text of an instruction, as GNU objdump writes it by default: instructions of two bytes by those that they abbreviate, and
//! frequent special cases by the names that assembler programmers use for them.

use std::fmt;

use super::RiscvInstruction;
use super::table::{RiscvOp, RiscvOperands};

/// The names of the integer registers in the ABI.
pub(crate) const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The names of the floating-point registers.
pub(crate) const FLOAT_NAMES: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4",
    "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8",
    "ft9", "ft10", "ft11",
];

/// The control and status registers of user mode: their numbers and names. Counters of events follow `instret`.
const CSRS: [(u16, &str); 6] =
    [(1, "fflags"), (2, "frm"), (3, "fcsr"), (0xc00, "cycle"), (0xc01, "time"), (0xc02, "instret")];

/// Names of the rounding modes; those between are reserved, and the last one is not written.
const ROUNDING: [&str; 8] = ["rne", "rtz", "rdn", "rup", "rmm", "unknown", "unknown", "dyn"];

/// The constants of `fli` (chapter "Zfa").
pub(crate) const FLI_TEXTS: [&str; 32] = [
    "-1.0",
    "min",
    "1.52587890625e-05",
    "3.0517578125e-05",
    "0.00390625",
    "0.0078125",
    "0.0625",
    "0.125",
    "0.25",
    "0.3125",
    "0.375",
    "0.4375",
    "0.5",
    "0.625",
    "0.75",
    "0.875",
    "1.0",
    "1.25",
    "1.5",
    "1.75",
    "2.0",
    "2.5",
    "3.0",
    "4.0",
    "8.0",
    "16.0",
    "128.0",
    "256.0",
    "32768.0",
    "65536.0",
    "inf",
    "nan",
];

/// The text of an instruction at an address.
pub(crate) struct RiscvText<'a> {
    pub(crate) instruction: &'a RiscvInstruction,
    pub(crate) address: u64,
}

impl fmt::Display for RiscvText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.special(f)? {
            return Ok(());
        }
        let RiscvInstruction { op, rd, rs1, rs2, rs3, immediate, .. } = *self.instruction;
        let [d, s, t] = [rd, rs1, rs2].map(x);
        let [fd, fs, ft, fr] = [rd, rs1, rs2, rs3].map(float);
        f.write_str(op.mnemonic())?;
        match op.operands() {
            RiscvOperands::Nothing => Ok(()),
            RiscvOperands::RdRs1Rs2 => write!(f, "{} {d},{s},{t}", self.number()),
            RiscvOperands::RdRs1 => write!(f, "{} {d},{s}", self.number()),
            RiscvOperands::RdRs1Imm => write!(f, " {d},{s},{immediate}"),
            RiscvOperands::RdRs1Shift | RiscvOperands::RdRs1ShiftWord => write!(f, " {d},{s},{immediate:#x}"),
            RiscvOperands::RdUpper => write!(f, " {d},{:#x}", immediate as u32 >> 12),
            RiscvOperands::RdMemory => write!(f, " {d},{immediate}({s})"),
            RiscvOperands::Rs2Memory => write!(f, " {t},{immediate}({s})"),
            RiscvOperands::FdMemory => write!(f, " {fd},{immediate}({s})"),
            RiscvOperands::Fs2Memory => write!(f, " {ft},{immediate}({s})"),
            RiscvOperands::Branch => write!(f, " {s},{t},{:#x}", self.target()),
            RiscvOperands::RdTarget => write!(f, " {d},{:#x}", self.target()),
            RiscvOperands::RdRs1Jump => write!(f, " {d},{immediate}({s})"),
            RiscvOperands::Atomic => write!(f, "{} {d},{t},({s})", self.order()),
            RiscvOperands::LoadReserved => write!(f, "{} {d},({s})", self.order()),
            RiscvOperands::Block => write!(f, " ({s})"),
            RiscvOperands::Fence => {
                write!(f, " {},{}", accesses(immediate >> 4), accesses(immediate))
            }
            RiscvOperands::Csr => write!(f, " {d},{},{s}", self.csr()),
            RiscvOperands::CsrImm => write!(f, " {d},{},{rs1}", self.csr()),
            RiscvOperands::FdFs1Fs2Fs3Round => write!(f, " {fd},{fs},{ft},{fr}{}", self.rounding()),
            RiscvOperands::FdFs1Fs2Round => write!(f, " {fd},{fs},{ft}{}", self.rounding()),
            RiscvOperands::FdFs1Fs2 => write!(f, " {fd},{fs},{ft}"),
            RiscvOperands::FdFs1Round => write!(f, " {fd},{fs}{}", self.rounding()),
            RiscvOperands::FdFs1 => write!(f, " {fd},{fs}"),
            RiscvOperands::RdFs1Fs2 => write!(f, " {d},{fs},{ft}"),
            RiscvOperands::RdFs1Round => write!(f, " {d},{fs}{}", self.rounding()),
            RiscvOperands::RdFs1 => write!(f, " {d},{fs}"),
            RiscvOperands::FdRs1Round => write!(f, " {fd},{s}{}", self.rounding()),
            RiscvOperands::FdRs1 => write!(f, " {fd},{s}"),
            RiscvOperands::FdConstant => write!(f, " {fd},{}", FLI_TEXTS[usize::from(rs1)]),
        }
    }
}

fn x(register: u8) -> &'static str {
    NAMES[usize::from(register)]
}

fn float(register: u8) -> &'static str {
    FLOAT_NAMES[usize::from(register)]
}

/// The accesses that a barrier orders.
fn accesses(bits: i32) -> String {
    let letters = "iorw".chars().zip([8, 4, 2, 1]).filter(|(_, bit)| bits & bit != 0);
    let text: String = letters.map(|(letter, _)| letter).collect();
    if text.is_empty() { "unknown".into() } else { text }
}

impl RiscvText<'_> {
    fn target(&self) -> u64 {
        self.address.wrapping_add_signed(self.instruction.immediate.into())
    }

    /// The order of an atomic access with others.
    fn order(&self) -> &'static str {
        ["", ".rl", ".aq", ".aqrl"][(self.instruction.word >> 25 & 3) as usize]
    }

    /// The number behind the names of the instructions that are reserved for later use (chapter "Zimop").
    fn number(&self) -> String {
        let word = self.instruction.word;
        match self.instruction.op {
            RiscvOp::MopR => format!(".{}", word >> 20 & 3 | (word >> 26 & 3) << 2 | (word >> 30 & 1) << 4),
            RiscvOp::MopRr => format!(".{}", word >> 26 & 3 | (word >> 30 & 1) << 2),
            _ => String::new(),
        }
    }

    fn csr(&self) -> String {
        let number = self.instruction.csr();
        let known = CSRS.iter().find(|(one, _)| *one == number);
        match number {
            0xc03..=0xc1f => format!("hpmcounter{}", number - 0xc00),
            _ => known.map_or_else(|| format!("{number:#x}"), |(_, name)| name.to_string()),
        }
    }

    /// The rounding mode, unless it is the dynamic one. Conversions that are always exact have none.
    fn rounding(&self) -> String {
        use RiscvOp::*;
        let mode = self.instruction.rounding();
        let is_exact = matches!(self.instruction.op, FcvtDW | FcvtDWu | FcvtDS | FcvtSH | FcvtDH);
        if mode == 7 || is_exact { String::new() } else { format!(",{}", ROUNDING[usize::from(mode)]) }
    }

    /// Writes the special cases that have names of their own; false for others.
    fn special(&self, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
        let RiscvInstruction { op, rd, rs1, rs2, immediate, word, .. } = *self.instruction;
        let [d, s, t] = [rd, rs1, rs2].map(x);
        let target = self.target();
        use RiscvOp::*;
        match op {
            _ if word == 0 || word == UNIMPLEMENTED => f.write_str("unimp")?,
            MopR if self.instruction.compressed.is_some() => write!(f, "c.mop.{}", word >> 7 & 15)?,
            Addi if rd == 0 && rs1 == 0 && immediate == 0 => f.write_str("nop")?,
            Addi if rs1 == 0 => write!(f, "li {d},{immediate}")?,
            Addi if immediate == 0 => write!(f, "mv {d},{s}")?,
            Addiw if immediate == 0 => write!(f, "sext.w {d},{s}")?,
            Andi if immediate == 255 => write!(f, "zext.b {d},{s}")?,
            AddUw if rs2 == 0 => write!(f, "zext.w {d},{s}")?,
            Xori if immediate == -1 => write!(f, "not {d},{s}")?,
            Sub if rs1 == 0 => write!(f, "neg {d},{t}")?,
            Subw if rs1 == 0 => write!(f, "negw {d},{t}")?,
            Sltiu if immediate == 1 => write!(f, "seqz {d},{s}")?,
            Sltu if rs1 == 0 => write!(f, "snez {d},{t}")?,
            Slt if rs2 == 0 => write!(f, "sltz {d},{s}")?,
            Slt if rs1 == 0 => write!(f, "sgtz {d},{t}")?,
            Beq if rs2 == 0 => write!(f, "beqz {s},{target:#x}")?,
            Bne if rs2 == 0 => write!(f, "bnez {s},{target:#x}")?,
            Bge if rs1 == 0 => write!(f, "blez {t},{target:#x}")?,
            Bge if rs2 == 0 => write!(f, "bgez {s},{target:#x}")?,
            Blt if rs2 == 0 => write!(f, "bltz {s},{target:#x}")?,
            Blt if rs1 == 0 => write!(f, "bgtz {t},{target:#x}")?,
            Jal if rd == 0 => write!(f, "j {target:#x}")?,
            Jal if rd == 1 => write!(f, "jal {target:#x}")?,
            Jalr if rd == 0 && rs1 == 1 && immediate == 0 => f.write_str("ret")?,
            Jalr if rd == 0 && immediate == 0 => write!(f, "jr {s}")?,
            Jalr if rd == 0 => write!(f, "jr {immediate}({s})")?,
            Jalr if rd == 1 && immediate == 0 => write!(f, "jalr {s}")?,
            Jalr if rd == 1 => write!(f, "jalr {immediate}({s})")?,
            Jalr if immediate == 0 => write!(f, "jalr {d},{s}")?,
            Fence if word == FULL_FENCE => f.write_str("fence")?,
            FsgnjS | FsgnjD | FsgnjH if rs1 == rs2 => self.float_move("fmv", f)?,
            FsgnjnS | FsgnjnD | FsgnjnH if rs1 == rs2 => self.float_move("fneg", f)?,
            FsgnjxS | FsgnjxD | FsgnjxH if rs1 == rs2 => self.float_move("fabs", f)?,
            Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci => return self.control_register(f),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn float_move(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RiscvInstruction { op, rd, rs1, .. } = *self.instruction;
        let (_, format) = op.mnemonic().split_once('.').expect("a format");
        write!(f, "{name}.{format} {},{}", float(rd), float(rs1))
    }

    /// Accesses to control and status registers by their shorter names.
    fn control_register(&self, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
        let RiscvInstruction { op, rd, rs1, .. } = *self.instruction;
        let (csr, d, s) = (self.csr(), x(rd), x(rs1));
        let both = |name: &str, source: &str, f: &mut fmt::Formatter<'_>| match rd {
            0 => write!(f, "{name} {source}"),
            _ => write!(f, "{name} {d},{source}"),
        };
        let constant = rs1.to_string();
        match (op, self.instruction.csr()) {
            (RiscvOp::Csrrs, 1) if rs1 == 0 => write!(f, "frflags {d}")?,
            (RiscvOp::Csrrs, 2) if rs1 == 0 => write!(f, "frrm {d}")?,
            (RiscvOp::Csrrs, 3) if rs1 == 0 => write!(f, "frcsr {d}")?,
            (RiscvOp::Csrrs, 0xc00..=0xc02) if rs1 == 0 => write!(f, "rd{csr} {d}")?,
            (RiscvOp::Csrrw, 1) => both("fsflags", s, f)?,
            (RiscvOp::Csrrw, 2) => both("fsrm", s, f)?,
            (RiscvOp::Csrrw, 3) => both("fscsr", s, f)?,
            (RiscvOp::Csrrwi, 1) => both("fsflagsi", &constant, f)?,
            (RiscvOp::Csrrwi, 2) => both("fsrmi", &constant, f)?,
            (RiscvOp::Csrrs, _) if rs1 == 0 => write!(f, "csrr {d},{csr}")?,
            (RiscvOp::Csrrw, _) if rd == 0 => write!(f, "csrw {csr},{s}")?,
            (RiscvOp::Csrrs, _) if rd == 0 => write!(f, "csrs {csr},{s}")?,
            (RiscvOp::Csrrc, _) if rd == 0 => write!(f, "csrc {csr},{s}")?,
            (RiscvOp::Csrrwi, _) if rd == 0 => write!(f, "csrwi {csr},{rs1}")?,
            (RiscvOp::Csrrsi, _) if rd == 0 => write!(f, "csrsi {csr},{rs1}")?,
            (RiscvOp::Csrrci, _) if rd == 0 => write!(f, "csrci {csr},{rs1}")?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `csrrw x0,cycle,x0`, which assemblers write for `unimp`: that register cannot be written.
const UNIMPLEMENTED: u32 = 0xc000_1073;
/// `fence iorw,iorw`.
const FULL_FENCE: u32 = 0x0ff0_000f;
