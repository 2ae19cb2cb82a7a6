//! What is the same for every instruction set of a guest: blocks of decoded instructions, the loop of the interpreter,
//! records and counters of what is executed, and the observers that they are for. An instruction set is a [`Guest`].

mod block;
pub mod counters;
mod debugger;
pub mod flow;
mod guest;
mod host_side;
mod instrumentation;
pub mod interpreter;
mod observer;
pub mod records;

pub use block::{Block, BlockCache, LONGEST};
pub use debugger::{Debugged, DebuggerHook, SignalHook};
pub use guest::{Break, Guest, Instruction};
pub use host_side::HostSide;
pub use instrumentation::{Instrumentation, InstrumentationLevel};
pub use interpreter::Stop;
pub use observer::Observer;
