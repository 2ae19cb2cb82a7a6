//! The program's actions of signals, and what the kernel is told of them.

use crate::glue;

/// Numbers of signals: 1 to 64.
pub(super) const SIGNALS: usize = 64;
/// The default and the ignoring action.
pub(super) const DEFAULT: u64 = 0;
pub(super) const IGNORE: u64 = 1;
/// `SA_RESTORER`, of which `libc` has no name.
pub(super) const SA_RESTORER: u64 = 0x0400_0000;
/// Signals of faults, which the translator never blocks.
pub(super) const FAULTS: u64 =
    bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGTRAP);

/// The bit of a signal in a mask.
pub(super) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The kernel's structure of an action.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct KernelSignalAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// The program's actions.
#[derive(Clone)]
pub(crate) struct SignalActions([KernelSignalAction; SIGNALS + 1]);

/// Sets the kernel's action of a signal.
pub(super) fn set_action(signal: i32, action: &KernelSignalAction) {
    // SAFETY: the structure is the kernel's; the handler is the translator's.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action, 0, size_of::<u64>()) };
}

impl SignalActions {
    /// Those that the program inherits: some may be ignored. The C library ignores SIGPIPE in programs in Rust; the program does not.
    pub fn inherited() -> SignalActions {
        let mut all = [KernelSignalAction::default(); SIGNALS + 1];
        for (signal, action) in (0..).zip(&mut all).skip(1) {
            let mut found = KernelSignalAction::default();
            // SAFETY: writes the structure.
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, 0, &mut found, size_of::<u64>()) };
            if found.handler == IGNORE && signal != libc::SIGPIPE {
                action.handler = IGNORE;
            }
        }
        set_action(libc::SIGPIPE, &KernelSignalAction::default());
        SignalActions(all)
    }

    /// The action of a signal.
    pub fn of(&self, signal: i32) -> KernelSignalAction {
        self.0[signal as usize]
    }

    /// Makes the kernel do what the action of a signal needs.
    pub fn install(&self, signal: i32) {
        let action = &self.0[signal as usize];
        let is_fault = FAULTS & bit(signal) != 0;
        if !is_fault && matches!(action.handler, DEFAULT | IGNORE) {
            let kept = libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT;
            set_action(
                signal,
                &KernelSignalAction {
                    handler: action.handler,
                    flags: action.flags & kept as u64,
                    ..KernelSignalAction::default()
                },
            );
            return;
        }
        let (handler, restorer) = glue::handler_addresses();
        let kept = (libc::SA_RESTART | libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;
        let own = (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | SA_RESTORER;
        set_action(
            signal,
            &KernelSignalAction { handler, flags: own | action.flags & kept, restorer, mask: !FAULTS },
        );
    }

    /// The system call `rt_sigaction`. Returns the former action.
    pub fn set(
        &mut self,
        signal: i32,
        action: Option<KernelSignalAction>,
    ) -> Result<KernelSignalAction, i32> {
        let is_fixed = action.is_some() && matches!(signal, libc::SIGKILL | libc::SIGSTOP);
        if !(1..=SIGNALS as i32).contains(&signal) || is_fixed {
            return Err(libc::EINVAL);
        }
        let former = self.0[signal as usize];
        if let Some(action) = action {
            let fixed = bit(libc::SIGKILL) | bit(libc::SIGSTOP);
            self.0[signal as usize] = KernelSignalAction { mask: action.mask & !fixed, ..action };
            self.install(signal);
        }
        Ok(former)
    }
}
