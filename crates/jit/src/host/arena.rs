//! Memory for compiled code, and the tables that find it by guest address.

use std::collections::HashMap;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::assembler::{Assembler, Operand, OperandSize, RAX};
use guest::counters::{self, ReservedRange};

/// Size of the code in bytes. All of it is within reach of relative jumps.
pub(crate) const ARENA_BYTES: usize = 256 << 20;
/// Maximum number of link slots.
const MAX_SLOTS: usize = 1 << 20;
const SLOT_BYTES: usize = MAX_SLOTS * size_of::<LinkSlot>();

/// Size in bytes of an unresolved stub, and number of those that are written at once.
const STUB_BYTES: usize = 16;
const STUBS: usize = PAGE / STUB_BYTES;

/// The host's page size.
const PAGE: usize = 4096;

/// A contiguous range of memory, so that code refers to all of it by relative displacements: code from the beginning and
/// unresolved stubs before [`ARENA_BYTES`], which are executable; then link slots and counters, which code writes.
///
/// No page is both writable and executable: the pages of new code are writable only while [`Arena::write`] copies it. Two
/// mappings of the same memory would need no system calls, but such memory is shared with forked processes.
pub(crate) struct Arena {
    mapping: Arc<ReservedRange>,
    used: usize,
    /// Offset of the unresolved stubs.
    stubs: usize,
    /// Number of link slots.
    slots: usize,
}

impl Arena {
    pub(crate) fn new() -> Option<Arena> {
        let bytes = ARENA_BYTES + SLOT_BYTES + counters::MAX_COUNTERS * size_of::<u64>();
        let mapping = ReservedRange::new(bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        let arena = Arena { mapping: Arc::new(mapping), used: 0, stubs: ARENA_BYTES, slots: 0 };
        arena.protect(0, ARENA_BYTES, libc::PROT_EXEC).then_some(arena)
    }

    pub(crate) fn start(&self) -> u64 {
        self.mapping.base().as_ptr() as u64
    }

    /// The address of the counters, and the owner of their memory.
    pub(crate) fn counters(&self) -> (NonNull<u64>, &Arc<ReservedRange>) {
        // SAFETY: there is room for them after the link slots.
        (unsafe { self.mapping.base().add(ARENA_BYTES + SLOT_BYTES) }.cast(), &self.mapping)
    }

    /// The address for the next code.
    pub(crate) fn next(&self) -> u64 {
        self.start() + self.used as u64
    }

    /// Copies code to the arena; None if there is no room.
    pub(crate) fn add(&mut self, code: &[u8]) -> Option<u64> {
        let (start, end) = (self.used, self.used.checked_add(code.len())?);
        // No page has both code and stubs.
        if end.next_multiple_of(PAGE) > self.stubs || !self.write(start, code) {
            return None;
        }
        self.used = end.next_multiple_of(16);
        Some(self.start() + start as u64)
    }

    /// Copies code to an address where none runs; false if the host has no memory for that. The calling thread alone
    /// executes the code of the arena, but not now: the pages need not be executable while they are written.
    fn write(&self, at: usize, code: &[u8]) -> bool {
        let first = at - at % PAGE;
        let bytes = (at + code.len()).next_multiple_of(PAGE) - first;
        if !self.protect(first, bytes, libc::PROT_WRITE) {
            return false;
        }
        // SAFETY: the callers' ranges lie in the arena, and nothing runs there.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.mapping.base().as_ptr().add(at), code.len()) };
        assert!(self.protect(first, bytes, libc::PROT_EXEC), "the host makes compiled code executable again");
        true
    }

    /// Makes pages of code writable or executable.
    fn protect(&self, first: usize, bytes: usize, right: i32) -> bool {
        debug_assert!(first + bytes <= ARENA_BYTES);
        // SAFETY: these pages are the arena's own, and no code that runs is in them.
        unsafe {
            libc::mprotect(self.mapping.base().as_ptr().add(first).cast(), bytes, libc::PROT_READ | right)
                == 0
        }
    }

    /// The addresses of the next link slot and its unresolved stub; None if there is no room. `unresolved` is the address
    /// of the stub for missing code.
    fn slot(&mut self, unresolved: u64) -> Option<(u64, u64)> {
        if self.slots == MAX_SLOTS {
            return None;
        }
        let index = self.slots % STUBS;
        if index == 0 {
            self.add_stubs(unresolved)?;
        }
        let slot = self.slot_address(self.slots);
        self.slots += 1;
        Some((slot, self.start() + (self.stubs + index * STUB_BYTES) as u64))
    }

    fn slot_address(&self, slot: usize) -> u64 {
        self.start() + (ARENA_BYTES + slot * size_of::<LinkSlot>()) as u64
    }

    /// Writes the unresolved stubs of the next link slots: each loads the slot's guest address into rax and jumps to
    /// the stub for missing code.
    fn add_stubs(&mut self, unresolved: u64) -> Option<()> {
        let at = self.stubs - PAGE;
        if at < self.used.next_multiple_of(PAGE) {
            return None;
        }
        let mut stubs = Assembler::new(self.start() + at as u64);
        for index in 0..STUBS {
            let slot = self.slot_address(self.slots + index);
            stubs.load(OperandSize::Quad, RAX, Operand::Near(slot + SLOT_GUEST_ADDRESS));
            stubs.jump_to(unresolved);
            (0..STUB_BYTES - 12).for_each(|_| stubs.halt());
        }
        let stubs = stubs.finish().bytes;
        debug_assert_eq!(stubs.len(), PAGE);
        self.write(at, &stubs).then(|| self.stubs = at)
    }

    /// Discards everything but the first `stub_bytes` bytes.
    fn clear(&mut self, stub_bytes: usize) {
        (self.used, self.stubs, self.slots) = (stub_bytes, ARENA_BYTES, 0);
    }
}

/// A link slot: compiled code makes transfers to a fixed guest address through it.
#[derive(Clone, Copy)]
#[repr(C)]
struct LinkSlot {
    /// The address to call: the compiled code, or the slot's unresolved stub if there is none.
    code: u64,
    /// The guest address.
    address: u64,
}

/// Offset of the guest address in a link slot.
pub(crate) const SLOT_GUEST_ADDRESS: u64 = 8;

/// An entry of the table for computed jumps.
#[derive(Clone, Copy)]
#[repr(C)]
struct JumpTableEntry {
    address: u64,
    code: u64,
}

/// Number of entries of the table, which is indexed by the low bits of a guest address.
const ENTRIES: usize = 1 << 18;
const TABLE_BYTES: usize = ENTRIES * size_of::<JumpTableEntry>();

/// The compiled code, by guest address of its entries.
pub(crate) struct CodeTable {
    pub(crate) arena: Arena,
    /// Size in bytes of the stubs, which are never discarded.
    stub_bytes: usize,
    /// The address of the stub for missing code.
    unresolved: u64,
    /// The link slots by guest address.
    link_slots: HashMap<u64, u64>,
    jump_table: ReservedRange,
}

impl CodeTable {
    /// The bits of a guest address that select an entry; multiplied by 4 they are its offset.
    pub(crate) const INDEX_MASK: u32 = (ENTRIES as u32 - 1) << 2;

    pub(crate) fn new() -> Option<CodeTable> {
        let arena = Arena::new()?;
        let jump_table = ReservedRange::new(TABLE_BYTES, libc::PROT_READ | libc::PROT_WRITE)?;
        Some(CodeTable { arena, stub_bytes: 0, unresolved: 0, link_slots: HashMap::new(), jump_table })
    }

    /// The host address of the table.
    pub(crate) fn jump_table(&self) -> u64 {
        self.entry(0) as u64
    }

    fn entry(&self, index: usize) -> *mut JumpTableEntry {
        debug_assert!(index < ENTRIES);
        // SAFETY: the entry lies in the table.
        unsafe { self.jump_table.base().cast::<JumpTableEntry>().as_ptr().add(index) }
    }

    /// Keeps what is in the arena now; `unresolved` is the address of the stub for missing code.
    pub(crate) fn keep_stubs(&mut self, unresolved: u64) {
        (self.stub_bytes, self.unresolved) = (self.arena.used, unresolved);
        self.reserve_address_zero();
    }

    /// Free entries are zero, and would be found by address 0: gives the one that address 0 selects another address.
    fn reserve_address_zero(&mut self) {
        // SAFETY: the table has entries.
        unsafe { self.entry(0).write(JumpTableEntry { address: 1, code: self.unresolved }) };
    }

    /// The host address of the link slot of a guest address. None if there is no room.
    pub(crate) fn link_slot(&mut self, address: u64) -> Option<u64> {
        if let Some(&link_slot) = self.link_slots.get(&address) {
            return Some(link_slot);
        }
        let (slot, code) = self.arena.slot(self.unresolved)?;
        // SAFETY: the slot lies in the arena, and no code refers to it yet.
        unsafe { (slot as *mut LinkSlot).write(LinkSlot { code, address }) };
        self.link_slots.insert(address, slot);
        Some(slot)
    }

    /// Sets the code of a guest address.
    pub(crate) fn set(&mut self, address: u64, code: u64) {
        self.set_jump_target(address, code);
        if let Some(link_slot) = self.link_slot(address) {
            // SAFETY: link slots lie in the arena. Only this guest thread's code reads them.
            unsafe { (link_slot as *mut u64).write(code) };
        }
    }

    /// Enters the code of a guest address into the table for computed jumps.
    pub(crate) fn set_jump_target(&mut self, address: u64, code: u64) {
        let index = (address as u32 & Self::INDEX_MASK) >> 2;
        // SAFETY: the mask keeps the index below `ENTRIES`.
        unsafe { self.entry(index as usize).write(JumpTableEntry { address, code }) };
    }

    /// Discards all code but what is kept.
    pub(crate) fn clear(&mut self) {
        self.link_slots.clear();
        self.arena.clear(self.stub_bytes);
        // SAFETY: these pages are the table's own, and are zero afterwards.
        unsafe { libc::madvise(self.entry(0).cast(), TABLE_BYTES, libc::MADV_DONTNEED) };
        self.reserve_address_zero();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    /// Each slot leads to a stub that loads its own guest address and jumps to the stub for missing code, over several
    /// pages of stubs, beside code, and again when all is discarded.
    #[test]
    fn unresolved_slots_lead_to_missing_code() {
        let mut code_table = CodeTable::new().expect("memory");
        let unresolved = code_table.arena.add(&[0xc3; 100]).expect("room");
        code_table.keep_stubs(unresolved);
        for _ in 0..2 {
            for number in 0..3 * STUBS as u64 {
                let address = 0x1_2000_0000 + 4 * number;
                let slot = code_table.link_slot(address).expect("room");
                assert_eq!(code_table.link_slot(address), Some(slot));
                code_table.arena.add(&[0xc3; 64]).expect("room");
                // SAFETY: slots are readable, and so are the stubs they lead to.
                let (content, stub) = unsafe {
                    let content = *(slot as *const LinkSlot);
                    (content, std::slice::from_raw_parts(content.code as *const u8, STUB_BYTES))
                };
                assert_eq!(content.address, address);
                let mut decoder = Decoder::with_ip(64, stub, content.code, DecoderOptions::NONE);
                let (load, jump) = (decoder.decode(), decoder.decode());
                assert_eq!((load.mnemonic(), jump.mnemonic()), (Mnemonic::Mov, Mnemonic::Jmp));
                assert_eq!(load.memory_displacement64(), slot + SLOT_GUEST_ADDRESS);
                assert_eq!(jump.near_branch64(), unresolved);
            }
            code_table.clear();
        }
    }

    /// A full arena refuses code and slots, and neither overwrites the other.
    #[test]
    fn there_is_an_end() {
        let mut code_table = CodeTable::new().expect("memory");
        let unresolved = code_table.arena.add(&[0xc3; 16]).expect("room");
        code_table.keep_stubs(unresolved);
        code_table.link_slot(4).expect("room");
        code_table.arena.used = ARENA_BYTES - 2 * PAGE;
        assert!(code_table.arena.add(&[0xc3; PAGE + 1]).is_none());
        assert!(code_table.arena.add(&[0xc3; PAGE]).is_some());
        assert!((1..STUBS as u64).all(|number| code_table.link_slot(4 + 4 * number).is_some()));
        assert!(code_table.link_slot(0).is_none());
    }
}
