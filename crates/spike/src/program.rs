//! The intermediate representation: the instructions of an image in blocks, blocks in procedures, and every pointer to
//! code as a reference to a block.

use std::collections::HashMap;

use isa::{Flags, InstructionSet, Op};

use crate::elf::Elf;
use crate::exceptions::{CallSiteId, Exceptions};
use crate::unwind::UnwindingTables;

/// Index of a block in [`Program::blocks`].
pub type CodeBlockId = u32;
/// Index of a procedure in [`Program::procedures`].
pub type ProcedureId = u32;

/// The word of an unconditional branch that leaves no return address, without its displacement.
pub fn branch_word() -> u32 {
    u32::from(Op::Br.row().opcode) << 26 | u32::from(ZERO) << 21
}

/// An instruction that no original one became.
pub const NO_ORIGIN: u32 = u32::MAX;
/// Bytes of an instruction.
pub const LENGTH: u64 = 4;
/// The return-address register.
pub const RA: u8 = 26;
/// The register with a procedure's own address at its entry.
pub const PV: u8 = 27;
/// The global pointer.
pub const GP: u8 = 29;
/// The stack pointer.
pub const SP: u8 = 30;
/// The register that is always zero.
pub const ZERO: u8 = 31;

/// An image, taken apart.
#[derive(Debug)]
pub struct Program {
    /// The file that it was read from.
    pub elf: Elf,
    /// The code's extent in the original image.
    pub code: CodeExtent,
    /// The procedures in the order of the original image.
    pub procedures: Vec<Procedure>,
    /// The blocks; those of the original image first, in its order.
    pub blocks: Vec<CodeBlock>,
    /// The pairs of instructions that compute a global pointer.
    pub global_pointers: Vec<GlobalPointer>,
    /// Words of the data that hold addresses of code.
    pub data: Vec<DataReference>,
    /// The unwinding tables.
    pub frames: UnwindingTables,
    /// The exception tables.
    pub exceptions: Exceptions,
    /// The counters of an instrumented image.
    pub counters: Option<CounterSegment>,
    /// Calls and jumps to other images in the profiled run.
    pub external_calls: Vec<ExternalCall>,
    /// Where jumps through registers mostly lead, by the number of the original instruction.
    pub predicted: HashMap<u32, PredictedTarget>,
}

/// Executions of a call, or of a jump, to another image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExternalCall {
    /// The block that it ends.
    pub block: CodeBlockId,
    /// The low 16 bits of the target's address, which are the same wherever an image is loaded: at multiples of 64 KB.
    pub low: u16,
    /// How often.
    pub count: u64,
}

/// The meaning of the hint in a jump through a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictedTarget {
    /// The first instruction of a block.
    Block(CodeBlockId),
    /// An address with these low bits in another image.
    External(u16),
}

/// The extent of the original code: its instructions are numbered from its lowest address.
#[derive(Clone, Debug, Default)]
pub struct CodeExtent {
    /// The lowest address.
    pub base: u64,
    /// The instruction words, from the lowest address on; zero between sections.
    pub words: Vec<u32>,
    /// The sections, ascending: first and last number plus one.
    pub ranges: Vec<(u32, u32)>,
    /// The block that begins at each instruction, if one does.
    pub block_at: Vec<Option<CodeBlockId>>,
}

impl CodeExtent {
    /// The number of the instruction at an address.
    pub fn index(&self, address: u64) -> Option<u32> {
        let index = u32::try_from(address.wrapping_sub(self.base) / LENGTH).ok()?;
        let is_within = self.ranges.iter().any(|&(start, end)| (start..end).contains(&index));
        (is_within && address.is_multiple_of(LENGTH)).then_some(index)
    }

    /// The address of an instruction.
    pub fn address(&self, index: u32) -> u64 {
        self.base + u64::from(index) * LENGTH
    }

    /// The text of an instruction.
    pub fn disassemble(&self, index: u32) -> String {
        let word = self.words.get(index as usize).copied().unwrap_or_default();
        let text = isa::Alpha.disassemble(word, self.address(index));
        text.unwrap_or_else(|| format!(".long {word:#x}"))
    }

    /// The block that begins at an address.
    pub fn block(&self, address: u64) -> Option<CodeBlockId> {
        self.block_at.get(self.index(address)? as usize).copied().flatten()
    }
}

/// A procedure.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// The name of its symbol.
    pub name: String,
    /// Its blocks, in the order of the original image. The first one is its entry.
    pub blocks: Vec<CodeBlockId>,
    /// Why its code must stay together as it is, if it must.
    pub frozen: Option<Frozen>,
    /// The global pointer of its code.
    pub global_pointer: u64,
    /// The number of its information for unwinders.
    pub frame: Option<u32>,
    /// The procedure that it is a part of: of a hot copy, the original.
    pub original: Option<ProcedureId>,
}

/// Why a procedure is moved as a whole, without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frozen {
    /// Words that are no instructions.
    Data,
    /// An indirect jump whose targets are not known.
    Jump,
    /// No symbol has its size.
    NoSymbol,
    /// Its exception table is encoded as no compiler does.
    Exceptions,
    /// A pair that computes the global pointer is not at an instruction where its base is known.
    GlobalPointer,
    /// It returns from signal handlers: debuggers and unwinders know it by its instructions.
    SignalTrampoline,
}

impl Frozen {
    /// All reasons.
    pub const ALL: [Frozen; 6] = [
        Frozen::Data,
        Frozen::Jump,
        Frozen::NoSymbol,
        Frozen::Exceptions,
        Frozen::GlobalPointer,
        Frozen::SignalTrampoline,
    ];

    /// The reason in words, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Frozen::Data => "contains words that are no instructions",
            Frozen::Jump => "indirect jump with unknown targets",
            Frozen::NoSymbol => "code without a symbol",
            Frozen::Exceptions => "unknown encoding of the exception table",
            Frozen::GlobalPointer => "global pointer computed from an unknown base",
            Frozen::SignalTrampoline => "returns from signal handlers",
        }
    }
}

/// A straight run of instructions.
#[derive(Clone, Debug)]
pub struct CodeBlock {
    /// Its procedure.
    pub procedure: ProcedureId,
    /// The instructions; branches other than calls and jumps through registers are in the exit.
    pub instructions: Vec<LiftedInstruction>,
    /// Where control goes from its end.
    pub exit: CodeExit,
    /// Whether pointers in data or registers refer to it, or symbols that other images see.
    pub is_address_taken: bool,
    /// How exceptions in it are handled; if there is a table, and it does not say, the program ends.
    pub call_site: Option<CallSiteId>,
    /// How often it was executed in the profiled run.
    pub count: u64,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiftedInstruction {
    /// The word; fields that a reference determines may be those of the original image.
    pub word: u32,
    /// The number of the original instruction, or [`NO_ORIGIN`].
    pub origin: u32,
    /// The code or data that it refers to.
    pub reference: Reference,
    /// The state of the frame before it ([`UnwindingTables::rows`]).
    pub frame: u32,
}

/// The code or data that an instruction refers to, so that a field of it must be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reference {
    /// Nothing that moves.
    #[default]
    None,
    /// A branch's displacement.
    Branch(BranchTarget),
    /// The upper half of the distance to the global pointer: index into [`Program::global_pointers`].
    GlobalPointerHigh(u32),
    /// The lower half.
    GlobalPointerLow(u32),
    /// The upper half of a code address relative to the global pointer.
    CodeHigh(CodeBlockId),
    /// The lower half.
    CodeLow(CodeBlockId),
    /// A load of an address from this slot of the global offset table.
    Slot(u64),
    /// A jump through a register that was loaded from this slot.
    CallThrough(u64),
    /// The upper half of the distance from an anchor to a counter.
    CounterHigh(ImageCounter),
    /// The lower half.
    CounterLow(ImageCounter),
}

/// A counter of an instrumented image, as code addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageCounter {
    /// Its distance from the first byte of the counters.
    pub offset: u32,
    /// The anchor from which it is addressed.
    pub anchor: Anchor,
}

/// The address that a register holds, to which the distance to a counter is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The global pointer of the procedure.
    GlobalPointer,
    /// The address of the instruction that is so many instructions before.
    Instruction(u8),
    /// The address of the first instruction of the image, plus a distance.
    Code,
    /// As `Instruction`; the distance is that to this block, not to a counter.
    Block(u8, CodeBlockId),
    /// As `Instruction`; four times the distance from there to an address of the procedure with this entry is added to it.
    Scaled(u8, CodeBlockId),
}

/// The additional segment of an instrumented image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSegment {
    /// Bytes of the counters.
    pub size: u64,
    /// The original address of the code that is executed first.
    pub entry: u64,
    /// The block that is executed before it.
    pub start: CodeBlockId,
}

/// The target of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchTarget {
    /// A block.
    Block(CodeBlockId),
    /// Code that does not move, such as the procedure linkage table.
    Address(u64),
}

impl BranchTarget {
    /// The block, if it is one.
    pub fn block(self) -> Option<CodeBlockId> {
        match self {
            BranchTarget::Block(block) => Some(block),
            BranchTarget::Address(_) => None,
        }
    }
}

/// Where control goes from the end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeExit {
    /// To the block that follows in the original image, or after a call.
    Next(CodeBlockId),
    /// By an unconditional branch.
    Branch {
        /// The branch.
        branch: LiftedInstruction,
        /// Where to.
        target: BranchTarget,
    },
    /// By a conditional branch.
    Conditional {
        /// The branch.
        branch: LiftedInstruction,
        /// Where to, if its condition holds.
        taken: BranchTarget,
        /// Where to otherwise.
        next: CodeBlockId,
        /// How often the condition held in the profiled run.
        count: u64,
    },
    /// Through a register to one of these blocks, and if `leaves` out of the procedure. The jump is the last instruction.
    Jump {
        /// The blocks.
        targets: Vec<CodeBlockId>,
        /// How often control went to each in the profiled run.
        counts: Vec<u64>,
    },
    /// Out of the procedure: a return or a tail call through a register, which is the last instruction; or no further.
    Leave,
}

impl CodeExit {
    /// The blocks that control may go to.
    pub fn successors(&self) -> Vec<CodeBlockId> {
        match self {
            CodeExit::Next(next) => vec![*next],
            CodeExit::Branch { target, .. } => target.block().into_iter().collect(),
            CodeExit::Conditional { taken, next, .. } => taken.block().into_iter().chain([*next]).collect(),
            CodeExit::Jump { targets, .. } => targets.clone(),
            CodeExit::Leave => Vec::new(),
        }
    }

    /// Replaces blocks that control may go to.
    pub fn redirect(&mut self, to: impl Fn(CodeBlockId) -> CodeBlockId) {
        let redirect = |target: &mut BranchTarget| {
            if let BranchTarget::Block(block) = target {
                *block = to(*block);
            }
        };
        match self {
            CodeExit::Next(next) => *next = to(*next),
            CodeExit::Branch { target, .. } => redirect(target),
            CodeExit::Conditional { taken, next, .. } => {
                redirect(taken);
                *next = to(*next);
            }
            CodeExit::Jump { targets, .. } => targets.iter_mut().for_each(|target| *target = to(*target)),
            CodeExit::Leave => {}
        }
    }
}

impl CodeBlock {
    /// A block to which only its predecessors lead.
    pub fn new(procedure: ProcedureId, instructions: Vec<LiftedInstruction>, exit: CodeExit) -> CodeBlock {
        CodeBlock { procedure, instructions, exit, is_address_taken: false, call_site: None, count: 0 }
    }

    /// How often control went from here to each successor, in the order of [`CodeExit::successors`].
    pub fn edges(&self) -> Vec<(CodeBlockId, u64)> {
        match &self.exit {
            CodeExit::Next(next) => vec![(*next, self.count)],
            CodeExit::Branch { target, .. } => {
                target.block().map(|block| (block, self.count)).into_iter().collect()
            }
            CodeExit::Conditional { taken, next, count, .. } => {
                let taken = taken.block().map(|block| (block, *count));
                taken.into_iter().chain([(*next, self.count.saturating_sub(*count))]).collect()
            }
            CodeExit::Jump { targets, counts } => {
                targets.iter().copied().zip(counts.iter().copied()).collect()
            }
            CodeExit::Leave => Vec::new(),
        }
    }

    /// The call at its end, if there is one.
    pub fn call(&self) -> Option<&LiftedInstruction> {
        self.instructions.last().filter(|last| last.is_call())
    }

    /// The call or the jump through a register at its end, if there is one.
    pub fn jump(&self) -> Option<&LiftedInstruction> {
        self.instructions.last().filter(|last| last.is_jump())
    }
}

impl LiftedInstruction {
    /// A new instruction, in the frame of another one.
    pub fn new(word: u32, frame: u32) -> LiftedInstruction {
        LiftedInstruction { word, origin: NO_ORIGIN, reference: Reference::None, frame }
    }

    /// The operation.
    pub fn op(&self) -> Option<Op> {
        isa::decode_op(self.word)
    }

    /// Whether it transfers control and leaves a return address.
    pub fn is_call(&self) -> bool {
        isa::decode(self.word).is_some_and(|one| {
            one.op.is(Flags::BRANCH)
                && !one.op.is(Flags::CONDITIONAL)
                && one.ra() != ZERO
                && !one.op.is(Flags::RETURN)
        })
    }

    /// Whether it is a call or a jump through a register, and no return.
    pub fn is_jump(&self) -> bool {
        matches!(self.op(), Some(Op::Jsr | Op::Jmp))
    }

    /// Whether it does nothing.
    pub fn is_nop(&self) -> bool {
        isa::nop_kind(self.word).is_some()
    }
}

/// Two instructions that add the distance from a base to the global pointer.
#[derive(Clone, Copy, Debug)]
pub struct GlobalPointer {
    /// The address that the first one finds in its base register.
    pub base: Base,
    /// The global pointer.
    pub value: u64,
}

/// The address in the base register of a computation of the global pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The block's own: a procedure's entry, or a landing pad.
    Block(CodeBlockId),
    /// The instruction after the call that ends this block.
    AfterCall(CodeBlockId),
}

/// A word of the data that holds an address of code.
#[derive(Clone, Copy, Debug)]
pub struct DataReference {
    /// The word's address.
    pub address: u64,
    /// Its form.
    pub form: DataForm,
    /// The block that it refers to.
    pub target: CodeBlockId,
}

/// How a word of the data holds an address of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataForm {
    /// 64 bits, the address.
    Absolute,
    /// 32 bits, the distance from this global pointer.
    GlobalPointerRelative(u64),
}

impl Program {
    /// The words of the original image that are in blocks.
    pub fn instructions(&self) -> usize {
        self.blocks.iter().map(|block| block.instructions.len()).sum()
    }

    /// Whether instructions of a procedure may be changed. Data flow does not know the ways from calls to landing pads, nor
    /// where exceptions must not pass, so that procedures with exception tables only have their blocks moved.
    pub fn may_change(&self, procedure: ProcedureId) -> bool {
        let procedure = &self.procedures[procedure as usize];
        let table = procedure.frame.and_then(|frame| self.frames.tables.get(frame as usize));
        procedure.frozen.is_none() && table.is_none_or(|table| table.exceptions.is_none())
    }

    /// Whether a procedure returns from signal handlers. Unwinders come to its first instruction as a return address, and look for
    /// the table of the instruction before it, which must belong to it.
    pub fn is_trampoline(&self, procedure: ProcedureId) -> bool {
        let table = self.procedures[procedure as usize].frame.map(|frame| self.frames.tables[frame as usize]);
        table.is_some_and(|table| self.frames.headers[table.header as usize].is_signal_trampoline)
    }

    /// The entry behind the computation of the global pointer, if a procedure has both.
    pub fn second_entry(&self, procedure: ProcedureId) -> Option<CodeBlockId> {
        let entry = *self.procedures[procedure as usize].blocks.first()?;
        let block = &self.blocks[entry as usize];
        let is_pair = |one: &LiftedInstruction| {
            matches!(one.reference, Reference::GlobalPointerHigh(_) | Reference::GlobalPointerLow(_))
        };
        match block.exit {
            CodeExit::Next(next)
                if block.instructions.len() == 2 && block.instructions.iter().all(is_pair) =>
            {
                Some(next)
            }
            _ => None,
        }
    }

    /// The block at which control enters the image, if it did so at this address of the original one.
    pub fn start(&self, address: u64) -> Option<CodeBlockId> {
        let counters = self.counters.filter(|counters| counters.entry == address);
        counters.map(|counters| counters.start).or_else(|| self.code.block(address))
    }

    /// The block whose address a word of the data holds.
    pub fn data_at(&self, address: u64) -> Option<CodeBlockId> {
        let found = self.data.binary_search_by_key(&address, |one| one.address).ok()?;
        Some(self.data[found].target)
    }

    /// Where calls within the image enter a procedure: its second entry, or else its first one.
    pub fn head(&self, procedure: ProcedureId) -> Option<CodeBlockId> {
        self.second_entry(procedure).or(self.procedures[procedure as usize].blocks.first().copied())
    }

    /// Adds a procedure without blocks that the original image does not have.
    pub fn add_procedure(&mut self, name: &str, frozen: Frozen) -> ProcedureId {
        self.procedures.push(Procedure {
            name: name.into(),
            blocks: Vec::new(),
            frozen: Some(frozen),
            global_pointer: 0,
            frame: None,
            original: None,
        });
        self.procedures.len() as ProcedureId - 1
    }

    /// Adds a block.
    pub fn add_block(&mut self, block: CodeBlock) -> CodeBlockId {
        self.blocks.push(block);
        self.blocks.len() as CodeBlockId - 1
    }
}
