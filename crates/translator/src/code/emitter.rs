//! Writes machine code into the code cache.

use crate::area::{AFTER_CALL, CALL, EXIT, LEAVE, RCX};

/// Bytes of a cache line: a store within one is atomic for a processor that executes it.
const LINE: u64 = 64;
/// The prefix of an operand in the area.
const GS: u8 = 0x65;

/// A place in the code cache at which code is written.
///
/// Invariant: `at` is in memory that is mapped for writing, and the zone has room for all that is written (`CodeZone::has_room`).
#[derive(Debug)]
pub(super) struct CopyEmitter {
    /// The next byte's address.
    pub at: u64,
}

impl CopyEmitter {
    /// Writes bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        // SAFETY: the invariant.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at += bytes.len() as u64;
    }

    /// An instruction with a 64-bit register and an operand in the area.
    fn area_operand(&mut self, opcode: u8, register: u8, offset: i32) {
        let rex = 0x48 | (register >> 3) << 2;
        self.put(&[GS, rex, opcode, (register & 7) << 3 | 4, 0x25]);
        self.put(&offset.to_le_bytes());
    }

    /// `mov gs:[offset], register`
    pub fn store(&mut self, offset: i32, register: u8) {
        self.area_operand(0x89, register, offset);
    }

    /// `mov register, gs:[offset]`
    pub fn load(&mut self, register: u8, offset: i32) {
        self.area_operand(0x8b, register, offset);
    }

    /// `add qword ptr gs:[offset], 1`
    pub fn add_one(&mut self, offset: i32) {
        self.area_operand(0x83, 0, offset);
        self.put(&[1]);
    }

    /// `inc qword ptr gs:[offset]`, which leaves the carry flag.
    pub fn increment(&mut self, offset: i32) {
        self.area_operand(0xff, 0, offset);
    }

    /// `lea register, [register + 1]`
    pub fn add_one_to_register(&mut self, register: u8) {
        let high = register >> 3;
        self.put(&[0x48 | high << 2 | high, 0x8d, 0x40 | (register & 7) << 3 | register & 7]);
        if register & 7 == 4 {
            self.put(&[0x24]);
        }
        self.put(&[1]);
    }

    /// `mov register, value`
    pub fn load_constant(&mut self, register: u8, value: u64) {
        self.put(&[0x48 | register >> 3, 0xb8 | register & 7]);
        self.put(&value.to_le_bytes());
    }

    /// Pushes a constant without changing flags or registers.
    pub fn push_constant(&mut self, value: u64) {
        self.put(&[0x68]);
        self.put(&(value as u32).to_le_bytes());
        let high = (value >> 32) as u32;
        if i64::from(value as i32) as u64 != value {
            // mov dword ptr [rsp + 4], high
            self.put(&[0xc7, 0x44, 0x24, 0x04]);
            self.put(&high.to_le_bytes());
        }
    }

    /// A transfer whose opcode is given, to an address that is written later. Returns the address of its displacement, which lies in one
    /// cache line, so that it can be changed while other threads execute it.
    pub fn transfer(&mut self, opcode: &[u8]) -> u64 {
        while (self.at + opcode.len() as u64) % LINE > LINE - 4 {
            self.put(&[0x90]);
        }
        self.put(opcode);
        self.put(&[0; 4]);
        self.at - 4
    }

    /// Leaves translated code with the number of an exit.
    pub fn leave(&mut self, exit: u32) {
        self.set_exit(exit);
        self.jump(LEAVE);
    }

    /// Makes a system call, or leaves translated code with the number of an exit. Changes rcx.
    pub fn call(&mut self, exit: u32) {
        self.set_exit(exit);
        // lea rcx, [rip + bytes to the end]
        self.put(&[0x48, 0x8d, 0x0d]);
        let displacement = self.at;
        self.put(&[0; 4]);
        let start = self.at;
        self.store(AFTER_CALL, RCX);
        self.jump(CALL);
        let size = (self.at - start) as u32;
        // SAFETY: the displacement that was just written.
        unsafe { (displacement as *mut u32).write_unaligned(size) };
    }

    /// `mov qword ptr gs:[EXIT], exit`
    fn set_exit(&mut self, exit: u32) {
        self.put(&[GS, 0x48, 0xc7, 0x04, 0x25]);
        self.put(&EXIT.to_le_bytes());
        self.put(&exit.to_le_bytes());
    }

    /// `jmp gs:[offset]`
    fn jump(&mut self, offset: i32) {
        self.put(&[GS, 0xff, 0x24, 0x25]);
        self.put(&offset.to_le_bytes());
    }

    /// Jumps to an absolute address.
    pub fn jump_far(&mut self, address: u64) {
        self.put(&[0xff, 0x25, 0, 0, 0, 0]);
        self.put(&address.to_le_bytes());
    }
}

/// Whether a displacement of 32 bits reaches an address from another.
pub(super) fn reaches(from: u64, to: u64) -> bool {
    i32::try_from(to.wrapping_sub(from) as i64).is_ok()
}

/// Writes the displacement of a transfer.
pub(super) fn set_displacement(site: u64, target: u64) {
    let displacement = target.wrapping_sub(site + 4) as i32;
    // SAFETY: `site` is the displacement of a transfer in the code cache; it lies in one cache line, so that a processor that executes it
    // sees the old or the new one.
    unsafe { (site as *mut i32).write_unaligned(displacement) };
}
