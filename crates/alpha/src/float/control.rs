//! The floating-point control register and Linux's IEEE control word: modes, status, trap enables.
//!
//! As on a 21264, only the FPCR holds the status; the control word that the system call reports is derived from it.

use super::number::RoundingMode;
use crate::cpu::Cpu;

pub use crate::fpcr::*;

/// The IEEE control word as `osf_getsysinfo(GSI_IEEE_FP_CONTROL)` reports it.
pub fn ieee_control(cpu: &Cpu) -> u64 {
    cpu.ieee_control & !STATUS_ALL | cpu.fpcr >> 35 & STATUS_ALL
}

/// Sets the IEEE control word (`osf_setsysinfo(SSI_IEEE_FP_CONTROL)`), and the FPCR accordingly, except for its
/// dynamic rounding mode.
pub fn set_ieee_control(cpu: &mut Cpu, value: u64) {
    cpu.ieee_control = value & (ENABLE_ALL | MAP_DMZ | MAP_UMZ | STATUS_ALL);
    cpu.fpcr = cpu.fpcr & DYNAMIC | fpcr_of_control(cpu.ieee_control);
}

/// Raises the exceptions of a control word's status bits,
/// `osf_setsysinfo(SSI_IEEE_RAISE_EXCEPTION)`; the code of the SIGFPE, if one is enabled.
pub fn raise_exceptions(cpu: &mut Cpu, status: u64) -> Option<i32> {
    let status = status & STATUS_ALL;
    cpu.fpcr |= status << 35 | if status != 0 { SUM } else { 0 };
    match flags_of_control(status >> 16 & cpu.ieee_control) {
        0 => None,
        traps => Some(signal_code(summary(traps, true))),
    }
}

/// The exceptions enabled by a control word.
fn flags_of_control(enables: u64) -> u8 {
    (enables >> 1 & 0x1f) as u8 | (enables as u8 & DNO)
}

/// The `si_code` of the SIGFPE for an exception summary on Linux. The completion handler distinguishes the
/// exceptions; without software completion all are FPE_FLTINV.
pub fn signal_code(summary: u64) -> i32 {
    const FPE_FLTDIV: i32 = 3;
    const FPE_FLTOVF: i32 = 4;
    const FPE_FLTUND: i32 = 5;
    const FPE_FLTRES: i32 = 6;
    const FPE_FLTINV: i32 = 7;
    let raised = |flags: u8| summary & u64::from(flags) << 1 != 0;
    let software = summary & 1 != 0;
    match () {
        _ if !software || raised(INV | IOV) => FPE_FLTINV,
        _ if raised(DZE) => FPE_FLTDIV,
        _ if raised(OVF) => FPE_FLTOVF,
        _ if raised(UNF) => FPE_FLTUND,
        _ => FPE_FLTRES,
    }
}

/// The exception summary of `traps`. It has no bit for a denormal operand, which is reported as underflow, since
/// Linux's SIGFPE has that code.
pub(super) fn summary(traps: u8, software: bool) -> u64 {
    let underflow = if traps & DNO != 0 { UNF } else { 0 };
    u64::from(traps & !DNO | underflow) << 1 | u64::from(software)
}

/// Adds exceptions to the status.
pub(super) fn record(cpu: &mut Cpu, flags: u8) {
    let denormal = if flags & DNO != 0 { IOV } else { 0 };
    cpu.fpcr |= u64::from(flags & !DNO | denormal) << STATUS | SUM;
}

/// The exceptions whose traps the program has enabled and the FPCR does not disable.
pub(super) fn enabled(cpu: &Cpu) -> u8 {
    let disabled = cpu.fpcr >> 48 & 0x0e | cpu.fpcr >> 57 & 0x30 | cpu.fpcr >> 41 & 0x40;
    flags_of_control(cpu.ieee_control & !disabled)
}

/// MT_FPCR.
pub(super) fn write_fpcr(cpu: &mut Cpu, value: u64) {
    let value = value & WRITTEN;
    cpu.fpcr = value | if value & STATUS_BITS != 0 { SUM } else { 0 };
}

/// The FPCR's rounding mode.
pub(super) fn dynamic_mode(cpu: &Cpu) -> RoundingMode {
    match cpu.fpcr >> DYN & 3 {
        0 => RoundingMode::Chopped,
        1 => RoundingMode::MinusInfinity,
        2 => RoundingMode::Nearest,
        _ => RoundingMode::PlusInfinity,
    }
}

/// Whether denormal operands are treated as zero, in hardware or by the completion handler.
pub(super) fn denormals_to_zero(cpu: &Cpu) -> bool {
    cpu.fpcr & DNZ != 0 || cpu.ieee_control & MAP_DMZ != 0
}

/// Whether underflowing results are +0, in hardware or by the completion handler.
pub(super) fn underflow_to_zero(cpu: &Cpu) -> bool {
    cpu.fpcr & UNFD_UNDZ == UNFD_UNDZ || cpu.ieee_control & MAP_UMZ != 0
}
