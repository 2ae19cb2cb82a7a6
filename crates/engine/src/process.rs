//! A process: processor, memory and kernel together.

mod guest_thread;
mod load;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use events::LoadedImage;

use crate::platform::{BlockCache, Cpu, Kernel, ProgramEnd, SharedKernel, Task, reserve_memory};
use guest::Observer;
use guest_memory::Memory;
use guest_thread::{GuestThread, SharedProcess};
use linux_user::SystemSettings;
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
    pub model: isa::CpuModel,
    /// Properties of the operating system.
    pub settings: SystemSettings,
}

/// A loaded program.
pub struct Process {
    /// The first thread's processor state.
    pub cpu: Cpu,
    /// The address space.
    pub memory: Arc<Memory>,
    /// The block cache of the first thread.
    pub cache: BlockCache,
    /// Every image that was mapped.
    pub images: Vec<LoadedImage>,
    /// Number of executions after which a block is compiled, unless the observer needs the interpreter; 0 for never.
    pub compile_threshold: u32,
    /// Number of unaligned accesses of all threads that have ended.
    pub unaligned: u64,
    /// Number of processes that the program and its children forked. Other observers observe those.
    pub forked: u64,
    thread: Task,
    kernel: SharedKernel,
}

impl Process {
    /// Loads the program; nothing runs yet. The thread that calls must be the one that runs it.
    pub fn new(configuration: &Configuration) -> Result<Process, Error> {
        let (memory, mut cpu) = (reserve_memory().map_err(Error::Memory)?, Cpu::default());
        let thread = Task::first();
        let mut kernel = Kernel::new(configuration.settings.clone(), &thread);
        let name = configuration.name.as_deref().unwrap_or(configuration.program.as_os_str());
        let mut arguments = vec![name.to_os_string()];
        arguments.extend_from_slice(&configuration.arguments);
        let (program, arguments) = kernel.program(&configuration.program, arguments);
        load(&memory, &mut kernel, &mut cpu, &program, &arguments, &configuration.environment)?;
        check_permission(&configuration.program)?;
        Ok(Process {
            cpu,
            memory: Arc::new(memory),
            cache: BlockCache::new(configuration.model),
            images: kernel.images().to_vec(),
            compile_threshold: jit::COMPILE_THRESHOLD,
            unaligned: 0,
            forked: 0,
            thread,
            kernel: SharedKernel::new(kernel),
        })
    }

    /// The directory in which the program's absolute paths are looked up first.
    pub fn sysroot(&self) -> PathBuf {
        self.kernel.lock().sysroot().to_path_buf()
    }

    /// Runs the program to its end. Returns only in the calling process: children that the program forks exit here.
    /// Each thread has its own observer, which this one makes.
    pub fn run<O: Observer<Cpu>>(&mut self, observer: &mut O) -> Result<ProgramEnd, Error> {
        let Process { cpu, memory, cache, compile_threshold, thread, kernel, .. } = self;
        let memory: &Memory = memory;
        let host_process = kernel.lock().process();
        kernel.lock().begin(observer.debugger().and_then(|debugger| debugger.signals()));
        let is_clock_virtual = kernel.lock().is_virtual();
        let has_counter = kernel.lock().shows_instructions();
        let is_over = AtomicBool::new(false);
        let end = std::thread::scope(|scope| {
            let reports = || host::spawn_scoped(scope, "reports", || request_reports(kernel, &is_over));
            let reports = has_counter.then(reports).and_then(Result::ok);
            let shared = SharedProcess {
                memory,
                kernel,
                host_process,
                compile_threshold: *compile_threshold,
                is_clock_virtual,
                scope,
            };
            let end = GuestThread::new(shared, thread, cpu, cache, observer).run();
            is_over.store(true, Ordering::Relaxed);
            if let Some(reports) = reports {
                reports.thread().unpark();
            }
            end
        });
        let kernel = kernel.lock();
        self.images = kernel.images().to_vec();
        self.unaligned = kernel.unaligned;
        self.forked = kernel.forked();
        end.expect("only threads that others outlive end without the process")
    }
}

/// The time between two reports of what the threads have executed, while that is shown.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Makes the guest's threads leave compiled code again and again, and so report how many instructions they have executed,
/// until the program is over.
fn request_reports(kernel: &SharedKernel, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        std::thread::park_timeout(REPORT_INTERVAL);
        kernel.lock().notify_all();
    }
}
