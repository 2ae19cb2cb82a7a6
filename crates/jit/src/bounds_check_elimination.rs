//! Which registers hold addresses that were found to lie in the guest's address space, so that nobody need
//! look again: at the beginning of each block of a region.

use guest::{Block, BlockCache};

use crate::region::Region;
use crate::target::Target;

/// A register as a bit; none without one.
fn bit(register: Option<u8>) -> u32 {
    register.map_or(0, |register| 1 << register)
}

/// What is known behind a block, from what is known before it.
fn behind<G: Target>(block: &Block<G>, before: u32) -> u32 {
    block
        .steps
        .iter()
        .fold(before, |known, step| (known | bit(G::checked_base(step))) & !bit(G::changed(step)))
}

/// Registers, a bit each, at the beginning of each block.
pub(crate) fn at_beginnings<G: Target>(region: &Region, cache: &BlockCache<G>) -> Vec<u32> {
    let nothing_at_entries = |&is_entry: &bool| if is_entry { 0 } else { u32::MAX };
    let mut known: Vec<u32> = region.is_entry.iter().map(nothing_at_entries).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (index, edges) in region.edges.iter().enumerate() {
            let behind = behind(cache.block(region.blocks[index]), known[index]);
            for edge in edges {
                let common = known[edge.to] & behind;
                changed |= common != known[edge.to];
                known[edge.to] = common;
            }
        }
    }
    known
}
