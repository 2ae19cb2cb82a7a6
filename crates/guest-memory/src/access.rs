//! Loads, stores and copies that may touch an unmapped or protected page: a SIGSEGV or SIGBUS of the host becomes an
//! error value of the access that raised it.
//!
//! Every access to guest memory is made by one of the assembly routines below, which lie between two labels. If the
//! faulting instruction lies between the labels, the fault handler resumes at a routine that returns an error to the
//! caller.

use std::cell::Cell;

/// The result of a routine: a value, and whether the access faulted (0 or 1).
#[repr(C)]
#[derive(Clone, Copy)]
struct AccessOutcome {
    value: u64,
    fault: u64,
}

/// Gives the routines hidden visibility: callers may be inlined into other object files of the program, but symbols
/// are not exported.
macro_rules! symbols {
    () => {
        symbols!(
            "access_begin" "access_end" "access_fault" "load1" "load2" "load4" "load8" "store1" "store2"
            "store4" "store8" "exchange4" "exchange8" "copy"
        )
    };
    ($($name:literal)+) => {
        concat!($(".globl pathlength_", $name, "\n.hidden pathlength_", $name, "\n"),+)
    };
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    symbols!(),
    ".text",
    ".p2align 4",
    "pathlength_access_begin:",
    "pathlength_load1: movzx eax, byte ptr [rdi]",
    "xor edx, edx",
    "ret",
    "pathlength_load2: movzx eax, word ptr [rdi]",
    "xor edx, edx",
    "ret",
    "pathlength_load4: mov eax, dword ptr [rdi]",
    "xor edx, edx",
    "ret",
    "pathlength_load8: mov rax, qword ptr [rdi]",
    "xor edx, edx",
    "ret",
    "pathlength_store1: mov byte ptr [rdi], sil",
    "xor edx, edx",
    "ret",
    "pathlength_store2: mov word ptr [rdi], si",
    "xor edx, edx",
    "ret",
    "pathlength_store4: mov dword ptr [rdi], esi",
    "xor edx, edx",
    "ret",
    "pathlength_store8: mov qword ptr [rdi], rsi",
    "xor edx, edx",
    "ret",
    // exchange(address, expected, new): value = the previous contents
    "pathlength_exchange4: mov eax, esi",
    "mov ecx, edx",
    "lock cmpxchg dword ptr [rdi], ecx",
    "xor edx, edx",
    "ret",
    "pathlength_exchange8: mov rax, rsi",
    "mov rcx, rdx",
    "lock cmpxchg qword ptr [rdi], rcx",
    "xor edx, edx",
    "ret",
    // copy(to, from, bytes)
    "pathlength_copy: mov rcx, rdx",
    "rep movsb",
    "xor edx, edx",
    "ret",
    "pathlength_access_end:",
    "pathlength_access_fault: mov edx, 1",
    "ret",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    symbols!(),
    ".text",
    ".p2align 4",
    "pathlength_access_begin:",
    "pathlength_load1: ldrb w0, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_load2: ldrh w0, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_load4: ldr w0, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_load8: ldr x0, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_store1: strb w1, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_store2: strh w1, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_store4: str w1, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_store8: str x1, [x0]",
    "mov x1, #0",
    "ret",
    "pathlength_exchange4: ldaxr w3, [x0]",
    "cmp w3, w1",
    "b.ne 2f",
    "stlxr w4, w2, [x0]",
    "cbnz w4, pathlength_exchange4",
    "2: mov w0, w3",
    "mov x1, #0",
    "ret",
    "pathlength_exchange8: ldaxr x3, [x0]",
    "cmp x3, x1",
    "b.ne 2f",
    "stlxr w4, x2, [x0]",
    "cbnz w4, pathlength_exchange8",
    "2: mov x0, x3",
    "mov x1, #0",
    "ret",
    "pathlength_copy: cbz x2, 2f",
    "1: ldrb w3, [x1], #1",
    "strb w3, [x0], #1",
    "subs x2, x2, #1",
    "b.ne 1b",
    "2: mov x1, #0",
    "ret",
    "pathlength_access_end:",
    "pathlength_access_fault: mov x1, #1",
    "ret",
);

unsafe extern "C" {
    static pathlength_access_begin: u8;
    static pathlength_access_end: u8;
    static pathlength_access_fault: u8;
    fn pathlength_load1(address: *const u8) -> AccessOutcome;
    fn pathlength_load2(address: *const u8) -> AccessOutcome;
    fn pathlength_load4(address: *const u8) -> AccessOutcome;
    fn pathlength_load8(address: *const u8) -> AccessOutcome;
    fn pathlength_store1(address: *mut u8, value: u64) -> AccessOutcome;
    fn pathlength_store2(address: *mut u8, value: u64) -> AccessOutcome;
    fn pathlength_store4(address: *mut u8, value: u64) -> AccessOutcome;
    fn pathlength_store8(address: *mut u8, value: u64) -> AccessOutcome;
    fn pathlength_exchange4(address: *mut u8, expected: u64, new: u64) -> AccessOutcome;
    fn pathlength_exchange8(address: *mut u8, expected: u64, new: u64) -> AccessOutcome;
    fn pathlength_copy(to: *mut u8, from: *const u8, bytes: usize) -> AccessOutcome;
}

/// A fault of an access, as the host's kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFault {
    /// The host address.
    pub address: usize,
    /// SIGSEGV or SIGBUS.
    pub signal: i32,
    /// `si_code`: SEGV_MAPERR, SEGV_ACCERR, BUS_ADRERR ...
    pub code: i32,
}

thread_local! {
    static LAST_FAULT: Cell<HostFault> = const { Cell::new(HostFault { address: 0, signal: 0, code: 0 }) };
}

fn outcome(outcome: AccessOutcome) -> Result<u64, HostFault> {
    if outcome.fault == 0 { Ok(outcome.value) } else { Err(LAST_FAULT.get()) }
}

/// Loads 1, 2, 4 or 8 bytes, zero-extended.
///
/// # Safety
/// `address` must lie in memory reserved for the guest, so that a host fault is a guest fault; [`catch_faults`] must
/// have been called.
#[inline(always)]
pub unsafe fn load<const SIZE: usize>(address: *const u8) -> Result<u64, HostFault> {
    // SAFETY: the caller's promise; the routines touch nothing else.
    outcome(unsafe {
        match SIZE {
            1 => pathlength_load1(address),
            2 => pathlength_load2(address),
            4 => pathlength_load4(address),
            _ => pathlength_load8(address),
        }
    })
}

/// Stores the low 1, 2, 4 or 8 bytes of `value`.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn store<const SIZE: usize>(address: *mut u8, value: u64) -> Result<(), HostFault> {
    // SAFETY: the caller's promise; the routines touch nothing else.
    outcome(unsafe {
        match SIZE {
            1 => pathlength_store1(address, value),
            2 => pathlength_store2(address, value),
            4 => pathlength_store4(address, value),
            _ => pathlength_store8(address, value),
        }
    })
    .map(drop)
}

/// Atomically replaces `expected` by `new` (4 or 8 bytes). Returns the previous contents, which equal `expected` if
/// and only if they were replaced.
///
/// # Safety
/// As for [`load`]; `address` must be aligned to `SIZE`.
pub unsafe fn compare_exchange<const SIZE: usize>(
    address: *mut u8,
    expected: u64,
    new: u64,
) -> Result<u64, HostFault> {
    // SAFETY: the caller's promise; the routines touch nothing else.
    outcome(unsafe {
        if SIZE == 4 {
            pathlength_exchange4(address, expected, new)
        } else {
            pathlength_exchange8(address, expected, new)
        }
    })
}

/// Copies bytes between guest and host memory. On a fault some bytes may have been copied.
///
/// # Safety
/// As for [`load`], for the guest's side; the host's side must be valid for `bytes`.
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) -> Result<(), HostFault> {
    // SAFETY: the caller's promise; the routine touches nothing else.
    outcome(unsafe { pathlength_copy(to, from, bytes) }).map(drop)
}

/// Registers the handler that turns faults of the routines above into error values.
pub fn catch_faults() {
    host::fault::register(on_fault);
}

/// Handles a fault of the routines above: the thread resumes where they return an error.
fn on_fault(information: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    let pc = host::fault::program_counter(context);
    let routines = (&raw const pathlength_access_begin as u64)..(&raw const pathlength_access_end as u64);
    if !routines.contains(pc) {
        return false;
    }
    // SAFETY: the siginfo of a SIGSEGV or SIGBUS raised by an access has an address.
    let address = unsafe { information.si_addr() } as usize;
    LAST_FAULT.set(HostFault { address, signal: information.si_signo, code: information.si_code });
    *pc = &raw const pathlength_access_fault as u64;
    true
}
