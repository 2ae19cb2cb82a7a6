//! The order of procedures: the call graph is collapsed along its heaviest edges (Pettis and Hansen). Two sequences are
//! joined at the ends that bring caller and callee of the edge closest together.

use std::collections::{BinaryHeap, HashMap};

use super::call_graph::call_graph;
use super::executed;
use crate::assemble::Fragment;
use crate::profile::IndirectCall;
use crate::program::Program;

/// Orders parts of procedures.
pub fn order(program: &Program, calls: &[IndirectCall], fragments: Vec<Fragment>) -> Vec<Fragment> {
    let mut edges: HashMap<(usize, usize), u64> = HashMap::new();
    for ((from, to), count) in call_graph(program, calls, &fragments) {
        *edges.entry((from.min(to), from.max(to))).or_insert(0) += count;
    }
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
