//! Where counters are needed in a flow graph, and what follows from them (Knuth and Stevenson, "Optimal measurement points
//! for program frequency counts", 1973): as much flows into a vertex as out of it, so that the edges of a spanning tree
//! need no counters. The tree is of maximum weight, so that the most frequent edges are in it.

use petgraph::unionfind::UnionFind;

/// An edge of a flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEdge {
    /// The vertex that it leaves.
    pub from: usize,
    /// The vertex that it enters.
    pub to: usize,
    /// How its flow can be learned.
    pub measure: FlowMeasure,
}

/// How the flow of an edge can be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowMeasure {
    /// Only from the flow of other edges.
    Derived,
    /// By a counter, which costs so much.
    Counter(u64),
    /// It is counted otherwise.
    Known,
}

/// The edges of a spanning tree; the others have counters, or are known.
#[derive(Clone, Debug)]
pub struct SpanningTree {
    is_in_tree: Vec<bool>,
    vertices: usize,
}

impl SpanningTree {
    /// The tree of a graph; `None` if edges without a possible counter form a cycle, so that their flow does not follow
    /// from that of others.
    pub fn new(vertices: usize, edges: &[FlowEdge]) -> Option<SpanningTree> {
        let mut sets = UnionFind::<usize>::new(vertices);
        let mut is_in_tree = vec![false; edges.len()];
        let mut counters = Vec::new();
        for (edge, index) in edges.iter().zip(0..) {
            match edge.measure {
                FlowMeasure::Derived if !sets.union(edge.from, edge.to) => return None,
                FlowMeasure::Derived => is_in_tree[index] = true,
                FlowMeasure::Counter(cost) => counters.push((std::cmp::Reverse(cost), index)),
                FlowMeasure::Known => {}
            }
        }
        counters.sort_unstable();
        for (_, index) in counters {
            is_in_tree[index] = sets.union(edges[index].from, edges[index].to);
        }
        Some(SpanningTree { is_in_tree, vertices })
    }

    /// Whether an edge needs a counter.
    pub fn has_counter(&self, edges: &[FlowEdge], index: usize) -> bool {
        !self.is_in_tree[index] && edges[index].measure != FlowMeasure::Known
    }

    /// Completes the flow of all edges from those outside the tree. Flow is conserved at all vertices but the first one of
    /// each connected part, where that follows.
    pub fn complete(&self, edges: &[FlowEdge], flow: &mut [u64]) {
        let mut surplus = vec![0u64; self.vertices];
        let mut incident = vec![Vec::new(); self.vertices];
        for (edge, index) in edges.iter().zip(0..) {
            if self.is_in_tree[index] {
                incident[edge.from].push(index);
                incident[edge.to].push(index);
            } else {
                surplus[edge.to] = surplus[edge.to].wrapping_add(flow[index]);
                surplus[edge.from] = surplus[edge.from].wrapping_sub(flow[index]);
            }
        }
        // Vertices with the edge to their parent, parents first.
        let mut order = Vec::with_capacity(self.vertices);
        let mut is_reached = vec![false; self.vertices];
        for root in 0..self.vertices {
            if std::mem::replace(&mut is_reached[root], true) {
                continue;
            }
            let mut next = order.len();
            let mut vertex = root;
            loop {
                for &index in &incident[vertex] {
                    let other = edges[index].from + edges[index].to - vertex;
                    if !std::mem::replace(&mut is_reached[other], true) {
                        order.push((other, vertex, index));
                    }
                }
                let Some(&(child, ..)) = order.get(next) else { break };
                (vertex, next) = (child, next + 1);
            }
        }
        for &(vertex, parent, index) in order.iter().rev() {
            let is_towards_parent = edges[index].from == vertex;
            flow[index] = if is_towards_parent { surplus[vertex] } else { surplus[vertex].wrapping_neg() };
            surplus[parent] = surplus[parent].wrapping_add(surplus[vertex]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Random closed walks through a random graph: the flow of the tree follows from that of the other edges.
        #[test]
        fn flow_follows_from_the_counters(
            drawn in prop::collection::vec((0..12usize, 0..12usize, 0..4u64), 1..40),
            walks in prop::collection::vec((0..40usize, prop::collection::vec(any::<prop::sample::Index>(), 1..30)), 1..10),
        ) {
            let mut edges: Vec<FlowEdge> = drawn
                .iter()
                .map(|&(from, to, kind)| FlowEdge {
                    from,
                    to,
                    measure: if kind == 3 { FlowMeasure::Known } else { FlowMeasure::Counter(kind) },
                })
                .collect();
            // From each vertex back to the first one, so that walks can be closed.
            edges.extend((1..12).map(|from| FlowEdge { from, to: 0, measure: FlowMeasure::Derived }));
            let tree = SpanningTree::new(12, &edges).unwrap();
            let mut expected = vec![0u64; edges.len()];
            for (start, choices) in walks {
                let first = edges[start % drawn.len()].from;
                let mut at = first;
                for choice in choices {
                    let out: Vec<usize> = (0..edges.len()).filter(|&index| edges[index].from == at).collect();
                    if out.is_empty() {
                        break;
                    }
                    let taken = out[choice.index(out.len())];
                    expected[taken] += 1;
                    at = edges[taken].to;
                }
                // Closed through edges that nothing else shows: to the vertex outside, and from it.
                edges.push(FlowEdge { from: at, to: first, measure: FlowMeasure::Known });
                expected.push(1);
            }
            let tree = SpanningTree { is_in_tree: {
                let mut all = tree.is_in_tree.clone();
                all.resize(edges.len(), false);
                all
            }, ..tree };
            let mut flow: Vec<u64> = expected.iter().zip(&tree.is_in_tree).map(|(&n, &derived)| if derived { 77 } else { n }).collect();
            tree.complete(&edges, &mut flow);
            prop_assert_eq!(flow, expected);
        }
    }

    #[test]
    fn cycles_without_counters_are_refused() {
        let edge = |from, to| FlowEdge { from, to, measure: FlowMeasure::Derived };
        assert!(SpanningTree::new(3, &[edge(0, 1), edge(1, 2)]).is_some());
        assert!(SpanningTree::new(3, &[edge(0, 1), edge(1, 2), edge(0, 2)]).is_none());
    }
}
