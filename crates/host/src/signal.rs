//! The host's signals: masks, siginfo, and sending.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use crate::system_call::call;

/// A host siginfo as its 128 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalInformation(pub [u64; 16]);

impl SignalInformation {
    /// A siginfo with signal, code and the fields that follow.
    pub fn new(signal: i32, code: i32, fields: &[u64]) -> SignalInformation {
        let mut words = [0; 16];
        words[0] = signal as u64;
        words[1] = u64::from(code as u32);
        words[2..2 + fields.len()].copy_from_slice(fields);
        SignalInformation(words)
    }

    /// The signal's number.
    pub fn signal(&self) -> i32 {
        self.0[0] as i32
    }

    /// `si_code`.
    pub fn code(&self) -> i32 {
        self.0[1] as i32
    }

    /// The siginfo to send for one whose code says that the host's kernel found a fault, while a program sends it: a code
    /// that the kernel does not use, so that it passes the fields on as they are.
    pub fn disguised(mut self) -> SignalInformation {
        if self.code() > 0 && SYNCHRONOUS.contains(&self.signal()) {
            self.0[1] = u64::from((self.code() & FORGED_BITS | i32::MIN) as u32);
        }
        self
    }

    /// The siginfo as its sender meant it.
    pub fn undisguised(mut self) -> SignalInformation {
        if self.code() <= i32::MIN | FORGED_BITS && SYNCHRONOUS.contains(&self.signal()) {
            self.0[1] = u64::from((self.code() & FORGED_BITS) as u32);
        }
        self
    }
}

/// The signals of faults.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGBUS, libc::SIGSEGV, libc::SIGSYS];

/// The bits of a [disguised](SignalInformation::disguised) code; all codes of the kernel have fewer.
const FORGED_BITS: i32 = (1 << 30) - 1;

/// The bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Every signal that may be blocked: all but SIGSEGV and SIGBUS, which report memory faults.
pub fn all_blockable() -> u64 {
    !(bit(libc::SIGSEGV) | bit(libc::SIGBUS))
}

/// A host's mask without the signals that must not be blocked.
pub fn blockable(mask: u64) -> u64 {
    mask & all_blockable()
}

/// Sets the signal mask of the calling thread and returns the previous one.
pub fn set_mask(mask: u64) -> u64 {
    set_whole_mask(blockable(mask))
}

/// The same with SIGSEGV and SIGBUS: while one is blocked, no access to guest memory may fail.
pub(crate) fn set_whole_mask(new: u64) -> u64 {
    let mut old = 0u64;
    let arguments = [libc::SIG_SETMASK as u64, &raw const new as u64, &raw mut old as u64, 8, 0, 0];
    // SAFETY: both pointers are to 8 bytes of this frame.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    old
}

/// Blocks every signal but SIGSEGV and SIGBUS, and returns the previous mask.
pub fn block_all() -> u64 {
    set_mask(u64::MAX)
}

/// Runs `what` while every signal is blocked. Threads that it starts inherit the mask.
pub fn without_signals<T>(what: impl FnOnce() -> T) -> T {
    let mask = block_all();
    let result = what();
    set_mask(mask);
    result
}

/// Queues a recorded signal again, to be delivered when it is no longer blocked.
pub fn requeue(information: &SignalInformation) {
    let process = std::process::id();
    // A signal whose code is not negative was sent to the process, so that any thread may take it. The kernel lets
    // only the first thread send it again with its code (`do_rt_sigqueueinfo`).
    let sent = information.disguised();
    let arguments = [process.into(), sent.signal() as u64, &raw const sent as u64, 0, 0, 0];
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    let sent = information.code() >= 0 && unsafe { call(libc::SYS_rt_sigqueueinfo, arguments) }.is_ok();
    if !sent {
        // SAFETY: no arguments.
        requeue_to(unsafe { libc::syscall(libc::SYS_gettid) } as i32, information);
    }
}

/// Sends a signal to one thread of this process, with its siginfo if the kernel permits that.
pub fn requeue_to(thread: i32, information: &SignalInformation) {
    let (process, signal, sent) = (std::process::id(), information.signal(), information.disguised());
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    unsafe {
        let information = &raw const sent;
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, information) != 0 {
            libc::syscall(libc::SYS_tgkill, process, thread, signal);
        }
    }
}

/// Sets the name of the calling thread, which `/proc` and `ps` show.
pub fn name_thread(name: &OsStr) {
    let Ok(name) = CString::new(name.as_bytes()) else { return };
    // SAFETY: the name is NUL-terminated; the host's kernel takes its first 15 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// True if the host ignores the signal, as the parent process may have requested.
pub fn is_ignored(signal: i32) -> bool {
    // `struct sigaction` of the kernel, which begins with the handler. The C library's function refuses signals 32 and 33.
    let mut action = [0u64; 4];
    let arguments = [signal as u64, 0, action.as_mut_ptr() as u64, 8, 0, 0];
    // SAFETY: the kernel writes the 32 bytes of an action.
    let known = unsafe { call(libc::SYS_rt_sigaction, arguments) }.is_ok();
    known && action[0] == libc::SIG_IGN as u64
}
