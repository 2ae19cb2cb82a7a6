//! The kernel state of descriptors.

use crate::{procfs, reserved};

/// A descriptor whose contents must be converted or generated when the guest reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// `struct signalfd_siginfo`, with signals in the guest's numbering.
    Signals,
    /// Random bytes, from the seeded generator.
    Random,
}

impl Special {
    /// The path of the descriptor's file, as /proc shows it.
    pub fn file(path: &[u8]) -> Option<Special> {
        match path {
            b"anon_inode:[signalfd]" => Some(Special::Signals),
            b"/dev/random" | b"/dev/urandom" => Some(Special::Random),
            _ => None,
        }
    }
}

/// The type of a descriptor's file (`S_IFMT`), if it is open.
pub fn kind(descriptor: i32) -> Option<libc::mode_t> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the buffer has the size of the result, which is valid if the call succeeds.
    unsafe {
        let is_open = libc::fstat(descriptor, stat.as_mut_ptr()) == 0;
        is_open.then(|| stat.assume_init().st_mode & libc::S_IFMT)
    }
}

/// Closes the descriptors with close-on-exec.
pub fn close_all() {
    let open = reserved::beyond_limit(|| procfs::entries("thread-self/fd"));
    let open = open.iter().filter_map(|name| name.parse::<i32>().ok());
    for descriptor in open.filter(|&descriptor| !reserved::is_reserved(descriptor as u64)) {
        // SAFETY: no pointers are passed; the guest opened the descriptor and wants it closed. The directory's own
        // descriptor is closed by now.
        unsafe {
            if libc::fcntl(descriptor, libc::F_GETFD) == libc::FD_CLOEXEC {
                libc::close(descriptor);
            }
        }
    }
}
