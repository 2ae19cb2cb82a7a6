//! The identity of what is mapped: memory with the same identity is the same memory, in all processes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// The object that a region shows: a file, a segment of System V shared memory, or anonymous memory that forked processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedObject {
    /// The same number for the same object in all processes, and another one for any other object. Never 0.
    pub identity: u64,
    /// The offset in the object of the region's first byte.
    pub offset: u64,
}

/// By what the host knows an object.
#[derive(Hash)]
enum HostObject {
    /// Device and inode.
    File(u64, u64),
    /// The identifier of a segment.
    Segment(u64),
    /// The process that mapped it first, and the number of its mapping there.
    Anonymous(u32, u64),
}

impl MappedObject {
    fn new(object: &HostObject, offset: u64) -> MappedObject {
        let mut hasher = DefaultHasher::new();
        object.hash(&mut hasher);
        MappedObject { identity: hasher.finish() | 1, offset }
    }

    /// An open file from an offset on; None if the host does not know it.
    pub(crate) fn file(descriptor: i32, offset: u64) -> Option<MappedObject> {
        // SAFETY: an all-zero stat is valid and only written to.
        let status = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            (libc::fstat(descriptor, &mut status) == 0).then_some(status)
        }?;
        Some(MappedObject::new(&HostObject::File(status.st_dev, status.st_ino), offset))
    }

    /// A segment of System V shared memory.
    pub fn segment(id: u64) -> MappedObject {
        MappedObject::new(&HostObject::Segment(id), 0)
    }

    /// New anonymous memory that this process's children will share.
    pub(crate) fn anonymous() -> MappedObject {
        static MAPPINGS: AtomicU64 = AtomicU64::new(0);
        let number = MAPPINGS.fetch_add(1, Ordering::Relaxed);
        MappedObject::new(&HostObject::Anonymous(std::process::id(), number), 0)
    }
}
