//! Records of executed blocks and accesses, for observers. The record of a block is a word for the block and
//! one for each access to memory, in order, and perhaps one for each value: see [`events::record`]. The interpreter and
//! compiled code write them alike; the record of the block that runs is where [`HostSide`](crate::HostSide) says.

use events::HitFilter;
use events::record::{Event, Register};

use crate::block::{self, DecodedBlock};
use crate::guest::Guest;

/// The size of a thread's buffer in words: many records, but small enough for the host's caches.
const WORDS: usize = 16 << 10;
/// Words in the longest record: a block, and an access and a value by each instruction.
const MAX_RECORD_WORDS: usize = 1 + 2 * block::MAX_BLOCK_INSTRUCTIONS;

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
    pub fn attach<G: Guest>(&mut self, guest: &mut G) {
        let (first, words) = self.room();
        // SAFETY: the end is within the buffer, and the longest record has room behind it. The buffer is the thread's own, or
        // lent to it.
        unsafe { guest.host().set_records(first, first.add(words - MAX_RECORD_WORDS)) };
    }

    /// From now on they are written next to the hit filter, if there is one; no record waits.
    pub fn lend<G: Guest>(&mut self, filter: Option<HitFilter>, guest: &mut G) {
        self.lent = filter;
        self.attach(guest);
    }

    fn room(&mut self) -> (*mut u64, usize) {
        const { assert!(HitFilter::ROOM > MAX_RECORD_WORDS && WORDS > MAX_RECORD_WORDS) };
        match &self.lent {
            Some(hit_filter) => (hit_filter.records, HitFilter::ROOM),
            None => (self.own.as_mut_ptr(), self.own.len()),
        }
    }

    /// The words written so far; the thread begins anew.
    pub fn take<G: Guest>(&mut self, guest: &mut G) -> &[u64] {
        let (first, _) = self.room();
        // SAFETY: `attach` set the pointer into this buffer, and records advance it up to `records_end` and
        // the longest record at most.
        let written = unsafe { guest.host().record().offset_from(first) };
        self.attach(guest);
        // SAFETY: this number of words was written. A lent buffer is this thread's as long as it holds the filter.
        unsafe { std::slice::from_raw_parts(first, written as usize) }
    }
}

/// Whether the buffer must be taken before a block is executed.
#[inline(always)]
pub fn is_full<G: Guest>(guest: &mut G) -> bool {
    guest.host().is_full()
}

/// Writes a word of the running block's record: 0 is the block's own.
///
/// # Safety
/// The buffer must not be full, nor `index` greater than the number of the block's accesses.
#[inline(always)]
pub unsafe fn write<G: Guest>(guest: &mut G, index: usize, event: Event) {
    // SAFETY: the caller's promise.
    unsafe { guest.host().record().add(index).write(event.word()) };
}

/// Writes a value of the running block's record, by its number.
///
/// # Safety
/// The buffer must not be full, and the block must have a value of this number.
pub unsafe fn write_value<G: Guest>(guest: &mut G, block: &DecodedBlock<G>, number: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { guest.host().record().add(1 + block.accesses as usize + number).write(value) };
}

/// The block was left early: its values follow the accesses of its beginning, which is a block of its own.
///
/// # Safety
/// Both records must have been written, as far as the beginning goes.
pub unsafe fn move_values<G: Guest>(guest: &mut G, block: &DecodedBlock<G>, prefix: &DecodedBlock<G>) {
    // SAFETY: the caller's promise; the words are within the longest record.
    unsafe {
        let values = guest.host().record().add(1 + block.accesses as usize);
        values.copy_to(guest.host().record().add(1 + prefix.accesses as usize), prefix.values().count());
    }
}

/// The block was executed to its end.
///
/// # Safety
/// Its record must have been written.
#[inline(always)]
pub unsafe fn end<G: Guest>(guest: &mut G, block: &DecodedBlock<G>, has_values: bool) {
    let values = if has_values { block.values().count() } else { 0 };
    let host = guest.host();
    // SAFETY: the caller's promise.
    unsafe { host.set_record(host.record().add(1 + block.accesses as usize + values)) };
}

/// Where the values of a block's instructions are: of each the register, if it has one.
#[derive(Debug)]
pub struct Values {
    registers: Box<[Option<Register>]>,
    count: usize,
}

impl Values {
    /// Of these instructions.
    pub fn new<G: Guest>(words: &[u32]) -> Values {
        let value = |&word: &u32| G::INSTRUCTION_SET.summary(word).and_then(|summary| summary.value);
        let registers: Box<[_]> = words.iter().map(value).collect();
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
