//! What the study of TPC-H found.

use machine::Machine;

use super::measured::Measured;
use super::statements::AccessPath;
use crate::tpcc::DatabaseSystem;

/// The machines: that of the talk, on which everything is measured, and a present-day one; both with out-of-order cores.
pub(super) const MACHINES: [&str; 2] = ["origin200-core", "present-day-core"];

/// A query at one scale factor.
pub(super) struct QueryCost {
    pub(super) number: u32,
    /// How many rows it has.
    pub(super) rows: usize,
    pub(super) plan: String,
    pub(super) measured: Measured,
}

/// All queries at one scale factor.
pub(super) struct ScaleCosts {
    pub(super) scale: f64,
    pub(super) queries: Vec<QueryCost>,
}

/// The shipments of some days, by each access path.
pub(super) struct PathCosts {
    /// How many rows were read.
    pub(super) rows: u64,
    /// The share of all rows in percent.
    pub(super) selectivity: f64,
    /// By access path.
    pub(super) measured: Vec<Measured>,
    /// The access path that the optimizer chooses.
    pub(super) chosen: Option<usize>,
}

/// Everything that was found.
pub struct TpchStudy {
    pub(super) system: DatabaseSystem,
    /// The chosen scale factor.
    pub(super) scale: f64,
    /// Ascending. All machines are measured at the chosen one, the first machine at the others.
    pub(super) scales: Vec<ScaleCosts>,
    pub(super) paths: &'static [AccessPath],
    pub(super) selectivities: Vec<PathCosts>,
    pub(super) machines: Vec<Machine>,
    pub(super) provenance: Vec<(String, String)>,
}

impl TpchStudy {
    /// The queries at the chosen scale factor.
    pub(super) fn queries(&self) -> &[QueryCost] {
        let chosen = self.scales.iter().find(|costs| costs.scale == self.scale);
        chosen.map_or(&[], |costs| &costs.queries)
    }
}
