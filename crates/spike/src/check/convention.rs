//! The calling standard, as far as a proof relies on it: which registers a procedure gets something in, which it must
//! leave as they were, and which it may change. Sets of registers are bits; floating-point registers are those from 32 on.

/// The return address.
pub const RA: u8 = 26;
/// The procedure's own address.
pub const PV: u8 = 27;
/// The global pointer.
pub const GP: u8 = 29;
/// The stack pointer.
pub const SP: u8 = 30;
/// Integer zero.
pub const R31: u8 = 31;
/// Floating-point zero.
pub const F31: u8 = 63;
/// The return address of routines that divide.
pub const DIVIDE_LINK: u8 = 23;

/// Bits of the registers from the first to the last one.
pub const fn range(first: u8, last: u8) -> u64 {
    u64::MAX >> (63 - last) & u64::MAX << first
}

/// The bit of a register.
pub const fn bit(register: u8) -> u64 {
    1 << register
}

/// Whether a set has a register.
pub const fn has(set: u64, register: u8) -> bool {
    set >> register & 1 != 0
}

/// The registers of a set, ascending.
pub fn registers(set: u64) -> impl Iterator<Item = u8> {
    (0..64).filter(move |&register| has(set, register))
}

/// Those that are always zero.
pub const ZEROS: u64 = bit(R31) | bit(F31);
/// Those that a procedure leaves as they were, except the stack pointer: s0 to s5, fp, f2 to f9.
pub const PRESERVED: u64 = range(9, 15) | range(34, 41);
/// Those whose values procedures save in frames.
pub const SAVED: u64 = PRESERVED | bit(RA);
/// Those that any call may change.
pub const CLOBBERED: u64 = !(PRESERVED | bit(SP) | ZEROS);
/// Results: v0, f0, f1.
pub const RESULTS: u64 = bit(0) | range(32, 33);
/// Those in which a procedure can get something, except the return address, the stack and the global pointer: arguments,
/// its own address, the static chain of nested procedures.
pub const ARGUMENTS: u64 = range(16, 21) | range(48, 53) | bit(1) | bit(PV);
/// The arguments of routines that divide: dividend, divisor, their own address.
pub const DIVIDE_ARGUMENTS: u64 = range(24, 25) | bit(PV);
/// The registers that they change: the return address, the quotient, a scratch register.
pub const DIVIDE_CHANGED: u64 = bit(DIVIDE_LINK) | bit(PV) | bit(28);
/// The registers that the kernel reads: the number of the call, arguments.
pub const SYSTEM_ARGUMENTS: u64 = bit(0) | range(16, 21);
