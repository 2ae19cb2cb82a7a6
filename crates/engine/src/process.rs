//! A running program: processor, memory and kernel, tied together.

mod guest_thread;
mod load;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use events::LoadedImage;

use alpha::block::BlockCache;
use alpha::cpu::Cpu;
use alpha::observer::Observer;
use guest_thread::{GuestThread, Shared};
use linux::{End, Kernel, Settings, SharedKernel, Thread};
pub use load::Error;
use load::load;
use memory::Memory;

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
    /// Processes that the program forked, and these in turn: their observers are not this one's.
    pub forked: u64,
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
            hot: jit::THRESHOLD,
            unaligned: 0,
            forked: 0,
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
        kernel.lock().begin(observer.debugger().and_then(|debugger| debugger.signals()));
        let is_clock_virtual = kernel.lock().is_virtual();
        let end = std::thread::scope(|scope| {
            let shared = Shared { memory, kernel, host_process, hot: *hot, is_clock_virtual, scope };
            GuestThread::new(shared, thread, cpu, cache, observer).run()
        });
        let kernel = kernel.lock();
        self.images = kernel.images().to_vec();
        self.unaligned = kernel.unaligned;
        self.forked = kernel.forked();
        end.expect("only threads that others outlive end without the process")
    }
}
