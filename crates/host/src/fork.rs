//! fork with the flags of clone: the C library's fork, whose one call to make a process gets other flags.
//!
//! The C library must do the fork, as it takes its locks, so that they are sound in the child however many threads
//! there are; but it has no flags to give. A clone beside it would leave locks of other threads taken in the child for
//! ever. So the call that the C library makes is changed under way, by Syscall User Dispatch (Linux 5.11;
//! Documentation/admin-guide/syscall-user-dispatch.rst): while the selector says so each system call of the thread
//! is a SIGSYS instead, whose handler makes the call in its place. The child has no dispatch.
//!
//! The guest has its own SIGSYS. One that is sent to the forking thread meanwhile is kept and queued anew; in other
//! threads it takes the course that it would have taken.

use crate::errno::Errno;

/// What a child has in another way than fork's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneFlags {
    /// `CLONE_*`: what it shares with its parent, and whose child it is.
    pub flags: i32,
    /// The host's signal that tells the parent of its end, or 0.
    pub exit_signal: i32,
}

impl CloneFlags {
    /// fork's.
    pub const FORK: CloneFlags = CloneFlags { flags: 0, exit_signal: libc::SIGCHLD };
}

/// Forks the process: 0 in the child, which has the calling thread alone. Other flags than fork's fail with ENOSYS
/// where the host cannot do it.
///
/// # Safety
/// As for fork. For other flags than fork's the calling thread must have all signals blocked, no other thread may
/// fork or change what SIGSYS does at the same time, and the flags must leave the child its own memory and stack.
pub unsafe fn fork(how: CloneFlags) -> Result<libc::pid_t, Errno> {
    if how != CloneFlags::FORK {
        // SAFETY: the caller's promise.
        return unsafe { dispatch::fork(how) };
    }
    // SAFETY: the caller's promise.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::last()),
        child => Ok(child),
    }
}

/// Without Syscall User Dispatch.
#[cfg(not(target_arch = "x86_64"))]
mod dispatch {
    use super::{CloneFlags, Errno};

    pub unsafe fn fork(_: CloneFlags) -> Result<libc::pid_t, Errno> {
        Err(Errno(libc::ENOSYS))
    }
}

#[cfg(target_arch = "x86_64")]
mod dispatch {
    use std::cell::{Cell, UnsafeCell};
    use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, compiler_fence};

    use super::{CloneFlags, Errno};
    use crate::disposition::{KernelAction, SA_RESTORER};
    use crate::fault::allow_unaligned;
    use crate::mailbox::record;
    use crate::signal::{SignalInformation, bit, requeue, requeue_to, set_whole_mask};

    // linux/prctl.h and asm-generic/siginfo.h.
    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
    const OFF: u64 = 0;
    const ON: u64 = 1;
    const ALLOW: u8 = 0;
    const BLOCK: u8 = 1;
    const SYS_USER_DISPATCH: i32 = 2;

    /// The byte of clone's flags that has the exit signal.
    const EXIT_SIGNAL: u64 = 0xff;
    /// All signals but SIGSYS. SIGSEGV and SIGBUS too: they may be sent, and the return from their handler would be
    /// dispatched.
    const MASK: u64 = !bit(libc::SIGSYS);

    // The return from the handler, the only call that is never dispatched. The kernel compares the address behind it.
    std::arch::global_asm!(
        ".text",
        ".globl pathlength_dispatch_return, pathlength_dispatch_end",
        ".hidden pathlength_dispatch_return, pathlength_dispatch_end",
        ".p2align 4",
        "pathlength_dispatch_return: mov eax, 15",
        "syscall",
        "ud2",
        "pathlength_dispatch_end:",
    );

    unsafe extern "C" {
        fn pathlength_dispatch_return();
        static pathlength_dispatch_end: u8;
    }

    /// A fork by the calling thread.
    struct Fork {
        /// The kernel reads it at each call of the thread's.
        selector: AtomicU8,
        how: Cell<CloneFlags>,
        /// The thread may be interrupted by SIGSYS.
        is_active: AtomicBool,
        has_cloned: AtomicBool,
        /// A SIGSYS that somebody sent. Only the handler writes it; it is read while the handler is blocked.
        sent: UnsafeCell<Option<SignalInformation>>,
    }

    thread_local! {
        static FORK: Fork = const {
            Fork {
                selector: AtomicU8::new(ALLOW),
                how: Cell::new(CloneFlags::FORK),
                is_active: AtomicBool::new(false),
                has_cloned: AtomicBool::new(false),
                sent: UnsafeCell::new(None),
            }
        };
    }

    /// What SIGSYS does otherwise.
    static mut OTHERWISE: KernelAction = KernelAction::DEFAULT;

    /// The current action of SIGSYS.
    fn current_action() -> KernelAction {
        let mut action: KernelAction = KernelAction::DEFAULT;
        let arguments = [libc::SIGSYS as u64, 0, &raw mut action as u64, 8, 0, 0];
        // SAFETY: there is room for the action.
        let _ = unsafe { crate::call(libc::SYS_rt_sigaction, arguments) };
        action
    }

    pub unsafe fn fork(how: CloneFlags) -> Result<libc::pid_t, Errno> {
        let action = KernelAction {
            handler: on_dispatched as *const () as usize,
            flags: (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | SA_RESTORER,
            restorer: pathlength_dispatch_return as *const () as usize,
            mask: u64::MAX,
        };
        let before = current_action();
        // SAFETY: nobody else forks, and the handler that reads it is not installed yet.
        unsafe { OTHERWISE = before };
        FORK.with(|fork| {
            fork.how.set(how);
            fork.has_cloned.store(false, Ordering::Relaxed);
            // SAFETY: `on_dispatched` is async-signal-safe, and has the signature of SA_SIGINFO.
            unsafe { action.install(libc::SIGSYS) };
            // SAFETY: the caller's promise.
            let child = dispatch(ON, fork).and_then(|()| unsafe { while_dispatched(fork) });
            // SAFETY: as it was.
            unsafe { before.install(libc::SIGSYS) };
            // SAFETY: SIGSYS is blocked again.
            if let Some(sent) = unsafe { (*fork.sent.get()).take() } {
                requeue(&sent);
            }
            child
        })
    }

    /// Lets the C library fork.
    unsafe fn while_dispatched(fork: &Fork) -> Result<libc::pid_t, Errno> {
        fork.is_active.store(true, Ordering::Relaxed);
        let mask = set_whole_mask(MASK);
        fork.selector.store(BLOCK, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the caller's promise.
        let child = unsafe { libc::fork() };
        compiler_fence(Ordering::SeqCst);
        fork.selector.store(ALLOW, Ordering::Relaxed);
        let error = Errno::last();
        set_whole_mask(mask);
        fork.is_active.store(false, Ordering::Relaxed);
        let _ = dispatch(OFF, fork);
        assert!(fork.has_cloned.load(Ordering::Relaxed), "the C library must fork by clone");
        if child < 0 { Err(error) } else { Ok(child) }
    }

    /// Turns the dispatch of the thread's calls on or off.
    fn dispatch(mode: u64, fork: &Fork) -> Result<(), Errno> {
        let start = pathlength_dispatch_return as *const () as u64;
        let bytes = &raw const pathlength_dispatch_end as u64 - start;
        let [start, bytes, selector] =
            if mode == ON { [start, bytes, fork.selector.as_ptr() as u64] } else { [0; 3] };
        // SAFETY: the selector lives as long as the thread, and allows every call but those of the fork.
        let result = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, start, bytes, selector) };
        if result == 0 { Ok(()) } else { Err(Errno(libc::ENOSYS)) }
    }

    extern "C" fn on_dispatched(signal: i32, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
        allow_unaligned();
        // SAFETY: the kernel passes valid pointers to a SA_SIGINFO handler; a siginfo is 128 bytes, aligned to 8.
        let (told, context) =
            unsafe { (*information.cast::<SignalInformation>(), &mut *context.cast::<libc::ucontext_t>()) };
        FORK.with(|fork| {
            let is_dispatched = fork.selector.load(Ordering::Relaxed) == BLOCK;
            if is_dispatched && told.code() == SYS_USER_DISPATCH {
                fork.selector.store(ALLOW, Ordering::Relaxed);
                // SAFETY: the thread was about to make this call.
                unsafe { make_call(fork, context) };
                if !fork.has_cloned.load(Ordering::Relaxed) {
                    fork.selector.store(BLOCK, Ordering::Relaxed);
                }
            } else if fork.is_active.load(Ordering::Relaxed) {
                // SAFETY: the thread reads it only while this handler is blocked.
                unsafe { *fork.sent.get() = Some(told) };
            } else {
                // SAFETY: written before this handler was installed.
                let otherwise = unsafe { (&raw const OTHERWISE).read() };
                do_otherwise(&otherwise, signal, information, context);
            }
        });
    }

    /// Makes the call that was dispatched, which clone is made with the flags that are wanted.
    unsafe fn make_call(fork: &Fork, context: &mut libc::ucontext_t) {
        let register = |index: i32| context.uc_mcontext.gregs[index as usize] as u64;
        let number = register(libc::REG_RAX) as libc::c_long;
        let mut arguments =
            [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
                .map(register);
        let result = match number {
            libc::SYS_rt_sigprocmask => change_mask(context, arguments),
            // As a kernel without it: then the C library takes clone.
            libc::SYS_clone3 => -i64::from(libc::ENOSYS),
            libc::SYS_clone => {
                let how = fork.how.get();
                arguments[0] =
                    arguments[0] & !EXIT_SIGNAL | u64::from(how.flags as u32 | how.exit_signal as u32);
                fork.has_cloned.store(true, Ordering::Relaxed);
                // SAFETY: the caller's promise, and that of `fork`.
                let child = unsafe { system_call(number, arguments) };
                if child == 0 {
                    // SAFETY: only this handler writes it. The signal was sent to the parent.
                    unsafe { *fork.sent.get() = None };
                }
                child
            }
            // SAFETY: the caller's promise.
            _ => unsafe { system_call(number, arguments) },
        };
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = result;
    }

    /// rt_sigprocmask, of the interrupted code, in which SIGSYS must not be blocked.
    fn change_mask(context: &mut libc::ucontext_t, [how, new, old, ..]: [u64; 6]) -> i64 {
        let mask = (&raw mut context.uc_sigmask).cast::<u64>();
        // SAFETY: the context has 64 signals; the C library passes valid pointers, or null.
        unsafe {
            let before = *mask;
            if let Some(&new) = (new as *const u64).as_ref() {
                let wanted = match how as i32 {
                    libc::SIG_BLOCK => before | new,
                    libc::SIG_UNBLOCK => before & !new,
                    _ => new,
                };
                *mask = wanted & MASK;
            }
            if let Some(old) = (old as *mut u64).as_mut() {
                *old = before;
            }
        }
        0
    }

    /// A SIGSYS that was sent, in a thread that does not fork.
    fn do_otherwise(
        otherwise: &KernelAction,
        signal: i32,
        information: *mut libc::siginfo_t,
        context: &mut libc::ucontext_t,
    ) {
        match otherwise.handler {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                // It ends the process upon the return from here.
                // SAFETY: no handler; no arguments; the pointer is the kernel's.
                unsafe {
                    KernelAction::DEFAULT.install(signal);
                    let thread = libc::syscall(libc::SYS_gettid) as i32;
                    requeue_to(thread, &*information.cast());
                }
            }
            // The only handler that there is.
            _ => record(signal, information, (&raw mut *context).cast()),
        }
    }

    /// A call to the kernel: its result, or less than 0. Unlike the C library's, and `wait_unless`, it leaves errno
    /// alone, and no handler of a signal takes it back.
    ///
    /// # Safety
    /// As for the call.
    unsafe fn system_call(number: libc::c_long, arguments: [u64; 6]) -> i64 {
        let [a, b, c, d, e, f] = arguments;
        let result;
        // SAFETY: the caller's promise; the kernel changes rax, rcx and r11.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                lateout("rcx") _, lateout("r11") _,
                options(nostack),
            );
        }
        result
    }
}
