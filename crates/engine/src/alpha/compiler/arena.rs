//! Memory for compiled code, and the table that finds it by guest address.

use std::collections::HashMap;
use std::ptr::{self, NonNull};

use super::enter::{ARENA_BYTES, set_code};

/// One contiguous piece of executable memory, filled from the beginning.
pub(super) struct Arena {
    base: NonNull<u8>,
    used: usize,
}

/// Reserves address space; pages come as they are touched.
fn reserve(bytes: usize, protection: i32) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping overlaps nothing.
    let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

impl Arena {
    pub(super) fn new() -> Option<Arena> {
        let base = reserve(ARENA_BYTES, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        set_code(base.as_ptr() as usize);
        Some(Arena { base, used: 0 })
    }

    /// Copies code in; None if there is no room.
    pub(super) fn add(&mut self, code: &[u8]) -> Option<*const u8> {
        let start = self.used.next_multiple_of(64);
        let end = start.checked_add(code.len()).filter(|&end| end <= ARENA_BYTES)?;
        // SAFETY: the range lies in the arena, and nothing runs there yet.
        let place = unsafe {
            let place = self.base.as_ptr().add(start);
            ptr::copy_nonoverlapping(code.as_ptr(), place, code.len());
            place
        };
        self.used = end;
        Some(place)
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; no code of it runs when its owner goes.
        unsafe { libc::munmap(self.base.as_ptr().cast(), ARENA_BYTES) };
    }
}

/// Places in the table for indirect transfers.
const TABLE: usize = 1 << 16;

/// What to call for a guest address: an entry of the table for transfers to where a register points.
/// Compiled code reads it.
#[repr(C)]
struct Entry {
    /// Odd where the place is free.
    address: u64,
    code: *const u8,
}

/// The code that begins at each guest address. Where there is none, `missing` stands, which lets the
/// interpreter go on.
pub(super) struct Entries {
    missing: *const u8,
    /// For transfers to a fixed address: what compiled code calls.
    cells: HashMap<u64, Box<*const u8>>,
    /// For others: by the address's low bits, the code compiled last.
    table: Box<[Entry]>,
}

impl Entries {
    pub(super) fn new(missing: *const u8) -> Entries {
        let table = (0..TABLE).map(|_| Entry { address: 1, code: missing }).collect();
        Entries { missing, cells: HashMap::new(), table }
    }

    /// What stands where there is no code.
    pub(super) fn missing(&self) -> *const u8 {
        self.missing
    }

    /// The host address of the pointer to the code for a guest address.
    pub(super) fn cell(&mut self, address: u64) -> usize {
        let missing = self.missing;
        let cell = self.cells.entry(address).or_insert_with(|| Box::new(missing));
        &raw const **cell as usize
    }

    /// The host address of the table of pairs: guest address and code.
    pub(super) fn table(&self) -> usize {
        self.table.as_ptr() as usize
    }

    /// The mask of the bits of a guest address that, shifted left by [`Entries::SHIFT`], are the offset in
    /// the table.
    pub(super) const MASK: u64 = (TABLE as u64 - 1) << 2;
    /// From a guest address's bits to an offset in the table.
    pub(super) const SHIFT: u32 = size_of::<Entry>().trailing_zeros() - 2;

    pub(super) fn set(&mut self, address: u64, code: *const u8) {
        let index = (address & Self::MASK) >> 2;
        self.table[index as usize] = Entry { address, code };
        let missing = self.missing;
        **self.cells.entry(address).or_insert_with(|| Box::new(missing)) = code;
    }

    pub(super) fn clear(&mut self) {
        *self = Entries::new(self.missing);
    }
}
