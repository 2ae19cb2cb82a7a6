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

use crate::call::{Call, Outcome};
use crate::control::End;
use crate::control::{Control, Execute};
use crate::kernel::Kernel;
use crate::layout::Record;
use crate::signals::{self, Signals};
use crate::vfork;
use alpha::cpu::{Cpu, Lock, register};
use host::Errno;
use host::ThreadHandle;
use memory::{Fault, Memory};

const EINVAL: Errno = Errno(libc::EINVAL);

/// What a thread has in the kernel beside memory and registers.
pub struct Thread {
    pub(crate) signals: Signals,
    /// Where 0 is stored and a waiter woken when the thread ends; 0 for nowhere.
    clear_at_end: u64,
    address: ThreadHandle,
    /// In the order of their beginnings; the first is 0.
    number: u32,
    /// Instructions that the process's clock knows of.
    reported: u64,
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
    alive: BTreeMap<i32, Member>,
    /// The first thread's id.
    first: i32,
    /// How many ever began.
    begun: u32,
    ending: Option<Ending>,
}

/// A thread in the list.
struct Member {
    address: ThreadHandle,
    number: u32,
    /// The list of the mutexes that the thread holds, for others to learn when it ends; 0 for none.
    robust_list: u64,
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

    /// The thread has been added, and signals may come in. Returns the process's id.
    pub fn begin(&mut self, kernel: &Kernel) -> u32 {
        self.number = kernel.threads.alive.get(&self.address.id).map_or(0, |member| member.number);
        let mask = self.signals.mask;
        self.signals.set_mask(mask);
        kernel.process
    }

    /// Tells the process's clock how many instructions the thread has executed.
    pub fn report(&mut self, kernel: &mut Kernel, instructions: u64) {
        kernel.instructions += instructions - self.reported;
        self.reported = instructions;
    }

    /// The thread ends: what waits for it learns so, and no signal reaches it any more.
    pub fn end(&mut self, kernel: &mut Kernel, memory: &Memory) {
        host::block_all();
        let member = kernel.threads.alive.remove(&self.address.id);
        let over = matches!(kernel.threads.ending, Some(Ending::End(_)));
        if let Some(information) = host::take().filter(|_| !over) {
            host::requeue(&information);
        }
        // Memory that is not there any more cannot be waited for either.
        let _ = self.release_mutexes(memory, member.map_or(0, |member| member.robust_list));
        let clear_at_end = std::mem::take(&mut self.clear_at_end);
        if clear_at_end != 0 && !kernel.threads.alive.is_empty() && memory.store::<4>(clear_at_end, 0).is_ok()
        {
            wake_one(memory, clear_at_end);
        }
    }

    /// Marks each mutex in the list at `head` whose owner the thread is (kernel documentation:
    /// robust-futex-ABI).
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

/// Wakes one that waits for the futex.
fn wake_one(memory: &Memory, address: u64) {
    if let Some(word) = memory.host(address, 4) {
        let arguments = [word as u64, libc::FUTEX_WAKE as u64, 1, 0, 0, 0];
        // SAFETY: the kernel checks the address.
        let _ = unsafe { host::call(libc::SYS_futex, arguments) };
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

impl Kernel {
    /// Adds a thread that has begun and waits for the lock. Its id is stored where the parent wanted
    /// it.
    pub fn add(&mut self, address: ThreadHandle, start: &Start, memory: &Memory) {
        let member = Member { address, number: self.threads.begun, robust_list: 0 };
        self.threads.alive.insert(address.id, member);
        for place in start.store_id.into_iter().filter(|&place| place != 0) {
            // As Linux: a failure is not reported.
            let _ = memory.store::<4>(place, address.id as u64);
        }
        self.threads.begun += 1;
    }

    /// The first thread goes on, alone, with another program.
    pub(crate) fn renew(&mut self, first: &mut Thread) {
        self.threads = Threads::new(first);
        first.number = 0;
    }

    /// In the child of a fork: the calling thread is the first and only one.
    fn become_child(&mut self, thread: &mut Thread, clear_at_end: u64) {
        thread.address = host::adopt_thread(true);
        thread.clear_at_end = clear_at_end;
        self.process = std::process::id();
        self.parent = None;
        self.debugger = None;
        self.timers.forget();
        self.renew(thread);
    }

    /// True for the thread that stays until all others have ended.
    pub fn is_first(&self, thread: &Thread) -> bool {
        self.threads.first == thread.address.id
    }

    /// True for the id of a thread of the guest's.
    pub(crate) fn has_thread(&self, id: i32) -> bool {
        self.threads.alive.contains_key(&id)
    }

    /// True if no thread is left.
    pub fn is_empty(&self) -> bool {
        self.threads.alive.is_empty()
    }

    /// True if the process has, or had, more than one thread.
    pub fn is_threaded(&self) -> bool {
        self.threads.begun > 1
    }

    /// The process ends so, unless another thread was faster: every other thread is summoned.
    pub fn end(&mut self, ending: Ending, caller: &Thread) {
        if self.threads.ending.is_none() {
            self.threads.ending = Some(ending);
            for other in self.others(caller) {
                // SAFETY: a thread that ends takes itself from the list, under the lock that we have.
                unsafe { other.kick() };
            }
        }
    }

    /// True if every thread is to end.
    pub fn is_ending(&self) -> bool {
        self.threads.ending.is_some()
    }

    /// How the process ends, if not by the end of its last thread.
    pub fn take_ending(&mut self) -> Option<Ending> {
        self.threads.ending.take()
    }

    /// Makes the other threads look at what has changed before they go on in the guest.
    pub fn notify_others(&self, caller: &Thread) {
        for other in self.others(caller) {
            // SAFETY: as in `end`.
            unsafe { other.notify() };
        }
    }

    fn others(&self, caller: &Thread) -> impl Iterator<Item = ThreadHandle> {
        let caller = caller.address.id;
        let addresses = self.threads.alive.values().map(|member| member.address);
        addresses.filter(move |other| other.id != caller)
    }

    /// What to call the calling thread in a message: its number and its name.
    pub fn thread_name(&self, thread: &Thread) -> String {
        let mut name = [0u8; 16];
        // SAFETY: the kernel writes at most 16 bytes, the last of which is 0.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        format!("thread {} ({})", thread.number, String::from_utf8_lossy(name))
    }
}

/// exit(status): the end of the calling thread.
pub fn exit(call: &mut Call) -> Outcome {
    call.control = Control::ExitThread(call.int(0) & 0xff);
    Ok(0)
}

/// exit_group(status)
pub fn exit_group(call: &mut Call) -> Outcome {
    inform_parent(call);
    call.control = Control::Exit(call.int(0) & 0xff);
    Ok(0)
}

/// Lets a parent that waits in vfork see what this process leaves to it.
pub fn inform_parent(call: &Call) {
    if let Some(parent) = &call.kernel.parent {
        parent.inform(call.memory);
    }
}

/// fork()
pub fn fork(call: &mut Call) -> Outcome {
    fork_process(call, 0)
}

/// vfork()
pub fn vfork(call: &mut Call) -> Outcome {
    vfork::fork(call, true, |call| fork_process(call, 0))
}

/// Forks the engine itself: 0 in the child, where only the calling thread lives on.
pub fn fork_process(call: &mut Call, clear_at_end: u64) -> Outcome {
    // No signal may be recorded in between, or both would deliver it.
    let mask = host::block_all();
    if host::is_recorded() {
        host::set_mask(mask);
        return Err(Errno::RESTART_ALWAYS);
    }
    // SAFETY: the child goes on with the calling thread. It has the kernel's lock, and nobody else
    // has a lock of the memory's: the two that the engine itself has while a guest runs.
    let child = call.memory.undisturbed(|| unsafe { libc::fork() });
    let error = Errno::last();
    if child == 0 {
        call.kernel.become_child(call.thread, clear_at_end);
    }
    host::set_mask(mask);
    // OSF/1's second result tells the child from the parent.
    match child {
        -1 => Err(error),
        child => {
            if child > 0 {
                call.kernel.forks.add();
            }
            call.cpu.r[register::A4] = u64::from(child == 0);
            Ok(child as u64)
        }
    }
}

/// set_tid_address(address)
pub fn set_tid_address(call: &mut Call) -> Outcome {
    call.thread.clear_at_end = call.arguments[0];
    Ok(call.thread.address.id as u64)
}

/// Bytes of the head of a list of mutexes.
const HEAD_BYTES: u64 = 24;

/// set_robust_list(head, size)
pub fn set_robust_list(call: &mut Call) -> Outcome {
    let [head, size, ..] = call.arguments;
    if size != HEAD_BYTES {
        return Err(EINVAL);
    }
    let id = call.thread.address.id;
    if let Some(member) = call.kernel.threads.alive.get_mut(&id) {
        member.robust_list = head;
    }
    Ok(0)
}

/// get_robust_list(thread, head, size): that of a thread of another process is the host's alone.
pub fn get_robust_list(call: &mut Call) -> Outcome {
    let [_, head, size, ..] = call.arguments;
    let id = match call.int(0) {
        0 => call.thread.address.id,
        id => id,
    };
    let Some(member) = call.kernel.threads.alive.get(&id) else {
        call.host(libc::SYS_kill, [id as u64, 0, 0, 0, 0, 0])?;
        return Err(Errno(libc::EPERM));
    };
    let list = member.robust_list;
    call.write(size, &Record::new().u64s(&[HEAD_BYTES]))?;
    call.write(head, &Record::new().u64s(&[list]))?;
    Ok(0)
}

impl Kernel {
    /// The effects of execve on what outlives a program: the first thread goes on, with the signal
    /// mask of the one that called.
    pub fn execute(&mut self, first: &mut Thread, execute: &Execute) {
        self.parent = None;
        self.actions.execute();
        self.timers.delete_all();
        self.contexts.destroy_all();
        crate::fd::close_all();
        self.renew(first);
        first.signals = Signals::new(execute.mask);
        host::set_mask(signals::host_mask(execute.mask));
    }
}
