//! The registers that a debugger sees.

use crate::cpu::{Cpu, register};

/// The registers of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Integer registers; 31 is always 0.
    pub r: [u64; 32],
    /// Floating-point registers; 31 is always 0.
    pub f: [u64; 32],
    /// Floating-point control register.
    pub fpcr: u64,
    /// Address of the next instruction.
    pub pc: u64,
    /// The thread's unique value.
    pub unique: u64,
}

impl Registers {
    /// Those of a processor.
    pub fn of(cpu: &Cpu) -> Registers {
        let first = |all: &[u64; 33]| std::array::from_fn(|index| all[index]);
        Registers { r: first(&cpu.r), f: first(&cpu.f), fpcr: cpu.fpcr, pc: cpu.pc, unique: cpu.unique }
    }

    /// Sets a processor's registers.
    pub fn write_to(&self, cpu: &mut Cpu) {
        cpu.r[..register::ZERO].copy_from_slice(&self.r[..register::ZERO]);
        cpu.f[..register::ZERO].copy_from_slice(&self.f[..register::ZERO]);
        (cpu.fpcr, cpu.pc, cpu.unique) = (self.fpcr, self.pc & !3, self.unique);
    }
}
