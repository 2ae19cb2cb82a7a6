//! What the host does upon a signal.

use crate::mailbox::record;
use crate::signal::all_blockable;
use crate::system_call::call;

/// What the host does upon a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// SIG_DFL.
    Default,
    /// SIG_IGN.
    Ignore,
    /// Records it.
    Record,
}

/// `struct sigaction` as the kernel has it (asm-generic/signal.h). The C library's would keep signals
/// 32 and 33, by which the guest's C library cancels threads, for itself.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// The flag that says there is a restorer, and the restorer.
#[cfg(target_arch = "x86_64")]
fn restorer() -> (u64, usize) {
    const SA_RESTORER: u64 = 0x0400_0000;
    (SA_RESTORER, pathlength_sigreturn as *const () as usize)
}

/// The kernel has its own.
#[cfg(target_arch = "aarch64")]
fn restorer() -> (u64, usize) {
    (0, 0)
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".text",
    ".globl pathlength_sigreturn",
    ".hidden pathlength_sigreturn",
    ".p2align 4",
    "pathlength_sigreturn: mov eax, 15",
    "syscall",
);

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn pathlength_sigreturn();
}

/// Sets what the host does upon a signal; `flags` may hold SA_NOCLDSTOP and SA_NOCLDWAIT.
pub fn set_disposition(signal: i32, disposition: Disposition, flags: i32) {
    let handler = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignore => libc::SIG_IGN,
        Disposition::Record => record as *const () as usize,
    };
    let (flag, restorer) = restorer();
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | flags) as u32;
    let action = KernelAction { handler, flags: u64::from(flags) | flag, restorer, mask: all_blockable() };
    let arguments = [signal as u64, &raw const action as u64, 0, 8, 0, 0];
    // SAFETY: `record` is async-signal-safe and has the signature that SA_SIGINFO asks for. There is
    // no such signal, or it cannot be caught: then nothing changes.
    let _ = unsafe { call(libc::SYS_rt_sigaction, arguments) };
}
