//! Linux as a guest program sees it: system calls and signals, carried out by the host's Linux after conversion of
//! the guest's numbers and structures; threads; the loader.
//!
//! The ABI of each guest is a folder in `abi`, which implements [`Abi`]. Its table of [`SystemCalls`] has one line for
//! each. Most calls are passed to the host by a description of their arguments; others have handlers in the modules of
//! `calls`, for any guest, or in the ABI's folder. The state of a process is a [`Kernel`], protected by one lock.

mod abi;
mod calls;
mod descriptor_table;
mod dispatch;
pub mod loader;
mod memory_file;
mod proc_files;
mod proc_status;
mod process_memory;
mod procfs;
mod reserved;
mod state;
mod table;

pub use abi::Abi;
pub use abi::generic_signals::GENERIC_SIGNALS;
pub use abi::signals::SignalDescription;
pub use calls::processes::guest_machine;
pub use descriptor_table::{apart, leave_guests_table, read_image};
pub use dispatch::{replaces_program, started_thread, system_call, system_call_name};
pub use reserved::{DescriptorOwner, high_copy, out_of_reach};
pub use state::control::{Control, Crash, Execute, ProgramEnd};
pub use state::kernel::Kernel;
pub use state::lock::{KernelGuard, SharedKernel};
pub use state::settings::{Clock, RandomSource, SystemSettings};
pub use state::signals::{die, send_to_caller};
pub use state::substitution::Substitution;
pub use state::threads::{ProcessEnding, Start, Task};
pub use table::SystemCalls;
