//! Signals by which users end a command, while it waits for a program.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Signals by which users end a command.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Signals that came.
static SEEN: AtomicU32 = AtomicU32::new(0);
/// The process that gets them, if there is one.
static RECEIVER: AtomicI32 = AtomicI32::new(0);

/// While a value exists, those signals do not end this process, but are those of the program. The terminal sends its own to
/// both.
pub struct Forwarding(Vec<(libc::c_int, libc::sigaction)>);

impl Forwarding {
    /// Begins to keep signals.
    pub fn begin() -> Forwarding {
        SEEN.store(0, Ordering::Relaxed);
        RECEIVER.store(0, Ordering::Relaxed);
        let install = |signal| {
            // SAFETY: both structures are valid as zeros, and the handler calls only kill, which handlers may.
            unsafe {
                let mut former: libc::sigaction = std::mem::zeroed();
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut former);
                // As nohup leaves it.
                if former.sa_sigaction == libc::SIG_IGN {
                    return None;
                }
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = forward;
                action.sa_sigaction = handler as libc::sighandler_t;
                action.sa_flags = libc::SA_SIGINFO;
                libc::sigaction(signal, &action, std::ptr::null_mut());
                Some((signal, former))
            }
        };
        Forwarding(SIGNALS.into_iter().filter_map(install).collect())
    }

    /// They are sent to this process from now on; to none, if it is 0.
    pub fn to(&self, process: libc::pid_t) {
        RECEIVER.store(process, Ordering::Relaxed);
    }

    /// Signals that came.
    pub fn seen(&self) -> u32 {
        SEEN.load(Ordering::Relaxed)
    }

    /// Begins to count anew.
    pub fn forget(&self) {
        SEEN.store(0, Ordering::Relaxed);
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, former) in &self.0 {
            // SAFETY: the action is the one that the system returned.
            unsafe { libc::sigaction(*signal, former, std::ptr::null_mut()) };
        }
    }
}

/// `si_code` of a signal that the kernel sends, such as the terminal's.
const SI_KERNEL: libc::c_int = 0x80;

extern "C" fn forward(signal: libc::c_int, information: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    let receiver = RECEIVER.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a valid structure; kill accesses no memory.
    unsafe {
        if receiver > 0 && (*information).si_code != SI_KERNEL {
            libc::kill(receiver, signal);
        }
    }
}
