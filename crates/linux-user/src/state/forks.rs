//! Counts the processes that a program and its children have forked.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter in memory that is shared with all descendants of the process.
pub struct Forks(Option<*mut AtomicU64>);

// SAFETY: the counter is atomic, and mapped as long as this value lives.
unsafe impl Send for Forks {}

impl Forks {
    /// A counter of 0. If no memory can be mapped, nothing is counted.
    pub fn new() -> Forks {
        let (bytes, protection) = (size_of::<AtomicU64>(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: asks for new memory.
        let shared = unsafe {
            libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
        };
        Forks((shared != libc::MAP_FAILED).then_some(shared.cast()))
    }

    fn count(&self) -> Option<&AtomicU64> {
        // SAFETY: mapped by `new`, and all-zero memory is a valid number.
        self.0.map(|count| unsafe { &*count })
    }

    /// Counts one more.
    pub fn add(&self) {
        if let Some(count) = self.count() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.count().map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            // SAFETY: the mapping was made by `new` and is not borrowed any more.
            unsafe { libc::munmap(count.cast(), size_of::<AtomicU64>()) };
        }
    }
}
