//! Memory shared by a vfork child with its parent. The child has a copy of memory, as after fork. Its parent waits
//! until the child ends or executes a program, and then copies what the child wrote to stack frames near the stack
//! pointer: posix_spawn of the C library reads the child's error there.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use guest_memory::Memory;
use host::Errno;

/// Number of bytes above the stack pointer that are shared.
const SHARED_BYTES: usize = 1 << 16;

/// The words that the child leaves for its parent, in shared memory.
#[repr(C)]
struct ChildWords {
    left: AtomicBool,
    values: [u64; SHARED_BYTES / 8],
}

/// The parent's frames near its stack pointer.
pub struct ParentFrames {
    address: u64,
    before: Vec<u64>,
    words: *mut ChildWords,
}

// SAFETY: in each process the words belong to this value alone. The parent reads them after the child has ended or
// has stopped using them.
unsafe impl Send for ParentFrames {}

impl ParentFrames {
    /// The frames above `address`.
    pub fn new(memory: &Memory, address: u64) -> Result<ParentFrames, Errno> {
        let address = address & !7;
        // SAFETY: requests new memory.
        let words = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<ChildWords>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if words == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(ParentFrames { address, before: read(memory, address), words: words.cast() })
    }

    /// In the child: stores the words before it ends or executes a program.
    pub fn leave(&self, memory: &Memory) {
        // SAFETY: the mapping lives as long as this value; all-zero words are valid, and the parent does
        // not read them before `left` is set.
        let words = unsafe { &mut *self.words };
        for (value, now) in words.values.iter_mut().zip(read(memory, self.address)) {
            *value = now;
        }
        words.left.store(true, Ordering::Release);
    }

    /// In the parent, after the child has finished: copies the words that it changed. Words that do not fit any more
    /// are omitted.
    pub fn take(&self, memory: &Memory) {
        // SAFETY: as in `leave`; the child has finished writing.
        let words = unsafe { &*self.words };
        if !words.left.load(Ordering::Acquire) {
            return;
        }
        let addresses = (self.address..).step_by(8);
        for ((address, before), now) in addresses.zip(&self.before).zip(words.values) {
            if *before != now {
                let _ = memory.write(address, &now.to_le_bytes());
            }
        }
    }
}

impl Drop for ParentFrames {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and is not borrowed any more.
        unsafe { libc::munmap(self.words.cast(), size_of::<ChildWords>()) };
    }
}

/// The mapped words from an address on.
fn read(memory: &Memory, address: u64) -> Vec<u64> {
    let addresses = (address..).step_by(8).take(SHARED_BYTES / 8);
    addresses.map_while(|address| memory.load::<8>(address).ok()).collect()
}

/// A vfork child's connection to its parent.
pub struct Parent {
    pub(crate) frames: Option<ParentFrames>,
    /// The parent waits as long as it is open.
    pub(crate) _end: OwnedFd,
}

impl Parent {
    /// Shows the parent what was written, before the child ends or executes a program.
    pub fn inform(&self, memory: &Memory) {
        if let Some(frames) = &self.frames {
            frames.leave(memory);
        }
    }
}
