//! The hit filter: the part of a cache model's state that compiled code accesses directly, so that a hit needs no
//! call.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Words of a cache line of the host.
const LINE: usize = 8;

/// Words at a fixed address.
#[derive(Debug)]
struct FixedMemory {
    start: NonNull<u64>,
    layout: Layout,
}

// SAFETY: it owns plain memory. `Words::address` states who may access it.
unsafe impl Send for FixedMemory {}
// SAFETY: as above.
unsafe impl Sync for FixedMemory {}

impl Drop for FixedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no `Words` refers to it any more.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) };
    }
}

/// An array of words at a fixed address, zero at first. Compiled code may access it while no Rust code does.
#[derive(Debug)]
pub struct Words {
    first: NonNull<u64>,
    count: usize,
    memory: Arc<FixedMemory>,
}

// SAFETY: a `Words` is the only owner of its words, like a `Box`.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// An array of this length.
    pub fn new(count: usize) -> Words {
        let [words] = Words::together([count]);
        words
    }

    /// Arrays of these lengths, adjacent in memory.
    ///
    /// # Panics
    /// If their size in bytes overflows.
    pub fn together<const N: usize>(counts: [usize; N]) -> [Words; N] {
        // One cache line more for alignment. Requesting the alignment from the allocator would make it write the
        // zeros, so that unused words would take memory.
        let all = counts.iter().sum::<usize>() + LINE - 1;
        let layout = Layout::array::<u64>(all).expect("few words");
        // SAFETY: the layout has at least one word.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<u64>()) else {
            handle_alloc_error(layout)
        };
        let memory = Arc::new(FixedMemory { start, layout });
        let before = start.align_offset(LINE * size_of::<u64>());
        assert!(before < LINE, "words can be at the beginning of a line");
        // SAFETY: the offset is less than the words allocated in addition to the sum.
        let mut next = unsafe { start.add(before) };
        counts.map(|count| {
            let words = Words { first: next, count, memory: memory.clone() };
            // SAFETY: the sum of all is what was allocated.
            next = unsafe { next.add(count) };
            words
        })
    }

    /// The address of the first word. Code that accesses words through it must hold a [`Keep`] and ensure that no
    /// reference to the words exists at the same time.
    pub fn address(&self) -> *mut u64 {
        self.first.as_ptr()
    }

    /// Returns a handle that keeps the memory allocated.
    pub fn keep(&self) -> Keep {
        Keep { _memory: self.memory.clone() }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: arrays do not overlap and are initialised; code that accesses the words by address does not run
        // now.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl DerefMut for Words {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and this is the piece's only owner.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.count) }
    }
}

/// [`Words`] whose length is a constant.
#[derive(Debug)]
pub struct WordArray<const N: usize>(Words);

impl<const N: usize> From<Words> for WordArray<N> {
    /// # Panics
    /// If the length is not `N`.
    fn from(words: Words) -> WordArray<N> {
        assert_eq!(words.len(), N);
        WordArray(words)
    }
}

impl<const N: usize> WordArray<N> {
    /// As [`Words::address`].
    pub fn address(&self) -> *mut u64 {
        self.0.address()
    }
}

impl<const N: usize> Deref for WordArray<N> {
    type Target = [u64; N];

    #[inline(always)]
    fn deref(&self) -> &[u64; N] {
        // SAFETY: the length is `N`; otherwise as for `Words`.
        unsafe { self.0.first.cast().as_ref() }
    }
}

impl<const N: usize> DerefMut for WordArray<N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64; N] {
        // SAFETY: as above.
        unsafe { self.0.first.cast().as_mut() }
    }
}

/// Keeps the memory of [`Words`] allocated.
#[derive(Clone, Debug)]
pub struct Keep {
    _memory: Arc<FixedMemory>,
}

/// The part of a cache model's state that compiled code accesses, by address.
///
/// An instruction fetch or a data access is **filtered** if its line is in the filter. Compiled code then stores the
/// time of the access to the line's slot: the word at [`FilterTable::now`] plus the number of the access in its
/// block, from 1. The accesses of a block are numbered in program order: the first instruction, and every instruction
/// that begins a new line, makes a fetch; each load and store makes an access. Compiled code reports other accesses by
/// [`FilterTable::on_unfiltered`], which may advance the time. At the end of the block the number of its accesses is
/// added to the time.
#[derive(Clone, Copy, Debug)]
pub struct FilterTable {
    /// A buffer of [`HitFilter::ROOM`] words for records that have not been reported. The current block's record is
    /// at its beginning.
    pub records: *mut u64,
    /// The word that holds the time.
    pub now: *mut u64,
    /// The filter of instruction lines.
    pub code: FilterSide,
    /// The filter of data lines.
    pub data: FilterSide,
    /// Dirty bits: a store sets the lowest bit of the word of its line's slot. None if stores are treated as loads.
    pub dirty: Option<*mut u64>,
    /// Reports an access that was not filtered. The arguments are the contents of the word at `consumer` and an
    /// [`UnfilteredAccess`].
    ///
    /// # Safety
    /// All records of earlier executions must have been reported, and the block must be defined. No other code may
    /// use the consumer at the same time.
    pub on_unfiltered: unsafe extern "C" fn(consumer: *mut u8, access: u64),
    /// The word that holds the consumer's address. It may change with every report to the consumer.
    pub consumer: *mut u64,
}

/// A [`FilterTable`] whose addresses are valid; a consumer lends it to compiled code.
#[derive(Clone, Debug)]
pub struct HitFilter {
    table: FilterTable,
    _keep: Keep,
}

impl HitFilter {
    /// Maximum number of lines of a side in the filter: a power of two.
    pub const LINES: usize = 4096;
    /// Maximum number of slots of a side.
    pub const SLOTS: usize = 1 << (u64::BITS - HitFilter::SLOT_SHIFT);
    /// Number of low bits of an entry that hold the line's number; the bits above hold its slot.
    pub const SLOT_SHIFT: u32 = 50;
    /// Number of words for records.
    pub const ROOM: usize = 4 << 10;

    /// Makes a filter of a table.
    ///
    /// # Safety
    /// All addresses of the table must point into the memory that `keep` keeps allocated, to arrays of the lengths
    /// stated at the table's fields. While compiled code uses the filter or a clone of it, only `on_unfiltered` and
    /// the consumer's methods may access those words; and all of them must be used by one thread at a time.
    pub unsafe fn new(table: FilterTable, keep: Keep) -> HitFilter {
        HitFilter { table, _keep: keep }
    }
}

impl Deref for HitFilter {
    type Target = FilterTable;

    fn deref(&self) -> &FilterTable {
        &self.table
    }
}

/// An access that missed the filter. Its address is in the current record: in the access's word, or in the first word
/// for an instruction fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfilteredAccess {
    /// The instruction's number: [`Consumer::first_instruction`](crate::Consumer::first_instruction).
    pub instruction: u32,
    /// The access's number in its block, from 1.
    pub number: u16,
    /// The index of the record's word that holds the address.
    pub index: u16,
    /// For a data access, its size in bytes minus 1: 0, 1, 3 or 7.
    pub more: u8,
    /// Whether the access is a store.
    pub is_store: bool,
}

impl UnfilteredAccess {
    /// Encodes the access as a word.
    pub fn word(self) -> u64 {
        let UnfilteredAccess { instruction, number, index, more, is_store } = self;
        u64::from(instruction) << 32
            | u64::from(number) << 16
            | u64::from(index) << 4
            | u64::from(is_store) << 3
            | u64::from(more)
    }

    /// Decodes a word.
    #[inline(always)]
    pub fn new(word: u64) -> UnfilteredAccess {
        UnfilteredAccess {
            instruction: (word >> 32) as u32,
            number: (word >> 16) as u16,
            index: (word as u16) >> 4,
            more: word as u8 & 7,
            is_store: word & 8 != 0,
        }
    }
}

/// The filter of instruction lines or of data lines.
#[derive(Clone, Copy, Debug)]
pub struct FilterSide {
    /// Shift from an address to its line number; at least 4.
    pub line_shift: u32,
    /// [`HitFilter::LINES`] entries, indexed by the low bits of a line number. An entry holds the other bits of the
    /// number and, from bit [`HitFilter::SLOT_SHIFT`] on, the line's slot.
    pub entries: *mut u64,
    /// By slot, the time of the line's last use.
    pub times: *mut u64,
}

// SAFETY: only one thread at a time uses the addresses; see `HitFilter::new`.
unsafe impl Send for HitFilter {}
// SAFETY: as above.
unsafe impl Sync for HitFilter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_adjacent_and_disjoint() {
        let [mut a, mut b, none] = Words::together([3, 2, 0]);
        a.fill(1);
        b.fill(2);
        assert_eq!((&a[..], &b[..], &none[..]), (&[1, 1, 1][..], &[2, 2][..], &[][..]));
        assert_eq!(b.address() as usize - a.address() as usize, 24);
        assert_eq!(a.address() as usize % 64, 0);
        let (keep, address) = (b.keep(), b.address());
        let b: WordArray<2> = b.into();
        assert_eq!((*b, b.address()), ([2, 2], address));
        drop((a, b));
        // SAFETY: it is kept allocated, and no reference to it exists.
        assert_eq!(unsafe { address.read() }, 2);
        drop(keep);
    }

    #[test]
    fn unfiltered_accesses_are_words() {
        for (instruction, number, index) in [(0, 1, 0), (u32::MAX, u16::MAX, 0xfff), (7, 2, 1)] {
            for (more, is_store) in [(0, false), (7, true)] {
                let access = UnfilteredAccess { instruction, number, index, more, is_store };
                assert_eq!(UnfilteredAccess::new(access.word()), access);
            }
        }
    }
}
