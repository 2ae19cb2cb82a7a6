//! Devices' transfers: a program makes an access to each line that a device moves, in functions of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use events::record::Execution;
use events::{Block, Thread};
use image::SymbolPattern;
use machine::DeviceCounts;

use super::SharingAnalysis;
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

impl SharingAnalysis {
    /// The loads of some functions are a device's reads, and the stores of others its writes. To be called before anything is executed.
    pub fn set_devices(&mut self, reads: &[String], writes: &[String]) {
        let given = [reads.to_vec(), writes.to_vec()];
        let patterns =
            given.each_ref().map(|names| names.iter().map(|name| SymbolPattern::new(name)).collect());
        self.devices = DeviceFunctions { given, patterns, executed: BTreeSet::new() };
    }

    /// Whether all functions of devices were executed.
    pub fn check_devices(&self) -> Result<(), NotExecuted> {
        let executed = self.devices.executed.iter().map(|name| &**name);
        self.devices.given.iter().try_for_each(|given| check_executed(given, executed.clone()))
    }

    /// The counts of devices' transfers.
    pub fn devices(&self) -> &DeviceCounts {
        self.memory.devices()
    }

    /// A block that stands for transfers of a device: each access moves a whole line, once for accesses that follow one another.
    pub(super) fn transfer(
        &mut self,
        thread: Thread,
        processor: u8,
        execution: &Execution,
        is_device: [bool; 2],
    ) {
        let line = self.memory.line_size();
        for (number, &address) in execution.addresses.iter().enumerate() {
            let is_store = self.blocks[execution.block as usize].accesses[number].is_store;
            if !is_device[usize::from(is_store)] {
                continue;
            }
            let physical = self.spaces.physical_address(thread.process, address, is_store) / line * line;
            if self.last_transfer.replace((physical, is_store)) == Some((physical, is_store)) {
                continue;
            }
            let event = match is_store {
                false => self.memory.device_read(physical),
                true => self.memory.device_write(processor, physical, line as u16),
            };
            if let Some(check) = &mut self.check {
                check.device_accessed(&mut self.memory, (physical, is_store), &event);
            }
        }
        self.decide();
    }
}
