//! How a thread executes code: interpreted, or compiled once it is hot; and when the code must be forgotten.

use events::{BlockId, HitFilter};

use super::{GuestThread, Shared};
use alpha::block::{Block, BlockCache, LONGEST};
use alpha::cpu::Cpu;
use alpha::interpreter::{self, Limits, Next, Stop};
use alpha::observer::{InstrumentationLevel, Observer};
use jit::{Compiler, Exit, UNWIND};
use memory::Memory;

/// How the blocks in a cache are executed.
pub(super) struct Code {
    /// Of what the observer hears.
    level: InstrumentationLevel,
    /// Executions of a block after which it is compiled; 0 for never.
    hot: u32,
    /// Made for the first block that is.
    compiler: Option<Compiler>,
}

impl Code {
    pub(super) fn new(level: InstrumentationLevel, shared: &Shared) -> Code {
        let is_compilable = match level {
            // A clock that counts instructions needs all of them counted.
            InstrumentationLevel::Off => !shared.is_clock_virtual,
            InstrumentationLevel::Instructions
            | InstrumentationLevel::Limited
            | InstrumentationLevel::Counts
            | InstrumentationLevel::Accesses
            | InstrumentationLevel::Unfiltered => true,
            InstrumentationLevel::Blocks | InstrumentationLevel::Values => false,
        };
        Code { level, hot: if is_compilable { shared.hot } else { 0 }, compiler: None }
    }

    /// The compiler, if there can be one.
    fn compiler(&mut self, memory: &Memory, hit_filter: Option<&HitFilter>) -> Option<&mut Compiler> {
        if self.compiler.is_none() && self.hot > 0 {
            self.compiler = Compiler::new(memory, self.level, hit_filter);
            if self.compiler.is_none() {
                self.hot = 0;
            }
        }
        self.compiler.as_mut()
    }
}

impl<'scope, O: Observer + 'scope> GuestThread<'_, 'scope, '_, O> {
    /// Runs until control reaches `until`, and returns that; or [`UNWIND`] if no compiled code may go
    /// on that waits for it.
    pub(super) fn go(&mut self, until: u64) -> u64 {
        let (mut interpret_first, mut resume) = (false, None);
        loop {
            // After a fault of compiled code its block is executed to the end.
            let steps = self.is_stepped() && resume.is_none();
            let (hot, level) = (if steps { 0 } else { self.code.hot }, self.code.level);
            let is_level_checked = std::mem::take(&mut self.is_level_checked);
            let limits = Limits { until, hot, interpret_first, level, is_level_checked, resume };
            let memory = self.shared.memory;
            let cache = match steps {
                true => self.steps.get_or_insert_with(|| self.cache.for_steps()),
                false => &mut *self.cache,
            };
            let next = interpreter::run(self.cpu, memory, cache, limits, self.observer, host::pending);
            (interpret_first, resume) = (false, None);
            self.stale |= self.observer.requires_recompilation();
            match next {
                Next::Reached => {}
                Next::Held => self.with_debugger(|debugger, cpu| debugger.stop(cpu)),
                Next::Code(id) => {
                    let from = self.cpu.pc;
                    match self.execute(id) {
                        Some(Exit::At(UNWIND)) => return UNWIND,
                        // What compiled code leaves at once is the interpreter's.
                        Some(Exit::At(next)) => (self.cpu.pc, interpret_first) = (next, next == from),
                        Some(Exit::Fault(host)) => resume = Some(self.fault(host)),
                        // The observer was asked of the block already.
                        None => (interpret_first, self.is_level_checked) = (true, true),
                    }
                }
                Next::Full => self.flush_records(),
                Next::ChangeLevel(level) => (self.new_level, self.is_level_checked) = (Some(level), true),
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

    /// Whether no compiled code may go on that waits for this runner.
    fn must_unwind(&mut self) -> bool {
        self.ended.is_some()
            || self.stale
            || self.new_level.is_some()
            || self.depth > 0 && self.is_stepped()
            || self.shared.memory.code_generation() != self.code_generation
    }

    /// Whether a debugger wants to hear of each instruction.
    fn is_stepped(&mut self) -> bool {
        self.observer.debugger().is_some_and(|debugger| debugger.steps())
    }

    /// Where the interpreter takes over after a fault of compiled code.
    fn fault(&mut self, host: usize) -> (BlockId, usize) {
        let compiler = self.code.compiler.as_ref().expect("compiled code has a compiler");
        let site = compiler.site(host);
        site.complete(self.cpu, self.cache);
        if self.code.level == InstrumentationLevel::Off {
            // What does not count compiled code counts what the interpreter goes on with.
            self.cpu.instructions += self.cache.block(site.block).steps.len() as u64;
        }
        (site.block, site.index as usize)
    }

    /// Runs the compiled code of a block, made now if there is none. None if there can be none.
    fn execute(&mut self, id: BlockId) -> Option<Exit> {
        if self.stale {
            return Some(Exit::At(UNWIND));
        }
        if self.cache.block(id).code().is_null() {
            if self.observer.must_report(self.cache.block(id)) {
                self.cache.freeze(id);
                return None;
            }
            if self.code.level == InstrumentationLevel::Unfiltered {
                self.observer.define_blocks(self.cache);
            }
            let observer = &*self.observer;
            let must_report = |block: &Block| observer.must_report(block);
            let first_instruction = |id| observer.first_instruction(id);
            let compiler = self.code.compiler(self.shared.memory, observer.hit_filter())?;
            compiler.compile(id, self.shared.hot, &must_report, &first_instruction, self.cache);
        }
        let code = self.cache.block(id).code();
        if code.is_null() {
            return None;
        }
        self.code.compiler.as_mut()?.prepare(self.cache.block(id), self.cpu);
        if self.depth > 0 && jit::is_stack_full(self.cpu) {
            return Some(Exit::At(UNWIND));
        }
        let host = &mut self.cpu.host;
        host.instruction_limit = self.observer.instruction_limit().saturating_sub(LONGEST as u64);
        (host.memory, host.model) = (self.shared.memory, self.cache.model());
        host.go_on = Some(go_on::<O>);
        host.flush_records = Some(flush_records::<O>);
        self.cpu.host.runner = (&raw mut *self).cast();
        self.flush_filtered();
        self.depth += 1;
        // SAFETY: the compiler made the code for this address space, and `host` is set. Compiled code comes
        // back to this runner by `go_on` only, while this call waits.
        let left = unsafe { jit::enter(self.cpu, code, self.depth == 1) };
        self.depth -= 1;
        Some(left)
    }

    /// Forgets the code that is not what memory holds now. No compiled code is at work.
    pub(super) fn update_code(&mut self) {
        let generation = self.shared.memory.code_generation();
        if generation != self.code_generation || self.stale {
            (self.code_generation, self.stale) = (generation, false);
            self.update_boundaries();
            forget(self.cache, &mut self.code);
            self.steps = None;
            if let Some((cache, code)) = &mut self.other_level {
                forget(cache, code);
            }
        }
        if let Some(level) = self.new_level.take() {
            self.report_all();
            if level != self.code.level {
                let kept = self.other_level.take().filter(|(_, code)| code.level == level);
                let (cache, code) =
                    kept.unwrap_or_else(|| (self.cache.for_thread(), Code::new(level, &self.shared)));
                let cache = std::mem::replace(self.cache, cache);
                self.other_level = Some((cache, std::mem::replace(&mut self.code, code)));
                let hit_filter =
                    self.observer.hit_filter().filter(|_| level == InstrumentationLevel::Unfiltered);
                if let Some(records) = &mut self.records {
                    records.lend(hit_filter.cloned(), self.cpu);
                }
                if self.update_boundaries() {
                    forget(self.cache, &mut self.code);
                }
                // What one thread decided may be for all.
                self.shared.kernel.lock().notify_others(self.thread);
            }
            self.observer.resumed();
        }
    }

    /// Compiled code continues and filters accesses: everything before must have been reported.
    fn flush_filtered(&mut self) {
        if self.code.level == InstrumentationLevel::Unfiltered {
            self.flush_records();
        }
    }

    /// Tells the observer all that was executed.
    pub(super) fn report_all(&mut self) {
        self.flush_records();
        if self.code.level == InstrumentationLevel::Unfiltered {
            self.observer.collect_counts(self.cache);
        }
    }

    /// Has blocks begin where the observer wants; whether that is news.
    pub(super) fn update_boundaries(&mut self) -> bool {
        let block_boundaries = self.observer.block_boundaries();
        if let Some((cache, _)) = &mut self.other_level {
            cache.break_at(block_boundaries);
        }
        self.cache.break_at(block_boundaries)
    }
}

/// The code in memory has changed, or the observer wants to be told of other blocks.
fn forget(cache: &mut BlockCache, code: &mut Code) {
    cache.invalidate();
    if let Some(compiler) = &mut code.compiler {
        compiler.clear();
    }
}

/// What compiled code calls when there is no room for another record.
extern "C" fn flush_records<O: Observer>(cpu: *mut Cpu) {
    // SAFETY: as for `go_on`.
    let runner = unsafe { &mut *(*cpu).host.runner.cast::<GuestThread<'_, '_, '_, O>>() };
    runner.flush_records();
}

/// What compiled code calls where it does not go on itself: runs the program from one address until
/// another, and returns where it goes on. The other address's lowest bit says that the first instruction is
/// a system call.
extern "C" fn go_on<O: Observer>(cpu: *mut Cpu, from: u64, until: u64) -> u64 {
    // SAFETY: `execute` set the runner before it entered the code that calls, and waits meanwhile.
    let runner = unsafe { &mut *(*cpu).host.runner.cast::<GuestThread<'_, '_, '_, O>>() };
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
    let is_quiet = !host::pending() && !host::has_attach_request();
    let next = if is_system_call && runner.cpu.pc == until && is_quiet {
        until
    } else if jit::is_stack_full(runner.cpu) {
        UNWIND
    } else {
        runner.go(until)
    };
    runner.flush_filtered();
    if runner.cpu.host.stack_limit != runner.cpu.host.stack_end {
        jit::watch(runner.cpu);
    }
    next
}
