//! The execution of a guest thread: runs the interpreter or compiled code, passes system calls and signals to the kernel,
//! and notifies the observer.

mod code;

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{Builder, Scope};

use super::load::{Error, load};
use crate::platform::{Platform, die};
use crate::sampling;
use code::CodeExecution;
use events::ProcessEnd;
use events::record::Register;
use guest::records::Records;
use guest::{BlockCache, DebuggerHook, InstrumentationLevel, Observer, Stop};
use guest_memory::Memory;
use linux_user::{
    Abi, Control, Crash, Execute, Kernel, KernelGuard, ProcessEnding, ProgramEnd, SharedKernel, Start, Task,
};

/// State shared by the threads of a process.
pub(super) struct SharedProcess<'scope, 'env, G: Platform> {
    pub(super) memory: &'env Memory,
    pub(super) kernel: &'env SharedKernel<G>,
    /// The process that called [`Process::run`], as opposed to children that the program forks.
    pub(super) host_process: u32,
    /// The process that runs the program; threads know their own.
    pub(super) process: u32,
    /// As in [`Process`].
    pub(super) compile_threshold: u32,
    pub(super) is_clock_virtual: bool,
    pub(super) scope: &'scope Scope<'scope, 'env>,
}

impl<G: Platform> Clone for SharedProcess<'_, '_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G: Platform> Copy for SharedProcess<'_, '_, G> {}

/// A running guest thread, on a thread of the host.
pub(super) struct GuestThread<'a, 'scope, 'env, G: Platform, O> {
    shared: SharedProcess<'scope, 'env, G>,
    thread: &'a mut Task<G>,
    cpu: &'a mut G,
    cache: &'a mut BlockCache<G>,
    observer: &'a mut O,
    /// The process number as of the last check; it differs after a fork.
    process: u32,
    /// The generation of executable memory for which the blocks in the cache are valid.
    code_generation: u64,
    /// Number of images that have been reported to the observer.
    images: usize,
    /// Cache of one-instruction blocks, for stepping.
    steps: Option<BlockCache<G>>,
    /// The code compiled from the blocks in the cache.
    code: CodeExecution<G>,
    /// Cache and code of the previous level of instrumentation, or session.
    other_level: Option<(BlockCache<G>, CodeExecution<G>)>,
    /// The requested level, if compiled code has yet to be left.
    new_level: Option<InstrumentationLevel>,
    /// The observer was already asked for the level at the next block.
    is_level_checked: bool,
    /// The record buffer, if the observer takes records.
    records: Option<Records>,
    /// Compiled code must be discarded.
    stale: bool,
    /// Recursion depth of [`GuestThread::go`], with compiled code between the activations.
    depth: u32,
    /// Set when the thread has ended, so that [`GuestThread::go`] returns.
    ended: Option<Option<ThreadEnd>>,
}

/// Stack size of a host thread in bytes. Unused pages take address space only.
const HOST_STACK: usize = 8 << 20;

/// The exit status of a process whose next program could not be loaded, as with shells.
const NOT_LOADED: i32 = 127;

/// An address that no instruction has, as it is odd.
const NEVER: u64 = 1;

impl<'a, 'scope, 'env, G: Platform, O: Observer<G> + 'scope> GuestThread<'a, 'scope, 'env, G, O> {
    pub(super) fn new(
        shared: SharedProcess<'scope, 'env, G>,
        thread: &'a mut Task<G>,
        cpu: &'a mut G,
        cache: &'a mut BlockCache<G>,
        observer: &'a mut O,
    ) -> Self {
        cpu.set_model(cache.model());
        let code_generation = shared.memory.code_generation();
        let process = shared.process;
        let code = CodeExecution::new(observer.initial_level(), observer.session(), &shared);
        let (stale, depth, ended) = (false, 0, None);
        GuestThread {
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
            other_level: None,
            new_level: None,
            is_level_checked: false,
            records: O::LEVEL.has_records().then(Records::default),
            stale,
            depth,
            ended,
        }
    }

    /// Runs the thread to its end. None if the process continues.
    pub(super) fn run(mut self) -> Option<ThreadEnd> {
        if let Some(records) = &mut self.records {
            records.attach(self.cpu);
        }
        self.report_images(&self.shared.kernel.lock());
        sampling::set_cpu(self.cpu);
        let address = self.thread.address();
        self.with_debugger(|debugger, cpu| debugger.begin(address, cpu));
        self.observer.resumed(self.shared.memory);
        loop {
            self.update_code();
            self.go(NEVER);
            if let Some(end) = self.ended.take() {
                return end;
            }
        }
    }

    /// Reports the records in the buffer to the observer.
    fn flush_records(&mut self) {
        if let Some(records) = &mut self.records {
            let records = records.take(self.cpu);
            if !records.is_empty() {
                self.observer.executed(records, self.cache);
            }
        }
    }

    /// Reports a discontinuity to the observer.
    fn divert(&mut self) {
        self.flush_records();
        self.observer.discontinuity();
    }

    /// Runs an operation of the debugger, if there is one. It may change breakpoints.
    fn with_debugger(&mut self, what: impl FnOnce(&mut dyn DebuggerHook<G>, &mut G)) {
        if let Some(debugger) = self.observer.debugger() {
            what(debugger, self.cpu);
            self.stale |= self.observer.requires_recompilation();
        }
    }

    /// Handles a stop of the interpreter.
    fn stop(&mut self, stop: Stop<G::Exception>) {
        if stop == Stop::SystemCall {
            self.flush_records();
            self.observer.system_call(self.cpu.system_call_number() as u32);
            self.with_debugger(|debugger, cpu| debugger.leave_guest(cpu));
        }
        let mut kernel = self.shared.kernel.lock();
        self.thread.report(&mut kernel, self.cpu.executed());
        let expected = self.cpu.pc();
        let system_call = (stop == Stop::SystemCall).then(|| self.cpu.system_call_number() as u32);
        sampling::set_system_call(system_call);
        let control = self.serve(&mut kernel, stop);
        sampling::set_system_call(None);
        if self.cpu.pc() != expected {
            self.divert();
        }
        self.cpu.return_to_guest();
        let mut status = None;
        match control {
            Control::Continue => {}
            // The process is ending, which a new thread would miss.
            Control::Start(_) if kernel.is_ending() => {}
            Control::Start(start) => {
                let id = self.start(&mut kernel, &start);
                linux_user::started_thread(self.cpu, id);
            }
            Control::ExitThread(own) => status = Some(own),
            Control::Exit(status) => kernel.end(ProcessEnding::End(ProgramEnd::Exited(status)), self.thread),
            Control::Killed { signal } => {
                let crash = self.crash(&kernel, signal, stop);
                kernel.end(ProcessEnding::End(ProgramEnd::Killed(crash)), self.thread);
            }
            Control::Execute(execute) => kernel.end(ProcessEnding::Execute(execute), self.thread),
        }
        if kernel.process() != self.process {
            self.process = kernel.process();
            self.observer.forked(kernel.ordinal(), self.cache);
            if let Some(records) = &mut self.records {
                // Discard the parent's records.
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
                After::OtherGuest(execute) => self.ended = Some(Some(ThreadEnd::OtherGuest(execute))),
                After::Ended(end) => self.ended = Some(Some(ThreadEnd::Ended(self.leave(end)))),
            }
        } else {
            self.follow_code_changes(&kernel);
            drop(kernel);
            self.with_debugger(|debugger, cpu| debugger.enter_guest(cpu));
        }
        self.observer.resumed(self.shared.memory);
    }

    /// Does the kernel's part of a stop.
    fn serve(&mut self, kernel: &mut KernelGuard<G>, stop: Stop<G::Exception>) -> Control {
        let (thread, cpu, memory) = (&mut *self.thread, &mut *self.cpu, self.shared.memory);
        match stop {
            Stop::SystemCall => linux_user::system_call(kernel, thread, cpu, memory),
            Stop::Exception(exception) => thread.raise(kernel, cpu, memory, exception),
            Stop::Signal => thread.deliver(kernel, cpu, memory),
            Stop::InstructionBarrier => {
                memory.code_changed();
                Control::Continue
            }
        }
    }

    /// Handles changes to executable memory by this thread or another one.
    fn follow_code_changes(&mut self, kernel: &Kernel<G>) {
        if self.shared.memory.code_generation() != self.code_generation {
            self.report_images(kernel);
            kernel.notify_others(self.thread);
        }
    }

    fn report_images(&mut self, kernel: &Kernel<G>) {
        kernel.images()[self.images..].iter().for_each(|image| self.observer.mapped(image));
        self.images = kernel.images().len();
        self.stale |= self.update_boundaries();
    }

    /// Starts a thread and returns its ID. The new thread runs once the caller releases the kernel lock.
    fn start(&mut self, kernel: &mut KernelGuard<G>, start: &Start) -> std::io::Result<i32> {
        let (shared, images) = (self.shared, self.images);
        // Everything so far is reported before anything that the new thread does.
        self.report_all();
        let (mut cpu, mut cache) = (start.registers(self.cpu), self.cache.for_thread());
        let mut observer = self.observer.thread();
        let begins = start.clone();
        let (sender, receiver) = mpsc::channel();
        let body = move || {
            let mut thread = Task::start(&begins);
            sender.send(thread.address()).expect("the thread that starts another waits for it");
            let process = thread.begin(&shared.kernel.lock());
            let runner = GuestThread::new(shared, &mut thread, &mut cpu, &mut cache, &mut observer);
            // If the process ends with this thread, it is a forked child, and `run` does not return.
            GuestThread { images, process, ..runner }.run();
        };
        host::without_signals(|| Builder::new().stack_size(HOST_STACK).spawn_scoped(shared.scope, body))?;
        let address = receiver.recv().expect("a thread first sends its address");
        kernel.add(address, start, shared.memory);
        Ok(address.id)
    }

    /// Ends the thread. The first thread waits for the others, and continues if another program replaces this one.
    fn end(&mut self, status: i32) -> After {
        self.report_all();
        let memory = self.shared.memory;
        let mut kernel = self.shared.kernel.lock();
        if !kernel.is_first(self.thread) {
            kernel.unaligned += self.cpu.unaligned();
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
            None => After::Ended(Ok(ProgramEnd::Exited(status))),
            Some(ProcessEnding::End(end)) => After::Ended(Ok(end)),
            Some(ProcessEnding::Execute(execute)) => {
                let is_same_guest = execute.machine == G::ELF_MACHINE;
                self.observer.replaced(self.cpu, self.cache, is_same_guest);
                kernel.execute(self.thread, &execute);
                if !is_same_guest {
                    kernel.unaligned += self.cpu.unaligned();
                    return After::OtherGuest(execute);
                }
                memory.clear(<G as Abi>::LAYOUT);
                let (arguments, environment) = (&execute.arguments, &execute.environment);
                let loaded = load(memory, &mut kernel, self.cpu, &execute.path, arguments, environment);
                if let Err(error) = loaded {
                    return After::Ended(Err(error.into()));
                }
                self.images = 0;
                self.report_images(&kernel);
                After::Program(execute.path)
            }
        }
    }

    /// Ends the process. A forked child exits here.
    fn leave(&mut self, end: Result<ProgramEnd, Error>) -> Result<ProgramEnd, Error> {
        let how = match &end {
            Ok(ProgramEnd::Exited(status)) => ProcessEnd::Exited(*status),
            Ok(ProgramEnd::Killed(crash)) => ProcessEnd::Killed(crash.signal),
            Err(_) => ProcessEnd::Exited(NOT_LOADED),
        };
        self.observer.exits(how, self.cpu, self.shared.memory, self.cache);
        let mut kernel = self.shared.kernel.lock();
        kernel.unaligned += self.cpu.unaligned();
        if kernel.process() == self.shared.host_process {
            kernel.detach();
            return end;
        }
        drop(kernel);
        // Signals that arrive from now on must not change the exit status.
        host::block_all();
        self.observer.ended(self.cpu, self.shared.memory, self.cache);
        match end {
            // SAFETY: ends the child without running what the parent registered for its own exit.
            Ok(ProgramEnd::Exited(status)) => unsafe { libc::_exit(status) },
            Ok(ProgramEnd::Killed(crash)) => die(crash.host_signal),
            Err(error) => exit_unloaded(&error),
        }
    }

    fn crash(&self, kernel: &Kernel<G>, signal: i32, stop: Stop<G::Exception>) -> Box<Crash> {
        let address = match stop {
            Stop::Exception(exception) => G::faulting_address(exception),
            _ => None,
        };
        let synchronous = matches!(stop, Stop::Exception(_));
        let thread = kernel.is_threaded().then(|| kernel.thread_name(self.thread));
        let register = |number| self.cpu.value(Register::Integer(number));
        Box::new(Crash {
            signal,
            host_signal: G::host_signal(signal).unwrap_or(libc::SIGKILL),
            description: G::describe_signal(signal),
            synchronous,
            address,
            thread,
            instruction_set: G::INSTRUCTION_SET,
            pc: self.cpu.pc(),
            registers: (0..32).map(register).collect(),
        })
    }
}

/// Ends a forked process whose next program could not be loaded.
pub(super) fn exit_unloaded(error: &Error) -> ! {
    text::message!("{error}");
    // SAFETY: ends the child without running what the parent registered for its own exit.
    unsafe { libc::_exit(NOT_LOADED) }
}

/// The end of a process's programs of one guest.
pub(super) enum ThreadEnd {
    /// The process has ended.
    Ended(Result<ProgramEnd, Error>),
    /// It executes a program of another guest.
    OtherGuest(Execute),
}

/// The next step after the end of a thread.
enum After {
    /// Nothing: the process continues without it.
    Gone,
    /// The first thread continues with another program, this one.
    Program(PathBuf),
    /// The first thread continues with a program of another guest.
    OtherGuest(Execute),
    /// The process has ended.
    Ended(Result<ProgramEnd, Error>),
}
