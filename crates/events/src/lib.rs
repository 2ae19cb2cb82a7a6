//! The plain data that pass from the execution of a program to counting, recording and modelling: exact counts of
//! blocks and units of work ([`Counts`]), and [`record`]s of every block and every effective address, which a
//! [`Consumer`] receives.
//!
//! ```
//! use pathlength_events::{Block, Counts};
//! let mut counts = Counts::default();
//! counts.blocks.push(Block::new(&isa::Alpha, 0x1_2000_0000, [0x47ff041f; 3]));
//! counts.executions.push(7);
//! assert_eq!(counts.instructions(), 21);
//! ```

mod block;
mod consumer;
mod counts;
mod hit_filter;
mod image;
mod path;
pub mod record;

pub use block::{Block, BlockId};
pub use consumer::{Consumer, LABELLED_NUMBER, LABELS, Object, Thread};
pub use counts::{Counts, ProcessEnd, Unit};
pub use hit_filter::{FilterSide, FilterTable, HitFilter, Keep, UnfilteredAccess, WordArray, Words};
pub use image::{LoadedImage, MappedImage};
pub use path::{any_path, any_paths};
