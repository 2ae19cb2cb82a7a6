//! The bits of the floating-point control register and of Linux's IEEE control word.

/// Exceptions, as the status bits of the FPCR shifted down by 52: an invalid operation.
pub const INV: u8 = 1 << 0;
/// Division by zero.
pub const DZE: u8 = 1 << 1;
/// Overflow.
pub const OVF: u8 = 1 << 2;
/// Underflow.
pub const UNF: u8 = 1 << 3;
/// Inexact result.
pub const INE: u8 = 1 << 4;
/// Integer overflow.
pub const IOV: u8 = 1 << 5;
/// Denormal operand, which only the completion handler records.
pub const DNO: u8 = 1 << 6;

pub(crate) const STATUS: u32 = 52;
/// FPCR bit: any status bit is set.
pub const SUM: u64 = 1 << 63;
/// The FPCR's status bits.
pub const STATUS_BITS: u64 = 0x3f << STATUS;
pub(crate) const DYN: u32 = 58;
/// FPCR bits: the dynamic rounding mode.
pub const DYNAMIC: u64 = 3 << DYN;
pub(crate) const DNZ: u64 = 1 << 48;
/// Underflow gives +0 in hardware if both UNFD and UNDZ are set.
pub(crate) const UNFD_UNDZ: u64 = 1 << 61 | 1 << 60;
/// Bits 46 to 0 read as zero.
pub(crate) const IMPLEMENTED: u64 = !0 << 47;
/// The bits that MT_FPCR writes; others depend on these.
pub const WRITTEN: u64 = IMPLEMENTED & !SUM;

/// The FPCR bit INE.
pub const FPCR_INE: u64 = (INE as u64) << STATUS;
/// Control word: inexact results trap.
pub const ENABLE_INE: u64 = 1 << 5;
pub(crate) const ENABLE_ALL: u64 = 0x7e;
/// Control word: denormal operands are treated as zero.
pub(crate) const MAP_DMZ: u64 = 1 << 12;
/// Control word: underflowing results are zero.
pub(crate) const MAP_UMZ: u64 = 1 << 13;
pub(crate) const STATUS_ALL: u64 = 0x7e << 16;

/// The FPCR of a new process: rounding to nearest, all traps disabled.
pub const INITIAL_FPCR: u64 = 2 << DYN | fpcr_of_control(0);

/// The FPCR bits that depend on a control word, as Linux sets them. The status of denormal operands shares IOV's bit.
pub(crate) const fn fpcr_of_control(control: u64) -> u64 {
    let disabled = !control & ENABLE_ALL;
    let mut fpcr = (control & STATUS_ALL) << 35 | (control & MAP_DMZ) << 36;
    fpcr |= (disabled & 0x0e) << 48 | (disabled & 0x30) << 57 | (disabled & 0x40) << 41;
    if control & STATUS_ALL != 0 {
        fpcr |= SUM;
    }
    if control & MAP_UMZ != 0 {
        fpcr |= UNFD_UNDZ;
    }
    fpcr
}
