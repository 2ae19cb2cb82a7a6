//! A program that is loaded: its processor, its code and its kernel.

use guest::BlockCache;
use linux_user::{SharedKernel, Task};

use crate::platform::Platform;

/// A program of a guest: the state that another program of the same guest takes over.
pub struct ProgramState<G: Platform> {
    /// The first thread's processor state.
    pub cpu: G,
    /// The block cache of the first thread.
    pub cache: BlockCache<G>,
    pub(crate) thread: Task<G>,
    pub(crate) kernel: SharedKernel<G>,
}
