//! The transitions between the translator and translated code.
//!
//! Invariants: GS is the thread's area from [`set_area`] on. FS is the program's from `enter` to `leave`, the translator's otherwise.
//! All registers of the program are in the area while the translator runs. A signal that comes between the check for one in `enter` and
//! translated code continues at `abort`, which is possible because the area still has all registers. A system call for the program does
//! not begin if a signal waits: the signal's handler moves the program counter from `[call_begin, call_end)` to `call_not_begun`.

use std::arch::global_asm;
use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::area::{COUNTERS, GlueAddresses, PLAIN_CALLS, SIGNAL, ThreadArea, VECTORS};

macro_rules! hidden {
    ($($name:literal),*) => { concat!($(".globl ", $name, "\n.hidden ", $name, "\n"),*) };
}

global_asm!(
    hidden!(
        "pathlength_translator_enter", "pathlength_translator_abort", "pathlength_translator_leave",
        "pathlength_translator_enter_begin", "pathlength_translator_enter_end", "pathlength_translator_call", "pathlength_translator_call_begin",
        "pathlength_translator_call_end", "pathlength_translator_call_not_begun", "pathlength_translator_handler",
        "pathlength_translator_restorer",
        "pathlength_translator_plain_call",
        "pathlength_translator_plain_call_begin",
        "pathlength_translator_plain_call_end",
        "pathlength_translator_plain_call_tail"
    ),
    ".text",
    ".p2align 6",
    // enter(): returns when translated code is left.
    "pathlength_translator_enter:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15",
    "mov gs:[{own_stack}], rsp",
    "pathlength_translator_enter_begin:",
    "cmp qword ptr gs:[{pending}], 0",
    "jne pathlength_translator_abort",
    "mov eax, gs:[{mask}]",
    "mov edx, gs:[{mask} + 4]",
    "mov rcx, gs:[{address}]",
    "xrstor64 [rcx + {vectors}]",
    "mov rax, gs:[{fs}]",
    "wrfsbase rax",
    "push qword ptr gs:[{flags}]",
    "popfq",
    "mov rax, gs:[{registers}]",
    "mov rcx, gs:[{registers} + 8]",
    "mov rdx, gs:[{registers} + 16]",
    "mov rbx, gs:[{registers} + 24]",
    "mov rsp, gs:[{registers} + 32]",
    "mov rbp, gs:[{registers} + 40]",
    "mov rsi, gs:[{registers} + 48]",
    "mov rdi, gs:[{registers} + 56]",
    "mov r8, gs:[{registers} + 64]",
    "mov r9, gs:[{registers} + 72]",
    "mov r10, gs:[{registers} + 80]",
    "mov r11, gs:[{registers} + 88]",
    "mov r12, gs:[{registers} + 96]",
    "mov r13, gs:[{registers} + 104]",
    "mov r14, gs:[{registers} + 112]",
    "mov r15, gs:[{registers} + 120]",
    "jmp qword ptr gs:[{resume}]",
    "pathlength_translator_enter_end:",
    "pathlength_translator_abort:",
    "mov rsp, gs:[{own_stack}]",
    "mov rax, gs:[{own_fs}]",
    "wrfsbase rax",
    "mov qword ptr gs:[{exit}], {signal}",
    "jmp 2f",
    // Translated code jumps here.
    "pathlength_translator_leave:",
    "mov gs:[{registers} + 32], rsp",
    "mov rsp, gs:[{own_stack}]",
    "pushfq",
    "pop qword ptr gs:[{flags}]",
    "mov gs:[{registers}], rax",
    "mov gs:[{registers} + 8], rcx",
    "mov gs:[{registers} + 16], rdx",
    "mov gs:[{registers} + 24], rbx",
    "mov gs:[{registers} + 40], rbp",
    "mov gs:[{registers} + 48], rsi",
    "mov gs:[{registers} + 56], rdi",
    "mov gs:[{registers} + 64], r8",
    "mov gs:[{registers} + 72], r9",
    "mov gs:[{registers} + 80], r10",
    "mov gs:[{registers} + 88], r11",
    "mov gs:[{registers} + 96], r12",
    "mov gs:[{registers} + 104], r13",
    "mov gs:[{registers} + 112], r14",
    "mov gs:[{registers} + 120], r15",
    "rdfsbase rax",
    "mov gs:[{fs}], rax",
    "mov rax, gs:[{own_fs}]",
    "wrfsbase rax",
    "mov eax, gs:[{mask}]",
    "mov edx, gs:[{mask} + 4]",
    "mov rcx, gs:[{address}]",
    "xsave64 [rcx + {vectors}]",
    "2:",
    "push 0x1f80",
    "ldmxcsr [rsp]",
    "push 0x202",
    "popfq",
    "pop rax",
    "pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    // call(number, arguments): a system call of the program.
    "pathlength_translator_call:",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov r10, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    "pathlength_translator_call_begin:",
    "cmp qword ptr gs:[{pending}], 0",
    "jne pathlength_translator_call_not_begun",
    "syscall",
    "pathlength_translator_call_end:",
    "ret",
    "pathlength_translator_call_not_begun:",
    "mov rax, {not_begun}",
    "ret",
    // A system call of translated code, with an exit set: those that are plain are made here, with rcx and r11 as scratch registers, which
    // system calls change, without a change of flags. Others leave translated code.
    "pathlength_translator_plain_call:",
    "movzx r11d, ax",
    "movzx ecx, byte ptr gs:[r11 + {plain_calls}]",
    "jrcxz 3f",
    // Numbers of more than 16 bits.
    "not r11",
    "lea rcx, [rax + r11 + 1]",
    "jrcxz 4f",
    "3:",
    "jmp pathlength_translator_leave",
    "4:",
    "mov gs:[{call_number}], rax",
    "pathlength_translator_plain_call_begin:",
    "mov rcx, gs:[{pending}]",
    "jrcxz 5f",
    "jmp 3b",
    "5:",
    "syscall",
    "pathlength_translator_plain_call_end:",
    // EFAULT may be due to code that is protected.
    "lea rcx, [rax + 14]",
    "jrcxz 6f",
    "mov gs:[{spilled}], r11",
    "mov r11, gs:[{call_number}]",
    "mov rcx, gs:[r11 * 8 + {counters}]",
    "lea rcx, [rcx + 1]",
    "mov gs:[r11 * 8 + {counters}], rcx",
    "mov r11, gs:[{spilled}]",
    "jmp qword ptr gs:[{after_call}]",
    "6:",
    "mov rax, gs:[{call_number}]",
    "jmp pathlength_translator_leave",
    "pathlength_translator_plain_call_tail:",
    // The handler of signals: FS may be the program's.
    "pathlength_translator_handler:",
    "push rbx",
    "rdfsbase rbx",
    "mov rax, gs:[{own_fs}]",
    "wrfsbase rax",
    "cld",
    "call [rip + {handle}]",
    "wrfsbase rbx",
    "pop rbx",
    "ret",
    "pathlength_translator_restorer:",
    "mov eax, 15",
    "syscall",
    own_stack = const offset_of!(ThreadArea, own_stack),
    pending = const offset_of!(ThreadArea, pending),
    mask = const offset_of!(ThreadArea, vectors_mask),
    address = const offset_of!(ThreadArea, address),
    vectors = const VECTORS,
    fs = const offset_of!(ThreadArea, fs),
    own_fs = const offset_of!(ThreadArea, own_fs),
    flags = const offset_of!(ThreadArea, flags),
    registers = const offset_of!(ThreadArea, registers),
    plain_calls = const PLAIN_CALLS,
    counters = const COUNTERS,
    call_number = const offset_of!(ThreadArea, call_number),
    after_call = const offset_of!(ThreadArea, after_call),
    spilled = const offset_of!(ThreadArea, spilled),
    resume = const offset_of!(ThreadArea, resume),
    exit = const offset_of!(ThreadArea, exit),
    signal = const SIGNAL as i64,
    not_begun = const NOT_BEGUN,
    handle = sym HANDLER,
);

/// The function that handles signals, with the arguments of a handler.
static HANDLER: AtomicUsize = AtomicUsize::new(0);

/// A handler of signals, called with FS of the translator.
pub(crate) type SignalHandler = unsafe extern "C" fn(i32, *const [u64; 16], *mut libc::ucontext_t);

/// Sets the function that handles signals.
pub(crate) fn set_handler(handler: SignalHandler) {
    HANDLER.store(handler as usize, Ordering::Release);
}

unsafe extern "C" {
    fn pathlength_translator_enter();
    fn pathlength_translator_call(number: u64, arguments: *const [u64; 6]) -> i64;
    static pathlength_translator_abort: u8;
    static pathlength_translator_leave: u8;
    static pathlength_translator_enter_begin: u8;
    static pathlength_translator_enter_end: u8;
    static pathlength_translator_call_begin: u8;
    static pathlength_translator_call_end: u8;
    static pathlength_translator_call_not_begun: u8;
    static pathlength_translator_handler: u8;
    static pathlength_translator_restorer: u8;
    static pathlength_translator_plain_call: u8;
    static pathlength_translator_plain_call_begin: u8;
    static pathlength_translator_plain_call_end: u8;
    static pathlength_translator_plain_call_tail: u8;
}

/// The result of a system call that did not begin, as a signal waits. No error of Linux has this number.
pub(crate) const NOT_BEGUN: i64 = -5000;

/// The address of a label.
macro_rules! address {
    ($label:ident) => {
        (&raw const $label) as u64
    };
}

/// Where translated code finds the glue.
pub(crate) fn addresses() -> GlueAddresses {
    GlueAddresses {
        leave: address!(pathlength_translator_leave),
        call: address!(pathlength_translator_plain_call),
    }
}

/// The signal handler, and the code that it returns to.
pub(crate) fn handler_addresses() -> (u64, u64) {
    (address!(pathlength_translator_handler), address!(pathlength_translator_restorer))
}

/// Where a thread continues that a signal interrupted in the glue, if it must not continue there.
pub(crate) fn diverted(address: u64) -> Option<u64> {
    let enter = address!(pathlength_translator_enter_begin)..address!(pathlength_translator_enter_end);
    if enter.contains(&address) {
        return Some(address!(pathlength_translator_abort));
    }
    let call = address!(pathlength_translator_call_begin)..address!(pathlength_translator_call_end);
    if call.contains(&address) {
        return Some(address!(pathlength_translator_call_not_begun));
    }
    // A call that has not begun, or that the kernel makes again: the thread leaves translated code, and the signal comes first.
    let plain =
        address!(pathlength_translator_plain_call_begin)..address!(pathlength_translator_plain_call_end);
    plain.contains(&address).then_some(address!(pathlength_translator_leave))
}

/// Whether an address is in the glue where the thread has the program's registers and goes on to translated code, or leaves it.
pub(crate) fn is_plain_call(address: u64) -> bool {
    let before = address!(pathlength_translator_plain_call)..address!(pathlength_translator_plain_call_begin);
    let after =
        address!(pathlength_translator_plain_call_end)..address!(pathlength_translator_plain_call_tail);
    before.contains(&address) || after.contains(&address)
}

/// Makes an area the present thread's.
///
/// # Safety
/// The area lives as long as the thread.
pub(crate) unsafe fn set_area(area: *mut ThreadArea) {
    // SAFETY: the processor and the kernel have FSGSBASE, which was checked; nothing else uses GS.
    unsafe {
        let fs: u64;
        std::arch::asm!("rdfsbase {}", out(reg) fs, options(nostack, nomem));
        (*area).own_fs = fs;
        std::arch::asm!("wrgsbase {}", in(reg) area, options(nostack));
    }
}

/// The present thread's area.
pub(crate) fn area() -> *mut ThreadArea {
    let area: u64;
    // SAFETY: reads an address that `set_area` has made valid before any code that calls this.
    unsafe {
        std::arch::asm!("mov {}, gs:[{}]", out(reg) area, const offset_of!(ThreadArea, address), options(nostack, readonly))
    };
    area as *mut ThreadArea
}

/// Continues the program until it leaves translated code.
///
/// # Safety
/// The thread has an area, whose `resume` is an address in the code cache.
pub(crate) unsafe fn enter() {
    // SAFETY: the caller's promise.
    unsafe { pathlength_translator_enter() }
}

/// Makes a system call for the program.
///
/// # Safety
/// The call must not change memory of the translator.
pub(crate) unsafe fn call(number: u64, arguments: &[u64; 6]) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { pathlength_translator_call(number, arguments) }
}
