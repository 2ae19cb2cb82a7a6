//! The studies: questions of the papers of 1997 and 1998, asked of real programs. Each has a folder: what it builds and runs,
//! its tables, and its page.

pub mod byteword;
mod database;
mod environment;
mod error;
pub mod graphics;
mod models;
pub mod network;
pub mod numa;
mod provenance;
pub mod rdb;
mod recorded_server;
mod server;
pub mod smp;
pub mod spike;
pub mod strides;
mod study_report;
pub mod system;
pub mod tpcc;
pub mod tpch;
pub mod vlm;

pub use self::database::StudyProgress;
pub use self::error::{Error, NoLibrary};
pub use self::study_report::StudyReport;
