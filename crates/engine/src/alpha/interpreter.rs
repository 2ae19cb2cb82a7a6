//! The reference engine: executes block after block until something needs the operating system.

use trace::{BlockId, LoadedImage};

use super::block::{Block, BlockCache};
use super::compiler::{self, Compiler, Left};
use super::cpu::{Cpu, Exception};
use super::meaning::{Break, execute};
use crate::memory::Memory;

/// Watches what is executed. Each method must not change what the program sees.
pub trait Observer {
    /// False if it hears of nothing, so that blocks may run unannounced.
    const WATCHES: bool = true;
    /// Control is at the first instruction of a block, which counts as executed.
    fn enter(&mut self, id: BlockId, block: &Block, cpu: &Cpu, memory: &Memory);
    /// The block entered last was left early; `executed` (None for nothing) is the block of the
    /// instructions that did complete.
    fn cut(&mut self, entered: BlockId, executed: Option<(BlockId, &Block)>);
    /// The program makes a system call, by Alpha's number.
    fn system_call(&mut self, number: u32);
    /// An image was mapped.
    fn mapped(&mut self, image: &LoadedImage);
}

/// Watches nothing, at no cost.
impl Observer for () {
    const WATCHES: bool = false;
    #[inline(always)]
    fn enter(&mut self, _: BlockId, _: &Block, _: &Cpu, _: &Memory) {}
    #[inline(always)]
    fn cut(&mut self, _: BlockId, _: Option<(BlockId, &Block)>) {}
    fn system_call(&mut self, _: u32) {}
    fn mapped(&mut self, _: &LoadedImage) {}
}

/// Why the interpreter returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A system call; `pc` is behind it.
    SystemCall,
    /// `pc` is the instruction that did not complete; behind it for [`Exception::Arithmetic`],
    /// [`Exception::Breakpoint`], [`Exception::Bugcheck`] and [`Exception::Gentrap`].
    Exception(Exception),
    /// Instructions in memory may have changed; `pc` is behind the barrier.
    InstructionBarrier,
    /// An asynchronous signal waits; `pc` is the next instruction.
    Signal,
}

/// Runs from `cpu.pc` on. `interrupted` is asked between blocks. What runs often is compiled if there is
/// a compiler, which only an observer that watches nothing may have.
pub fn run<O: Observer>(
    cpu: &mut Cpu,
    memory: &Memory,
    cache: &mut BlockCache,
    compiler: &mut Option<Compiler>,
    observer: &mut O,
    interrupted: impl Fn() -> bool,
) -> Stop {
    let model = cache.model();
    (cpu.host.memory, cpu.host.model) = (memory, model);
    let mut id = match cache.find(cpu.pc, memory) {
        Ok(id) => id,
        Err(exception) => return Stop::Exception(exception),
    };
    loop {
        if interrupted() {
            return Stop::Signal;
        }
        if let Some(compiler) = compiler
            && compiled(id, cpu, cache, compiler)
        {
            let from = cache.block(id).address;
            id = match cache.find(cpu.pc, memory) {
                Ok(next) => next,
                Err(exception) => return Stop::Exception(exception),
            };
            // What compiled code leaves at once is the interpreter's.
            if cpu.pc != from && !cpu.host.faulted {
                continue;
            }
        }
        let block = cache.block(id);
        observer.enter(id, block, cpu, memory);
        cpu.instructions += block.steps.len() as u64;
        cpu.pc = block.end();
        let mut left = None;
        for (index, step) in block.steps.iter().enumerate() {
            if let Err(reason) = execute(step, cpu, memory, model) {
                left = Some((index, reason));
                break;
            }
        }
        if let Some((index, reason)) = left {
            return leave(id, index, reason, cpu, cache, observer);
        }
        id = match cache.follow(id, cpu.pc, memory) {
            Ok(next) => next,
            Err(exception) => return Stop::Exception(exception),
        };
    }
}

/// Runs compiled code that begins with the block, if there is some or it is time to compile it. After
/// that the interpreter must execute at least a block: what code leaves to it is there.
#[inline(always)]
fn compiled(id: BlockId, cpu: &mut Cpu, cache: &mut BlockCache, compiler: &mut Compiler) -> bool {
    let mut code = cache.block(id).code;
    if code.is_null() {
        if cache.warm(id) != compiler::THRESHOLD {
            return false;
        }
        compiler.compile(id, cache);
        code = cache.block(id).code;
        if code.is_null() {
            return false;
        }
    }
    // SAFETY: the compiler made the code for this address space.
    let left = unsafe { compiler::enter(cpu, code) };
    cpu.host.faulted = matches!(left, Left::Fault(_));
    cpu.pc = match left {
        Left::At(next) => next,
        Left::Fault(host) => compiler.site(host).expect("every access of compiled code is a known site"),
    };
    true
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
    if executed < length {
        cpu.instructions -= (length - executed) as u64;
        let prefix = (executed > 0).then(|| cache.prefix(id, executed));
        observer.cut(id, prefix.map(|prefix| (prefix, cache.block(prefix))));
    }
    stop
}
