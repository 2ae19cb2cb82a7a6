//! The debugger's side of a running program: it stops all threads, reads and changes their state, and resumes them.
//!
//! Each thread of the program has an [`DebugObserver`] as its observer. When the program is to stop, a thread in guest
//! code stops where it is, and a thread in a system call stops when the call returns; the call is not interrupted.
//! The first thread with a reason to stop reports it. The others wait, and determine their reasons again when the
//! program is resumed.
//!
//! Compiled code runs between breakpoints. Blocks begin at breakpoints, and such blocks are never compiled. A thread
//! that is stepped or has watchpoints executes blocks of one instruction.

mod attached;
mod breakpoints;
mod registers;
#[cfg(test)]
mod tests;

pub use attached::DebugObserver;
pub use registers::ThreadRegisters;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use self::breakpoints::Breakpoints;
use crate::platform::{GuestDescription, Platform};
use crate::process::Process;
use guest_memory::{Memory, RegionBacking};
use host::ThreadHandle;
use linux_user::ProgramEnd;

/// The reason for which a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A breakpoint.
    Breakpoint,
    /// The end of a step.
    Step,
    /// An access to this address, which is watched.
    Access {
        /// The address.
        address: u64,
        /// The accesses that are watched.
        watched: WatchedAccesses,
    },
    /// A signal, by the guest's number, that is about to be delivered.
    Signal(i32),
    /// The start of another program, which replaced the previous one.
    Program,
}

/// A stop of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The thread that caused it.
    pub thread: i32,
    /// The reason.
    pub reason: StopReason,
}

/// An event that the program reports to its debugger.
#[derive(Clone, Debug)]
pub enum DebugEvent {
    /// The program is stopping: [`DebugSession::settle`] waits until it has stopped.
    Stopped(Stopped),
    /// The program has ended.
    Ended(ProgramEnd),
}

/// The action of a thread when the program is resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Run.
    #[default]
    Run,
    /// Execute one instruction, and continue while the next one is in the range.
    Step(Range<u64>),
    /// Stay stopped.
    Stay,
}

/// The accesses that a watchpoint watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedAccesses {
    /// Loads.
    Loads,
    /// Stores.
    Stores,
    /// Both.
    All,
}

/// A watchpoint: its first address, the address after it, and the accesses.
type Watchpoint = (u64, u64, WatchedAccesses);

/// Why an operation on a thread failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such thread.
    #[error("there is no such thread")]
    NoThread,
    /// The guest has another number of registers.
    #[error("the guest has another number of registers")]
    OtherRegisters,
    /// Its registers cannot be set before the system call returns.
    #[error("the thread is in a system call")]
    InCall,
}

/// The execution state of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    /// It executes instructions.
    Guest,
    /// It is in a system call.
    Kernel,
    /// It is stopped.
    Held,
}

/// A debugged thread.
struct DebuggedThread {
    address: ThreadHandle,
    thread_state: ThreadState,
    /// Its registers when it came to its present state.
    registers: ThreadRegisters,
    /// The debugger has set the registers since.
    is_changed: bool,
    /// The last stop at a second entry that was reported as a stop before it.
    second_entry_stop: Option<SecondEntryStop>,
    order: Order,
    /// The signal to deliver when the thread is resumed.
    signal: Option<i32>,
    /// A signal is being delivered.
    is_signalled: bool,
    /// The debugger sent this signal, so its delivery is not reported.
    sent: Option<i32>,
}

impl DebuggedThread {
    /// A thread that begins.
    fn new(address: ThreadHandle, registers: ThreadRegisters, order: Order) -> DebuggedThread {
        DebuggedThread {
            address,
            thread_state: ThreadState::Guest,
            registers,
            is_changed: false,
            second_entry_stop: None,
            order,
            signal: None,
            is_signalled: false,
            sent: None,
        }
    }
}

/// The state of a thread that entered a function by its second entry and stopped there for a breakpoint on an
/// instruction before it. The debugger is told that the thread is at that breakpoint. The instructions between the
/// entries compute the global pointer from the procedure value, which this caller did not pass: they must not be
/// executed.
#[derive(Clone, Copy)]
struct SecondEntryStop {
    /// The program counter that is reported to the debugger.
    reported_pc: u64,
    /// The actual program counter.
    pc: u64,
    /// Return address and stack pointer, which identify the call: a debugger that calls a function of the program
    /// restores the registers of the stop afterwards.
    call: (u64, u64),
}

impl SecondEntryStop {
    fn new<G: Platform>(reported_pc: u64, cpu: &G) -> SecondEntryStop {
        SecondEntryStop { reported_pc, pc: cpu.pc(), call: (cpu.return_address(), cpu.stack_pointer()) }
    }

    /// The actual program counter, if the thread is in that call and the debugger has set the program counter to the
    /// reported one.
    fn pc<G: Platform>(&self, cpu: &G) -> Option<u64> {
        let is_it = cpu.pc() == self.reported_pc && (cpu.return_address(), cpu.stack_pointer()) == self.call;
        is_it.then_some(self.pc)
    }
}

/// State shared by the debugger and the threads.
struct SessionState {
    threads: BTreeMap<i32, DebuggedThread>,
    /// All threads must stop.
    is_held: bool,
    is_detached: bool,
    /// How often the program was resumed.
    resume_count: u64,
    /// The order of new threads.
    default: Order,
    breakpoints: Arc<Breakpoints>,
    watchpoints: Arc<BTreeSet<Watchpoint>>,
    /// The guest of the program.
    guest: &'static dyn GuestDescription,
    executable: PathBuf,
    /// The first thread's stack pointer at the start of the program.
    stack: u64,
}

impl SessionState {
    /// The state of a program that has not started.
    fn new(guest: &'static dyn GuestDescription, executable: PathBuf, stack: u64) -> SessionState {
        SessionState {
            threads: BTreeMap::new(),
            is_held: true,
            is_detached: false,
            resume_count: 0,
            default: Order::Run,
            breakpoints: Arc::new(Breakpoints::new(guest.instruction_set())),
            watchpoints: Arc::default(),
            guest,
            executable,
            stack,
        }
    }

    /// Lets all threads run, including new ones.
    fn run_all(&mut self) {
        self.default = Order::Run;
        self.threads.values_mut().for_each(|debugged| debugged.order = Order::Run);
    }

    /// Makes all threads stop as soon as they can.
    fn hold(&mut self) {
        self.is_held = true;
        self.kick_all();
    }

    /// Makes all threads leave compiled code and check what has changed.
    fn kick_all(&self) {
        for debugged in self.threads.values().filter(|debugged| debugged.thread_state == ThreadState::Guest) {
            // SAFETY: a thread that ends removes itself from the list first, under the lock that is held here.
            unsafe { debugged.address.notify() };
        }
    }

    fn must_stay(&self, thread: i32) -> bool {
        self.is_held || self.threads.get(&thread).is_some_and(|debugged| debugged.order == Order::Stay)
    }
}

/// A program under a debugger.
pub struct DebugSession {
    state: Mutex<SessionState>,
    /// Signalled when a state changes for which threads or the debugger wait.
    changed: Condvar,
    memory: Arc<Memory>,
    report: Box<dyn Fn(DebugEvent) + Send + Sync>,
}

impl DebugSession {
    /// A session for a program that was loaded and has not started. It stops before its first instruction. `report` is
    /// called for each event and must not block.
    pub fn new(process: &Process, report: impl Fn(DebugEvent) + Send + Sync + 'static) -> Arc<DebugSession> {
        let executable = process.images.first().map(|image| image.path.clone()).unwrap_or_default();
        let state = SessionState::new(process.guest(), executable, process.stack_pointer());
        let (memory, report) = (process.memory.clone(), Box::new(report));
        Arc::new(DebugSession { state: Mutex::new(state), changed: Condvar::new(), memory, report })
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, SessionState>) -> MutexGuard<'a, SessionState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread executes instructions, after a stop was reported or before the program starts.
    pub fn settle(&self) {
        let mut state = self.lock();
        let settled = |state: &SessionState| {
            !state.threads.is_empty()
                && state.threads.values().all(|debugged| debugged.thread_state != ThreadState::Guest)
        };
        while !settled(&state) {
            state = self.wait(state);
        }
    }

    /// Stops the program. Returns a thread, preferably one that executes instructions; None if the program was
    /// stopping already.
    pub fn interrupt(&self) -> Option<i32> {
        let mut state = self.lock();
        if state.is_held {
            return None;
        }
        let threads = &state.threads;
        let busy = threads.iter().find(|(_, debugged)| debugged.thread_state == ThreadState::Guest);
        let thread = busy.or(threads.iter().next()).map(|(&id, _)| id);
        state.hold();
        drop(state);
        self.settle();
        thread
    }

    /// Resumes the program: the named threads with their orders, each with the signal to deliver first, and the
    /// others with `default`.
    pub fn resume(&self, orders: &BTreeMap<i32, (Order, Option<i32>)>, default: &Order) {
        let mut state = self.lock();
        for (id, debugged) in &mut state.threads {
            let (order, signal) = orders.get(id).cloned().unwrap_or((default.clone(), None));
            // Keep a signal that the thread has not taken because it was stopped again at once.
            (debugged.order, debugged.signal) = (order, signal.or(debugged.signal));
            debugged.sent = None;
        }
        state.default = default.clone();
        state.resume_count += 1;
        state.is_held = false;
        self.changed.notify_all();
    }

    /// Detaches: no thread stops any more.
    pub fn detach(&self) {
        let mut state = self.lock();
        state.is_detached = true;
        state.is_held = false;
        state.run_all();
        state.kick_all();
        self.changed.notify_all();
    }

    /// Reports that the program has ended.
    pub fn end(&self, end: ProgramEnd) {
        (self.report)(DebugEvent::Ended(end));
    }

    /// The guest of the program.
    pub fn guest(&self) -> &'static dyn GuestDescription {
        self.lock().guest
    }

    /// The threads' IDs, which are the host's.
    pub fn threads(&self) -> Vec<i32> {
        self.lock().threads.keys().copied().collect()
    }

    /// The registers of a stopped thread. For a thread in a system call they are those at the start of the call.
    pub fn registers(&self, thread: i32) -> Result<ThreadRegisters, Refusal> {
        self.lock().threads.get(&thread).map(|debugged| debugged.registers.clone()).ok_or(Refusal::NoThread)
    }

    /// Sets the registers of a stopped thread, by GDB's numbers.
    pub fn set_registers(&self, thread: i32, words: Vec<u64>) -> Result<(), Refusal> {
        let mut state = self.lock();
        let registers = ThreadRegisters::new(state.guest, words).ok_or(Refusal::OtherRegisters)?;
        let debugged = state.threads.get_mut(&thread).ok_or(Refusal::NoThread)?;
        if debugged.thread_state != ThreadState::Held {
            return Err(Refusal::InCall);
        }
        (debugged.registers, debugged.is_changed) = (registers, true);
        Ok(())
    }

    /// Reads memory, up to the first byte that is not mapped.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let page = self.memory.layout().page;
        let mut done = 0;
        while done < buffer.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let bytes = (buffer.len() - done).min((page - at % page) as usize);
            if self.memory.read(at, &mut buffer[done..done + bytes]).is_err() {
                break;
            }
            done += bytes;
        }
        done
    }

    /// Writes memory, including code and constants. On failure nothing was written.
    pub fn write(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        let length = bytes.len() as u64;
        let end = address.checked_add(length).filter(|&end| self.memory.is_mapped(address, end - address));
        let host = end.and_then(|_| self.memory.host(address, length));
        let host = host.ok_or_else(|| std::io::Error::from_raw_os_error(libc::EFAULT))?;
        // The host's kernel writes even if the page's protection forbids the program to.
        // The program is stopped, so that no thread of it sees the descriptor.
        let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
        memory.write_all_at(bytes, host as u64)?;
        self.memory.code_changed();
        Ok(())
    }

    /// Sets a breakpoint. If a function begins at the address, callers that use its second entry stop there and are
    /// reported at the address. False if there is a breakpoint already.
    pub fn add_breakpoint(&self, address: u64) -> bool {
        let second_entry = self.second_entry_of(address);
        Arc::make_mut(&mut self.lock().breakpoints).insert(address, second_entry)
    }

    /// The second entry of a function, if the address is before it.
    fn second_entry_of(&self, address: u64) -> Option<u64> {
        let guest = self.guest();
        let set = guest.instruction_set();
        let word = |at| self.memory.load::<4>(at).ok().map(|word| word as u32);
        let begins = |at: &u64| {
            let words = word(*at).zip(at.checked_add(4).and_then(word));
            words.is_some_and(|(first, second)| guest.has_second_entry(first, second))
        };
        let alignment = set.code_alignment() as usize;
        let mut starts = (0..set.second_entry()).step_by(alignment).map(|back| address.wrapping_sub(back));
        starts.find(begins).map(|entry| entry + set.second_entry())
    }

    /// Removes a breakpoint. False if there is none.
    pub fn remove_breakpoint(&self, address: u64) -> bool {
        Arc::make_mut(&mut self.lock().breakpoints).remove(address)
    }

    /// Sets a watchpoint: the program stops after an instruction that accesses this range. False if there is one
    /// already.
    pub fn add_watchpoint(&self, address: u64, bytes: u64, accesses: WatchedAccesses) -> bool {
        let watchpoint = (address, address.saturating_add(bytes), accesses);
        Arc::make_mut(&mut self.lock().watchpoints).insert(watchpoint)
    }

    /// Removes a watchpoint. False if there is none.
    pub fn remove_watchpoint(&self, address: u64, bytes: u64, accesses: WatchedAccesses) -> bool {
        let watchpoint = (address, address.saturating_add(bytes), accesses);
        Arc::make_mut(&mut self.lock().watchpoints).remove(&watchpoint)
    }

    /// The executable.
    pub fn executable(&self) -> PathBuf {
        self.lock().executable.clone()
    }

    /// The files that the program has mapped, with its images.
    pub fn mapped_files(&self) -> Vec<PathBuf> {
        let files = self.memory.regions().into_iter().filter_map(|(_, region)| match region.backing {
            RegionBacking::File { path, .. } => Some(path.to_path_buf()),
            _ => None,
        });
        let mut files: Vec<PathBuf> = files.chain([self.executable()]).collect();
        files.dedup();
        files
    }

    /// The auxiliary vector, read from the program's stack.
    pub fn auxiliary_vector(&self) -> Vec<u8> {
        const MOST_WORDS: u64 = 1 << 20;
        const LONGEST: usize = 64;
        let stack = self.lock().stack;
        let mut words = (0..MOST_WORDS).map_while(|index| self.memory.load::<8>(stack + 8 * index).ok());
        // Skip argc, the arguments and the environment, each of which ends with a 0.
        words.next();
        for _ in 0..2 {
            words.by_ref().find(|&word| word == 0);
        }
        let words: Vec<u64> = words.take(2 * LONGEST).collect();
        let entries = words.chunks_exact(2);
        let length = entries.clone().position(|entry| entry[0] == 0).map_or(0, |last| last + 1);
        entries.take(length).flatten().flat_map(|word| word.to_le_bytes()).collect()
    }
}
