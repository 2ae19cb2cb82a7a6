//! What may be reached of a process: another guest's memory, but nothing of its engine.

use host::Errno;
use memory::Memory;

/// What may be reached of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The guest's memory: this process, or another on the engine.
    Guest,
    /// All, as far as the host allows: a program of the host's.
    Host,
}

impl Target {
    /// What may be reached of a process: EPERM if it is the engine's, but no guest is where this one is.
    pub fn of(memory: &Memory, process: u32) -> Result<Target, Errno> {
        if process == std::process::id() {
            return Ok(Target::Guest);
        }
        if !runs_engine(process) {
            return Ok(Target::Host);
        }
        // Its window is where ours is if nothing of its engine is there.
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        let first = maps.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
        let is_alike = memory.is_identity() && first == Some(memory.lowest());
        if is_alike { Ok(Target::Guest) } else { Err(Errno(libc::EPERM)) }
    }

    /// The host's address of a range of the target's: one where nothing is for what cannot be reached.
    pub fn address(self, memory: &Memory, address: u64, bytes: u64) -> u64 {
        match self {
            Target::Host => address,
            Target::Guest => memory.host(address, bytes).map_or(0, |host| host as u64),
        }
    }
}

/// Whether a process is a program on this very engine.
pub fn runs_engine(process: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |process: &str| {
        std::fs::metadata(format!("/proc/{process}/exe")).map(|file| (file.dev(), file.ino())).ok()
    };
    let own = identity("self");
    own.is_some() && own == identity(&process.to_string())
}
