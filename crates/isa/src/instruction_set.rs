//! The facts of an instruction set that consumers of executions need: traces, models of machines, analysis.
//!
//! A set describes each instruction word by an [`InstructionSummary`], and for pipelines by a [`PipelineSummary`].
//! Summaries are too large for a hot path: a consumer makes compact tables of them, once for each block.

use std::fmt::Debug;

use crate::{CpuModel, Group, InstructionClass};

/// An instruction set, as records, traces, models of machines and analysis need it.
///
/// A set has at most 32 integer and 32 floating-point registers, numbered from 0.
pub trait InstructionSet: Debug + Sync {
    /// Its name in the headers of traces.
    fn name(&self) -> &'static str;

    /// Whether its words only describe instructions, whose code stands beside them in blocks
    /// ([`DescribedSet`](crate::DescribedSet)). Images of such sets cannot be decoded.
    fn describes(&self) -> bool {
        false
    }

    /// The number of bytes of the instruction with this word, or of a word that is no instruction.
    fn length(&self, word: u32) -> u64;

    /// The summary of the instruction with this word; `None` if there is no such instruction.
    fn summary(&self, word: u32) -> Option<InstructionSummary>;

    /// The integer register that is always 0; in a set without one, a number below 32 that no register has.
    fn zero_register(&self) -> u8;

    /// The stack pointer, an integer register.
    fn stack_pointer(&self) -> u8;

    /// The power of two that all instructions' addresses are multiples of. Indirect jumps ignore the bits below.
    fn code_alignment(&self) -> u64;

    /// The machine in the ELF headers of its images.
    fn elf_machine(&self) -> u16;

    /// The text of the instruction at an address: its mnemonic, a space, and its operands with commas between them;
    /// `None` if there is no such instruction.
    fn disassemble(&self, word: u32, address: u64) -> Option<String>;

    /// The instruction of a word that only describes it, by its code; none if nobody here reads that.
    fn disassemble_code(&self, _code: &[u8], _address: u64) -> Option<String> {
        None
    }

    /// The name of a register in the calling convention.
    fn register_name(&self, register: Register) -> &'static str;

    /// The name under which instruction mixes count the instruction; `None` if there is no such instruction.
    fn mnemonic(&self, word: u32) -> Option<&'static str>;

    /// All names that [`mnemonic`](InstructionSet::mnemonic) gives, each with its group. Sets that share a name give it
    /// the same group.
    fn mnemonics(&self) -> Vec<(&'static str, Group)>;

    /// Whether a processor has the instruction. It does not have one that does not exist.
    fn is_implemented(&self, word: u32, cpu: CpuModel) -> bool;

    /// The summary of an instruction for models of pipelines; `None` if there is no such instruction.
    fn pipeline_summary(&self, word: u32) -> Option<PipelineSummary>;

    /// Linux's numbers, for programs of this set, of the system calls that readers of traces follow.
    fn control_calls(&self) -> ControlCalls;

    /// Bytes of the instructions at the beginning of functions, after which local calls may enter; 0 if there are none.
    /// Alpha's compute the global pointer.
    fn second_entry(&self) -> u64;
}

/// Numbers of the system calls after which control continues elsewhere than after the call, and of those by which threads
/// depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlCalls {
    /// `execve`: a new program begins.
    pub execute: u32,
    /// `rt_sigreturn`, and its older forms: what a signal interrupted continues.
    pub signal_returns: &'static [u32],
    /// `clone`: another thread, or a process, begins.
    pub creates_thread: u32,
    /// Calls in which a thread may wait for what another thread or process does, such as `futex` and `wait4`.
    pub may_wait: &'static [u32],
    /// The one of them by which threads also wake each other: `futex`.
    pub futex: u32,
}

/// Sets are told apart by their names.
impl PartialEq for dyn InstructionSet + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn InstructionSet + '_ {}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// One of the integer registers.
    Integer(u8),
    /// One of the floating-point registers.
    Float(u8),
}

/// A summary of an instruction for records and traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstructionSummary {
    /// Its access to memory.
    pub access: Option<MemoryAccess>,
    /// A further access, which comes after that one.
    pub second_access: Option<MemoryAccess>,
    /// The register whose value is recorded: the one that the instruction writes, or that a store stores, or that a
    /// conditional branch tests. None for other instructions: the return address that a call writes follows from its
    /// own address.
    pub value: Option<Register>,
    /// An integer register that it writes, if the result follows from registers by few operations. Zero registers
    /// ignore it.
    pub result: Option<(u8, IntegerResult)>,
    /// Bit mask of integer registers that it may write with results that do not follow so.
    pub unknown: u32,
    /// Where it transfers control to, unless to the next instruction.
    pub transfer: Option<ControlTransfer>,
    /// Whether it makes a system call.
    pub is_system_call: bool,
    /// Whether it enters the operating system or its firmware: by a system call, or for another service.
    pub enters_system: bool,
    /// The registers that it writes and reads, except zero registers; of a system call, some of them.
    pub written: [Option<Register>; 2],
    /// See `written`.
    pub read: [Option<Register>; 4],
    /// How its value is predicted in traces with values.
    pub value_model: ValueModel,
}

impl InstructionSummary {
    /// Its accesses to memory, in order.
    pub fn accesses(&self) -> impl Iterator<Item = MemoryAccess> + use<> {
        [self.access, self.second_access].into_iter().flatten()
    }
}

/// An access to memory, at the sum of a base register and a displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Number of bytes.
    pub size: u8,
    /// Whether it stores.
    pub is_store: bool,
    /// The base, an integer register.
    pub base: u8,
    /// The displacement.
    pub displacement: i64,
    /// Mask of the bits of the sum that are not cleared.
    pub mask: u64,
    /// Whether it is a load-locked or a store-conditional.
    pub is_locked: bool,
    /// The integer register that it moves a whole quadword to or from, if it does.
    pub quadword: Option<u8>,
}

/// An integer result that follows from registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerResult {
    /// A sum.
    Sum(SourceOperand, SourceOperand),
    /// The first operand minus the second.
    Difference(SourceOperand, SourceOperand),
    /// The bitwise or.
    Or(SourceOperand, SourceOperand),
    /// The instruction's own address plus a constant, such as a return address.
    Relative(i64),
}

/// An operand that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceOperand {
    /// The contents of an integer register.
    Register(u8),
    /// A constant.
    Constant(u64),
}

/// A transfer of control at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlTransfer {
    /// Its purpose.
    pub kind: TransferKind,
    /// Whether control continues with the next instruction if a condition is false.
    pub is_conditional: bool,
    /// Its target.
    pub target: TransferTarget,
    /// The integer register that it writes the return address to.
    pub link: Option<u8>,
    /// The distance in bytes from a jump to the target that the instruction itself names as probable.
    pub hint: Option<i64>,
    /// How processors predict its target by the addresses of earlier calls.
    pub return_stack: ReturnStackUse,
}

/// The use of a processor's stack of predicted return addresses by a transfer of control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnStackUse {
    /// Its target is predicted to be the last address of the stack, which it removes.
    pub pops: bool,
    /// Its return address is added.
    pub pushes: bool,
}

/// The kind of a transfer of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// Neither of the others.
    Jump,
    /// A call; without a return address ([`ControlTransfer::link`]) by name only.
    Call,
    /// A return from a call.
    Return,
}

/// The target of a transfer of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferTarget {
    /// Its distance in bytes from the instruction.
    Relative(i64),
    /// The contents of an integer register plus a displacement.
    Register {
        /// The register.
        base: u8,
        /// The displacement in bytes.
        displacement: i64,
    },
}

/// A summary of an instruction for models of pipelines. Zero registers are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineSummary {
    /// Its class.
    pub class: InstructionClass,
    /// The registers that it reads. A conditional move that does not move writes nothing, so that it does not read its
    /// destination.
    pub sources: [Option<Register>; 2],
    /// The one of `sources` that it tests (a conditional branch or move) or stores.
    pub special: Option<usize>,
    /// The register that it writes.
    pub destination: Option<Register>,
}

/// How the value of an instruction follows from registers and memory, and how it changes them. Traces omit values that
/// are predicted correctly, so that a change of an instruction's model changes their format.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueModel {
    /// The prediction of its value.
    pub prediction: ValuePrediction,
    /// The register that gets the value; if the instruction has none, the address of the next instruction.
    pub destination: Option<Register>,
    /// The register that gets another result in the place of the value: a conditional store's success.
    pub success: Option<u8>,
    /// The contents of memory then: the value as a load of the same size returns it. If the instruction has no access, this is at
    /// address 0.
    pub memory: Option<LoadExtension>,
}

/// The source of a prediction of a value.
#[derive(Clone, Copy, Debug, Default)]
pub enum ValuePrediction {
    /// Earlier values of the same instruction only.
    #[default]
    History,
    /// The contents of a register.
    Register(Register),
    /// The contents of memory at the accessed address.
    Memory,
    /// An integer operation on a register, an operand, and the former contents of a third register.
    Operation(Operation, u8, SourceOperand, u8),
}

/// An integer operation on two operands. The third argument is what its destination held.
pub type Operation = fn(u64, u64, u64) -> u64;

/// How a load extends what it reads to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadExtension {
    /// Number of bits read, 1 to 64.
    pub bits: u8,
    /// Whether the highest bit is copied.
    pub is_signed: bool,
}

impl LoadExtension {
    /// All of a register is loaded.
    pub const WHOLE: LoadExtension = LoadExtension { bits: 64, is_signed: false };

    /// The low bits of a value, extended.
    #[inline]
    pub fn apply(self, value: u64) -> u64 {
        let shift = 64 - u32::from(self.bits);
        let high = value << shift;
        if self.is_signed { (high as i64 >> shift) as u64 } else { high >> shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_extend() {
        let [byte, long] =
            [(8, false), (32, true)].map(|(bits, is_signed)| LoadExtension { bits, is_signed });
        assert_eq!(byte.apply(0x1234_5678_9abc_def0), 0xf0);
        assert_eq!(long.apply(0x1234_5678_9abc_def0), 0xffff_ffff_9abc_def0);
        assert_eq!(LoadExtension::WHOLE.apply(u64::MAX), u64::MAX);
    }
}
