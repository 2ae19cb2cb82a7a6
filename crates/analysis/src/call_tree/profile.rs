//! The costs of single instructions by node of the call tree: what profiles for other tools are made from.

use events::BlockId;

use super::{CallTree, NodeId, WithCallTree};
use crate::models::InstructionResults;
use crate::table::Column;

/// What the instructions of a block cost in a node of the call tree.
#[derive(Clone, Debug)]
pub struct InstructionCosts {
    /// The node.
    pub node: NodeId,
    /// The block's number in the trace.
    pub block: BlockId,
    /// For each instruction, a number for each event.
    pub rows: Vec<Vec<u64>>,
}

/// The costs of all instructions by node of the call tree.
pub struct CallProfile<'a> {
    /// The call tree.
    pub tree: &'a CallTree,
    /// The events.
    pub columns: Vec<Column>,
    /// The event that tools show first, as an index of `columns`.
    pub event: usize,
    /// The costs; a node's block is in it once.
    pub costs: Box<dyn Iterator<Item = InstructionCosts> + 'a>,
}

impl<'a> CallProfile<'a> {
    /// The costs that a model has counted.
    pub fn new<M, R: InstructionResults>(
        execution: &'a WithCallTree<M>,
        results: &'a R,
        event: Option<usize>,
    ) -> CallProfile<'a> {
        let instances = execution.instances().iter().enumerate();
        let costs = instances.filter_map(|(number, instance)| {
            let rows = results.rows(number as BlockId)?;
            Some(InstructionCosts { node: instance.node, block: instance.block, rows })
        });
        CallProfile {
            tree: execution.tree(),
            columns: results.columns(),
            event: event.unwrap_or(R::UNIT_EVENT),
            costs: Box::new(costs),
        }
    }
}
