//! The translator's process: it maps the program into its own memory, and executes translations of its code.

mod actions;
mod calls;
mod clone;
mod elf;
mod frame;
mod handler;
mod program_memory;
mod run;
mod signal;
mod stack;
mod start;
mod state;
mod thread;

pub(crate) use start::run;
