//! Bounds-check elimination: a forward dataflow analysis of the base registers that were compared with the address limit
//! on every path to a block, and not written since. Accesses by such a register need no comparison.

use guest::{BlockCache, DecodedBlock};

use crate::region::CodeRegion;
use crate::target::Target;

/// A register as a bit; none without one.
fn bit(register: Option<u8>) -> u32 {
    register.map_or(0, |register| 1 << register)
}

/// The checked registers behind a block, from those before it.
fn checked_after<G: Target>(block: &DecodedBlock<G>, before: u32) -> u32 {
    block
        .instructions
        .iter()
        .fold(before, |checked, step| (checked | bit(G::checked_base(step))) & !bit(G::changed(step)))
}

/// Bit masks of the checked registers at the beginning of each block.
pub(crate) fn checked_at_block_entries<G: Target>(region: &CodeRegion, cache: &BlockCache<G>) -> Vec<u32> {
    let nothing_at_entries = |&is_entry: &bool| if is_entry { 0 } else { u32::MAX };
    let mut checked: Vec<u32> = region.is_entry.iter().map(nothing_at_entries).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (index, edges) in region.edges.iter().enumerate() {
            let after = checked_after(cache.block(region.blocks[index]), checked[index]);
            for edge in edges {
                let common = checked[edge.to] & after;
                changed |= common != checked[edge.to];
                checked[edge.to] = common;
            }
        }
    }
    checked
}
