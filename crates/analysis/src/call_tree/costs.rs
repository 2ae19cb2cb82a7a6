//! The costs of a call tree: each node's own, and with everything that it calls.

use std::collections::HashMap;

use super::{CallTree, NodeId, WithCallTree};
use crate::models::InstructionResults;
use table::Column;

/// A model's results by node of the call tree. Rows have a number for each column.
pub struct CallCosts<'a, R> {
    pub(super) tree: &'a CallTree,
    pub(super) results: &'a R,
    pub(super) columns: Vec<Column>,
    /// What everything costs.
    pub(super) total: Vec<u64>,
    /// By node, how often it was called.
    calls: Vec<u64>,
    /// By node, what its own instructions cost.
    own: Vec<Vec<u64>>,
    /// By node, with everything that it calls.
    inclusive: Vec<Vec<u64>>,
}

/// The calls of one function by another, or all calls of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub calls: u64,
    /// With everything called. A call within a call of the same kind is a part of that one, and counted once.
    pub inclusive: Vec<u64>,
}

impl Calls {
    fn new(columns: usize) -> Calls {
        Calls { calls: 0, inclusive: vec![0; columns] }
    }
}

impl<'a, R: InstructionResults> CallCosts<'a, R> {
    /// The costs that a model, or one of several, has counted.
    pub fn new<M>(execution: &'a WithCallTree<M>, results: &'a R) -> CallCosts<'a, R> {
        let (tree, columns) = (execution.tree(), results.columns());
        let mut own = vec![vec![0; columns.len()]; tree.nodes().len()];
        let shown = tree.merged_objects();
        let mut calls = vec![0; tree.nodes().len()];
        let of_nodes = tree.calls(results.part());
        of_nodes.iter().zip(&shown).for_each(|(of_node, &shown)| calls[shown as usize] += of_node);
        for (number, instance) in execution.instances().iter().enumerate() {
            for row in results.rows(number as u32).into_iter().flatten() {
                add(&mut own[shown[instance.node as usize] as usize], &row);
            }
        }
        let mut total = vec![0; columns.len()];
        own.iter().for_each(|own| add(&mut total, own));
        let mut inclusive = own.clone();
        for (node, parent) in tree.nodes().iter().map(|node| node.parent).enumerate().rev() {
            if let Some(parent) = parent {
                let costs = std::mem::take(&mut inclusive[node]);
                add(&mut inclusive[parent as usize], &costs);
                inclusive[node] = costs;
            }
        }
        CallCosts { tree, results, columns, total, calls, own, inclusive }
    }

    /// What a node's own instructions cost.
    pub fn own(&self, node: NodeId) -> &[u64] {
        &self.own[node as usize]
    }

    /// How often a node was called.
    pub fn calls(&self, node: NodeId) -> u64 {
        self.calls[node as usize]
    }

    /// What a node costs with everything that it calls.
    pub fn inclusive(&self, node: NodeId) -> &[u64] {
        &self.inclusive[node as usize]
    }

    /// What everything costs.
    pub fn total(&self) -> &[u64] {
        &self.total
    }

    /// By function, all its calls; and what its own instructions cost. Functions without costs or calls are left out.
    pub(super) fn by_function(&self) -> HashMap<u32, (Calls, Vec<u64>)> {
        let width = self.columns.len();
        let mut functions: HashMap<u32, (Calls, Vec<u64>)> = HashMap::new();
        for (id, node) in self.used() {
            let (calls, own) =
                functions.entry(node.function).or_insert_with(|| (Calls::new(width), vec![0; width]));
            calls.calls += self.calls(id);
            add(own, self.own(id));
            let is_open = |caller: NodeId| self.tree.nodes()[caller as usize].function == node.function;
            if !self.tree.callers(id).any(is_open) {
                add(&mut calls.inclusive, self.inclusive(id));
            }
        }
        functions
    }

    /// By calling and called function, the calls between them.
    pub(super) fn by_caller(&self) -> HashMap<(u32, u32), Calls> {
        let function = |node: NodeId| self.tree.nodes()[node as usize].function;
        let caller_of = |node: NodeId| self.tree.nodes()[node as usize].parent.map(function);
        let mut edges: HashMap<(u32, u32), Calls> = HashMap::new();
        for (id, node) in self.used() {
            let Some(caller) = caller_of(id) else { continue };
            let edge = edges.entry((caller, node.function)).or_insert_with(|| Calls::new(self.columns.len()));
            edge.calls += self.calls(id);
            let is_open = |open: NodeId| function(open) == node.function && caller_of(open) == Some(caller);
            if !self.tree.callers(id).any(is_open) {
                add(&mut edge.inclusive, self.inclusive(id));
            }
        }
        edges
    }

    /// The nodes that were called, or cost anything: others belong to a warm-up.
    pub(super) fn used(&self) -> impl Iterator<Item = (NodeId, &'a super::Node)> {
        let nodes = self.tree.nodes().iter().enumerate().map(|(id, node)| (id as NodeId, node));
        nodes.filter(|&(id, _)| self.calls(id) > 0 || self.inclusive(id).iter().any(|&cost| cost > 0))
    }
}

pub(super) fn add(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
