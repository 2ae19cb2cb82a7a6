//! Selects the blocks of a region that have counters, and derives the executions of the others by conservation of flow
//! (Knuth and Stevenson, "Optimal measurement points for program frequency counts", 1973).
//!
//! The flow graph has a block as an edge, from the vertex at which it begins to the vertex at which it ends. Blocks begin
//! at the vertex at which their predecessors end. The blocks of a spanning tree need no counters; the tree is of maximum
//! weight, so that the blocks executed most often are in it. The vertex *outside* stands for all code beyond the region.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is no compiled code that counts"))]

use std::cell::Cell;

use events::BlockId;
use petgraph::unionfind::UnionFind;

/// The vertex outside, which is the root of the tree.
const OUTSIDE: usize = 0;

/// A block of a region, for [`FlowCounters::new`].
#[derive(Clone, Debug)]
pub struct FlowBlock {
    /// Whether control may enter the region here. All other blocks are reached from such blocks.
    pub is_entry: bool,
    /// The successors in the region. Without any, control leaves the region behind the block. With some, control leaves it
    /// there only if one of them is an entry, or if the exit counter is incremented ([`FlowCounters::exit_after`]).
    pub next: Vec<usize>,
    /// The estimated number of executions, relative to the other blocks.
    pub weight: u32,
}

/// A block without a counter: an edge of the spanning tree, from a vertex to its parent or back.
#[derive(Clone, Copy, Debug)]
struct TreeEdge {
    block: usize,
    parent: usize,
    /// Whether the block ends at the parent. Otherwise it begins there.
    is_towards_parent: bool,
}

/// The counters of a region, as many as it has blocks: first one for each block outside the tree, in their order; then an
/// *exit counter* for each vertex but the root, children before parents. An exit counter counts how often control arrived
/// at the vertex and left compiled code there.
#[derive(Debug)]
pub struct FlowCounters {
    /// The vertices at which each block begins and ends.
    vertices: Vec<[usize; 2]>,
    /// Blocks with counters, ascending.
    counted: Vec<usize>,
    /// The edge of each vertex but the root to its parent, parents first.
    tree: Vec<TreeEdge>,
}

/// How a counter is evaluated. Counters are evaluated in ascending order: each has then the number of executions of a block,
/// which is added to and subtracted from the counters of the block's vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    block: BlockId,
    /// Whether the number of executions is the counter's negative.
    is_negative: bool,
    /// The distance of the counter that the value is added to. 0 for none.
    more: u32,
    /// The distance of the counter that the value is subtracted from. 0 for none.
    less: u32,
}

/// The number of counters that are compared with zero at once.
const GROUP: usize = 16;

/// Evaluates what was added to counters since they had these earlier values, which become the present ones: calls `tell`
/// with the number of executions of each block that was executed. No thread may be within the region, except in code that
/// it called. The counters stay as they are, so that other processes, which map the same memory, can read the counts of
/// the whole run at any time.
#[inline]
pub fn take(
    terms: &[Term],
    counters: &[Cell<u64>],
    earlier: &[Cell<u64>],
    mut tell: impl FnMut(BlockId, u64),
) {
    // To add to a counter is to subtract from its earlier value.
    let change = |counter_index: usize, distance: u32, by: u64| {
        if distance != 0 {
            let before = &earlier[counter_index + distance as usize];
            before.set(before.get().wrapping_sub(by));
        }
    };
    let groups = counters.chunks(GROUP).zip(earlier.chunks(GROUP));
    for ((some, before), first) in groups.zip((0..).step_by(GROUP)) {
        // Most counters are unchanged, and those come in runs.
        if some.iter().zip(before).fold(0, |all, (now, before)| all | (now.get() ^ before.get())) == 0 {
            continue;
        }
        for counter_index in first..first + some.len() {
            let (now, term) = (counters[counter_index].get(), terms[counter_index]);
            let count = now.wrapping_sub(earlier[counter_index].replace(now));
            if count != 0 {
                tell(term.block, if term.is_negative { count.wrapping_neg() } else { count });
                change(counter_index, term.more, count);
                change(counter_index, term.less, count.wrapping_neg());
            }
        }
    }
}

impl FlowCounters {
    /// The flow graph of a region, and a spanning tree of it.
    pub fn new(blocks: &[FlowBlock]) -> FlowCounters {
        let mut sets = UnionFind::<usize>::new(2 * blocks.len() + 1);
        let [begin, end] = [1, 2].map(|side| move |block: usize| 2 * block + side);
        for (index, block) in blocks.iter().enumerate() {
            if block.is_entry {
                sets.union(OUTSIDE, begin(index));
            }
            if block.next.is_empty() {
                sets.union(OUTSIDE, end(index));
            }
            block.next.iter().for_each(|&next| _ = sets.union(end(index), begin(next)));
        }
        let mut vertices: Vec<[usize; 2]> = (0..blocks.len())
            .map(|block| [begin(block), end(block)].map(|node| sets.find_mut(node)))
            .collect();
        let outside = sets.find_mut(OUTSIDE);
        let mut heaviest: Vec<usize> = (0..blocks.len()).collect();
        heaviest.sort_by_key(|&block| std::cmp::Reverse(blocks[block].weight));
        let (tree_blocks, mut counted): (Vec<usize>, Vec<usize>) =
            heaviest.into_iter().partition(|&block| sets.union(vertices[block][0], vertices[block][1]));
        counted.sort_unstable();
        let tree = number(outside, &tree_blocks, &mut vertices);
        FlowCounters { vertices, counted, tree }
    }

    /// The number of counters.
    pub fn counters(&self) -> usize {
        self.vertices.len()
    }

    /// The counter to increment when a block is executed, if it has one.
    pub fn counter(&self, block: usize) -> Option<usize> {
        self.counted.binary_search(&block).ok()
    }

    /// The counter to increment when compiled code is left where a block begins, if there must be one.
    pub fn exit_before(&self, block: usize) -> Option<usize> {
        self.exit_counter(self.vertices[block][0])
    }

    /// The counter to increment when compiled code is left where a block ends, if there must be one.
    pub fn exit_after(&self, block: usize) -> Option<usize> {
        self.exit_counter(self.vertices[block][1])
    }

    /// The exit counter of a vertex; the root needs none.
    fn exit_counter(&self, vertex: usize) -> Option<usize> {
        (vertex != OUTSIDE).then(|| self.counters() - vertex)
    }

    /// How the counters are evaluated, for blocks with these numbers.
    pub fn terms(&self, blocks: &[BlockId]) -> impl Iterator<Item = Term> {
        let counted = self.counted.iter().map(|&block| {
            let [begin, end] = self.vertices[block];
            (block, false, begin, end)
        });
        // The exit counter of a vertex, once all other blocks of the vertex are added, is the flow of the tree's edge to
        // the parent; this flow is then added at the parent.
        let tree = self.tree.iter().rev();
        let tree = tree.map(|edge| (edge.block, edge.is_towards_parent, edge.parent, OUTSIDE));
        counted.chain(tree).enumerate().map(|(counter_index, (block, is_negative, more, less))| {
            let [more, less] = [more, less].map(|vertex| {
                self.exit_counter(vertex).map_or(0, |exit_counter| (exit_counter - counter_index) as u32)
            });
            Term { block: blocks[block], is_negative, more, less }
        })
    }
}

impl Term {
    /// The term as four numbers, for another process to evaluate the counters by.
    pub fn to_words(self) -> [u32; 4] {
        [self.block, self.is_negative.into(), self.more, self.less]
    }

    /// The terms of `words`, none if one refers to a counter that does not follow it among them.
    pub fn from_words(words: &[[u32; 4]]) -> Option<Vec<Term>> {
        let count = words.len() as u64;
        let term = |(index, &[block, is_negative, more, less]): (usize, &[u32; 4])| {
            let is_inside = |distance: u32| index as u64 + u64::from(distance) < count;
            (is_inside(more) && is_inside(less)).then_some(Term {
                block,
                is_negative: is_negative != 0,
                more,
                less,
            })
        };
        words.iter().enumerate().map(term).collect()
    }

    /// The counter is that of a block, and nothing else follows from it.
    pub fn counter(block: BlockId) -> Term {
        Term { block, is_negative: false, more: 0, less: 0 }
    }
}

/// Numbers the vertices breadth-first from the root, and replaces the entries of `vertices` by these numbers. Returns the
/// edge of each vertex to its parent.
fn number(outside: usize, tree_blocks: &[usize], vertices: &mut [[usize; 2]]) -> Vec<TreeEdge> {
    let mut incident = vec![Vec::new(); 2 * vertices.len() + 1];
    for &block in tree_blocks {
        vertices[block].iter().for_each(|&vertex| incident[vertex].push(block));
    }
    let mut numbers = vec![None; incident.len()];
    numbers[outside] = Some(OUTSIDE);
    let (mut order, mut tree) = (vec![outside], Vec::new());
    let mut parent = 0;
    while let Some(&vertex) = order.get(parent) {
        for &block in &incident[vertex] {
            let is_towards_parent = vertices[block][1] == vertex;
            let other = vertices[block][usize::from(!is_towards_parent)];
            if numbers[other].is_none() {
                numbers[other] = Some(order.len());
                order.push(other);
                tree.push(TreeEdge { block, parent, is_towards_parent });
            }
        }
        parent += 1;
    }
    for vertex in vertices.iter_mut().flatten() {
        *vertex = numbers[*vertex].expect("every block is reached from outside");
    }
    tree
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks, all reached from entries.
    fn blocks() -> impl Strategy<Value = Vec<FlowBlock>> {
        let next = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
        prop::collection::vec((prop::bool::weighted(0.2), next, 0..20u32), 1..40).prop_map(|drawn| {
            let count = drawn.len();
            let flow_block = |(is_entry, next, weight): (bool, Vec<prop::sample::Index>, u32)| {
                let next = next.iter().map(|next| next.index(count)).collect();
                FlowBlock { is_entry, next, weight }
            };
            let mut blocks: Vec<FlowBlock> = drawn.into_iter().map(flow_block).collect();
            let mut reached = vec![false; count];
            for block in (0..count).filter(|&block| blocks[block].is_entry).collect::<Vec<_>>() {
                reach(block, &blocks, &mut reached);
            }
            for block in 0..count {
                if !reached[block] {
                    blocks[block].is_entry = true;
                    reach(block, &blocks, &mut reached);
                }
            }
            blocks
        })
    }

    fn reach(block: usize, blocks: &[FlowBlock], reached: &mut [bool]) {
        if !std::mem::replace(&mut reached[block], true) {
            blocks[block].next.iter().for_each(|&next| reach(next, blocks, reached));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Control takes random paths, and leaves compiled code at random before and behind blocks.
        #[test]
        fn executions_follow_from_the_counters(
            blocks in blocks(),
            paths in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        ) {
            let flow = FlowCounters::new(&blocks);
            let entries: Vec<usize> = (0..blocks.len()).filter(|&block| blocks[block].is_entry).collect();
            let (counters, mut expected) = (vec![Cell::new(0); flow.counters()], vec![0; blocks.len()]);
            let increment = |counter_index: Option<usize>| {
                counter_index.into_iter().for_each(|index| counters[index].update(|count| count + 1));
            };
            for path in &paths {
                let mut at = path.first().map(|&first| entries[usize::from(first) % entries.len()]);
                let mut choices = path.iter().map(|&choice| usize::from(choice));
                while let Some(block) = at.take() {
                    let choice = choices.next();
                    if choice.is_none_or(|choice| choice % 32 == 0) {
                        increment(flow.exit_before(block));
                        break;
                    }
                    expected[block] += 1;
                    increment(flow.counter(block));
                    let (next, choice) = (&blocks[block].next, choices.next());
                    match choice.map(|choice| (choice % 32, choice % (next.len() + 1))) {
                        None | Some((0, _)) => increment(flow.exit_after(block)),
                        Some((_, path)) => {
                            let must_stay = !next.is_empty() && !next.iter().any(|&next| blocks[next].is_entry);
                            at = next.get(if must_stay { path % next.len() } else { path }).copied();
                        }
                    }
                }
            }
            let numbers: Vec<BlockId> = (0..).take(blocks.len()).collect();
            let (terms, mut found) = (flow.terms(&numbers).collect::<Vec<_>>(), vec![0; blocks.len()]);
            let earlier = vec![Cell::new(0); counters.len()];
            take(&terms, &counters, &earlier, |block, count| {
                assert!(count != 0 && found[block as usize] == 0);
                found[block as usize] = count;
            });
            prop_assert_eq!(found, expected);
            prop_assert_eq!(&counters, &earlier);
            take(&terms, &counters, &earlier, |block, count| panic!("{block} was executed {count} times more"));
        }
    }

    /// A loop around an `if`: counters of both branches and of the exit of the loop determine all.
    #[test]
    fn few_blocks_are_counted() {
        let next = [vec![1], vec![2, 3], vec![4], vec![4], vec![1, 5], vec![]];
        let drawn = next.into_iter().zip([1, 10, 9, 2, 10, 1]).enumerate();
        let flow_block = |(block, (next, weight)): (usize, (Vec<usize>, u32))| FlowBlock {
            is_entry: block == 0,
            next,
            weight,
        };
        let blocks: Vec<FlowBlock> = drawn.map(flow_block).collect();
        let flow = FlowCounters::new(&blocks);
        let counted: Vec<usize> = (0..blocks.len()).filter(|&block| flow.counter(block).is_some()).collect();
        assert_eq!(counted, [2, 3, 5]);
    }
}
