//! Traces for other tools: profiles with their calls ([`Callgrind`], [`Firefox`]), and single
//! instructions ([`Instructions`]).

mod callgrind;
pub mod collapsed;
mod firefox;
mod instructions;
pub mod pprof;
mod tables;

use table::Column;

pub use callgrind::{Callgrind, write_call_tree as write_callgrind};
pub use firefox::{ChainSample, Firefox, ThreadSamples, write_samples};
pub use instructions::{ExecutedInstruction, InstructionSink, Instructions};
pub use tables::{blocks, functions};

/// The name of an event as other tools take it: one word, without the remark in parentheses.
fn event_name(column: &Column) -> String {
    let plain = column.name.split(" (").next().unwrap_or(&column.name);
    plain.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_")
}
