//! Execution of a guest of any instruction set, which is a type that implements [`Guest`]: blocks of decoded
//! instructions, the interpreter's loop, records and counters of executed blocks, and their observers.

mod block;
mod calling_convention;
pub mod counters;
mod debugger;
mod debugger_registers;
pub mod flow;
mod guest;
mod host_side;
mod instrumentation;
pub mod interpreter;
mod observer;
pub mod records;

pub use block::{BlockCache, DecodedBlock, MAX_BLOCK_INSTRUCTIONS};
pub use calling_convention::CallingConvention;
pub use debugger::{Debugged, DebuggerHook, SignalHook};
pub use debugger_registers::DebuggerRegisters;
pub use guest::{Break, Guest, InstructionProperties};
pub use host_side::{Callbacks, CodeAddresses, HostSide};
pub use instrumentation::{Instrumentation, InstrumentationLevel};
pub use interpreter::Stop;
pub use observer::Observer;
