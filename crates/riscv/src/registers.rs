//! The registers as GDB knows them (`gdb/riscv-tdep.h`): integer registers, the program counter, floating-point registers. The
//! number of a control register is its own after the first 65, so that `fflags`, `frm` and `fcsr` are 66, 67 and 68.

use guest::DebuggerRegisters;

use crate::cpu::RiscvCpu;

const FLOATS: usize = 33;
const FFLAGS: usize = 66;
const FRM: usize = 67;
const FCSR: usize = 68;

impl DebuggerRegisters for RiscvCpu {
    const TARGET_DESCRIPTION: &'static str = "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\
        <target version=\"1.0\"><architecture>riscv:rv64</architecture><osabi>GNU/Linux</osabi></target>";
    const REGISTERS: usize = 69;
    const PROGRAM_COUNTER: usize = 32;

    fn registers(&self) -> Vec<u64> {
        let mut words = vec![0; Self::REGISTERS];
        words[..32].copy_from_slice(&self.x[..32]);
        words[Self::PROGRAM_COUNTER] = self.pc;
        words[FLOATS..FLOATS + 32].copy_from_slice(&self.f);
        (words[FFLAGS], words[FRM], words[FCSR]) = (self.fcsr & 0x1f, self.fcsr >> 5 & 7, self.fcsr);
        words
    }

    fn set_registers(&mut self, words: &[u64]) {
        self.x[1..32].copy_from_slice(&words[1..32]);
        self.pc = words[Self::PROGRAM_COUNTER] & !1;
        self.f.copy_from_slice(&words[FLOATS..FLOATS + 32]);
        let before = self.fcsr;
        if words[FCSR] != before {
            self.fcsr = words[FCSR] & 0xff;
        } else {
            self.fcsr = words[FFLAGS] & 0x1f | (words[FRM] & 7) << 5;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_gdbs_numbers() {
        let word = |number: usize| (number as u64 + 1) * 0x0123_4567_89ab_cdec;
        let mut cpu = RiscvCpu::default();
        let mut words: Vec<u64> = (0..RiscvCpu::REGISTERS).map(word).collect();
        cpu.set_registers(&words);
        assert_eq!((cpu.x[0], cpu.x[1], cpu.x[31], cpu.pc), (0, word(1), word(31), word(32)));
        assert_eq!((cpu.f[0], cpu.f[31], cpu.fcsr), (word(33), word(64), word(68) & 0xff));
        (words[0], words[65]) = (0, 0);
        (words[66], words[67], words[68]) = (cpu.fcsr & 0x1f, cpu.fcsr >> 5, cpu.fcsr);
        assert_eq!(cpu.registers(), words);
        (words[66], words[67]) = (3, 2);
        cpu.set_registers(&words);
        assert_eq!(cpu.fcsr, 2 << 5 | 3);
    }
}
