//! The environment of Spike: a database of applications, their images, the instrumented and optimized versions of those,
//! and profiles; and the substitution by which a program that is started under its own name executes one of the versions.
//!
//! `docs/design/spike-environment.md` has the design.

mod collect;
mod database;
mod environment;
mod error;
mod export;
mod files;
mod identity;
mod making;
mod optimizing;
mod rows;
mod substitutes;
pub mod tables;
mod views;

pub use collect::Collected;
pub use environment::Environment;
pub use error::Error;
pub use export::ExportedImage;
pub use making::Made;
pub use rows::{Application, ApplicationPhase};
pub use substitutes::Substitutes;
pub use views::{ApplicationView, ImageView};
