//! Which registers hold addresses that were found to lie in the guest's address space, so that nobody need
//! look again: at the beginning of each block of a region.

use isa::Op;

use super::region::Region;
use alpha::block::{Block, BlockCache};
use alpha::semantics::{DecodedInstruction, pal};

/// Whether an access to memory is compiled: then its base is looked at.
pub(crate) fn is_checked(step: &DecodedInstruction) -> bool {
    use Op::*;
    let access =
        matches!(step.op, Ldbu | Ldwu | Ldl | Ldq | LdqU | Lds | Ldt | Stb | Stw | Stl | Stq | StqU | Stt);
    // At a fixed address below 32 KB there is nothing.
    access && step.b != 31
}

/// The integer register that an instruction may change, as a bit. (That of a floating-point result counts too.)
fn changed(step: &DecodedInstruction) -> u32 {
    match step.op {
        Op::CallPal if step.immediate == pal::RDUNIQ => 1,
        _ if step.c < 31 => 1 << step.c,
        _ => 0,
    }
}

/// What is known behind a block, from what is known before it.
fn behind(block: &Block, before: u32) -> u32 {
    block.steps.iter().fold(before, |known, step| {
        let found = if is_checked(step) { 1 << step.b } else { 0 };
        (known | found) & !changed(step)
    })
}

/// Registers, a bit each, at the beginning of each block.
pub(crate) fn at_beginnings(region: &Region, cache: &BlockCache) -> Vec<u32> {
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
