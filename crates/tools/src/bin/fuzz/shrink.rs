//! Minimizes failing input.

use crate::sequences::assembler::NOP;
use crate::sequences::batch::Batch;
use crate::sequences::record::{ENTRY, QUADS};

/// Finds which of `count` elements are needed for a failure: removes as many as possible, halves first.
fn needed(count: usize, mut fails: impl FnMut(&[bool]) -> bool) -> Vec<bool> {
    let mut kept = vec![true; count];
    let mut size = count.next_power_of_two();
    while size > 0 {
        for start in (0..count).step_by(size) {
            let range = start..count.min(start + size);
            if kept[range.clone()].iter().any(|kept| *kept) {
                let before = kept.clone();
                kept[range].fill(false);
                if !fails(&kept) {
                    kept = before;
                }
            }
        }
        size /= 2;
    }
    kept
}

/// Minimizes a failing batch. `suspect` is the sequence that probably fails.
pub fn shrink(batch: &Batch, suspect: usize, fails: &mut dyn FnMut(&Batch) -> bool) -> Batch {
    let alone = batch.part(std::iter::once(suspect));
    let mut batch = if fails(&alone) {
        alone
    } else {
        let part = |kept: &[bool]| {
            let kept = kept.to_vec();
            batch.part((0..kept.len()).filter(move |number| kept[*number]).collect::<Vec<_>>().into_iter())
        };
        let kept = needed(batch.sequences.len(), |kept| fails(&part(kept)));
        part(&kept)
    };
    for number in 0..batch.sequences.len() {
        // All but the return instruction.
        let count = batch.sequences[number].words.len() - 1;
        let with = |kept: &[bool]| {
            let mut smaller = batch.clone();
            let words = smaller.sequences[number].words.iter_mut();
            words.zip(kept).filter(|(_, kept)| !**kept).for_each(|(word, _)| *word = NOP);
            smaller
        };
        let kept = needed(count, |kept| fails(&with(kept)));
        batch = with(&kept);
    }
    let with = |kept: &[bool]| {
        let mut smaller = batch.clone();
        let records = smaller.records.iter_mut().flatten();
        records.for_each(|record| {
            let quads = record.iter_mut().zip(kept).enumerate();
            quads.filter(|(at, (_, kept))| *at != ENTRY && !**kept).for_each(|(_, (quad, _))| *quad = 0);
        });
        smaller
    };
    let kept = needed(QUADS, |kept| fails(&with(kept)));
    let batch = with(&kept);
    let calm = Batch { ieee_control: 0, ..batch.clone() };
    if fails(&calm) { calm } else { batch }
}
