//! The registers as GDB knows them (its manual, *RISC-V Features*): integer registers, the program counter, floating-point registers,
//! and the control registers of these. The description says that all have 64 bits, as all words that are passed.

use guest::DebuggerRegisters;

use crate::cpu::RiscvCpu;

const FLOATS: usize = 33;
const FFLAGS: usize = 65;
const FRM: usize = 66;
const FCSR: usize = 67;

impl DebuggerRegisters for RiscvCpu {
    const TARGET_DESCRIPTION: &'static str = include_str!("target.xml");
    const REGISTERS: usize = 68;
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
    fn the_description_has_each_register() {
        let names = RiscvCpu::TARGET_DESCRIPTION.matches("<reg ").count();
        assert_eq!(names, RiscvCpu::REGISTERS);
        assert_eq!(RiscvCpu::TARGET_DESCRIPTION.matches("bitsize=\"64\"").count(), names);
    }

    #[test]
    fn registers_have_gdbs_numbers() {
        let word = |number: usize| (number as u64 + 1) * 0x0123_4567_89ab_cdec;
        let mut cpu = RiscvCpu::default();
        let mut words: Vec<u64> = (0..RiscvCpu::REGISTERS).map(word).collect();
        cpu.set_registers(&words);
        assert_eq!((cpu.x[0], cpu.x[1], cpu.x[31], cpu.pc), (0, word(1), word(31), word(32)));
        assert_eq!((cpu.f[0], cpu.f[31], cpu.fcsr), (word(33), word(64), word(67) & 0xff));
        words[0] = 0;
        (words[65], words[66], words[67]) = (cpu.fcsr & 0x1f, cpu.fcsr >> 5, cpu.fcsr);
        assert_eq!(cpu.registers(), words);
        (words[65], words[66]) = (3, 2);
        cpu.set_registers(&words);
        assert_eq!(cpu.fcsr, 2 << 5 | 3);
    }
}
