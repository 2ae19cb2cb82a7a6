//! The interface of a guest's registers for debuggers.

use crate::guest::Guest;

/// The registers of a guest as GDB knows them: words of eight bytes, in the order in which GDB numbers them.
pub trait DebuggerRegisters: Guest {
    /// The description of the target in GDB's XML: the architecture, and registers that do not follow from it.
    const TARGET_DESCRIPTION: &'static str;
    /// How many registers there are, unused numbers included.
    const REGISTERS: usize;
    /// The number of the program counter.
    const PROGRAM_COUNTER: usize;

    /// The registers; those with unused numbers are 0.
    fn registers(&self) -> Vec<u64>;
    /// Sets the registers, of which there are [`DebuggerRegisters::REGISTERS`]. Constant ones keep their values.
    fn set_registers(&mut self, registers: &[u64]);
}
