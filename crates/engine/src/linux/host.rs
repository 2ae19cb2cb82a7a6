//! System calls to the host's kernel, and the host's signals.
//!
//! A signal that arrives for the guest is only recorded, in the [`Mailbox`] of the thread that it
//! arrived in: the handler keeps what the kernel told, blocks all further signals, and raises the
//! thread's flag. The guest's handler is entered later, between two instructions (see `delivery`). A
//! call that may block must not begin when the flag is up, or the guest would sleep through it:
//! [`wait`] tests the flag and makes the call in a short assembly routine, and the handler, when it
//! interrupts that routine between test and call, moves on to the routine's exit "not begun".

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::errno::Errno;

/// Says whether something waits for a thread: a signal, or news from another thread.
struct Flag {
    is_up: AtomicBool,
    /// Where compiled code looks, if some is at work: how far down its stack may reach. Nowhere, if
    /// something waits.
    limit: AtomicPtr<AtomicUsize>,
}

impl Flag {
    const fn new() -> Flag {
        Flag { is_up: AtomicBool::new(false), limit: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn raise(&self) {
        self.is_up.store(true, Ordering::SeqCst);
        // SAFETY: null, or what lives for as long as compiled code runs; see `set_limit`.
        if let Some(limit) = unsafe { self.limit.load(Ordering::SeqCst).as_ref() } {
            limit.store(usize::MAX, Ordering::SeqCst);
        }
    }
}

/// Where compiled code of the calling thread looks from now on: `limit`, which is `free` when nothing waits.
/// Null for nowhere.
///
/// # Safety
/// It must live until the next call, or the end of the thread.
pub unsafe fn set_limit(limit: *mut AtomicUsize, free: usize) {
    MAILBOX.with(|mailbox| {
        mailbox.flag.limit.store(limit, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        if let Some(limit) = unsafe { limit.as_ref() } {
            limit.store(free, Ordering::SeqCst);
            // Whoever raised the flag before may not have known where to tell.
            if mailbox.flag.is_up.load(Ordering::SeqCst) {
                limit.store(usize::MAX, Ordering::SeqCst);
            }
        }
    });
}

/// What the host's handlers, and other threads, leave for a thread of the guest.
struct Mailbox {
    flag: Flag,
    /// True if `recorded` holds a signal.
    is_recorded: AtomicBool,
    /// Written by the handler only while `is_recorded` is false, read by the thread only while it is
    /// true; the handler runs in the same thread.
    recorded: UnsafeCell<Information>,
    /// SIGSEGV and SIGBUS that somebody sent: whether, and who (`si_pid` and `si_uid`).
    sent_faults: [(AtomicBool, AtomicU64); 2],
    /// The thread runs the guest; any other thread of the engine hands its signals on.
    is_guest: Cell<bool>,
}

thread_local! {
    static MAILBOX: Mailbox = const {
        Mailbox {
            flag: Flag::new(),
            is_recorded: AtomicBool::new(false),
            recorded: UnsafeCell::new(Information([0; 16])),
            sent_faults: [const { (AtomicBool::new(false), AtomicU64::new(0)) }; 2],
            is_guest: Cell::new(false),
        }
    };
}

/// The thread of the guest that gets what other threads of the engine catch.
static FIRST_THREAD: AtomicI32 = AtomicI32::new(0);

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

/// True if something waits for the calling thread: the guest must be left.
#[inline]
pub fn pending() -> bool {
    MAILBOX.with(|mailbox| mailbox.flag.is_up.load(Ordering::Relaxed))
}

/// Makes the calling thread leave the guest soon.
pub fn notice() {
    MAILBOX.with(|mailbox| mailbox.flag.raise());
}

/// True if a signal waits for the calling thread.
pub fn is_recorded() -> bool {
    MAILBOX.with(|mailbox| {
        mailbox.is_recorded.load(Ordering::Relaxed)
            || mailbox.sent_faults.iter().any(|sent| sent.0.load(Ordering::Relaxed))
    })
}

/// The signal that waits for the calling thread, if one does.
pub fn recorded() -> Option<Information> {
    MAILBOX.with(|mailbox| {
        let is_recorded = mailbox.is_recorded.load(Ordering::Relaxed);
        // SAFETY: the handler that would write is blocked since it recorded this one.
        is_recorded.then(|| unsafe { *mailbox.recorded.get() })
    })
}

/// Lowers the flag and takes a recorded signal. All signals stay blocked until [`set_mask`].
pub fn take() -> Option<Information> {
    MAILBOX.with(|mailbox| {
        if !mailbox.flag.is_up.swap(false, Ordering::AcqRel) {
            return None;
        }
        let taken = if mailbox.is_recorded.load(Ordering::Relaxed) {
            // SAFETY: the handler that would write is blocked since it recorded this one.
            let information = unsafe { *mailbox.recorded.get() };
            mailbox.is_recorded.store(false, Ordering::Release);
            Some(information)
        } else {
            let mut faults = mailbox.sent_faults.iter().zip(FAULT_SIGNALS);
            let sent = faults.find(|(sent, _)| sent.0.swap(false, Ordering::Acquire));
            let sender = |sent: &(AtomicBool, AtomicU64)| [sent.1.load(Ordering::Relaxed)];
            sent.map(|(sent, signal)| Information::new(signal, libc::SI_USER, &sender(sent)))
        };
        if mailbox.sent_faults.iter().any(|sent| sent.0.load(Ordering::Relaxed)) {
            mailbox.flag.raise();
        }
        taken
    })
}

/// The signals by which memory reports its faults.
const FAULT_SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// True if the signal's number is one that memory's faults have.
pub fn is_fault(signal: i32) -> bool {
    FAULT_SIGNALS.contains(&signal)
}

/// `si_code` of the SIGBUS by which one thread of the engine makes another leave the guest, or a
/// call that blocks. The host's kernel has no such code.
const SUMMONS: i32 = -0x5041;

/// `si_code` of the SIGBUS by which another process makes a thread look who wants something: see
/// `recording::attach`.
const CALL: i32 = -0x5042;

/// Nobody, in [`CALLER`].
const NOBODY: i64 = -1;

/// Who sent it last, 0 for nobody in particular.
static CALLER: AtomicI64 = AtomicI64::new(NOBODY);

/// Makes a thread of a process on this engine look who wants something: `caller`, or 0.
pub fn summon(process: u32, thread: i32, caller: u32) {
    let information = Information::new(libc::SIGBUS, CALL, &[caller.into()]);
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, libc::SIGBUS, &raw const information);
    }
}

/// Whether somebody wants something, and that was not asked since.
#[inline]
pub fn is_summoned() -> bool {
    CALLER.load(Ordering::Relaxed) != NOBODY
}

/// Who wants something, if that was not asked since.
#[inline]
pub fn take_summons() -> Option<u32> {
    if !is_summoned() {
        return None;
    }
    u32::try_from(CALLER.swap(NOBODY, Ordering::Relaxed)).ok()
}

/// Notes a SIGSEGV or SIGBUS that somebody sent; called by the handler that memory's faults have.
pub fn note_sent_fault(information: &libc::siginfo_t, context: &mut libc::ucontext_t) {
    // SAFETY: a siginfo_t is 128 bytes of plain data, aligned to 8.
    let information = unsafe { &*(&raw const *information).cast::<Information>() };
    MAILBOX.with(|mailbox| {
        if information.code() == CALL {
            if mailbox.is_guest.get() {
                CALLER.fetch_max(information.0[2] as u32 as i64, Ordering::Relaxed);
                mailbox.flag.raise();
                leave_wait(context);
            }
            return;
        }
        let index = FAULT_SIGNALS.iter().position(|&signal| signal == information.signal());
        if let Some((sent, sender)) = index.map(|index| &mailbox.sent_faults[index])
            && information.code() != SUMMONS
        {
            if !mailbox.is_guest.get() {
                requeue_to(FIRST_THREAD.load(Ordering::Relaxed), information);
                return;
            }
            sender.store(information.0[2], Ordering::Relaxed);
            sent.store(true, Ordering::Release);
        }
        mailbox.flag.raise();
        leave_wait(context);
    });
}

/// A thread of the guest, as other threads reach it.
#[derive(Clone, Copy)]
pub struct Address {
    /// The host's id of it.
    pub id: i32,
    flag: *const Flag,
}

// SAFETY: what is behind the pointer is atomic; that it is still there is what `call` asks for.
unsafe impl Send for Address {}

impl Address {
    /// Makes the thread look at the news, but not before a call that blocks has returned.
    ///
    /// # Safety
    /// The thread must not have ended.
    pub unsafe fn notify(self) {
        // SAFETY: the caller's promise: the thread and with it its mailbox exist.
        unsafe { (*self.flag).raise() };
    }

    /// Makes the thread look at the news at once.
    ///
    /// # Safety
    /// As for [`Address::notify`].
    pub unsafe fn summon(self) {
        // SAFETY: the caller's promise.
        unsafe { self.notify() };
        requeue_to(self.id, &Information::new(libc::SIGBUS, SUMMONS, &[]));
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
    let result = MAILBOX.with(|mailbox| unsafe { pathlength_wait(number, &arguments, &mailbox.flag.is_up) });
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as u64) }
}

extern "C" fn record(signal: i32, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    crate::access::allow_unaligned();
    // SAFETY: the kernel passes valid pointers; only async-signal-safe calls are made; the labels
    // are addresses inside this program's text.
    unsafe {
        let information = &*information.cast::<Information>();
        let mailbox = &*MAILBOX.with(|mailbox| &raw const *mailbox);
        if !mailbox.is_guest.get() {
            // Another thread of the engine caught it: hand it to the guest's.
            requeue_to(FIRST_THREAD.load(Ordering::Relaxed), information);
            return;
        }
        if information.code() > 0 && [libc::SIGILL, libc::SIGFPE, libc::SIGTRAP].contains(&signal) {
            // The engine's own instruction failed: let it take its usual course.
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        *mailbox.recorded.get() = *information;
        mailbox.is_recorded.store(true, Ordering::Relaxed);
        mailbox.flag.raise();
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

/// Sets the host's signal mask of the calling thread, and returns the one before.
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

/// Does something while every signal is blocked, in the threads that begin meanwhile too.
pub fn without_signals<T>(what: impl FnOnce() -> T) -> T {
    let mask = block_all();
    let result = what();
    set_mask(mask);
    result
}

/// Makes the calling thread one that runs the guest; the first, if it is the only one.
pub fn adopt_thread(first: bool) -> Address {
    // SAFETY: no arguments.
    let id = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    if first {
        FIRST_THREAD.store(id, Ordering::Relaxed);
    }
    MAILBOX.with(|mailbox| {
        mailbox.is_guest.set(true);
        Address { id, flag: &mailbox.flag }
    })
}

/// Queues a recorded signal anew, to be delivered when it is no longer blocked.
pub fn requeue(information: &Information) {
    let process = std::process::id();
    // What has a code that is not negative was sent to the process: another thread may have it. But
    // the kernel lets only the first thread send such a one (`do_rt_sigqueueinfo`).
    let arguments = [process.into(), information.signal() as u64, &raw const *information as u64, 0, 0, 0];
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    let sent = information.code() >= 0 && unsafe { call(libc::SYS_rt_sigqueueinfo, arguments) }.is_ok();
    if !sent {
        // SAFETY: no arguments.
        requeue_to(unsafe { libc::syscall(libc::SYS_gettid) } as i32, information);
    }
}

/// Sends a signal to one thread of this process, with what is known about it if the kernel allows.
fn requeue_to(thread: i32, information: &Information) {
    let (process, signal) = (std::process::id(), information.signal());
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    unsafe {
        let information = information as *const Information;
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, information) != 0 {
            libc::syscall(libc::SYS_tgkill, process, thread, signal);
        }
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

/// Names the calling thread, as `/proc` and `ps` show it.
pub fn name_thread(name: &OsStr) {
    let Ok(name) = CString::new(name.as_bytes()) else { return };
    // SAFETY: the name is NUL-terminated; the host's kernel takes its first 15 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// True if the host ignores the signal, as its parent may have asked.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid and only written to.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
