//! Memory for compiled code, and the table that finds it by guest address.

use std::ptr::{self, NonNull};

use crate::memory::ADDRESS_SPACE;

/// Bytes of code, at most.
const ARENA_BYTES: usize = 256 << 20;

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
        super::enter::set_code_range(base.as_ptr() as usize, ARENA_BYTES);
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

/// The code that begins at each guest address: a flat array over the address space, of which only
/// the pages that stand for code are ever touched.
pub(super) struct Entries {
    base: NonNull<u8>,
    set: Vec<u64>,
}

/// A pointer for each instruction's place.
const ENTRIES_BYTES: usize = (ADDRESS_SPACE / 4 * 8) as usize;

impl Entries {
    pub(super) fn new() -> Option<Entries> {
        Some(Entries { base: reserve(ENTRIES_BYTES, libc::PROT_READ | libc::PROT_WRITE)?, set: Vec::new() })
    }

    /// The host address of the array.
    pub(super) fn base(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// The host address of the entry for a guest address, which must be in the address space.
    pub(super) fn slot(&self, address: u64) -> *mut *const u8 {
        debug_assert!(address < ADDRESS_SPACE);
        (self.base() + 2 * (address & !3) as usize) as *mut *const u8
    }

    pub(super) fn set(&mut self, address: u64, code: *const u8) {
        // SAFETY: the slot lies in the array.
        unsafe { *self.slot(address) = code };
        self.set.push(address);
    }

    pub(super) fn clear(&mut self) {
        for address in std::mem::take(&mut self.set) {
            // SAFETY: as in `set`.
            unsafe { *self.slot(address) = ptr::null() };
        }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; no code that reads it runs when its owner goes.
        unsafe { libc::munmap(self.base.as_ptr().cast(), ENTRIES_BYTES) };
    }
}
