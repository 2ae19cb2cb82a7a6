//! The costs of single instructions by node of the call tree: what profiles for other tools are made from.

use events::BlockId;

use super::{CallTree, NodeId, WithCallTree};
use crate::models::{ExecutionPart, InstructionResults};
use table::Column;

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
    /// The whole execution, or the classes of units of work and what is outside of units.
    pub parts: Vec<ProfilePart<'a>>,
}

/// The costs of a part of the execution.
pub struct ProfilePart<'a> {
    /// The name of the class of units of work, if the execution is divided among classes.
    pub class: Option<String>,
    /// By node, the number of calls.
    pub calls: Vec<u64>,
    /// The costs; a node's block is in it once.
    pub costs: Box<dyn Iterator<Item = InstructionCosts> + 'a>,
}

impl<'a> CallProfile<'a> {
    /// The costs that a model has counted. Without an event, tools show the model's own first.
    pub fn new<M, R: InstructionResults>(
        execution: &'a WithCallTree<M>,
        results: &'a R,
        event: Option<usize>,
    ) -> CallProfile<'a> {
        CallProfile {
            tree: execution.tree(),
            columns: results.columns(),
            event: event.unwrap_or(R::UNIT_EVENT),
            parts: vec![ProfilePart::new(execution, None, results)],
        }
    }

    /// The same of the classes of units of work with these names.
    pub fn of_classes<M, R: InstructionResults>(
        execution: &'a WithCallTree<M>,
        classes: Vec<(&str, &'a R)>,
        event: Option<usize>,
    ) -> CallProfile<'a> {
        CallProfile {
            tree: execution.tree(),
            columns: classes.first().map_or(Vec::new(), |(_, results)| results.columns()),
            event: event.unwrap_or(R::UNIT_EVENT),
            parts: classes
                .into_iter()
                .map(|(class, results)| ProfilePart::new(execution, Some(class.into()), results))
                .collect(),
        }
    }
}

impl<'a> ProfilePart<'a> {
    fn new<M, R: InstructionResults>(
        execution: &'a WithCallTree<M>,
        class: Option<String>,
        results: &'a R,
    ) -> ProfilePart<'a> {
        let instances = execution.instances().iter().enumerate();
        let costs = instances.filter_map(|(number, instance)| {
            let rows = results.rows(number as BlockId)?;
            Some(InstructionCosts { node: instance.node, block: instance.block, rows })
        });
        ProfilePart { class, calls: execution.tree().calls(results.part()), costs: Box::new(costs) }
    }

    /// These costs, of everything that was executed.
    pub(crate) fn whole(
        tree: &CallTree,
        costs: impl Iterator<Item = InstructionCosts> + 'a,
    ) -> ProfilePart<'a> {
        ProfilePart { class: None, calls: tree.calls(ExecutionPart::Whole), costs: Box::new(costs) }
    }
}
