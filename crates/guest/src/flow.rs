//! Which blocks of a piece of code are counted. The executions of the others follow, as what comes to a point of the
//! code goes on from there (Knuth and Stevenson, "Optimal measurement points for program frequency counts", 1973).
//!
//! A point is where blocks end, and those begin that control goes on to; a block leads from one point to another.
//! Blocks that make a tree of the points need no counters: those that run most, as far as one can tell. One point is
//! *outside*, where control may come from anywhere and go anywhere.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is no compiled code that counts"))]

use std::cell::Cell;

use events::BlockId;

/// The point outside.
const OUTSIDE: usize = 0;

/// A block of a piece of code.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Control may come to it from anywhere. All other blocks of a piece are reached from such blocks.
    pub is_entry: bool,
    /// The blocks that control goes on to; elsewhere if there are none. If there are, and it goes elsewhere without
    /// being lost, then one of them is an entry.
    pub next: Vec<usize>,
    /// About how often it is executed, compared with the others.
    pub heat: u32,
}

/// A block without a counter. It connects a point with one that is nearer to the outside.
#[derive(Clone, Copy, Debug)]
struct Branch {
    block: usize,
    nearer: usize,
    /// It leads there, not from there.
    is_outward: bool,
}

/// The cells of a piece of code, as many as there are blocks: one for each block that is counted, in their order.
/// Behind them, one for each point but the outside, the nearer the later: how often control was lost there, as it came
/// and did not go on.
#[derive(Debug)]
pub struct Flow {
    /// Where each block begins and ends.
    ends: Vec<[usize; 2]>,
    /// Blocks with counters, ascending.
    counted: Vec<usize>,
    /// Of the points but the outside. Those nearer to it come first.
    branches: Vec<Branch>,
}

/// What a cell tells, once those before it have: how often a block was executed; and what follows from that.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    block: BlockId,
    /// The number of executions is the cell's negative.
    is_negative: bool,
    /// The cell so far behind has that added. 0 for none.
    more: u32,
    /// The cell so far behind has that subtracted. 0 for none.
    less: u32,
}

/// So many cells are looked at together.
const TOGETHER: usize = 16;

/// Takes what cells count: tells how often each block was executed, if it was, and leaves zeros. Nobody is within the
/// code, but where it leads outside.
#[inline]
pub fn take(terms: &[Term], cells: &[Cell<u64>], mut tell: impl FnMut(BlockId, u64)) {
    let change = |cell: usize, distance: u32, by: u64| {
        if distance != 0 {
            let cell = &cells[cell + distance as usize];
            cell.set(cell.get().wrapping_add(by));
        }
    };
    for (some, first) in cells.chunks(TOGETHER).zip((0..).step_by(TOGETHER)) {
        // Most are zero, and many together.
        if some.iter().fold(0, |all, cell| all | cell.get()) == 0 {
            continue;
        }
        for cell in first..first + some.len() {
            let (count, term) = (cells[cell].take(), terms[cell]);
            if count != 0 {
                tell(term.block, if term.is_negative { count.wrapping_neg() } else { count });
                change(cell, term.more, count);
                change(cell, term.less, count.wrapping_neg());
            }
        }
    }
}

impl Flow {
    /// The flow through a piece of code.
    pub fn new(blocks: &[Passage]) -> Flow {
        let mut points = Points((0..=2 * blocks.len()).collect());
        let [begin, end] = [1, 2].map(|side| move |block: usize| 2 * block + side);
        for (index, block) in blocks.iter().enumerate() {
            if block.is_entry {
                points.join(OUTSIDE, begin(index));
            }
            if block.next.is_empty() {
                points.join(OUTSIDE, end(index));
            }
            block.next.iter().for_each(|&next| _ = points.join(end(index), begin(next)));
        }
        let mut ends: Vec<[usize; 2]> = (0..blocks.len())
            .map(|block| [begin(block), end(block)].map(|place| points.find(place)))
            .collect();
        let outside = points.find(OUTSIDE);
        let mut hottest: Vec<usize> = (0..blocks.len()).collect();
        hottest.sort_by_key(|&block| std::cmp::Reverse(blocks[block].heat));
        let (tree, mut counted): (Vec<usize>, Vec<usize>) =
            hottest.into_iter().partition(|&block| points.join(ends[block][0], ends[block][1]));
        counted.sort_unstable();
        let branches = number(outside, &tree, &mut ends);
        Flow { ends, counted, branches }
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.ends.len()
    }

    /// The cell to add one to when a block is executed, if it has one.
    pub fn counter(&self, block: usize) -> Option<usize> {
        self.counted.binary_search(&block).ok()
    }

    /// The cell to add one to when control is lost where a block begins, if that needs to be known.
    pub fn lost_before(&self, block: usize) -> Option<usize> {
        self.lost(self.ends[block][0])
    }

    /// The same where it ends.
    pub fn lost_behind(&self, block: usize) -> Option<usize> {
        self.lost(self.ends[block][1])
    }

    /// The cell of a point.
    fn lost(&self, point: usize) -> Option<usize> {
        (point != OUTSIDE).then(|| self.cells() - point)
    }

    /// What the cells tell of blocks with these numbers.
    pub fn terms(&self, blocks: &[BlockId]) -> impl Iterator<Item = Term> {
        let counted = self.counted.iter().map(|&block| {
            let [begin, end] = self.ends[block];
            (block, false, begin, end)
        });
        // What lacks at a point comes by the branch, and lacks at the nearer one then; or it goes the other way.
        let branches = self.branches.iter().rev();
        let branches = branches.map(|branch| (branch.block, branch.is_outward, branch.nearer, OUTSIDE));
        counted.chain(branches).enumerate().map(|(cell, (block, is_negative, more, less))| {
            let [more, less] =
                [more, less].map(|point| self.lost(point).map_or(0, |lost| (lost - cell) as u32));
            Term { block: blocks[block], is_negative, more, less }
        })
    }
}

impl Term {
    /// The cell counts a block.
    pub fn counter(block: BlockId) -> Term {
        Term { block, is_negative: false, more: 0, less: 0 }
    }
}

/// Numbers the points, those nearer to the outside first, and replaces what `ends` has by the numbers; what connects
/// each with a nearer one.
fn number(outside: usize, tree: &[usize], ends: &mut [[usize; 2]]) -> Vec<Branch> {
    let mut beside = vec![Vec::new(); 2 * ends.len() + 1];
    for &block in tree {
        ends[block].iter().for_each(|&point| beside[point].push(block));
    }
    let mut numbers = vec![None; beside.len()];
    numbers[outside] = Some(OUTSIDE);
    let (mut order, mut branches) = (vec![outside], Vec::new());
    let mut nearer = 0;
    while let Some(&point) = order.get(nearer) {
        for &block in &beside[point] {
            let is_outward = ends[block][1] == point;
            let other = ends[block][usize::from(!is_outward)];
            if numbers[other].is_none() {
                numbers[other] = Some(order.len());
                order.push(other);
                branches.push(Branch { block, nearer, is_outward });
            }
        }
        nearer += 1;
    }
    for point in ends.iter_mut().flatten() {
        *point = numbers[*point].expect("every block is reached from outside");
    }
    branches
}

/// Sets of what is the same point: each is known by one of its members.
struct Points(Vec<usize>);

impl Points {
    fn find(&mut self, mut member: usize) -> usize {
        while self.0[member] != member {
            self.0[member] = self.0[self.0[member]];
            member = self.0[member];
        }
        member
    }

    /// Makes two sets one; false if they are.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one] = other;
        one != other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Blocks that all are reached from entries.
    fn blocks() -> impl Strategy<Value = Vec<Passage>> {
        let next = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
        prop::collection::vec((prop::bool::weighted(0.2), next, 0..20u32), 1..40).prop_map(|drawn| {
            let count = drawn.len();
            let passage = |(is_entry, next, heat): (bool, Vec<prop::sample::Index>, u32)| {
                let next = next.iter().map(|next| next.index(count)).collect();
                Passage { is_entry, next, heat }
            };
            let mut blocks: Vec<Passage> = drawn.into_iter().map(passage).collect();
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

    fn reach(block: usize, blocks: &[Passage], reached: &mut [bool]) {
        if !std::mem::replace(&mut reached[block], true) {
            blocks[block].next.iter().for_each(|&next| reach(next, blocks, reached));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Control goes at random, and is lost at random before and behind blocks.
        #[test]
        fn executions_follow_from_the_cells(
            blocks in blocks(),
            ways in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        ) {
            let flow = Flow::new(&blocks);
            let entries: Vec<usize> = (0..blocks.len()).filter(|&block| blocks[block].is_entry).collect();
            let (cells, mut expected) = (vec![Cell::new(0); flow.cells()], vec![0; blocks.len()]);
            let increment = |cell: Option<usize>| cell.into_iter().for_each(|cell| cells[cell].update(|count| count + 1));
            for way in &ways {
                let mut at = way.first().map(|&first| entries[usize::from(first) % entries.len()]);
                let mut choices = way.iter().map(|&choice| usize::from(choice));
                while let Some(block) = at.take() {
                    let choice = choices.next();
                    if choice.is_none_or(|choice| choice % 32 == 0) {
                        increment(flow.lost_before(block));
                        break;
                    }
                    expected[block] += 1;
                    increment(flow.counter(block));
                    let (next, choice) = (&blocks[block].next, choices.next());
                    match choice.map(|choice| (choice % 32, choice % (next.len() + 1))) {
                        None | Some((0, _)) => increment(flow.lost_behind(block)),
                        Some((_, way)) => {
                            let must_stay = !next.is_empty() && !next.iter().any(|&next| blocks[next].is_entry);
                            at = next.get(if must_stay { way % next.len() } else { way }).copied();
                        }
                    }
                }
            }
            let numbers: Vec<BlockId> = (0..).take(blocks.len()).collect();
            let (terms, mut found) = (flow.terms(&numbers).collect::<Vec<_>>(), vec![0; blocks.len()]);
            take(&terms, &cells, |block, count| {
                assert!(count != 0 && found[block as usize] == 0);
                found[block as usize] = count;
            });
            prop_assert_eq!(found, expected);
            prop_assert!(cells.iter().all(|cell| cell.get() == 0));
        }
    }

    /// A loop around a choice: whoever knows both sides of that and how often the loop is left knows all.
    #[test]
    fn few_blocks_are_counted() {
        let next = [vec![1], vec![2, 3], vec![4], vec![4], vec![1, 5], vec![]];
        let drawn = next.into_iter().zip([1, 10, 9, 2, 10, 1]).enumerate();
        let passage =
            |(block, (next, heat)): (usize, (Vec<usize>, u32))| Passage { is_entry: block == 0, next, heat };
        let blocks: Vec<Passage> = drawn.map(passage).collect();
        let flow = Flow::new(&blocks);
        let counted: Vec<usize> = (0..blocks.len()).filter(|&block| flow.counter(block).is_some()).collect();
        assert_eq!(counted, [2, 3, 5]);
    }
}
