//! Signals: their numbers, actions and masks.
//!
//! Each thread's mask is mirrored by that of its thread of the host, so that the host's kernel keeps
//! what is pending and chooses the thread for what is sent to the process. Only SIGSEGV and SIGBUS
//! are never blocked there; sent ones are kept in [`Signals`] when the guest blocks them.

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
    /// Repeat interrupted calls.
    pub const RESTART: u64 = 2;
    /// No SIGCHLD when a child stops.
    pub const NOCLDSTOP: u64 = 4;
    /// Do not block the signal in its handler.
    pub const NODEFER: u64 = 8;
    /// Back to the default when the handler is entered.
    pub const RESETHAND: u64 = 0x10;
    /// Children do not become zombies.
    pub const NOCLDWAIT: u64 = 0x20;
    /// The handler takes a siginfo.
    pub const SIGINFO: u64 = 0x40;
}

/// Alpha's numbers of some signals.
pub mod number {
    /// Killed, not to be caught.
    pub const KILL: i32 = 9;
    /// Access to memory that is not allowed.
    pub const SEGV: i32 = 11;
    /// Stopped, not to be caught.
    pub const STOP: i32 = 17;
}

/// The last signal's number; 32 and above are real-time signals, the same on both.
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

/// The host's number of a signal; None if there is no such signal.
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

/// The host's mask for Alpha's.
pub fn host_mask(alpha_mask: u64) -> u64 {
    map_mask(alpha_mask, |signal| host_number(signal).expect("1 to 64"))
}

/// Alpha's mask for the host's.
pub fn alpha_mask(host_mask: u64) -> u64 {
    map_mask(host_mask, alpha)
}

/// What a signal does that has no handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// Ends the process.
    Terminate,
    /// Nothing.
    Ignore,
    /// Stops the process.
    Stop,
}

/// What Alpha's signal does by default (signal(7)).
pub fn default(signal: i32) -> Default {
    match signal {
        16 | 19 | 20 | 28 => Default::Ignore,
        17 | 18 | 21 | 22 => Default::Stop,
        _ => Default::Terminate,
    }
}

/// What a program wants done upon a signal.
#[derive(Clone, Copy, Debug)]
pub struct SignalAction {
    /// The handler's address, [`DEFAULT`] or [`IGNORE`].
    pub handler: u64,
    /// Signals to block while the handler runs.
    pub mask: u64,
    /// `SA_*`.
    pub flags: u64,
    /// Where a handler returns to; 0: to code in its frame.
    pub restorer: u64,
}

/// The stack that handlers may run on.
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
    /// Disarm when a handler is entered.
    pub const AUTODISARM: u32 = 1 << 31;
    /// A handler runs on it.
    pub const ONSTACK: u32 = 1;
    /// There is none.
    pub const DISABLE: u32 = 2;

    /// True if a stack pointer is on it.
    pub fn holds(&self, stack_pointer: u64) -> bool {
        self.flags & Self::AUTODISARM == 0
            && stack_pointer > self.start
            && stack_pointer - self.start <= self.size
    }

    /// `struct sigaltstack`, with the state as seen from a stack pointer.
    pub fn record(&self, stack_pointer: u64) -> Record {
        let state = match self.size {
            0 => Self::DISABLE,
            _ if self.holds(stack_pointer) => Self::ONSTACK,
            _ => 0,
        };
        Record::new().u64s(&[self.start]).u32s(&[state | self.flags, 0]).u64s(&[self.size])
    }
}

/// What a process wants done upon each signal.
pub struct Actions([SignalAction; LAST as usize]);

impl Actions {
    /// What a process starts with: what its parent ignored is ignored.
    pub fn inherit() -> Actions {
        let default = SignalAction { handler: DEFAULT, mask: 0, flags: 0, restorer: 0 };
        let mut actions = [default; LAST as usize];
        for (action, signal) in actions.iter_mut().zip(1..) {
            let number = host_number(signal).expect("1 to 64");
            // Rust's start-up ignores SIGPIPE, whatever the parent did.
            if number != libc::SIGPIPE && host::is_ignored(number) {
                action.handler = IGNORE;
            }
        }
        Actions(actions)
    }

    /// What is to be done upon a signal.
    pub fn get(&self, signal: i32) -> SignalAction {
        self.0[signal as usize - 1]
    }

    /// Sets what is to be done upon a signal, and prepares the host for it.
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

    /// Begins to record the host's signals for the guest.
    pub fn attach(&self) {
        (1..=LAST).for_each(|signal| self.prepare_host(signal));
    }

    /// Leaves the host's signals to the engine again, as far as the guest did not ignore them. What it
    /// kept blocked is forgotten with it: ignoring a signal takes it from those that are pending.
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

    /// The effects of execve: handlers are gone, what is ignored stays.
    pub fn execute(&mut self) {
        for signal in 1..=LAST {
            let handler = if self.get(signal).handler == IGNORE { IGNORE } else { DEFAULT };
            self.set(signal, SignalAction { handler, mask: 0, flags: 0, restorer: 0 });
        }
    }
}

/// A thread's signal state.
pub struct Signals {
    /// The signals blocked, bit 0 for signal 1, in Alpha's numbering.
    pub mask: u64,
    /// The mask to return to, while a call like sigsuspend has its own in effect.
    pub saved_mask: Option<u64>,
    /// The stack that handlers may run on.
    pub stack: AlternateStack,
    /// Signals that only the engine holds pending: faults that were sent, and its own.
    pub held: Vec<SignalInformation>,
}

impl Signals {
    /// Those of a new thread, with the mask of the one that made it.
    pub fn new(mask: u64) -> Signals {
        Signals { mask, saved_mask: None, stack: AlternateStack::NONE, held: Vec::new() }
    }

    /// What a process starts with: what its parent blocked is blocked.
    pub fn inherit() -> Signals {
        let mask = alpha_mask(host::block_all());
        host::set_mask(host_mask(mask));
        Signals::new(mask)
    }

    /// Sets the mask. While a recorded signal waits for delivery the host keeps all of them blocked.
    pub fn set_mask(&mut self, mask: u64) {
        self.mask = mask & !(host::bit(number::KILL) | host::bit(number::STOP));
        if !host::is_recorded() {
            host::set_mask(host_mask(self.mask));
        }
    }

    /// Keeps a signal of the thread's own until it is not blocked, unless it is ignored.
    pub fn hold(&mut self, actions: &Actions, information: SignalInformation) {
        let ignored = actions.get(alpha(information.signal())).handler == IGNORE;
        if !ignored && !self.held.iter().any(|held| held.signal() == information.signal()) {
            self.held.push(information);
        }
    }
}

/// Codes of a SIGCHLD, CLD_KILLED to CLD_CONTINUED, whose status is a signal's number.
pub const STATUS_IS_SIGNAL: std::ops::RangeInclusive<i32> = 2..=6;

/// What the host tells of one of Alpha's signals that this process sent.
pub fn sent(signal: i32) -> SignalInformation {
    let signal = host_number(signal).unwrap_or(libc::SIGKILL);
    SignalInformation::new(signal, libc::SI_TKILL, &[u64::from(std::process::id())])
}

/// A siginfo for the guest.
pub fn alpha_information(information: &SignalInformation) -> Record {
    let mut words = information.0;
    let error = Errno((words[0] >> 32) as i32);
    words[0] = u64::from(alpha(information.signal()) as u32) | errno::alpha(error) << 32;
    if information.signal() == libc::SIGCHLD && STATUS_IS_SIGNAL.contains(&information.code()) {
        words[3] = words[3] >> 32 << 32 | u64::from(alpha(words[3] as i32) as u32);
    }
    Record::new().u64s(&words)
}

/// Ends this process by one of Alpha's signals, as its default action would: what waits for the
/// process sees the signal.
pub fn die(signal: i32) -> ! {
    // A signal that the host does not have ends the process by the one for bad programs.
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
