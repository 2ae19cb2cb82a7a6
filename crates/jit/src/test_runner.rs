//! Runs programs of any guest, interpreted or compiled, for tests: as the engine does, but without an operating system.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use events::BlockId;
use guest::interpreter::{self, InterpreterExit, Limits};
use guest::records::Records;
use guest::{BlockCache, Callbacks, Debugged, Guest, Instrumentation, InstrumentationLevel, Observer, Stop};
use guest_memory::Memory;

use crate::emit::Emit;
use crate::{Compiler, Exit, UNWIND};

/// No instruction has this address.
const NEVER: u64 = 1;
/// Executions after which blocks are compiled.
const THRESHOLD: u32 = 3;

/// Only one memory of a process lies where compiled code wants it.
pub(crate) static MEMORY: Mutex<()> = Mutex::new(());

/// An observer, at a level of its own.
pub(crate) struct RunnerObserver<const LEVEL: u8> {
    pub(crate) executions: BTreeMap<BlockId, u64>,
    pub(crate) records: Vec<u64>,
}

pub(crate) const COUNTS: u8 = 0;
pub(crate) const ACCESSES: u8 = 1;
pub(crate) const VALUES: u8 = 2;
pub(crate) const OFF: u8 = 3;

impl<G: Guest, const LEVEL: u8> Instrumentation<G> for RunnerObserver<LEVEL> {
    const LEVEL: InstrumentationLevel = match LEVEL {
        COUNTS => InstrumentationLevel::Counts,
        ACCESSES => InstrumentationLevel::Accesses,
        VALUES => InstrumentationLevel::Values,
        _ => InstrumentationLevel::Off,
    };
}

impl<G: Guest, const LEVEL: u8> Debugged<G> for RunnerObserver<LEVEL> {}

impl<G: Guest, const LEVEL: u8> Observer<G> for RunnerObserver<LEVEL> {
    fn enter(&mut self, id: BlockId, _: &BlockCache<G>, _: &G, _: &Memory) {
        *self.executions.entry(id).or_default() += 1;
    }

    fn executed(&mut self, records: &[u64], _: &BlockCache<G>) {
        self.records.extend(records);
    }

    fn thread(&self) -> Self {
        unreachable!("there is one thread")
    }
}

/// Executes a guest's code as the engine does. A system call or an exception ends the program.
pub(crate) struct GuestRunner<'a, G: Emit, const LEVEL: u8> {
    pub(crate) guest: G,
    memory: &'a Memory,
    pub(crate) cache: BlockCache<G>,
    /// None to interpret all.
    compiler: Option<Compiler<G>>,
    pub(crate) observer: RunnerObserver<LEVEL>,
    records: Records,
    depth: u32,
    /// How often compiled code was entered.
    pub(crate) entered: u32,
    /// Faults of compiled code.
    pub(crate) faults: u32,
    /// How the program ended.
    pub(crate) ended: Option<Stop<G::Exception>>,
    /// The process's mappings and the address of compiled code, while that runs.
    pub(crate) mappings: Option<(String, u64)>,
}

impl<'a, G: Emit, const LEVEL: u8> GuestRunner<'a, G, LEVEL> {
    pub(crate) fn new(mut guest: G, model: G::Model, memory: &'a Memory, is_compiled: bool) -> Self {
        let level = <RunnerObserver<LEVEL> as Instrumentation<G>>::LEVEL;
        let compiler =
            is_compiled.then(|| Compiler::new(memory, level, None, false).expect("a host with a compiler"));
        let observer = RunnerObserver { executions: BTreeMap::new(), records: Vec::new() };
        let mut records = Records::default();
        records.attach(&mut guest);
        GuestRunner {
            guest,
            memory,
            cache: BlockCache::new(model),
            compiler,
            observer,
            records,
            depth: 0,
            entered: 0,
            faults: 0,
            ended: None,
            mappings: None,
        }
    }

    /// Runs the program to its end.
    pub(crate) fn run(mut self) -> Self {
        while self.ended.is_none() {
            self.go(NEVER);
        }
        self.flush();
        let (executions, cache) = (&mut self.observer.executions, &self.cache);
        cache.take_executions(|id, times| *executions.entry(id).or_default() += times);
        self
    }

    fn flush(&mut self) {
        let records = self.records.take(&mut self.guest);
        self.observer.executed(records, &self.cache);
    }

    fn go(&mut self, until: u64) -> u64 {
        let level = <RunnerObserver<LEVEL> as Instrumentation<G>>::LEVEL;
        let compile_threshold = if self.compiler.is_some() { THRESHOLD } else { 0 };
        let (mut interpret_first, mut resume) = (false, None);
        loop {
            let limits =
                Limits { until, compile_threshold, interpret_first, level, resume, ..Limits::default() };
            let next = interpreter::run(
                &mut self.guest,
                self.memory,
                &mut self.cache,
                limits,
                &mut self.observer,
                || false,
            );
            (interpret_first, resume) = (false, None);
            match next {
                InterpreterExit::Reached => {}
                InterpreterExit::Full => self.flush(),
                InterpreterExit::Stop(stop) => self.ended = Some(stop),
                InterpreterExit::Code(id) => match self.execute(id) {
                    Some(Exit::At(UNWIND)) => return UNWIND,
                    Some(Exit::At(address)) => {
                        interpret_first = address == self.guest.pc();
                        self.guest.set_pc(address);
                    }
                    Some(Exit::Fault(host)) => resume = Some(self.fault(host)),
                    None => interpret_first = true,
                },
                other => panic!("{other:?} at {:#x}", self.guest.pc()),
            }
            if self.ended.is_some() {
                return UNWIND;
            }
            if self.guest.pc() == until && resume.is_none() {
                return until;
            }
        }
    }

    /// The guest instruction of a fault in compiled code, where the interpreter resumes.
    fn fault(&mut self, host: usize) -> (BlockId, usize) {
        let site = self.compiler.as_ref().expect("compiled code has a compiler").site(host);
        site.complete(&mut self.guest, &self.cache);
        self.cache.fault(site.block);
        self.faults += 1;
        (site.block, site.index as usize)
    }

    /// Runs the compiled code of a block, made now if there is none. None if there can be none.
    fn execute(&mut self, id: BlockId) -> Option<Exit> {
        let compiler = self.compiler.as_mut().expect("compiled blocks have a compiler");
        if self.cache.block(id).code().is_null() {
            compiler.compile(id, THRESHOLD, &|_| false, &|_| 0, &mut self.cache);
        }
        let code = self.cache.block(id).code();
        if code.is_null() {
            return None;
        }
        compiler.prepare(self.cache.block(id), &mut self.guest);
        let callbacks = Callbacks {
            flush_records: flush_records::<G, LEVEL>,
            interpret_until: interpret_until::<G, LEVEL>,
            context: (&raw mut *self).cast(),
            memory: self.memory,
        };
        self.guest.host().set_instruction_limit(u64::MAX);
        // SAFETY: both functions take this runner; the memory is that of the program.
        unsafe { self.guest.host().set_callbacks(callbacks) };
        (self.depth, self.entered) = (self.depth + 1, self.entered + 1);
        // SAFETY: the compiler made the code for this memory, and `host` is set. Compiled code comes back to this runner
        // by `interpret_until` only, while this call waits.
        let exit = unsafe { crate::enter(&mut self.guest, code, self.depth == 1) };
        self.depth -= 1;
        Some(exit)
    }
}

/// The runner of a guest in compiled code.
///
/// # Safety
/// `guest` must be the guest of a runner that entered the code that calls, and that waits meanwhile.
unsafe fn runner_of<'a, G: Emit, const LEVEL: u8>(guest: *mut c_void) -> &'a mut GuestRunner<'a, G, LEVEL> {
    // SAFETY: the caller's promise; `execute` set the runner.
    unsafe { &mut *(*guest.cast::<G>()).host().context().cast::<GuestRunner<'_, G, LEVEL>>() }
}

extern "C" fn flush_records<G: Emit, const LEVEL: u8>(guest: *mut c_void) {
    // SAFETY: compiled code calls with its guest.
    unsafe { runner_of::<G, LEVEL>(guest) }.flush();
}

extern "C" fn interpret_until<G: Emit, const LEVEL: u8>(guest: *mut c_void, from: u64, until: u64) -> u64 {
    // SAFETY: compiled code calls with its guest.
    let runner = unsafe { runner_of::<G, LEVEL>(guest) };
    runner.mappings.get_or_insert_with(|| {
        let codes = runner.cache.blocks().iter().map(|block| block.code() as u64);
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        (mappings, codes.max().unwrap_or(0))
    });
    if until & 1 != 0 {
        runner.ended = Some(Stop::SystemCall);
        runner.guest.set_pc(from + 4);
        return UNWIND;
    }
    runner.guest.set_pc(from);
    runner.go(until)
}
