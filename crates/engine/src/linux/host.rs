//! System calls to the host's kernel, and the host's signals.
//!
//! A signal that arrives for the guest is only recorded: the handler keeps what the kernel told,
//! blocks all further signals, and sets [`pending`]. The guest's handler is entered later, between
//! two instructions (see `delivery`). A call that may block must not begin when a signal has been
//! recorded, or the guest would sleep through it: [`wait`] tests the flag and makes the call in a
//! short assembly routine, and the handler, when it interrupts that routine between test and call,
//! moves on to the routine's exit "not begun".

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use super::errno::Errno;

static PENDING: AtomicBool = AtomicBool::new(false);
/// The host's thread that runs the guest.
static GUEST_THREAD: AtomicI32 = AtomicI32::new(0);

struct Recorded(UnsafeCell<Information>);
// SAFETY: written by the handler only while IS_RECORDED is false, read by the guest's thread only
// while it is true, and the handler runs in that same thread.
unsafe impl Sync for Recorded {}
/// True if PENDING is because of RECORDED.
static IS_RECORDED: AtomicBool = AtomicBool::new(false);
static RECORDED: Recorded = Recorded(UnsafeCell::new(Information([0; 16])));

/// A host siginfo as its 128 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information(pub [u64; 16]);

impl Information {
    /// A signal with its code and the fields behind it.
    pub fn new(signal: i32, code: i32, fields: &[u64]) -> Information {
        let mut words = [0; 16];
        words[0] = signal as u64;
        words[1] = u64::from(code as u32);
        words[2..2 + fields.len()].copy_from_slice(fields);
        Information(words)
    }

    /// The signal's number.
    pub fn signal(&self) -> i32 {
        self.0[0] as i32
    }

    /// `si_code`.
    pub fn code(&self) -> i32 {
        self.0[1] as i32
    }
}

/// True if a signal was recorded for the guest.
#[inline]
pub fn pending() -> bool {
    PENDING.load(Ordering::Relaxed)
}

/// Takes the recorded signal. All signals stay blocked until [`set_mask`].
pub fn take() -> Option<Information> {
    if !pending() {
        return None;
    }
    PENDING.store(false, Ordering::Release);
    let taken = if IS_RECORDED.load(Ordering::Relaxed) {
        // SAFETY: the handler that would write is blocked since it recorded this one.
        let information = unsafe { *RECORDED.0.get() };
        IS_RECORDED.store(false, Ordering::Release);
        Some(information)
    } else {
        let mut faults = SENT_FAULTS.iter().zip(FAULT_SIGNALS);
        let sent = faults.find(|(sent, _)| sent.0.swap(false, Ordering::Acquire));
        sent.map(|(sent, signal)| Information::new(signal, libc::SI_USER, &[sent.1.load(Ordering::Relaxed)]))
    };
    if SENT_FAULTS.iter().any(|sent| sent.0.load(Ordering::Relaxed)) {
        PENDING.store(true, Ordering::Release);
    }
    taken
}

/// True if the signal's number is one that memory's faults have.
pub fn is_fault(signal: i32) -> bool {
    FAULT_SIGNALS.contains(&signal)
}

/// SIGSEGV and SIGBUS that somebody sent: whether, and who (`si_pid` and `si_uid`).
static SENT_FAULTS: [(AtomicBool, AtomicU64); 2] = [const { (AtomicBool::new(false), AtomicU64::new(0)) }; 2];
const FAULT_SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Notes a SIGSEGV or SIGBUS that somebody sent; called by the handler that memory's faults have.
pub fn note_sent_fault(information: &libc::siginfo_t, context: &mut libc::ucontext_t) {
    // SAFETY: a siginfo_t is 128 bytes of plain data, aligned to 8.
    let information = unsafe { &*(&raw const *information).cast::<Information>() };
    if let Some(index) = FAULT_SIGNALS.iter().position(|&signal| signal == information.signal()) {
        SENT_FAULTS[index].1.store(information.0[2], Ordering::Relaxed);
        SENT_FAULTS[index].0.store(true, Ordering::Release);
        PENDING.store(true, Ordering::Release);
        leave_wait(context);
    }
}

/// Makes the routine's labels visible to every object file of the crate, and to nobody outside.
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

/// Makes a system call that does not block for long.
///
/// # Safety
/// The arguments must be such that the kernel touches no memory of the engine beyond what the
/// caller owns.
pub unsafe fn call(number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { Err(Errno::last()) } else { Ok(result as u64) }
}

/// Makes a system call that may block. Fails with EINTR if a signal interrupted it, with
/// [`Errno::RESTART_ALWAYS`] if one was recorded before it began.
///
/// # Safety
/// As for [`call`].
pub unsafe fn wait(number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Errno> {
    // SAFETY: the caller's promise; the routine clobbers caller-saved registers only.
    let result = unsafe { pathlength_wait(number, &arguments, &PENDING) };
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as u64) }
}

extern "C" fn record(signal: i32, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes valid pointers; only async-signal-safe calls are made; the labels
    // are addresses inside this program's text.
    unsafe {
        let information = &*information.cast::<Information>();
        let thread = libc::syscall(libc::SYS_gettid) as i32;
        let guest = GUEST_THREAD.load(Ordering::Relaxed);
        if thread != guest {
            // Another thread of the engine caught it: hand it to the guest's.
            requeue_to(guest, information);
            return;
        }
        if information.code() > 0 && [libc::SIGILL, libc::SIGFPE, libc::SIGTRAP].contains(&signal) {
            // The engine's own instruction failed: let it take its usual course.
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        *RECORDED.0.get() = *information;
        IS_RECORDED.store(true, Ordering::Relaxed);
        PENDING.store(true, Ordering::Release);
        let context = &mut *context.cast::<libc::ucontext_t>();
        (&raw mut context.uc_sigmask).cast::<u64>().write(all_blockable());
        leave_wait(context);
    }
}

/// If a handler interrupted [`wait`] before its call began, it shall not begin.
fn leave_wait(context: &mut libc::ucontext_t) {
    let pc = crate::access::program_counter(context);
    let routine = &raw const pathlength_wait_begin as u64..&raw const pathlength_wait_end as u64;
    if routine.contains(pc) {
        *pc = &raw const pathlength_wait_not_begun as u64;
    }
}

/// The bit of a signal in a mask.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Every signal that may be blocked: not SIGSEGV and SIGBUS, by which memory reports its faults.
fn all_blockable() -> u64 {
    !(bit(libc::SIGSEGV) | bit(libc::SIGBUS))
}

/// A host's mask without the signals that must not be blocked.
pub fn blockable(mask: u64) -> u64 {
    mask & all_blockable()
}

/// Sets the host's signal mask of the guest's thread, and returns the one before.
pub fn set_mask(mask: u64) -> u64 {
    let new = blockable(mask);
    let mut old = 0u64;
    let arguments = [libc::SIG_SETMASK as u64, &raw const new as u64, &raw mut old as u64, 8, 0, 0];
    // SAFETY: both pointers are to 8 bytes of this frame.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    old
}

/// Blocks every signal (but SIGSEGV and SIGBUS), and returns the mask before.
pub fn block_all() -> u64 {
    set_mask(u64::MAX)
}

/// Makes the calling thread the one that runs the guest.
pub fn adopt_thread() {
    // SAFETY: no arguments.
    GUEST_THREAD.store(unsafe { libc::syscall(libc::SYS_gettid) } as i32, Ordering::Relaxed);
}

/// Queues a recorded signal anew, to be delivered when it is no longer blocked.
pub fn requeue(information: &Information) {
    requeue_to(GUEST_THREAD.load(Ordering::Relaxed), information);
}

fn requeue_to(thread: i32, information: &Information) {
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            libc::getpid(),
            thread,
            information.signal(),
            information as *const Information,
        );
    }
}

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

/// Sets what the host does upon a signal; `flags` may hold SA_NOCLDSTOP and SA_NOCLDWAIT.
pub fn set_disposition(signal: i32, disposition: Disposition, flags: i32) {
    // SAFETY: `record` is async-signal-safe and has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = match disposition {
            Disposition::Default => libc::SIG_DFL,
            Disposition::Ignore => libc::SIG_IGN,
            Disposition::Record => record as *const () as usize,
        };
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
        libc::sigfillset(&mut action.sa_mask);
        libc::sigdelset(&mut action.sa_mask, libc::SIGSEGV);
        libc::sigdelset(&mut action.sa_mask, libc::SIGBUS);
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// True if the host ignores the signal, as its parent may have asked.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid and only written to.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
