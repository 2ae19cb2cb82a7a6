//! The way into compiled code and out of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::alpha::cpu::Cpu;

// Saves what the host's calling convention wants saved, sets the pinned register (r15) to the Cpu
// and calls the code. A fault in the code comes back at `pathlength_left_by_fault` with the stack
// pointer that was noted on the way in.
std::arch::global_asm!(
    ".text",
    ".p2align 4",
    "pathlength_enter:", // (cpu, code, where to note the stack pointer)
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "mov r15, rdi",
    "mov [rdx], rsp",
    "call rsi",
    "pathlength_left:",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    "pathlength_left_by_fault:",
    "mov rax, -1",
    "jmp pathlength_left",
);

unsafe extern "C" {
    fn pathlength_enter(cpu: *mut libc::c_void, code: *const u8, stack_pointer: *mut usize) -> u64;
    static pathlength_left_by_fault: u8;
}

static CODE_START: AtomicUsize = AtomicUsize::new(0);
static CODE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Notes where code lies, for the signal handler.
pub(super) fn set_code_range(start: usize, bytes: usize) {
    CODE_START.store(start, Ordering::Relaxed);
    CODE_BYTES.store(bytes, Ordering::Relaxed);
}

/// How much of the host's stack guest calls may take, in bytes.
const STACK_BYTES: usize = 1 << 20;

/// What came out of compiled code.
pub(crate) enum Left {
    /// Go on at this guest address.
    At(u64),
    /// The host instruction at this address faulted.
    Fault(usize),
}

/// Runs code.
///
/// # Safety
/// `code` must be an entry made by the compiler for this `cpu`'s address space.
pub(crate) unsafe fn enter(cpu: &mut Cpu, code: *const u8) -> Left {
    let here = 0u8;
    cpu.host.stack_limit = (&raw const here as usize).saturating_sub(STACK_BYTES);
    let noted = &raw mut cpu.host.stack_pointer;
    // SAFETY: the caller's promise.
    let next = unsafe { pathlength_enter((&raw mut *cpu).cast(), code, noted) };
    if next == u64::MAX { Left::Fault(cpu.host.fault) } else { Left::At(next) }
}

/// Called by the handler of SIGSEGV and SIGBUS: if the fault happened in compiled code, makes the
/// thread leave it and returns true.
pub(crate) fn caught(context: &mut libc::ucontext_t) -> bool {
    let registers = &mut context.uc_mcontext.gregs;
    let pc = registers[libc::REG_RIP as usize] as usize;
    if pc.wrapping_sub(CODE_START.load(Ordering::Relaxed)) >= CODE_BYTES.load(Ordering::Relaxed) {
        return false;
    }
    let cpu = registers[libc::REG_R15 as usize] as *mut Cpu;
    // SAFETY: in compiled code r15 is the Cpu that `enter` was given.
    let host = unsafe { &mut (*cpu).host };
    host.fault = pc;
    registers[libc::REG_RSP as usize] = host.stack_pointer as i64;
    registers[libc::REG_RIP as usize] = &raw const pathlength_left_by_fault as i64;
    true
}
