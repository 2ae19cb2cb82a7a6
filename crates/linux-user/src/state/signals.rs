//! Signals: their actions and masks.
//!
//! The mask of each guest thread is mirrored by its host thread, so that the host's kernel keeps pending signals and
//! selects the thread for a signal that is sent to the process. Only SIGSEGV and SIGBUS are never blocked in the
//! host; if the guest blocks them, [`Signals`] keeps the ones that were sent.

use std::marker::PhantomData;

use crate::abi::Abi;
use crate::abi::signals::{AlternateStack, DEFAULT, IGNORE, LAST, SignalAction};
use host::{Disposition, SignalInformation};

/// The default action of a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// Ends the process.
    Terminate,
    /// Nothing.
    Ignore,
    /// Stops the process.
    Stop,
}

/// The default action of a guest's signal (signal(7)).
pub fn default<G: Abi>(signal: i32) -> Default {
    match G::host_signal(signal) {
        Some(libc::SIGURG | libc::SIGCONT | libc::SIGCHLD | libc::SIGWINCH) => Default::Ignore,
        Some(libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => Default::Stop,
        _ => Default::Terminate,
    }
}

/// The signals, as the guest's mask, that cannot be blocked.
fn unblockable<G: Abi>() -> u64 {
    [libc::SIGKILL, libc::SIGSTOP].iter().fold(0, |mask, &signal| mask | host::bit(G::guest_signal(signal)))
}

/// Without the signals that cannot be blocked.
pub fn blockable<G: Abi>(mask: u64) -> u64 {
    mask & !unblockable::<G>()
}

/// A process's actions for all signals.
pub struct Actions<G: Abi>([SignalAction; LAST as usize], PhantomData<fn() -> G>);

impl<G: Abi> Actions<G> {
    /// The initial actions: signals that the parent process ignored are ignored.
    pub fn inherit() -> Actions<G> {
        let default = SignalAction { handler: DEFAULT, mask: 0, flags: 0, restorer: 0 };
        let mut actions = [default; LAST as usize];
        for (action, signal) in actions.iter_mut().zip(1..) {
            let number = G::host_signal(signal).expect("1 to 64");
            // Rust's start-up ignores SIGPIPE, whatever the parent process did.
            if number != libc::SIGPIPE && host::is_ignored(number) {
                action.handler = IGNORE;
            }
        }
        Actions(actions, PhantomData)
    }

    /// The action for a signal.
    pub fn get(&self, signal: i32) -> SignalAction {
        self.0[signal as usize - 1]
    }

    /// Sets the action for a signal, and the host's disposition accordingly.
    pub fn set(&mut self, signal: i32, action: SignalAction) {
        self.0[signal as usize - 1] = action;
        self.prepare_host(signal);
    }

    fn prepare_host(&self, signal: i32) {
        let number = G::host_signal(signal).expect("1 to 64");
        if [libc::SIGSEGV, libc::SIGBUS, libc::SIGKILL, libc::SIGSTOP].contains(&number) {
            return;
        }
        let action = self.get(signal);
        let disposition = match action.handler {
            IGNORE => Disposition::Ignore,
            DEFAULT if default::<G>(signal) != Default::Terminate => Disposition::Default,
            _ => Disposition::Record,
        };
        let on = |bit, host| if action.flags & bit != 0 { host } else { 0 };
        let flags = on(G::ACTION_FLAGS.no_child_stop, libc::SA_NOCLDSTOP)
            | on(G::ACTION_FLAGS.no_child_wait, libc::SA_NOCLDWAIT);
        host::set_disposition(number, disposition, flags);
    }

    /// Starts recording the host's signals for the guest.
    pub fn attach(&self) {
        (1..=LAST).for_each(|signal| self.prepare_host(signal));
    }

    /// Stops recording, except that signals ignored by the guest stay ignored. Pending signals are discarded by
    /// ignoring them.
    pub fn detach(&self) {
        for signal in 1..=LAST {
            let number = G::host_signal(signal).expect("1 to 64");
            let ignored = self.get(signal).handler == IGNORE;
            if !ignored && ![libc::SIGSEGV, libc::SIGBUS, libc::SIGKILL, libc::SIGSTOP].contains(&number) {
                host::set_disposition(number, Disposition::Ignore, 0);
                host::set_disposition(number, Disposition::Default, 0);
            }
        }
        host::set_mask(0);
    }

    /// The same actions of another guest, of which none has a handler.
    pub fn hand_over<H: Abi>(&self) -> Actions<H> {
        let default = SignalAction { handler: DEFAULT, mask: 0, flags: 0, restorer: 0 };
        let mut actions = [default; LAST as usize];
        for (action, signal) in self.0.iter().zip(1..) {
            let host = G::host_signal(signal).expect("1 to 64");
            actions[H::guest_signal(host) as usize - 1].handler = action.handler;
        }
        Actions(actions, PhantomData)
    }

    /// The effects of execve: handlers are reset, ignored signals stay ignored.
    pub fn execute(&mut self) {
        for signal in 1..=LAST {
            let handler = if self.get(signal).handler == IGNORE { IGNORE } else { DEFAULT };
            self.set(signal, SignalAction { handler, mask: 0, flags: 0, restorer: 0 });
        }
    }
}

/// A thread's signal state.
pub struct Signals<G: Abi> {
    /// The blocked signals in the guest's numbering; bit 0 is signal 1.
    pub mask: u64,
    /// The mask to restore, while a call like sigsuspend has its own in effect.
    pub saved_mask: Option<u64>,
    /// The stack that handlers may run on.
    pub stack: AlternateStack,
    /// Pending signals that the host does not know: SIGSEGV and SIGBUS that were sent, and the engine's own.
    pub held: Vec<SignalInformation>,
    guest: PhantomData<fn() -> G>,
}

impl<G: Abi> Signals<G> {
    /// The state of a new thread, with its creator's mask.
    pub fn new(mask: u64) -> Signals<G> {
        Signals { mask, saved_mask: None, stack: AlternateStack::NONE, held: Vec::new(), guest: PhantomData }
    }

    /// The initial state: signals that the parent process blocked are blocked.
    pub fn inherit() -> Signals<G> {
        let mask = G::guest_mask(host::block_all());
        host::set_mask(G::host_mask(mask));
        Signals::new(mask)
    }

    /// Sets the mask. While a recorded signal is pending, the host keeps all signals blocked.
    pub fn set_mask(&mut self, mask: u64) {
        self.mask = blockable::<G>(mask);
        if !host::is_recorded() {
            host::set_mask(G::host_mask(self.mask));
        }
    }

    /// The signals that are kept, as the guest's mask.
    pub fn held_mask(&self) -> u64 {
        self.held.iter().fold(0, |all, held| all | host::bit(G::guest_signal(held.signal())))
    }

    /// Keeps a signal for the thread until it is unblocked, unless it is ignored.
    pub fn hold(&mut self, actions: &Actions<G>, information: SignalInformation) {
        let ignored = actions.get(G::guest_signal(information.signal())).handler == IGNORE;
        if !ignored && !self.held.iter().any(|held| held.signal() == information.signal()) {
            self.held.push(information);
        }
    }
}

/// The host's siginfo of one of the guest's signals that this process sends.
pub fn sent<G: Abi>(signal: i32) -> SignalInformation {
    let signal = G::host_signal(signal).unwrap_or(libc::SIGKILL);
    SignalInformation::new(signal, libc::SI_TKILL, &[u64::from(std::process::id())])
}

/// Ends this process by one of the host's signals, so that its parent sees that signal.
pub fn die(signal: i32) -> ! {
    // SAFETY: plain system calls; `mask` is initialised before it is used.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut mask = std::mem::zeroed();
        libc::sigemptyset(&mut mask);
        libc::sigaddset(&mut mask, signal);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &mask, std::ptr::null_mut());
        libc::_exit(128 + signal)
    }
}

/// Sends the calling thread one of the guest's signals.
pub fn send_to_caller<G: Abi>(signal: i32) {
    host::requeue(&sent::<G>(signal));
}
