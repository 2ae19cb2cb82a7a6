//! Data flow of registers: what instructions read and write, and which registers are live where.

mod effects;
mod liveness;
mod registers;
mod summaries;

pub use effects::{Effects, effects, unwound};
pub use liveness::Liveness;
pub use registers::RegisterSet;
pub use summaries::Summaries;
