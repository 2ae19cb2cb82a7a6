//! Blocks of decoded instructions and the cache that finds them by address.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use events::BlockId;
use memory::{Fault, Memory, PAGE, SEGV_ACCERR, SEGV_MAPERR};

use crate::counters::Counters;
use crate::guest::{Guest, Instruction};
use crate::records::Values;

/// A straight run of instructions, ended by a transfer of control, a trap to the operating system,
/// the end of the page, or [`LONGEST`].
#[derive(Debug)]
pub struct Block<G: Guest> {
    /// Address of the first instruction.
    pub address: u64,
    end: u64,
    /// The instructions as they stand in memory.
    pub words: Vec<u32>,
    /// The same, decoded.
    pub steps: Vec<G::Instruction>,
    /// How many of them access memory.
    pub accesses: u32,
    /// Blocks that followed last time, by falling through and by a transfer of control: guesses, to
    /// be checked against their address.
    pub followers: [BlockId; 2],
    /// Executions by the interpreter, while a compiler wants to know.
    pub heat: u32,
    /// Faults of its compiled code.
    faults: u32,
    /// Where a `jmp` or `jsr` at the end went.
    pub jumps: Vec<u64>,
    /// Compiled code that begins with the block.
    pub code: *const u8,
    /// The block is valid while this is the cache's own generation.
    generation: u64,
    /// Made when somebody wants to know.
    values: OnceCell<Values>,
}

impl<G: Guest> Block<G> {
    fn new(address: u64, words: Vec<u32>, steps: Vec<G::Instruction>, generation: u64) -> Block<G> {
        let end = address + words.iter().map(|&word| G::length(word)).sum::<u64>();
        let accesses = steps.iter().filter(|step| step.is_access()).count() as u32;
        let (followers, heat, faults, jumps, code) = ([UNKNOWN; 2], 0, 0, Vec::new(), std::ptr::null());
        let values = OnceCell::new();
        Block {
            address,
            end,
            words,
            steps,
            accesses,
            followers,
            heat,
            faults,
            jumps,
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

/// Instructions in a block, at most.
pub const LONGEST: usize = 256;

/// The heat of a block that is never to be compiled.
const COLD: u32 = u32::MAX;

/// Faults of a block's compiled code, each a signal of the host, after which the interpreter executes it faster.
const MOST_FAULTS: u32 = 64;

/// Places that a jump goes to, remembered at most.
const MOST_JUMPS: usize = 512;

/// A follower that is not known yet: never a valid index.
const UNKNOWN: BlockId = BlockId::MAX;

const RECENT: usize = 4096;

// SAFETY: the code that blocks point to is run by whoever owns the cache only.
unsafe impl<G: Guest> Send for BlockCache<G> {}

/// Every block that ever ran, numbered, and which of them are valid at what address now.
#[derive(Debug)]
pub struct BlockCache<G: Guest> {
    number: u64,
    model: G::Model,
    blocks: Vec<Block<G>>,
    by_address: HashMap<u64, Vec<BlockId>>,
    recent: Vec<(u64, BlockId)>,
    generation: u64,
    longest: usize,
    /// Addresses at which blocks begin.
    breaks: Vec<u64>,
    /// Of compiled code that counts.
    pub counters: Counters,
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
            recent: vec![(u64::MAX, UNKNOWN); RECENT],
            generation: 0,
            longest: LONGEST,
            breaks: Vec::new(),
            counters: Counters::default(),
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

    /// Lets blocks begin at these addresses, and no block go on behind them. True if any is new: then the
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

    /// Blocks translated from now on have at most so many instructions: 1 to step through a program.
    pub fn limit(&mut self, instructions: usize) {
        self.longest = instructions.clamp(1, LONGEST);
    }

    /// No other cache has this number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The processor the blocks are for.
    pub fn model(&self) -> G::Model {
        self.model
    }

    /// Every block that ever ran, by [`BlockId`].
    pub fn blocks(&self) -> &[Block<G>] {
        &self.blocks
    }

    /// A block by its number.
    #[inline(always)]
    pub fn block(&self, id: BlockId) -> &Block<G> {
        &self.blocks[id as usize]
    }

    /// One more execution of a block. True if it has code, or has been executed so often that it should.
    #[inline(always)]
    pub fn warm(&mut self, id: BlockId, hot: u32) -> bool {
        let block = &mut self.blocks[id as usize];
        if block.heat == COLD {
            return false;
        }
        block.heat = block.heat.saturating_add(1).min(COLD - 1);
        !block.code.is_null() || block.heat >= hot
    }

    /// The block is never to be compiled.
    pub fn freeze(&mut self, id: BlockId) {
        self.blocks[id as usize].heat = COLD;
    }

    /// The compiled code of a block has faulted. True if it has so often that the block is never to be compiled again.
    pub fn fault(&mut self, id: BlockId) -> bool {
        let block = &mut self.blocks[id as usize];
        block.faults = block.faults.saturating_add(1);
        let is_last = block.faults == MOST_FAULTS;
        if is_last {
            block.heat = COLD;
        }
        is_last
    }

    /// Tells what compiled code that counts has executed how often since that was taken; a block maybe in parts.
    pub fn executions(&self, tell: impl FnMut(BlockId, u64)) {
        self.counters.executions(tell);
    }

    /// Takes the same: from then on it is counted anew.
    pub fn take_executions(&self, tell: impl FnMut(BlockId, u64)) {
        self.counters.take(tell);
    }

    /// Instructions in memory may have changed: every block is checked again before it runs, and no compiled code
    /// runs any more.
    pub fn invalidate(&mut self) {
        self.counters.gather();
        self.generation += 1;
        self.recent.fill((u64::MAX, UNKNOWN));
        for block in &mut self.blocks {
            block.followers = [UNKNOWN; 2];
            block.code = std::ptr::null();
            block.heat = if block.faults < MOST_FAULTS { 0 } else { COLD };
        }
    }

    /// The block that follows `from` when control goes to `address`.
    #[inline(always)]
    pub fn follow(&mut self, from: BlockId, address: u64, memory: &Memory) -> Result<BlockId, G::Exception> {
        let block = &self.blocks[from as usize];
        let way = usize::from(address != block.end());
        let guess = block.followers[way];
        if let Some(next) = self.blocks.get(guess as usize)
            && next.address == address
        {
            return Ok(guess);
        }
        let next = self.find(address, memory)?;
        let block = &mut self.blocks[from as usize];
        block.followers[way] = next;
        if block.steps.last().is_some_and(Instruction::is_indirect_jump)
            && block.jumps.len() < MOST_JUMPS
            && !block.jumps.contains(&address)
        {
            block.jumps.push(address);
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
        let (words, steps) = fetch(address, memory, self)?;
        let same = known.iter().find(|&&id| self.blocks[id as usize].words == words);
        let id = match same {
            Some(&id) => id,
            None => self.add(Block::new(address, words, steps, 0)),
        };
        self.blocks[id as usize].generation = self.generation;
        Ok(id)
    }

    fn add(&mut self, block: Block<G>) -> BlockId {
        let id = self.blocks.len() as BlockId;
        self.by_address.entry(block.address).or_default().push(id);
        self.blocks.push(block);
        id
    }

    /// The block that consists of the first `length` instructions of `id`: what an exception leaves
    /// executed. It is for counting only, and never found by address while longer ones are valid.
    pub fn prefix(&mut self, id: BlockId, length: usize) -> BlockId {
        let block = &self.blocks[id as usize];
        let (address, words, steps) =
            (block.address, block.words[..length].to_vec(), block.steps[..length].to_vec());
        let known = &self.by_address[&address];
        if let Some(&known) = known.iter().find(|&&id| self.blocks[id as usize].words == words) {
            return known;
        }
        // An old generation: `look_up` may revive it only if memory holds exactly these words.
        self.add(Block::new(address, words, steps, u64::MAX))
    }
}

/// What the compiler does with blocks.
#[cfg(target_arch = "x86_64")]
impl<G: Guest> BlockCache<G> {
    /// The block could not be compiled.
    pub fn cool(&mut self, id: BlockId) {
        self.blocks[id as usize].heat = 1;
    }

    /// The block at an address that the interpreter has executed at least so often, if it is still valid.
    pub fn ran(&self, address: u64, least: u32) -> Option<BlockId> {
        let valid = |id: &&BlockId| {
            let block = &self.blocks[**id as usize];
            block.generation == self.generation && block.heat >= least && block.heat != COLD
        };
        self.by_address.get(&address)?.iter().find(valid).copied()
    }

    /// Notes compiled code that begins with a block.
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
) -> Result<(Vec<u32>, Vec<G::Instruction>), G::Exception> {
    let refuse = |code| Fault { address, write: false, signal: libc::SIGSEGV, code };
    let (_, region) = memory.region_at(address).ok_or_else(|| refuse(SEGV_MAPERR))?;
    if region.protection & libc::PROT_EXEC == 0 {
        return Err(refuse(SEGV_ACCERR).into());
    }
    let page_end = (address & !(PAGE - 1)) + PAGE;
    let (mut words, mut steps, mut at) = (Vec::new(), Vec::new(), address);
    while at < page_end && words.len() < cache.longest {
        if !words.is_empty() && cache.breaks.contains(&at) {
            break;
        }
        let word = G::fetch(memory, at)?;
        match G::decode(word, at, cache.model) {
            Some(instruction) => {
                words.push(word);
                steps.push(instruction);
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
    Ok((words, steps))
}
