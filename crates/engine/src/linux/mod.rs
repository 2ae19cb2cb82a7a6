//! The operating system as an Alpha/Linux program sees it: system calls and signals, carried out by
//! the host's Linux with Alpha's numbers and structures converted both ways.
//!
//! `table` has one line a system call. Most are passed to the host by a description of their
//! arguments; the rest are handlers in the modules named by topic.

mod aio;
mod bits;
mod call;
mod clone;
mod delivery;
mod descriptors;
mod errno;
mod files;
mod forks;
mod information;
mod ipc;
mod layout;
mod limits;
pub mod loader;
mod mapping;
mod memory_file;
mod message_queues;
mod messages;
mod missing;
mod numa;
mod paths;
mod proc_files;
mod process_memory;
mod processes;
mod reserved;
mod signal_calls;
mod signals;
mod sockets;
mod status;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod threads;
mod time;
mod timers;
mod vfork;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use events::LoadedImage;

use crate::alpha::cpu::{Cpu, register};
use crate::debug::Session;
use call::Call;
use host::Errno;
use memory::Memory;
pub use reserved::{high_copy, leave_guests_table, out_of_reach, read_image};
use signals::Actions;
use table::Action;
pub use threads::{Ending, Start, Thread};

/// What the operating system is like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where absolute paths are looked up first: the C library and its loader are there.
    pub sysroot: PathBuf,
    /// What the clocks show.
    pub clock: Clock,
    /// Where random numbers come from.
    pub random: Random,
    /// Size of the stack in bytes.
    pub stack_bytes: u64,
    /// What the host's programs find in their environment when the program executes one: `NAME=value`,
    /// instead of what the program has under that name.
    pub host_environment: Vec<OsString>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sysroot: "/usr/alpha-linux-gnu".into(),
            clock: Clock::Virtual,
            random: Random::Seeded(0),
            stack_bytes: 8 << 20,
            host_environment: Vec::new(),
        }
    }
}

/// What the clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's time.
    Host,
    /// A time that depends on the program alone, so that the same command gives the same counts: it
    /// starts at 2026-01-01T00:00:00Z and advances by 1 ns an instruction and by what is slept.
    Virtual,
}

/// Where getrandom, `AT_RANDOM`, /dev/random and /dev/urandom come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// The host.
    Host,
    /// A generator with this seed: the same numbers each time.
    Seeded(u64),
}

/// What the engine is to do after a system call or a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Run on at the program counter.
    Continue,
    /// The program has ended with this status.
    Exit(i32),
    /// The calling thread has ended; if it is the last one, this is the program's status.
    ExitThread(i32),
    /// A new thread begins; the call returns its id.
    Start(Start),
    /// A signal ended the program.
    Killed {
        /// Alpha's number.
        signal: i32,
    },
    /// Another program takes this one's place.
    Execute(Execute),
}

/// A program to run in place of the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// Its file on the host, an Alpha image.
    pub path: PathBuf,
    /// Its arguments, the first included.
    pub arguments: Vec<OsString>,
    /// `NAME=value` strings.
    pub environment: Vec<OsString>,
    /// The signals that stay blocked.
    pub(crate) mask: u64,
}

/// The name of a system call, or its number if it has none.
pub fn system_call_name(number: u32) -> String {
    let number = u64::from(number);
    let name = table::find(number).map(|row| row.name).or_else(|| missing::name(number));
    name.map_or_else(|| number.to_string(), String::from)
}

/// Ends this process by one of Alpha's signals, as its default action would: what waits for the
/// process sees the signal.
pub fn die(signal: i32) -> ! {
    // A signal that the host does not have ends the process by the one for bad programs.
    let signal = signals::host_number(signal).unwrap_or(libc::SIGKILL);
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
pub(crate) fn send_to_caller(signal: i32) {
    host::requeue(&signals::sent(signal));
}

/// A process's side of the kernel behind the lock that its threads share.
pub struct SharedKernel {
    kernel: Mutex<Kernel>,
    thread_ended: Condvar,
}

impl SharedKernel {
    /// For a process whose first thread is the one that calls.
    pub fn new(kernel: Kernel) -> SharedKernel {
        SharedKernel { kernel: Mutex::new(kernel), thread_ended: Condvar::new() }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Held<'_> {
        Held { shared: self, guard: Some(self.guard()) }
    }

    fn guard(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kernel while the calling thread holds its lock.
pub struct Held<'a> {
    shared: &'a SharedKernel,
    /// None only while `released` runs.
    guard: Option<MutexGuard<'a, Kernel>>,
}

impl Held<'_> {
    /// Does something without the lock.
    fn released<T>(&mut self, what: impl FnOnce() -> T) -> T {
        self.guard = None;
        let result = what();
        self.guard = Some(self.shared.guard());
        result
    }

    /// Tells the thread that waits in [`Held::await_end`] that the calling one has ended.
    pub fn announce_end(&self) {
        self.shared.thread_ended.notify_all();
    }

    /// Waits, without the lock, until a thread has ended.
    pub fn await_end(&mut self) {
        let guard = self.guard.take().expect("held");
        let guard = self.shared.thread_ended.wait(guard);
        self.guard = Some(guard.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Deref for Held<'_> {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        self.guard.as_ref().expect("held")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Kernel {
        self.guard.as_mut().expect("held")
    }
}

/// What a process has in the kernel beside memory and registers: what its threads share.
pub struct Kernel {
    /// Instructions executed so far: the virtual clock. Each thread [reports](Thread::report) its
    /// own before a call.
    instructions: u64,
    /// Accesses that were not aligned, of the threads that have ended.
    pub unaligned: u64,
    /// Processes that were forked, by this one and by those.
    forks: forks::Forks,
    /// The host's id of the process.
    process: u32,
    /// The parent, while it waits for this process in vfork.
    parent: Option<vfork::Parent>,
    threads: threads::Threads,
    settings: Settings,
    executable: PathBuf,
    arguments: Vec<Vec<u8>>,
    stack: loader::Stack,
    heap: mapping::Heap,
    actions: Actions,
    clock: time::VirtualClock,
    random_state: u64,
    /// Unaligned access control bits of osf_setsysinfo.
    unaligned_control: u64,
    /// Every image that was mapped since the program was loaded.
    images: Vec<LoadedImage>,
    /// Shared memory segments attached: guest address and size in bytes.
    attached: BTreeMap<u64, u64>,
    /// Unknown system calls that were named on standard error.
    named: BTreeSet<u64>,
    /// What of the known ones was named so.
    refused: BTreeSet<&'static str>,
    /// Resource limits that are the guest's alone, by the host's number.
    limits: [Option<[u64; 2]>; limits::RESOURCE_COUNT],
    /// POSIX timers and timer descriptors by id, with their clocks.
    timers: timers::Timers,
    /// Contexts of asynchronous input and output.
    contexts: aio::Contexts,
    /// Descriptors that are read in their own way, unless closed since.
    special: BTreeMap<i32, descriptors::Special>,
    /// Whether a process's memory was ever opened as a file.
    opened_memory: bool,
    /// Whom each signal is told before it reaches a thread.
    debugger: Option<Arc<Session>>,
}

impl Kernel {
    /// A process that has not been loaded yet.
    pub fn new(settings: Settings, first: &Thread) -> Kernel {
        let random_state = match settings.random {
            Random::Seeded(seed) => seed,
            Random::Host => 0,
        };
        Kernel {
            instructions: 0,
            unaligned: 0,
            forks: forks::Forks::new(),
            process: std::process::id(),
            parent: None,
            threads: threads::Threads::new(first),
            settings,
            executable: PathBuf::new(),
            arguments: Vec::new(),
            stack: loader::Stack::default(),
            heap: mapping::Heap::default(),
            actions: Actions::inherit(),
            clock: time::VirtualClock::default(),
            random_state,
            unaligned_control: 0,
            images: Vec::new(),
            attached: BTreeMap::new(),
            named: BTreeSet::new(),
            refused: BTreeSet::new(),
            limits: [None; limits::RESOURCE_COUNT],
            timers: timers::Timers::default(),
            contexts: aio::Contexts::default(),
            special: BTreeMap::new(),
            opened_memory: false,
            debugger: None,
        }
    }

    /// How many processes were forked, by this one and by those.
    pub fn forked(&self) -> u64 {
        self.forks.get()
    }

    /// The program is about to begin, perhaps under a debugger.
    pub fn begin(&mut self, debugger: Option<Arc<Session>>) {
        limits::begin();
        self.debugger = debugger;
    }

    /// Where absolute paths are looked up first.
    pub fn sysroot(&self) -> &Path {
        &self.settings.sysroot
    }

    /// Size of the stack in bytes of a program that is loaded now.
    pub fn stack_bytes(&self) -> u64 {
        self.stack_limit().unwrap_or(self.settings.stack_bytes)
    }

    /// The host's id of the process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Tells what was loaded: the program's file, its arguments and where all is. The calling thread of
    /// the host takes the program's name.
    pub fn started(&mut self, executable: &Path, arguments: &[OsString], loaded: &loader::Loaded) {
        self.executable = std::path::absolute(executable).unwrap_or_else(|_| executable.into());
        self.arguments = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        self.stack = loaded.stack.clone();
        self.heap = mapping::Heap::at(loaded.heap, loaded.executable_stack);
        self.images = loaded.images.clone();
        self.attached.clear();
        self.actions.attach();
        host::name_thread(executable.file_name().unwrap_or_default());
    }

    /// The program has ended: the host's signals are the engine's again.
    pub fn detach(&self) {
        self.actions.detach();
        limits::end();
    }

    /// Every image that was mapped since the program was loaded, in that order.
    pub fn images(&self) -> &[LoadedImage] {
        &self.images
    }

    /// Names a system call that does not exist here, once.
    fn name_unknown(&mut self, number: u64) {
        let row = table::find(number);
        if row.is_some_and(|row| matches!(row.action, Action::Refuse)) || !self.named.insert(number) {
            return;
        }
        let name = row.map(|row| row.name).or_else(|| missing::name(number));
        let name = name.map_or(String::new(), |name| format!(" ({name})"));
        eprintln!("pathlength: system call {number}{name} is not implemented; the program was told ENOSYS");
    }

    /// Names, once, what of a system call cannot be done here.
    fn name_refused(&mut self, call: &str, what: &'static str, error: &str) {
        if self.refused.insert(what) {
            eprintln!("pathlength: {call}: {what} is not implemented; the program was told {error}");
        }
    }

    /// The 16 bytes at `AT_RANDOM`.
    pub fn random_bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        match self.settings.random {
            // SAFETY: the buffer is ours. A failure leaves zeros, which is still a valid vector.
            Random::Host => drop(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 16, 0) }),
            Random::Seeded(_) => self.fill_random(&mut bytes),
        }
        bytes
    }

    /// Fills `bytes` from the seeded generator (SplitMix64).
    fn fill_random(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.random_state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Carries out the system call whose number is in v0 and whose arguments are in a0 to a5; the
/// program counter is already behind the callsys. The result is in v0 and a3 as Alpha's Linux
/// has it: a3 is 0 and v0 the result, or a3 is 1 and v0 the error's number.
pub fn system_call(kernel: &mut Held, thread: &mut Thread, cpu: &mut Cpu, memory: &Memory) -> Control {
    let number = cpu.r[register::V0];
    let before = delivery::Returning { v0: number, a3: cpu.r[register::A3], error: None };
    let arguments = std::array::from_fn(|index| cpu.r[register::A0 + index]);
    let began = kernel.elapsed();
    let control = Control::Continue;
    let (waited, registers_set) = (0, false);
    let mut call = Call { kernel, thread, cpu, memory, arguments, began, waited, control, registers_set };
    let outcome = match table::find(number) {
        Some(row) => row.action.carry_out(&mut call),
        None => Err(Errno(libc::ENOSYS)),
    };
    let Call { control, registers_set, waited, .. } = call;
    if waited > 0 {
        kernel.waited(began, waited);
    }
    if outcome == Err(Errno(libc::ENOSYS)) {
        kernel.name_unknown(number);
    }
    if control != Control::Continue {
        return control;
    }
    let mut returning = before;
    if !registers_set {
        returning.error = outcome.err();
        set_result(cpu, outcome);
    }
    thread.after_call(kernel, cpu, memory, returning)
}

/// Puts a system call's outcome into v0 and a3.
fn set_result(cpu: &mut Cpu, outcome: call::Outcome) {
    match outcome {
        Ok(value) => (cpu.r[register::V0], cpu.r[register::A3]) = (value, 0),
        Err(error) => (cpu.r[register::V0], cpu.r[register::A3]) = (errno::alpha(error), 1),
    }
}

/// Ends the call that asked for a thread: its id, or the reason why there is none.
pub fn started_thread(cpu: &mut Cpu, id: std::io::Result<i32>) {
    set_result(cpu, id.map(|id| id as u64).map_err(Errno::from));
}
