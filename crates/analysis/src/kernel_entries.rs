//! Why a thread executes the kernel: the marks of a whole system's trace are followed.

use events::record::{CALLSYS, ExceptionKind, FIRST_UNPRIVILEGED_PAL_CALL, Mark, returns_from_kernel};

/// The depth of exceptions within exceptions that is kept.
const DEEPEST: usize = 64;
/// The number of a system call whose number was not recorded.
pub const UNKNOWN_CALL: u32 = u32::MAX;

/// Why the kernel was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryReason {
    /// It was not entered from a program: its own threads, and what threads do before their first return to a program.
    None,
    /// By a system call.
    SystemCall(u32),
    /// By an exception.
    Exception(ExceptionKind),
    /// By another call of PALcode.
    PalCall(u32),
}

impl EntryReason {
    /// Its name; system calls have one together.
    pub fn name(self) -> String {
        match self {
            EntryReason::None => "(not entered)".into(),
            EntryReason::SystemCall(_) => "system call".into(),
            EntryReason::Exception(exception) => exception.name().into(),
            EntryReason::PalCall(function) => format!("call of PALcode {function:#x}"),
        }
    }
}

/// The entries of a thread to the kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelEntries {
    /// The reasons of entries that have not ended, the innermost last.
    reasons: Vec<EntryReason>,
    /// The number of the system call that the last instruction makes.
    system_call: Option<u32>,
    /// Whether PALcode returns from the innermost entry.
    returns: bool,
}

impl KernelEntries {
    /// The reason of what the thread executes outside of its program.
    pub fn reason(&self) -> EntryReason {
        self.reasons.last().copied().unwrap_or(EntryReason::None)
    }

    /// The number of entries that have not ended; of very deep ones not all are counted.
    pub fn depth(&self) -> usize {
        self.reasons.len()
    }

    /// The innermost system call whose number was not known has this one.
    pub fn resolve(&mut self, number: u32) {
        let unknown = EntryReason::SystemCall(UNKNOWN_CALL);
        if let Some(reason) = self.reasons.iter_mut().rev().find(|reason| **reason == unknown) {
            *reason = EntryReason::SystemCall(number);
        }
    }

    /// The thread executes its program: whatever was entered has ended.
    pub fn in_program(&mut self) {
        self.reasons.clear();
    }

    /// Follows a mark. Returns the reason if it is an entry.
    pub fn mark(&mut self, mark: Mark) -> Option<EntryReason> {
        let reason = match mark {
            Mark::SystemCall(number) => {
                self.system_call = Some(number);
                return None;
            }
            Mark::Exception(exception) => EntryReason::Exception(exception),
            Mark::PalCall(CALLSYS) => {
                EntryReason::SystemCall(self.system_call.take().unwrap_or(UNKNOWN_CALL))
            }
            Mark::PalCall(function) if function >= FIRST_UNPRIVILEGED_PAL_CALL => {
                EntryReason::PalCall(function)
            }
            Mark::PalCall(function) => {
                self.returns = returns_from_kernel(function);
                return None;
            }
            Mark::PalReturn if self.returns => {
                self.returns = false;
                self.reasons.pop();
                return None;
            }
            Mark::Gap => {
                self.reasons.clear();
                return None;
            }
            _ => return None,
        };
        self.returns = false;
        if self.reasons.len() < DEEPEST {
            self.reasons.push(reason);
        }
        Some(reason)
    }
}
