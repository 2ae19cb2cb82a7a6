//! The reference engine: executes block after block until something needs the operating system.

use events::BlockId;
use events::record::Event;
use isa::Flags;
use memory::Memory;

use crate::block::BlockCache;
use crate::cpu::{Cpu, Exception};
use crate::observer::{InstrumentationLevel, Observer};
use crate::records;
use crate::semantics::{Break, execute};

/// Why the program stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A system call; `pc` is behind it.
    SystemCall,
    /// `pc` is the instruction that did not complete; behind it for [`Exception::Arithmetic`],
    /// [`Exception::Breakpoint`], [`Exception::Bugcheck`] and [`Exception::Gentrap`].
    Exception(Exception),
    /// Instructions in memory may have changed; `pc` is behind the barrier.
    InstructionBarrier,
    /// Something asked for attention, a signal for one; `pc` is the next instruction.
    Signal,
}

/// Why the interpreter returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The operating system's kernel must act.
    Stop(Stop),
    /// `pc` is where the caller wants control back.
    Reached,
    /// There is no room for the next block's record.
    Full,
    /// The debugger wants the program to stop at `pc`.
    Held,
    /// The observer requests this level of instrumentation from the block at `pc` on.
    ChangeLevel(InstrumentationLevel),
    /// `pc` is at a block that has compiled code, or that ran so often that it is time to compile it.
    Code(BlockId),
}

/// When the interpreter returns to its caller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The address at which the caller wants control back. Odd for never.
    pub until: u64,
    /// Executions of a block after which it is to be compiled; 0 for never.
    pub hot: u32,
    /// The first block is executed here even if it has code.
    pub interpret_first: bool,
    /// The present level of instrumentation.
    pub level: InstrumentationLevel,
    /// The observer was already asked for the level of the first block.
    pub is_level_checked: bool,
    /// The block, and the instruction in it, at which `pc` is: it was entered before.
    pub resume: Option<(BlockId, usize)>,
}

impl Default for Limits {
    fn default() -> Limits {
        let level = InstrumentationLevel::Blocks;
        Limits { until: 1, hot: 0, interpret_first: false, level, is_level_checked: false, resume: None }
    }
}

/// Runs from `cpu.pc` on. `interrupted` is asked between blocks.
pub fn run<O: Observer>(
    cpu: &mut Cpu,
    memory: &Memory,
    cache: &mut BlockCache,
    limits: Limits,
    observer: &mut O,
    interrupted: impl Fn() -> bool,
) -> Next {
    let model = cache.model();
    let has_records = O::LEVEL.has_records() && (!O::CHANGES_LEVEL || limits.level.has_records());
    let has_values = O::LEVEL == InstrumentationLevel::Values
        && (!O::CHANGES_LEVEL || limits.level == InstrumentationLevel::Values);
    let (mut interpret, mut is_level_checked) = (limits.interpret_first, limits.is_level_checked);
    let mut resume = limits.resume;
    let mut id = match resume.map_or_else(|| cache.find(cpu.pc, memory), |(id, _)| Ok(id)) {
        Ok(id) => id,
        Err(exception) => return Next::Stop(Stop::Exception(exception)),
    };
    loop {
        let mut first = 0;
        match resume.take() {
            Some((_, index)) => first = index,
            None => {
                if observer.debugger().is_some_and(|debugger| debugger.holds(cpu.pc)) {
                    return Next::Held;
                }
                if interrupted() {
                    return Next::Stop(Stop::Signal);
                }
                if O::CHANGES_LEVEL
                    && !is_level_checked
                    && let Some(level) = observer.level(cache.block(id), cpu, memory)
                {
                    return Next::ChangeLevel(level);
                }
                if limits.hot > 0 && cache.warm(id, limits.hot) && !interpret {
                    return Next::Code(id);
                }
                (interpret, is_level_checked) = (false, false);
                if has_records {
                    if records::is_full(cpu) {
                        return Next::Full;
                    }
                    // SAFETY: the buffer is not full.
                    unsafe { records::write(cpu, 0, Event::Block(id)) };
                }
                observer.enter(id, cache, cpu, memory);
                cpu.instructions += cache.block(id).steps.len() as u64;
            }
        }
        let block = cache.block(id);
        cpu.pc = block.end();
        let mut left = None;
        let mut accesses = match has_records {
            true => block.steps[..first].iter().filter(|step| step.is_access()).count(),
            false => 0,
        };
        let mut values = 0;
        for (step, index) in block.steps[first..].iter().zip(first..) {
            if has_records && step.is_access() {
                accesses += 1;
                let address = step.address(cpu.r[usize::from(step.b)]);
                // SAFETY: the block has so many, and its record was begun.
                unsafe { records::write(cpu, accesses, Event::Access(address)) };
            }
            let register = if has_values { block.values().register(index) } else { None };
            // A locked store writes to the register that it stores.
            let stored =
                register.filter(|_| step.op.is(Flags::STORE)).map(|register| records::value(cpu, register));
            let outcome = execute(step, cpu, memory, model);
            if let Some(register) = register {
                let value = stored.unwrap_or_else(|| records::value(cpu, register));
                // SAFETY: the block has so many, and its record was begun.
                unsafe { records::write_value(cpu, block, values, value) };
                values += 1;
            }
            if let Err(reason) = outcome {
                left = Some((index, reason));
                break;
            }
        }
        if has_records && left.is_none() {
            // SAFETY: every access was written above, or before a fault.
            unsafe { records::end(cpu, block, has_values) };
        }
        if let Some((index, reason)) = left {
            let stop = leave(id, index, reason, cpu, cache, observer, limits.level);
            return Next::Stop(stop);
        }
        if cpu.pc == limits.until {
            return Next::Reached;
        }
        id = match cache.follow(id, cpu.pc, memory) {
            Ok(next) => next,
            Err(exception) => return Next::Stop(Stop::Exception(exception)),
        };
    }
}

/// Settles `pc` and the counts after the instruction at `index` ended the block early.
#[cold]
fn leave<O: Observer>(
    id: BlockId,
    index: usize,
    reason: Break,
    cpu: &mut Cpu,
    cache: &mut BlockCache,
    observer: &mut O,
    level: InstrumentationLevel,
) -> Stop {
    let block = cache.block(id);
    let (address, length) = (block.address, block.steps.len());
    let (stop, completed) = match reason {
        Break::SystemCall => (Stop::SystemCall, true),
        Break::InstructionBarrier => (Stop::InstructionBarrier, true),
        Break::Exception(exception) => {
            let completed = !matches!(
                exception,
                Exception::Memory(_) | Exception::Unaligned(_) | Exception::IllegalInstruction
            );
            (Stop::Exception(exception), completed)
        }
    };
    let executed = index + usize::from(completed);
    cpu.pc = address + 4 * executed as u64;
    let mut ran = Some(id);
    if executed < length {
        cpu.instructions -= (length - executed) as u64;
        ran = (executed > 0).then(|| cache.prefix(id, executed));
        observer.truncated(id, ran.map(|prefix| (prefix, cache.block(prefix))));
    }
    if let Some(ran) = ran.filter(|_| level.has_records()) {
        let has_values = level == InstrumentationLevel::Values;
        // SAFETY: the record of the whole block, or of its beginning, has been written.
        unsafe {
            records::write(cpu, 0, Event::Block(ran));
            if has_values && ran != id {
                records::cut_values(cpu, cache.block(id), cache.block(ran));
            }
            records::end(cpu, cache.block(ran), has_values);
        }
    }
    stop
}
