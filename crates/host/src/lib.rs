//! The host's system calls, signals and memory faults, for an engine that runs a guest program within its own
//! process: faults of guest accesses become error values, and signals for the guest are recorded until it can handle
//! them.

mod disposition;
mod engine_thread;
mod errno;
pub mod fault;
mod fork;
pub mod interrupt;
mod mailbox;
mod signal;
mod signal_stack;
mod system_call;

pub use disposition::{Disposition, set_disposition};
pub use engine_thread::{spawn, spawn_scoped};
pub use errno::Errno;
pub use fork::{CloneFlags, fork};
pub use mailbox::{
    SampleHandler, SampleTimer, ThreadHandle, adopt_thread, has_attach_request, is_fault, is_recorded,
    kick_self, pending, recorded, release_thread, sample_thread, send_attach_request, set_stack_limit, take,
    take_attach_request, wait,
};
pub use signal::{
    SignalInformation, bit, block_all, blockable, is_ignored, name_thread, requeue, set_mask, without_signals,
};
pub use system_call::call;
