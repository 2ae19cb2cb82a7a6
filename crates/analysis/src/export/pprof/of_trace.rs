//! The selected instructions of a trace in pprof's form.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use events::BlockId;
use events::record::Mark;

use crate::call_tree::{
    CallAddresses, CallProfile, CallTree, CodeAddress, InstructionCosts, NodeId, ProfilePart,
};
use crate::names::FunctionName;
use crate::replay::{Accesses, CallStack, Dictionary, Executed, SelectedInstructions, Visitor};
use table::{Column, Kind};

/// The counted events.
const EVENTS: [&str; 3] = ["instructions", "loads", "stores"];

/// Counts instructions, loads and stores in each chain of calls.
pub struct Pprof<'a> {
    dictionary: &'a Dictionary<'a>,
    accesses: &'a Accesses,
    tree: CallTree,
    /// By region, its function's number in the tree.
    functions: Vec<u32>,
    streams: Vec<PprofThread>,
    /// The executions of blocks whose instructions are all selected.
    whole: HashMap<(NodeId, BlockId), u64>,
    /// The executions of single instructions of other blocks.
    parts: HashMap<(NodeId, BlockId), Vec<u64>>,
}

/// The open calls of a thread, and the last instruction of its last block.
#[derive(Default)]
struct PprofThread {
    stack: CallStack<NodeId>,
    last: Option<CodeAddress>,
}

impl<'a> Pprof<'a> {
    /// Nothing executed yet.
    pub fn new(dictionary: &'a Dictionary<'a>, accesses: &'a Accesses) -> Pprof<'a> {
        let mut tree = CallTree::default();
        let regions = dictionary.regions.iter();
        let functions = regions.map(|region| {
            let unnamed =
                || Arc::new(FunctionName { image: region.image.clone(), function: region.label(0) });
            tree.function(&region.name.clone().unwrap_or_else(unnamed))
        });
        Pprof {
            dictionary,
            accesses,
            functions: functions.collect(),
            tree,
            streams: dictionary.trace.streams().iter().map(|_| PprofThread::default()).collect(),
            whole: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    /// Writes the counts. Returns the number of instructions; if it is 0, nothing is written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<u64> {
        let executed =
            in_order(&self.whole).map(|(&(node, block), &times)| self.costs(node, block, |_| times));
        let in_part = in_order(&self.parts)
            .map(|(&(node, block), times)| self.costs(node, block, |index| times[index]));
        let columns = EVENTS.map(|name| Column { name: name.into(), kind: Kind::Count }).into();
        let parts = vec![ProfilePart::whole(&self.tree, executed.chain(in_part))];
        super::write(CallProfile { tree: &self.tree, columns, event: 0, parts }, self.dictionary.trace, out)
    }

    /// The costs of the instructions of a block, by how often each was executed.
    fn costs(&self, node: NodeId, block: BlockId, times: impl Fn(usize) -> u64) -> InstructionCosts {
        let length = self.dictionary.facts(block).length() as usize;
        let mut rows: Vec<Vec<u64>> = (0..length).map(|index| vec![times(index), 0, 0]).collect();
        for access in self.accesses.of(block) {
            let row = &mut rows[access.index as usize];
            row[1 + usize::from(access.is_store)] += row[0];
        }
        InstructionCosts { node, block, rows }
    }
}

/// The entries of a map in an order that is the same each time.
fn in_order<T>(map: &HashMap<(NodeId, BlockId), T>) -> impl Iterator<Item = (&(NodeId, BlockId), &T)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| **key);
    entries.into_iter()
}

impl Visitor for Pprof<'_> {
    fn mark(&mut self, stream: u32, _before: u64, mark: Mark, _is_selected: bool) -> io::Result<()> {
        self.streams[stream as usize].stack.mark(mark, self.dictionary.trace.instruction_set());
        Ok(())
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let block = executed.execution.block;
        let (facts, functions) = (self.dictionary.facts(block), &self.functions);
        let image = self.dictionary.trace.blocks()[block as usize].image;
        let PprofThread { stack, last } = &mut self.streams[executed.stream as usize];
        let from = last.replace(CodeAddress { address: facts.last(), image });
        stack.block(
            (facts, executed.execution.addresses),
            &mut self.tree,
            |_, _| {},
            |tree, caller, replaced| {
                let site = replaced.map_or(from, |node| tree.nodes()[node as usize].site);
                let addresses = CallAddresses { site, entry: CodeAddress { address: facts.address, image } };
                tree.call(caller.copied(), functions[facts.region as usize], addresses)
            },
        );
        let Some(&node) = stack.top() else { return Ok(()) };
        match executed.selected {
            SelectedInstructions::None => {}
            SelectedInstructions::All => *self.whole.entry((node, block)).or_default() += 1,
            SelectedInstructions::Some(which) => {
                let parts = self.parts.entry((node, block)).or_insert_with(|| vec![0; which.len()]);
                parts.iter_mut().zip(which).for_each(|(part, selected)| *part += u64::from(*selected));
            }
        }
        Ok(())
    }
}
