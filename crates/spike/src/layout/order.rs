//! The order of procedures: the call graph is collapsed along its heaviest edges (Pettis and Hansen). Two sequences are
//! joined at the ends that bring caller and callee of the edge closest together.

use std::collections::{BinaryHeap, HashMap};

use crate::assemble::Fragment;
use crate::profile::IndirectCall;
use crate::program::{Exit, Program, Reference};

/// Orders parts of procedures.
pub fn order(program: &Program, calls: &[IndirectCall], fragments: Vec<Fragment>) -> Vec<Fragment> {
    let edges = call_graph(program, calls, &fragments);
    let mut groups: Vec<Vec<usize>> = (0..fragments.len()).map(|index| vec![index]).collect();
    let mut group_of: Vec<usize> = (0..fragments.len()).collect();
    let mut neighbours: Vec<HashMap<usize, u64>> = vec![HashMap::new(); fragments.len()];
    let mut heap = BinaryHeap::new();
    for (&(a, b), &weight) in &edges {
        neighbours[a].insert(b, weight);
        neighbours[b].insert(a, weight);
        heap.push((weight, std::cmp::Reverse((a, b))));
    }
    while let Some((weight, std::cmp::Reverse((a, b)))) = heap.pop() {
        if groups[a].is_empty() || groups[b].is_empty() || neighbours[a].get(&b) != Some(&weight) {
            continue;
        }
        let other = std::mem::take(&mut groups[b]);
        join(&mut groups[a], other, &edges);
        for &member in &groups[a] {
            group_of[member] = a;
        }
        // The edges of both are those of the one that remains.
        neighbours[a].remove(&b);
        for (third, weight) in std::mem::take(&mut neighbours[b]) {
            neighbours[third].remove(&b);
            if third != a {
                let sum = neighbours[a].get(&third).copied().unwrap_or(0) + weight;
                neighbours[a].insert(third, sum);
                neighbours[third].insert(a, sum);
                heap.push((sum, std::cmp::Reverse((a.min(third), a.max(third)))));
            }
        }
    }
    let density = |group: &Vec<usize>| {
        let executed: u64 = group.iter().map(|&index| executed(program, &fragments[index])).sum();
        let size: usize = group.iter().map(|&index| fragments[index].blocks.len()).sum();
        std::cmp::Reverse(executed / (size as u64).max(1))
    };
    let mut groups: Vec<Vec<usize>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
    groups.sort_by_cached_key(|group| (density(group), group[0]));
    let order: Vec<usize> = groups.into_iter().flatten().collect();
    let mut fragments: Vec<Option<Fragment>> = fragments.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| fragments[index].take()).collect()
}

fn executed(program: &Program, fragment: &Fragment) -> u64 {
    let counts = fragment.blocks.iter().map(|&block| &program.blocks[block as usize]);
    counts
        .map(|block| block.count.saturating_mul(block.instructions.len() as u64))
        .fold(0, u64::saturating_add)
}

/// Appends a sequence to another one, each as it is or reversed: so that the heaviest edge between them is shortest.
fn join(first: &mut Vec<usize>, mut second: Vec<usize>, edges: &HashMap<(usize, usize), u64>) {
    let weight = |&a: &usize, &b: &usize| edges.get(&(a.min(b), a.max(b))).copied().unwrap_or(0);
    let pairs = first.iter().enumerate().flat_map(|a| second.iter().enumerate().map(move |b| (a, b)));
    let heaviest = pairs.max_by_key(|((at, a), (bt, b))| (weight(a, b), std::cmp::Reverse((*at, *bt))));
    if let Some(((at, _), (bt, _))) = heaviest {
        if at < first.len() / 2 {
            first.reverse();
        }
        if bt > second.len() / 2 {
            second.reverse();
        }
    }
    first.append(&mut second);
}

/// How often control goes from one part to another by calls and tail calls; the lower index first.
fn call_graph(
    program: &Program,
    calls: &[IndirectCall],
    fragments: &[Fragment],
) -> HashMap<(usize, usize), u64> {
    let mut fragment_of = HashMap::new();
    for (fragment, index) in fragments.iter().zip(0..) {
        fragment.blocks.iter().for_each(|&block| _ = fragment_of.insert(block, index));
    }
    let mut edges = HashMap::new();
    let mut add = |from: usize, target: u32, count: u64| {
        if let Some(&to) = fragment_of.get(&target).filter(|&&to| to != from && count > 0) {
            *edges.entry((from.min(to), from.max(to))).or_insert(0) += count;
        }
    };
    for (fragment, index) in fragments.iter().zip(0..) {
        for &block in &fragment.blocks {
            let block = &program.blocks[block as usize];
            if let Some(Reference::Branch(target)) = block.call().map(|call| call.reference) {
                target.block().into_iter().for_each(|target| add(index, target, block.count));
            }
            if !matches!(block.exit, Exit::Jump { .. }) {
                block.edges().into_iter().for_each(|(target, count)| add(index, target, count));
            }
        }
    }
    for call in calls {
        if let (Some(&from), Some(&target)) =
            (fragment_of.get(&call.block), program.procedures[call.procedure as usize].blocks.first())
        {
            add(from, target, call.count);
        }
    }
    edges
}
