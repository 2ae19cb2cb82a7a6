//! A running program: processor, memory and kernel, tied together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use trace::LoadedImage;

use crate::alpha::block::BlockCache;
use crate::alpha::cpu::{Cpu, Exception, register};
use crate::alpha::interpreter::{self, Observer, Stop};
use crate::linux::loader::{self, LoadError, Program};
use crate::linux::{self, Control, Kernel, Settings};
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
    Killed(Crash),
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
    /// The registers at that moment.
    pub cpu: Cpu,
}

/// A loaded program.
pub struct Process {
    /// The processor's state.
    pub cpu: Cpu,
    /// The address space.
    pub memory: Memory,
    /// The blocks that ran.
    pub cache: BlockCache,
    /// Every image that was mapped.
    pub images: Vec<LoadedImage>,
    kernel: Kernel,
    code_generation: u64,
    /// The host's process that started the program: a child that the program forks is another.
    host_process: u32,
}

impl Process {
    /// Loads the program; nothing runs yet.
    pub fn new(configuration: &Configuration) -> Result<Process, Error> {
        let mut process = Process {
            cpu: Cpu::default(),
            memory: Memory::new().map_err(Error::Memory)?,
            cache: BlockCache::new(configuration.model),
            images: Vec::new(),
            kernel: Kernel::new(configuration.settings.clone()),
            code_generation: 0,
            host_process: std::process::id(),
        };
        let name = configuration.name.as_deref().unwrap_or(configuration.program.as_os_str());
        let mut arguments = vec![name.to_os_string()];
        arguments.extend_from_slice(&configuration.arguments);
        let (program, arguments) = process.kernel.program(&configuration.program, arguments);
        process.load(&program, &arguments, &configuration.environment)?;
        Ok(process)
    }

    /// Loads a program into empty memory and sets the registers for its start.
    fn load(&mut self, path: &Path, arguments: &[OsString], environment: &[OsString]) -> Result<(), Error> {
        let program = Program {
            path,
            name: path.as_os_str(),
            arguments,
            environment,
            stack_bytes: self.kernel.stack_bytes(),
            random: self.kernel.random_bytes(),
        };
        let sysroot = self.kernel.sysroot().to_path_buf();
        let kernel = &self.kernel;
        let loaded = loader::load(&program, &mut self.memory, &sysroot, |path| kernel.locate(path))?;
        self.kernel.started(path, arguments, loaded.heap);
        self.cpu =
            Cpu { instructions: self.cpu.instructions, unaligned: self.cpu.unaligned, ..Cpu::default() };
        self.cpu.pc = loaded.entry;
        self.cpu.r[register::SP] = loaded.stack_pointer;
        self.images = loaded.images;
        self.code_generation = self.memory.code_generation();
        Ok(())
    }

    /// Runs the program to its end. Returns in the process that called it only: a child that the
    /// program forks ends here.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<End, Error> {
        let end = self.run_to_end(observer);
        if std::process::id() == self.host_process {
            return end;
        }
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

    fn run_to_end<O: Observer>(&mut self, observer: &mut O) -> Result<End, Error> {
        self.images.iter().for_each(|image| observer.mapped(image));
        loop {
            let stop =
                interpreter::run(&mut self.cpu, &self.memory, &mut self.cache, observer, linux::pending);
            self.kernel.instructions = self.cpu.instructions;
            let (cpu, memory) = (&mut self.cpu, &mut self.memory);
            let control = match stop {
                Stop::SystemCall => {
                    observer.system_call(cpu.r[register::V0] as u32);
                    self.kernel.system_call(cpu, memory)
                }
                Stop::Exception(exception) => self.kernel.raise(cpu, memory, exception),
                Stop::Signal => self.kernel.deliver(cpu, memory),
            };
            // The return from the operating system's kernel clears the lock flag.
            self.cpu.lock = None;
            match control {
                Control::Continue => self.settle(observer),
                Control::Exit(status) => return Ok(End::Exited(status)),
                Control::Killed { signal } => return Ok(End::Killed(self.crash(signal, stop))),
                Control::Execute(execute) => {
                    self.memory.clear();
                    self.cache.invalidate();
                    self.load(&execute.path, &execute.arguments, &execute.environment)?;
                    self.images.iter().for_each(|image| observer.mapped(image));
                }
            }
        }
    }

    /// Follows up on what a system call did to memory.
    fn settle<O: Observer>(&mut self, observer: &mut O) {
        if self.memory.code_generation() != self.code_generation {
            self.code_generation = self.memory.code_generation();
            self.cache.invalidate();
            for image in self.kernel.mapped_images() {
                observer.mapped(&image);
                self.images.push(image);
            }
        }
    }

    fn crash(&self, signal: i32, stop: Stop) -> Crash {
        let address = match stop {
            Stop::Exception(Exception::Memory(fault)) => Some(fault.address),
            Stop::Exception(Exception::Unaligned(address)) => Some(address),
            _ => None,
        };
        let synchronous = matches!(stop, Stop::Exception(_));
        Crash { signal, synchronous, address, cpu: self.cpu.clone() }
    }
}
