//! SIGSEGV and SIGBUS: the process has one signal handler, which calls the [registered](register) fault handlers.
//!
//! Each crate that expects faults (accesses to guest memory, compiled code) registers a handler for its own. A fault
//! that no handler accepts is a bug of the engine, for which the previous action is taken. A SIGSEGV or SIGBUS that
//! another process or thread sent can arrive at any instruction, including an access; it is passed only to the
//! mailbox's handler.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Handles a SIGSEGV or SIGBUS if it is the handler's own: changes the context in which the thread continues, and
/// returns true. Must be async-signal-safe.
pub type Handler = fn(&libc::siginfo_t, &mut libc::ucontext_t) -> bool;

/// Maximum number of registered handlers.
const MOST_HANDLERS: usize = 8;

/// The handlers of faults in the order of their registration, followed by nulls.
static HANDLERS: [AtomicPtr<()>; MOST_HANDLERS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_HANDLERS];

/// The handler of signals that were sent.
static SENT_HANDLER: [AtomicPtr<()>; 1] = [AtomicPtr::new(std::ptr::null_mut())];

/// The previous actions for SIGSEGV and SIGBUS.
static mut PREVIOUS: [libc::sigaction; 2] =
    // SAFETY: an all-zero sigaction is a valid value (SIG_DFL); it is replaced before use.
    unsafe { std::mem::zeroed() };

/// Registers a handler, unless it is registered already. The first call installs the signal handlers.
pub fn register(handler: Handler) {
    register_in(&HANDLERS, handler);
}

/// Registers the handler of SIGSEGV and SIGBUS signals that were sent, rather than raised by an access.
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
                // All signals are blocked in the handler: several sent in quick succession must not nest and fill
                // its stack.
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
    // Codes of the kernel itself are positive (sigaction(2)).
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

/// Clears the flag of alignment checks, which interrupted compiled code may have set, so that a signal handler can
/// make unaligned accesses.
#[inline(always)]
pub fn allow_unaligned() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: clears the flag of alignment checks and changes nothing else.
    unsafe {
        std::arch::asm!("pushfq", "and qword ptr [rsp], {}", "popfq", const !(1i32 << 18));
    }
}

/// The program counter of the interrupted code, where execution continues.
#[cfg(target_arch = "x86_64")]
pub fn program_counter(context: &mut libc::ucontext_t) -> &mut u64 {
    let slot = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    // SAFETY: i64 and u64 have the same layout.
    unsafe { &mut *(slot as *mut i64).cast::<u64>() }
}

/// The program counter of the interrupted code, where execution continues.
#[cfg(target_arch = "aarch64")]
pub fn program_counter(context: &mut libc::ucontext_t) -> &mut u64 {
    &mut context.uc_mcontext.pc
}
