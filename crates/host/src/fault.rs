//! SIGSEGV and SIGBUS: one handler for the process, which asks the handlers that others [register](register).
//!
//! A crate that expects faults (accesses to guest memory, compiled code) registers a function that recognises its
//! own and resolves them. A fault that none of them recognises is a bug of the engine and takes the course it had
//! before. Signals with the same numbers that somebody sent arrive at any instruction, within an access as well:
//! no handler of faults sees them, but the mailbox's.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Looks at a SIGSEGV or SIGBUS and, if it is its own, changes the context in which the thread continues and
/// returns true. Must be async-signal-safe.
pub type Handler = fn(&libc::siginfo_t, &mut libc::ucontext_t) -> bool;

/// More than there are crates that register one.
const MOST_HANDLERS: usize = 8;

/// Of faults: in the order in which they were registered, null behind the last.
static HANDLERS: [AtomicPtr<()>; MOST_HANDLERS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_HANDLERS];

/// Of signals that were sent.
static SENT_HANDLER: [AtomicPtr<()>; 1] = [AtomicPtr::new(std::ptr::null_mut())];

/// The actions before ours, for SIGSEGV and SIGBUS.
static mut PREVIOUS: [libc::sigaction; 2] =
    // SAFETY: an all-zero sigaction is a valid value (SIG_DFL); it is replaced before use.
    unsafe { std::mem::zeroed() };

/// Registers a handler, unless it is registered already, and installs the signal handlers with the first one.
pub fn register(handler: Handler) {
    register_in(&HANDLERS, handler);
}

/// Registers the handler of SIGSEGV and SIGBUS that were sent, and not raised by an access.
pub(crate) fn register_sent(handler: Handler) {
    register_in(&SENT_HANDLER, handler);
}

fn register_in(slots: &[AtomicPtr<()>], handler: Handler) {
    let new = handler as *mut ();
    for slot in slots {
        let free = std::ptr::null_mut();
        match slot.compare_exchange(free, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return install(),
            Err(present) if present == new => return,
            Err(_) => {}
        }
    }
    panic!("more than {} handlers", slots.len());
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        for (slot, signal) in [libc::SIGSEGV, libc::SIGBUS].into_iter().enumerate() {
            // SAFETY: `on_fault` is async-signal-safe; PREVIOUS is written only here, under the
            // Once, before the handler that reads it can run.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                // Signals that somebody sends in quick succession wait, or they would fill the handler's stack.
                libc::sigfillset(&raw mut action.sa_mask);
                let previous = &raw mut PREVIOUS[slot];
                libc::sigaction(signal, &action, previous);
            }
        }
    });
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    allow_unaligned();
    // SAFETY: the kernel passes valid pointers to a SA_SIGINFO handler.
    let (info, context) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    // The kernel's own codes are positive (sigaction(2)).
    let handlers = if info.si_code > 0 { &HANDLERS[..] } else { &SENT_HANDLER[..] };
    for slot in handlers {
        let handler = slot.load(Ordering::Acquire);
        if handler.is_null() {
            break;
        }
        // SAFETY: only `register_in` writes the slots, and it writes handlers.
        let handler = unsafe { std::mem::transmute::<*mut (), Handler>(handler) };
        if handler(info, context) {
            return;
        }
    }
    let slot = usize::from(signal == libc::SIGBUS);
    // SAFETY: `install` wrote PREVIOUS before this handler could run; sigaction is async-signal-safe.
    unsafe { libc::sigaction(signal, &raw const PREVIOUS[slot], std::ptr::null_mut()) };
}

/// Lets a signal handler access memory as the host's code does: compiled guest code that it interrupted may
/// have turned alignment checks on.
#[inline(always)]
pub fn allow_unaligned() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: clears the flag of alignment checks and leaves all else as it is.
    unsafe {
        std::arch::asm!("pushfq", "and qword ptr [rsp], {}", "popfq", const !(1i32 << 18));
    }
}

/// The program counter of the interrupted code, where it also continues.
#[cfg(target_arch = "x86_64")]
pub fn program_counter(context: &mut libc::ucontext_t) -> &mut u64 {
    let slot = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    // SAFETY: i64 and u64 have the same layout.
    unsafe { &mut *(slot as *mut i64).cast::<u64>() }
}

/// The program counter of the interrupted code, where it also continues.
#[cfg(target_arch = "aarch64")]
pub fn program_counter(context: &mut libc::ucontext_t) -> &mut u64 {
    &mut context.uc_mcontext.pc
}
