//! Checks that what a trace says can have happened: control goes on where it can, addresses agree with the
//! registers' arithmetic, calls and returns nest, marks are in order, and chunks are what their heads claim.
//!
//! Nothing is taken from how the file is packed: where that is right, a trace may still be wrong.

mod calls;

use std::fmt;

use isa::{Flags, Format};

use self::calls::{Calls, Return};
use crate::codec::recipe::{Access, Exit, Moves, NONE, Recipe, Recipes, SLOTS, UNKNOWN, ZERO};
use crate::{Chunk, Trace};
use events::record::{Entries, Entry, Execution, Heap, Mark};
use events::{Block, BlockId};

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A chunk can be read, and is what its head claims.
    Chunk,
    /// A block begins where the one before it can have gone on.
    Control,
    /// An address is what its base register and displacement make.
    Address,
    /// A return goes to where an open call returns to.
    Return,
    /// The order's numbers rise.
    Order,
    /// Units of work begin and end in pairs, and their numbers rise.
    Unit,
    /// A call to the system follows an instruction that makes one.
    SystemCall,
    /// Blocks of the heap have a caller and a size.
    Heap,
}

/// Something that cannot have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it violates.
    pub rule: Rule,
    /// Whose: an index of [`Trace::streams`].
    pub stream: u32,
    /// How many instructions of the stream come before it.
    pub instruction: u64,
    /// Where the instruction is, or the block.
    pub pc: u64,
    /// What is wrong, for people.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Violation { stream, instruction, pc, what, .. } = self;
        write!(formatter, "stream {stream}, instruction {instruction}, at 0x{pc:x}: {what}")
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Instructions that were looked at.
    pub instructions: u64,
    /// Addresses that were looked at.
    pub accesses: u64,
    /// Those whose base register was known, so that they could be checked.
    pub derived: u64,
    /// Calls made.
    pub calls: u64,
    /// Returns from calls.
    pub returns: u64,
    /// Calls that were left by other means than their return, as by longjmp.
    pub unwound: u64,
    /// Returns to elsewhere: from what was called before recording began, from a signal's handler, on another
    /// stack, or in the course of an exception.
    pub outside: u64,
    /// How many violations there are.
    pub violations: u64,
    /// The first of them, [`Report::LISTED`] at most.
    pub listed: Vec<Violation>,
}

impl Report {
    /// So many violations are described.
    pub const LISTED: usize = 100;
}

/// Checks a trace. What could not even be found in the file is not in the report: see [`Trace::problems`].
pub fn check(trace: &Trace) -> Report {
    let mut recipes = Recipes::new(false);
    for block in trace.blocks() {
        recipes.push(block.address, &block.words);
    }
    let mut report = Report::default();
    for stream in 0..trace.streams().len() as u32 {
        Follower::new(trace, &recipes, &mut report, stream).follow();
    }
    report
}

/// Where control goes on.
#[derive(Clone, Copy, Debug)]
enum Next {
    Anywhere,
    At(u64),
    Either(u64, u64),
}

/// A mark of the heap, as far as it matters for what may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeapMark {
    Caller,
    Size,
    Other,
}

/// The stack pointer.
const SP: usize = 30;

/// Follows a stream.
struct Follower<'a> {
    trace: &'a Trace,
    recipes: &'a Recipes,
    report: &'a mut Report,
    stream: u32,
    instruction: u64,
    /// The mark of the heap that came last.
    heap: HeapMark,
    /// The block that was executed last.
    last: Option<BlockId>,
    next: Next,
    /// Whether it returned from a call.
    returns: bool,
    /// What is known to be in the slots.
    slots: [Option<u64>; SLOTS],
    calls: Calls,
    /// The number of the last order mark, or 0.
    order: u64,
    /// Whether there was one. Numbers begin with 1; traces of programs that ran already once began with 0.
    is_ordered: bool,
    /// The last unit of work, and whether it goes on.
    unit: Option<u64>,
    unit_is_open: bool,
}

impl<'a> Follower<'a> {
    fn new(trace: &'a Trace, recipes: &'a Recipes, report: &'a mut Report, stream: u32) -> Follower<'a> {
        let mut follower = Follower {
            trace,
            recipes,
            report,
            stream,
            instruction: 0,
            heap: HeapMark::Other,
            last: None,
            next: Next::Anywhere,
            returns: false,
            slots: [None; SLOTS],
            calls: Calls::default(),
            order: 0,
            is_ordered: false,
            unit: None,
            unit_is_open: false,
        };
        follower.divert();
        follower
    }

    fn violation(&mut self, rule: Rule, pc: u64, what: String) {
        self.report.violations += 1;
        if self.report.listed.len() < Report::LISTED {
            let (stream, instruction) = (self.stream, self.instruction);
            self.report.listed.push(Violation { rule, stream, instruction, pc, what });
        }
    }

    /// The address of the block that was executed last, to name a place.
    fn place(&self) -> u64 {
        self.last.map_or(0, |last| self.trace.blocks()[last as usize].address)
    }

    fn divert(&mut self) {
        self.next = Next::Anywhere;
        self.returns = false;
        self.slots = [None; SLOTS];
        self.slots[ZERO as usize] = Some(0);
    }

    /// Something is not recorded.
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
                self.violation(Rule::Chunk, self.place(), what);
                self.gap();
                self.instruction = chunk.first_instruction;
                self.order = chunk.order;
            }
            match trace.read(index, &mut words) {
                Ok(()) => self.chunk(chunk, &words),
                Err(error) => {
                    self.violation(Rule::Chunk, self.place(), error.to_string());
                    self.gap();
                    self.instruction += chunk.instructions;
                }
            }
        }
    }

    fn chunk(&mut self, chunk: &Chunk, words: &[u64]) {
        if chunk.order != self.order {
            let what = format!("the chunk claims to begin at order {}, not {}", chunk.order, self.order);
            self.violation(Rule::Chunk, self.place(), what);
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
            self.violation(Rule::Chunk, self.place(), what);
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Gap => self.gap(),
            Mark::Diverted => {
                self.divert();
                self.calls.open(None);
            }
            Mark::Order(number) => {
                if number < self.order || number == self.order && (number > 0 || self.is_ordered) {
                    let what = format!("order {number} comes behind order {}", self.order);
                    self.violation(Rule::Order, self.place(), what);
                }
                (self.order, self.is_ordered) = (number, true);
            }
            Mark::SystemCall(number) => self.system_call(number),
            Mark::UnitBegins(number) => {
                if self.unit_is_open || self.unit.is_some_and(|last| number <= last) {
                    let what = format!("unit {number} begins behind or within unit {:?}", self.unit);
                    self.violation(Rule::Unit, self.place(), what);
                }
                (self.unit, self.unit_is_open) = (Some(number), true);
            }
            Mark::UnitEnds(number) | Mark::UnitLeft(number) => {
                if !self.unit_is_open || self.unit != Some(number) {
                    let what = format!("unit {number} ends, which has not begun");
                    self.violation(Rule::Unit, self.place(), what);
                }
                self.unit_is_open = false;
            }
            Mark::Heap(Heap::Caller(_)) => self.heap = HeapMark::Caller,
            Mark::Heap(Heap::Size(_)) if self.heap == HeapMark::Caller => self.heap = HeapMark::Size,
            Mark::Heap(Heap::Block(_)) if self.heap == HeapMark::Size => self.heap = HeapMark::Other,
            Mark::Heap(Heap::Size(_) | Heap::Block(_)) => {
                let what = "a block of the heap is not told by its caller, size and address".into();
                self.violation(Rule::Heap, self.place(), what);
            }
            Mark::Heap(Heap::Freed(_) | Heap::Copied(_) | Heap::Gone) => {}
        }
    }

    fn system_call(&mut self, number: u32) {
        let Some(last) = self.last else { return };
        let block = &self.trace.blocks()[last as usize];
        let decoded = block.words.last().and_then(|&word| isa::decode(word));
        if decoded.is_none_or(|instruction| instruction.name() != "callsys") {
            let what = format!("system call {number} comes behind an instruction that makes none");
            self.violation(Rule::SystemCall, end(block), what);
        }
    }

    fn execution(&mut self, execution: Execution) {
        let (trace, recipes) = (self.trace, self.recipes);
        let block = &trace.blocks()[execution.block as usize];
        let Ok(recipe) = recipes.get(execution.block) else { return };
        self.control(block);
        for (index, (access, &address)) in
            recipes.accesses(recipe).iter().zip(execution.addresses).enumerate()
        {
            self.access(block, index, access, address);
        }
        for assignment in recipes.assignments(recipe) {
            let value = self.slots[assignment.to.slot as usize];
            let sum = value.map(|value| value.wrapping_add(assignment.to.constant));
            self.slots[assignment.register as usize] = sum;
        }
        for register in (0..ZERO).filter(|register| recipe.unknown >> register & 1 != 0) {
            self.slots[register as usize] = None;
        }
        self.next = self.successors(block, recipe);
        self.returns = recipe.exit == Exit::Return;
        self.last = Some(execution.block);
        self.instruction += u64::from(recipe.instructions);
        self.report.instructions += u64::from(recipe.instructions);
        if recipe.exit == Exit::Call {
            self.report.calls += 1;
            self.calls.open(Some(end(block)));
        }
    }

    /// Whether the block can come next.
    fn control(&mut self, block: &Block) {
        let fits = match self.next {
            Next::Anywhere => true,
            Next::At(address) => address == block.address,
            Next::Either(one, other) => one == block.address || other == block.address,
        };
        if !fits {
            let from = self.last.map_or(0, |last| end(&self.trace.blocks()[last as usize]).wrapping_sub(4));
            let what = format!("control cannot have come here from 0x{from:x}");
            self.violation(Rule::Control, block.address, what);
        }
        if self.returns {
            self.returned(block.address);
        }
    }

    fn successors(&self, block: &Block, recipe: &Recipe) -> Next {
        let end = end(block);
        let Some(last) = block.words.last().and_then(|&word| isa::decode(word)) else { return Next::At(end) };
        match (last.op.format(), last.target(end.wrapping_sub(4))) {
            (_, Some(target)) if last.op.is(Flags::CONDITIONAL) => Next::Either(target, end),
            (_, Some(target)) => Next::At(target),
            (Format::MemoryJump, None) if recipe.jump == NONE => Next::Anywhere,
            (Format::MemoryJump, None) => {
                self.slots[recipe.jump as usize].map_or(Next::Anywhere, |value| Next::At(value & !3))
            }
            _ => Next::At(end),
        }
    }

    /// A return went to an address. Where the stack pointer comes from memory, as when an exception is
    /// thrown, it may be any.
    fn returned(&mut self, address: u64) {
        match self.calls.returned(address) {
            Return::Open { left } => {
                self.report.unwound += left;
                self.report.returns += 1;
            }
            Return::Impossible if self.slots[SP].is_some() => {
                self.violation(Rule::Return, address, "no open call returns here".into());
            }
            Return::Possible | Return::Impossible => self.report.outside += 1,
        }
    }

    fn access(&mut self, block: &Block, index: usize, access: &Access, address: u64) {
        self.report.accesses += 1;
        if let Some(base) = self.slots[access.base.slot as usize] {
            let sum = base.wrapping_add(access.base.constant);
            let derived = sum & access.mask;
            self.report.derived += 1;
            if derived != address {
                let what = format!("accesses 0x{address:x}, but its base register says 0x{derived:x}");
                self.violation(Rule::Address, access_pc(block, index), what);
            }
        }
        if access.learns != UNKNOWN {
            self.slots[access.learns as usize] = Some(address.wrapping_sub(access.base.constant));
        }
        if access.moves == Moves::Load {
            self.slots[access.data.slot as usize] = None;
        }
    }
}

/// The address behind a block.
fn end(block: &Block) -> u64 {
    block.address.wrapping_add(4 * block.words.len() as u64)
}

/// The address of the instruction that makes an access, by the access's number.
fn access_pc(block: &Block, index: usize) -> u64 {
    let is_access =
        |word: &u32| isa::decode(*word).is_some_and(|instruction| instruction.access_size().is_some());
    let mut accesses = (0u64..).zip(&block.words).filter(|(_, word)| is_access(word));
    accesses.nth(index).map_or(block.address, |(number, _)| block.address.wrapping_add(4 * number))
}
