//! Transfers of devices: accesses of their functions move whole lines.

use events::Thread;
use events::record::Execution;
use machine::DeviceCounts;

use super::SharingAnalysis;
use super::devices::DeviceFunctions;
use crate::names::NotExecuted;

impl SharingAnalysis {
    /// The loads of some functions are a device's reads, and the stores of others its writes. To be called before anything is executed.
    pub fn set_devices(&mut self, reads: &[String], writes: &[String]) {
        self.devices = DeviceFunctions::new(reads, writes);
    }

    /// Whether all functions of devices were executed.
    pub fn check_devices(&self) -> Result<(), NotExecuted> {
        self.devices.check()
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
