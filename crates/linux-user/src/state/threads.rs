//! Threads: the state, identity, start and end of each.
//!
//! Each guest thread runs on a host thread and has its thread ID. The [`Kernel`] is shared, behind one lock: a thread
//! holds the lock from leaving guest code until returning to it, except while the host's kernel executes a call that
//! may take long. So a thread that acquires the lock finds all protected state consistent; `fork` relies on that,
//! since the child has only one thread.
//!
//! When [`Kernel::end`] ends a process or replaces its program, every thread is kicked and ends; the first thread
//! waits for the others.

use std::collections::BTreeMap;

use host::ThreadHandle;

use crate::abi::Abi;
use crate::state::control::{Execute, ProgramEnd};
use crate::state::signals::Signals;

/// The kernel state of a thread, apart from memory and registers.
pub struct Task<G: Abi> {
    pub(crate) signals: Signals<G>,
    /// The address at which 0 is stored and a waiter woken when the thread ends; 0 for none.
    pub(crate) clear_at_end: u64,
    pub(crate) address: ThreadHandle,
    /// The thread's number in the order of creation; the first is 0.
    pub(crate) number: u32,
    /// Number of instructions that were added to the process's clock.
    pub(crate) reported: u64,
}

/// How a process ends or is replaced.
#[derive(Clone, Debug)]
pub enum ProcessEnding {
    /// The process ends.
    End(ProgramEnd),
    /// Another program replaces it.
    Execute(Execute),
}

/// The threads of a process.
pub struct Threads {
    /// The threads that have not ended, by ID.
    pub(crate) alive: BTreeMap<i32, ListedThread>,
    /// The first thread's id.
    pub(crate) first: i32,
    /// Number of threads created so far.
    pub(crate) begun: u32,
    pub(crate) ending: Option<ProcessEnding>,
}

/// A thread in the list.
pub struct ListedThread {
    pub(crate) address: ThreadHandle,
    pub(crate) number: u32,
    /// The list of mutexes that the thread holds, whose waiters are notified when it ends; 0 for none.
    pub(crate) robust_list: u64,
}

/// The initial state of a new thread (`clone(2)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The stack pointer.
    pub(crate) stack: u64,
    /// The thread pointer, if it is not the parent's.
    pub(crate) thread_pointer: Option<u64>,
    /// The addresses at which the thread's ID is stored, for the parent and for the thread; 0 for none.
    pub(crate) store_id: [u64; 2],
    /// The address at which 0 is stored when the thread ends; 0 for none.
    pub(crate) clear_at_end: u64,
    /// The signals that are blocked, in the guest's numbering.
    pub(crate) mask: u64,
}

impl Start {
    /// The registers of the new thread.
    pub fn registers<G: Abi>(&self, parent: &G) -> G {
        let mut cpu = parent.new_thread();
        cpu.set_stack_pointer(self.stack);
        if let Some(thread_pointer) = self.thread_pointer {
            cpu.set_thread_pointer(thread_pointer);
        }
        cpu
    }
}

impl<G: Abi> Task<G> {
    /// The calling thread as the first one of a process.
    pub fn first() -> Task<G> {
        let address = host::adopt_thread(true);
        let signals = Signals::inherit();
        Task { signals, clear_at_end: 0, address, number: 0, reported: 0 }
    }

    /// The calling thread, in which every signal is blocked, as a new guest thread. Until it is [added](Kernel::add)
    /// it belongs to no process.
    pub fn start(start: &Start) -> Task<G> {
        let address = host::adopt_thread(false);
        let signals = Signals::new(start.mask);
        let clear_at_end = start.clear_at_end;
        Task { signals, clear_at_end, address, number: 0, reported: 0 }
    }

    /// A handle by which other threads reach it.
    pub fn address(&self) -> ThreadHandle {
        self.address
    }
}

impl Threads {
    /// A process with one thread.
    pub fn new<G: Abi>(first: &Task<G>) -> Threads {
        let ThreadHandle { id, .. } = first.address;
        let member = ListedThread { address: first.address, number: 0, robust_list: 0 };
        Threads { alive: BTreeMap::from([(id, member)]), first: id, begun: 1, ending: None }
    }
}
