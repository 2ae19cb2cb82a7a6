//! The call tree of an execution: a node for each chain of calls, so that costs can be attributed to a function with
//! everything that it calls, to its callers, and to its callees.

mod chains;
mod costs;
mod entries;
mod entry_tables;
mod locks;
mod model;
mod objects;
mod profile;
mod tables;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use events::{LABELLED_NUMBER, Object};

pub use chains::{CallChain, CallChains, NoEvent, find_event};
pub use costs::CallCosts;
pub use entries::EntryRows;
pub use entry_tables::entry_tables;
pub use locks::{LockRows, lock_table};
pub use model::WithCallTree;
pub use objects::{ObjectReader, ObjectRows, object_tables};
pub use profile::{CallProfile, InstructionCosts, ProfilePart};
pub use tables::{CallRows, CallSelection, call_tables};

use crate::models::{ClassSums, ExecutionPart};
use crate::names::FunctionName;

/// A node's number.
pub type NodeId = u32;

/// Recursive calls deeper than this are merged with the nearest open call of the same function.
const MAX_DEPTH: u32 = 256;
/// The number of nodes from which on other calls are merged, too, or have no caller.
const MAX_NODES: usize = 1 << 18;

/// The calls of all threads, merged by their chain of functions.
#[derive(Debug, Default)]
pub struct CallTree {
    nodes: Vec<CallTreeNode>,
    /// By parent and function.
    children: HashMap<(Option<NodeId>, u32), NodeId>,
    functions: Vec<Arc<FunctionName>>,
    function_numbers: HashMap<Arc<FunctionName>, u32>,
    /// Calls whose chain is not shown completely.
    merged: u64,
    outside: Option<NodeId>,
    /// Calls of nodes by class of units of work, if they are wanted.
    class_calls: Option<ClassSums<NodeId, u64>>,
    /// The thread that calls.
    thread: u32,
    /// By function and identity, the nodes of objects.
    identities: HashMap<(u32, u64), BTreeSet<NodeId>>,
    /// How numbers in names of objects are shown.
    labels: HashMap<u64, String>,
}

/// The name of the node of all that is executed for no object.
const OUTSIDE: &str = "(outside)";

/// A chain of calls.
#[derive(Debug)]
pub struct CallTreeNode {
    /// The caller's node; None for the function in which an execution or a recording begins.
    pub parent: Option<NodeId>,
    /// The function's index in [`CallTree::functions`].
    pub function: u32,
    /// The number of callers.
    pub depth: u32,
    /// How often it was called.
    pub calls: u64,
    /// The instruction that called it first; none for the function in which an execution or a recording begins.
    pub site: Option<CodeAddress>,
    /// The instruction at which it was entered first.
    pub entry: CodeAddress,
}

/// An instruction of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeAddress {
    /// Its run-time address.
    pub address: u64,
    /// Its image.
    pub image: Option<u32>,
}

/// Where a call goes from, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallAddresses {
    pub site: Option<CodeAddress>,
    pub entry: CodeAddress,
}

impl CallTree {
    /// The nodes; a caller stands before its callees.
    pub fn nodes(&self) -> &[CallTreeNode] {
        &self.nodes
    }

    /// The functions of the nodes.
    pub fn functions(&self) -> &[Arc<FunctionName>] {
        &self.functions
    }

    /// Calls that were merged because the tree was too deep or too large.
    pub fn merged(&self) -> u64 {
        self.merged
    }

    /// The callers of a node, the nearest first.
    pub fn callers(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.open_calls(self.nodes[node as usize].parent)
    }

    /// A node and its callers, the nearest first.
    fn open_calls(&self, node: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        std::iter::successors(node, |&node| self.nodes[node as usize].parent)
    }

    /// The number of a function.
    pub(crate) fn function(&mut self, name: &Arc<FunctionName>) -> u32 {
        if let Some(&number) = self.function_numbers.get(name) {
            return number;
        }
        let number = self.functions.len() as u32;
        self.functions.push(name.clone());
        self.function_numbers.insert(name.clone(), number);
        number
    }

    /// A call of a function from a node; None if there is no caller. Returns the node of the call.
    pub(crate) fn call(&mut self, caller: Option<NodeId>, function: u32, addresses: CallAddresses) -> NodeId {
        let node = self.node(caller, function, addresses);
        self.count_call(node);
        node
    }

    /// How often each node was called in a part of the execution.
    fn calls(&self, part: ExecutionPart) -> Vec<u64> {
        let mut calls: Vec<u64> = self.nodes.iter().map(|node| node.calls).collect();
        if let (Some(of_classes), true) = (&self.class_calls, part != ExecutionPart::Whole) {
            calls.fill(0);
            of_classes.of_part(part).for_each(|(node, count)| calls[node as usize] += count);
        }
        calls
    }

    /// The node of an object.
    pub(crate) fn object(&mut self, parent: Option<NodeId>, object: &Object) -> NodeId {
        let Some(identity) = object.identity else { return self.named(parent, &object.name) };
        let name = FunctionName { image: String::new(), function: object.name.clone() };
        let key = (self.function(&Arc::new(name)), identity);
        let alike = self.identities.get(&key).into_iter().flatten();
        let known = alike.copied().find(|&node| self.nodes[node as usize].parent == parent);
        // Objects of the same name, from different processes, have nodes of their own.
        let node = known.unwrap_or_else(|| {
            let child = (parent, key.0);
            let without_identity = self.children.remove(&child);
            let node = self.named(parent, &object.name);
            match without_identity {
                Some(other) => self.children.insert(child, other),
                None => self.children.remove(&child),
            };
            node
        });
        self.identities.entry(key).or_default().insert(node);
        node
    }

    /// A number in names of objects has a label.
    pub(crate) fn label(&mut self, number: u64, name: &str) {
        self.labels.insert(number, name.into());
    }

    /// The name of a function or an object, with labels instead of numbers that have them.
    pub(crate) fn shown_name(&self, function: u32) -> String {
        let name = &self.functions[function as usize].function;
        let mut parts = name.split(LABELLED_NUMBER);
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) =
                part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
            let label = number.parse().ok().and_then(|number: u64| self.labels.get(&number));
            shown.push_str(label.map_or(number, String::as_str));
            shown.push_str(rest);
        }
        shown
    }

    /// A node that is no function.
    pub(crate) fn named(&mut self, parent: Option<NodeId>, name: &str) -> NodeId {
        let name = FunctionName { image: String::new(), function: name.into() };
        let function = self.function(&Arc::new(name));
        self.node(parent, function, CallAddresses { site: None, entry: CodeAddress::default() })
    }

    /// Of each node the one that it is shown as. Processes that help another one, such as a query's parallel workers, know only
    /// the lower objects: one directly below an outermost object is that of the same name and identity further below, if there is
    /// one, and so are the objects below it.
    pub(crate) fn merged_objects(&self) -> Vec<NodeId> {
        let mut shown: Vec<NodeId> = (0..self.nodes.len() as NodeId).collect();
        let keys =
            self.identities.iter().flat_map(|(&key, nodes)| nodes.iter().map(move |&node| (node, key)));
        // A parent's number is less than those of its children.
        for (node, key) in keys.collect::<BTreeMap<_, _>>() {
            let Some(parent) = self.nodes[node as usize].parent else { continue };
            let shown_parent = shown[parent as usize];
            let is_outermost = self.nodes[parent as usize].parent.is_none();
            let is_shown_as = |other: &NodeId| match self.nodes[*other as usize].parent {
                Some(of) if of == parent => false,
                Some(of) if is_outermost => self.open_calls(Some(of)).any(|caller| caller == parent),
                of => shown_parent != parent && of == Some(shown_parent),
            };
            if let Some(&other) = self.identities[&key].iter().find(|other| is_shown_as(other)) {
                shown[node as usize] = other;
            }
        }
        shown
    }

    /// The node of all that is executed for no object.
    pub(crate) fn outside(&mut self) -> NodeId {
        if let Some(node) = self.outside {
            return node;
        }
        let node = self.named(None, OUTSIDE);
        self.outside = Some(node);
        node
    }

    /// A call of a node, or for an object, begins.
    pub(crate) fn count_call(&mut self, node: NodeId) {
        self.nodes[node as usize].calls += 1;
        if let Some(calls) = &mut self.class_calls {
            *calls.now(self.thread, node) += 1;
        }
    }

    fn node(&mut self, caller: Option<NodeId>, function: u32, addresses: CallAddresses) -> NodeId {
        if let Some(&node) = self.children.get(&(caller, function)) {
            return node;
        }
        let depth = caller.map_or(0, |caller| self.nodes[caller as usize].depth + 1);
        let is_full = self.nodes.len() >= MAX_NODES;
        if depth > MAX_DEPTH || is_full {
            let is_same = |node: &NodeId| self.nodes[*node as usize].function == function;
            let open = self.open_calls(caller).find(is_same);
            if let Some(open) = open {
                self.merged += 1;
                return open;
            }
        }
        if !is_full {
            return self.add(caller, function, depth, addresses);
        }
        self.merged += 1;
        match self.children.get(&(None, function)) {
            Some(&root) => root,
            None => self.add(None, function, 0, addresses),
        }
    }

    fn add(&mut self, parent: Option<NodeId>, function: u32, depth: u32, addresses: CallAddresses) -> NodeId {
        let number = self.nodes.len() as NodeId;
        // A call that has no caller in the tree was called from nowhere.
        let site = addresses.site.filter(|_| parent.is_some());
        self.nodes.push(CallTreeNode { parent, function, depth, calls: 0, site, entry: addresses.entry });
        self.children.insert((parent, function), number);
        number
    }

    /// Sets the numbers of calls to 0.
    fn reset_calls(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.calls = 0);
        self.merged = 0;
    }
}
