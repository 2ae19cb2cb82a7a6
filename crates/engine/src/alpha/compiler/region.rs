//! What is compiled together: the blocks that ran, reached from an entry without calls.

use std::collections::HashMap;

use isa::{Flags, Op};
use trace::BlockId;

use crate::alpha::block::BlockCache;
use crate::alpha::meaning::Step;

/// Blocks of a region, the entry first.
pub(super) struct Region {
    /// In the order of discovery.
    pub(super) blocks: Vec<BlockId>,
    /// Index in `blocks` by guest address.
    pub(super) by_address: HashMap<u64, usize>,
}

/// Instructions in a region, at most.
const LARGEST: usize = 4000;

/// How many bits of a site's number are the instruction's index in its block.
const INDEX_BITS: u32 = 10;

impl Region {
    /// A number for an instruction, to find it again by [`Region::address_of_site`]. Never 0xffffffff.
    pub(super) fn site(block: usize, index: usize) -> u32 {
        (block as u32) << INDEX_BITS | index as u32
    }

    /// The integer and floating-point registers that its instructions read: a bit each.
    pub(super) fn registers(&self, cache: &BlockCache) -> (u32, u32) {
        let steps = self.blocks.iter().flat_map(|&id| &cache.block(id).steps);
        let bits = |step: &Step| 1u32 << step.a | 1 << step.b | 1u32.checked_shl(step.c.into()).unwrap_or(0);
        steps.fold((0, 0), |(r, f), step| {
            // Conditional moves read their destination; which file an operand is in matters little.
            if step.op.is_float() { (r | bits(step), f | bits(step)) } else { (r | bits(step), f) }
        })
    }

    /// The guest address of a numbered instruction.
    pub(super) fn address_of_site(&self, site: u32, cache: &BlockCache) -> u64 {
        let block = cache.block(self.blocks[(site >> INDEX_BITS) as usize]);
        block.address + 4 * u64::from(site & ((1 << INDEX_BITS) - 1))
    }
}

/// Finds the region that begins with `entry`. Code that never ran is left out: it is compiled when
/// it runs often.
pub(super) fn find(entry: BlockId, cache: &BlockCache) -> Region {
    let mut region = Region { blocks: vec![entry], by_address: HashMap::new() };
    region.by_address.insert(cache.block(entry).address, 0);
    let mut instructions = cache.block(entry).steps.len();
    let mut next = 0;
    while next < region.blocks.len() {
        let id = region.blocks[next];
        next += 1;
        for address in successors(id, cache) {
            if region.by_address.contains_key(&address) {
                continue;
            }
            let Some(found) = cache.ran(address) else { continue };
            let length = cache.block(found).steps.len();
            if instructions + length > LARGEST {
                continue;
            }
            instructions += length;
            region.by_address.insert(address, region.blocks.len());
            region.blocks.push(found);
        }
    }
    region
}

/// Where control may go from a block without leaving its function: behind a call to the place it
/// returns to.
fn successors(id: BlockId, cache: &BlockCache) -> Vec<u64> {
    let block = cache.block(id);
    let Some(last) = block.steps.last() else { return Vec::new() };
    let target = last.immediate as u64;
    match last.op {
        Op::Br => vec![target],
        Op::Bsr | Op::Jsr => vec![block.end()],
        Op::Ret | Op::JsrCoroutine => Vec::new(),
        Op::Jmp => block.jumps.clone(),
        Op::CallPal => Vec::new(),
        op if op.is(Flags::CONDITIONAL) => vec![block.end(), target],
        _ => vec![block.end()],
    }
}
