//! The handlers of system calls, by topic.

pub(crate) mod aio;
pub(crate) mod call;
pub(crate) mod clone;
pub(crate) mod fd;
pub(crate) mod files;
pub(crate) mod ipc;
pub(crate) mod memory_file;
pub(crate) mod message_queues;
pub(crate) mod mm;
pub(crate) mod msghdr;
pub(crate) mod namespaces;
pub(crate) mod numa;
pub(crate) mod process_memory;
pub(crate) mod processes;
pub(crate) mod rlimit;
pub(crate) mod signal_calls;
pub(crate) mod signal_delivery;
pub(crate) mod sockets;
pub(crate) mod stat;
pub(crate) mod sysinfo;
pub(crate) mod terminal;
pub(crate) mod threads;
pub(crate) mod time;
pub(crate) mod timers;
pub(crate) mod vfork;
pub(crate) mod waiting;
