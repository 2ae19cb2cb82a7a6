//! A value for each open call of a thread.

use std::collections::BTreeMap;

use events::record::Mark;
use isa::InstructionSet;

use super::{ActiveCalls, Arrival, BlockFacts};

/// A value for each call that has not returned.
#[derive(Clone, Debug)]
pub struct CallStack<T> {
    calls: ActiveCalls,
    /// The present stack's number.
    stack: u32,
    /// The entries of its calls, each with the index of its location.
    entries: Vec<(u32, T)>,
    /// The entries of other stacks, by their numbers.
    others: BTreeMap<u32, Vec<(u32, T)>>,
    forgotten: usize,
}

impl<T> Default for CallStack<T> {
    fn default() -> CallStack<T> {
        CallStack {
            calls: ActiveCalls::default(),
            stack: 0,
            entries: Vec::new(),
            others: BTreeMap::new(),
            forgotten: 0,
        }
    }
}

impl<T> CallStack<T> {
    /// Follows a mark in the records of a program with this instruction set.
    pub fn mark(&mut self, mark: Mark, set: &dyn InstructionSet) {
        self.calls.mark(mark, set);
    }

    /// The value of the current call.
    pub fn top(&self) -> Option<&T> {
        self.entries.last().map(|(_, value)| value)
    }

    /// The number of the stack that the thread is on ([`ActiveCalls::stack`]).
    pub fn number(&self) -> u32 {
        self.stack
    }

    /// Follows the execution of a block with these addresses of accesses. If it belongs to another call than the last one, `left` is called for the calls
    /// that have ended, the innermost first; then, if the call is new, `entered` makes its value from the caller's value,
    /// and from that of the call which this one replaces, if it is a tail call. Both may change the `context`.
    #[inline]
    pub fn block<C>(
        &mut self,
        (block, addresses): (&BlockFacts, &[u64]),
        context: &mut C,
        left: impl Fn(&mut C, &T),
        entered: impl FnOnce(&mut C, Option<&T>, Option<T>) -> T,
    ) {
        let arrival = self.calls.block(block, addresses, |_| false);
        if arrival == Arrival::Within {
            return;
        }
        if self.calls.stack() != self.stack {
            let entries = self.others.remove(&self.calls.stack()).unwrap_or_default();
            let before = std::mem::replace(&mut self.entries, entries);
            self.others.insert(std::mem::replace(&mut self.stack, self.calls.stack()), before);
        }
        let all = self.calls.forgotten();
        let forgotten = all - std::mem::replace(&mut self.forgotten, all);
        let oldest = self.entries.drain(..forgotten.min(self.entries.len()));
        oldest.rev().for_each(|(_, value)| left(context, &value));
        let depth = self.calls.depth();
        // A return may find that a tail call that was not recorded replaced the caller.
        let is_back = arrival == Arrival::Returned
            && self.entries.get(depth).is_some_and(|(region, _)| *region == block.region);
        let kept = if is_back { depth + 1 } else { depth };
        let mut last = None;
        while self.entries.len() > kept {
            last = self.entries.pop().map(|(_, value)| value);
            last.iter().for_each(|value| left(context, value));
        }
        if !is_back {
            let replaced = last.filter(|_| matches!(arrival, Arrival::Replaced | Arrival::Returned));
            let value = entered(context, self.top(), replaced);
            self.entries.push((block.region, value));
        }
    }

    /// The end of the stream: all calls end, the innermost first.
    pub fn end(self) -> impl Iterator<Item = T> {
        let others = self.others.into_values().rev().flat_map(|entries| entries.into_iter().rev());
        self.entries.into_iter().rev().chain(others).map(|(_, value)| value)
    }
}
