//! Which procedure of an old profile is which of a new image.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::Method;
use crate::profile::{BlockShape, ImageProfile};

/// The least similarity of two procedures that are taken for the same: the share of common blocks, rare ones, by their
/// operations.
const LEAST_SIMILARITY: f64 = 0.25;
/// The most procedures with a block that is rare.
const MOST_CANDIDATES: usize = 64;

/// For each procedure of the new image the number of the old one.
pub fn pairs(
    old: &ImageProfile,
    new: &ImageProfile,
    shapes: &[Vec<BlockShape>],
    method: Method,
) -> Vec<Option<usize>> {
    let signatures = |image: &ImageProfile| -> Vec<String> {
        image.procedures.iter().map(|one| one.signature.clone()).collect()
    };
    let mut pairs = vec![None; new.procedures.len()];
    let mut is_free = vec![true; old.procedures.len()];
    let mut gaps = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &signatures(old), &signatures(new)) {
        match operation {
            DiffOp::Equal { old_index, new_index, len } => (0..len).for_each(|at| {
                pairs[new_index + at] = Some(old_index + at);
                is_free[old_index + at] = false;
            }),
            other => gaps.push((other.old_range(), other.new_range())),
        }
    }
    if method == Method::Blocks {
        // First within the gaps between matched procedures, then anywhere.
        for (old_range, new_range) in gaps {
            similar_pairs(old, shapes, old_range, new_range, &mut pairs, &mut is_free);
        }
        similar_pairs(
            old,
            shapes,
            0..old.procedures.len(),
            0..new.procedures.len(),
            &mut pairs,
            &mut is_free,
        );
    }
    pairs
}

/// Pairs those that are most similar.
fn similar_pairs(
    old: &ImageProfile,
    shapes: &[Vec<BlockShape>],
    old_range: std::ops::Range<usize>,
    new_range: std::ops::Range<usize>,
    pairs: &mut [Option<usize>],
    is_free: &mut [bool],
) {
    let mut holders: HashMap<u32, Vec<(usize, u32)>> = HashMap::new();
    for new in new_range.filter(|&new| pairs[new].is_none()) {
        for (hash, times) in hashes(&shapes[new]) {
            holders.entry(hash).or_default().push((new, times));
        }
    }
    let mut found = Vec::new();
    for old_at in old_range.filter(|&at| is_free[at] && !old.procedures[at].shapes.is_empty()) {
        let own = &old.procedures[old_at].shapes;
        let mut common: HashMap<usize, u32> = HashMap::new();
        for (hash, times) in hashes(own) {
            let holders = holders.get(&hash).filter(|holders| holders.len() <= MOST_CANDIDATES);
            for &(new, others) in holders.into_iter().flatten() {
                *common.entry(new).or_insert(0) += times.min(others);
            }
        }
        for (new, common) in common {
            let similarity = 2.0 * f64::from(common) / (own.len() + shapes[new].len()) as f64;
            if similarity >= LEAST_SIMILARITY {
                found.push(((similarity * 1e6) as u64, std::cmp::Reverse((new, old_at))));
            }
        }
    }
    found.sort_unstable();
    for (_, std::cmp::Reverse((new, old_at))) in found.into_iter().rev() {
        if pairs[new].is_none() && std::mem::replace(&mut is_free[old_at], false) {
            pairs[new] = Some(old_at);
        }
    }
}

/// The hashes of the operations of blocks, and how many blocks have each.
fn hashes(shapes: &[BlockShape]) -> HashMap<u32, u32> {
    let mut all = HashMap::new();
    shapes.iter().for_each(|shape| *all.entry(shape.loose).or_insert(0) += 1);
    all
}
