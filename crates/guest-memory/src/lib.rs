//! A guest program's address space within the host's: a reserved window, the list of its mapped regions, and loads
//! and stores that return faults as error values.

mod access;
mod layout;
mod memory;
mod objects;
mod regions;

pub use layout::{Fault, Layout, Protection, SEGV_ACCERR, SEGV_MAPERR, WINDOW};
pub use memory::Memory;
pub use objects::MappedObject;
pub use regions::{MemoryRegion, RegionBacking};

impl From<Fault> for host::Errno {
    fn from(_: Fault) -> host::Errno {
        host::Errno(libc::EFAULT)
    }
}
