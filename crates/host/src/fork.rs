//! fork with the flags of clone: the C library's fork, whose one call to make a process gets other flags.
//!
//! The C library's fork takes its locks, so that they are consistent in the child of a process with many threads; but
//! it takes no flags. After a direct clone system call, locks that other threads held would stay held in the child. So
//! the C library forks, and Syscall User Dispatch (Linux 5.11; Documentation/admin-guide/syscall-user-dispatch.rst)
//! changes the flags of its system call: while the thread's selector is set, the kernel raises SIGSYS instead of
//! carrying out a system call of the thread, and the handler makes the call. The kernel turns dispatch off in the child.
//!
//! The guest may use SIGSYS, too. If somebody sends SIGSYS to the forking thread meanwhile, the signal is kept and
//! queued again after the fork; in other threads the action that was set before is taken.

use crate::errno::Errno;

/// The flags and the exit signal of a new process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneFlags {
    /// `CLONE_*` flags: what it shares with its parent, and whose child it is.
    pub flags: i32,
    /// The host's signal that the parent gets when it ends, or 0.
    pub exit_signal: i32,
}

impl CloneFlags {
    /// Those of fork.
    pub const FORK: CloneFlags = CloneFlags { flags: 0, exit_signal: libc::SIGCHLD };
}

/// Forks the process. Returns 0 in the child, in which only the calling thread exists. Flags other than those of fork
/// fail with ENOSYS if the host has no Syscall User Dispatch.
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
    /// All signals but SIGSYS. SIGSEGV and SIGBUS are blocked, too: if one were sent, the return from its handler would
    /// be dispatched.
    const MASK: u64 = !bit(libc::SIGSYS);

    // The return from the handler is the only system call that is never dispatched. The kernel compares the address
    // after the syscall instruction.
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
        /// The kernel reads it at each system call of the thread.
        selector: AtomicU8,
        how: Cell<CloneFlags>,
        /// The thread may be interrupted by SIGSYS.
        is_active: AtomicBool,
        has_cloned: AtomicBool,
        /// A SIGSYS that was sent. Only the handler writes it; the thread reads it while the handler is blocked.
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

    /// The action of SIGSYS before and after the fork.
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
        let (received, context) =
            unsafe { (*information.cast::<SignalInformation>(), &mut *context.cast::<libc::ucontext_t>()) };
        FORK.with(|fork| {
            let is_dispatched = fork.selector.load(Ordering::Relaxed) == BLOCK;
            if is_dispatched && received.code() == SYS_USER_DISPATCH {
                fork.selector.store(ALLOW, Ordering::Relaxed);
                // SAFETY: the thread was about to make this call.
                unsafe { make_call(fork, context) };
                if !fork.has_cloned.load(Ordering::Relaxed) {
                    fork.selector.store(BLOCK, Ordering::Relaxed);
                }
            } else if fork.is_active.load(Ordering::Relaxed) {
                // SAFETY: the thread reads it only while this handler is blocked.
                unsafe { *fork.sent.get() = Some(received) };
            } else {
                // SAFETY: written before this handler was installed.
                let otherwise = unsafe { (&raw const OTHERWISE).read() };
                do_otherwise(&otherwise, signal, information, context);
            }
        });
    }

    /// Makes the dispatched system call; clone gets the requested flags.
    unsafe fn make_call(fork: &Fork, context: &mut libc::ucontext_t) {
        let register = |index: i32| context.uc_mcontext.gregs[index as usize] as u64;
        let number = register(libc::REG_RAX) as libc::c_long;
        let mut arguments =
            [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
                .map(register);
        let result = match number {
            libc::SYS_rt_sigprocmask => change_mask(context, arguments),
            // As on a kernel without clone3: the C library then calls clone.
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

    /// rt_sigprocmask for the interrupted code, in which SIGSYS must stay unblocked.
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

    /// Takes the action that was set before, for a SIGSYS sent to a thread that does not fork.
    fn do_otherwise(
        otherwise: &KernelAction,
        signal: i32,
        information: *mut libc::siginfo_t,
        context: &mut libc::ucontext_t,
    ) {
        match otherwise.handler {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                // The signal ends the process when this handler returns.
                // SAFETY: no handler; no arguments; the pointer is the kernel's.
                unsafe {
                    KernelAction::DEFAULT.install(signal);
                    let thread = libc::syscall(libc::SYS_gettid) as i32;
                    requeue_to(thread, &*information.cast());
                }
            }
            // The engine installs no other handler.
            _ => record(signal, information, (&raw mut *context).cast()),
        }
    }

    /// Makes a system call and returns its result, or a negative error number. Unlike the C library's function it does
    /// not change errno; unlike `wait_unless`, no signal handler can cancel it.
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
