//! The guest as GDB knows it: its registers, and GDB's numbers of its signals.

use engine::GuestDescription;
use gdbstub::arch;
use gdbstub::common::Signal;

/// The architecture.
pub enum GuestArchitecture {}

impl arch::Arch for GuestArchitecture {
    type Usize = u64;
    type Registers = GuestRegisters;
    type BreakpointKind = usize;
    type RegId = ();
}

/// The registers of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestRegisters {
    /// The words, by GDB's numbers.
    pub words: Vec<u64>,
    /// The program counter, in registers that were read.
    pub pc: u64,
}

impl arch::Registers for GuestRegisters {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        self.words.iter().flat_map(|word| word.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(());
        }
        self.words = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        Ok(())
    }
}

/// The last real-time signal, in all guests.
const LAST: i32 = 64;

/// GDB's numbers of signals, by the host's. The host's SIGSTKFLT, which GDB does not know, stands for SIGEMT.
const SIGNALS: [(i32, Signal); 31] = [
    (libc::SIGHUP, Signal::SIGHUP),
    (libc::SIGINT, Signal::SIGINT),
    (libc::SIGQUIT, Signal::SIGQUIT),
    (libc::SIGILL, Signal::SIGILL),
    (libc::SIGTRAP, Signal::SIGTRAP),
    (libc::SIGABRT, Signal::SIGABRT),
    (libc::SIGBUS, Signal::SIGBUS),
    (libc::SIGFPE, Signal::SIGFPE),
    (libc::SIGKILL, Signal::SIGKILL),
    (libc::SIGUSR1, Signal::SIGUSR1),
    (libc::SIGSEGV, Signal::SIGSEGV),
    (libc::SIGUSR2, Signal::SIGUSR2),
    (libc::SIGPIPE, Signal::SIGPIPE),
    (libc::SIGALRM, Signal::SIGALRM),
    (libc::SIGTERM, Signal::SIGTERM),
    (libc::SIGSTKFLT, Signal::SIGEMT),
    (libc::SIGCHLD, Signal::SIGCHLD),
    (libc::SIGCONT, Signal::SIGCONT),
    (libc::SIGSTOP, Signal::SIGSTOP),
    (libc::SIGTSTP, Signal::SIGTSTP),
    (libc::SIGTTIN, Signal::SIGTTIN),
    (libc::SIGTTOU, Signal::SIGTTOU),
    (libc::SIGURG, Signal::SIGURG),
    (libc::SIGXCPU, Signal::SIGXCPU),
    (libc::SIGXFSZ, Signal::SIGXFSZ),
    (libc::SIGVTALRM, Signal::SIGVTALRM),
    (libc::SIGPROF, Signal::SIGPROF),
    (libc::SIGWINCH, Signal::SIGWINCH),
    (libc::SIGIO, Signal::SIGIO),
    (libc::SIGPWR, Signal::SIGPWR),
    (libc::SIGSYS, Signal::SIGSYS),
];

/// GDB's number of one of a guest's signals.
pub fn to_gdb(guest: &dyn GuestDescription, signal: i32) -> Signal {
    signal_of_host(guest.host_signal(signal).unwrap_or(0))
}

/// GDB's number of one of the host's signals.
pub fn signal_of_host(host: i32) -> Signal {
    match SIGNALS.iter().find(|(number, _)| *number == host) {
        Some((_, signal)) => *signal,
        None => match host {
            32 => Signal::SIG32,
            33..LAST => Signal((host - 33) as u8 + Signal::SIG33.0),
            LAST => Signal::SIG64,
            _ => Signal::UNKNOWN,
        },
    }
}

/// The guest's number of one of GDB's signals, if it has it.
pub fn from_gdb(guest: &dyn GuestDescription, signal: Signal) -> Option<i32> {
    (1..=LAST).find(|&number| to_gdb(guest, number) == signal)
}

#[cfg(test)]
mod tests {
    use gdbstub::arch::Registers as _;

    use super::*;

    /// Alpha.
    fn guest() -> &'static dyn GuestDescription {
        engine::guest_of(&isa::Alpha)
    }

    #[test]
    fn signals_and_back() {
        let to_gdb = |signal| to_gdb(guest(), signal);
        assert!((1..=LAST).all(|number| from_gdb(guest(), to_gdb(number)) == Some(number)));
        assert_eq!(from_gdb(guest(), Signal::SIGINFO), None);
        assert_eq!((to_gdb(11), to_gdb(34), to_gdb(63)), (Signal::SIGSEGV, Signal::SIG34, Signal::SIG63));
        assert_eq!((to_gdb(0), to_gdb(LAST), to_gdb(65)), (Signal::UNKNOWN, Signal::SIG64, Signal::UNKNOWN));
    }

    /// GDB and Alpha have them from BSD; but Alpha's SIGPWR stands where BSD has SIGINFO.
    #[test]
    fn alphas_signals_have_gdbs_numbers_but_one() {
        let to_gdb = |signal| to_gdb(guest(), signal);
        assert!((1..=31).all(|number| to_gdb(number).0 == number as u8 || number == 29));
        assert_eq!(to_gdb(29), Signal::SIGPWR);
    }

    #[test]
    fn registers_and_back() {
        let words: Vec<u64> = (0..67).map(|number| number * 0x0123_4567_89ab_cdef).collect();
        let registers = GuestRegisters { words: words.clone(), pc: 0 };
        let mut bytes = Vec::new();
        registers.gdb_serialize(|byte| bytes.extend(byte));
        assert_eq!(bytes, words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
        let mut back = GuestRegisters::default();
        back.gdb_deserialize(&bytes).unwrap();
        assert_eq!(back, registers);
        for length in [1, bytes.len() - 1] {
            assert_eq!(back.gdb_deserialize(&bytes[..length]), Err(()));
        }
        assert_eq!(back, registers);
    }
}
