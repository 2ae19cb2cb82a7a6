//! A model that distinguishes the calls in which code is executed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use events::record::{Entries, Entry, Event, Execution, Mark, RecordShape};
use events::{Block, BlockId, Consumer, LABELS, MappedImage, Object, Thread};
use machine::{Model, ModelNeeds};
use trace::Header;

use super::entries::EntryNodes;
use super::locks::LockHolds;
use super::{CallAddresses, CallTree, CodeAddress, NodeId};
use crate::models::{ClassSums, UnitClasses};
use crate::names::{FunctionName, Names};
use crate::replay::{BlockFacts, CallStack, ProgramRegions};

/// A model with the call tree of what it consumes.
///
/// The model is given an instance of each block for each node of the tree in which the block is executed. What it
/// counts of that instance is therefore the node's, and its counts remain exact whatever they are.
pub struct WithCallTree<M> {
    /// The model. Its blocks are [`WithCallTree::instances`].
    pub model: M,
    tree: CallTree,
    definitions: DefinedBlocks,
    instances: BlockInstances,
    followed: Followed,
    /// The classes of units of work, if the program is asked for them.
    classes: UnitClasses,
    /// Records for the model.
    records: Vec<u64>,
}

/// The rule that assigns an execution to a node of the tree, with its state for each thread.
enum Followed {
    /// The function that is executed, and its callers.
    Calls(HashMap<u32, ThreadCalls>),
    /// The object for which the program says that it works.
    Objects(ObjectNodes),
    /// Why the kernel was entered.
    Entries(EntryNodes),
}

/// The nodes of objects.
#[derive(Default)]
struct ObjectNodes {
    /// By the numbers of objects, from 1; none of labels.
    nodes: Vec<Option<NodeId>>,
    /// By thread; none outside of objects.
    current: HashMap<u32, Option<NodeId>>,
    locks: LockHolds,
}

/// The open calls of a thread.
#[derive(Default)]
struct ThreadCalls {
    stack: CallStack<NodeId>,
    /// The last instruction of the last block: a call, if another function is entered.
    last: Option<CodeAddress>,
}

/// The blocks as they are defined, and what is known of them.
struct DefinedBlocks {
    names: Names,
    regions: ProgramRegions,
    blocks: Vec<Block>,
    shapes: Vec<RecordShape>,
    /// With the function's number in the tree.
    facts: Vec<(BlockFacts, u32)>,
}

/// The instances of blocks.
#[derive(Default)]
struct BlockInstances {
    all: Vec<Instance>,
    numbers: HashMap<(NodeId, BlockId), BlockId>,
    /// By block, the instance that was used last: most blocks are executed again in the same call.
    last: Vec<Option<(NodeId, BlockId)>>,
}

/// A block as it is executed in a node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The node.
    pub node: NodeId,
    /// The block's number in the execution.
    pub block: BlockId,
}

impl<M> WithCallTree<M> {
    /// A model that has consumed nothing; nodes are the objects for which functions are called, instead of functions.
    pub fn of_objects(model: M) -> WithCallTree<M> {
        WithCallTree { followed: Followed::Objects(ObjectNodes::default()), ..WithCallTree::new(model) }
    }

    /// A model that has consumed nothing.
    pub fn new(model: M) -> WithCallTree<M> {
        WithCallTree {
            model,
            tree: CallTree::default(),
            definitions: DefinedBlocks {
                names: Names::default(),
                regions: ProgramRegions::default(),
                blocks: Vec::new(),
                shapes: Vec::new(),
                facts: Vec::new(),
            },
            instances: BlockInstances::default(),
            followed: Followed::Calls(HashMap::new()),
            classes: UnitClasses::default(),
            records: Vec::new(),
        }
    }

    /// Also counts calls by class of units of work.
    pub fn with_classes(mut self) -> WithCallTree<M> {
        self.tree.class_calls = Some(ClassSums::default());
        self
    }

    /// The classes of units of work.
    pub fn classes(&self) -> &UnitClasses {
        &self.classes
    }

    /// A model that has consumed nothing; nodes are the reasons why the kernel was entered in the trace with this header.
    pub fn of_entries(model: M, header: &Header, call_name: fn(u32) -> String) -> WithCallTree<M> {
        let entries = EntryNodes::new(header, call_name);
        WithCallTree { followed: Followed::Entries(entries), ..WithCallTree::new(model) }
    }

    /// The call tree.
    pub fn tree(&self) -> &CallTree {
        &self.tree
    }

    /// The instance of each of the model's blocks, by the model's number.
    pub fn instances(&self) -> &[Instance] {
        &self.instances.all
    }

    /// How locks were held and waited for, if nodes are objects.
    pub(super) fn lock_holds(&self) -> Option<&LockHolds> {
        match &self.followed {
            Followed::Objects(objects) => Some(&objects.locks),
            Followed::Calls(_) | Followed::Entries(_) => None,
        }
    }

    /// The reasons why the kernel was entered, if nodes are these.
    pub(super) fn entries(&self) -> Option<&EntryNodes> {
        match &self.followed {
            Followed::Entries(entries) => Some(entries),
            Followed::Calls(_) | Followed::Objects(_) => None,
        }
    }

    /// A block of the execution.
    pub fn block(&self, block: BlockId) -> &Block {
        &self.definitions.blocks[block as usize]
    }
}

impl<M: Consumer> WithCallTree<M> {
    /// The instance of the last of these blocks in the chain of calls from the functions of the others, the outermost first. None
    /// without blocks.
    pub(crate) fn instance_of_chain(&mut self, chain: &[BlockId]) -> Option<BlockId> {
        let WithCallTree { model, tree, definitions, instances, .. } = self;
        let (mut node, mut site) = (None, None);
        for &block in chain {
            let (facts, function) = &definitions.facts[block as usize];
            let image = definitions.blocks[block as usize].image;
            let entry = CodeAddress { address: facts.address, image };
            node = Some(tree.node(node, *function, CallAddresses { site, entry }));
            site = Some(entry);
        }
        let (node, &block) = (node?, chain.last()?);
        Some(instances.find(Instance { node, block }, || model.define(&definitions.blocks[block as usize])))
    }

    /// Rewrites records so that they refer to instances of blocks.
    fn rewrite(&mut self, thread: Thread, records: &[u64]) {
        let WithCallTree { model, tree, definitions, instances, followed, classes, records: rewritten } =
            self;
        let number = thread.number;
        tree.thread = number;
        let mut thread = match followed {
            Followed::Calls(stacks) => FollowedThread::Calls(stacks.entry(thread.number).or_default()),
            Followed::Objects(objects) => {
                let current = objects.current.entry(thread.number).or_default();
                let locks = (&mut objects.locks, thread.number);
                FollowedThread::Object(ObjectThread { nodes: &objects.nodes, current, locks })
            }
            Followed::Entries(entries) => FollowedThread::Entries(entries, thread.number),
        };
        rewritten.clear();
        for entry in Entries::new(records, &definitions.shapes) {
            match entry {
                Entry::Execution(execution) => {
                    let block = execution.block;
                    let Some(node) = thread.node(execution, tree, definitions) else { continue };
                    let instance = instances.find(Instance { node, block }, || {
                        model.define(&definitions.blocks[block as usize]);
                    });
                    rewritten.push(Event::Block(instance).word());
                    rewritten.extend_from_slice(execution.addresses);
                }
                Entry::Mark(mark) => {
                    if let Some(calls) = &mut tree.class_calls {
                        calls.mark(number, mark, classes);
                    }
                    if let FollowedThread::Object(ObjectThread { locks: (locks, thread), .. }) = &mut thread {
                        locks.unit_mark(*thread, mark, classes);
                    }
                    thread.mark(mark, tree, definitions);
                    rewritten.push(Event::Mark(mark).word());
                }
            }
        }
    }
}

/// A thread whose executions belong to nodes of the tree.
enum FollowedThread<'a> {
    Calls(&'a mut ThreadCalls),
    /// The nodes of objects, and that of the thread.
    Object(ObjectThread<'a>),
    /// The nodes of reasons, and the thread's number.
    Entries(&'a mut EntryNodes, u32),
}

/// A thread that works for objects.
struct ObjectThread<'a> {
    nodes: &'a [Option<NodeId>],
    current: &'a mut Option<NodeId>,
    /// The locks of all threads, and the thread's number.
    locks: (&'a mut LockHolds, u32),
}

impl ObjectThread<'_> {
    fn node(&self, object: u32) -> Option<NodeId> {
        self.nodes.get((object as usize).wrapping_sub(1)).copied().flatten()
    }
}

impl FollowedThread<'_> {
    /// The node of the next execution.
    #[inline]
    fn node(
        &mut self,
        Execution { block, addresses, .. }: Execution,
        tree: &mut CallTree,
        definitions: &DefinedBlocks,
    ) -> Option<NodeId> {
        let ThreadCalls { stack, last } = match self {
            FollowedThread::Calls(calls) => calls,
            FollowedThread::Object(ObjectThread { current, locks: (locks, thread), .. }) => {
                let (_, function) = definitions.facts[block as usize];
                locks.executed(*thread, function, definitions.blocks[block as usize].words.len() as u64);
                return Some(current.unwrap_or_else(|| tree.outside()));
            }
            FollowedThread::Entries(entries, thread) => {
                return Some(entries.node(*thread, definitions.facts[block as usize].0.address, tree));
            }
        };
        let (facts, function) = &definitions.facts[block as usize];
        let image = definitions.blocks[block as usize].image;
        let from = last.replace(CodeAddress { address: facts.last(), image });
        stack.block(
            (facts, addresses),
            tree,
            |_, _| {},
            |tree, caller, replaced| {
                // A tail call is a call from where the one that it replaces came from.
                let site = replaced.map_or(from, |node| tree.nodes()[node as usize].site);
                let entry = CodeAddress { address: facts.address, image };
                tree.call(caller.copied(), *function, CallAddresses { site, entry })
            },
        );
        stack.top().copied()
    }

    fn mark(&mut self, mark: Mark, tree: &mut CallTree, definitions: &DefinedBlocks) {
        match (self, mark) {
            (FollowedThread::Calls(calls), mark) => {
                // All images of a process have the same instruction set.
                let set = definitions.blocks.last().map(|block| block.instruction_set);
                set.into_iter().for_each(|set| calls.stack.mark(mark, set));
            }
            (FollowedThread::Object(thread), mark) => {
                let (nodes, current) = (thread.nodes, *thread.current);
                let (locks, number) = &mut thread.locks;
                // The innermost call acquires the lock: what it is acquired for is the object of the call around.
                let purpose = || current.and_then(|node| tree.nodes()[node as usize].parent);
                let node = |lock: u32| nodes.get((lock as usize).wrapping_sub(1)).copied().flatten();
                locks.mark(*number, mark, node, purpose);
                if let Mark::ObjectEntered(object) | Mark::ObjectLeft(object) = mark {
                    *thread.current = thread.node(object);
                }
                if let (Mark::ObjectEntered(_), Some(node)) = (mark, *thread.current) {
                    tree.count_call(node);
                }
            }
            (FollowedThread::Entries(entries, thread), mark) => entries.mark(*thread, mark, tree),
        }
    }
}

impl BlockInstances {
    /// The number of an instance, which is defined at its first use.
    #[inline]
    fn find(&mut self, instance: Instance, define: impl FnOnce()) -> BlockId {
        let Instance { node, block } = instance;
        let last = &mut self.last[block as usize];
        if let Some((_, number)) = last.filter(|(last, _)| *last == node) {
            return number;
        }
        let all = &mut self.all;
        let number = *self.numbers.entry((node, block)).or_insert_with(|| {
            define();
            all.push(instance);
            all.len() as BlockId - 1
        });
        *last = Some((node, number));
        number
    }
}

impl<M: Consumer> Consumer for WithCallTree<M> {
    fn map(&mut self, image: &MappedImage) {
        self.definitions.names.add(image);
        self.model.map(image);
    }

    fn define(&mut self, block: &Block) {
        let DefinedBlocks { names, regions, blocks, shapes, facts } = &mut self.definitions;
        let facts_of_block = regions.facts(names, block);
        let region = &regions.regions[facts_of_block.region as usize];
        let unnamed = || Arc::new(FunctionName { image: region.image.clone(), function: UNNAMED.into() });
        let function = self.tree.function(&region.name.clone().unwrap_or_else(unnamed));
        facts.push((facts_of_block, function));
        shapes.push(RecordShape::new(block.instruction_set, &block.words, false));
        blocks.push(block.clone());
        self.instances.last.push(None);
    }

    fn object(&mut self, object: &Object) {
        if let Followed::Objects(ObjectNodes { nodes, .. }) = &mut self.followed {
            if object.parent == LABELS {
                object.identity.into_iter().for_each(|number| self.tree.label(number, &object.name));
                nodes.push(None);
                return;
            }
            let parent = (object.parent as usize)
                .checked_sub(1)
                .and_then(|parent| nodes.get(parent).copied().flatten());
            nodes.push(Some(self.tree.object(parent, object)));
        }
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.rewrite(thread, records);
        self.model.executed(thread, &self.records);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.classes.add(unit, class);
        self.model.unit_class(unit, class);
    }

    fn process_ended(&mut self, process: u32) {
        self.model.process_ended(process);
    }
}

/// Code without a symbol or a section.
const UNNAMED: &str = "(unnamed)";

impl<M: Model> Model for WithCallTree<M> {
    fn reset_counts(&mut self) {
        self.tree.reset_calls();
        self.model.reset_counts();
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.model.use_worker_thread()
    }

    fn needs(&self) -> ModelNeeds {
        self.model.needs()
    }
}
