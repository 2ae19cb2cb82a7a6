//! The data that a guest's ABI and the delivery of signals exchange.

use host::SignalInformation;

use crate::abi::layout::GuestStructure;

/// SIG_DFL.
pub const DEFAULT: u64 = 0;

/// SIG_IGN.
pub const IGNORE: u64 = 1;

/// The highest signal number. Signals from 32 on are real-time signals, the same on both sides.
pub const LAST: i32 = 64;

/// A signal as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalDescription {
    /// The guest's number.
    pub number: i32,
    /// Its name: `SIGSEGV`.
    pub name: &'static str,
    /// The reason for which it is sent.
    pub meaning: &'static str,
    /// Whether it dumps core, which means that the program crashed.
    pub dumps_core: bool,
}

/// Flags of an action: `SA_*` as the guest numbers them.
pub struct ActionFlags {
    /// Run the handler on the alternate stack.
    pub on_stack: u64,
    /// Restart interrupted calls.
    pub restart: u64,
    /// No SIGCHLD when a child stops.
    pub no_child_stop: u64,
    /// Do not block the signal during its handler.
    pub no_defer: u64,
    /// Reset to the default action when the handler is entered.
    pub reset_handler: u64,
    /// Children do not become zombies.
    pub no_child_wait: u64,
    /// The handler takes a siginfo.
    pub information: u64,
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
    pub fn record(&self, stack_pointer: u64) -> GuestStructure {
        let state = match self.size {
            0 => Self::DISABLE,
            _ if self.holds(stack_pointer) => Self::ONSTACK,
            _ => 0,
        };
        GuestStructure::new().u64s(&[self.start]).u32s(&[state | self.flags, 0]).u64s(&[self.size])
    }
}

/// The contents of a signal frame other than registers.
pub struct SignalFrame<'a, T> {
    /// The guest's number of the signal.
    pub signal: i32,
    /// Its siginfo.
    pub information: &'a SignalInformation,
    /// The program's action for it.
    pub action: &'a SignalAction,
    /// The mask to restore after the handler.
    pub saved_mask: u64,
    /// The alternate stack.
    pub stack: AlternateStack,
    /// Its words on an exception, in addition to siginfo.
    pub trap_arguments: T,
}

impl<T> SignalFrame<'_, T> {
    /// The end of the stack on which the frame is written, for a stack pointer and SA_ONSTACK.
    pub fn stack_end(&self, stack_pointer: u64, on_stack: u64) -> u64 {
        let on_alternate =
            self.action.flags & on_stack != 0 && self.stack.size > 0 && !self.stack.holds(stack_pointer);
        if on_alternate { self.stack.start.wrapping_add(self.stack.size) } else { stack_pointer }
    }
}

/// The signal of an exception.
pub struct ExceptionSignal<T> {
    /// The host's number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: u64,
    /// The trap's number (`si_trapno`).
    pub trap: u64,
    /// The program counter that the handler is passed.
    pub pc: u64,
    /// The frame's words on the exception, in addition to siginfo.
    pub trap_arguments: T,
}

/// The host's signals whose codes do not describe a child's end (asm-generic/siginfo.h).
const OWN_CODES: [i32; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGBUS, libc::SIGSEGV, libc::SIGIO, libc::SIGSYS];

/// Codes of a SIGCHLD, CLD_KILLED to CLD_CONTINUED, whose status is a signal number.
pub const STATUS_IS_SIGNAL: std::ops::RangeInclusive<i32> = 2..=6;

/// Whether the status in a siginfo of the host is a signal's number. A child may end with any signal.
pub fn has_signal_as_status(information: &SignalInformation) -> bool {
    STATUS_IS_SIGNAL.contains(&information.code()) && !OWN_CODES.contains(&information.signal())
}
