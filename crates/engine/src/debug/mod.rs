//! A debugger's side of a running program: it stops all threads, looks at them, changes them, and lets
//! them go on.
//!
//! Each thread of the program has an [`Attached`], its observer. When the program is to be held, a thread
//! stops where it is in the guest, or when it comes back from the kernel: a system call under way is left
//! alone. The first thread that has a reason to stop tells so; the others wait, and look for their reasons
//! again when the program goes on.
//!
//! Between breakpoints compiled code runs. Blocks begin at breakpoints, and those blocks are never compiled.
//! A thread that is stepped, or watched, executes blocks of one instruction.

mod attached;
mod breakpoints;
#[cfg(test)]
mod tests;

pub use attached::Attached;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use self::breakpoints::Breakpoints;
use crate::places::{SECOND_ENTRY, computes_gp};
use crate::process::Process;
use alpha::cpu::{Cpu, register};
use host::ThreadHandle;
use linux::End;
use memory::{Memory, PAGE};

/// The registers of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Integer registers; 31 is always 0.
    pub r: [u64; 32],
    /// Floating-point registers; 31 is always 0.
    pub f: [u64; 32],
    /// Floating-point control register.
    pub fpcr: u64,
    /// Address of the next instruction.
    pub pc: u64,
    /// The thread's unique value.
    pub unique: u64,
}

impl Registers {
    fn of(cpu: &Cpu) -> Registers {
        let first = |all: &[u64; 33]| std::array::from_fn(|index| all[index]);
        Registers { r: first(&cpu.r), f: first(&cpu.f), fpcr: cpu.fpcr, pc: cpu.pc, unique: cpu.unique }
    }

    fn write_to(&self, cpu: &mut Cpu) {
        cpu.r[..register::ZERO].copy_from_slice(&self.r[..register::ZERO]);
        cpu.f[..register::ZERO].copy_from_slice(&self.f[..register::ZERO]);
        (cpu.fpcr, cpu.pc, cpu.unique) = (self.fpcr, self.pc & !3, self.unique);
    }
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is at a breakpoint.
    Breakpoint,
    /// It has done its step.
    Step,
    /// It has accessed this address, which is watched.
    Access {
        /// The address.
        address: u64,
        /// For what accesses it was watched.
        watched: Accesses,
    },
    /// This signal, by Alpha's number, is about to reach it.
    Signal(i32),
    /// It is at the beginning of another program, which took the place of the one before.
    Program,
}

/// A stop of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The thread that is the reason.
    pub thread: i32,
    /// Why.
    pub reason: Reason,
}

/// What the program tells its debugger.
#[derive(Clone, Debug)]
pub enum Event {
    /// It is about to stop: [`Session::settle`] waits until it has.
    Stopped(Stopped),
    /// It has ended.
    Ended(End),
}

/// What a thread is to do when the program goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Run.
    #[default]
    Run,
    /// Execute one instruction, and then on for as long as the next one is in the range.
    Step(Range<u64>),
    /// Wait.
    Stay,
}

/// The accesses that are watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Accesses {
    /// Loads.
    Loads,
    /// Stores.
    Stores,
    /// Both.
    All,
}

/// A place that is watched: its first address, the one behind it, and for what.
type Watchpoint = (u64, u64, Accesses);

/// Why the debugger cannot do something to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such thread.
    #[error("there is no such thread")]
    NoThread,
    /// Its registers belong to the call until that returns.
    #[error("the thread is in a system call")]
    InCall,
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It executes instructions.
    Guest,
    /// It is in a system call.
    Kernel,
    /// It waits to go on.
    Held,
}

/// A thread as the debugger knows it.
struct Member {
    address: ThreadHandle,
    place: Place,
    /// Those it had when it came to its place.
    registers: Registers,
    /// The debugger has set them since.
    is_changed: bool,
    /// The last stop behind the address that the debugger was told of.
    entered: Option<Entered>,
    order: Order,
    /// The signal that is to reach it when it goes on.
    signal: Option<i32>,
    /// A signal reaches it now.
    is_signalled: bool,
    /// The debugger sent this signal: it need not be told of it.
    sent: Option<i32>,
}

impl Member {
    /// One that begins.
    fn new(address: ThreadHandle, registers: Registers, order: Order) -> Member {
        Member {
            address,
            place: Place::Guest,
            registers,
            is_changed: false,
            entered: None,
            order,
            signal: None,
            is_signalled: false,
            sent: None,
        }
    }
}

/// A thread has come into a function by its second entry, and stopped for a breakpoint before it, where the debugger is
/// told that it is. The instructions there compute the global pointer from the procedure value, which such a call does
/// not pass: they must not be executed.
#[derive(Clone, Copy)]
struct Entered {
    /// Where the debugger believes it.
    seems: u64,
    /// Where it is.
    pc: u64,
    /// The call, by its return address and its stack pointer: the debugger may set the registers to those of the stop
    /// when it has called a function of the program's.
    call: (u64, u64),
}

impl Entered {
    fn new(seems: u64, cpu: &Cpu) -> Entered {
        Entered { seems, pc: cpu.pc, call: (cpu.r[register::RA], cpu.r[register::SP]) }
    }

    /// Where the thread goes on that the debugger has put where it seemed to be, if it is in that call.
    fn pc(&self, cpu: &Cpu) -> Option<u64> {
        let is_it = cpu.pc == self.seems && (cpu.r[register::RA], cpu.r[register::SP]) == self.call;
        is_it.then_some(self.pc)
    }
}

/// What the debugger and the threads share.
struct State {
    members: BTreeMap<i32, Member>,
    /// All threads are to stop.
    is_held: bool,
    is_detached: bool,
    /// How often the program went on.
    turn: u64,
    /// What new threads do.
    default: Order,
    breakpoints: Arc<Breakpoints>,
    watchpoints: Arc<BTreeSet<Watchpoint>>,
    executable: PathBuf,
    /// The first thread's stack pointer when the program began.
    stack: u64,
}

impl State {
    /// Of a program that has not begun.
    fn new(executable: PathBuf, stack: u64) -> State {
        State {
            members: BTreeMap::new(),
            is_held: true,
            is_detached: false,
            turn: 0,
            default: Order::Run,
            breakpoints: Arc::default(),
            watchpoints: Arc::default(),
            executable,
            stack,
        }
    }

    /// Nobody stays where it is, and who begins does not either.
    fn let_all_run(&mut self) {
        self.default = Order::Run;
        self.members.values_mut().for_each(|member| member.order = Order::Run);
    }

    /// Makes all threads stop, as soon as they can.
    fn hold(&mut self) {
        self.is_held = true;
        self.summon();
    }

    /// Makes all threads look at what has changed.
    fn summon(&self) {
        for member in self.members.values().filter(|member| member.place == Place::Guest) {
            // SAFETY: a thread that ends takes itself from the list first, under the lock that we have.
            unsafe { member.address.notify() };
        }
    }

    fn stays(&self, thread: i32) -> bool {
        self.is_held || self.members.get(&thread).is_some_and(|member| member.order == Order::Stay)
    }
}

/// A program under a debugger.
pub struct Session {
    state: Mutex<State>,
    /// Something changed that a thread, or the debugger, may wait for.
    changed: Condvar,
    memory: Arc<Memory>,
    tell: Box<dyn Fn(Event) + Send + Sync>,
}

impl Session {
    /// For a program that was loaded and has not begun. It stops before its first instruction. `tell` hears
    /// of events, and must not wait.
    pub fn new(process: &Process, tell: impl Fn(Event) + Send + Sync + 'static) -> Arc<Session> {
        let executable = process.images.first().map(|image| image.path.clone()).unwrap_or_default();
        let state = State::new(executable, process.cpu.r[register::SP]);
        let (memory, tell) = (process.memory.clone(), Box::new(tell));
        Arc::new(Session { state: Mutex::new(state), changed: Condvar::new(), memory, tell })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread executes instructions, after it was told of a stop, or before the program has
    /// begun.
    pub fn settle(&self) {
        let mut state = self.lock();
        let settled = |state: &State| {
            !state.members.is_empty() && state.members.values().all(|member| member.place != Place::Guest)
        };
        while !settled(&state) {
            state = self.wait(state);
        }
    }

    /// Stops the program. Returns a thread of it, preferably one that executes instructions; None if the
    /// program was about to stop anyway.
    pub fn interrupt(&self) -> Option<i32> {
        let mut state = self.lock();
        if state.is_held {
            return None;
        }
        let members = &state.members;
        let busy = members.iter().find(|(_, member)| member.place == Place::Guest);
        let thread = busy.or(members.iter().next()).map(|(&id, _)| id);
        state.hold();
        drop(state);
        self.settle();
        thread
    }

    /// Lets the program go on: the threads named as ordered, each with the signal that is to reach it first,
    /// the others as `default` says.
    pub fn resume(&self, orders: &BTreeMap<i32, (Order, Option<i32>)>, default: &Order) {
        let mut state = self.lock();
        for (id, member) in &mut state.members {
            let (order, signal) = orders.get(id).cloned().unwrap_or((default.clone(), None));
            // One that the thread has not taken yet, for it was stopped again at once, is not lost.
            (member.order, member.signal) = (order, signal.or(member.signal));
            member.sent = None;
        }
        state.default = default.clone();
        state.turn += 1;
        state.is_held = false;
        self.changed.notify_all();
    }

    /// Lets the program go on by itself: no thread stops any more.
    pub fn detach(&self) {
        let mut state = self.lock();
        state.is_detached = true;
        state.is_held = false;
        state.let_all_run();
        state.summon();
        self.changed.notify_all();
    }

    /// Tells that the program has ended.
    pub fn end(&self, end: End) {
        (self.tell)(Event::Ended(end));
    }

    /// The threads' ids, which are the host's.
    pub fn threads(&self) -> Vec<i32> {
        self.lock().members.keys().copied().collect()
    }

    /// The registers of a thread that has stopped. In a system call they are what they were when it began.
    pub fn registers(&self, thread: i32) -> Result<Registers, Refusal> {
        self.lock().members.get(&thread).map(|member| member.registers.clone()).ok_or(Refusal::NoThread)
    }

    /// Sets the registers of a thread that has stopped.
    pub fn set_registers(&self, thread: i32, registers: &Registers) -> Result<(), Refusal> {
        let mut state = self.lock();
        let member = state.members.get_mut(&thread).ok_or(Refusal::NoThread)?;
        if member.place != Place::Held {
            return Err(Refusal::InCall);
        }
        (member.registers, member.is_changed) = (registers.clone(), true);
        Ok(())
    }

    /// Reads memory: as many bytes as are there, from the first on.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let bytes = (buffer.len() - done).min((PAGE - at % PAGE) as usize);
            if self.memory.read(at, &mut buffer[done..done + bytes]).is_err() {
                break;
            }
            done += bytes;
        }
        done
    }

    /// Writes memory, and be it code or constants. If that fails, nothing was written.
    pub fn write(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        let length = bytes.len() as u64;
        let end = address.checked_add(length).filter(|&end| self.memory.is_mapped(address, end - address));
        let host = end.and_then(|_| self.memory.host(address, length));
        let host = host.ok_or_else(|| std::io::Error::from_raw_os_error(libc::EFAULT))?;
        // The host's kernel writes where the protection forbids it to the program.
        let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
        memory.write_all_at(bytes, host as u64)?;
        self.memory.code_changed();
        Ok(())
    }

    /// Lets the program stop before the instruction at an address. Where a function begins there, callers that share
    /// its global pointer enter behind: they stop, too, and seem to be at the address. False if it does already.
    pub fn add_breakpoint(&self, address: u64) -> bool {
        let second_entry = self.second_entry_behind(address);
        Arc::make_mut(&mut self.lock().breakpoints).insert(address, second_entry)
    }

    /// The second entry of a function, if the address is before it.
    fn second_entry_behind(&self, address: u64) -> Option<u64> {
        let word = |at| self.memory.load::<4>(at).ok().map(|word| word as u32);
        let begins = |at: &u64| {
            let words = word(*at).zip(at.checked_add(4).and_then(word));
            words.is_some_and(|(first, second)| computes_gp(first, second))
        };
        [address, address.wrapping_sub(4)].into_iter().find(begins).map(|entry| entry + SECOND_ENTRY)
    }

    /// Undoes that. False if there is nothing to undo.
    pub fn remove_breakpoint(&self, address: u64) -> bool {
        Arc::make_mut(&mut self.lock().breakpoints).remove(address)
    }

    /// Lets the program stop behind an instruction that accesses so many bytes at an address. False if it
    /// does already.
    pub fn add_watchpoint(&self, address: u64, bytes: u64, accesses: Accesses) -> bool {
        let place = (address, address.saturating_add(bytes), accesses);
        Arc::make_mut(&mut self.lock().watchpoints).insert(place)
    }

    /// Undoes that. False if there is nothing to undo.
    pub fn remove_watchpoint(&self, address: u64, bytes: u64, accesses: Accesses) -> bool {
        let place = (address, address.saturating_add(bytes), accesses);
        Arc::make_mut(&mut self.lock().watchpoints).remove(&place)
    }

    /// The executable.
    pub fn executable(&self) -> PathBuf {
        self.lock().executable.clone()
    }

    /// The auxiliary vector, as it is on the program's stack.
    pub fn auxiliary_vector(&self) -> Vec<u8> {
        const MOST_WORDS: u64 = 1 << 20;
        const LONGEST: usize = 64;
        let stack = self.lock().stack;
        let mut words = (0..MOST_WORDS).map_while(|index| self.memory.load::<8>(stack + 8 * index).ok());
        // The number of arguments; those, and the environment's strings, each with a 0 behind.
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
