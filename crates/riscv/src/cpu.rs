//! The state of one RISC-V processor as a user's program sees it.

use guest::HostSide;
use isa::RiscvExtensions;

/// Integer register numbers by their names in the ABI.
pub mod register {
    /// Reads as zero, writes are ignored.
    pub const ZERO: usize = 0;
    /// Return address.
    pub const RA: usize = 1;
    /// Stack pointer.
    pub const SP: usize = 2;
    /// Global pointer.
    pub const GP: usize = 3;
    /// Thread pointer.
    pub const TP: usize = 4;
    /// Alternate link register, of `-msave-restore`'s functions.
    pub const T0: usize = 5;
    /// Frame pointer, also called `fp`.
    pub const S0: usize = 8;
    /// First argument and result; after a system call the result, or the negated errno.
    pub const A0: usize = 10;
    /// Second argument, and second half of a result.
    pub const A1: usize = 11;
    /// The number of a system call.
    pub const A7: usize = 17;
    /// The index at which results bound for register 0 are put.
    pub const SINK: usize = 32;
}

/// The address, value and size of the last load-reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LoadReservation {
    /// Its address, a multiple of 4; or [`LoadReservation::NONE`]'s.
    pub address: u64,
    /// The value there, sign-extended if it is a word.
    pub value: u64,
    /// Bytes loaded: 4 or 8. A store-conditional of another size fails.
    pub size: u64,
}

impl LoadReservation {
    /// No load-reserved since the last store-conditional.
    pub const NONE: LoadReservation = LoadReservation { address: 1, value: 0, size: 0 };
}

/// Registers.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct RiscvCpu {
    /// Integer registers; 0 is always 0, 32 takes what is written to 0.
    pub x: [u64; 33],
    /// For compiled code: near the integer registers, as what it needs all the time is.
    pub host: HostSide,
    /// Control and status of the host's vector unit (MXCSR), for compiled code: rounding to nearest with nothing noted, and its
    /// value after the last operation.
    pub float_status: [u32; 2],
    /// Floating-point registers. Narrower values are NaN-boxed: the bits above them are ones.
    pub f: [u64; 32],
    /// Address of the next instruction.
    pub pc: u64,
    /// Floating-point control and status: accrued exceptions in bits 0 to 4, rounding mode in bits 5 to 7.
    pub fcsr: u64,
    /// Set by a load-reserved, cleared by a store-conditional. The operating system clears it when it enters a handler.
    pub reservation: LoadReservation,
    /// The model: which instructions there are.
    pub extensions: RiscvExtensions,
    /// Instructions executed, up to the end of the block that is executed.
    pub instructions: u64,
    /// Plain accesses that were not aligned, which a processor without unaligned access would trap on.
    pub unaligned: u64,
}

impl Default for RiscvCpu {
    fn default() -> RiscvCpu {
        RiscvCpu {
            x: [0; 33],
            host: HostSide::default(),
            float_status: [0x1f80, 0],
            f: [0; 32],
            pc: 0,
            fcsr: 0,
            reservation: LoadReservation::NONE,
            extensions: RiscvExtensions::default(),
            instructions: 0,
            unaligned: 0,
        }
    }
}

/// Why an instruction could not complete; the operating system turns it into a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiscvException {
    /// A load, store or instruction fetch that memory refused.
    Memory(guest_memory::Fault),
    /// An atomic access at this address, which is not a multiple of its size.
    Unaligned(u64),
    /// No such instruction, or not on this processor.
    IllegalInstruction,
    /// `ebreak`. The program counter is at it.
    Breakpoint,
}

impl From<guest_memory::Fault> for RiscvException {
    fn from(fault: guest_memory::Fault) -> RiscvException {
        RiscvException::Memory(fault)
    }
}
