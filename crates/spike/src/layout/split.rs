//! Which blocks are cold: one threshold for the whole program.

use crate::program::Program;

/// The share of all executed instructions that may be in cold blocks.
const COLD_SHARE: f64 = 0.01;

/// The largest count of a cold block: all blocks with at most this count have at most 1 % of the executed instructions.
pub fn threshold(program: &Program) -> u64 {
    let mut blocks: Vec<(u64, u64)> = program
        .blocks
        .iter()
        .filter(|block| block.count > 0)
        .map(|block| (block.count, block.count.saturating_mul(block.instructions.len() as u64 + 1)))
        .collect();
    blocks.sort_unstable();
    let total: u64 = blocks.iter().fold(0, |sum, one| sum.saturating_add(one.1));
    let mut room = (total as f64 * COLD_SHARE) as u64;
    let mut threshold = 0;
    for some in blocks.chunk_by(|a, b| a.0 == b.0) {
        let executed = some.iter().fold(0u64, |sum, one| sum.saturating_add(one.1));
        if executed > room {
            break;
        }
        room -= executed;
        threshold = some[0].0;
    }
    threshold
}
