//! The registers of a thread, as the debugger sees them.

use guest::DebuggerRegisters;

use crate::platform::Cpu;

/// The registers of a thread, by GDB's numbers: as many as the guest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRegisters(Vec<u64>);

impl Default for ThreadRegisters {
    fn default() -> ThreadRegisters {
        ThreadRegisters(vec![0; Cpu::REGISTERS])
    }
}

impl ThreadRegisters {
    /// From words, if there are as many as the guest has registers.
    pub fn new(words: Vec<u64>) -> Option<ThreadRegisters> {
        (words.len() == Cpu::REGISTERS).then_some(ThreadRegisters(words))
    }

    /// Those of a processor.
    pub(super) fn of(cpu: &Cpu) -> ThreadRegisters {
        ThreadRegisters(cpu.registers())
    }

    /// Sets a processor's registers.
    pub(super) fn write_to(&self, cpu: &mut Cpu) {
        cpu.set_registers(&self.0);
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The program counter.
    pub fn pc(&self) -> u64 {
        self.0[Cpu::PROGRAM_COUNTER]
    }

    /// Sets the program counter.
    pub(super) fn set_pc(&mut self, address: u64) {
        self.0[Cpu::PROGRAM_COUNTER] = address;
    }
}
