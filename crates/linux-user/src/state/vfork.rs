//! What vfork's child shares with its parent. The child has a copy of memory, as after a fork; but its
//! parent waits until it is gone or another program, and then sees what the child wrote to the frames
//! near the stack pointer: there a C library's posix_spawn learns why the program could not be started.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use host::Errno;
use memory::{Memory, PAGE};

/// Bytes above the stack pointer that are shared.
const SHARED_BYTES: usize = 8 * PAGE as usize;

/// Words that the child leaves to its parent, in memory that both see.
#[repr(C)]
struct Words {
    left: AtomicBool,
    values: [u64; SHARED_BYTES / 8],
}

/// The parent's frames near its stack pointer.
pub struct Frames {
    address: u64,
    before: Vec<u64>,
    words: *mut Words,
}

// SAFETY: the words belong to this value alone, in each process; the child has ended, or does not
// touch them any more, when the parent looks.
unsafe impl Send for Frames {}

impl Frames {
    /// Those above `address`.
    pub fn new(memory: &Memory, address: u64) -> Result<Frames, Errno> {
        let address = address & !7;
        // SAFETY: asks for new memory.
        let words = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Words>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if words == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Frames { address, before: read(memory, address), words: words.cast() })
    }

    /// In the child, before it ends or becomes another program.
    pub fn leave(&self, memory: &Memory) {
        // SAFETY: the mapping lives as long as this value; all-zero words are valid, and the parent does
        // not read them before `left` is set.
        let words = unsafe { &mut *self.words };
        for (value, now) in words.values.iter_mut().zip(read(memory, self.address)) {
            *value = now;
        }
        words.left.store(true, Ordering::Release);
    }

    /// In the parent, when the child is gone: the words that it changed. What does not fit any more is
    /// left out.
    pub fn take(&self, memory: &Memory) {
        // SAFETY: as in `leave`; the child writes no more.
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

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing borrows from it any more.
        unsafe { libc::munmap(self.words.cast(), size_of::<Words>()) };
    }
}

/// The words from an address on, as far as there are any.
fn read(memory: &Memory, address: u64) -> Vec<u64> {
    let addresses = (address..).step_by(8).take(SHARED_BYTES / 8);
    addresses.map_while(|address| memory.load::<8>(address).ok()).collect()
}

/// What a child of vfork knows of its parent.
pub struct Parent {
    pub(crate) frames: Option<Frames>,
    /// Open as long as the parent is to wait.
    pub(crate) _end: OwnedFd,
}

impl Parent {
    /// Lets the parent see what was written, before the child ends or becomes another program.
    pub fn inform(&self, memory: &Memory) {
        if let Some(frames) = &self.frames {
            frames.leave(memory);
        }
    }
}
