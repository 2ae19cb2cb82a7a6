//! Records: what a thread executed, as words of 64 bits.
//!
//! Each execution of a block is a word with the block's number, then the effective address of each of its
//! accesses to memory in order, then, if values were recorded, a word for each of its instructions that
//! [`has_value`]. Between executions there are [`Mark`]s.

use isa::{Flags, Format, Instruction, Op, Operands};

use crate::BlockId;

/// What a word of the records says, other than a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block was executed from its first to its last instruction.
    Block(BlockId),
    /// The effective address of an access.
    Access(u64),
    /// Something beside instructions.
    Mark(Mark),
}

/// Something that happened between two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What follows was executed after what follows a smaller number in any other stream, and before what
    /// follows a greater one.
    Order(u64),
    /// Recording begins here, or goes on: what was executed before is not all recorded.
    Gap,
    /// Control goes on elsewhere than the last instruction says, with other registers: a signal's handler
    /// begins or ends, or another program does.
    Diverted,
    /// The last instruction called the system: Alpha's number of the call.
    SystemCall(u32),
    /// A unit of work begins; its number, from 0.
    UnitBegins(u64),
    /// The unit of work ends by its function's return.
    UnitEnds(u64),
    /// The unit of work was left by other means than its function's return.
    UnitLeft(u64),
    /// Something became of the heap.
    Heap(Heap),
}

/// What a program does with its heap. Who allocates is told by three marks: caller, size, block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// A function was called that allocates, and returns to this address.
    Caller(u64),
    /// It was asked for so many bytes.
    Size(u64),
    /// It returned this block; or 0, and the one that was freed last was not freed.
    Block(u64),
    /// The block at this address is freed, or moves.
    Freed(u64),
    /// The process is a copy of the one with this number, made by fork.
    Copied(u32),
    /// Another program takes the place of this one, with an empty heap.
    Gone,
}

/// The largest number that a mark can have.
pub const LARGEST: u64 = (1 << BEHIND_KIND) - 1;
const BEHIND_KIND: u32 = 56;
const HIGHEST: u64 = 1 << 63;

impl Event {
    /// Addresses have no highest bit; a block is the complement of its number; a mark has its kind in bits
    /// 56 to 62.
    #[inline(always)]
    pub fn new(word: u64) -> Event {
        if word & HIGHEST == 0 {
            Event::Access(word)
        } else if word >> 32 == u64::from(u32::MAX) {
            Event::Block(!word as BlockId)
        } else {
            Event::Mark(Mark::new(word))
        }
    }

    /// The word.
    #[inline(always)]
    pub fn word(self) -> u64 {
        match self {
            Event::Block(id) => !u64::from(id),
            Event::Access(address) => address,
            Event::Mark(mark) => mark.word(),
        }
    }
}

impl Mark {
    #[cold]
    fn new(word: u64) -> Mark {
        let payload = word & LARGEST;
        match word >> BEHIND_KIND & 0x7f {
            0 => Mark::Order(payload),
            1 => Mark::Gap,
            2 => Mark::Diverted,
            3 => Mark::SystemCall(payload as u32),
            4 => Mark::UnitBegins(payload),
            5 => Mark::UnitEnds(payload),
            6 => Mark::UnitLeft(payload),
            7 => Mark::Heap(Heap::Caller(payload)),
            8 => Mark::Heap(Heap::Size(payload)),
            9 => Mark::Heap(Heap::Block(payload)),
            10 => Mark::Heap(Heap::Freed(payload)),
            11 => Mark::Heap(Heap::Copied(payload as u32)),
            _ => Mark::Heap(Heap::Gone),
        }
    }

    fn word(self) -> u64 {
        let (kind, payload) = match self {
            Mark::Order(number) => (0, number),
            Mark::Gap => (1, 0),
            Mark::Diverted => (2, 0),
            Mark::SystemCall(number) => (3, u64::from(number)),
            Mark::UnitBegins(number) => (4, number),
            Mark::UnitEnds(number) => (5, number),
            Mark::UnitLeft(number) => (6, number),
            Mark::Heap(Heap::Caller(address)) => (7, address),
            Mark::Heap(Heap::Size(bytes)) => (8, bytes),
            Mark::Heap(Heap::Block(address)) => (9, address),
            Mark::Heap(Heap::Freed(address)) => (10, address),
            Mark::Heap(Heap::Copied(process)) => (11, u64::from(process)),
            Mark::Heap(Heap::Gone) => (12, 0),
        };
        HIGHEST | kind << BEHIND_KIND | payload & LARGEST
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// One of the integer registers.
    Integer(u8),
    /// One of the floating-point registers.
    Float(u8),
}

/// The register whose value is recorded of an instruction: the one that it writes; that a store stores; that
/// a conditional branch tests. None for the others: what transfers of control that link write follows from
/// their address.
pub fn value_register(instruction: Instruction) -> Option<Register> {
    let op = instruction.op;
    let register = match op.format() {
        Format::Memory => instruction.ra(),
        Format::Branch if op.is(Flags::CONDITIONAL) => instruction.ra(),
        Format::MemoryFunction if matches!(op, Op::Rpcc | Op::Rc | Op::Rs) => instruction.ra(),
        Format::Operate => instruction.rc(),
        Format::FloatOperate if op != Op::MtFpcr => instruction.rc(),
        _ => return None,
    };
    let is_dropped = register == 31 && !op.is(Flags::STORE) && op.format() != Format::Branch;
    let is_float = op.is_float() && op.row().operands != Operands::FaRc;
    (!is_dropped).then_some(if is_float { Register::Float(register) } else { Register::Integer(register) })
}

/// Whether an instruction has a value to record.
pub fn has_value(instruction: Instruction) -> bool {
    value_register(instruction).is_some()
}

/// How many words of its record a block has, and how many instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Instructions.
    pub instructions: u32,
    /// Accesses to memory.
    pub accesses: u32,
    /// Values; 0 if none are recorded.
    pub values: u32,
}

impl Shape {
    /// Of a block's instruction words.
    pub fn new(words: &[u32], has_values: bool) -> Shape {
        let decoded = || words.iter().filter_map(|&word| isa::decode(word));
        let accesses = decoded().filter(|instruction| instruction.access_size().is_some()).count();
        let values = if has_values { decoded().filter(|&one| has_value(one)).count() } else { 0 };
        Shape { instructions: words.len() as u32, accesses: accesses as u32, values: values as u32 }
    }
}

impl Shape {
    /// Words of a record: the block's own, and the others.
    pub fn words(self) -> u32 {
        1 + self.accesses + self.values
    }
}

/// One execution of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution<'a> {
    /// Which block.
    pub block: BlockId,
    /// The effective addresses of its accesses, in order.
    pub addresses: &'a [u64],
    /// What its instructions that have a value ([`has_value`]) wrote, stored or tested, in order; empty if
    /// values were not recorded. Floating-point registers are in register format.
    pub values: &'a [u64],
}

/// What records hold, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A block was executed.
    Execution(Execution<'a>),
    /// Something beside instructions.
    Mark(Mark),
}

/// Reads records. Ends early where they contradict the shapes.
pub struct Entries<'a> {
    words: &'a [u64],
    shapes: &'a [Shape],
}

impl<'a> Entries<'a> {
    /// Reads `words`, written about blocks of these shapes.
    pub fn new(words: &'a [u64], shapes: &'a [Shape]) -> Entries<'a> {
        Entries { words, shapes }
    }

    /// The words that were not read yet.
    pub fn rest(&self) -> &'a [u64] {
        self.words
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Entry<'a>> {
        let (&word, rest) = self.words.split_first()?;
        match Event::new(word) {
            Event::Block(block) => {
                let shape = self.shapes.get(block as usize)?;
                let (addresses, rest) = rest.split_at_checked(shape.accesses as usize)?;
                let (values, rest) = rest.split_at_checked(shape.values as usize)?;
                self.words = rest;
                Some(Entry::Execution(Execution { block, addresses, values }))
            }
            Event::Mark(mark) => {
                self.words = rest;
                Some(Entry::Mark(mark))
            }
            Event::Access(_) => None,
        }
    }
}
