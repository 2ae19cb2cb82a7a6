//! The way into compiled code and out of it.

use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::alpha::cpu::{Cpu, HostSide, register};

/// What compiled code returns to make everybody who called leave too. No address of an instruction.
pub(crate) const UNWIND: u64 = 1;

// `enter` saves what the host's calling convention wants saved, sets the pinned register to the Cpu
// and calls the code. A fault in the code comes back at `left_by_fault` with the stack pointer that
// was noted on the way in. `missing` stands where there is no code: it is called with the guest's
// address, and lets the interpreter go on until the address to which a call returns.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".globl pathlength_enter",
    ".hidden pathlength_enter",
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
    ".globl pathlength_left_by_fault",
    ".hidden pathlength_left_by_fault",
    "pathlength_left_by_fault:",
    "mov rax, -1",
    "jmp pathlength_left",
    ".p2align 4",
    ".globl pathlength_missing",
    ".hidden pathlength_missing",
    "pathlength_missing:",
    "mov rsi, rdi",
    "mov rdi, r15",
    "mov rdx, [r15 + {return_address}]",
    "and rdx, -4",
    "push rbp",
    "mov rbp, rsp",
    "call [r15 + {go_on}]",
    "pop rbp",
    "ret",
    return_address = const offset_of!(Cpu, r) + 8 * register::RA,
    go_on = const offset_of!(Cpu, host) + offset_of!(HostSide, go_on),
);

// The same: x21 is the pinned register.
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".globl pathlength_enter",
    ".hidden pathlength_enter",
    "pathlength_enter:",
    "stp x29, x30, [sp, #-160]!",
    "mov x29, sp",
    "stp x19, x20, [sp, #16]",
    "stp x21, x22, [sp, #32]",
    "stp x23, x24, [sp, #48]",
    "stp x25, x26, [sp, #64]",
    "stp x27, x28, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mov x21, x0",
    "mov x9, sp",
    "str x9, [x2]",
    "blr x1",
    "pathlength_left:",
    "ldp x19, x20, [sp, #16]",
    "ldp x21, x22, [sp, #32]",
    "ldp x23, x24, [sp, #48]",
    "ldp x25, x26, [sp, #64]",
    "ldp x27, x28, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "ldp x29, x30, [sp], #160",
    "ret",
    ".globl pathlength_left_by_fault",
    ".hidden pathlength_left_by_fault",
    "pathlength_left_by_fault:",
    "mov x0, #-1",
    "b pathlength_left",
    ".p2align 4",
    ".globl pathlength_missing",
    ".hidden pathlength_missing",
    "pathlength_missing:",
    "stp x29, x30, [sp, #-16]!",
    "mov x1, x0",
    "mov x0, x21",
    "ldr x2, [x21, #{return_address}]",
    "and x2, x2, #-4",
    "ldr x9, [x21, #{go_on}]",
    "blr x9",
    "ldp x29, x30, [sp], #16",
    "ret",
    return_address = const offset_of!(Cpu, r) + 8 * register::RA,
    go_on = const offset_of!(Cpu, host) + offset_of!(HostSide, go_on),
);

unsafe extern "C" {
    fn pathlength_enter(cpu: *mut libc::c_void, code: *const u8, stack_pointer: *mut usize) -> u64;
    static pathlength_left_by_fault: u8;
    static pathlength_missing: u8;
}

/// What is called where there is no code.
pub(super) fn missing() -> *const u8 {
    &raw const pathlength_missing
}

/// Where compiled code may lie. A thread's code begins at its own `START`.
pub(super) const ARENA_BYTES: usize = 256 << 20;

thread_local! {
    static START: AtomicUsize = const { AtomicUsize::new(0) };
}

/// Notes where the calling thread's code lies, for the signal handler.
pub(super) fn set_code(start: usize) {
    START.with(|place| place.store(start, Ordering::Relaxed));
}

/// How much of the host's stack guest calls may take, in bytes.
const STACK_BYTES: usize = 3 << 20;

/// Whether so little of it is left that nobody should call further.
pub(crate) fn is_stack_full(cpu: &Cpu) -> bool {
    const RESERVE: usize = 64 << 10;
    let here = 0u8;
    (&raw const here as usize) < cpu.host.stack_limit + RESERVE
}

/// What came out of compiled code.
pub(crate) enum Left {
    /// Go on at this guest address, or [`UNWIND`].
    At(u64),
    /// The host instruction at this address faulted.
    Fault(usize),
}

/// Runs code. The first entry of a thread, with no other below it, says so: guest calls may take the
/// host's stack from there on.
///
/// # Safety
/// `code` must be an entry made by the compiler for the address space of this `cpu`, whose `host`
/// must be set.
pub(crate) unsafe fn enter(cpu: &mut Cpu, code: *const u8, is_first: bool) -> Left {
    if is_first {
        let here = 0u8;
        cpu.host.stack_limit = (&raw const here as usize).saturating_sub(STACK_BYTES);
    }
    let before = cpu.host.stack_pointer;
    let noted = &raw mut cpu.host.stack_pointer;
    // SAFETY: the caller's promise.
    let next = unsafe { pathlength_enter((&raw mut *cpu).cast(), code, noted) };
    cpu.host.stack_pointer = before;
    if next == u64::MAX { Left::Fault(cpu.host.fault) } else { Left::At(next) }
}

/// Called by the handler of SIGSEGV and SIGBUS: if the fault happened in compiled code, makes the
/// thread leave it and returns true.
pub(crate) fn caught(context: &mut libc::ucontext_t) -> bool {
    let pc = *crate::access::program_counter(context) as usize;
    let start = START.with(|start| start.load(Ordering::Relaxed));
    if start == 0 || pc.wrapping_sub(start) >= ARENA_BYTES {
        return false;
    }
    let (cpu, stack_pointer) = registers(context);
    // SAFETY: in compiled code the pinned register is the Cpu that `enter` was given.
    let host = unsafe { &mut (*(cpu as *mut Cpu)).host };
    host.fault = pc;
    *stack_pointer = host.stack_pointer as _;
    *crate::access::program_counter(context) = &raw const pathlength_left_by_fault as u64;
    true
}

/// The pinned register's value, and the stack pointer.
#[cfg(target_arch = "x86_64")]
fn registers(context: &mut libc::ucontext_t) -> (usize, &mut i64) {
    let registers = &mut context.uc_mcontext.gregs;
    (registers[libc::REG_R15 as usize] as usize, &mut registers[libc::REG_RSP as usize])
}

/// The pinned register's value, and the stack pointer.
#[cfg(target_arch = "aarch64")]
fn registers(context: &mut libc::ucontext_t) -> (usize, &mut u64) {
    (context.uc_mcontext.regs[21] as usize, &mut context.uc_mcontext.sp)
}
