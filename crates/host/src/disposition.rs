//! The host's disposition of a signal.

use crate::mailbox::record;
use crate::signal::all_blockable;
use crate::system_call::call;

/// The host's disposition of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// SIG_DFL.
    Default,
    /// SIG_IGN.
    Ignore,
    /// The handler records it.
    Record,
}

/// `struct sigaction` of the kernel (asm-generic/signal.h). The C library's version refuses signals 32 and 33, which
/// the guest's C library uses to cancel threads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelAction {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: u64,
}

impl KernelAction {
    /// SIG_DFL.
    pub(crate) const DEFAULT: KernelAction =
        KernelAction { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };

    /// Sets this action for a signal and returns the previous action. If the signal does not exist or cannot be
    /// caught, nothing changes.
    ///
    /// # Safety
    /// A handler must be async-signal-safe and have the signature that the flags ask for.
    pub(crate) unsafe fn install(&self, signal: i32) -> KernelAction {
        let mut before = KernelAction::DEFAULT;
        let arguments = [signal as u64, &raw const *self as u64, &raw mut before as u64, 8, 0, 0];
        // SAFETY: both pointers are to actions that outlive the call; the caller guarantees the handler.
        let _ = unsafe { call(libc::SYS_rt_sigaction, arguments) };
        before
    }
}

/// The flag that the structure has a restorer.
#[cfg(target_arch = "x86_64")]
pub(crate) const SA_RESTORER: u64 = 0x0400_0000;

/// The flag that the structure has a restorer, and the restorer.
#[cfg(target_arch = "x86_64")]
fn restorer() -> (u64, usize) {
    (SA_RESTORER, pathlength_sigreturn as *const () as usize)
}

/// This architecture's kernel provides the restorer.
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

/// Sets the host's disposition of a signal; `flags` may contain SA_NOCLDSTOP and SA_NOCLDWAIT.
pub fn set_disposition(signal: i32, disposition: Disposition, flags: i32) {
    let handler = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignore => libc::SIG_IGN,
        Disposition::Record => record as *const () as usize,
    };
    let (flag, restorer) = restorer();
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | flags) as u32;
    let action = KernelAction { handler, flags: u64::from(flags) | flag, restorer, mask: all_blockable() };
    // SAFETY: `record` is async-signal-safe and has the signature for SA_SIGINFO.
    unsafe { action.install(signal) };
}
