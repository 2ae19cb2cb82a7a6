//! The registers as GDB knows them (`gdb/alpha-tdep.h`).

use guest::DebuggerRegisters;

use crate::cpu::{Cpu, register::ZERO};

/// The numbers of the first floating-point register, of FPCR and of the unique value. Register 31 of both files is a
/// constant, and has a number among the integer registers only.
const FLOATS: usize = 32;
const FPCR: usize = 63;
const UNIQUE: usize = 66;

impl DebuggerRegisters for Cpu {
    const TARGET_DESCRIPTION: &'static str = "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\
        <target version=\"1.0\"><architecture>alpha</architecture><osabi>GNU/Linux</osabi></target>";
    const REGISTERS: usize = 67;
    const PROGRAM_COUNTER: usize = 64;

    fn registers(&self) -> Vec<u64> {
        let mut words = vec![0; Self::REGISTERS];
        words[..ZERO].copy_from_slice(&self.r[..ZERO]);
        words[FLOATS..FPCR].copy_from_slice(&self.f[..ZERO]);
        (words[FPCR], words[Self::PROGRAM_COUNTER], words[UNIQUE]) = (self.fpcr, self.pc, self.unique);
        words
    }

    fn set_registers(&mut self, words: &[u64]) {
        self.r[..ZERO].copy_from_slice(&words[..ZERO]);
        self.f[..ZERO].copy_from_slice(&words[FLOATS..FPCR]);
        self.pc = words[Self::PROGRAM_COUNTER] & !3;
        (self.fpcr, self.unique) = (words[FPCR], words[UNIQUE]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_gdbs_numbers() {
        let word = |number: usize| (number as u64 + 1) * 0x0123_4567_89ab_cdec;
        let mut cpu = Cpu::default();
        let mut words: Vec<u64> = (0..Cpu::REGISTERS).map(word).collect();
        cpu.set_registers(&words);
        assert_eq!((cpu.r[0], cpu.r[30], cpu.r[ZERO]), (word(0), word(30), 0));
        assert_eq!((cpu.f[0], cpu.f[30], cpu.f[ZERO]), (word(32), word(62), 0));
        assert_eq!((cpu.fpcr, cpu.pc, cpu.unique), (word(63), word(64), word(66)));
        (words[31], words[65]) = (0, 0);
        assert_eq!(cpu.registers(), words);
    }
}
