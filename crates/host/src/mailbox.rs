//! The mailbox of each guest thread: what signal handlers and other threads leave for it.
//!
//! The handler of a signal for the guest only records it in the mailbox of the receiving thread: it keeps the
//! siginfo, blocks all other signals, and sets the thread's flag. The guest's handler is entered later, between two
//! instructions. Other threads and processes set the flag, too: they **kick** the thread, so that it leaves compiled
//! code or a blocking system call, and checks what has changed.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicUsize, Ordering};

use crate::errno::Errno;
use crate::fault;
use crate::signal::{SignalInformation, all_blockable, block_all, requeue_to};
use crate::signal_stack;
use crate::system_call::{is_interrupted, leave_wait, wait_unless};

/// Whether something is pending for a thread: a signal, or a kick by another thread.
struct Flag {
    is_up: AtomicBool,
    /// The stack limit with which the thread's compiled code compares its stack pointer; null while no compiled code
    /// runs. It is set above every stack pointer when something is pending, so that compiled code needs no other
    /// check.
    stack_limit: AtomicPtr<AtomicUsize>,
}

impl Flag {
    const fn new() -> Flag {
        Flag { is_up: AtomicBool::new(false), stack_limit: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn raise(&self) {
        self.is_up.store(true, Ordering::SeqCst);
        // SAFETY: null, or a limit that lives for as long as compiled code runs; see `set_stack_limit`.
        if let Some(limit) = unsafe { self.stack_limit.load(Ordering::SeqCst).as_ref() } {
            limit.store(usize::MAX, Ordering::SeqCst);
        }
    }
}

/// Sets the location of the stack limit that compiled code of the calling thread checks from now on. The limit is set
/// to `end`, or above every stack pointer if something is pending. Null for none.
///
/// # Safety
/// The limit must live until the next call, or the end of the thread.
pub unsafe fn set_stack_limit(limit: *mut AtomicUsize, end: usize) {
    MAILBOX.with(|mailbox| {
        mailbox.flag.stack_limit.store(limit, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        if let Some(limit) = unsafe { limit.as_ref() } {
            limit.store(end, Ordering::SeqCst);
            // The flag may have been raised while the thread had no limit.
            if mailbox.flag.is_up.load(Ordering::SeqCst) {
                limit.store(usize::MAX, Ordering::SeqCst);
            }
        }
    });
}

/// Room for a signal that a handler records for the thread in which it runs.
struct SignalSlot {
    is_full: AtomicBool,
    /// Written by handlers only while `is_full` is false, and read by the thread only while it is true. Handlers run in
    /// the same thread, and not within each other.
    information: UnsafeCell<SignalInformation>,
}

impl SignalSlot {
    const fn new() -> SignalSlot {
        SignalSlot {
            is_full: AtomicBool::new(false),
            information: UnsafeCell::new(SignalInformation([0; 16])),
        }
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Records a signal, unless one is recorded already, as the kernel has only one pending. For handlers.
    fn record(&self, information: &SignalInformation) {
        if !self.is_full() {
            // SAFETY: the thread does not read it now.
            unsafe { *self.information.get() = *information };
            self.is_full.store(true, Ordering::Release);
        }
    }

    /// The recorded signal. For the thread.
    fn get(&self) -> Option<SignalInformation> {
        // SAFETY: no handler writes it now.
        self.is_full().then(|| unsafe { *self.information.get() })
    }

    /// Takes the recorded signal. For the thread.
    fn take(&self) -> Option<SignalInformation> {
        // An empty slot is not cleared: a handler may be filling it.
        self.get().inspect(|_| self.clear())
    }

    fn clear(&self) {
        self.is_full.store(false, Ordering::Release);
    }
}

/// Messages of signal handlers and other threads for a guest thread.
struct Mailbox {
    flag: Flag,
    /// The signal that was recorded last. All signals but SIGSEGV and SIGBUS are blocked until it is taken.
    recorded: SignalSlot,
    /// The SIGSEGV and the SIGBUS that another process or thread sent.
    sent_faults: [SignalSlot; 2],
    /// Whether the thread runs guest code. Other threads of the engine forward their signals to the first guest
    /// thread.
    is_guest: Cell<bool>,
}

thread_local! {
    static MAILBOX: Mailbox = const {
        Mailbox {
            flag: Flag::new(),
            recorded: SignalSlot::new(),
            sent_faults: [const { SignalSlot::new() }; 2],
            is_guest: Cell::new(false),
        }
    };
}

/// The guest thread that receives signals which other threads of the engine catch; 0 if no program runs.
static FIRST_THREAD: AtomicI32 = AtomicI32::new(0);

/// The number of threads that are forwarding a signal.
static FORWARDING: AtomicUsize = AtomicUsize::new(0);

/// Forwards a signal that a thread which does not run guest code has caught. Without a program it is discarded.
fn forward(information: &SignalInformation) {
    FORWARDING.fetch_add(1, Ordering::SeqCst);
    let first = FIRST_THREAD.load(Ordering::SeqCst);
    if first != 0 {
        requeue_to(first, information);
    }
    FORWARDING.fetch_sub(1, Ordering::SeqCst);
}

/// The program has ended: its calling first thread is no guest thread any more, with nothing pending and all signals
/// blocked, and no other thread forwards signals to it. The caller resets the dispositions and the mask.
pub fn release_thread() {
    block_all();
    FIRST_THREAD.store(0, Ordering::SeqCst);
    while FORWARDING.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    MAILBOX.with(|mailbox| {
        mailbox.is_guest.set(false);
        mailbox.recorded.clear();
        mailbox.sent_faults.iter().for_each(SignalSlot::clear);
        mailbox.flag.is_up.store(false, Ordering::SeqCst);
    });
}

/// True if something is pending for the calling thread, so that it must leave guest code.
#[inline]
pub fn pending() -> bool {
    MAILBOX.with(|mailbox| mailbox.flag.is_up.load(Ordering::Relaxed))
}

/// Makes the calling thread leave the guest soon.
pub fn kick_self() {
    MAILBOX.with(|mailbox| mailbox.flag.raise());
}

/// True if a signal is pending for the calling thread.
pub fn is_recorded() -> bool {
    MAILBOX.with(|mailbox| mailbox.recorded.is_full() || mailbox.sent_faults.iter().any(SignalSlot::is_full))
}

/// The signal that is pending for the calling thread, if there is one.
pub fn recorded() -> Option<SignalInformation> {
    MAILBOX.with(|mailbox| mailbox.recorded.get())
}

/// Clears the flag and takes a recorded signal. All signals stay blocked until [`set_mask`](crate::signal::set_mask).
pub fn take() -> Option<SignalInformation> {
    MAILBOX.with(|mailbox| {
        if !mailbox.flag.is_up.swap(false, Ordering::AcqRel) {
            return None;
        }
        let faults = || mailbox.sent_faults.iter().find_map(SignalSlot::take);
        let taken = mailbox.recorded.take().or_else(faults);
        if mailbox.sent_faults.iter().any(SignalSlot::is_full) {
            mailbox.flag.raise();
        }
        taken
    })
}

/// The signals by which the host reports memory faults.
const FAULT_SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// True for SIGSEGV and SIGBUS.
pub fn is_fault(signal: i32) -> bool {
    FAULT_SIGNALS.contains(&signal)
}

/// `si_code` of the SIGBUS with which one thread of the engine kicks another. The host's kernel does not use this
/// code.
const KICK: i32 = -0x5041;

/// `si_code` of the SIGBUS with which another process requests to attach to this one.
const ATTACH_REQUEST: i32 = -0x5042;

/// Value of [`ATTACHING`]: no process has requested to attach.
const NONE: i64 = -1;

/// The last request to attach.
static ATTACHING: AtomicI64 = AtomicI64::new(NONE);

/// Requests that a process that runs on this engine lets another process attach, by a signal to one of its threads.
/// `request` is 63 bits that say which.
pub fn send_attach_request(process: u32, thread: i32, request: u64) {
    let information = SignalInformation::new(libc::SIGBUS, ATTACH_REQUEST, &[request]);
    // SAFETY: the pointer is to 128 bytes that outlive the call.
    unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, libc::SIGBUS, &raw const information);
    }
}

/// Whether another process has requested to attach since the last [request was taken](take_attach_request).
#[inline]
pub fn has_attach_request() -> bool {
    ATTACHING.load(Ordering::Relaxed) != NONE
}

/// The last request.
#[inline]
pub fn take_attach_request() -> Option<u64> {
    if !has_attach_request() {
        return None;
    }
    u64::try_from(ATTACHING.swap(NONE, Ordering::Relaxed)).ok()
}

/// The value in the signals of timers that [`sample_thread`] starts.
const SAMPLE: u64 = 0x7061_7468_7361_6d70;

/// Takes a sample of the thread that a signal interrupted; the second argument is the number of samples that it stands for.
/// Async-signal-safe.
pub type SampleHandler = fn(&libc::ucontext_t, u32);

/// The [`SampleHandler`]; null for none.
static SAMPLE_HANDLER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// A timer that interrupts a thread; it ends when this is dropped.
#[derive(Debug)]
pub struct SampleTimer(libc::timer_t);

// SAFETY: any thread may delete a timer.
unsafe impl Send for SampleTimer {}

impl Drop for SampleTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was created, and is deleted here alone. In a forked process, which has no timers, this fails.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.0) };
    }
}

/// Calls a handler in the calling thread each time that it has used so many nanoseconds of processor time. The host's clock
/// ticks limit how often. Forked processes do not inherit the timer.
pub fn sample_thread(nanoseconds: u64, handler: SampleHandler) -> std::io::Result<SampleTimer> {
    SAMPLE_HANDLER.store(handler as *mut (), Ordering::Release);
    fault::register_sent(on_sent_fault);
    let interval = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    };
    let setting = libc::itimerspec { it_interval: interval, it_value: interval };
    let mut timer = 0i32;
    // SAFETY: an all-zero sigevent is valid; the pointers are to values of this frame.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_value.sival_ptr = SAMPLE as *mut libc::c_void;
        event.sigev_signo = libc::SIGBUS;
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as i32;
        // The C library's own call starts a thread of its own for some timers.
        let clock = libc::CLOCK_THREAD_CPUTIME_ID;
        if libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut timer) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let timer = SampleTimer(timer as usize as libc::timer_t);
        let no_old = std::ptr::null_mut::<libc::itimerspec>();
        match libc::syscall(libc::SYS_timer_settime, timer.0, 0, &raw const setting, no_old) {
            0 => Ok(timer),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Takes a sample, if a signal is that of a timer for it.
fn sample(information: &SignalInformation, context: &mut libc::ucontext_t) -> bool {
    let is_timer = information.code() == libc::SI_TIMER && information.0[3] == SAMPLE;
    let handler = SAMPLE_HANDLER.load(Ordering::Acquire);
    if !is_timer || handler.is_null() {
        return is_timer;
    }
    // SAFETY: only `sample_thread` writes the variable, and it writes handlers.
    let handler = unsafe { std::mem::transmute::<*mut (), SampleHandler>(handler) };
    let missed = (information.0[2] >> 32) as u32;
    handler(context, missed.saturating_add(1));
    if is_interrupted(context) {
        // The call is made again, as after a kick, which the guest does not notice.
        MAILBOX.with(|mailbox| mailbox.flag.raise());
    }
    true
}

/// Handles a SIGSEGV or SIGBUS that was sent, rather than raised by an access.
fn on_sent_fault(information: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    // SAFETY: a siginfo_t is 128 bytes of plain data, aligned to 8.
    let information = unsafe { &*(&raw const *information).cast::<SignalInformation>() };
    if sample(information, context) {
        return true;
    }
    MAILBOX.with(|mailbox| {
        if information.code() == ATTACH_REQUEST {
            if mailbox.is_guest.get() {
                ATTACHING.fetch_max((information.0[2] << 1 >> 1) as i64, Ordering::Relaxed);
                mailbox.flag.raise();
                leave_wait(context);
            }
            return;
        }
        let index = FAULT_SIGNALS.iter().position(|&signal| signal == information.signal());
        if let Some(sent) = index.map(|index| &mailbox.sent_faults[index])
            && information.code() != KICK
        {
            if !mailbox.is_guest.get() {
                forward(information);
                return;
            }
            sent.record(&information.undisguised());
        }
        mailbox.flag.raise();
        leave_wait(context);
    });
    true
}

/// A handle by which other threads reach a guest thread.
#[derive(Clone, Copy)]
pub struct ThreadHandle {
    /// The host's thread ID.
    pub id: i32,
    flag: *const Flag,
}

// SAFETY: the flag is atomic; the methods require that the thread still exists.
unsafe impl Send for ThreadHandle {}

impl ThreadHandle {
    /// Makes the thread leave guest code, but does not interrupt a blocking system call.
    ///
    /// # Safety
    /// The thread must not have ended.
    pub unsafe fn notify(self) {
        // SAFETY: the caller's promise: the thread and with it its mailbox exist.
        unsafe { (*self.flag).raise() };
    }

    /// Makes the thread leave guest code or a blocking system call at once.
    ///
    /// # Safety
    /// As for [`ThreadHandle::notify`].
    pub unsafe fn kick(self) {
        // SAFETY: the caller's promise.
        unsafe { self.notify() };
        requeue_to(self.id, &SignalInformation::new(libc::SIGBUS, KICK, &[]));
    }
}

/// Makes a system call that may block. Fails with EINTR if a signal interrupted it, with
/// [`Errno::RESTART_ALWAYS`] if one was recorded before it began.
///
/// # Safety
/// As for [`call`](crate::system_call::call).
pub unsafe fn wait(number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Errno> {
    // SAFETY: the caller's promise.
    MAILBOX.with(|mailbox| unsafe { wait_unless(&mailbox.flag.is_up, number, arguments) })
}

/// The handler of signals that are recorded for the guest.
pub(crate) extern "C" fn record(signal: i32, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    fault::allow_unaligned();
    // SAFETY: the kernel passes valid pointers; only async-signal-safe calls are made; the labels
    // are addresses inside this program's text.
    unsafe {
        let information = &*information.cast::<SignalInformation>();
        let mailbox = &*MAILBOX.with(|mailbox| &raw const *mailbox);
        if !mailbox.is_guest.get() {
            // Caught by a thread that does not run guest code.
            forward(information);
            return;
        }
        if information.code() > 0 && [libc::SIGILL, libc::SIGFPE, libc::SIGTRAP].contains(&signal) {
            // An instruction of the engine itself failed: take the default action.
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        mailbox.recorded.record(&information.undisguised());
        mailbox.flag.raise();
        let context = &mut *context.cast::<libc::ucontext_t>();
        (&raw mut context.uc_sigmask).cast::<u64>().write(all_blockable());
        leave_wait(context);
    }
}

/// Makes the calling thread a guest thread, whose signals are recorded. `first` if there is no other one.
pub fn adopt_thread(first: bool) -> ThreadHandle {
    fault::register_sent(on_sent_fault);
    signal_stack::take_own();
    // SAFETY: no arguments.
    let id = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    if first {
        FIRST_THREAD.store(id, Ordering::SeqCst);
    }
    MAILBOX.with(|mailbox| {
        mailbox.is_guest.set(true);
        ThreadHandle { id, flag: &mailbox.flag }
    })
}
