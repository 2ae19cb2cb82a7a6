//! The reference engine: executes block after block until something needs the operating system.

use events::record::Event;
use events::{BlockId, LoadedImage, Lookaside};
use isa::Flags;

use super::block::{Block, BlockCache};
use super::cpu::{Cpu, Exception};
use super::meaning::{Break, execute};
use super::records;
use crate::debug::Attached;
use memory::Memory;

/// What an observer wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Nothing.
    Nothing,
    /// How many instructions are executed; of single blocks only where [`Observer::wants`] says so.
    Instructions,
    /// The same, and of each block from shortly before that number is [`Observer::limit`].
    Limited,
    /// How often each block is executed; of single executions only where [`Observer::wants`] says so. What
    /// compiled code executes is told by [`BlockCache::executions`].
    Counts,
    /// Each execution of a block, before it.
    Blocks,
    /// Each execution of a block and each access to memory, after it: [`Observer::executed`].
    Accesses,
    /// The same, but of what compiled code finds usual ([`Observer::lookaside`]) only how often each block did it:
    /// [`Observer::counted`].
    Unusual,
    /// The values that instructions write, store and test, too.
    Values,
}

impl Interest {
    /// Whether records are written.
    #[inline(always)]
    pub(crate) fn has_records(self) -> bool {
        matches!(self, Interest::Accesses | Interest::Unusual | Interest::Values)
    }
}

/// Watches what is executed. Each method must not change what the program sees.
pub trait Observer: Send {
    /// Of what it wants to hear at most: the less, the faster the program runs.
    const INTEREST: Interest = Interest::Blocks;
    /// Whether it wants to hear of less at times: [`Observer::interest`].
    const TURNS: bool = false;
    /// Of what it wants to hear first.
    fn begins(&self) -> Interest {
        Self::INTEREST
    }
    /// Control is at the first instruction of a block. If it [`TURNS`](Observer::TURNS), of what the observer
    /// wants to hear from there on, if that is something else than before, or if it wants to be told what was
    /// executed so far. Asked before each execution of a block by the interpreter; twice, where control is
    /// taken from compiled code meanwhile.
    #[inline(always)]
    fn interest(&mut self, _: &Block, _: &Cpu, _: &Memory) -> Option<Interest> {
        None
    }
    /// With [`Interest::Limited`]: the number of instructions.
    fn limit(&self) -> u64 {
        u64::MAX
    }
    /// With [`Interest::Unusual`]: what is usual.
    fn lookaside(&self) -> Option<&Lookaside> {
        None
    }
    /// Control is at the first instruction of a block of the cache, which counts as executed.
    #[inline(always)]
    fn enter(&mut self, _id: BlockId, _: &BlockCache, _: &Cpu, _: &Memory) {}
    /// The block entered last was left early; `executed` (None for nothing) is the block of the
    /// instructions that did complete.
    #[inline(always)]
    fn cut(&mut self, _entered: BlockId, _executed: Option<(BlockId, &Block)>) {}
    /// The program makes a system call, by Alpha's number.
    fn system_call(&mut self, _number: u32) {}
    /// An image was mapped.
    fn mapped(&mut self, _: &LoadedImage) {}
    /// The observer of a thread that the one watched so far starts. Each thread has its own, and its
    /// own blocks.
    fn thread(&self) -> Self;
    /// The thread has ended, but not the program: what is not kept now is lost.
    fn ended(&mut self, _: &Cpu, _: &Memory, _: &BlockCache) {}
    /// With [`Interest::Accesses`], [`Interest::Unusual`] and [`Interest::Values`]: what was executed since the last
    /// call, as [`events::record`] says.
    fn executed(&mut self, _records: &[u64], _: &BlockCache) {}
    /// With [`Interest::Unusual`]: compiled code may tell of the cache's blocks from now on.
    fn learn(&mut self, _: &BlockCache) {}
    /// The number by which it wants to be told of a block's first instruction.
    fn first_instruction(&self, _: BlockId) -> u32 {
        0
    }
    /// With [`Interest::Unusual`]: what else was executed since the last call is to be taken from the cache, before
    /// the observer turns or the thread starts another one or ends.
    fn counted(&mut self, _: &BlockCache) {}
    /// Control went elsewhere than the last instruction says: a signal's handler begins or ends, or another
    /// program does.
    fn diverted(&mut self) {}
    /// Another program takes the place of this one; its images are told next.
    fn replaced(&mut self) {}
    /// All that was executed has been told; what comes now is after all that other threads did so far.
    fn goes_on(&mut self) {}
    /// Whether each execution of the block must be told, and be it compiled code's.
    fn wants(&self, _: &Block) -> bool {
        false
    }
    /// Addresses at which blocks must begin, so that the observer hears of them; looked at when images were
    /// mapped.
    fn breaks(&self) -> &[u64] {
        &[]
    }
    /// Whether [`Observer::wants`] is true for more blocks than before.
    fn wants_more(&mut self) -> bool {
        false
    }
    /// The process is a copy of the one watched so far, made by fork. Of what other threads' observers
    /// share with this one, nobody will ever unlock what was locked.
    fn forked(&mut self) {}
    /// The debugger's hold on the thread, if it has one.
    #[inline(always)]
    fn debugger(&mut self) -> Option<&mut Attached> {
        None
    }
}

/// Watches nothing, at no cost.
impl Observer for () {
    const INTEREST: Interest = Interest::Nothing;

    fn thread(&self) {}
}

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

/// What comes after the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The operating system has something to do.
    Stop(Stop),
    /// `pc` is where the caller wants control back.
    Reached,
    /// There is no room for the next block's record.
    Full,
    /// The debugger wants the program to stop at `pc`.
    Held,
    /// The observer wants to hear of more, or of less, from the block at `pc` on.
    Turn(Interest),
    /// `pc` is at a block that has compiled code, or that ran so often that it is time to compile it.
    Code(BlockId),
}

/// Where, and when, the interpreter hands over.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The address at which the caller wants control back. Odd for never.
    pub until: u64,
    /// Executions of a block after which it is to be compiled; 0 for never.
    pub hot: u32,
    /// The first block is executed here even if it has code.
    pub interpret_first: bool,
    /// Of what the observer wants to hear, as it said last.
    pub interest: Interest,
    /// It said so of the first block.
    pub is_asked: bool,
    /// The block, and the instruction in it, at which `pc` is: it was entered before.
    pub resume: Option<(BlockId, usize)>,
}

impl Default for Limits {
    fn default() -> Limits {
        let interest = Interest::Blocks;
        Limits { until: 1, hot: 0, interpret_first: false, interest, is_asked: false, resume: None }
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
    let has_records = O::INTEREST.has_records() && (!O::TURNS || limits.interest.has_records());
    let has_values = O::INTEREST == Interest::Values && (!O::TURNS || limits.interest == Interest::Values);
    let (mut interpret, mut is_asked) = (limits.interpret_first, limits.is_asked);
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
                if O::TURNS
                    && !is_asked
                    && let Some(interest) = observer.interest(cache.block(id), cpu, memory)
                {
                    return Next::Turn(interest);
                }
                if limits.hot > 0 && cache.warm(id, limits.hot) && !interpret {
                    return Next::Code(id);
                }
                (interpret, is_asked) = (false, false);
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
            let stop = leave(id, index, reason, cpu, cache, observer, limits.interest);
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
    interest: Interest,
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
        observer.cut(id, ran.map(|prefix| (prefix, cache.block(prefix))));
    }
    if let Some(ran) = ran.filter(|_| interest.has_records()) {
        let has_values = interest == Interest::Values;
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
