//! The hit filter: state of a cache model that compiled code uses itself, so that accesses which hit cost no call.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Words of a line of the host's caches.
const LINE: usize = 8;

/// Memory of words at a fixed place.
#[derive(Debug)]
struct Memory {
    start: NonNull<u64>,
    layout: Layout,
}

// SAFETY: it is memory, whoever uses it; who may do so when is said where its address is taken.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; all pieces are gone.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) };
    }
}

/// Words, at first zero, that stay where they are, and that compiled code may read and write at times when nobody
/// else does.
#[derive(Debug)]
pub struct Words {
    first: NonNull<u64>,
    count: usize,
    memory: Arc<Memory>,
}

// SAFETY: the words are this value's alone, like those of a box.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// So many.
    pub fn new(count: usize) -> Words {
        let [words] = Words::together([count]);
        words
    }

    /// Pieces of so many words, one behind the other in memory.
    ///
    /// # Panics
    /// If their bytes cannot be counted.
    pub fn together<const N: usize>(counts: [usize; N]) -> [Words; N] {
        // Room to begin with a line of the host's caches. If that were asked for, all would be written to make it zero, and
        // what is never used would cost memory.
        let all = counts.iter().sum::<usize>() + LINE - 1;
        let layout = Layout::array::<u64>(all).expect("few words");
        // SAFETY: the layout has at least one word.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<u64>()) else {
            handle_alloc_error(layout)
        };
        let memory = Arc::new(Memory { start, layout });
        let before = start.align_offset(LINE * size_of::<u64>());
        assert!(before < LINE, "words can be at the beginning of a line");
        // SAFETY: that many are there beside the sum of all.
        let mut next = unsafe { start.add(before) };
        counts.map(|count| {
            let words = Words { first: next, count, memory: memory.clone() };
            // SAFETY: the sum of all is what was allocated.
            next = unsafe { next.add(count) };
            words
        })
    }

    /// Where they are. Who uses it must hold [`Keep`], and see to it that nobody has a reference to the words
    /// meanwhile.
    pub fn address(&self) -> *mut u64 {
        self.first.as_ptr()
    }

    /// Keeps them in their place.
    pub fn keep(&self) -> Keep {
        Keep { _memory: self.memory.clone() }
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: pieces do not overlap, and are initialised; code that has their address does not run now.
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

/// [`Words`] whose number is always the same.
#[derive(Debug)]
pub struct Array<const N: usize>(Words);

impl<const N: usize> From<Words> for Array<N> {
    /// # Panics
    /// If there are not so many.
    fn from(words: Words) -> Array<N> {
        assert_eq!(words.len(), N);
        Array(words)
    }
}

impl<const N: usize> Array<N> {
    /// As [`Words::address`].
    pub fn address(&self) -> *mut u64 {
        self.0.address()
    }
}

impl<const N: usize> Deref for Array<N> {
    type Target = [u64; N];

    #[inline(always)]
    fn deref(&self) -> &[u64; N] {
        // SAFETY: there are so many, and as for all words.
        unsafe { self.0.first.cast().as_ref() }
    }
}

impl<const N: usize> DerefMut for Array<N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64; N] {
        // SAFETY: as above.
        unsafe { self.0.first.cast().as_mut() }
    }
}

/// Keeps [`Words`] where they are.
#[derive(Clone, Debug)]
pub struct Keep {
    _memory: Arc<Memory>,
}

/// The addresses of a cache model's state that compiled code reads and writes, so that an access which hits costs no call.
///
/// A fetch of a line of instructions, or an access to data, is **filtered** if the filter holds its line. Compiled code
/// then stores the time of the access: the word at [`FilterTable::now`] plus the number of the access in its block, from 1.
/// The accesses of a block are numbered in program order: its first instruction fetches a line, and so does each
/// instruction with which another line begins; each load and store is one. Compiled code reports every other access by
/// [`FilterTable::on_unfiltered`], which may advance the time. At the end of the block the number of its accesses is
/// added to the time.
#[derive(Clone, Copy, Debug)]
pub struct FilterTable {
    /// Room for records that have not been reported: [`HitFilter::ROOM`] words. The record of the running block is at
    /// the beginning.
    pub records: *mut u64,
    /// The time.
    pub now: *mut u64,
    /// Lines of instructions.
    pub code: FilterSide,
    /// Lines of data.
    pub data: FilterSide,
    /// By slot of a line of data, words of which a store sets the lowest bit beside storing the time: the dirty bits.
    /// None if a store does what a load does.
    pub dirty: Option<*mut u64>,
    /// Reports an access that was not filtered: takes the address that is in the word at `consumer`, and an
    /// [`UnfilteredAccess`].
    ///
    /// # Safety
    /// All records of what was executed before must have been reported, and the block must be defined. No other code may
    /// be using the consumer.
    pub on_unfiltered: unsafe extern "C" fn(consumer: *mut u8, access: u64),
    /// The word with the consumer's address. It changes when anything is reported to the consumer.
    pub consumer: *mut u64,
}

/// The filter that a consumer lends to compiled code: a [`FilterTable`] whose addresses can be relied on.
#[derive(Clone, Debug)]
pub struct HitFilter {
    table: FilterTable,
    _keep: Keep,
}

impl HitFilter {
    /// How many lines of a side the filter may hold: a power of two.
    pub const LINES: usize = 4096;
    /// Slots of lines that the filter may hold.
    pub const SLOTS: usize = 1 << (u64::BITS - HitFilter::SLOT_SHIFT);
    /// Bits of an entry that are of its line's number.
    pub const SLOT_SHIFT: u32 = 50;
    /// Words for records.
    pub const ROOM: usize = 4 << 10;

    /// Makes a filter of a table.
    ///
    /// # Safety
    /// All addresses of the table must be of words in the memory that `keep` keeps, in arrays as long as the table's
    /// fields say. While the filter or a clone of it is in use by compiled code, nothing else may access those words
    /// but `on_unfiltered` and the consumer when it is told something; and both must be used by one thread at a time.
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

/// An access that the filter does not hold. Its address is in the block's record: in the word of the access, or in the
/// first word if instructions are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfilteredAccess {
    /// The instruction's number: [`Consumer::first_instruction`](crate::Consumer::first_instruction).
    pub instruction: u32,
    /// The access's number among those of its block, from 1.
    pub number: u16,
    /// The word of the record that has the address.
    pub index: u16,
    /// Of an access to data, the bytes behind the first: 0, 1, 3 or 7.
    pub more: u8,
    /// Whether data are written.
    pub is_store: bool,
}

impl UnfilteredAccess {
    /// As a word: the instruction, the number, the index, whether it is a store, and the bytes behind the first.
    pub fn word(self) -> u64 {
        let UnfilteredAccess { instruction, number, index, more, is_store } = self;
        u64::from(instruction) << 32
            | u64::from(number) << 16
            | u64::from(index) << 4
            | u64::from(is_store) << 3
            | u64::from(more)
    }

    /// From a word.
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

/// The lines of one side that the filter holds.
#[derive(Clone, Copy, Debug)]
pub struct FilterSide {
    /// From an address to its line's number: at least 4.
    pub line_shift: u32,
    /// [`HitFilter::LINES`] entries, found by the low bits of a line's number: an entry holds the other bits of the number,
    /// and the line's slot above them, from bit [`HitFilter::SLOT_SHIFT`] on.
    pub entries: *mut u64,
    /// By slot, when the line was last used.
    pub times: *mut u64,
}

// SAFETY: one thread at a time uses the addresses: `HitFilter::new`.
unsafe impl Send for HitFilter {}
// SAFETY: as above.
unsafe impl Sync for HitFilter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_together_and_apart() {
        let [mut a, mut b, none] = Words::together([3, 2, 0]);
        a.fill(1);
        b.fill(2);
        assert_eq!((&a[..], &b[..], &none[..]), (&[1, 1, 1][..], &[2, 2][..], &[][..]));
        assert_eq!(b.address() as usize - a.address() as usize, 24);
        assert_eq!(a.address() as usize % 64, 0);
        let (keep, address) = (b.keep(), b.address());
        let b: Array<2> = b.into();
        assert_eq!((*b, b.address()), ([2, 2], address));
        drop((a, b));
        // SAFETY: it is kept, and nobody else has it.
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
