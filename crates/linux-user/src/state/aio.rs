//! Contexts of asynchronous input and output.

use std::collections::BTreeMap;

/// Bytes of a control block.
pub const BLOCK_BYTES: usize = 64;

/// A control block for the host, which its kernel knows by this address until the event is taken.
#[repr(C, align(8))]
pub struct Block(pub(crate) [u8; BLOCK_BYTES]);

/// A context: the host's id, and the control blocks under way.
pub struct Context {
    pub(crate) host: u64,
    /// By their addresses here: the guest's address of each, and what keeps it in its place.
    pub(crate) under_way: BTreeMap<u64, (u64, Box<Block>)>,
}

/// The contexts of a process, by the guest's ids.
#[derive(Default)]
pub struct Contexts(pub(crate) BTreeMap<u64, Context>);

impl Contexts {
    /// Ends them all, as execve does.
    pub fn destroy_all(&mut self) {
        for context in std::mem::take(&mut self.0).into_values() {
            // SAFETY: no pointers are passed. It waits for what is under way.
            unsafe { libc::syscall(libc::SYS_io_destroy, context.host) };
        }
    }
}
