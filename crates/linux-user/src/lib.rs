//! Linux as a guest's program sees it: system calls and signals, carried out by the host's Linux with Alpha's numbers
//! and structures converted both ways; threads; the loader.
//!
//! `table` has one line a system call. Most are passed to the host by a description of their
//! arguments; the rest are handlers in the modules named by topic. What a process has in the kernel is a [`Kernel`],
//! behind one lock.

mod aio;
mod call;
mod clone;
mod control;
mod dispatch;
mod errno;
mod fd;
mod files;
mod flags;
mod forks;
mod ipc;
mod kernel;
mod kernel_lock;
mod layout;
pub mod loader;
mod memory_file;
mod message_queues;
mod mm;
mod msghdr;
mod numa;
mod paths;
mod proc_files;
mod process_memory;
mod processes;
mod reserved;
mod rlimit;
mod settings;
mod signal_calls;
mod signal_frame;
mod signals;
mod sockets;
mod stat;
mod sysinfo;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod threads;
mod time;
mod timers;
mod unimplemented;
mod vfork;
mod waiting;

pub use control::{Control, Crash, End, Execute};
pub use dispatch::{started_thread, system_call, system_call_name};
pub use kernel::Kernel;
pub use kernel_lock::{Held, SharedKernel};
pub use reserved::{high_copy, leave_guests_table, out_of_reach, read_image};
pub use settings::{Clock, Random, Settings};
pub use signals::{die, send_to_caller};
pub use threads::{Ending, Start, Thread};
