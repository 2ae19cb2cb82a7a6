//! RISC-V as an [`InstructionSet`]: summaries of its instructions, which follow from the table.

use super::RiscvInstruction;
use super::compressed::COMPRESSED_ROWS;
use super::decode::{CACHE_BLOCK, decode_riscv, riscv_length};
use super::table::{RISCV_ROWS, RiscvOp, RiscvOperands};
use super::text::{FLOAT_NAMES, NAMES, RiscvText};
use crate::instruction_set::{
    ControlCalls, ControlTransfer, InstructionSet, InstructionSummary, IntegerResult, LoadExtension,
    MemoryAccess, PipelineSummary, Register, ReturnStackUse, SourceOperand, TransferKind, TransferTarget,
    ValueModel, ValuePrediction,
};
use crate::{CpuModel, Group};

/// The RISC-V instruction set, RV64 with all extensions of the table.
#[derive(Clone, Copy, Debug)]
pub struct Riscv;

/// The machine in the headers of ELF files.
const ELF_MACHINE: u16 = 243;
/// The system calls in which a thread may wait for another one (Linux, `include/uapi/asm-generic/unistd.h`): reads and writes,
/// `flock`, `ppoll`, `pselect6`, `epoll_pwait`, `nanosleep`, `futex`, signals' waits, System V's and POSIX's queues, `wait4`,
/// `waitid`, `accept`, `connect`, and the calls that receive.
const MAY_WAIT: [u32; 30] = [
    22, 25, 32, 63, 65, 66, 72, 73, 95, 98, 101, 115, 133, 137, 182, 183, 188, 192, 193, 202, 203, 206, 207,
    211, 212, 242, 243, 260, 441, 449,
];
const RA: u8 = 1;
const SP: u8 = 2;
const T0: u8 = 5;
const A0: u8 = 10;
const A7: u8 = 17;

impl InstructionSet for Riscv {
    fn name(&self) -> &'static str {
        "riscv64"
    }

    #[inline]
    fn length(&self, word: u32) -> u64 {
        riscv_length(word)
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        decode_riscv(word).map(|instruction| instruction.summary())
    }

    fn zero_register(&self) -> u8 {
        0
    }

    fn stack_pointer(&self) -> u8 {
        SP
    }

    fn code_alignment(&self) -> u64 {
        2
    }

    fn elf_machine(&self) -> u16 {
        ELF_MACHINE
    }

    fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        decode_riscv(word).map(|instruction| RiscvText { instruction: &instruction, address }.to_string())
    }

    fn register_name(&self, register: Register) -> &'static str {
        match register {
            Register::Integer(number) => NAMES[usize::from(number)],
            Register::Float(number) => FLOAT_NAMES[usize::from(number)],
        }
    }

    /// Names without the order of atomic accesses; those of two bytes begin with `c.`.
    fn mnemonic(&self, word: u32) -> Option<&'static str> {
        decode_riscv(word).map(|instruction| instruction.mnemonic())
    }

    fn mnemonics(&self) -> Vec<(&'static str, Group)> {
        let compressed = COMPRESSED_ROWS.iter().map(|row| (row.mnemonic, row.op.group()));
        RISCV_ROWS.iter().map(|row| (row.mnemonic, row.group)).chain(compressed).collect()
    }

    /// Processors of descriptions are Alpha's; a RISC-V processor's set of extensions is another type.
    fn is_implemented(&self, word: u32, _cpu: CpuModel) -> bool {
        decode_riscv(word).is_some()
    }

    fn pipeline_summary(&self, word: u32) -> Option<PipelineSummary> {
        decode_riscv(word).map(|instruction| instruction.pipeline_summary())
    }

    fn control_calls(&self) -> ControlCalls {
        ControlCalls {
            execute: 221,
            signal_returns: &[139],
            creates_thread: 220,
            may_wait: &MAY_WAIT,
            futex: 98,
        }
    }

    fn second_entry(&self) -> u64 {
        0
    }
}

fn integer(number: u8) -> Option<Register> {
    Some(Register::Integer(number)).filter(|_| number != 0)
}

fn float(number: u8) -> Option<Register> {
    Some(Register::Float(number))
}

impl RiscvInstruction {
    fn summary(&self) -> InstructionSummary {
        let (written, read) = self.registers();
        let is_system_call = self.op == RiscvOp::Ecall;
        let result = self.integer_result();
        let is_whole_load = self.memory_access().is_some_and(|one| !one.is_store && one.quadword.is_some());
        let mask = |register: Option<Register>| match register {
            Some(Register::Integer(number)) => 1 << number,
            _ => 0,
        };
        let unknown = match result {
            // Double words that are loaded are results of the access.
            _ if is_whole_load => 0,
            Some(_) => 0,
            None => written.map(mask).into_iter().fold(0, |all, one| all | one),
        };
        InstructionSummary {
            access: self.memory_access(),
            second_access: None,
            value: self.value_register(),
            result,
            unknown,
            transfer: self.transfer(),
            is_system_call,
            enters_system: matches!(self.op, RiscvOp::Ecall | RiscvOp::Ebreak),
            written,
            read,
            value_model: self.value_model(),
        }
    }

    /// The registers that it writes and reads. A system call takes its number and first arguments in a7, a0, a1 and a2, and
    /// returns in a0.
    pub(crate) fn registers(&self) -> ([Option<Register>; 2], [Option<Register>; 4]) {
        use RiscvOperands::*;
        let [d, s, t] = [self.rd, self.rs1, self.rs2].map(integer);
        let [fd, fs, ft, fr] = [self.rd, self.rs1, self.rs2, self.rs3].map(float);
        match self.op.operands() {
            Nothing if self.op == RiscvOp::Ecall => {
                ([integer(A0), None], [A7, A0, A0 + 1, A0 + 2].map(integer))
            }
            Nothing | Fence => ([None; 2], [None; 4]),
            // A compare-and-swap reads its destination; that of 16 bytes, pairs of registers.
            Atomic if self.is_compare_and_swap() => {
                let high = integer(self.rd | 1).filter(|_| self.op == RiscvOp::AmocasQ && self.rd != 0);
                ([d, high], [s, t, d, high])
            }
            RdRs1Rs2 | Atomic => ([d, None], [s, t, None, None]),
            RdRs1 | RdRs1Imm | RdRs1Shift | RdRs1ShiftWord | RdMemory | RdRs1Jump | LoadReserved | Csr => {
                ([d, None], [s, None, None, None])
            }
            RdUpper | RdTarget | CsrImm => ([d, None], [None; 4]),
            Rs2Memory | Branch => ([None; 2], [s, t, None, None]),
            FdMemory => ([fd, None], [s, None, None, None]),
            Fs2Memory => ([None; 2], [s, ft, None, None]),
            Block => ([None; 2], [s, None, None, None]),
            FdFs1Fs2Fs3Round => ([fd, None], [fs, ft, fr, None]),
            FdFs1Fs2Round | FdFs1Fs2 => ([fd, None], [fs, ft, None, None]),
            FdFs1Round | FdFs1 => ([fd, None], [fs, None, None, None]),
            RdFs1Fs2 => ([d, None], [fs, ft, None, None]),
            RdFs1Round | RdFs1 => ([d, None], [fs, None, None, None]),
            FdRs1Round | FdRs1 => ([fd, None], [s, None, None, None]),
            FdConstant => ([fd, None], [None; 4]),
        }
    }

    fn is_compare_and_swap(&self) -> bool {
        use RiscvOp::*;
        matches!(self.op, AmocasB | AmocasH | AmocasW | AmocasD | AmocasQ)
    }

    /// The register whose value is recorded ([`InstructionSummary::value`]): of an atomic operation, the one that it stores.
    fn value_register(&self) -> Option<Register> {
        use RiscvOperands::*;
        match self.op.operands() {
            Rs2Memory | Atomic => Some(Register::Integer(self.rs2)),
            Fs2Memory => float(self.rs2),
            Branch => Some(Register::Integer(self.rs1)),
            RdTarget | RdRs1Jump | Nothing => None,
            _ => self.registers().0[0],
        }
    }

    fn memory_access(&self) -> Option<MemoryAccess> {
        let size = self.op.access_size()?;
        let is_atomic = matches!(self.op.operands(), RiscvOperands::Atomic | RiscvOperands::LoadReserved);
        let quadword = match self.op {
            RiscvOp::Ld => integer(self.rd).map(|_| self.rd),
            RiscvOp::Sd => Some(self.rs2),
            RiscvOp::LrD => integer(self.rd).map(|_| self.rd),
            _ => None,
        };
        Some(MemoryAccess {
            size,
            is_store: self.op.is_store(),
            base: self.rs1,
            displacement: self.immediate.into(),
            mask: if self.op == RiscvOp::CboZero { !(u64::from(CACHE_BLOCK) - 1) } else { !0 },
            is_locked: is_atomic,
            quadword,
        })
    }

    fn integer_result(&self) -> Option<(u8, IntegerResult)> {
        use IntegerResult::*;
        let (a, b) = (SourceOperand::Register(self.rs1), SourceOperand::Register(self.rs2));
        let constant = SourceOperand::Constant(i64::from(self.immediate) as u64);
        let zero = SourceOperand::Register(0);
        let result = match self.op {
            RiscvOp::Lui => Sum(zero, constant),
            RiscvOp::Auipc => Relative(self.immediate.into()),
            RiscvOp::Addi => Sum(a, constant),
            RiscvOp::Add => Sum(a, b),
            RiscvOp::Sub => Difference(a, b),
            RiscvOp::Or => Or(a, b),
            RiscvOp::Jal | RiscvOp::Jalr => Relative(self.length() as i64),
            _ => return None,
        };
        (self.rd != 0).then_some((self.rd, result))
    }

    /// The link registers are ra and t0 (chapter "RV32I", table of hints for stacks of return addresses). A jump that puts a
    /// return address into another register is none of a call: linkers' stubs do so for the dynamic linker.
    fn transfer(&self) -> Option<ControlTransfer> {
        let is_link = |register: u8| matches!(register, RA | T0);
        let (rd, rs1) = (self.rd, self.rs1);
        let distance = i64::from(self.immediate);
        let (is_conditional, target) = match self.op.operands() {
            RiscvOperands::Branch => (true, TransferTarget::Relative(distance)),
            RiscvOperands::RdTarget => (false, TransferTarget::Relative(distance)),
            RiscvOperands::RdRs1Jump => {
                (false, TransferTarget::Register { base: rs1, displacement: distance })
            }
            _ => return None,
        };
        let is_indirect = self.op == RiscvOp::Jalr;
        let pushes = !is_conditional && is_link(rd);
        let pops = is_indirect && is_link(rs1) && !(pushes && rd == rs1);
        let kind = match () {
            () if pushes => TransferKind::Call,
            () if pops => TransferKind::Return,
            () => TransferKind::Jump,
        };
        Some(ControlTransfer {
            kind,
            is_conditional,
            target,
            link: (rd != 0 && !is_conditional).then_some(rd),
            hint: None,
            return_stack: ReturnStackUse { pops, pushes },
        })
    }

    fn value_model(&self) -> ValueModel {
        use RiscvOperands::*;
        let destination = self.registers().0[0];
        let first = SourceOperand::Register(self.rs2);
        let constant = SourceOperand::Constant(i64::from(self.immediate) as u64);
        let prediction = match self.op.operands() {
            Rs2Memory | Atomic => ValuePrediction::Register(Register::Integer(self.rs2)),
            Fs2Memory => ValuePrediction::Register(Register::Float(self.rs2)),
            Branch => ValuePrediction::Register(Register::Integer(self.rs1)),
            RdMemory | FdMemory | LoadReserved => ValuePrediction::Memory,
            RdRs1Imm | RdRs1Shift | RdRs1ShiftWord | RdRs1 => self.operation(constant),
            RdUpper if self.op == RiscvOp::Lui => {
                ValuePrediction::Operation(|a, b, _| a.wrapping_add(b), 0, constant, 0)
            }
            RdRs1Rs2 => self.operation(first),
            _ => ValuePrediction::History,
        };
        // What an atomic operation stores follows from memory, so that its value is not the contents of memory then.
        let is_store_conditional = matches!(self.op, RiscvOp::ScW | RiscvOp::ScD);
        let is_plain = !matches!(self.op.operands(), Atomic | Block) || is_store_conditional;
        ValueModel {
            prediction,
            destination: if self.op.operands() == Atomic { None } else { destination },
            success: None,
            memory: self.loaded().filter(|_| is_plain),
        }
    }

    /// How a load of the accessed size extends; of a store, any does.
    fn loaded(&self) -> Option<LoadExtension> {
        let bits = 8 * self.op.access_size()?.min(8);
        use RiscvOp::*;
        let is_signed = matches!(self.op, Lb | Lh | Lw | LrW | Sb | Sh | Sw | ScW);
        Some(LoadExtension { bits, is_signed })
    }

    /// The prediction of a result by the operation on the first source and an operand.
    fn operation(&self, second: SourceOperand) -> ValuePrediction {
        match super::evaluate::riscv_operation(self.op) {
            Some(operation) => ValuePrediction::Operation(operation, self.rs1, second, 0),
            None => ValuePrediction::History,
        }
    }
}
