//! The threads of a process: adding, ending and replacing them.

use guest_memory::{Fault, Memory};
use host::{SignalInformation, ThreadHandle};

use super::Kernel;
use crate::abi::Abi;
use crate::abi::signals::IGNORE;
use crate::descriptor_table;
use crate::state::control::Execute;
use crate::state::fd::close_all;
use crate::state::signals::Signals;
use crate::state::threads::{ListedThread, ProcessEnding, Start, Task, Threads};

impl<G: Abi> Task<G> {
    /// The thread has been added, and signals may be delivered to it. Returns the process's ID.
    pub fn begin(&mut self, kernel: &Kernel<G>) -> u32 {
        self.number = kernel.threads.alive.get(&self.address.id).map_or(0, |member| member.number);
        let mask = self.signals.mask;
        self.signals.set_mask(mask);
        kernel.process
    }

    /// Adds the instructions that the thread has executed to the process's clock, and to the count of
    /// [`Settings::executed`](crate::Settings::executed).
    pub fn report(&mut self, kernel: &mut Kernel<G>, instructions: u64) {
        kernel.instructions += instructions - self.reported;
        self.reported = instructions;
        if let Some(executed) = &kernel.settings.executed {
            executed.store(kernel.instructions, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Ends the thread: wakes the futex waiters, and stops the delivery of signals to it.
    pub fn end(&mut self, kernel: &mut Kernel<G>, memory: &Memory) {
        host::block_all();
        let member = kernel.threads.alive.remove(&self.address.id);
        let over = matches!(kernel.threads.ending, Some(ProcessEnding::End(_)));
        if let Some(information) = host::take().filter(|_| !over) {
            host::requeue(&information);
        }
        // If the memory is unmapped, no thread can wait on it.
        let _ = self.release_mutexes(memory, member.map_or(0, |member| member.robust_list));
        let clear_at_end = std::mem::take(&mut self.clear_at_end);
        if clear_at_end != 0 && !kernel.threads.alive.is_empty() && memory.store::<4>(clear_at_end, 0).is_ok()
        {
            wake_one(memory, clear_at_end);
        }
    }

    /// Marks each mutex in the list at `head` that the thread owns (kernel documentation: robust-futex-ABI).
    fn release_mutexes(&self, memory: &Memory, head: u64) -> Result<(), Fault> {
        const LONGEST: usize = 2048;
        if head == 0 {
            return Ok(());
        }
        let word = |address: u64| memory.load::<8>(address);
        let (offset, pending) = (word(head.wrapping_add(8))?, word(head.wrapping_add(16))? & !1);
        let mut entry = word(head)? & !1;
        for _ in 0..LONGEST {
            if entry == head {
                break;
            }
            let next = word(entry)? & !1;
            if entry != pending {
                self.release_mutex(memory, entry.wrapping_add(offset))?;
            }
            entry = next;
        }
        if pending == 0 { Ok(()) } else { self.release_mutex(memory, pending.wrapping_add(offset)) }
    }

    fn release_mutex(&self, memory: &Memory, address: u64) -> Result<(), Fault> {
        const WAITERS: u64 = 0x8000_0000;
        const OWNER_DIED: u64 = 0x4000_0000;
        const OWNER: u64 = 0x3fff_ffff;
        loop {
            let found = memory.load::<4>(address)?;
            if found & OWNER != self.address.id as u64 || !address.is_multiple_of(4) {
                return Ok(());
            }
            if memory.compare_exchange::<4>(address, found, found & WAITERS | OWNER_DIED)? {
                if found & WAITERS != 0 {
                    wake_one(memory, address);
                }
                return Ok(());
            }
        }
    }
}

/// Wakes one waiter of the futex.
fn wake_one(memory: &Memory, address: u64) {
    if let Some(word) = memory.host(address, 4) {
        let arguments = [word as u64, libc::FUTEX_WAKE as u64, 1, 0, 0, 0];
        // SAFETY: the kernel checks the address.
        let _ = unsafe { host::call(libc::SYS_futex, arguments) };
    }
}

impl<G: Abi> Kernel<G> {
    /// Adds a thread that has started and waits for the lock. Its ID is stored where the parent requested.
    pub fn add(&mut self, address: ThreadHandle, start: &Start, memory: &Memory) {
        let member = ListedThread { address, number: self.threads.begun, robust_list: 0 };
        self.threads.alive.insert(address.id, member);
        for pointer in start.store_id.into_iter().filter(|&pointer| pointer != 0) {
            // As Linux: a failure is not reported.
            let _ = memory.store::<4>(pointer, address.id as u64);
        }
        self.threads.begun += 1;
    }

    /// The first thread continues, alone, with another program.
    pub(crate) fn renew(&mut self, first: &mut Task<G>) {
        self.threads = Threads::new(first);
        first.number = 0;
    }

    /// In the child of a fork: the calling thread is the first and only one.
    pub(crate) fn become_child(&mut self, thread: &mut Task<G>, clear_at_end: u64) {
        thread.address = host::adopt_thread(true);
        thread.clear_at_end = clear_at_end;
        self.process = std::process::id();
        // The child's copy of the parent's state has the number of children before this one.
        (self.ordinal, self.children) = (self.children + 1, 0);
        self.parent = None;
        self.debugger = None;
        self.held.clear();
        self.shares_descriptors = false;
        self.timers.forget();
        self.renew(thread);
    }

    /// Parent and child have the same table of descriptors from now on.
    pub(crate) fn share_descriptors(&mut self) {
        self.shares_descriptors = true;
        // Each process sees what the other opens.
        self.opened_memory = true;
        self.opened_netlink = true;
    }

    /// Gives the process a table of descriptors of its own, as execve does.
    pub(crate) fn leave_shared_descriptors(&mut self) {
        if std::mem::take(&mut self.shares_descriptors) {
            descriptor_table::leave_shared_table();
        }
    }

    /// True for the first thread, which ends last.
    pub fn is_first(&self, thread: &Task<G>) -> bool {
        self.threads.first == thread.address.id
    }

    /// True for the ID of a guest thread.
    pub(crate) fn has_thread(&self, id: i32) -> bool {
        self.threads.alive.contains_key(&id)
    }

    /// Whether somebody could use a descriptor before the guest's call that makes it returns: another thread, or another
    /// process with the same descriptors.
    pub(crate) fn is_watched(&self) -> bool {
        self.threads.alive.len() > 1 || self.shares_descriptors
    }

    /// Keeps a SIGSEGV or SIGBUS that was sent to this process until a thread takes it that does not block it.
    pub(crate) fn hold(&mut self, information: SignalInformation, caller: &Task<G>) {
        let is_ignored = self.actions.get(G::guest_signal(information.signal())).handler == IGNORE;
        if is_ignored || self.held.iter().any(|held| held.signal() == information.signal()) {
            return;
        }
        self.held.push(information);
        for other in self.others(caller) {
            // SAFETY: a thread that ends removes itself from the list, under the lock that is held here.
            unsafe { other.kick() };
        }
    }

    /// Takes one of these signals that is kept for any thread.
    pub(crate) fn take_held(&mut self, signals: u64) -> Option<SignalInformation> {
        let wanted = |held: &SignalInformation| signals & host::bit(G::guest_signal(held.signal())) != 0;
        let index = self.held.iter().position(wanted)?;
        Some(self.held.remove(index))
    }

    /// True if no thread is left.
    pub fn is_empty(&self) -> bool {
        self.threads.alive.is_empty()
    }

    /// True if the process has, or had, more than one thread.
    pub fn is_threaded(&self) -> bool {
        self.threads.begun > 1
    }

    /// Ends the process in this way, unless another thread has ended it already, and kicks every other thread.
    pub fn end(&mut self, ending: ProcessEnding, caller: &Task<G>) {
        if self.threads.ending.is_none() {
            self.threads.ending = Some(ending);
            for other in self.others(caller) {
                // SAFETY: a thread that ends removes itself from the list, under the lock that is held here.
                unsafe { other.kick() };
            }
        }
    }

    /// True if every thread must end.
    pub fn is_ending(&self) -> bool {
        self.threads.ending.is_some()
    }

    /// How the process ends, unless by the end of its last thread.
    pub fn take_ending(&mut self) -> Option<ProcessEnding> {
        self.threads.ending.take()
    }

    /// Makes every thread leave the guest, report what it has executed, and continue.
    pub fn notify_all(&self) {
        for member in self.threads.alive.values() {
            // SAFETY: as in `end`.
            unsafe { member.address.notify() };
        }
    }

    /// Whether the number of executed instructions is shown while the program runs.
    pub fn shows_instructions(&self) -> bool {
        self.settings.executed.is_some()
    }

    /// Makes the other threads check what has changed before they continue in the guest.
    pub fn notify_others(&self, caller: &Task<G>) {
        for other in self.others(caller) {
            // SAFETY: as in `end`.
            unsafe { other.notify() };
        }
    }

    fn others(&self, caller: &Task<G>) -> impl Iterator<Item = ThreadHandle> {
        let caller = caller.address.id;
        let addresses = self.threads.alive.values().map(|member| member.address);
        addresses.filter(move |other| other.id != caller)
    }

    /// The name of the calling thread for messages: its number and its name.
    pub fn thread_name(&self, thread: &Task<G>) -> String {
        let mut name = [0u8; 16];
        // SAFETY: the kernel writes at most 16 bytes, the last of which is 0.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        format!("thread {} ({})", thread.number, String::from_utf8_lossy(name))
    }
}

impl<G: Abi> Kernel<G> {
    /// The effects of execve on state that outlives a program. The first thread continues, with the signal mask of
    /// the calling one.
    pub fn execute(&mut self, first: &mut Task<G>, execute: &Execute) {
        self.parent = None;
        self.actions.execute();
        self.timers.delete_all();
        self.contexts.destroy_all();
        self.leave_shared_descriptors();
        close_all();
        self.renew(first);
        first.signals = Signals::new(execute.mask);
        host::set_mask(G::host_mask(execute.mask));
    }
}
