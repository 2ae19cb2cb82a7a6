//! The kernel state of a process, apart from memory and registers, which its threads share.

mod clock;
mod hand_over;
pub(crate) mod paths;
pub(crate) mod rlimit;
mod threads;
mod timers;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use events::LoadedImage;
use guest::SignalHook;
use host::SignalInformation;

use crate::abi::Abi;
use crate::abi::sysroots::usual_sysroot;
use crate::state::aio::Contexts;
use crate::state::clock::VirtualClock;
use crate::state::deferred_reads::DeferredReads;
use crate::state::fd::Special;
use crate::state::forks::Forks;
use crate::state::heap::ProgramHeap;
use crate::state::rlimit::{self as limits, RESOURCE_COUNT};
use crate::state::settings::{RandomSource, SystemSettings};
use crate::state::signals::Actions;
use crate::state::substitution::Originals;
use crate::state::threads::{Task, Threads};
use crate::state::timers::Timers;
use crate::state::vfork::Parent;
use crate::{loader, procfs};

/// The kernel state of a process, apart from memory and registers, which its threads share.
pub struct Kernel<G: Abi> {
    /// Instructions executed so far, on which the virtual clock depends. Each thread [reports](Thread::report) its
    /// own before a call.
    pub(crate) instructions: u64,
    /// Number of unaligned accesses of threads that have ended.
    pub unaligned: u64,
    /// Number of processes forked by this one and its descendants.
    pub(crate) forks: Forks,
    /// Number of processes that this one has forked.
    pub(crate) children: u32,
    /// The how-manieth child of its parent this process is, from 1; 0 for the first process.
    pub(crate) ordinal: u32,
    /// The host's id of the process.
    pub(crate) process: u32,
    /// The connection to the parent, while that waits in vfork.
    pub(crate) parent: Option<Parent>,
    pub(crate) threads: Threads,
    pub(crate) settings: SystemSettings,
    /// The machine of the guest whose sysroot the settings name; another guest has its usual one.
    pub(crate) sysroot_machine: u16,
    pub(crate) executable: PathBuf,
    /// The name of the file that was executed: a link's or a script's, rather than what was loaded for it.
    pub(crate) command: OsString,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) stack: loader::Stack,
    pub(crate) heap: ProgramHeap,
    pub(crate) actions: Actions<G>,
    /// SIGSEGV and SIGBUS that were sent to the process while the sending thread blocked them: any may take them.
    pub(crate) held: Vec<SignalInformation>,
    pub(crate) clock: VirtualClock,
    pub(crate) random_state: u64,
    /// The state that only this guest's system calls have.
    pub(crate) abi: G::ProcessState,
    /// The originals of files that were loaded in their place.
    pub(crate) originals: Originals,
    /// Where the dynamic loader's code is, whose files may be substituted.
    pub(crate) interpreter: Range<u64>,
    /// Every image that was mapped since the program was loaded.
    pub(crate) images: Vec<LoadedImage>,
    /// Shared memory segments attached: guest address and size in bytes.
    pub(crate) attached: BTreeMap<u64, u64>,
    /// Unknown system calls that were reported on standard error.
    pub(crate) named: BTreeSet<u64>,
    /// Unsupported options of known system calls that were reported.
    pub(crate) refused: BTreeSet<&'static str>,
    /// Emulated resource limits, by the host's number.
    pub(crate) limits: [Option<[u64; 2]>; RESOURCE_COUNT],
    /// POSIX timers and timer descriptors by id, with their clocks.
    pub(crate) timers: Timers,
    /// Contexts of asynchronous input and output.
    pub(crate) contexts: Contexts,
    /// The sockets whose next read is deferred.
    pub(crate) deferred_reads: DeferredReads,
    /// Descriptors with converted or generated contents; some may have been closed.
    pub(crate) special: BTreeMap<i32, Special>,
    /// Whether a process's memory was ever opened as a file, possibly by a process with the same descriptors.
    pub(crate) opened_memory: bool,
    /// Whether a netlink socket was ever opened, possibly by a parent.
    pub(crate) opened_netlink: bool,
    /// Whether other processes use, or used, the same table of descriptors.
    pub(crate) shares_descriptors: bool,
    /// The hook to which each signal is reported before it is delivered.
    pub(crate) debugger: Option<Arc<dyn SignalHook<G>>>,
}

impl<G: Abi> Kernel<G> {
    /// The state of a process before a program is loaded.
    pub fn new(settings: SystemSettings, first: &Task<G>) -> Kernel<G> {
        let random_state = match settings.random {
            RandomSource::Seeded(seed) => seed,
            RandomSource::Host => 0,
        };
        Kernel {
            instructions: 0,
            unaligned: 0,
            forks: Forks::new(),
            children: 0,
            ordinal: 0,
            process: std::process::id(),
            parent: None,
            threads: Threads::new(first),
            settings,
            sysroot_machine: G::ELF_MACHINE,
            executable: PathBuf::new(),
            command: OsString::new(),
            arguments: Vec::new(),
            stack: loader::Stack::default(),
            heap: ProgramHeap::default(),
            actions: Actions::inherit(),
            held: Vec::new(),
            clock: VirtualClock::default(),
            random_state,
            abi: G::ProcessState::default(),
            originals: Originals::new(),
            interpreter: 0..0,
            images: Vec::new(),
            attached: BTreeMap::new(),
            named: BTreeSet::new(),
            refused: BTreeSet::new(),
            limits: [None; RESOURCE_COUNT],
            timers: Timers::default(),
            contexts: Contexts::default(),
            deferred_reads: DeferredReads::default(),
            special: BTreeMap::new(),
            opened_memory: false,
            opened_netlink: false,
            shares_descriptors: false,
            debugger: None,
        }
    }

    /// The how-manieth child of its parent this process is, from 1; 0 for the first process.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Number of processes forked by this one and its descendants.
    pub fn forked(&self) -> u64 {
        self.forks.get()
    }

    /// The first program is about to start.
    pub fn begin(&mut self) {
        limits::begin();
    }

    /// The program runs under this debugger, if any.
    pub fn set_debugger(&mut self, debugger: Option<Arc<dyn SignalHook<G>>>) {
        self.debugger = debugger;
    }

    /// The directory in which absolute paths are looked up first.
    pub fn sysroot(&self) -> &Path {
        self.sysroot_of(G::ELF_MACHINE).unwrap_or(Path::new(G::SYSROOT))
    }

    /// The directory in which programs of a machine look up absolute paths first; None if no guest has this machine.
    pub(crate) fn sysroot_of(&self, machine: u16) -> Option<&Path> {
        let named = self.settings.sysroot.as_deref().filter(|_| machine == self.sysroot_machine);
        named.or_else(|| usual_sysroot(machine).map(Path::new))
    }

    /// Size in bytes of the stack of a program that is loaded now.
    pub fn stack_bytes(&self) -> u64 {
        self.stack_limit().unwrap_or(self.settings.stack_bytes)
    }

    /// The host's id of the process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Records what was loaded: the program's file, its arguments and all addresses. The calling host thread takes
    /// the program's name.
    pub fn started(&mut self, executable: &Path, arguments: &[OsString], loaded: &loader::LoadedProgram) {
        procfs::set_executable(executable);
        self.executable = std::path::absolute(executable).unwrap_or_else(|_| executable.into());
        self.arguments = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        self.stack = loaded.stack.clone();
        self.heap = ProgramHeap::at(loaded.heap, loaded.executable_stack);
        self.images = loaded.images.clone();
        self.interpreter = loaded.images.get(1).map_or(0..0, |image| image.start..image.end);
        self.attached.clear();
        self.actions.attach();
        host::name_thread(&self.command);
    }

    /// The program has ended: stops its timers, and recording the host's signals.
    pub fn detach(&mut self) {
        self.timers.stop();
        host::release_thread();
        self.actions.detach();
        limits::end();
    }

    /// Every image that was mapped since the program was loaded, in that order.
    pub fn images(&self) -> &[LoadedImage] {
        &self.images
    }

    /// Reports, once, an unsupported part of a system call.
    pub(crate) fn name_refused(&mut self, call: &str, what: &'static str, error: &str) {
        if self.refused.insert(what) {
            text::message!("{call}: {what} is not implemented; the program was told {error}");
        }
    }

    /// The 16 bytes at `AT_RANDOM`.
    pub fn random_bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        match self.settings.random {
            // SAFETY: the buffer is ours. A failure leaves zeros, which is still a valid vector.
            RandomSource::Host => drop(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 16, 0) }),
            RandomSource::Seeded(_) => self.fill_random(&mut bytes),
        }
        bytes
    }

    /// Fills `bytes` from the seeded generator (SplitMix64).
    pub(crate) fn fill_random(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.random_state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}
