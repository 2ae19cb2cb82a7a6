//! Alpha as GDB knows it (`gdb/alpha-tdep.h`): its registers in order, and its signals' numbers.

use engine::debug::Registers;
use gdbstub::arch;
use gdbstub::common::Signal;

/// The architecture.
pub enum Alpha {}

impl arch::Arch for Alpha {
    type Usize = u64;
    type Registers = AlphaRegisters;
    type BreakpointKind = usize;
    type RegId = ();

    fn target_description_xml() -> Option<&'static str> {
        Some(
            "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\
             <target version=\"1.0\"><architecture>alpha</architecture><osabi>GNU/Linux</osabi></target>",
        )
    }
}

/// The registers of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlphaRegisters(pub Registers);

/// Registers as GDB counts them: 32 integer ones, 31 floating ones, FPCR, PC, one without a name, unique.
const COUNT: usize = 67;
const FLOATS: usize = 32;
const FPCR: usize = 63;
const PC: usize = 64;
const UNIQUE: usize = 66;

impl arch::Registers for AlphaRegisters {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let mut words = [0; COUNT];
        words[..FLOATS].copy_from_slice(&self.0.r);
        words[FLOATS..FPCR].copy_from_slice(&self.0.f[..FPCR - FLOATS]);
        (words[FPCR], words[PC], words[UNIQUE]) = (self.0.fpcr, self.0.pc, self.0.unique);
        words.iter().flat_map(|word| word.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        if words.len() != COUNT || !rest.is_empty() {
            return Err(());
        }
        self.0.r.copy_from_slice(&words[..FLOATS]);
        self.0.f[..FPCR - FLOATS].copy_from_slice(&words[FLOATS..FPCR]);
        (self.0.fpcr, self.0.pc, self.0.unique) = (words[FPCR], words[PC], words[UNIQUE]);
        Ok(())
    }
}

/// GDB's number of one of Alpha's signals. Those up to 31 are the same, as both have them from BSD; but
/// Alpha's SIGPWR stands where BSD has SIGINFO.
pub fn to_gdb(alpha: i32) -> Signal {
    const SIGPWR: i32 = 29;
    match alpha {
        SIGPWR => Signal::SIGPWR,
        1..=31 => Signal(alpha as u8),
        32 => Signal::SIG32,
        33..=63 => Signal(alpha as u8 - 33 + Signal::SIG33.0),
        64 => Signal::SIG64,
        _ => Signal::UNKNOWN,
    }
}

/// Alpha's number of one of GDB's signals, if it has it.
pub fn to_alpha(signal: Signal) -> Option<i32> {
    (1..=64).find(|&alpha| to_gdb(alpha) == signal)
}

#[cfg(test)]
mod tests {
    use gdbstub::arch::Registers as _;

    use super::*;

    #[test]
    fn signals_and_back() {
        assert!((1..=64).all(|alpha| to_alpha(to_gdb(alpha)) == Some(alpha)));
        assert_eq!(to_alpha(Signal::SIGINFO), None);
        assert_eq!((to_gdb(11), to_gdb(34), to_gdb(63)), (Signal::SIGSEGV, Signal::SIG34, Signal::SIG63));
    }

    #[test]
    fn registers_and_back() {
        let word = |index: usize| index as u64 * 0x0123_4567_89ab_cdef;
        let mut registers = AlphaRegisters::default();
        registers.0.r = std::array::from_fn(word);
        registers.0.f[..31].copy_from_slice(&std::array::from_fn::<u64, 31, _>(|index| word(index + 32)));
        (registers.0.fpcr, registers.0.pc, registers.0.unique) = (word(63), word(64), word(66));
        let mut bytes = Vec::new();
        registers.gdb_serialize(|byte| bytes.extend(byte));
        let order = (0..67).filter(|&index| index != 65);
        assert!(order.into_iter().all(|index| bytes[8 * index..][..8] == word(index).to_le_bytes()));
        let mut back = AlphaRegisters::default();
        back.gdb_deserialize(&bytes).unwrap();
        assert_eq!(back, registers);
        for length in [0, 1, bytes.len() - 1, bytes.len() - 8] {
            assert_eq!(back.gdb_deserialize(&bytes[..length]), Err(()));
        }
    }
}
