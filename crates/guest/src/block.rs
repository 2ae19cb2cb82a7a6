//! Blocks of decoded instructions and the cache that finds them by address.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use events::BlockId;
use guest_memory::{Fault, Memory, SEGV_ACCERR, SEGV_MAPERR};

use crate::counters::BlockCounters;
use crate::guest::{Guest, InstructionProperties};
use crate::records::Values;

/// A straight run of instructions, ended by a transfer of control, a trap to the operating system,
/// the end of the page, or [`MAX_BLOCK_INSTRUCTIONS`].
#[derive(Debug)]
pub struct DecodedBlock<G: Guest> {
    /// Address of the first instruction.
    pub address: u64,
    end: u64,
    /// The instructions as they stand in memory.
    pub words: Vec<u32>,
    /// The same, decoded.
    pub instructions: Vec<G::GuestInstruction>,
    /// How many of them access memory.
    pub accesses: u32,
    /// The blocks executed next the last time, by fall-through and by a transfer of control. A cache: the address must be
    /// compared.
    pub successors: [BlockId; 2],
    /// Executions by the interpreter, counted while there is a compiler.
    pub execution_count: u32,
    /// Faults of its compiled code.
    faults: u32,
    /// The targets so far of an indirect jump at the end.
    pub jump_targets: Vec<u64>,
    /// Compiled code that begins with the block.
    pub code: *const u8,
    /// The block is valid while this is the cache's own generation.
    generation: u64,
    /// Made at the first use.
    values: OnceCell<Values>,
}

impl<G: Guest> DecodedBlock<G> {
    fn new(
        address: u64,
        words: Vec<u32>,
        instructions: Vec<G::GuestInstruction>,
        generation: u64,
    ) -> DecodedBlock<G> {
        let end = address + words.iter().map(|&word| G::length(word)).sum::<u64>();
        let accesses = instructions.iter().filter(|step| step.is_access()).count() as u32;
        let (successors, execution_count, faults, jump_targets, code) =
            ([NO_BLOCK; 2], 0, 0, Vec::new(), std::ptr::null());
        let values = OnceCell::new();
        DecodedBlock {
            address,
            end,
            words,
            instructions,
            accesses,
            successors,
            execution_count,
            faults,
            jump_targets,
            code,
            generation,
            values,
        }
    }

    /// Where the values of its instructions are.
    pub fn values(&self) -> &Values {
        self.values.get_or_init(|| Values::new::<G>(&self.words))
    }

    /// Compiled code that begins with the block; null if there is none.
    pub fn code(&self) -> *const u8 {
        self.code
    }

    /// Address of the instruction behind the last one.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Address of the instruction at an index, or behind the last one.
    pub fn address_of(&self, index: usize) -> u64 {
        self.address + self.words[..index].iter().map(|&word| G::length(word)).sum::<u64>()
    }
}

/// The maximum number of instructions in a block.
pub const MAX_BLOCK_INSTRUCTIONS: usize = 256;

/// The execution count of a block that is never to be compiled.
const NEVER_COMPILED: u32 = u32::MAX;

/// Faults of a block's compiled code, each a signal of the host, after which the interpreter executes it faster.
const MOST_FAULTS: u32 = 64;

/// The maximum number of targets of a jump that are kept.
const MAX_JUMP_TARGETS: usize = 512;

/// No successor yet: never a valid index.
const NO_BLOCK: BlockId = BlockId::MAX;

const RECENT: usize = 4096;

// SAFETY: only the thread that owns the cache runs the code that its blocks point to.
unsafe impl<G: Guest> Send for BlockCache<G> {}

/// Every block that ever ran, numbered, and which of them are valid at what address now.
#[derive(Debug)]
pub struct BlockCache<G: Guest> {
    number: u64,
    model: G::Model,
    blocks: Vec<DecodedBlock<G>>,
    by_address: HashMap<u64, Vec<BlockId>>,
    recent: Vec<(u64, BlockId)>,
    generation: u64,
    longest: usize,
    /// Addresses at which blocks begin.
    breaks: Vec<u64>,
    /// Of compiled code that counts.
    pub counters: BlockCounters,
}

impl<G: Guest> BlockCache<G> {
    /// An empty cache for programs that run on `model`.
    pub fn new(model: G::Model) -> BlockCache<G> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        BlockCache {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            model,
            blocks: Vec::new(),
            by_address: HashMap::new(),
            recent: vec![(u64::MAX, NO_BLOCK); RECENT],
            generation: 0,
            longest: MAX_BLOCK_INSTRUCTIONS,
            breaks: Vec::new(),
            counters: BlockCounters::default(),
        }
    }

    /// An empty cache for another thread of the same program.
    pub fn for_thread(&self) -> BlockCache<G> {
        BlockCache { longest: self.longest, breaks: self.breaks.clone(), ..BlockCache::new(self.model) }
    }

    /// An empty cache for blocks of one instruction each.
    pub fn for_steps(&self) -> BlockCache<G> {
        BlockCache { longest: 1, ..BlockCache::new(self.model) }
    }

    /// Makes blocks begin at these addresses, and no block contain them except as its first. True if any is new: then the
    /// cache must be invalidated.
    pub fn break_at(&mut self, addresses: &[u64]) -> bool {
        let known = self.breaks.len();
        for address in addresses {
            if !self.breaks.contains(address) {
                self.breaks.push(*address);
            }
        }
        self.breaks.len() > known
    }

    /// Blocks translated from now on have at most this number of instructions: 1 to step through a program.
    pub fn limit(&mut self, instructions: usize) {
        self.longest = instructions.clamp(1, MAX_BLOCK_INSTRUCTIONS);
    }

    /// No other cache has this number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The model of the processor, by which instructions are decoded.
    pub fn model(&self) -> G::Model {
        self.model
    }

    /// Every block that ever ran, by [`BlockId`].
    pub fn blocks(&self) -> &[DecodedBlock<G>] {
        &self.blocks
    }

    /// A block by its number.
    #[inline(always)]
    pub fn block(&self, id: BlockId) -> &DecodedBlock<G> {
        &self.blocks[id as usize]
    }

    /// Counts an execution of a block. True if it has compiled code, or has been executed `compile_threshold` times.
    #[inline(always)]
    pub fn count_execution(&mut self, id: BlockId, compile_threshold: u32) -> bool {
        let block = &mut self.blocks[id as usize];
        if block.execution_count == NEVER_COMPILED {
            return false;
        }
        block.execution_count = block.execution_count.saturating_add(1).min(NEVER_COMPILED - 1);
        !block.code.is_null() || block.execution_count >= compile_threshold
    }

    /// Excludes a block from compilation.
    pub fn exclude_from_compilation(&mut self, id: BlockId) {
        self.blocks[id as usize].execution_count = NEVER_COMPILED;
    }

    /// The compiled code of a block has faulted. True if it has so often that the block is never to be compiled again.
    pub fn fault(&mut self, id: BlockId) -> bool {
        let block = &mut self.blocks[id as usize];
        block.faults = block.faults.saturating_add(1);
        let is_last = block.faults == MOST_FAULTS;
        if is_last {
            self.exclude_from_compilation(id);
        }
        is_last
    }

    /// Calls `tell` with the executions of blocks by compiled code since they were last taken. A block may be reported more
    /// than once; its executions are the sum.
    pub fn executions(&self, tell: impl FnMut(BlockId, u64)) {
        self.counters.executions(tell);
    }

    /// As [`BlockCache::executions`], and sets the counters to zero.
    pub fn take_executions(&self, tell: impl FnMut(BlockId, u64)) {
        self.counters.take(tell);
    }

    /// Instructions in memory may have changed: every block is checked again before it runs, and no compiled code
    /// runs any more.
    pub fn invalidate(&mut self) {
        self.counters.gather();
        self.generation += 1;
        self.recent.fill((u64::MAX, NO_BLOCK));
        for block in &mut self.blocks {
            block.successors = [NO_BLOCK; 2];
            block.code = std::ptr::null();
            block.execution_count = if block.faults < MOST_FAULTS { 0 } else { NEVER_COMPILED };
        }
    }

    /// The block that follows `from` when control goes to `address`.
    #[inline(always)]
    pub fn follow(&mut self, from: BlockId, address: u64, memory: &Memory) -> Result<BlockId, G::Exception> {
        let block = &self.blocks[from as usize];
        let way = usize::from(address != block.end());
        let cached = block.successors[way];
        if let Some(next) = self.blocks.get(cached as usize)
            && next.address == address
        {
            return Ok(cached);
        }
        let next = self.find(address, memory)?;
        let block = &mut self.blocks[from as usize];
        block.successors[way] = next;
        if block.instructions.last().is_some_and(InstructionProperties::is_indirect_jump)
            && block.jump_targets.len() < MAX_JUMP_TARGETS
            && !block.jump_targets.contains(&address)
        {
            block.jump_targets.push(address);
        }
        Ok(next)
    }

    /// The block at `address`, translated if need be.
    pub fn find(&mut self, address: u64, memory: &Memory) -> Result<BlockId, G::Exception> {
        let slot = (address >> 2) as usize % RECENT;
        if self.recent[slot].0 == address {
            return Ok(self.recent[slot].1);
        }
        let id = self.look_up(address, memory)?;
        self.recent[slot] = (address, id);
        Ok(id)
    }

    #[cold]
    fn look_up(&mut self, address: u64, memory: &Memory) -> Result<BlockId, G::Exception> {
        let known = self.by_address.get(&address).map_or(&[][..], |ids| ids);
        if let Some(&id) = known.iter().find(|&&id| self.blocks[id as usize].generation == self.generation) {
            return Ok(id);
        }
        let (words, instructions) = fetch(address, memory, self)?;
        let same = known.iter().find(|&&id| self.blocks[id as usize].words == words);
        let id = match same {
            Some(&id) => id,
            None => self.add(DecodedBlock::new(address, words, instructions, 0)),
        };
        self.blocks[id as usize].generation = self.generation;
        Ok(id)
    }

    fn add(&mut self, block: DecodedBlock<G>) -> BlockId {
        let id = self.blocks.len() as BlockId;
        self.by_address.entry(block.address).or_default().push(id);
        self.blocks.push(block);
        id
    }

    /// The block that consists of the first `length` instructions of `id`: what an exception leaves
    /// executed. It is for counting only, and never found by address while longer ones are valid.
    pub fn prefix(&mut self, id: BlockId, length: usize) -> BlockId {
        let block = &self.blocks[id as usize];
        let (address, words, instructions) =
            (block.address, block.words[..length].to_vec(), block.instructions[..length].to_vec());
        let known = &self.by_address[&address];
        if let Some(&known) = known.iter().find(|&&id| self.blocks[id as usize].words == words) {
            return known;
        }
        // An old generation: `look_up` may revive it only if memory holds exactly these words.
        self.add(DecodedBlock::new(address, words, instructions, u64::MAX))
    }
}

/// The methods for the compiler.
#[cfg(target_arch = "x86_64")]
impl<G: Guest> BlockCache<G> {
    /// Starts the count of executions anew, since the block could not be compiled now.
    pub fn reset_execution_count(&mut self, id: BlockId) {
        self.blocks[id as usize].execution_count = 1;
    }

    /// The valid block at an address, if the interpreter has executed it at least `least` times.
    pub fn executed_at(&self, address: u64, least: u32) -> Option<BlockId> {
        let valid = |id: &&BlockId| {
            let block = &self.blocks[**id as usize];
            block.generation == self.generation
                && block.execution_count >= least
                && block.execution_count != NEVER_COMPILED
        };
        self.by_address.get(&address)?.iter().find(valid).copied()
    }

    /// Sets the compiled code that begins with a block.
    pub fn set_code(&mut self, id: BlockId, code: *const u8) {
        self.blocks[id as usize].code = code;
    }
}

/// Reads instructions from memory up to the end of a block: their words, and decoded.
#[allow(clippy::type_complexity)]
fn fetch<G: Guest>(
    address: u64,
    memory: &Memory,
    cache: &BlockCache<G>,
) -> Result<(Vec<u32>, Vec<G::GuestInstruction>), G::Exception> {
    let refuse = |code| Fault { address, write: false, signal: libc::SIGSEGV, code };
    let (_, region) = memory.region_at(address).ok_or_else(|| refuse(SEGV_MAPERR))?;
    if region.protection & libc::PROT_EXEC == 0 {
        return Err(refuse(SEGV_ACCERR).into());
    }
    let layout = memory.layout();
    let page_end = layout.page_of(address) + layout.page;
    let (mut words, mut instructions, mut at) = (Vec::new(), Vec::new(), address);
    while at < page_end && words.len() < cache.longest {
        if !words.is_empty() && cache.breaks.contains(&at) {
            break;
        }
        let word = G::fetch(memory, at)?;
        match G::decode(word, at, cache.model) {
            Some(instruction) => {
                words.push(word);
                instructions.push(instruction);
                if instruction.ends_block() {
                    break;
                }
            }
            // The block ends before the instruction that cannot be executed; the exception comes
            // when control reaches it.
            None if words.is_empty() => return Err(G::ILLEGAL_INSTRUCTION),
            None => break,
        }
        at += G::length(word);
    }
    Ok((words, instructions))
}
