//! Checks the consistency of a trace: every transfer of control is possible, addresses agree with the arithmetic on
//! registers, calls and returns nest, marks are in order, and chunks contain what their heads say.
//!
//! The check works on decoded records, independently of the codec, whose input may be wrong already.

mod calls;

use std::fmt;

use isa::{ControlTransfer, TransferTarget};

use self::calls::{OpenCalls, Return};
use crate::codec::block_summary::{
    BlockSummaries, BlockSummary, ExitTransfer, NONE, PointerTransfer, REGISTERS, SLOTS, SummaryAccess,
    UNKNOWN,
};
use crate::{Chunk, Trace};
use events::record::{
    Entries, Entry, Execution, FIRST_UNPRIVILEGED_PAL_CALL, Heap, MappingEvent, Mark, address_of_word,
    returns_from_kernel, word_of_address,
};
use events::{Block, BlockId};

/// The rules that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A chunk can be read, and contains what its head says.
    Chunk,
    /// A block begins at a possible successor of the block before it.
    Control,
    /// An address equals its base register plus displacement.
    Address,
    /// A return goes to the return address of an open call.
    Return,
    /// Order numbers ascend.
    Order,
    /// Units of work begin and end in pairs, and their numbers ascend.
    Unit,
    /// A system call's mark follows an instruction that makes one.
    SystemCall,
    /// A heap block's mark follows marks of its caller and size.
    Heap,
    /// A mapped range has marks of its start, its size, its object and its offset, in this order.
    Mapping,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The stream: an index of [`Trace::streams`].
    pub stream: u32,
    /// Number of instructions of the stream before it.
    pub instruction: u64,
    /// The address of the instruction or the block.
    pub pc: u64,
    /// The violation, as a message for users.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Violation { stream, instruction, pc, what, .. } = self;
        write!(formatter, "stream {stream}, instruction {instruction}, at 0x{pc:x}: {what}")
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// Number of instructions checked.
    pub instructions: u64,
    /// Number of addresses read.
    pub accesses: u64,
    /// Number of addresses that were checked, since the value of their base register was known.
    pub derived: u64,
    /// Number of calls.
    pub calls: u64,
    /// Number of returns from calls.
    pub returns: u64,
    /// Number of calls that were left by other means than their return, as by longjmp.
    pub unwound: u64,
    /// Number of returns without a matching call: calls before recording began, signal handlers, other stacks,
    /// exceptions.
    pub outside: u64,
    /// Number of violations.
    pub violations: u64,
    /// The first violations, at most [`TraceReport::LISTED`].
    pub listed: Vec<Violation>,
}

impl TraceReport {
    /// Maximum number of violations that are listed.
    pub const LISTED: usize = 100;
}

/// Checks a trace. Damage that was found when it was opened is not in the report: see [`Trace::problems`].
pub fn check(trace: &Trace) -> TraceReport {
    let set = trace.instruction_set();
    let mut summaries = BlockSummaries::new(set, false);
    for block in trace.blocks() {
        summaries.push(block.address, &block.words);
    }
    let ends: Vec<_> = trace.blocks().iter().map(LastInstruction::new).collect();
    let mut report = TraceReport::default();
    for stream in 0..trace.streams().len() as u32 {
        StreamChecker::new(trace, &summaries, &ends, &mut report, stream).follow();
    }
    report
}

/// The possible successors of a block.
#[derive(Clone, Copy, Debug)]
enum BlockSuccessors {
    Anywhere,
    At(u64),
    Either(u64, u64),
}

/// The system calls by which a signal handler ends: `sigreturn` and `rt_sigreturn` (Linux, arch/alpha/kernel/syscalls/syscall.tbl). In
/// traces of whole systems nothing else tells of it.
const SIGNAL_RETURNS: [u32; 2] = [103, 351];

/// A heap mark, as far as it determines which one may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeapMark {
    Caller,
    Size,
    Other,
}

/// The last instruction of a block.
struct LastInstruction {
    pc: u64,
    /// The address after it.
    end: u64,
    transfer: Option<ControlTransfer>,
    is_system_call: bool,
    enters_system: bool,
}

impl LastInstruction {
    fn new(block: &Block) -> LastInstruction {
        let pc = block.addresses().last().unwrap_or(block.address);
        let summary =
            block.words.last().and_then(|&word| block.instruction_set.summary(word)).unwrap_or_default();
        let (transfer, is_system_call) = (summary.transfer, summary.is_system_call);
        let enters_system = summary.enters_system;
        LastInstruction { pc, end: block.end(), transfer, is_system_call, enters_system }
    }
}

/// Checks a stream.
struct StreamChecker<'a> {
    trace: &'a Trace,
    summaries: &'a BlockSummaries,
    /// By block.
    ends: &'a [LastInstruction],
    report: &'a mut TraceReport,
    stream: u32,
    instruction: u64,
    /// The last heap mark.
    heap: HeapMark,
    /// The mark of a mapped range that comes next, of the four.
    mapping_step: u8,
    /// The block executed last.
    last: Option<BlockId>,
    next: BlockSuccessors,
    /// Whether that block ended with a return.
    returns: bool,
    /// The known values of the slots.
    slots: [Option<u64>; SLOTS],
    calls: OpenCalls,
    /// A return to where no call is open: wrong, unless a signal handler has ended, which the next mark tells.
    stray: Option<Violation>,
    /// The number of the last order mark, or 0.
    order: u64,
    /// Whether there was an order mark. Numbers begin with 1; in traces of attached programs they once began with 0.
    is_ordered: bool,
    /// The last unit of work, and whether it is open.
    unit: Option<u64>,
    unit_is_open: bool,
}

impl<'a> StreamChecker<'a> {
    fn new(
        trace: &'a Trace,
        summaries: &'a BlockSummaries,
        ends: &'a [LastInstruction],
        report: &'a mut TraceReport,
        stream: u32,
    ) -> StreamChecker<'a> {
        let mut checker = StreamChecker {
            trace,
            summaries,
            ends,
            report,
            stream,
            instruction: 0,
            heap: HeapMark::Other,
            mapping_step: 0,
            last: None,
            next: BlockSuccessors::Anywhere,
            returns: false,
            slots: [None; SLOTS],
            calls: OpenCalls::default(),
            stray: None,
            order: 0,
            is_ordered: false,
            unit: None,
            unit_is_open: false,
        };
        checker.divert();
        checker
    }

    fn violation(&mut self, rule: Rule, pc: u64, what: String) {
        self.report(Violation { rule, stream: self.stream, instruction: self.instruction, pc, what });
    }

    fn report(&mut self, violation: Violation) {
        self.report.violations += 1;
        if self.report.listed.len() < TraceReport::LISTED {
            self.report.listed.push(violation);
        }
    }

    fn report_stray(&mut self) {
        if let Some(violation) = self.stray.take() {
            self.report(violation);
        }
    }

    /// The address of the block executed last, which locates a violation.
    fn address(&self) -> u64 {
        self.last.map_or(0, |last| self.trace.blocks()[last as usize].address)
    }

    fn divert(&mut self) {
        self.next = BlockSuccessors::Anywhere;
        self.returns = false;
        self.slots = [None; SLOTS];
        self.slots[self.zero()] = Some(0);
    }

    /// The slot that is always 0.
    fn zero(&self) -> usize {
        self.summaries.set.zero_register().into()
    }

    /// Handles a gap in the records.
    fn gap(&mut self) {
        self.divert();
        self.calls.forget();
        self.last = None;
    }

    fn follow(&mut self) {
        let (trace, mut words) = (self.trace, Vec::new());
        for &index in trace.stream_chunks(self.stream) {
            let chunk = &trace.chunks()[index];
            if chunk.first_instruction != self.instruction {
                let what = format!("the next chunk begins with instruction {}", chunk.first_instruction);
                self.violation(Rule::Chunk, self.address(), what);
                self.gap();
                self.instruction = chunk.first_instruction;
                self.order = chunk.order;
            }
            match trace.read(index, &mut words) {
                Ok(()) => self.chunk(chunk, &words),
                Err(error) => {
                    self.violation(Rule::Chunk, self.address(), error.to_string());
                    self.gap();
                    self.instruction += chunk.instructions;
                }
            }
        }
        self.report_stray();
    }

    fn chunk(&mut self, chunk: &Chunk, words: &[u64]) {
        if chunk.order != self.order {
            let what = format!("the chunk claims to begin at order {}, not {}", chunk.order, self.order);
            self.violation(Rule::Chunk, self.address(), what);
        }
        let mut first_unit = None;
        for entry in Entries::new(words, self.trace.shapes()) {
            match entry {
                Entry::Execution(execution) => self.execution(execution),
                Entry::Mark(mark) => {
                    if let Mark::UnitBegins(number) = mark {
                        first_unit.get_or_insert(number);
                    }
                    self.mark(mark);
                }
            }
        }
        if first_unit != chunk.first_unit {
            let what = format!("the chunk's first unit is {first_unit:?}, not {:?}", chunk.first_unit);
            self.violation(Rule::Chunk, self.address(), what);
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Gap => self.gap(),
            Mark::Discontinuity => {
                self.divert();
                self.calls.open(None);
            }
            Mark::Order(number) => {
                if number < self.order || number == self.order && (number > 0 || self.is_ordered) {
                    let what = format!("order {number} comes behind order {}", self.order);
                    self.violation(Rule::Order, self.address(), what);
                }
                (self.order, self.is_ordered) = (number, true);
            }
            Mark::SystemCall(number) => self.system_call(number),
            Mark::UnitBegins(number) => {
                if self.unit_is_open || self.unit.is_some_and(|last| number <= last) {
                    let what = format!("unit {number} begins behind or within unit {:?}", self.unit);
                    self.violation(Rule::Unit, self.address(), what);
                }
                (self.unit, self.unit_is_open) = (Some(number), true);
            }
            Mark::UnitEnds(number) | Mark::UnitLeft(number) | Mark::UnitCut(number) => {
                if !self.unit_is_open || self.unit != Some(number) {
                    let what = format!("unit {number} ends, which has not begun");
                    self.violation(Rule::Unit, self.address(), what);
                }
                self.unit_is_open = false;
            }
            Mark::Heap(Heap::Caller(_) | Heap::Name(_)) => self.heap = HeapMark::Caller,
            Mark::Heap(Heap::Size(_)) if self.heap == HeapMark::Caller => self.heap = HeapMark::Size,
            Mark::Heap(Heap::Block(_)) if self.heap == HeapMark::Size => self.heap = HeapMark::Other,
            Mark::Heap(Heap::Size(_) | Heap::Block(_)) => {
                let what = "a heap block lacks a mark of its caller, size or address".into();
                self.violation(Rule::Heap, self.address(), what);
            }
            Mark::Heap(Heap::Freed(_) | Heap::Copied(_) | Heap::Gone) => {}
            Mark::Mapping(mapping) => self.mapping(mapping),
            Mark::PalCall(function) => {
                self.pal_call(function);
                self.divert();
                if returns_from_kernel(function) {
                    self.calls.resume();
                } else if function >= FIRST_UNPRIVILEGED_PAL_CALL {
                    self.calls.open(None);
                }
            }
            Mark::Exception(_) => {
                self.divert();
                self.calls.open(None);
            }
            Mark::PalReturn => self.divert(),
            Mark::ObjectEntered(_) | Mark::ObjectLeft(_) => {}
            Mark::LockAcquired(_) | Mark::LockReleased(_) | Mark::LockAwaited(_) => {}
        }
    }

    /// Whether the four marks of a mapped range follow each other.
    fn mapping(&mut self, mark: MappingEvent) {
        let step = match mark {
            MappingEvent::Start(_) => 0,
            MappingEvent::Size(_) => 1,
            MappingEvent::Shared(_) | MappingEvent::Private(_) => 2,
            MappingEvent::Offset(_) => 3,
            MappingEvent::Copied(_) | MappingEvent::Gone => 4,
        };
        let fits = if step == 4 { self.mapping_step == 0 } else { self.mapping_step == step };
        if !fits {
            let what = "a mapped range lacks a mark of its start, size, object or offset".into();
            self.violation(Rule::Mapping, self.address(), what);
        }
        self.mapping_step = (step + 1) % 4 * u8::from(step < 4);
    }

    fn system_call(&mut self, number: u32) {
        if SIGNAL_RETURNS.contains(&number) && self.stray.take().is_some() {
            self.report.outside += 1;
        }
        let Some(last) = self.last else { return };
        let last = &self.ends[last as usize];
        if !last.is_system_call {
            let what = format!("system call {number} comes behind an instruction that makes none");
            self.violation(Rule::SystemCall, last.end, what);
        }
    }

    fn pal_call(&mut self, function: u32) {
        let Some(last) = self.last else { return };
        let last = &self.ends[last as usize];
        if !last.enters_system {
            let what = format!("a call of PALcode's function {function:#x} comes behind another instruction");
            self.violation(Rule::SystemCall, last.end, what);
        }
    }

    fn execution(&mut self, execution: Execution) {
        let (trace, summaries) = (self.trace, self.summaries);
        let block = &trace.blocks()[execution.block as usize];
        let Ok(summary) = summaries.get(execution.block) else { return };
        self.report_stray();
        self.control(block);
        for (index, (access, &address)) in
            summaries.accesses(summary).iter().zip(execution.addresses).enumerate()
        {
            self.access(block, index, access, address);
        }
        for assignment in summaries.assignments(summary) {
            let value = self.slots[assignment.to.slot as usize];
            let sum = value.map(|value| value.wrapping_add(assignment.to.constant));
            self.slots[assignment.register as usize] = sum;
        }
        for register in (0..REGISTERS).filter(|register| summary.unknown >> register & 1 != 0) {
            self.slots[register] = None;
        }
        let last = &self.ends[execution.block as usize];
        self.next = self.successors(last, summary);
        self.returns = summary.exit == ExitTransfer::Return;
        self.last = Some(execution.block);
        self.instruction += u64::from(summary.instructions);
        self.report.instructions += u64::from(summary.instructions);
        if summary.exit == ExitTransfer::Call {
            self.report.calls += 1;
            self.calls.open(Some(last.end));
        }
    }

    /// Whether the block is a possible successor.
    fn control(&mut self, block: &Block) {
        let fits = match self.next {
            BlockSuccessors::Anywhere => true,
            BlockSuccessors::At(address) => address == block.address,
            BlockSuccessors::Either(one, other) => one == block.address || other == block.address,
        };
        if !fits {
            let from = self.last.map_or(0, |last| self.ends[last as usize].pc);
            let what = format!("control cannot have come here from 0x{from:x}");
            self.violation(Rule::Control, block.address, what);
        }
        if self.returns {
            self.returned(block.address);
        }
    }

    fn successors(&self, last: &LastInstruction, summary: &BlockSummary) -> BlockSuccessors {
        let Some(transfer) = last.transfer else { return BlockSuccessors::At(last.end) };
        match transfer.target {
            TransferTarget::Relative(distance) => {
                let target = last.pc.wrapping_add_signed(distance);
                if transfer.is_conditional {
                    BlockSuccessors::Either(target, last.end)
                } else {
                    BlockSuccessors::At(target)
                }
            }
            TransferTarget::Register { .. } if summary.jump == NONE => BlockSuccessors::Anywhere,
            TransferTarget::Register { .. } => {
                let ignored = self.summaries.set.code_alignment() - 1;
                let target = self.slots[summary.jump as usize].map(address_of_word);
                target.map_or(BlockSuccessors::Anywhere, |target| BlockSuccessors::At(target & !ignored))
            }
        }
    }

    /// Handles a return to an address. If the stack pointer was loaded from memory, as when an exception is thrown,
    /// any address is possible.
    fn returned(&mut self, address: u64) {
        let stack_pointer = usize::from(self.summaries.set.stack_pointer());
        match self.calls.returned(address) {
            Return::Open { left } => {
                self.report.unwound += left;
                self.report.returns += 1;
            }
            Return::Impossible if self.slots[stack_pointer].is_some() => {
                let (rule, what) = (Rule::Return, "no open call returns here".into());
                let (stream, instruction) = (self.stream, self.instruction);
                self.stray = Some(Violation { rule, stream, instruction, pc: address, what });
            }
            Return::Possible | Return::Impossible => self.report.outside += 1,
        }
    }

    fn access(&mut self, block: &Block, index: usize, access: &SummaryAccess, address: u64) {
        self.report.accesses += 1;
        if let Some(base) = self.slots[access.base.slot as usize] {
            let sum = base.wrapping_add(access.base.constant);
            let derived = word_of_address(sum & access.mask);
            self.report.derived += 1;
            if derived != address {
                let [address, derived] = [address, derived].map(address_of_word);
                let what = format!("accesses 0x{address:x}, but its base register says 0x{derived:x}");
                self.violation(Rule::Address, access_pc(block, index), what);
            }
        }
        if access.inferred_slot != UNKNOWN {
            self.slots[access.inferred_slot as usize] = Some(address.wrapping_sub(access.base.constant));
        }
        if access.transfer == PointerTransfer::Load {
            self.slots[access.data.slot as usize] = None;
        }
    }
}

/// The address of the instruction that makes the access with this number.
fn access_pc(block: &Block, index: usize) -> u64 {
    let count =
        |word: u32| block.instruction_set.summary(word).map_or(0, |summary| summary.accesses().count());
    let mut accesses = block
        .addresses()
        .zip(&block.words)
        .flat_map(|(address, &word)| std::iter::repeat_n(address, count(word)));
    accesses.nth(index).unwrap_or(block.address)
}
