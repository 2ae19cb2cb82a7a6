//! Functions of devices: a program makes an access to each line that a device moves, in functions of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use events::Block;
use image::SymbolPattern;

use crate::names::{FunctionName, Names, NotExecuted, check_executed};

/// The functions whose accesses are a device's.
#[derive(Default)]
pub(super) struct DeviceFunctions {
    /// Functions whose loads are a device's reads, and functions whose stores are its writes.
    given: [Vec<String>; 2],
    patterns: [Vec<SymbolPattern>; 2],
    /// All functions of the program that were executed.
    executed: BTreeSet<Arc<FunctionName>>,
}

impl DeviceFunctions {
    /// Of functions whose loads are reads, and functions whose stores are writes.
    pub(super) fn new(reads: &[String], writes: &[String]) -> DeviceFunctions {
        let given = [reads.to_vec(), writes.to_vec()];
        let patterns =
            given.each_ref().map(|names| names.iter().map(|name| SymbolPattern::new(name)).collect());
        DeviceFunctions { given, patterns, executed: BTreeSet::new() }
    }

    /// Whether all of them were executed.
    pub(super) fn check(&self) -> Result<(), NotExecuted> {
        let executed = self.executed.iter().map(|name| &**name);
        self.given.iter().try_for_each(|given| check_executed(given, executed.clone()))
    }

    /// Of a block, whether its loads and its stores are a device's. The processor has no part in such a block.
    pub(super) fn of(&mut self, names: &Names, block: &Block) -> Option<[bool; 2]> {
        if self.given.iter().all(Vec::is_empty) {
            return None;
        }
        let name = names.name(block.image, block.address);
        let is_of = |patterns: &Vec<SymbolPattern>| patterns.iter().any(|pattern| name.is_named(pattern));
        let found = self.patterns.each_ref().map(is_of);
        self.executed.insert(name);
        (found != [false; 2]).then_some(found)
    }
}
