//! A running program: processor, memory and kernel, tied together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, Scope};

use trace::{BlockId, LoadedImage};

use crate::alpha::block::{Block, BlockCache, LONGEST};
use crate::alpha::compiler::{self, Compiler, Left, UNWIND};
use crate::alpha::cpu::{Cpu, Exception, Lock, register};
use crate::alpha::interpreter::{self, Interest, Limits, Next, Observer, Stop};
use crate::alpha::records::Records;
use crate::debug::Attached;
use crate::linux::loader::{self, LoadError, Program};
use crate::linux::{self, Control, Ending, Held, Kernel, Settings, SharedKernel, Start, Thread};
use crate::memory::Memory;

/// What to run and how.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The executable.
    pub program: PathBuf,
    /// What it finds as its own name (`argv[0]`), if not its path.
    pub name: Option<OsString>,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// `NAME=value` strings.
    pub environment: Vec<OsString>,
    /// The processor: which instructions exist.
    pub model: isa::Cpu,
    /// What the operating system is like.
    pub settings: Settings,
}

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No address space for the guest.
    #[error(
        "cannot reserve 4 TiB of address space for the program: {0}; raise the limit (ulimit -v unlimited) and \
         allow overcommitment (sysctl vm.overcommit_memory=0)"
    )]
    Memory(std::io::Error),
}

/// How a program ended.
#[derive(Clone, Debug)]
pub enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal.
    Killed(Box<Crash>),
}

/// A program's end by a signal.
#[derive(Clone, Debug)]
pub struct Crash {
    /// Alpha's number of the signal.
    pub signal: i32,
    /// Whether an instruction raised it, and not somebody else.
    pub synchronous: bool,
    /// The address whose access faulted, if that was the reason.
    pub address: Option<u64>,
    /// The thread that it reached, if the program has threads.
    pub thread: Option<String>,
    /// Its registers at that moment.
    pub cpu: Cpu,
}

/// A loaded program.
pub struct Process {
    /// The first thread's processor state.
    pub cpu: Cpu,
    /// The address space.
    pub memory: Arc<Memory>,
    /// The blocks that ran in the first thread.
    pub cache: BlockCache,
    /// Every image that was mapped.
    pub images: Vec<LoadedImage>,
    /// Executions of a block after which it is compiled, if nobody watches; 0 for never.
    pub hot: u32,
    /// Accesses that were not aligned, of all threads that have ended.
    pub unaligned: u64,
    thread: Thread,
    kernel: SharedKernel,
}

impl Process {
    /// Loads the program; nothing runs yet. The thread that calls must be the one that runs it.
    pub fn new(configuration: &Configuration) -> Result<Process, Error> {
        let (memory, mut cpu) = (Memory::new().map_err(Error::Memory)?, Cpu::default());
        let thread = Thread::first();
        let mut kernel = Kernel::new(configuration.settings.clone(), &thread);
        let name = configuration.name.as_deref().unwrap_or(configuration.program.as_os_str());
        let mut arguments = vec![name.to_os_string()];
        arguments.extend_from_slice(&configuration.arguments);
        let (program, arguments) = kernel.program(&configuration.program, arguments);
        load(&memory, &mut kernel, &mut cpu, &program, &arguments, &configuration.environment)?;
        Ok(Process {
            cpu,
            memory: Arc::new(memory),
            cache: BlockCache::new(configuration.model),
            images: kernel.images().to_vec(),
            hot: compiler::THRESHOLD,
            unaligned: 0,
            thread,
            kernel: SharedKernel::new(kernel),
        })
    }

    /// Runs the program to its end. Returns in the process that called it only: a child that the
    /// program forks ends here. Each thread has an observer of its own, which this one makes.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<End, Error> {
        let Process { cpu, memory, cache, hot, thread, kernel, .. } = self;
        let memory: &Memory = memory;
        let host_process = kernel.lock().process();
        kernel.lock().begin(observer.debugger().and_then(|debugger| debugger.session()));
        let is_clock_virtual = kernel.lock().is_virtual();
        let end = std::thread::scope(|scope| {
            let shared = Shared { memory, kernel, host_process, hot: *hot, is_clock_virtual, scope };
            Runner::new(shared, thread, cpu, cache, observer).run()
        });
        let kernel = kernel.lock();
        self.images = kernel.images().to_vec();
        self.unaligned = kernel.unaligned;
        end.expect("only threads that others outlive end without the process")
    }
}

/// Loads a program into empty memory and sets the registers for its start.
fn load(
    memory: &Memory,
    kernel: &mut Kernel,
    cpu: &mut Cpu,
    path: &Path,
    arguments: &[OsString],
    environment: &[OsString],
) -> Result<(), LoadError> {
    let program = Program {
        path,
        name: path.as_os_str(),
        arguments,
        environment,
        stack_bytes: kernel.stack_bytes(),
        random: kernel.random_bytes(),
    };
    let loaded = loader::load(&program, memory, kernel.sysroot(), |path| kernel.locate(path))?;
    kernel.started(path, arguments, &loaded);
    // Compiled code that waits for the system call that brought us here has yet to be left.
    let (instructions, unaligned, host) = (cpu.instructions, cpu.unaligned, cpu.host.clone());
    *cpu = Cpu { instructions, unaligned, host, ..Cpu::default() };
    cpu.pc = loaded.entry;
    cpu.r[register::SP] = loaded.stack.pointer;
    Ok(())
}

/// What the threads of a process share.
#[derive(Clone, Copy)]
struct Shared<'scope, 'env> {
    memory: &'env Memory,
    kernel: &'env SharedKernel,
    /// The process that called [`Process::run`]: a child that the program forks is another.
    host_process: u32,
    /// As in [`Process`].
    hot: u32,
    is_clock_virtual: bool,
    scope: &'scope Scope<'scope, 'env>,
}

/// One thread of the program at work, on a thread of the host.
struct Runner<'a, 'scope, 'env, O> {
    shared: Shared<'scope, 'env>,
    thread: &'a mut Thread,
    cpu: &'a mut Cpu,
    cache: &'a mut BlockCache,
    observer: &'a mut O,
    /// The process as the thread knows it; another after a fork.
    process: u32,
    /// The blocks in the cache are those of this generation of the code in memory.
    code_generation: u64,
    /// How many images the observer has heard of.
    images: usize,
    /// Blocks of one instruction, for a debugger's steps.
    steps: Option<BlockCache>,
    /// The code of the blocks in the cache.
    code: Code,
    /// Blocks and their code for another interest of the observer's.
    other: Option<(BlockCache, Code)>,
    /// What the observer wants to hear of from here on, if that is something else.
    turn: Option<Interest>,
    /// It said so of the block that comes next.
    is_asked: bool,
    /// For an observer of accesses.
    records: Option<Records>,
    /// Compiled code must be forgotten.
    stale: bool,
    /// How many calls of [`Runner::go`] are at work, one within the other with compiled code between.
    depth: u32,
    /// The thread's end, when it has come: [`Runner::go`] is to be left.
    ended: Option<Option<Result<End, Error>>>,
}

/// How the blocks in a cache are executed.
struct Code {
    /// Of what the observer hears.
    interest: Interest,
    /// Executions of a block after which it is compiled; 0 for never.
    hot: u32,
    /// Made for the first block that is.
    compiler: Option<Compiler>,
}

impl Code {
    fn new(interest: Interest, shared: &Shared) -> Code {
        let is_compilable = match interest {
            // A clock that counts instructions needs all of them counted.
            Interest::Nothing => !shared.is_clock_virtual,
            Interest::Instructions | Interest::Limited | Interest::Counts | Interest::Accesses => true,
            Interest::Blocks | Interest::Values => false,
        };
        Code { interest, hot: if is_compilable { shared.hot } else { 0 }, compiler: None }
    }

    /// The compiler, if there can be one.
    fn compiler(&mut self, memory: &Memory) -> Option<&mut Compiler> {
        if self.compiler.is_none() && self.hot > 0 {
            self.compiler = Compiler::new(memory, self.interest);
            if self.compiler.is_none() {
                self.hot = 0;
            }
        }
        self.compiler.as_mut()
    }
}

/// Stack of a host's thread in bytes: address space only, as long as it is not used.
const HOST_STACK: usize = 8 << 20;

impl<'a, 'scope, 'env, O: Observer + 'scope> Runner<'a, 'scope, 'env, O> {
    fn new(
        shared: Shared<'scope, 'env>,
        thread: &'a mut Thread,
        cpu: &'a mut Cpu,
        cache: &'a mut BlockCache,
        observer: &'a mut O,
    ) -> Self {
        let code_generation = shared.memory.code_generation();
        let process = shared.host_process;
        let code = Code::new(observer.begins(), &shared);
        let (stale, depth, ended) = (false, 0, None);
        Runner {
            shared,
            thread,
            cpu,
            cache,
            observer,
            process,
            code_generation,
            images: 0,
            steps: None,
            code,
            other: None,
            turn: None,
            is_asked: false,
            records: O::INTEREST.has_records().then(Records::default),
            stale,
            depth,
            ended,
        }
    }

    /// Runs until the thread ends. None if the process does not end with it.
    fn run(mut self) -> Option<Result<End, Error>> {
        if let Some(records) = &mut self.records {
            records.attach(self.cpu);
        }
        self.tell_images(&self.shared.kernel.lock());
        let address = self.thread.address();
        self.with_debugger(|debugger, cpu| debugger.begin(address, cpu));
        self.observer.goes_on();
        loop {
            self.follow_code();
            self.go(NEVER);
            if let Some(end) = self.ended.take() {
                return end;
            }
        }
    }

    /// Runs until control reaches `until`, and returns that; or [`UNWIND`] if no compiled code may go
    /// on that waits for it.
    fn go(&mut self, until: u64) -> u64 {
        let (mut interpret_first, mut resume) = (false, None);
        loop {
            // After a fault of compiled code its block is executed to the end.
            let steps = self.is_stepped() && resume.is_none();
            let (hot, interest) = (if steps { 0 } else { self.code.hot }, self.code.interest);
            let is_asked = std::mem::take(&mut self.is_asked);
            let limits = Limits { until, hot, interpret_first, interest, is_asked, resume };
            let memory = self.shared.memory;
            let cache = match steps {
                true => self.steps.get_or_insert_with(|| self.cache.for_steps()),
                false => &mut *self.cache,
            };
            let next = interpreter::run(self.cpu, memory, cache, limits, self.observer, linux::pending);
            (interpret_first, resume) = (false, None);
            self.stale |= self.observer.wants_more();
            match next {
                Next::Reached => {}
                Next::Held => self.with_debugger(Attached::stop),
                Next::Code(id) => {
                    let from = self.cpu.pc;
                    match self.execute(id) {
                        Some(Left::At(UNWIND)) => return UNWIND,
                        // What compiled code leaves at once is the interpreter's.
                        Some(Left::At(next)) => (self.cpu.pc, interpret_first) = (next, next == from),
                        Some(Left::Fault(host)) => resume = Some(self.fault(host)),
                        // The observer was asked of the block already.
                        None => (interpret_first, self.is_asked) = (true, true),
                    }
                }
                Next::Full => self.hand_on(),
                Next::Turn(interest) => (self.turn, self.is_asked) = (Some(interest), true),
                Next::Stop(stop) => self.stop(stop),
            }
            // After a fault the block comes first.
            if resume.is_none() && self.must_unwind() {
                return UNWIND;
            }
            if self.cpu.pc == until && resume.is_none() {
                return until;
            }
        }
    }

    /// Tells the observer what was executed.
    fn hand_on(&mut self) {
        if let Some(records) = &mut self.records {
            let records = records.take(self.cpu);
            if !records.is_empty() {
                self.observer.executed(records, self.cache);
            }
        }
    }

    /// Control goes on elsewhere.
    fn divert(&mut self) {
        self.hand_on();
        self.observer.diverted();
    }

    /// Whether no compiled code may go on that waits for this runner.
    fn must_unwind(&mut self) -> bool {
        self.ended.is_some()
            || self.stale
            || self.turn.is_some()
            || self.depth > 0 && self.is_stepped()
            || self.shared.memory.code_generation() != self.code_generation
    }

    /// Whether a debugger wants to hear of each instruction.
    fn is_stepped(&mut self) -> bool {
        self.observer.debugger().is_some_and(|debugger| debugger.steps())
    }

    /// Lets the debugger, if there is one, do something with the registers. It may set other breakpoints.
    fn with_debugger(&mut self, what: impl FnOnce(&mut Attached, &mut Cpu)) {
        if let Some(debugger) = self.observer.debugger() {
            what(debugger, self.cpu);
            self.stale |= self.observer.wants_more();
        }
    }

    /// Where the interpreter takes over after a fault of compiled code.
    fn fault(&mut self, host: usize) -> (BlockId, usize) {
        let compiler = self.code.compiler.as_ref().expect("compiled code has a compiler");
        let site = compiler.site(host);
        site.complete(self.cpu);
        if self.code.interest == Interest::Nothing {
            // What does not count compiled code counts what the interpreter goes on with.
            self.cpu.instructions += self.cache.block(site.block).steps.len() as u64;
        }
        (site.block, site.index as usize)
    }

    /// Runs the compiled code of a block, made now if there is none. None if there can be none.
    fn execute(&mut self, id: BlockId) -> Option<Left> {
        if self.stale {
            return Some(Left::At(UNWIND));
        }
        if self.cache.block(id).code().is_null() {
            if self.observer.wants(self.cache.block(id)) {
                self.cache.freeze(id);
                return None;
            }
            let observer = &*self.observer;
            let wants = |block: &Block| observer.wants(block);
            let compiler = self.code.compiler(self.shared.memory)?;
            compiler.compile(id, self.shared.hot, &wants, self.cache);
        }
        let code = self.cache.block(id).code();
        if code.is_null() {
            return None;
        }
        self.code.compiler.as_mut()?.prepare(self.cache.block(id), self.cpu);
        if self.depth > 0 && compiler::is_stack_full(self.cpu) {
            return Some(Left::At(UNWIND));
        }
        let host = &mut self.cpu.host;
        host.instruction_limit = self.observer.limit().saturating_sub(LONGEST as u64);
        (host.memory, host.model) = (self.shared.memory, self.cache.model());
        host.go_on = Some(go_on::<O>);
        host.hand_on = Some(hand_on::<O>);
        self.cpu.host.runner = (&raw mut *self).cast();
        self.depth += 1;
        // SAFETY: the compiler made the code for this address space, and `host` is set. Compiled code comes
        // back to this runner by `go_on` only, while this call waits.
        let left = unsafe { compiler::enter(self.cpu, code, self.depth == 1) };
        self.depth -= 1;
        Some(left)
    }

    /// Follows up on a stop of the interpreter.
    fn stop(&mut self, stop: Stop) {
        if stop == Stop::SystemCall {
            self.hand_on();
            self.observer.system_call(self.cpu.r[register::V0] as u32);
            self.with_debugger(|debugger, cpu| debugger.leave_guest(cpu));
        }
        let mut kernel = self.shared.kernel.lock();
        self.thread.report(&mut kernel, self.cpu.instructions);
        let expected = self.cpu.pc;
        let control = self.serve(&mut kernel, stop);
        if self.cpu.pc != expected {
            self.divert();
        }
        // The return from the operating system's kernel clears the lock flag.
        self.cpu.lock = Lock::NONE;
        let mut status = None;
        match control {
            Control::Continue => {}
            // The thread would not hear of the end.
            Control::Start(_) if kernel.is_ending() => {}
            Control::Start(start) => {
                let id = self.start(&mut kernel, &start);
                linux::started_thread(self.cpu, id);
            }
            Control::ExitThread(own) => status = Some(own),
            Control::Exit(status) => kernel.end(Ending::End(End::Exited(status)), self.thread),
            Control::Killed { signal } => {
                let crash = self.crash(&kernel, signal, stop);
                kernel.end(Ending::End(End::Killed(crash)), self.thread);
            }
            Control::Execute(execute) => kernel.end(Ending::Execute(execute), self.thread),
        }
        if kernel.process() != self.process {
            self.process = kernel.process();
            self.observer.forked();
            if let Some(records) = &mut self.records {
                // They are the parent's.
                records.take(self.cpu);
            }
        }
        if status.is_some() || kernel.is_ending() {
            if kernel.is_ending() {
                self.with_debugger(|debugger, cpu| debugger.end_all(cpu));
            }
            drop(kernel);
            match self.end(status.unwrap_or_default()) {
                After::Gone => self.ended = Some(None),
                After::Program(path) => {
                    self.divert();
                    self.with_debugger(|debugger, cpu| debugger.replace(&path, cpu));
                }
                After::Ended(end) => self.ended = Some(Some(self.leave(end))),
            }
        } else {
            self.hear(&kernel);
            drop(kernel);
            self.with_debugger(Attached::enter_guest);
        }
        self.observer.goes_on();
    }

    /// Does what the operating system's kernel does when the guest stops.
    fn serve(&mut self, kernel: &mut Held, stop: Stop) -> Control {
        let (thread, cpu, memory) = (&mut *self.thread, &mut *self.cpu, self.shared.memory);
        match stop {
            Stop::SystemCall => linux::system_call(kernel, thread, cpu, memory),
            Stop::Exception(exception) => thread.raise(kernel, cpu, memory, exception),
            Stop::Signal => thread.deliver(kernel, cpu, memory),
            Stop::InstructionBarrier => {
                memory.code_changed();
                Control::Continue
            }
        }
    }

    /// Hears of what this thread, or another, did to the code in memory.
    fn hear(&mut self, kernel: &Kernel) {
        if self.shared.memory.code_generation() != self.code_generation {
            self.tell_images(kernel);
            kernel.notify_others(self.thread);
        }
    }

    /// Forgets the code that is not what memory holds now. No compiled code is at work.
    fn follow_code(&mut self) {
        let generation = self.shared.memory.code_generation();
        if generation != self.code_generation || self.stale {
            (self.code_generation, self.stale) = (generation, false);
            self.follow_breaks();
            forget(self.cache, &mut self.code);
            self.steps = None;
            if let Some((cache, code)) = &mut self.other {
                forget(cache, code);
            }
        }
        if let Some(interest) = self.turn.take() {
            self.hand_on();
            if interest != self.code.interest {
                let kept = self.other.take().filter(|(_, code)| code.interest == interest);
                let (cache, code) =
                    kept.unwrap_or_else(|| (self.cache.for_thread(), Code::new(interest, &self.shared)));
                let cache = std::mem::replace(self.cache, cache);
                self.other = Some((cache, std::mem::replace(&mut self.code, code)));
                if self.follow_breaks() {
                    forget(self.cache, &mut self.code);
                }
                // What one thread decided may be for all.
                self.shared.kernel.lock().notify_others(self.thread);
            }
            self.observer.goes_on();
        }
    }

    fn tell_images(&mut self, kernel: &Kernel) {
        kernel.images()[self.images..].iter().for_each(|image| self.observer.mapped(image));
        self.images = kernel.images().len();
        self.stale |= self.follow_breaks();
    }

    /// Has blocks begin where the observer wants; whether that is news.
    fn follow_breaks(&mut self) -> bool {
        let breaks = self.observer.breaks();
        if let Some((cache, _)) = &mut self.other {
            cache.break_at(breaks);
        }
        self.cache.break_at(breaks)
    }

    /// Starts a thread; its id. It begins when the calling one gives the lock back.
    fn start(&mut self, kernel: &mut Held, start: &Start) -> std::io::Result<i32> {
        let (shared, images) = (self.shared, self.images);
        let (mut cpu, mut cache) = (start.registers(self.cpu), self.cache.for_thread());
        let mut observer = self.observer.thread();
        let begins = start.clone();
        let (tell, told) = mpsc::channel();
        let body = move || {
            let mut thread = Thread::start(&begins);
            tell.send(thread.address()).expect("the thread that starts another waits for it");
            let process = thread.begin(&shared.kernel.lock());
            let runner = Runner::new(shared, &mut thread, &mut cpu, &mut cache, &mut observer);
            // If the process ends with this thread it is a child, and does not return here.
            Runner { images, process, ..runner }.run();
        };
        linux::without_signals(|| Builder::new().stack_size(HOST_STACK).spawn_scoped(shared.scope, body))?;
        let address = told.recv().expect("a thread begins by telling its address");
        kernel.add(address, start, shared.memory);
        Ok(address.id)
    }

    /// The thread ends. The first one waits for the others, and goes on if another program takes the
    /// place of this one.
    fn end(&mut self, status: i32) -> After {
        self.hand_on();
        let memory = self.shared.memory;
        let mut kernel = self.shared.kernel.lock();
        if !kernel.is_first(self.thread) {
            kernel.unaligned += self.cpu.unaligned;
            drop(kernel);
            self.observer.ended(self.cpu, memory, self.cache);
            kernel = self.shared.kernel.lock();
            self.thread.end(&mut kernel, memory);
            kernel.announce_end();
            return After::Gone;
        }
        self.thread.end(&mut kernel, memory);
        while !kernel.is_empty() {
            kernel.await_end();
        }
        match kernel.take_ending() {
            None => After::Ended(Ok(End::Exited(status))),
            Some(Ending::End(end)) => After::Ended(Ok(end)),
            Some(Ending::Execute(execute)) => {
                kernel.execute(self.thread, &execute);
                memory.clear();
                let (arguments, environment) = (&execute.arguments, &execute.environment);
                let loaded = load(memory, &mut kernel, self.cpu, &execute.path, arguments, environment);
                if let Err(error) = loaded {
                    return After::Ended(Err(error.into()));
                }
                self.images = 0;
                self.observer.replaced();
                self.tell_images(&kernel);
                After::Program(execute.path)
            }
        }
    }

    /// The process ends, and here if the program forked it.
    fn leave(&mut self, end: Result<End, Error>) -> Result<End, Error> {
        let mut kernel = self.shared.kernel.lock();
        kernel.unaligned += self.cpu.unaligned;
        if kernel.process() == self.shared.host_process {
            kernel.detach();
            return end;
        }
        drop(kernel);
        // No signal that comes now changes how it ends.
        linux::block_all();
        self.observer.ended(self.cpu, self.shared.memory, self.cache);
        match end {
            // SAFETY: ends the child without running what the parent registered for its own exit.
            Ok(End::Exited(status)) => unsafe { libc::_exit(status) },
            Ok(End::Killed(crash)) => linux::die(crash.signal),
            Err(error) => {
                eprintln!("pathlength: {error}");
                // SAFETY: as above.
                unsafe { libc::_exit(127) }
            }
        }
    }

    fn crash(&self, kernel: &Kernel, signal: i32, stop: Stop) -> Box<Crash> {
        let address = match stop {
            Stop::Exception(Exception::Memory(fault)) => Some(fault.address),
            Stop::Exception(Exception::Unaligned(address)) => Some(address),
            _ => None,
        };
        let synchronous = matches!(stop, Stop::Exception(_));
        let thread = kernel.is_threaded().then(|| kernel.thread_name(self.thread));
        Box::new(Crash { signal, synchronous, address, thread, cpu: self.cpu.clone() })
    }
}

/// The code in memory has changed, or the observer wants to be told of other blocks.
fn forget(cache: &mut BlockCache, code: &mut Code) {
    cache.invalidate();
    if let Some(compiler) = &mut code.compiler {
        compiler.clear();
    }
}

/// What comes after a thread's end.
enum After {
    /// Nothing: it is gone.
    Gone,
    /// The first thread goes on with another program, this one.
    Program(PathBuf),
    /// The process has ended.
    Ended(Result<End, Error>),
}

/// No instruction has this address.
const NEVER: u64 = 1;

/// What compiled code calls when there is no room for another record.
extern "C" fn hand_on<O: Observer>(cpu: *mut Cpu) {
    // SAFETY: as for `go_on`.
    let runner = unsafe { &mut *(*cpu).host.runner.cast::<Runner<'_, '_, '_, O>>() };
    runner.hand_on();
}

/// What compiled code calls where it does not go on itself: runs the program from one address until
/// another, and returns where it goes on. The other address's lowest bit says that the first instruction is
/// a system call.
extern "C" fn go_on<O: Observer>(cpu: *mut Cpu, from: u64, until: u64) -> u64 {
    // SAFETY: `execute` set the runner before it entered the code that calls, and waits meanwhile.
    let runner = unsafe { &mut *(*cpu).host.runner.cast::<Runner<'_, '_, '_, O>>() };
    let (until, is_system_call) = (until & !3, until & 1 != 0);
    runner.cpu.pc = from;
    if is_system_call {
        runner.cpu.pc = from + 4;
        runner.stop(Stop::SystemCall);
        if runner.must_unwind() {
            return UNWIND;
        }
    }
    // A signal that the call raised comes before what is behind it, and so does who wants something.
    let is_quiet = !linux::pending() && !linux::is_summoned();
    let next = if is_system_call && runner.cpu.pc == until && is_quiet {
        until
    } else if compiler::is_stack_full(runner.cpu) {
        UNWIND
    } else {
        runner.go(until)
    };
    if runner.cpu.host.stack_limit != runner.cpu.host.stack_end {
        compiler::watch(runner.cpu);
    }
    next
}
