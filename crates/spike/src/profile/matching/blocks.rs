//! Which block of an old procedure is which of a new one: by hashes of its instructions and its neighbours' operations,
//! strict ones first, then loose ones.

use std::collections::HashMap;

use crate::profile::BlockShape;

/// For each new block the number of the old one.
pub fn pairs(old: &[BlockShape], new: &[BlockShape]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; new.len()];
    let mut is_free = vec![true; old.len()];
    // Procedures have one entry, or two: callers with the same global pointer skip its computation.
    let is_skipped =
        |shapes: &[BlockShape]| shapes.first().is_some_and(|first| first.length == 2 && first.next == [1]);
    let entries = if is_skipped(old) && is_skipped(new) { 2 } else { 1 };
    for at in 0..entries.min(old.len()).min(new.len()) {
        pairs[at] = Some(at);
        is_free[at] = false;
    }
    let (old_around, new_around) = (neighbours(old), neighbours(new));
    // From strict to loose.
    for level in 0..4 {
        let key = |shape: &BlockShape, around: &[u32; 2]| match level {
            0 => (shape.strict, around[0], around[1]),
            1 => (shape.strict, around[1], 0),
            2 => (shape.loose, around[0], around[1]),
            _ => (shape.loose, 0, 0),
        };
        let mut candidates: HashMap<(u32, u32, u32), Vec<usize>> = HashMap::new();
        for at in (0..old.len()).filter(|&at| is_free[at]) {
            candidates.entry(key(&old[at], &old_around[at])).or_default().push(at);
        }
        for at in 0..new.len() {
            if pairs[at].is_some() {
                continue;
            }
            let Some(candidates) = candidates.get_mut(&key(&new[at], &new_around[at])) else { continue };
            // Of several ones that which is nearest to the same position, relative to the blocks matched so far.
            let expected = expected(&pairs, at, old.len(), new.len());
            let nearest = (0..candidates.len()).min_by_key(|&index| candidates[index].abs_diff(expected));
            if let Some(index) = nearest {
                let old_at = candidates.remove(index);
                is_free[old_at] = false;
                pairs[at] = Some(old_at);
            }
        }
    }
    pairs
}

/// Hashes of the operations of each block's predecessors and successors.
fn neighbours(shapes: &[BlockShape]) -> Vec<[u32; 2]> {
    let mut all = vec![[0u32; 2]; shapes.len()];
    for (at, shape) in shapes.iter().enumerate() {
        for &next in &shape.next {
            // Sums do not depend on the order.
            let Some(there) = shapes.get(next as usize) else { continue };
            all[at][1] = all[at][1].wrapping_add(there.loose);
            all[next as usize][0] = all[next as usize][0].wrapping_add(shape.loose);
        }
    }
    all
}

/// Where a block was, if it was as far from the matched block before it as now.
fn expected(pairs: &[Option<usize>], at: usize, old: usize, new: usize) -> usize {
    let before = (0..at).rev().find_map(|before| Some((before, pairs[before]?)));
    before.map_or(at * old / new.max(1), |(before, old)| old + (at - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(hashes: &[(u32, u32, &[u32])]) -> Vec<BlockShape> {
        let shape = |&(strict, loose, next): &(u32, u32, &[u32])| BlockShape {
            strict,
            loose,
            length: 1,
            next: next.to_vec(),
        };
        hashes.iter().map(shape).collect()
    }

    /// A block is added in the middle, and the registers of another one change.
    #[test]
    fn changed_procedures_are_matched() {
        let old = shapes(&[(1, 1, &[1, 2]), (2, 2, &[3]), (3, 3, &[3]), (4, 4, &[])]);
        let new = shapes(&[(1, 1, &[1, 3]), (9, 9, &[2]), (22, 2, &[4]), (3, 3, &[4]), (4, 4, &[])]);
        assert_eq!(pairs(&old, &new), [Some(0), None, Some(1), Some(2), Some(3)]);
        assert_eq!(pairs(&[], &new), [None; 5]);
    }

    /// Blocks that cannot be told apart are matched in their order.
    #[test]
    fn equal_blocks_are_matched_in_order() {
        let old = shapes(&[(1, 1, &[1]), (2, 2, &[2]), (2, 2, &[3]), (2, 2, &[])]);
        assert_eq!(pairs(&old, &old), [Some(0), Some(1), Some(2), Some(3)]);
    }
}
