//! The registers of a thread, as the debugger sees them.

use crate::platform::{GuestDescription, Platform};

/// The registers of a thread, by GDB's numbers: as many as the guest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRegisters {
    words: Vec<u64>,
    program_counter: usize,
}

impl ThreadRegisters {
    /// From words, if there are as many as the guest has registers.
    pub(super) fn new(guest: &dyn GuestDescription, words: Vec<u64>) -> Option<ThreadRegisters> {
        let (registers, program_counter) = guest.debugger_registers();
        (words.len() == registers).then_some(ThreadRegisters { words, program_counter })
    }

    /// Those of a processor.
    pub(super) fn of<G: Platform>(cpu: &G) -> ThreadRegisters {
        ThreadRegisters { words: cpu.registers(), program_counter: G::PROGRAM_COUNTER }
    }

    /// Sets a processor's registers.
    pub(super) fn write_to<G: Platform>(&self, cpu: &mut G) {
        cpu.set_registers(&self.words);
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The program counter.
    pub fn pc(&self) -> u64 {
        self.words[self.program_counter]
    }

    /// Sets the program counter.
    pub(super) fn set_pc(&mut self, address: u64) {
        self.words[self.program_counter] = address;
    }
}
