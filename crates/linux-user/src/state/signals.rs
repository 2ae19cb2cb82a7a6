//! Signals: their numbers, actions and masks.
//!
//! The mask of each guest thread is mirrored by its host thread, so that the host's kernel keeps pending signals and
//! selects the thread for a signal that is sent to the process. Only SIGSEGV and SIGBUS are never blocked in the
//! host; if the guest blocks them, [`Signals`] keeps the ones that were sent.

use crate::abi::errno;
use crate::abi::layout::Record;
use host::Errno;
use host::{Disposition, SignalInformation};

/// SIG_DFL.
pub const DEFAULT: u64 = 0;
/// SIG_IGN.
pub const IGNORE: u64 = 1;

/// Flags of an action: `SA_*` as Alpha numbers them.
pub mod flag {
    /// Run the handler on the alternate stack.
    pub const ONSTACK: u64 = 1;
    /// Restart interrupted calls.
    pub const RESTART: u64 = 2;
    /// No SIGCHLD when a child stops.
    pub const NOCLDSTOP: u64 = 4;
    /// Do not block the signal during its handler.
    pub const NODEFER: u64 = 8;
    /// Reset to the default action when the handler is entered.
    pub const RESETHAND: u64 = 0x10;
    /// Children do not become zombies.
    pub const NOCLDWAIT: u64 = 0x20;
    /// The handler takes a siginfo.
    pub const SIGINFO: u64 = 0x40;
}

/// Alpha's numbers of some signals.
pub mod number {
    /// Ends the process; cannot be caught.
    pub const KILL: i32 = 9;
    /// An invalid access to memory.
    pub const SEGV: i32 = 11;
    /// Stops the process; cannot be caught.
    pub const STOP: i32 = 17;
}

/// The highest signal number. Signals from 32 on are real-time signals, the same on both sides.
pub const LAST: i32 = 64;

/// The host's numbers of Alpha's signals 1 to 31. SIGEMT (7) stands for the host's SIGSTKFLT.
#[rustfmt::skip]
const HOST: [i32; 31] = [
    libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT,
    libc::SIGSTKFLT, libc::SIGFPE, libc::SIGKILL, libc::SIGBUS, libc::SIGSEGV, libc::SIGSYS,
    libc::SIGPIPE, libc::SIGALRM, libc::SIGTERM, libc::SIGURG, libc::SIGSTOP, libc::SIGTSTP,
    libc::SIGCONT, libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU, libc::SIGIO, libc::SIGXCPU,
    libc::SIGXFSZ, libc::SIGVTALRM, libc::SIGPROF, libc::SIGWINCH, libc::SIGPWR, libc::SIGUSR1,
    libc::SIGUSR2,
];

/// The host's number of a signal; None if it does not exist.
pub fn host_number(alpha: i32) -> Option<i32> {
    match alpha {
        1..=31 => Some(HOST[alpha as usize - 1]),
        32..=LAST => Some(alpha),
        _ => None,
    }
}

/// Alpha's number of a signal.
pub fn alpha(host: i32) -> i32 {
    HOST.iter().position(|&number| number == host).map_or(host, |index| index as i32 + 1)
}

fn map_mask(mask: u64, number: impl Fn(i32) -> i32) -> u64 {
    (1..=LAST).filter(|&signal| mask & host::bit(signal) != 0).fold(0, |all, s| all | host::bit(number(s)))
}

/// Converts Alpha's mask to the host's.
pub fn host_mask(alpha_mask: u64) -> u64 {
    map_mask(alpha_mask, |signal| host_number(signal).expect("1 to 64"))
}

/// Converts the host's mask to Alpha's.
pub fn alpha_mask(host_mask: u64) -> u64 {
    map_mask(host_mask, alpha)
}

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

/// The default action of Alpha's signal (signal(7)).
pub fn default(signal: i32) -> Default {
    match signal {
        16 | 19 | 20 | 28 => Default::Ignore,
        17 | 18 | 21 | 22 => Default::Stop,
        _ => Default::Terminate,
    }
}

/// A program's action for a signal.
#[derive(Clone, Copy, Debug)]
pub struct SignalAction {
    /// The handler's address, [`DEFAULT`] or [`IGNORE`].
    pub handler: u64,
    /// Signals to block while the handler runs.
    pub mask: u64,
    /// `SA_*`.
    pub flags: u64,
    /// The return address of a handler; 0 stands for code in its frame.
    pub restorer: u64,
}

/// An alternate stack for handlers.
#[derive(Clone, Copy, Debug)]
pub struct AlternateStack {
    /// Lowest address.
    pub start: u64,
    /// Size in bytes; 0 if there is none.
    pub size: u64,
    /// SS_AUTODISARM or 0.
    pub flags: u32,
}

impl AlternateStack {
    /// No alternate stack.
    pub const NONE: AlternateStack = AlternateStack { start: 0, size: 0, flags: 0 };
    /// The stack is disarmed when a handler is entered.
    pub const AUTODISARM: u32 = 1 << 31;
    /// A handler runs on the stack.
    pub const ONSTACK: u32 = 1;
    /// There is none.
    pub const DISABLE: u32 = 2;

    /// True if a stack pointer is in the stack.
    pub fn holds(&self, stack_pointer: u64) -> bool {
        self.flags & Self::AUTODISARM == 0
            && stack_pointer > self.start
            && stack_pointer - self.start <= self.size
    }

    /// `struct sigaltstack`, with the state for a given stack pointer.
    pub fn record(&self, stack_pointer: u64) -> Record {
        let state = match self.size {
            0 => Self::DISABLE,
            _ if self.holds(stack_pointer) => Self::ONSTACK,
            _ => 0,
        };
        Record::new().u64s(&[self.start]).u32s(&[state | self.flags, 0]).u64s(&[self.size])
    }
}

/// A process's actions for all signals.
pub struct Actions([SignalAction; LAST as usize]);

impl Actions {
    /// The initial actions: signals that the parent process ignored are ignored.
    pub fn inherit() -> Actions {
        let default = SignalAction { handler: DEFAULT, mask: 0, flags: 0, restorer: 0 };
        let mut actions = [default; LAST as usize];
        for (action, signal) in actions.iter_mut().zip(1..) {
            let number = host_number(signal).expect("1 to 64");
            // Rust's start-up ignores SIGPIPE, whatever the parent process did.
            if number != libc::SIGPIPE && host::is_ignored(number) {
                action.handler = IGNORE;
            }
        }
        Actions(actions)
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
        let number = host_number(signal).expect("1 to 64");
        if [libc::SIGSEGV, libc::SIGBUS, libc::SIGKILL, libc::SIGSTOP].contains(&number) {
            return;
        }
        let action = self.get(signal);
        let disposition = match action.handler {
            IGNORE => Disposition::Ignore,
            DEFAULT if default(signal) != Default::Terminate => Disposition::Default,
            _ => Disposition::Record,
        };
        let on = |bit, host| if action.flags & bit != 0 { host } else { 0 };
        let flags = on(flag::NOCLDSTOP, libc::SA_NOCLDSTOP) | on(flag::NOCLDWAIT, libc::SA_NOCLDWAIT);
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
            let number = host_number(signal).expect("1 to 64");
            let ignored = self.get(signal).handler == IGNORE;
            if !ignored && ![libc::SIGSEGV, libc::SIGBUS, libc::SIGKILL, libc::SIGSTOP].contains(&number) {
                host::set_disposition(number, Disposition::Ignore, 0);
                host::set_disposition(number, Disposition::Default, 0);
            }
        }
        host::set_mask(0);
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
pub struct Signals {
    /// The blocked signals in Alpha's numbering; bit 0 is signal 1.
    pub mask: u64,
    /// The mask to restore, while a call like sigsuspend has its own in effect.
    pub saved_mask: Option<u64>,
    /// The stack that handlers may run on.
    pub stack: AlternateStack,
    /// Pending signals that the host does not know: SIGSEGV and SIGBUS that were sent, and the engine's own.
    pub held: Vec<SignalInformation>,
}

impl Signals {
    /// The state of a new thread, with its creator's mask.
    pub fn new(mask: u64) -> Signals {
        Signals { mask, saved_mask: None, stack: AlternateStack::NONE, held: Vec::new() }
    }

    /// The initial state: signals that the parent process blocked are blocked.
    pub fn inherit() -> Signals {
        let mask = alpha_mask(host::block_all());
        host::set_mask(host_mask(mask));
        Signals::new(mask)
    }

    /// Sets the mask. While a recorded signal is pending, the host keeps all signals blocked.
    pub fn set_mask(&mut self, mask: u64) {
        self.mask = mask & !(host::bit(number::KILL) | host::bit(number::STOP));
        if !host::is_recorded() {
            host::set_mask(host_mask(self.mask));
        }
    }

    /// Keeps a signal for the thread until it is unblocked, unless it is ignored.
    pub fn hold(&mut self, actions: &Actions, information: SignalInformation) {
        let ignored = actions.get(alpha(information.signal())).handler == IGNORE;
        if !ignored && !self.held.iter().any(|held| held.signal() == information.signal()) {
            self.held.push(information);
        }
    }
}

/// The host's signals whose codes do not describe a child's end (asm-generic/siginfo.h).
const OWN_CODES: [i32; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGBUS, libc::SIGSEGV, libc::SIGIO, libc::SIGSYS];

/// Codes of a SIGCHLD, CLD_KILLED to CLD_CONTINUED, whose status is a signal number.
pub const STATUS_IS_SIGNAL: std::ops::RangeInclusive<i32> = 2..=6;

/// The host's siginfo of one of Alpha's signals that this process sends.
pub fn sent(signal: i32) -> SignalInformation {
    let signal = host_number(signal).unwrap_or(libc::SIGKILL);
    SignalInformation::new(signal, libc::SI_TKILL, &[u64::from(std::process::id())])
}

/// Converts a siginfo for the guest.
pub fn alpha_information(information: &SignalInformation) -> Record {
    let mut words = information.0;
    let error = Errno((words[0] >> 32) as i32);
    words[0] = u64::from(alpha(information.signal()) as u32) | errno::alpha(error) << 32;
    // A child may end with any signal.
    if STATUS_IS_SIGNAL.contains(&information.code()) && !OWN_CODES.contains(&information.signal()) {
        words[3] = words[3] >> 32 << 32 | u64::from(alpha(words[3] as i32) as u32);
    }
    Record::new().u64s(&words)
}

/// Ends this process by one of Alpha's signals, so that its parent sees that signal.
pub fn die(signal: i32) -> ! {
    // SIGKILL stands in for a signal that the host does not have.
    let signal = host_number(signal).unwrap_or(libc::SIGKILL);
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

/// Sends the calling thread one of Alpha's signals.
pub fn send_to_caller(signal: i32) {
    host::requeue(&sent(signal));
}
