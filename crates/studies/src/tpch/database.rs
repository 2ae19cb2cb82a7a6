//! What a database system does for the study of TPC-H.

use std::path::PathBuf;

use super::data::TableFiles;
use super::measured::{MachineModels, Measured};
use super::statements::{AccessPath, Statement};
use crate::error::Error;
use crate::tpcc::DatabaseSystem;
use workloads::build::{Build, BuildFolders};

/// What the runs are called in errors.
pub(super) const MODE: &str = "TPC-H";

/// The scale factors that can be chosen: the smallest has ten suppliers.
pub const SCALES: std::ops::RangeInclusive<f64> = 0.001..=10.0;

/// What to study.
#[derive(Clone, Debug)]
pub struct TpchStudySettings {
    /// The database system.
    pub system: DatabaseSystem,
    /// The scale factor.
    pub scale: f64,
    /// The numbers of the queries.
    pub queries: Vec<u32>,
    /// Where builds and databases are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

impl TpchStudySettings {
    /// The scale factors at which misses are compared, ascending: the chosen one, and two smaller ones; larger ones if those
    /// would be too small.
    pub(super) fn scales(&self) -> [f64; 3] {
        let factors = if self.scale >= 4.0 * SCALES.start() { [0.25, 0.5, 1.0] } else { [1.0, 2.0, 4.0] };
        factors.map(|factor| self.scale * factor)
    }
}

/// A statement that was executed on Alpha.
pub(super) struct Answered {
    pub(super) measured: Measured,
    pub(super) rows: String,
}

/// A database system with its builds.
pub(super) trait TpchDatabase {
    /// The words before a statement that ask for its plan.
    const EXPLAIN: &str;

    /// The builds that are measured.
    fn builds(&self) -> Vec<&Build>;

    /// The version of the system.
    fn version(&self) -> Option<String>;

    /// Whether it has SQLite's dialect.
    fn is_sqlite(&self) -> bool;

    /// The ways to the rows of a table.
    fn paths(&self) -> &'static [AccessPath];

    /// A row of a plan, as people read it.
    fn plan<'a>(&self, row: &'a str) -> &'a str;

    /// Makes the database with these tables, or takes the one made earlier. It is the one that statements are asked of.
    fn load(&mut self, tables: &TableFiles) -> Result<(), Error>;

    /// The rows of each statement, by the host's own build.
    fn ask(&self, statements: &[Statement]) -> Result<Vec<String>, Error>;

    /// The cost and the rows of each statement on Alpha. `progress` hears which statements are next.
    fn measure(
        &self,
        statements: &[Statement],
        models_of: &MachineModels,
        progress: &dyn Fn(&str),
    ) -> Result<Vec<Answered>, Error>;
}
