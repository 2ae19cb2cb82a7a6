//! The order of procedures by call-chain clustering (Ottoni and Maher, "Optimizing function placement for large-scale
//! data-center applications", 2017): each procedure follows its most frequent caller's cluster, up to the size of a page;
//! clusters are placed by how densely they are executed.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::call_graph::call_graph;
use super::{executed, fragment_size};
use crate::assemble::Fragment;
use crate::profile::IndirectCall;
use crate::program::Program;

/// The most bytes of a cluster: a page of the processors.
const MOST_BYTES: u64 = 8192;
/// A cluster is not joined to one that is executed so many times as densely.
const DILUTION: u64 = 8;

/// Orders parts of procedures.
pub fn order(program: &Program, calls: &[IndirectCall], fragments: Vec<Fragment>) -> Vec<Fragment> {
    let mut callers: HashMap<usize, (u64, Reverse<usize>)> = HashMap::new();
    for (&(from, to), &count) in &call_graph(program, calls, &fragments) {
        let best = callers.entry(to).or_insert((0, Reverse(usize::MAX)));
        *best = (*best).max((count, Reverse(from)));
    }
    let mut clusters: Vec<Cluster> = fragments
        .iter()
        .enumerate()
        .map(|(at, fragment)| Cluster {
            members: vec![at],
            size: fragment_size(program, fragment).max(1),
            executed: executed(program, fragment),
        })
        .collect();
    let mut cluster_of: Vec<usize> = (0..fragments.len()).collect();
    let mut hottest: Vec<usize> = (0..fragments.len()).collect();
    hottest.sort_by_key(|&at| (Reverse(clusters[at].density()), at));
    for at in hottest {
        let Some(&(_, Reverse(caller))) = callers.get(&at) else { continue };
        let (into, from) = (cluster_of[caller], cluster_of[at]);
        let is_close = |into: &Cluster, from: &Cluster| {
            into.size + from.size <= MOST_BYTES && into.density() <= from.density().saturating_mul(DILUTION)
        };
        if into == from || !is_close(&clusters[into], &clusters[from]) {
            continue;
        }
        let other = std::mem::take(&mut clusters[from]);
        other.members.iter().for_each(|&member| cluster_of[member] = into);
        clusters[into].size += other.size;
        clusters[into].executed = clusters[into].executed.saturating_add(other.executed);
        clusters[into].members.extend(other.members);
    }
    clusters.retain(|cluster| !cluster.members.is_empty());
    clusters.sort_by_key(|cluster| (Reverse(cluster.density()), cluster.members[0]));
    let mut fragments: Vec<Option<Fragment>> = fragments.into_iter().map(Some).collect();
    let order = clusters.into_iter().flat_map(|cluster| cluster.members);
    order.filter_map(|at| fragments[at].take()).collect()
}

/// Parts of procedures that follow each other.
#[derive(Default)]
struct Cluster {
    members: Vec<usize>,
    size: u64,
    executed: u64,
}

impl Cluster {
    /// Executed instructions for each byte.
    fn density(&self) -> u64 {
        self.executed / self.size.max(1)
    }
}
