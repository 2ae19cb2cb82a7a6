//! Infers the counts of blocks that were not matched: as much flows into a block as out of it.
//!
//! Counts of matched blocks stay as they are. Those of the others are the sum of what their predecessors pass on, by the
//! shares of their branches, or if that is more, what their matched successors were executed more often than others explain.

use crate::program::{CodeExit, Program};

/// Rounds after which counts in loops have settled.
const ROUNDS: usize = 30;

/// The count of a branch that the old build did not have.
pub const UNKNOWN: u64 = u64::MAX;

/// Completes the counts of a procedure. `blocks` says which blocks were matched.
pub fn infer(program: &mut Program, number: usize, blocks: &[Option<usize>]) {
    let ids = program.procedures[number].blocks.clone();
    let local = |program: &Program, id: u32| {
        (program.blocks[id as usize].procedure == number as u32)
            .then(|| ids.iter().position(|&one| one == id))
            .flatten()
    };
    let next: Vec<Vec<(usize, usize)>> = ids
        .iter()
        .map(|&id| {
            let all = program.blocks[id as usize].exit.successors().into_iter().enumerate();
            all.filter_map(|(successor, to)| Some((successor, local(program, to)?))).collect()
        })
        .collect();
    let mut predecessors = vec![Vec::new(); ids.len()];
    for (at, next) in next.iter().enumerate() {
        next.iter().for_each(|&(successor, to)| predecessors[to].push((at, successor)));
    }
    let mut counts: Vec<f64> = ids.iter().map(|&id| program.blocks[id as usize].count as f64).collect();
    let known: Vec<bool> = blocks.iter().map(Option::is_some).collect();
    for _ in 0..ROUNDS {
        let mut is_changed = false;
        for at in (0..ids.len()).filter(|&at| !known[at]) {
            let flow = |&(from, successor): &(usize, usize)| {
                counts[from] * share(program, ids[from], successor, &next[from], &counts, &known)
            };
            let inflow: f64 = predecessors[at].iter().filter(|one| one.0 != at).map(flow).sum();
            // What its successors were executed more often than others explain.
            let unexplained = |&(_, to): &(usize, usize)| {
                let others = predecessors[to].iter().filter(|one| one.0 != at);
                if known[to] { (counts[to] - others.map(flow).sum::<f64>()).max(0.0) } else { 0.0 }
            };
            let needed: f64 = next[at].iter().filter(|one| one.1 != at).map(unexplained).sum();
            let count = inflow.max(needed);
            is_changed |= (count - counts[at]).abs() > 0.5;
            counts[at] = count;
        }
        if !is_changed {
            break;
        }
    }
    for (at, &id) in ids.iter().enumerate() {
        if known[at] && program.blocks[id as usize].count > 0 && !has_unknown_shares(program, id) {
            continue;
        }
        let taken = share(program, id, 0, &next[at], &counts, &known);
        let block = &mut program.blocks[id as usize];
        if !known[at] {
            block.count = counts[at] as u64;
        }
        let whole = block.count;
        if let CodeExit::Conditional { count, .. } = &mut block.exit {
            *count = (whole as f64 * taken) as u64;
        }
    }
}

/// Whether a matched block now ends with a branch that its old one did not have.
fn has_unknown_shares(program: &Program, id: u32) -> bool {
    let block = &program.blocks[id as usize];
    matches!(block.exit, CodeExit::Conditional { count, .. } if count > block.count)
}

/// The share of a block's executions that goes to a successor.
fn share(
    program: &Program,
    id: u32,
    successor: usize,
    next: &[(usize, usize)],
    counts: &[f64],
    known: &[bool],
) -> f64 {
    let block = &program.blocks[id as usize];
    match &block.exit {
        CodeExit::Conditional { count, .. } => {
            let own = block.count as f64;
            let taken = if own > 0.0 && *count <= block.count {
                *count as f64 / own
            } else {
                // By the counts of the successors, as far as they were matched.
                let count = |wanted: usize| {
                    let found = next.iter().find(|one| one.0 == wanted);
                    found.filter(|one| known[one.1]).map(|one| counts[one.1])
                };
                match (count(0), count(1)) {
                    (Some(taken), Some(other)) if taken + other > 0.0 => taken / (taken + other),
                    (Some(0.0), None) => 0.0,
                    (None, Some(0.0)) => 1.0,
                    _ => 0.5,
                }
            };
            if successor == 0 { taken } else { 1.0 - taken }
        }
        CodeExit::Jump { counts: times, .. } => {
            let all: u64 = times.iter().fold(0, |sum, &count| sum.saturating_add(count));
            let own = times.get(successor).map_or(0.0, |&count| count as f64 / all.max(1) as f64);
            // A jump that was not matched: by the counts of its targets.
            let known = next.iter().filter(|one| known[one.1]);
            let (sum, one) = known.fold((0.0, 0.0), |(sum, one), &(number, to)| {
                (sum + counts[to], if number == successor { counts[to] } else { one })
            });
            if all == 0 && sum > 0.0 { one / sum } else { own }
        }
        _ => 1.0,
    }
}
