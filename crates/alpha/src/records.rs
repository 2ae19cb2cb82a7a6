//! Records of what was executed, for observers of accesses. The record of a block is a word for the block and
//! one for each access to memory, in order, and perhaps one for each value: see [`events::record`]. The interpreter and compiled code write them alike;
//! the record of the block that runs is at [`HostSide::record`](super::cpu::HostSide).

use events::HitFilter;
use events::record::{Event, Register, value_register};

use crate::block::{self, Block};
use crate::cpu::Cpu;

/// Words in a thread's buffer: much more than one record, and little enough for the host's caches.
const WORDS: usize = 16 << 10;
/// Words in the longest record: a block, and an access and a value by each instruction.
const LONGEST: usize = 1 + 2 * block::LONGEST;

/// A thread's records until an observer takes them.
pub struct Records {
    own: Box<[u64]>,
    /// Where they are written instead.
    lent: Option<HitFilter>,
}

impl Default for Records {
    fn default() -> Records {
        Records { own: vec![0; WORDS].into_boxed_slice(), lent: None }
    }
}

impl Records {
    /// Lets a thread write its records here.
    pub fn attach(&mut self, cpu: &mut Cpu) {
        let (first, words) = self.place();
        cpu.host.record = first;
        // SAFETY: within the buffer.
        cpu.host.records_end = unsafe { first.add(words - LONGEST) };
    }

    /// From now on they are written next to the hit filter, if there is one; no record waits.
    pub fn lend(&mut self, place: Option<HitFilter>, cpu: &mut Cpu) {
        self.lent = place;
        self.attach(cpu);
    }

    fn place(&mut self) -> (*mut u64, usize) {
        const { assert!(HitFilter::ROOM > LONGEST && WORDS > LONGEST) };
        match &self.lent {
            Some(hit_filter) => (hit_filter.records, HitFilter::ROOM),
            None => (self.own.as_mut_ptr(), self.own.len()),
        }
    }

    /// What was written; the thread begins anew.
    pub fn take(&mut self, cpu: &mut Cpu) -> &[u64] {
        let (first, _) = self.place();
        // SAFETY: `attach` set the pointer into this buffer, and records advance it up to `records_end` and
        // the longest record at most.
        let written = unsafe { cpu.host.record.offset_from(first) };
        self.attach(cpu);
        // SAFETY: so much of it was written. A lent one is this thread's as long as it keeps it.
        unsafe { std::slice::from_raw_parts(first, written as usize) }
    }
}

/// Whether the buffer must be taken before a block is executed.
#[inline(always)]
pub fn is_full(cpu: &Cpu) -> bool {
    cpu.host.record > cpu.host.records_end
}

/// Writes a word of the running block's record: 0 is the block's own.
///
/// # Safety
/// The buffer must not be full, nor `index` greater than the number of the block's accesses.
#[inline(always)]
pub unsafe fn write(cpu: &mut Cpu, index: usize, event: Event) {
    // SAFETY: the caller's promise.
    unsafe { cpu.host.record.add(index).write(event.word()) };
}

/// Writes a value of the running block's record, by its number.
///
/// # Safety
/// The buffer must not be full, and the block must have so many values.
pub unsafe fn write_value(cpu: &mut Cpu, block: &Block, number: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { cpu.host.record.add(1 + block.accesses as usize + number).write(value) };
}

/// The block was left early: its values follow the accesses of its beginning, which is a block of its own.
///
/// # Safety
/// Both records must have been written, as far as the beginning goes.
pub unsafe fn cut_values(cpu: &mut Cpu, block: &Block, beginning: &Block) {
    // SAFETY: the caller's promise; the places are within the longest record.
    unsafe {
        let values = cpu.host.record.add(1 + block.accesses as usize);
        values.copy_to(cpu.host.record.add(1 + beginning.accesses as usize), beginning.values().count());
    }
}

/// The block was executed to its end.
///
/// # Safety
/// Its record must have been written.
#[inline(always)]
pub unsafe fn end(cpu: &mut Cpu, block: &Block, has_values: bool) {
    let values = if has_values { block.values().count() } else { 0 };
    // SAFETY: the caller's promise.
    cpu.host.record = unsafe { cpu.host.record.add(1 + block.accesses as usize + values) };
}

/// Where the values of a block's instructions are: of each the register, if it has one.
#[derive(Debug)]
pub struct Values {
    registers: Box<[Option<Register>]>,
    count: usize,
}

impl Values {
    /// Of these instructions.
    pub fn new(words: &[u32]) -> Values {
        let register = |&word| isa::decode(word).and_then(value_register);
        let registers: Box<[_]> = words.iter().map(register).collect();
        let count = registers.iter().flatten().count();
        Values { registers, count }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The register that the instruction at an index has its value in: before it, if it stores, or after it.
    pub fn register(&self, index: usize) -> Option<Register> {
        self.registers[index]
    }
}

/// What is in a register.
pub fn value(cpu: &Cpu, register: Register) -> u64 {
    match register {
        Register::Integer(number) => cpu.r[usize::from(number)],
        Register::Float(number) => cpu.f[usize::from(number)],
    }
}
