//! Memory for compiled code, and the tables that find it by guest address.

use std::collections::HashMap;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::assembler::{Assembler, Operand, RAX, Size};
use guest::counters::{self, Space};

/// Size of the arena in bytes, so that all code is within reach of relative jumps.
pub(crate) const ARENA_BYTES: usize = 256 << 20;

/// A contiguous range of executable memory: code from the beginning, link slots from the end. The counters follow it.
pub(crate) struct Arena {
    space: Arc<Space>,
    used: usize,
    /// Offset of the link slots.
    cells: usize,
}

impl Arena {
    pub(crate) fn new() -> Option<Arena> {
        let bytes = ARENA_BYTES + counters::MOST * size_of::<u64>();
        let space = Space::new(bytes, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        Some(Arena { space: Arc::new(space), used: 0, cells: ARENA_BYTES })
    }

    pub(crate) fn start(&self) -> u64 {
        self.space.base().as_ptr() as u64
    }

    /// The address of the counters, and the owner of their memory.
    pub(crate) fn counters(&self) -> (NonNull<u64>, &Arc<Space>) {
        // SAFETY: there is room for them after the code.
        (unsafe { self.space.base().add(ARENA_BYTES) }.cast(), &self.space)
    }

    /// The address for the next code.
    pub(crate) fn next(&self) -> u64 {
        self.start() + self.used as u64
    }

    /// Copies code to the arena; None if there is no room.
    pub(crate) fn add(&mut self, code: &[u8]) -> Option<u64> {
        let (start, end) = (self.used, self.used.checked_add(code.len())?);
        if end > self.cells {
            return None;
        }
        self.write(start, code);
        self.used = end.next_multiple_of(16);
        Some(self.start() + start as u64)
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        // SAFETY: the callers' ranges lie in the arena, and nothing runs there yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.space.base().as_ptr().add(at), bytes.len()) };
    }

    /// Discards everything but the first `kept` bytes.
    fn clear(&mut self, kept: usize) {
        (self.used, self.cells) = (kept, ARENA_BYTES);
    }
}

/// A link slot, in the arena: compiled code makes transfers to a fixed guest address through it.
#[derive(Clone, Copy)]
#[repr(C)]
struct LinkSlot {
    /// The address to call: the compiled code, or `unresolved` if there is none.
    code: u64,
    /// The guest address.
    address: u64,
    /// A stub that loads the guest address into rax and jumps to the stub for missing code.
    unresolved: [u8; 16],
}

/// Offset of the guest address in a link slot.
pub(crate) const CELL_ADDRESS: u64 = 8;

/// An entry of the table for computed jumps.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    address: u64,
    code: u64,
}

/// Number of entries of the table, which is indexed by the low bits of a guest address.
const ENTRIES: usize = 1 << 18;
const TABLE_BYTES: usize = ENTRIES * size_of::<Entry>();

/// The compiled code, by guest address of its entries.
pub(crate) struct Entries {
    pub(crate) arena: Arena,
    /// Size in bytes of the stubs, which are never discarded.
    kept: usize,
    /// The address of the stub for missing code.
    missing: u64,
    /// The link slots by guest address.
    cells: HashMap<u64, u64>,
    table: Space,
}

impl Entries {
    /// The bits of a guest address that select an entry; multiplied by 4 they are its offset.
    pub(crate) const MASK: u32 = (ENTRIES as u32 - 1) << 2;

    pub(crate) fn new() -> Option<Entries> {
        let arena = Arena::new()?;
        let table = Space::new(TABLE_BYTES, libc::PROT_READ | libc::PROT_WRITE)?;
        Some(Entries { arena, kept: 0, missing: 0, cells: HashMap::new(), table })
    }

    /// The host address of the table.
    pub(crate) fn table(&self) -> u64 {
        self.entry(0) as u64
    }

    fn entry(&self, index: usize) -> *mut Entry {
        debug_assert!(index < ENTRIES);
        // SAFETY: the entry lies in the table.
        unsafe { self.table.base().cast::<Entry>().as_ptr().add(index) }
    }

    /// Keeps what is in the arena now; `missing` is the address of the stub for missing code.
    pub(crate) fn keep(&mut self, missing: u64) {
        (self.kept, self.missing) = (self.arena.used, missing);
        self.no_address_zero();
    }

    /// Free entries are zero, and would be found by address 0: gives the one that address 0 selects another address.
    fn no_address_zero(&mut self) {
        // SAFETY: the table has entries.
        unsafe { self.entry(0).write(Entry { address: 1, code: self.missing }) };
    }

    /// The host address of the link slot of a guest address. None if there is no room.
    pub(crate) fn cell(&mut self, address: u64) -> Option<u64> {
        if let Some(&cell) = self.cells.get(&address) {
            return Some(cell);
        }
        let at = self.arena.cells.checked_sub(size_of::<LinkSlot>()).filter(|&at| at >= self.arena.used)?;
        let place = self.arena.start() + at as u64;
        let code = place + std::mem::offset_of!(LinkSlot, unresolved) as u64;
        let mut unresolved = Assembler::new(code);
        unresolved.load(Size::Quad, RAX, Operand::Near(place + CELL_ADDRESS));
        unresolved.jump_to(self.missing);
        let mut bytes = [0; size_of::<LinkSlot>()];
        bytes[..8].copy_from_slice(&code.to_le_bytes());
        bytes[8..16].copy_from_slice(&address.to_le_bytes());
        let unresolved = unresolved.finish().bytes;
        bytes[16..16 + unresolved.len()].copy_from_slice(&unresolved);
        self.arena.write(at, &bytes);
        self.arena.cells = at;
        self.cells.insert(address, place);
        Some(place)
    }

    /// Sets the code of a guest address.
    pub(crate) fn set(&mut self, address: u64, code: u64) {
        self.find_by_register(address, code);
        if let Some(cell) = self.cell(address) {
            // SAFETY: link slots lie in the arena. Only this guest thread's code reads them.
            unsafe { (cell as *mut u64).write(code) };
        }
    }

    /// Enters the code of a guest address into the table for computed jumps.
    pub(crate) fn find_by_register(&mut self, address: u64, code: u64) {
        let index = (address as u32 & Self::MASK) >> 2;
        // SAFETY: the mask keeps the index below `ENTRIES`.
        unsafe { self.entry(index as usize).write(Entry { address, code }) };
    }

    /// Discards all code but what is kept.
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.arena.clear(self.kept);
        // SAFETY: these pages are the table's own, and are zero afterwards.
        unsafe { libc::madvise(self.entry(0).cast(), TABLE_BYTES, libc::MADV_DONTNEED) };
        self.no_address_zero();
    }
}
