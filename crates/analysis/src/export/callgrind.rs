//! Callgrind's form, which KCachegrind and `callgrind_annotate` read: instructions, loads and stores of each
//! instruction, line and function, and of each call with all that it calls.

mod of_call_tree;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use events::BlockId;
use events::record::Mark;

use crate::call_tree::CodeAddress;
use crate::replay::{Accesses, CallStack, Dictionary, Executed, SelectedInstructions, Visitor};

pub use of_call_tree::write as write_call_tree;
use writer::{CallCost, CallgrindProfile, FunctionCosts, SiteCosts};

/// The counted events: instructions, loads, stores.
const EVENTS: [&str; 3] = ["Ir", "Dr", "Dw"];

/// Numbers of [`EVENTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost([u64; 3]);

impl Cost {
    fn add(&mut self, other: Cost, times: u64) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more * times);
    }

    fn since(self, before: Cost) -> Cost {
        Cost(std::array::from_fn(|event| self.0[event] - before.0[event]))
    }
}

/// Counts what calls cost.
pub struct Callgrind<'a> {
    dictionary: &'a Dictionary<'a>,
    /// By block, what each of its instructions costs, and all.
    costs: Vec<(Box<[Cost]>, Cost)>,
    /// Executions of whole blocks.
    whole: Vec<u64>,
    /// Executions of single instructions of blocks that are selected in part.
    parts: HashMap<BlockId, Vec<u64>>,
    calls: SummedCalls,
    streams: Vec<CallgrindThread>,
}

/// The calls from one region to another.
#[derive(Default)]
struct SummedCalls {
    numbers: HashMap<CallEndpoints, usize>,
    all: Vec<CallProperties>,
}

/// From where to where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CallEndpoints {
    /// The block that calls, and the region that it belongs to.
    block: BlockId,
    caller: u32,
    /// The region that is called.
    callee: u32,
}

/// The properties of a call.
struct CallProperties {
    site: CallEndpoints,
    /// The block that is called.
    entry: BlockId,
    count: u64,
    /// With all that was called from within. Calls from within the same call are part of that one.
    inclusive: Cost,
}

/// A thread on its way.
#[derive(Default)]
struct CallgrindThread {
    stack: CallStack<CallgrindFrame>,
    last: Option<BlockId>,
    cost: Cost,
    /// By call, how often it is open.
    open: Vec<u32>,
}

/// A call that is open.
#[derive(Clone, Copy)]
struct CallgrindFrame {
    region: u32,
    /// The call that led here; none if that was not recorded.
    call: Option<usize>,
    /// The cost of the thread before.
    before: Cost,
}

impl<'a> Callgrind<'a> {
    /// Nothing executed yet.
    pub fn new(dictionary: &'a Dictionary<'a>, accesses: &Accesses) -> Callgrind<'a> {
        let trace = dictionary.trace;
        let costs = |(id, block): (usize, &events::Block)| {
            let mut costs = vec![Cost([1, 0, 0]); block.words.len()];
            for access in accesses.of(id as BlockId) {
                costs[access.index as usize].0[1 + usize::from(access.is_store)] += 1;
            }
            let mut sum = Cost::default();
            costs.iter().for_each(|&cost| sum.add(cost, 1));
            (costs.into(), sum)
        };
        Callgrind {
            dictionary,
            costs: trace.blocks().iter().enumerate().map(costs).collect(),
            whole: vec![0; trace.blocks().len()],
            parts: HashMap::new(),
            calls: SummedCalls::default(),
            streams: trace.streams().iter().map(|_| CallgrindThread::default()).collect(),
        }
    }

    /// Writes the counts. Returns the number of instructions; if it is 0, nothing is written.
    pub fn write(mut self, out: &mut dyn Write) -> io::Result<u64> {
        let mut total = Cost::default();
        for stream in &mut self.streams {
            let CallgrindThread { stack, cost, open, .. } = stream;
            std::mem::take(stack).end().for_each(|frame| self.calls.end(&frame, *cost, open));
            total.add(*cost, 1);
        }
        if total.0[0] > 0 {
            writer::write(&self.profile(total), self.dictionary.trace, self.dictionary.names, out)?;
        }
        Ok(total.0[0])
    }

    fn profile(&self, total: Cost) -> CallgrindProfile {
        let blocks = self.dictionary.trace.blocks();
        let mut functions: BTreeMap<u32, BTreeMap<CodeAddress, SiteCosts>> = BTreeMap::new();
        for (id, costs) in self.executed() {
            let block = &blocks[id as usize];
            let instructions = functions.entry(self.dictionary.facts(id).region).or_default();
            for (address, cost) in block.addresses().zip(costs).filter(|(_, cost)| *cost != Cost::default()) {
                instructions.entry(CodeAddress { address, image: block.image }).or_default().add(&cost.0);
            }
        }
        for call in self.calls.all.iter().filter(|call| call.count > 0) {
            let address = self.dictionary.facts(call.site.block).last();
            let site = CodeAddress { address, image: blocks[call.site.block as usize].image };
            let entry = &blocks[call.entry as usize];
            let cost = CallCost {
                callee: self.name(call.site.callee),
                entry: CodeAddress { address: entry.address, image: entry.image },
                count: call.count,
                inclusive: call.inclusive.0.into(),
            };
            let caller = functions.entry(call.site.caller).or_default();
            caller.entry(site).or_default().calls.push(cost);
        }
        let functions = functions.into_iter();
        let functions =
            functions.map(|(region, instructions)| FunctionCosts { name: self.name(region), instructions });
        CallgrindProfile {
            events: EVENTS.map(|name| (name.into(), None)).into(),
            total: total.0.into(),
            functions: functions.collect(),
        }
    }

    fn name(&self, region: u32) -> String {
        let name = &self.dictionary.regions[region as usize].name;
        name.as_ref().map_or_else(|| writer::UNKNOWN.into(), |name| name.function.clone())
    }

    /// The cost of each instruction of each executed block.
    fn executed(&self) -> impl Iterator<Item = (BlockId, Vec<Cost>)> {
        (0..self.whole.len()).filter_map(|block| {
            let parts = self.parts.get(&(block as BlockId));
            let times = self.whole[block];
            if times == 0 && parts.is_none() {
                return None;
            }
            let costs = self.costs[block].0.iter().enumerate().map(|(index, &cost)| {
                let mut sum = Cost::default();
                sum.add(cost, times + parts.map_or(0, |parts| parts[index]));
                sum
            });
            Some((block as BlockId, costs.collect()))
        })
    }
}

impl SummedCalls {
    /// A call begins; its number.
    fn begin(&mut self, site: CallEndpoints, entry: BlockId, open: &mut Vec<u32>) -> usize {
        let number = *self.numbers.entry(site).or_insert_with(|| {
            self.all.push(CallProperties { site, entry, count: 0, inclusive: Cost::default() });
            self.all.len() - 1
        });
        open.resize(open.len().max(self.all.len()), 0);
        open[number] += 1;
        number
    }

    /// A call is over. It counts if anything in it did.
    fn end(&mut self, frame: &CallgrindFrame, now: Cost, open: &mut [u32]) {
        let Some(number) = frame.call else { return };
        open[number] -= 1;
        let cost = now.since(frame.before);
        let call = &mut self.all[number];
        call.count += u64::from(cost != Cost::default());
        if open[number] == 0 {
            call.inclusive.add(cost, 1);
        }
    }
}

impl Visitor for Callgrind<'_> {
    fn mark(&mut self, stream: u32, _before: u64, mark: Mark, _is_wanted: bool) -> io::Result<()> {
        self.streams[stream as usize].stack.mark(mark, self.dictionary.trace.instruction_set());
        Ok(())
    }

    #[inline]
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let block = executed.execution.block;
        let facts = self.dictionary.facts(block);
        let CallgrindThread { stack, last, cost, open } = &mut self.streams[executed.stream as usize];
        let from = last.replace(block);
        stack.block(
            (facts, executed.execution.addresses),
            &mut (&mut self.calls, open),
            |(calls, open), frame| calls.end(frame, *cost, open),
            |(calls, open), caller, replaced| {
                // A tail call is a call from where the one that it replaces came from.
                let from = match replaced {
                    Some(frame) => frame.call.map(|call| calls.all[call].site.block),
                    None => from,
                };
                let call = caller.zip(from).map(|(caller, from)| {
                    calls.begin(
                        CallEndpoints { block: from, caller: caller.region, callee: facts.region },
                        block,
                        open,
                    )
                });
                CallgrindFrame { region: facts.region, call, before: *cost }
            },
        );
        match executed.selected {
            SelectedInstructions::None => {}
            SelectedInstructions::All => {
                self.whole[block as usize] += 1;
                cost.add(self.costs[block as usize].1, 1);
            }
            SelectedInstructions::Some(which) => {
                let parts = self.parts.entry(block).or_insert_with(|| vec![0; which.len()]);
                for (index, _) in which.iter().enumerate().filter(|(_, is_selected)| **is_selected) {
                    parts[index] += 1;
                    cost.add(self.costs[block as usize].0[index], 1);
                }
            }
        }
        Ok(())
    }
}
