//! Records: the execution of a thread as a sequence of 64-bit words.
//!
//! The execution of a block is a word with the block's number, followed by the effective addresses of its accesses in
//! order and, if values are recorded, by the value of each of its instructions that has one
//! ([`InstructionSummary::value`](isa::InstructionSummary::value)). [`Mark`]s may stand between executions.

use isa::InstructionSet;
pub use isa::Register;

use crate::BlockId;

/// A word of the records, other than a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block was executed from its first to its last instruction.
    Block(BlockId),
    /// The effective address of an access, as a word ([`word_of_address`]).
    Access(u64),
    /// An event other than an execution.
    Mark(Mark),
}

/// Something that happened between two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The following records were executed after those that follow a smaller number in any other stream, and before
    /// those that follow a greater number.
    Order(u64),
    /// Not everything executed before was recorded: recording begins or resumes here.
    Gap,
    /// Control was transferred by something other than the last instruction, and registers have changed: a signal
    /// handler begins or ends, or a new program begins.
    Discontinuity,
    /// The last instruction made a system call, with this number of Alpha's.
    SystemCall(u32),
    /// The unit of work with this number begins. Numbers begin with 0.
    UnitBegins(u64),
    /// The unit of work ends: its function returned.
    UnitEnds(u64),
    /// The unit of work ends: its function was left by other means than its return.
    UnitLeft(u64),
    /// The unit of work goes on, and is observed no more: recording ends, or its thread does.
    UnitCut(u64),
    /// An event of the heap.
    Heap(Heap),
    /// A change of what is mapped in the process's address space.
    Mapping(Mapping),
    /// The processor enters PALcode by an exception; the instruction after the last one recorded, if it caused the
    /// exception, was not executed. This mark and the two below are in traces of whole systems only.
    Exception(ExceptionKind),
    /// The processor enters PALcode by the last instruction, which calls the function with this number.
    PalCall(u32),
    /// PALcode ends: control continues in the kernel or a program.
    PalReturn,
    /// A function that works on an object is called: what follows is executed for the object of this number
    /// ([`Consumer::object`](crate::Consumer::object)). Only consumers of running programs get this mark and the next one.
    ObjectEntered(u32),
    /// Such a call has ended: what follows is executed for the object of this number again, or for none if it is 0.
    ObjectLeft(u32),
    /// The thread holds a lock, the object of this number, from now on: the function that acquires it has returned. Only
    /// consumers that get objects get this mark and the two below.
    LockAcquired(u32),
    /// The thread releases a lock, or has waited for it in vain.
    LockReleased(u32),
    /// The thread begins to wait for a lock that others hold, in the function that acquires it.
    LockAwaited(u32),
}

/// The number of PALcode's function for a system call.
pub const CALLSYS: u32 = 0x83;
/// The first number of the functions that programs may call.
pub const FIRST_UNPRIVILEGED_PAL_CALL: u32 = 0x80;

/// Whether PALcode's function returns from the kernel to what it was entered from: `retsys` or `rti`.
pub fn returns_from_kernel(function: u32) -> bool {
    matches!(function, 0x3d | 0x3f)
}

/// Why a processor left the order of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExceptionKind {
    /// An error of the hardware.
    MachineCheck,
    /// Another processor's interrupt.
    ProcessorInterrupt,
    /// The interval timer's interrupt.
    ClockInterrupt,
    /// A device's interrupt.
    DeviceInterrupt,
    /// A page that is not there, or that may not be accessed so.
    PageFault,
    /// An access to an unaligned address.
    UnalignedAccess,
    /// An instruction that the processor does not have, or that the mode does not allow.
    IllegalInstruction,
    /// An arithmetic trap.
    Arithmetic,
    /// A floating-point instruction, while these are disabled.
    FloatDisabled,
    /// Another reason.
    Other,
}

impl ExceptionKind {
    /// All, by their numbers in marks.
    pub const ALL: [ExceptionKind; 10] = [
        ExceptionKind::Other,
        ExceptionKind::MachineCheck,
        ExceptionKind::ProcessorInterrupt,
        ExceptionKind::ClockInterrupt,
        ExceptionKind::DeviceInterrupt,
        ExceptionKind::PageFault,
        ExceptionKind::UnalignedAccess,
        ExceptionKind::IllegalInstruction,
        ExceptionKind::Arithmetic,
        ExceptionKind::FloatDisabled,
    ];

    fn number(self) -> u64 {
        ExceptionKind::ALL.iter().position(|&one| one == self).unwrap_or(0) as u64
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            ExceptionKind::MachineCheck => "machine check",
            ExceptionKind::ProcessorInterrupt => "interprocessor interrupt",
            ExceptionKind::ClockInterrupt => "clock interrupt",
            ExceptionKind::DeviceInterrupt => "device interrupt",
            ExceptionKind::PageFault => "page fault",
            ExceptionKind::UnalignedAccess => "unaligned access",
            ExceptionKind::IllegalInstruction => "illegal instruction",
            ExceptionKind::Arithmetic => "arithmetic trap",
            ExceptionKind::FloatDisabled => "floating-point disabled",
            ExceptionKind::Other => "other exception",
        }
    }
}

/// The word of an accessed address: the address without its highest bit. A kernel's addresses have both highest bits set,
/// a program's have neither.
#[inline(always)]
pub fn word_of_address(address: u64) -> u64 {
    address & !HIGHEST
}

/// The address in a word: bit 62 is copied to bit 63.
#[inline(always)]
pub fn address_of_word(word: u64) -> u64 {
    ((word << 1) as i64 >> 1) as u64
}

/// The bytes of a name in an event.
pub const NAME_BYTES: usize = 7;

/// An event of the heap. An allocation is three events: caller, size, block. A block that was allocated before has its name
/// instead of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// An allocation function was called; its return address.
    Caller(u64),
    /// The next bytes of the name of a block, [`NAME_BYTES`], the lowest first; zeros follow its end.
    Name(u64),
    /// The number of bytes requested.
    Size(u64),
    /// The address of the allocated block; 0 if the allocation failed, so that the block freed last is still
    /// allocated.
    Block(u64),
    /// The block at this address was freed or moved.
    Freed(u64),
    /// The process is a copy, made by fork, of the process with this number.
    Copied(u32),
    /// Another program replaced this one and has an empty heap.
    Gone,
}

/// A change of what is mapped in an address space. A mapped range is four events: start, size, object, offset; what was
/// mapped there before is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// The first address of the range.
    Start(u64),
    /// Its size in bytes.
    Size(u64),
    /// Stores to the range are seen by all processes that map the object with this number: a file, a segment of System V
    /// shared memory, or anonymous memory that forked processes share. Numbers begin with 1, and are the same in all
    /// processes of a recording.
    Shared(u32),
    /// The range has the contents of this object until it is stored to: the process's pages are its own from their first
    /// store on. Memory that is initially zero, or not mapped at all, has the number 0.
    Private(u32),
    /// The offset in the object of the first byte of the range.
    Offset(u64),
    /// The process is a copy, made by fork, of the process with this number, and has its pages until one of them stores to
    /// them.
    Copied(u32),
    /// Another program replaces this one in an empty address space.
    Gone,
}

/// The largest number that a mark can hold.
pub const LARGEST: u64 = (1 << BEHIND_KIND) - 1;
const BEHIND_KIND: u32 = 56;
const HIGHEST: u64 = 1 << 63;

impl Event {
    /// Decodes a word: an address has a clear highest bit, a block is the complement of its number, and a mark has
    /// its kind in bits 56 to 62.
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

    /// Encodes the event.
    #[inline(always)]
    pub fn word(self) -> u64 {
        match self {
            Event::Block(id) => !u64::from(id),
            Event::Access(address) => address,
            Event::Mark(mark) => mark.word(),
        }
    }
}

impl Heap {
    /// The events of a block with a name that was allocated before.
    pub fn named_block(name: &str, address: u64, size: u64) -> Vec<Heap> {
        let piece = |bytes: &[u8]| {
            let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            Heap::Name(number)
        };
        let name = name.as_bytes().chunks(NAME_BYTES).map(piece);
        name.chain([Heap::Size(size.min(LARGEST)), Heap::Block(address)]).collect()
    }
}

impl Mark {
    /// Whether registers have other contents after it: by a signal, by another program, or because PALcode has registers of
    /// its own.
    pub fn changes_registers(self) -> bool {
        use Mark::{Discontinuity, Exception, Gap, PalCall, PalReturn};
        matches!(self, Gap | Discontinuity | Exception(_) | PalCall(_) | PalReturn)
    }

    /// Whether it is a part of an entry to the kernel, or of the return from it.
    pub fn enters_or_leaves_kernel(self) -> bool {
        matches!(self, Mark::SystemCall(_) | Mark::Exception(_) | Mark::PalCall(_) | Mark::PalReturn)
    }

    #[cold]
    fn new(word: u64) -> Mark {
        let payload = word & LARGEST;
        match word >> BEHIND_KIND & 0x7f {
            0 => Mark::Order(payload),
            1 => Mark::Gap,
            2 => Mark::Discontinuity,
            3 => Mark::SystemCall(payload as u32),
            4 => Mark::UnitBegins(payload),
            5 => Mark::UnitEnds(payload),
            6 => Mark::UnitLeft(payload),
            28 => Mark::UnitCut(payload),
            7 => Mark::Heap(Heap::Caller(payload)),
            8 => Mark::Heap(Heap::Size(payload)),
            9 => Mark::Heap(Heap::Block(payload)),
            10 => Mark::Heap(Heap::Freed(payload)),
            11 => Mark::Heap(Heap::Copied(payload as u32)),
            13 => Mark::Exception(*ExceptionKind::ALL.get(payload as usize).unwrap_or(&ExceptionKind::Other)),
            14 => Mark::PalCall(payload as u32),
            15 => Mark::PalReturn,
            16 => Mark::ObjectEntered(payload as u32),
            17 => Mark::ObjectLeft(payload as u32),
            18 => Mark::Mapping(Mapping::Start(payload)),
            19 => Mark::Mapping(Mapping::Size(payload)),
            20 => Mark::Mapping(Mapping::Shared(payload as u32)),
            21 => Mark::Mapping(Mapping::Private(payload as u32)),
            22 => Mark::Mapping(Mapping::Offset(payload)),
            23 => Mark::Mapping(Mapping::Copied(payload as u32)),
            24 => Mark::Mapping(Mapping::Gone),
            25 => Mark::LockAcquired(payload as u32),
            26 => Mark::LockReleased(payload as u32),
            27 => Mark::LockAwaited(payload as u32),
            29 => Mark::Heap(Heap::Name(payload)),
            _ => Mark::Heap(Heap::Gone),
        }
    }

    fn word(self) -> u64 {
        let (kind, payload) = match self {
            Mark::Order(number) => (0, number),
            Mark::Gap => (1, 0),
            Mark::Discontinuity => (2, 0),
            Mark::SystemCall(number) => (3, u64::from(number)),
            Mark::UnitBegins(number) => (4, number),
            Mark::UnitEnds(number) => (5, number),
            Mark::UnitLeft(number) => (6, number),
            Mark::UnitCut(number) => (28, number),
            Mark::Heap(Heap::Caller(address)) => (7, address),
            Mark::Heap(Heap::Size(bytes)) => (8, bytes),
            Mark::Heap(Heap::Block(address)) => (9, address),
            Mark::Heap(Heap::Freed(address)) => (10, address),
            Mark::Heap(Heap::Copied(process)) => (11, u64::from(process)),
            Mark::Heap(Heap::Gone) => (12, 0),
            Mark::Heap(Heap::Name(bytes)) => (29, bytes),
            Mark::Exception(exception) => (13, exception.number()),
            Mark::PalCall(function) => (14, u64::from(function)),
            Mark::PalReturn => (15, 0),
            Mark::ObjectEntered(number) => (16, number.into()),
            Mark::ObjectLeft(number) => (17, number.into()),
            Mark::Mapping(Mapping::Start(address)) => (18, address),
            Mark::Mapping(Mapping::Size(bytes)) => (19, bytes),
            Mark::Mapping(Mapping::Shared(object)) => (20, object.into()),
            Mark::Mapping(Mapping::Private(object)) => (21, object.into()),
            Mark::Mapping(Mapping::Offset(bytes)) => (22, bytes),
            Mark::Mapping(Mapping::Copied(process)) => (23, process.into()),
            Mark::Mapping(Mapping::Gone) => (24, 0),
            Mark::LockAcquired(number) => (25, number.into()),
            Mark::LockReleased(number) => (26, number.into()),
            Mark::LockAwaited(number) => (27, number.into()),
        };
        HIGHEST | kind << BEHIND_KIND | payload & LARGEST
    }
}

/// The numbers of words in a block's record, and of its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Number of instructions.
    pub instructions: u32,
    /// Number of accesses to memory.
    pub accesses: u32,
    /// Number of values; 0 if values are not recorded.
    pub values: u32,
}

impl Shape {
    /// The shape of a block with these instruction words.
    pub fn new(set: &dyn InstructionSet, words: &[u32], has_values: bool) -> Shape {
        let mut shape = Shape { instructions: words.len() as u32, ..Shape::default() };
        for summary in words.iter().filter_map(|&word| set.summary(word)) {
            shape.accesses += summary.accesses().count() as u32;
            shape.values += u32::from(has_values && summary.value.is_some());
        }
        shape
    }
}

impl Shape {
    /// Number of words of the record, including the block's own.
    pub fn words(self) -> u32 {
        1 + self.accesses + self.values
    }
}

/// One execution of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution<'a> {
    /// The block.
    pub block: BlockId,
    /// The effective addresses of its accesses, in order, as words ([`address_of_word`]).
    pub addresses: &'a [u64],
    /// The values that its instructions wrote, stored or tested, in order; empty if values were not
    /// recorded. Floating-point values are in register format.
    pub values: &'a [u64],
}

/// A decoded record or mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A block was executed.
    Execution(Execution<'a>),
    /// An event other than an execution.
    Mark(Mark),
}

/// Iterates over records. Ends early if the words do not match the blocks' shapes.
pub struct Entries<'a> {
    words: &'a [u64],
    shapes: &'a [Shape],
}

impl<'a> Entries<'a> {
    /// Decodes `words`. `shapes` are the blocks' shapes, by number.
    pub fn new(words: &'a [u64], shapes: &'a [Shape]) -> Entries<'a> {
        Entries { words, shapes }
    }

    /// The words that have not been decoded.
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
