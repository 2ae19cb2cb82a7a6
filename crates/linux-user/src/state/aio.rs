//! Contexts of asynchronous input and output.

use std::collections::BTreeMap;

/// Size of a control block.
pub const BLOCK_BYTES: usize = 64;

/// A control block for the host's kernel, which knows it by this address until its event is taken.
#[repr(C, align(8))]
pub struct ControlBlock(pub(crate) [u8; BLOCK_BYTES]);

/// A context: the host's ID, and the control blocks in progress.
pub struct AioContext {
    pub(crate) host: u64,
    /// By host address: the guest address of a control block, and the allocation that keeps it in place.
    pub(crate) under_way: BTreeMap<u64, (u64, Box<ControlBlock>)>,
}

/// The contexts of a process, by the guest's ids.
#[derive(Default)]
pub struct Contexts(pub(crate) BTreeMap<u64, AioContext>);

impl Contexts {
    /// Destroys all contexts, as execve does.
    pub fn destroy_all(&mut self) {
        for context in std::mem::take(&mut self.0).into_values() {
            // SAFETY: no pointers are passed. The call waits for operations in progress.
            unsafe { libc::syscall(libc::SYS_io_destroy, context.host) };
        }
    }
}
