//! Access control to other processes' memory: guests' memory is accessible, their engines' is not.

use crate::procfs;
use guest_memory::Memory;
use host::Errno;

/// The accessible part of a process's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TargetMemory {
    /// The guest's memory, of this process or another one on the engine.
    Guest,
    /// Everything that the host permits: the process is a host program.
    Host,
}

impl TargetMemory {
    /// The accessible part of a process's memory; EPERM if it runs on the engine with its guest at other addresses.
    pub fn of(memory: &Memory, process: u32) -> Result<TargetMemory, Errno> {
        if process == std::process::id() {
            return Ok(TargetMemory::Guest);
        }
        if !procfs::has_our_ids() {
            return Err(Errno(libc::EPERM));
        }
        if !procfs::exists(process) {
            return Err(Errno(libc::ESRCH));
        }
        if !procfs::runs_engine(process) {
            return Ok(TargetMemory::Host);
        }
        // The window of the process equals ours if none of its engine's mappings lies there.
        let maps = procfs::read(&format!("{process}/maps")).unwrap_or_default();
        let first = maps.split(|&byte| byte == b'-').next().and_then(|start| std::str::from_utf8(start).ok());
        let first = first.and_then(|start| u64::from_str_radix(start, 16).ok());
        let is_alike = memory.is_identity() && first == Some(memory.lowest());
        if is_alike { Ok(TargetMemory::Guest) } else { Err(Errno(libc::EPERM)) }
    }

    /// The host address of a range of the target process; an unmapped address if the range is not accessible.
    pub fn address(self, memory: &Memory, address: u64, bytes: u64) -> u64 {
        match self {
            TargetMemory::Host => address,
            TargetMemory::Guest => memory.host(address, bytes).map_or(0, |host| host as u64),
        }
    }
}
