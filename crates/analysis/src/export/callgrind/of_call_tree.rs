//! A model's results in callgrind's form, from the call tree. Functions in a class of units of work have its name behind theirs, as
//! callgrind writes functions in different contexts: `insert'New-Order`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use trace::Trace;

use super::writer::{self, CallCost, CallgrindProfile, FunctionCosts, SiteCosts};
use crate::call_tree::{CallProfile, CallTree, CodeAddress, InstructionCosts, NodeId, ProfilePart};
use crate::export::event_name;
use crate::names::Names;
use table::Column;

/// The names that callgrind gives to events.
const KNOWN: [(&str, &str); 3] = [("instructions", "Ir"), ("loads", "Dr"), ("stores", "Dw")];

/// The caller's function, the instruction that calls, and the callee's function.
type Edge = (u32, CodeAddress, u32);

/// Writes all events of a profile. If a function calls another one from several instructions in the same chain of calls,
/// all those calls stand at the first of them.
pub fn write(costs: CallProfile, trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let CallProfile { tree, columns, parts, .. } = costs;
    let mut total = vec![0; columns.len()];
    let functions = parts.into_iter().flat_map(|part| functions(tree, part, trace, &mut total)).collect();
    let profile = CallgrindProfile { events: columns.iter().map(event).collect(), total, functions };
    writer::write(&profile, trace, &Names::of_trace(trace), out)
}

/// The functions of a part of the execution, whose costs are added to the total.
fn functions(tree: &CallTree, part: ProfilePart, trace: &Trace, total: &mut [u64]) -> Vec<FunctionCosts> {
    let mut functions: BTreeMap<u32, BTreeMap<CodeAddress, SiteCosts>> = BTreeMap::new();
    let mut inclusive = vec![vec![0; total.len()]; tree.nodes().len()];
    for InstructionCosts { node, block, rows } in part.costs {
        let block = &trace.blocks()[block as usize];
        let instructions = functions.entry(tree.nodes()[node as usize].function).or_default();
        for (address, row) in block.addresses().zip(&rows) {
            instructions.entry(CodeAddress { address, image: block.image }).or_default().add(row);
            add(&mut inclusive[node as usize], row);
            add(total, row);
        }
    }
    for node in (0..tree.nodes().len()).rev() {
        if let Some(parent) = tree.nodes()[node].parent {
            let costs = std::mem::take(&mut inclusive[node]);
            add(&mut inclusive[parent as usize], &costs);
            inclusive[node] = costs;
        }
    }
    let name = |function: u32| {
        let name = &tree.functions()[function as usize].function;
        part.class.as_ref().map_or_else(|| name.clone(), |class| format!("{name}'{class}"))
    };
    for ((caller, site, callee), (entry, count, inclusive)) in calls(tree, &part.calls, &inclusive) {
        // Calls that began in another part count as one: tools take the costs of no calls for those of the caller itself.
        let call = CallCost { callee: name(callee), entry, count: count.max(1), inclusive };
        functions.entry(caller).or_default().entry(site).or_default().calls.push(call);
    }
    let functions = functions.into_iter();
    functions.map(|(function, instructions)| FunctionCosts { name: name(function), instructions }).collect()
}

/// By edge, where the callee is entered, the number of calls, and their cost with all that they call. A call within a call
/// of the same edge is a part of that one. Calls and costs are given by node.
fn calls(
    tree: &CallTree,
    calls_of_nodes: &[u64],
    inclusive: &[Vec<u64>],
) -> BTreeMap<Edge, (CodeAddress, u64, Vec<u64>)> {
    let mut calls: BTreeMap<Edge, (CodeAddress, u64, Vec<u64>)> = BTreeMap::new();
    for (id, node) in (0..).zip(tree.nodes()) {
        let costs = &inclusive[id as usize];
        let Some(edge) = edge_to(tree, id).filter(|_| costs.iter().any(|cost| *cost > 0)) else { continue };
        let call = calls.entry(edge).or_insert_with(|| (node.entry, 0, vec![0; costs.len()]));
        call.1 += calls_of_nodes[id as usize];
        let mut callers = tree.callers(id);
        if !callers.any(|open| edge_to(tree, open) == Some(edge)) {
            add(&mut call.2, costs);
        }
    }
    calls
}

/// The edge that leads to a node.
fn edge_to(tree: &CallTree, node: NodeId) -> Option<Edge> {
    let called = &tree.nodes()[node as usize];
    let caller = &tree.nodes()[called.parent? as usize];
    Some((caller.function, called.site.unwrap_or(caller.entry), called.function))
}

/// The short name of an event, and its description.
fn event(column: &Column) -> (String, Option<String>) {
    if let Some((_, short)) = KNOWN.iter().find(|(name, _)| *name == column.name) {
        return ((*short).into(), None);
    }
    let short = event_name(column);
    let description = (short != column.name).then(|| column.name.clone());
    (short, description)
}

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
