//! The signals of RISC-V's exceptions, as in `arch/riscv/kernel/traps.c` and `mm/fault.c`.

use guest_memory::{Memory, SEGV_ACCERR, SEGV_MAPERR};
use riscv::{RiscvCpu, RiscvException};

use crate::abi::signals::ExceptionSignal;

// asm-generic/siginfo.h.
const ILL_ILLOPC: i32 = 1;
const BUS_ADRALN: i32 = 1;
const TRAP_BRKPT: i32 = 1;

/// The signal of an exception.
pub fn exception_signal(cpu: &RiscvCpu, memory: &Memory, exception: RiscvException) -> ExceptionSignal<()> {
    let (signal, code, address) = match exception {
        RiscvException::Memory(fault) => {
            // The host reports SEGV_ACCERR for reserved pages, which are unmapped for the guest.
            let code = match fault.signal {
                libc::SIGSEGV if memory.region_at(fault.address).is_some() => SEGV_ACCERR,
                libc::SIGSEGV => SEGV_MAPERR,
                _ => fault.code,
            };
            (fault.signal, code, fault.address)
        }
        RiscvException::Unaligned(_) => (libc::SIGBUS, BUS_ADRALN, cpu.pc),
        RiscvException::IllegalInstruction => (libc::SIGILL, ILL_ILLOPC, cpu.pc),
        RiscvException::Breakpoint => (libc::SIGTRAP, TRAP_BRKPT, cpu.pc),
    };
    ExceptionSignal { signal, code, address, trap: 0, pc: cpu.pc, trap_arguments: () }
}
