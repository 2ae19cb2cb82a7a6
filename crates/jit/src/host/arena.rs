//! Memory for compiled code, and the tables that find it by guest address.

use std::collections::HashMap;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::assembler::{Assembler, Operand, RAX, Size};
use alpha::counters::{self, Space};

/// Where compiled code may lie, in bytes: all of it within reach of all of it.
pub(crate) const ARENA_BYTES: usize = 256 << 20;

/// One contiguous piece of executable memory: code from the beginning, cells from the end. Behind it are the
/// counters.
pub(crate) struct Arena {
    space: Arc<Space>,
    used: usize,
    /// Where the cells begin.
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

    /// Where the counters are, and what keeps them there.
    pub(crate) fn counters(&self) -> (NonNull<u64>, &Arc<Space>) {
        // SAFETY: there is room for them behind the code.
        (unsafe { self.space.base().add(ARENA_BYTES) }.cast(), &self.space)
    }

    /// Where the next code will lie.
    pub(crate) fn next(&self) -> u64 {
        self.start() + self.used as u64
    }

    /// Copies code in; None if there is no room.
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

    /// Forgets what lies behind the first `kept` bytes.
    fn clear(&mut self, kept: usize) {
        (self.used, self.cells) = (kept, ARENA_BYTES);
    }
}

/// Where compiled code looks for other code: for transfers to a fixed address. In the arena.
#[derive(Clone, Copy)]
#[repr(C)]
struct Cell {
    /// What to call: the code, or `absent`.
    code: u64,
    /// The guest's address.
    address: u64,
    /// Loads the guest's address into rax and jumps to the stub for missing code.
    absent: [u8; 16],
}

/// The offset of a cell's guest address.
pub(crate) const CELL_ADDRESS: u64 = 8;

/// An entry of the table for transfers to where a register points.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    address: u64,
    code: u64,
}

/// Entries of the table, which a guest address's low bits select.
const ENTRIES: usize = 1 << 18;
const TABLE_BYTES: usize = ENTRIES * size_of::<Entry>();

/// Compiled code, and the places where it begins by guest address.
pub(crate) struct Entries {
    pub(crate) arena: Arena,
    /// Code to keep for ever, in bytes: the stubs.
    kept: usize,
    /// The stub for missing code.
    missing: u64,
    /// The cells by guest address.
    cells: HashMap<u64, u64>,
    table: Space,
}

impl Entries {
    /// The bits of a guest address that select an entry; times 4 they are its offset.
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
        // SAFETY: it lies in the table.
        unsafe { self.table.base().cast::<Entry>().as_ptr().add(index) }
    }

    /// What lies in the arena now is to stay, the stub for missing code at `missing` among it.
    pub(crate) fn keep(&mut self, missing: u64) {
        (self.kept, self.missing) = (self.arena.used, missing);
        self.no_address_zero();
    }

    /// The pages are zero: address 0 is what no free entry but the first is found by.
    fn no_address_zero(&mut self) {
        // SAFETY: the table has entries.
        unsafe { self.entry(0).write(Entry { address: 1, code: self.missing }) };
    }

    /// The host address of the cell for a guest address. None if there is no room.
    pub(crate) fn cell(&mut self, address: u64) -> Option<u64> {
        if let Some(&cell) = self.cells.get(&address) {
            return Some(cell);
        }
        let at = self.arena.cells.checked_sub(size_of::<Cell>()).filter(|&at| at >= self.arena.used)?;
        let place = self.arena.start() + at as u64;
        let code = place + std::mem::offset_of!(Cell, absent) as u64;
        let mut absent = Assembler::new(code);
        absent.load(Size::Quad, RAX, Operand::Near(place + CELL_ADDRESS));
        absent.jump_to(self.missing);
        let mut bytes = [0; size_of::<Cell>()];
        bytes[..8].copy_from_slice(&code.to_le_bytes());
        bytes[8..16].copy_from_slice(&address.to_le_bytes());
        let absent = absent.finish().bytes;
        bytes[16..16 + absent.len()].copy_from_slice(&absent);
        self.arena.write(at, &bytes);
        self.arena.cells = at;
        self.cells.insert(address, place);
        Some(place)
    }

    /// Notes the code for a guest address.
    pub(crate) fn set(&mut self, address: u64, code: u64) {
        self.find_by_register(address, code);
        if let Some(cell) = self.cell(address) {
            // SAFETY: cells lie in the arena; code reads them as the guest's threads of this process do not
            // share them.
            unsafe { (cell as *mut u64).write(code) };
        }
    }

    /// Lets transfers to where a register points find the code for a guest address.
    pub(crate) fn find_by_register(&mut self, address: u64, code: u64) {
        let index = (address as u32 & Self::MASK) >> 2;
        // SAFETY: the mask keeps the index below `ENTRIES`.
        unsafe { self.entry(index as usize).write(Entry { address, code }) };
    }

    /// Forgets all code but what is kept.
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.arena.clear(self.kept);
        // SAFETY: the table's own pages, which are zero afterwards.
        unsafe { libc::madvise(self.entry(0).cast(), TABLE_BYTES, libc::MADV_DONTNEED) };
        self.no_address_zero();
    }
}
