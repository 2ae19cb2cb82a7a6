//! How many processes a program has forked, and these in turn.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number in memory that a process shares with all that descend from it.
pub struct Forks(Option<*mut AtomicU64>);

// SAFETY: what is behind the pointer is atomic, and is mapped as long as this value lives.
unsafe impl Send for Forks {}

impl Forks {
    /// None forked so far. Where there is no memory to be had, none are ever counted.
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

    /// One more.
    pub fn add(&self) {
        if let Some(count) = self.count() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many there were.
    pub fn get(&self) -> u64 {
        self.count().map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            // SAFETY: the mapping was made by `new`, and nothing borrows from it any more.
            unsafe { libc::munmap(count.cast(), size_of::<AtomicU64>()) };
        }
    }
}
