//! System calls to the host's kernel: non-blocking ones, and ones that may block.
//!
//! A call that may block must not begin if the thread's flag is set, or the guest would sleep through a signal.
//! [`wait_unless`] tests the flag and makes the call in a short assembly routine. A signal handler that interrupts
//! the routine between test and call moves the program counter to the routine's exit without a call ([`leave_wait`]).

use std::sync::atomic::AtomicBool;

use crate::errno::Errno;
use crate::fault::program_counter;

/// Gives the routine's labels hidden visibility: visible to every object file of the program, and not exported.
macro_rules! symbols {
    () => {
        ".irp label, pathlength_wait, pathlength_wait_begin, pathlength_wait_end, pathlength_wait_not_begun
         .globl \\label
         .hidden \\label
         .endr"
    };
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    symbols!(),
    ".text",
    ".p2align 4",
    // wait(number, arguments, flag)
    "pathlength_wait: mov rcx, rdx",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov r10, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    "pathlength_wait_begin: cmp byte ptr [rcx], 0",
    "jne pathlength_wait_not_begun",
    "syscall",
    "pathlength_wait_end: ret",
    "pathlength_wait_not_begun: mov rax, -513",
    "ret",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    symbols!(),
    ".text",
    ".p2align 4",
    "pathlength_wait: mov x8, x0",
    "mov x9, x1",
    "mov x10, x2",
    "ldp x0, x1, [x9]",
    "ldp x2, x3, [x9, #16]",
    "ldp x4, x5, [x9, #32]",
    "pathlength_wait_begin: ldrb w11, [x10]",
    "cbnz w11, pathlength_wait_not_begun",
    "svc #0",
    "pathlength_wait_end: ret",
    "pathlength_wait_not_begun: mov x0, #-513",
    "ret",
);

unsafe extern "C" {
    static pathlength_wait_begin: u8;
    static pathlength_wait_end: u8;
    static pathlength_wait_not_begun: u8;
    fn pathlength_wait(number: libc::c_long, arguments: &[u64; 6], flag: *const AtomicBool) -> i64;
}

/// Makes a system call that does not block.
///
/// # Safety
/// The arguments must be such that the kernel accesses no memory of the engine other than the caller's.
pub unsafe fn call(number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { Err(Errno::last()) } else { Ok(result as u64) }
}

/// Makes a system call that may block, unless `flag` is set. Fails with EINTR if a signal interrupted the call, with
/// [`Errno::RESTART_ALWAYS`] if the flag was set before the call began.
///
/// # Safety
/// As for [`call`].
pub unsafe fn wait_unless(
    flag: &AtomicBool,
    number: libc::c_long,
    arguments: [u64; 6],
) -> Result<u64, Errno> {
    // SAFETY: the caller's promise; the routine clobbers caller-saved registers only.
    let result = unsafe { pathlength_wait(number, &arguments, flag) };
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as u64) }
}

/// Called by a signal handler. If it interrupted [`wait_unless`] before the call, the call is skipped.
pub fn leave_wait(context: &mut libc::ucontext_t) {
    let pc = program_counter(context);
    let routine = &raw const pathlength_wait_begin as u64..&raw const pathlength_wait_end as u64;
    if routine.contains(pc) {
        *pc = &raw const pathlength_wait_not_begun as u64;
    }
}

/// Called by a signal handler: whether the signal has interrupted a call by [`wait_unless`], which now fails with EINTR.
pub fn is_interrupted(context: &mut libc::ucontext_t) -> bool {
    *program_counter(context) == &raw const pathlength_wait_end as u64
        && result(context) == -i64::from(libc::EINTR)
}

/// The result of the system call that has just ended.
#[cfg(target_arch = "x86_64")]
fn result(context: &libc::ucontext_t) -> i64 {
    context.uc_mcontext.gregs[libc::REG_RAX as usize]
}

/// The result of the system call that has just ended.
#[cfg(target_arch = "aarch64")]
fn result(context: &libc::ucontext_t) -> i64 {
    context.uc_mcontext.regs[0] as i64
}
