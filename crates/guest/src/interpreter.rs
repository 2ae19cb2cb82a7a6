//! The interpreter's loop: executes block after block until something needs the operating system.

use events::BlockId;
use events::record::Event;
use guest_memory::Memory;

use crate::block::BlockCache;
use crate::guest::{Break, Guest, InstructionProperties};
use crate::instrumentation::InstrumentationLevel;
use crate::observer::Observer;
use crate::records;

/// Why the program stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// A system call; `pc` is behind it.
    SystemCall,
    /// An exception. `pc` is the instruction, or behind it if that counts as executed ([`Guest::is_completed`]).
    Exception(E),
    /// Instructions in memory may have changed; `pc` is behind the barrier.
    InstructionBarrier,
    /// A signal or another thread interrupted the program; `pc` is the next instruction.
    Signal,
}

/// Why the interpreter returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterpreterExit<E> {
    /// The operating system's kernel must act.
    Stop(Stop<E>),
    /// `pc` is [`Limits::until`].
    Reached,
    /// There is no room for the next block's record.
    Full,
    /// The debugger wants the program to stop at `pc`.
    Held,
    /// The observer requests this level of instrumentation from the block at `pc` on.
    ChangeLevel(InstrumentationLevel),
    /// `pc` is at a block that has compiled code, or that was executed often enough to be compiled.
    Code(BlockId),
}

/// When the interpreter returns to its caller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The address at which the interpreter returns. Odd for none.
    pub until: u64,
    /// The number of executions after which a block is compiled; 0 for never.
    pub compile_threshold: u32,
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
        Limits {
            until: 1,
            compile_threshold: 0,
            interpret_first: false,
            level,
            is_level_checked: false,
            resume: None,
        }
    }
}

/// Runs from `guest.pc()` on. `interrupted` is asked between blocks.
pub fn run<G: Guest, O: Observer<G>>(
    guest: &mut G,
    memory: &Memory,
    cache: &mut BlockCache<G>,
    limits: Limits,
    observer: &mut O,
    interrupted: impl Fn() -> bool,
) -> InterpreterExit<G::Exception> {
    let has_records = O::LEVEL.has_records() && (!O::CHANGES_LEVEL || limits.level.has_records());
    let has_values = O::LEVEL == InstrumentationLevel::Values
        && (!O::CHANGES_LEVEL || limits.level == InstrumentationLevel::Values);
    let (mut interpret, mut is_level_checked) = (limits.interpret_first, limits.is_level_checked);
    let mut resume = limits.resume;
    let mut id = match resume.map_or_else(|| cache.find(guest.pc(), memory), |(id, _)| Ok(id)) {
        Ok(id) => id,
        Err(exception) => return InterpreterExit::Stop(Stop::Exception(exception)),
    };
    loop {
        let mut first = 0;
        match resume.take() {
            Some((_, index)) => first = index,
            None => {
                if observer.debugger().is_some_and(|debugger| debugger.holds(guest.pc())) {
                    return InterpreterExit::Held;
                }
                if interrupted() {
                    return InterpreterExit::Stop(Stop::Signal);
                }
                if O::CHANGES_LEVEL
                    && !is_level_checked
                    && let Some(level) = observer.level(cache.block(id), guest, memory)
                {
                    return InterpreterExit::ChangeLevel(level);
                }
                if limits.compile_threshold > 0
                    && cache.count_execution(id, limits.compile_threshold)
                    && !interpret
                {
                    return InterpreterExit::Code(id);
                }
                (interpret, is_level_checked) = (false, false);
                if has_records {
                    if records::is_full(guest) {
                        return InterpreterExit::Full;
                    }
                    // SAFETY: the buffer is not full.
                    unsafe { records::write(guest, 0, Event::Block(id)) };
                }
                observer.enter(id, cache, guest, memory);
                *guest.instructions() += cache.block(id).instructions.len() as u64;
            }
        }
        let block = cache.block(id);
        guest.set_pc(block.end());
        let mut left = None;
        let mut accesses = match has_records {
            true => block.instructions[..first].iter().filter(|step| step.is_access()).count(),
            false => 0,
        };
        let mut values = 0;
        for (step, index) in block.instructions[first..].iter().zip(first..) {
            if has_records && step.is_access() {
                accesses += 1;
                let address = step.address(guest);
                // SAFETY: the block has this number of accesses, and its record was begun.
                unsafe { records::write(guest, accesses, Event::Access(address)) };
            }
            let register = if has_values { block.values().register(index) } else { None };
            // A locked store writes to the register that it stores.
            let stored = register.filter(|_| step.is_store()).map(|register| guest.value(register));
            let outcome = guest.execute(step, memory);
            if let Some(register) = register {
                let value = stored.unwrap_or_else(|| guest.value(register));
                // SAFETY: the block has a value of this number, and its record was begun.
                unsafe { records::write_value(guest, block, values, value) };
                values += 1;
            }
            if let Err(reason) = outcome {
                left = Some((index, reason));
                break;
            }
        }
        if has_records && left.is_none() {
            // SAFETY: every access was written above, or before a fault.
            unsafe { records::end(guest, block, has_values) };
        }
        if let Some((index, reason)) = left {
            let stop = leave(id, index, reason, guest, cache, observer, limits.level);
            return InterpreterExit::Stop(stop);
        }
        if guest.pc() == limits.until {
            return InterpreterExit::Reached;
        }
        id = match cache.follow(id, guest.pc(), memory) {
            Ok(next) => next,
            Err(exception) => return InterpreterExit::Stop(Stop::Exception(exception)),
        };
    }
}

/// Corrects `pc` and the counts after the instruction at `index` ended the block early.
#[cold]
fn leave<G: Guest, O: Observer<G>>(
    id: BlockId,
    index: usize,
    reason: Break<G::Exception>,
    guest: &mut G,
    cache: &mut BlockCache<G>,
    observer: &mut O,
    level: InstrumentationLevel,
) -> Stop<G::Exception> {
    let block = cache.block(id);
    let length = block.instructions.len();
    let (stop, completed) = match reason {
        Break::SystemCall => (Stop::SystemCall, true),
        Break::InstructionBarrier => (Stop::InstructionBarrier, true),
        Break::Exception(exception) => (Stop::Exception(exception), G::is_completed(exception)),
    };
    let executed = index + usize::from(completed);
    guest.set_pc(block.address_of(executed));
    let mut ran = Some(id);
    if executed < length {
        *guest.instructions() -= (length - executed) as u64;
        ran = (executed > 0).then(|| cache.prefix(id, executed));
        observer.truncated(id, ran.map(|prefix| (prefix, cache.block(prefix))));
    }
    if let Some(ran) = ran.filter(|_| level.has_records()) {
        let has_values = level == InstrumentationLevel::Values;
        // SAFETY: the record of the whole block, or of its beginning, has been written.
        unsafe {
            records::write(guest, 0, Event::Block(ran));
            if has_values && ran != id {
                records::move_values(guest, cache.block(id), cache.block(ran));
            }
            records::end(guest, cache.block(ran), has_values);
        }
    }
    stop
}
