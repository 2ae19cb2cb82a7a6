//! Executes guest code: interprets it, compiles it once it is hot, and discards code that is out of date.

use std::ffi::c_void;

use events::{BlockId, HitFilter};

use super::{GuestThread, SharedProcess};
use crate::platform::Platform;
use guest::interpreter::{self, InterpreterExit, Limits, Stop};
use guest::{BlockCache, Callbacks, DecodedBlock, InstrumentationLevel, MAX_BLOCK_INSTRUCTIONS, Observer};
use guest_memory::Memory;
use jit::{Compiler, Exit, UNWIND};

/// How the blocks in a cache are executed.
pub(super) struct CodeExecution<G: Platform> {
    /// The level of instrumentation.
    level: InstrumentationLevel,
    /// The session that it was compiled for ([`Instrumentation::session`](guest::Instrumentation::session)).
    session: u64,
    /// Number of executions after which a block is compiled; 0 for never.
    compile_threshold: u32,
    /// Created for the first hot block.
    compiler: Option<Compiler<G>>,
    /// Faults of the code since it was discarded.
    faults: u32,
    /// It contains a block that must not be compiled again.
    must_discard: bool,
}

/// Faults of compiled code that take about as long as compiling it anew.
const FAULTS: u32 = 1000;

impl<G: Platform> CodeExecution<G> {
    pub(super) fn new(
        level: InstrumentationLevel,
        session: u64,
        shared: &SharedProcess<G>,
    ) -> CodeExecution<G> {
        let is_compilable = match level {
            // The virtual clock counts instructions, so they must all be counted.
            InstrumentationLevel::Off => !shared.is_clock_virtual,
            InstrumentationLevel::Instructions
            | InstrumentationLevel::Limited
            | InstrumentationLevel::Counts
            | InstrumentationLevel::Accesses
            | InstrumentationLevel::Unfiltered => true,
            InstrumentationLevel::Blocks | InstrumentationLevel::Values => false,
        };
        CodeExecution {
            level,
            session,
            compile_threshold: if is_compilable { shared.compile_threshold } else { 0 },
            compiler: None,
            faults: 0,
            must_discard: false,
        }
    }

    /// The compiler; None if the host or the level has none.
    fn compiler(
        &mut self,
        memory: &Memory,
        hit_filter: Option<&HitFilter>,
        is_limited: bool,
    ) -> Option<&mut Compiler<G>> {
        if self.compiler.is_none() && self.compile_threshold > 0 {
            self.compiler = Compiler::new(memory, self.level, hit_filter, is_limited);
            if self.compiler.is_none() {
                self.compile_threshold = 0;
            }
        }
        self.compiler.as_mut()
    }
}

impl<'scope, G: Platform, O: Observer<G> + 'scope> GuestThread<'_, 'scope, '_, G, O> {
    /// Runs until control reaches `until`, and returns that; or returns [`UNWIND`] if the compiled code that called
    /// must be left.
    pub(super) fn go(&mut self, until: u64) -> u64 {
        let (mut interpret_first, mut resume) = (false, None);
        loop {
            // After a fault in compiled code the interpreter resumes in the middle of the block.
            let steps = self.is_stepped() && resume.is_none();
            let (compile_threshold, level) =
                (if steps { 0 } else { self.code.compile_threshold }, self.code.level);
            let is_level_checked = std::mem::take(&mut self.is_level_checked);
            let limits =
                Limits { until, compile_threshold, interpret_first, level, is_level_checked, resume };
            let memory = self.shared.memory;
            let cache = match steps {
                true => self.steps.get_or_insert_with(|| self.cache.for_steps()),
                false => &mut *self.cache,
            };
            let next = interpreter::run(self.cpu, memory, cache, limits, self.observer, host::pending);
            (interpret_first, resume) = (false, None);
            self.stale |= self.observer.requires_recompilation();
            match next {
                InterpreterExit::Reached => {}
                InterpreterExit::Held => self.with_debugger(|debugger, cpu| debugger.stop(cpu)),
                InterpreterExit::Code(id) => {
                    let from = self.cpu.pc();
                    match self.execute(id) {
                        Some(Exit::At(UNWIND)) => return UNWIND,
                        // If compiled code leaves at its first instruction, the interpreter executes the block.
                        Some(Exit::At(next)) => {
                            self.cpu.set_pc(next);
                            interpret_first = next == from;
                        }
                        Some(Exit::Fault(host)) => resume = Some(self.fault(host)),
                        // The observer was already asked for the level at this block.
                        None => (interpret_first, self.is_level_checked) = (true, true),
                    }
                }
                InterpreterExit::Full => self.flush_records(),
                InterpreterExit::ChangeLevel(level) => {
                    (self.new_level, self.is_level_checked) = (Some(level), true)
                }
                InterpreterExit::Stop(stop) => self.stop(stop),
            }
            // After a fault the rest of the block is executed first.
            if resume.is_none() && self.must_unwind() {
                return UNWIND;
            }
            if self.cpu.pc() == until && resume.is_none() {
                return until;
            }
        }
    }

    /// Whether the compiled code that called this activation must be left, rather than returned to.
    fn must_unwind(&mut self) -> bool {
        self.ended.is_some()
            || self.stale
            || self.new_level.is_some()
            || self.depth > 0 && self.is_stepped()
            || self.shared.memory.code_generation() != self.code_generation
    }

    /// Whether the debugger steps the thread.
    fn is_stepped(&mut self) -> bool {
        self.observer.debugger().is_some_and(|debugger| debugger.steps())
    }

    /// Locates the guest instruction of a fault in compiled code, where the interpreter resumes.
    fn fault(&mut self, host: usize) -> (BlockId, usize) {
        let compiler = self.code.compiler.as_ref().expect("compiled code has a compiler");
        let site = compiler.site(host);
        site.complete(self.cpu, self.cache);
        if self.code.level == InstrumentationLevel::Off {
            // At level Off, compiled code does not count instructions, but the interpreter counts those of the whole
            // block.
            *self.cpu.instructions() += self.cache.block(site.block).instructions.len() as u64;
        }
        self.code.faults += 1;
        self.code.must_discard |= self.cache.fault(site.block);
        if self.code.must_discard && self.code.faults >= FAULTS {
            // Other code still goes on with that of the blocks that fault.
            self.stale = true;
        }
        (site.block, site.index as usize)
    }

    /// Runs the compiled code of a block, and compiles it if necessary. None if it cannot be compiled.
    fn execute(&mut self, id: BlockId) -> Option<Exit> {
        if self.stale {
            return Some(Exit::At(UNWIND));
        }
        if self.cache.block(id).code().is_null() {
            if self.observer.must_report(self.cache.block(id)) {
                self.cache.exclude_from_compilation(id);
                return None;
            }
            if self.code.level == InstrumentationLevel::Unfiltered {
                self.observer.define_blocks(self.cache);
            }
            let observer = &*self.observer;
            let must_report = |block: &DecodedBlock<G>| observer.must_report(block);
            let first_instruction = |id| observer.first_instruction(id);
            let is_limited = observer.instruction_limit() != u64::MAX;
            let compiler = self.code.compiler(self.shared.memory, observer.hit_filter(), is_limited)?;
            compiler.compile(id, self.shared.compile_threshold, &must_report, &first_instruction, self.cache);
            self.observer.compiled(self.cache);
        }
        let code = self.cache.block(id).code();
        if code.is_null() {
            return None;
        }
        self.code.compiler.as_mut()?.prepare(self.cache.block(id), self.cpu);
        if self.depth > 0 && jit::is_stack_full(self.cpu.host_side()) {
            return Some(Exit::At(UNWIND));
        }
        let limit = self.observer.instruction_limit().saturating_sub(MAX_BLOCK_INSTRUCTIONS as u64);
        self.cpu.host().set_instruction_limit(limit);
        let callbacks = Callbacks {
            flush_records: flush_records::<G, O>,
            interpret_until: interpret_until::<G, O>,
            context: (&raw mut *self).cast(),
            memory: self.shared.memory,
        };
        // SAFETY: both functions take this runner, which is suspended while compiled code runs.
        unsafe { self.cpu.host().set_callbacks(callbacks) };
        self.flush_filtered();
        self.depth += 1;
        jit::set_compiled(true);
        // SAFETY: the compiler made the code for this address space, and `host` is set. Compiled code calls back only
        // by `interpret_until`, while this call is suspended.
        let left = unsafe { jit::enter(self.cpu, code, self.depth == 1) };
        jit::set_compiled(false);
        self.depth -= 1;
        Some(left)
    }

    /// Discards code that is out of date, and switches to the requested level and the observer's session. No compiled code may be active.
    pub(super) fn update_code(&mut self) {
        let generation = self.shared.memory.code_generation();
        if generation != self.code_generation || self.stale {
            (self.code_generation, self.stale) = (generation, false);
            self.update_boundaries();
            self.forget();
            self.steps = None;
            if let Some((cache, code)) = &mut self.other_level {
                forget(cache, code);
            }
        }
        if let Some(level) = self.new_level.take() {
            self.report_all();
            let session = self.observer.session();
            if (level, session) != (self.code.level, self.code.session) {
                self.observer.leaves_level(self.cache);
                let is_kept =
                    |(_, code): &(_, CodeExecution<G>)| (code.level, code.session) == (level, session);
                let (cache, code) = self.other_level.take().filter(is_kept).unwrap_or_else(|| {
                    (self.cache.for_thread(), CodeExecution::new(level, session, &self.shared))
                });
                let cache = std::mem::replace(self.cache, cache);
                self.other_level = Some((cache, std::mem::replace(&mut self.code, code)));
                let hit_filter =
                    self.observer.hit_filter().filter(|_| level == InstrumentationLevel::Unfiltered);
                if let Some(records) = &mut self.records {
                    records.lend(hit_filter.cloned(), self.cpu);
                }
                if self.update_boundaries() {
                    self.forget();
                }
                self.observer.enters_level(self.cache);
                // The session's state may have changed for all threads.
                self.shared.kernel.lock().notify_others(self.thread);
            }
            self.observer.resumed(self.shared.memory);
        }
    }

    /// Discards the blocks and the code of the present level.
    fn forget(&mut self) {
        self.observer.discarding(self.cache);
        forget(self.cache, &mut self.code);
    }

    /// Compiled code that filters accesses continues: flush the records so that all earlier events have been
    /// reported.
    fn flush_filtered(&mut self) {
        if self.code.level == InstrumentationLevel::Unfiltered {
            self.flush_records();
        }
    }

    /// Reports everything executed so far to the observer.
    pub(super) fn report_all(&mut self) {
        self.flush_records();
        if self.code.level == InstrumentationLevel::Unfiltered {
            self.observer.collect_counts(self.cache);
        }
    }

    /// Makes blocks begin at the observer's boundaries. True if there are new ones.
    pub(super) fn update_boundaries(&mut self) -> bool {
        let block_boundaries = self.observer.block_boundaries();
        if let Some((cache, _)) = &mut self.other_level {
            cache.break_at(block_boundaries);
        }
        self.cache.break_at(block_boundaries)
    }
}

/// Discards blocks and code after memory has changed, or if other blocks must be reported to the observer.
fn forget<G: Platform>(cache: &mut BlockCache<G>, code: &mut CodeExecution<G>) {
    cache.invalidate();
    (code.faults, code.must_discard) = (0, false);
    if let Some(compiler) = &mut code.compiler {
        compiler.clear();
    }
}

/// Bytes of the instruction that makes a system call, in all guests.
const SYSTEM_CALL_BYTES: u64 = 4;

/// The thread that runs on a processor whose compiled code calls back.
fn thread_of<'a, G: Platform, O: Observer<G>>(cpu: *mut c_void) -> *mut GuestThread<'a, 'a, 'a, G, O> {
    // SAFETY: compiled code passes the processor with which it was entered.
    unsafe { &*cpu.cast::<G>() }.host_side().context().cast()
}

/// Called by compiled code when the record buffer is full.
extern "C" fn flush_records<G: Platform, O: Observer<G>>(cpu: *mut c_void) {
    // SAFETY: as for `interpret_until`.
    let runner = unsafe { &mut *thread_of::<G, O>(cpu) };
    runner.flush_records();
}

/// Called by compiled code to have the interpreter run from one address until control reaches another. Returns the
/// address at which to continue. If the lowest bit of `until` is set, the first instruction is a system call.
extern "C" fn interpret_until<G: Platform, O: Observer<G>>(cpu: *mut c_void, from: u64, until: u64) -> u64 {
    // SAFETY: `execute` set the runner before it entered the calling code, and is suspended meanwhile.
    let runner = unsafe { &mut *thread_of::<G, O>(cpu) };
    let (until, is_system_call) = (until & !1, until & 1 != 0);
    runner.cpu.set_pc(from);
    jit::set_compiled(false);
    if is_system_call {
        runner.cpu.set_pc(from + SYSTEM_CALL_BYTES);
        runner.stop(Stop::SystemCall);
        if runner.must_unwind() {
            jit::set_compiled(true);
            return UNWIND;
        }
    }
    // Signals that the call raised, and attach requests, are handled before the next instruction.
    let is_quiet = !host::pending() && !host::has_attach_request() && !runner.observer.is_level_due();
    let next = if is_system_call && runner.cpu.pc() == until && is_quiet {
        until
    } else if jit::is_stack_full(runner.cpu.host_side()) {
        UNWIND
    } else {
        runner.go(until)
    };
    runner.flush_filtered();
    if runner.cpu.host_side().must_leave() {
        jit::watch(runner.cpu.host());
    }
    jit::set_compiled(true);
    next
}
