//! Threads: what each has for itself, who they are, how they begin and how they end.
//!
//! Each thread of the guest runs on a thread of the host, and has the host's id as its own. What
//! they share is the [`Kernel`], behind one lock: a thread holds it from when it leaves the guest
//! until it returns there, but not while the host's kernel works for it on what may take long. So
//! whoever has the lock finds everything that the engine guards with it as it should be; `fork`
//! relies on that, whose child has one thread only.
//!
//! A process ends, or another program takes its place, as [`Kernel::end`] said: every thread is
//! summoned and ends; the first thread stays until the others have gone.

use std::collections::BTreeMap;

use alpha::cpu::{Cpu, Lock, register};
use host::ThreadHandle;

use crate::state::control::{End, Execute};
use crate::state::signals::Signals;

/// What a thread has in the kernel beside memory and registers.
pub struct Thread {
    pub(crate) signals: Signals,
    /// Where 0 is stored and a waiter woken when the thread ends; 0 for nowhere.
    pub(crate) clear_at_end: u64,
    pub(crate) address: ThreadHandle,
    /// In the order of their beginnings; the first is 0.
    pub(crate) number: u32,
    /// Instructions that the process's clock knows of.
    pub(crate) reported: u64,
}

/// How a process ends, or what it becomes.
#[derive(Clone, Debug)]
pub enum Ending {
    /// It is over.
    End(End),
    /// Another program takes its place.
    Execute(Execute),
}

/// The threads of a process.
pub struct Threads {
    /// Those that have not ended, by id.
    pub(crate) alive: BTreeMap<i32, Member>,
    /// The first thread's id.
    pub(crate) first: i32,
    /// How many ever began.
    pub(crate) begun: u32,
    pub(crate) ending: Option<Ending>,
}

/// A thread in the list.
pub struct Member {
    pub(crate) address: ThreadHandle,
    pub(crate) number: u32,
    /// The list of the mutexes that the thread holds, for others to learn when it ends; 0 for none.
    pub(crate) robust_list: u64,
}

/// What a new thread begins with (`clone(2)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The stack pointer.
    pub(crate) stack: u64,
    /// The unique value, if it is not the parent's.
    pub(crate) thread_pointer: Option<u64>,
    /// Where the thread's id is stored for the parent and for the thread itself; 0 for nowhere.
    pub(crate) store_id: [u64; 2],
    /// Where 0 is stored when the thread ends; 0 for nowhere.
    pub(crate) clear_at_end: u64,
    /// The signals that are blocked, in Alpha's numbering.
    pub(crate) mask: u64,
}

impl Start {
    /// The registers of the new thread.
    pub fn registers(&self, parent: &Cpu) -> Cpu {
        let mut cpu = Cpu { lock: Lock::NONE, instructions: 0, unaligned: 0, ..parent.clone() };
        (cpu.r[register::V0], cpu.r[register::A3], cpu.r[register::A4]) = (0, 0, 1);
        cpu.r[register::SP] = self.stack;
        cpu.unique = self.thread_pointer.unwrap_or(cpu.unique);
        cpu
    }
}

impl Thread {
    /// The calling thread as the first of a process.
    pub fn first() -> Thread {
        let address = host::adopt_thread(true);
        let signals = Signals::inherit();
        Thread { signals, clear_at_end: 0, address, number: 0, reported: 0 }
    }

    /// The calling thread, in which every signal is blocked, as a new one. Until it is
    /// [added](Kernel::add) it belongs to no process.
    pub fn start(start: &Start) -> Thread {
        let address = host::adopt_thread(false);
        let signals = Signals::new(start.mask);
        let clear_at_end = start.clear_at_end;
        Thread { signals, clear_at_end, address, number: 0, reported: 0 }
    }

    /// How other threads reach it.
    pub fn address(&self) -> ThreadHandle {
        self.address
    }
}

impl Threads {
    /// A process with one thread.
    pub fn new(first: &Thread) -> Threads {
        let ThreadHandle { id, .. } = first.address;
        let member = Member { address: first.address, number: 0, robust_list: 0 };
        Threads { alive: BTreeMap::from([(id, member)]), first: id, begun: 1, ending: None }
    }
}
