//! The signals of Alpha's exceptions.

use alpha::cpu::{Cpu, Exception, register};
use alpha::float::control::signal_code;
use guest_memory::{Memory, SEGV_ACCERR, SEGV_MAPERR};

use crate::abi::signals::ExceptionSignal;

// asm-generic/siginfo.h.
const ILL_ILLOPC: i32 = 1;
const BUS_ADRALN: i32 = 1;
const TRAP_BRKPT: i32 = 1;
const TRAP_UNK: i32 = 5;
const FPE_INTDIV: i32 = 1;
const FPE_INTOVF: i32 = 2;
const FPE_FLTDIV: i32 = 3;
const FPE_FLTOVF: i32 = 4;
const FPE_FLTUND: i32 = 5;
const FPE_FLTRES: i32 = 6;
const FPE_FLTINV: i32 = 7;
const FPE_FLTUNK: i32 = 14;

/// Signal, code and address are chosen as in `arch/alpha/kernel/traps.c` and `mm/fault.c`.
pub fn exception_signal(cpu: &Cpu, memory: &Memory, exception: Exception) -> ExceptionSignal<[u64; 3]> {
    // The address after the instruction; for other exceptions the program counter is there already.
    let behind = cpu.pc.wrapping_add(4);
    let (signal, code, address, trap, pc, trap_arguments) = match exception {
        Exception::Memory(fault) => {
            // The host reports SEGV_ACCERR for reserved pages, which are unmapped for the guest.
            let mapped = memory.region_at(fault.address).is_some();
            let code = match fault.signal {
                libc::SIGSEGV if mapped => SEGV_ACCERR,
                libc::SIGSEGV => SEGV_MAPERR,
                _ => fault.code,
            };
            let arguments = [fault.address, u64::from(mapped), u64::from(fault.write)];
            (fault.signal, code, fault.address, 0, cpu.pc, arguments)
        }
        Exception::Unaligned(address) => (libc::SIGBUS, BUS_ADRALN, address, 0, cpu.pc, [address, 0, 0]),
        Exception::IllegalInstruction => (libc::SIGILL, ILL_ILLOPC, behind, 0, behind, [4, 0, 0]),
        Exception::Breakpoint => (libc::SIGTRAP, TRAP_BRKPT, cpu.pc, 0, cpu.pc, [0; 3]),
        Exception::Bugcheck => (libc::SIGTRAP, TRAP_UNK, cpu.pc, 0, cpu.pc, [1, 0, 0]),
        Exception::Gentrap => {
            let trap = cpu.r[register::A0];
            let (signal, code) = gentrap(trap as i64);
            (signal, code, cpu.pc, trap, cpu.pc, [2, 0, 0])
        }
        Exception::Arithmetic { summary, registers } => {
            (libc::SIGFPE, signal_code(summary), cpu.pc, 0, cpu.pc, [summary, registers, 0])
        }
    };
    ExceptionSignal { signal, code, address, trap, pc, trap_arguments }
}

/// Signal and code of a software trap, by its number (`asm/gentrap.h`).
fn gentrap(trap: i64) -> (i32, i32) {
    const CODES: [i32; 7] =
        [FPE_INTOVF, FPE_INTDIV, FPE_FLTOVF, FPE_FLTDIV, FPE_FLTUND, FPE_FLTINV, FPE_FLTRES];
    match trap {
        -7..=-1 => (libc::SIGFPE, CODES[(-1 - trap) as usize]),
        -11 => (libc::SIGFPE, FPE_FLTUNK),
        _ => (libc::SIGTRAP, TRAP_UNK),
    }
}
