//! A process: processor, memory and kernel together.

mod guest_thread;
mod load;

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use events::LoadedImage;

use crate::platform::{
    AnyGuestProgram, GuestDescription, Platform, ProgramObserver, describe, with_guest, with_machine,
};
use crate::program_state::ProgramState;
use crate::sampling;
use guest::{BlockCache, CallingConvention, Guest, Observer};
use guest_memory::Memory;
use guest_thread::{GuestThread, SharedProcess, ThreadEnd};
use linux_user::{Abi, Execute, Kernel, ProgramEnd, SharedKernel, SystemSettings, Task};
pub use load::Error;
use load::{check_permission, load};

/// The program to run, and its environment.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The executable.
    pub program: PathBuf,
    /// Its `argv[0]`, if that is not the path.
    pub name: Option<OsString>,
    /// Its arguments, without `argv[0]`.
    pub arguments: Vec<OsString>,
    /// The environment: `NAME=value` strings.
    pub environment: Vec<OsString>,
    /// The processor: which instructions exist.
    pub model: isa::Processors,
    /// Properties of the operating system.
    pub settings: SystemSettings,
}

/// A loaded program.
pub struct Process {
    /// The address space.
    pub memory: Arc<Memory>,
    /// Every image that was mapped.
    pub images: Vec<LoadedImage>,
    /// Number of executions after which a block is compiled, unless the observer needs the interpreter; 0 for never.
    pub compile_threshold: u32,
    /// Number of unaligned accesses of all threads that have ended.
    pub unaligned: u64,
    /// Number of processes that the program and its children forked. Other observers observe those.
    pub forked: u64,
    /// The processor that the configuration requests.
    model: isa::Processors,
    /// The process that runs the first program, as opposed to children that it forks.
    host_process: u32,
    program: AnyGuestProgram,
}

impl Process {
    /// Loads the program; nothing runs yet. The thread that calls must be the one that runs it.
    pub fn new(configuration: &Configuration) -> Result<Process, Error> {
        let sysroot = configuration.settings.sysroot.as_deref();
        let machine = linux_user::guest_machine(&configuration.program, sysroot);
        with_machine!(machine, Chosen, Program => {
            let (memory, state) = ProgramState::<Chosen>::new(configuration)?;
            let images = state.kernel.lock().images().to_vec();
            Ok(Process {
                memory: Arc::new(memory),
                images,
                compile_threshold: jit::COMPILE_THRESHOLD,
                unaligned: 0,
                forked: 0,
                model: configuration.model,
                host_process: std::process::id(),
                program: Program(Box::new(state)),
            })
        })
    }

    /// The directory in which the program's absolute paths are looked up first.
    pub fn sysroot(&self) -> PathBuf {
        with_guest!(&self.program, state => state.kernel.lock().sysroot().to_path_buf())
    }

    /// The guest of the program.
    pub fn guest(&self) -> &'static dyn GuestDescription {
        with_guest!(&self.program, state => state.guest())
    }

    /// The first thread's stack pointer.
    pub fn stack_pointer(&self) -> u64 {
        with_guest!(&self.program, state => state.cpu.stack_pointer())
    }

    /// Number of instructions that the first thread has executed in the program that runs now.
    pub fn instructions(&self) -> u64 {
        with_guest!(&self.program, state => state.cpu.executed())
    }

    /// Whether the first thread has executed code between two addresses.
    pub fn has_executed(&self, code: std::ops::Range<u64>) -> bool {
        with_guest!(&self.program, state => state.cache.blocks().iter().any(|block| code.contains(&block.address)))
    }

    /// The state of the program, if it is one of this guest.
    pub fn state<G: Platform>(&mut self) -> Option<&mut ProgramState<G>> {
        with_guest!(&mut self.program, state => (&mut **state as &mut dyn Any).downcast_mut())
    }

    /// Runs the program to its end. Returns only in the calling process: children that the program forks exit here.
    /// Each thread has its own observer, which this one makes.
    pub fn run<O: ProgramObserver>(&mut self, observer: &mut O) -> Result<ProgramEnd, Error> {
        with_guest!(&self.program, state => state.kernel.lock().begin());
        self.run_programs(observer)
    }

    /// The same, of a process whose first program has begun.
    fn run_programs<O: ProgramObserver>(&mut self, observer: &mut O) -> Result<ProgramEnd, Error> {
        let settings = ProcessSettings {
            memory: self.memory.clone(),
            compile_threshold: self.compile_threshold,
            model: self.model,
            host_process: self.host_process,
        };
        loop {
            let end = with_guest!(&mut self.program, state => state.run(&settings, observer));
            match end {
                ThreadEnd::Ended(end) => {
                    with_guest!(&mut self.program, state => {
                        let kernel = state.kernel.lock();
                        self.images = kernel.images().to_vec();
                        self.unaligned = kernel.unaligned;
                        self.forked = kernel.forked();
                    });
                    return end;
                }
                ThreadEnd::OtherGuest(execute) => {
                    self.program =
                        with_guest!(&mut self.program, state => state.replaced(&settings, &execute)?);
                }
            }
        }
    }
}

/// Settings of a process that outlive its programs.
struct ProcessSettings {
    memory: Arc<Memory>,
    compile_threshold: u32,
    model: isa::Processors,
    host_process: u32,
}

impl<G: Platform> ProgramState<G> {
    /// Loads the first program of a process.
    fn new(configuration: &Configuration) -> Result<(Memory, ProgramState<G>), Error> {
        let memory = Memory::new(<G as Abi>::LAYOUT).map_err(Error::Memory)?;
        let (mut cpu, thread) = (G::default(), Task::first());
        let mut kernel = Kernel::new(configuration.settings.clone(), &thread);
        let name = configuration.name.as_deref().unwrap_or(configuration.program.as_os_str());
        let mut arguments = vec![name.to_os_string()];
        arguments.extend_from_slice(&configuration.arguments);
        let (program, arguments) = kernel.program(&configuration.program, arguments);
        load(&memory, &mut kernel, &mut cpu, &program, &arguments, &configuration.environment)?;
        check_permission(&configuration.program)?;
        let cache = BlockCache::new(G::model(configuration.model));
        Ok((memory, ProgramState { cpu, cache, thread, kernel: SharedKernel::new(kernel) }))
    }

    fn guest(&self) -> &'static dyn GuestDescription {
        describe::<G>()
    }

    /// Runs the program, and what it executes, until the end of the process or a program of another guest.
    fn run<O: ProgramObserver + Observer<G>>(
        &mut self,
        settings: &ProcessSettings,
        observer: &mut O,
    ) -> ThreadEnd {
        let ProgramState { cpu, cache, thread, kernel } = self;
        kernel.lock().set_debugger(observer.debugger().and_then(|debugger| debugger.signals()));
        let is_clock_virtual = kernel.lock().is_virtual();
        let has_counter = kernel.lock().shows_instructions();
        let is_over = AtomicBool::new(false);
        let end = std::thread::scope(|scope| {
            let reports = || host::spawn_scoped(scope, "reports", || request_reports(kernel, &is_over));
            let reports = has_counter.then(reports).and_then(Result::ok);
            let shared = SharedProcess {
                memory: &settings.memory,
                kernel,
                host_process: settings.host_process,
                process: kernel.lock().process(),
                compile_threshold: settings.compile_threshold,
                is_clock_virtual,
                scope,
            };
            let end = GuestThread::new(shared, thread, cpu, cache, observer).run();
            if let Some(ThreadEnd::OtherGuest(_)) = &end {
                sampling::forget_cpu();
            }
            if let Some(ThreadEnd::OtherGuest(execute)) = &end
                && kernel.lock().process() != settings.host_process
            {
                // The parent's threads, for which the scope would wait, do not exist in a forked process.
                run_forked(kernel, thread, settings, execute, observer);
            }
            is_over.store(true, Ordering::Relaxed);
            if let Some(reports) = reports {
                reports.thread().unpark();
            }
            end
        });
        end.expect("only threads that others outlive end without the process")
    }

    /// A program of another guest, which takes the place of this one.
    fn replaced(&self, settings: &ProcessSettings, execute: &Execute) -> Result<AnyGuestProgram, Error> {
        other_program(&self.kernel, &self.thread, settings, execute)
    }
}

/// A program of another guest, loaded in the place of one that has ended.
fn other_program<G: Platform>(
    kernel: &SharedKernel<G>,
    thread: &Task<G>,
    settings: &ProcessSettings,
    execute: &Execute,
) -> Result<AnyGuestProgram, Error> {
    with_machine!(Some(execute.machine), Other, Program => {
        let (mut kernel, thread) = kernel.lock().hand_over::<Other>(thread);
        let (mut cpu, memory) = (Other::default(), &settings.memory);
        memory.clear(<Other as Abi>::LAYOUT);
        let (arguments, environment) = (&execute.arguments, &execute.environment);
        load(memory, &mut kernel, &mut cpu, &execute.path, arguments, environment)?;
        let cache = BlockCache::new(Other::model(settings.model));
        Ok(Program(Box::new(ProgramState { cpu, cache, thread, kernel: SharedKernel::new(kernel) })))
    })
}

/// Runs a program of another guest in a forked process, to its end.
fn run_forked<G: Platform, O: ProgramObserver>(
    kernel: &SharedKernel<G>,
    thread: &Task<G>,
    settings: &ProcessSettings,
    execute: &Execute,
    observer: &mut O,
) -> ! {
    let program = other_program(kernel, thread, settings, execute);
    let program = program.unwrap_or_else(|error| guest_thread::exit_unloaded(&error));
    let mut process = Process {
        memory: settings.memory.clone(),
        images: Vec::new(),
        compile_threshold: settings.compile_threshold,
        unaligned: 0,
        forked: 0,
        model: settings.model,
        host_process: settings.host_process,
        program,
    };
    let _ = process.run_programs(observer);
    unreachable!("forked processes exit where they end")
}

/// The time between two reports of what the threads have executed, while that is shown.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Makes the guest's threads leave compiled code again and again, and so report how many instructions they have executed,
/// until the program is over.
fn request_reports<G: Platform>(kernel: &SharedKernel<G>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        std::thread::park_timeout(REPORT_INTERVAL);
        kernel.lock().notify_all();
    }
}
