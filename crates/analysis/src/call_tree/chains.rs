//! The call tree with one event's costs: what flame graphs, collapsed stacks and profiles of other tools are made from.

use std::collections::HashMap;

use super::{CallCosts, NodeId};
use crate::models::InstructionResults;
use table::Column;

/// Call chains with the costs of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallChains {
    /// The counted event: "instructions", "dcache misses".
    pub event: String,
    /// The chains' last calls; a caller stands before its callees.
    pub chains: Vec<CallChain>,
    /// The whole cost of the earlier run that these are compared with.
    pub earlier_total: Option<u64>,
}

/// A chain of calls: a function called by the caller's chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallChain {
    /// The caller's index.
    pub parent: Option<usize>,
    /// The function.
    pub function: String,
    /// Its image; empty if it is not known.
    pub image: String,
    /// How often it was called so; 0 if that is not known.
    pub calls: u64,
    /// What the function's own instructions cost.
    pub own: u64,
    /// The cost with everything that it calls.
    pub inclusive: u64,
    /// The inclusive cost of the same chain in an earlier run.
    pub earlier: Option<u64>,
}

/// There is no event of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no event '{event}': choose one of {}", .events.join(", "))]
pub struct NoEvent {
    event: String,
    events: Vec<String>,
}

/// The index of the column of an event, if one is named.
pub fn find_event(columns: &[Column], event: Option<&str>) -> Result<Option<usize>, NoEvent> {
    let Some(event) = event else { return Ok(None) };
    let column = columns.iter().position(|column| column.name == event);
    let events = || columns.iter().map(|column| column.name.clone()).collect();
    column.map(Some).ok_or_else(|| NoEvent { event: event.into(), events: events() })
}

impl<R: InstructionResults> CallCosts<'_, R> {
    /// The call chains with the costs of an event, which is the name of a column; without one, those by which tables are
    /// sorted.
    pub fn chains(&self, event: Option<&str>) -> Result<CallChains, NoEvent> {
        let column = find_event(&self.columns, event)?;
        let cost = |row: &[u64]| column.map_or_else(|| self.weight(row), |column| row[column]);
        let name = column.map_or_else(|| R::WHAT.to_lowercase(), |column| self.columns[column].name.clone());
        let mut numbers: HashMap<NodeId, usize> = HashMap::new();
        let mut chains = Vec::new();
        for (id, node) in self.used() {
            numbers.insert(id, chains.len());
            let name = &self.tree.functions()[node.function as usize];
            chains.push(CallChain {
                parent: node.parent.and_then(|parent| numbers.get(&parent).copied()),
                function: name.function.clone(),
                image: name.image.clone(),
                calls: self.calls(id),
                own: cost(self.own(id)),
                inclusive: cost(self.inclusive(id)),
                earlier: None,
            });
        }
        Ok(CallChains { event: name, chains, earlier_total: None })
    }
}

impl CallChains {
    /// The chains of classes of units of work, of the same event: those of each class are below a root with its name.
    pub fn of_classes(classes: impl Iterator<Item = (String, CallChains)>) -> CallChains {
        let mut all = CallChains { event: String::new(), chains: Vec::new(), earlier_total: None };
        for (function, CallChains { event, chains, .. }) in classes {
            all.event = event;
            let root = all.chains.len();
            let inclusive = chains.iter().map(|chain| chain.own).sum();
            let (image, calls, own, earlier) = Default::default();
            all.chains.push(CallChain { parent: None, function, image, calls, own, inclusive, earlier });
            let below = |chain: CallChain| {
                let parent = Some(chain.parent.map_or(root, |parent| root + 1 + parent));
                CallChain { parent, ..chain }
            };
            all.chains.extend(chains.into_iter().map(below));
        }
        all
    }

    /// The whole cost.
    pub fn total(&self) -> u64 {
        self.chains.iter().map(|chain| chain.own).sum()
    }

    /// Compares with an earlier run's chains: those with the same functions belong together.
    pub fn compare(&mut self, earlier: &CallChains) {
        let keys = earlier.chains.iter().map(|chain| (chain.parent, chain.function.as_str()));
        let numbers: HashMap<(Option<usize>, &str), usize> =
            keys.enumerate().map(|(number, key)| (key, number)).collect();
        let mut found: Vec<Option<usize>> = Vec::with_capacity(self.chains.len());
        for chain in &self.chains {
            let parent = match chain.parent {
                Some(parent) => found[parent].map(Some),
                None => Some(None),
            };
            found.push(parent.and_then(|parent| numbers.get(&(parent, chain.function.as_str())).copied()));
        }
        for (chain, number) in self.chains.iter_mut().zip(found) {
            chain.earlier = Some(number.map_or(0, |number| earlier.chains[number].inclusive));
        }
        self.earlier_total = Some(earlier.total());
    }

    /// A chain's functions, the outermost first.
    pub fn path(&self, chain: usize) -> Vec<&str> {
        let callers = std::iter::successors(Some(chain), |&chain| self.chains[chain].parent);
        let mut path: Vec<&str> = callers.map(|chain| self.chains[chain].function.as_str()).collect();
        path.reverse();
        path
    }
}
