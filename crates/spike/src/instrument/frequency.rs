//! Estimated frequencies of blocks and edges, so that counters are put where control seldom comes.

use crate::program::{CodeBlockId, CodeExit, Program};

/// How much more often a loop is executed than the code around it.
const LOOP: u64 = 8;
/// The largest estimate.
const MOST: u64 = 1 << 40;
/// The estimate of a procedure's entry.
pub const ENTRY: u64 = 1 << 20;
/// Of 100 executions of a forward branch, those that are taken: compilers let the frequent path fall through.
const FORWARD_TAKEN: u64 = 35;
/// The same of a branch back.
const BACKWARD_TAKEN: u64 = 88;

/// The estimates of a procedure.
#[derive(Clone, Debug)]
pub struct Frequencies {
    blocks: Vec<u64>,
}

impl Frequencies {
    /// Estimates; `local` gives the number of a block of the procedure within it.
    pub fn new(
        program: &Program,
        blocks: &[CodeBlockId],
        local: impl Fn(CodeBlockId) -> Option<usize>,
    ) -> Frequencies {
        let count = blocks.len();
        let successors = |at: usize| -> Vec<(usize, u64)> {
            let exit = &program.blocks[blocks[at] as usize].exit;
            shares(exit, at, &local)
        };
        let (order, back) = depth_first(count, &successors);
        let mut depth = vec![0u32; count];
        for &(tail, head) in &back {
            // Code between the head and the tail of a loop, in the order of the image, is taken for its body.
            (head.min(tail)..=tail).for_each(|at| depth[at] = (depth[at] + 1).min(5));
        }
        let mut estimate = vec![0u64; count];
        for &at in order.iter().rev() {
            let own = estimate[at].max(if at == 0 { ENTRY } else { 1 });
            estimate[at] = own;
            for (to, share) in successors(at) {
                if !back.contains(&(at, to)) {
                    estimate[to] = estimate[to].saturating_add(own * share / 100).min(MOST);
                }
            }
        }
        let blocks = estimate
            .iter()
            .zip(&depth)
            .map(|(one, &depth)| one.saturating_mul(LOOP.pow(depth)).clamp(1, MOST));
        Frequencies { blocks: blocks.collect() }
    }

    /// The estimate of a block.
    pub fn block(&self, at: usize) -> u64 {
        self.blocks[at]
    }

    /// That of the edge to its first or another successor.
    pub fn edge(&self, at: usize, exit: &CodeExit, is_taken: bool, is_backward: bool) -> u64 {
        let taken = if is_backward { BACKWARD_TAKEN } else { FORWARD_TAKEN };
        let share = match exit {
            CodeExit::Conditional { .. } if is_taken => taken,
            CodeExit::Conditional { .. } => 100 - taken,
            _ => 100,
        };
        (self.blocks[at].saturating_mul(share) / 100).max(1)
    }
}

fn shares(exit: &CodeExit, at: usize, local: impl Fn(CodeBlockId) -> Option<usize>) -> Vec<(usize, u64)> {
    let all: Vec<Option<usize>> = exit.successors().into_iter().map(local).collect();
    match (exit, all.as_slice()) {
        (CodeExit::Conditional { .. }, &[taken, next]) => {
            let share = if taken.is_some_and(|to| to <= at) { BACKWARD_TAKEN } else { FORWARD_TAKEN };
            [(taken, share), (next, 100 - share)]
                .into_iter()
                .filter_map(|(to, share)| Some((to?, share)))
                .collect()
        }
        (_, all) => {
            let share = 100 / all.len().max(1) as u64;
            all.iter().flatten().map(|&to| (to, share)).collect()
        }
    }
}

/// The blocks in the order in which a search leaves them, and the edges back to blocks that it has not left.
fn depth_first(
    count: usize,
    successors: &impl Fn(usize) -> Vec<(usize, u64)>,
) -> (Vec<usize>, std::collections::HashSet<(usize, usize)>) {
    let (mut order, mut back) = (Vec::with_capacity(count), std::collections::HashSet::new());
    // 1 entered, 2 left
    let mut state = vec![0u8; count];
    for root in 0..count {
        if state[root] != 0 {
            continue;
        }
        state[root] = 1;
        let mut stack = vec![(root, successors(root), 0)];
        while let Some((at, next, done)) = stack.last_mut() {
            match next.get(*done) {
                Some(&(to, _)) => {
                    *done += 1;
                    let at = *at;
                    match state[to] {
                        0 => {
                            state[to] = 1;
                            stack.push((to, successors(to), 0));
                        }
                        1 => _ = back.insert((at, to)),
                        _ => {}
                    }
                }
                None => {
                    state[*at] = 2;
                    order.push(*at);
                    stack.pop();
                }
            }
        }
    }
    (order, back)
}
