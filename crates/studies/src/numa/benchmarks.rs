//! The benchmarks of the study, and the steps in which the server comes to need fewer operations.

use crate::recorded_server::{ServerLoad, TransactionBenchmark};

/// A benchmark whose transactions are studied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaBenchmark {
    /// TPC-C, that of the talk.
    Tpcc,
    /// TPC-B, by pgbench.
    Tpcb,
}

/// The company of TPC-C: so small that what all clients read is in each node's far cache after the warm-up, as it is after minutes
/// with a company of full size, and that all of it fits the server's buffers.
const SMALL_COMPANY: &[&str] = &["--items", "1000", "--customers", "300"];

impl NumaBenchmark {
    /// All of them, in the order in which they are studied.
    pub const ALL: [NumaBenchmark; 2] = [NumaBenchmark::Tpcc, NumaBenchmark::Tpcb];

    /// The name on the command line and in names of tables.
    pub fn name(self) -> &'static str {
        match self {
            NumaBenchmark::Tpcc => "tpcc",
            NumaBenchmark::Tpcb => "tpcb",
        }
    }

    /// The name in texts.
    pub(super) fn title(self) -> &'static str {
        match self {
            NumaBenchmark::Tpcc => "TPC-C",
            NumaBenchmark::Tpcb => "TPC-B",
        }
    }

    /// The transaction that is compared: New-Order of TPC-C, each one of TPC-B.
    pub(super) fn unit(self) -> &'static str {
        match self {
            NumaBenchmark::Tpcc => "New-Order",
            NumaBenchmark::Tpcb => "transaction",
        }
    }

    /// What clients ask, with as many branches or warehouses as there can be clients.
    pub(super) fn load(self, size: u32, step: &NumaStep) -> ServerLoad {
        let benchmark = match self {
            NumaBenchmark::Tpcc => TransactionBenchmark::Tpcc(SMALL_COMPANY),
            NumaBenchmark::Tpcb => TransactionBenchmark::Tpcb,
        };
        ServerLoad { benchmark, size, is_placed: step.is_placed }
    }
}

/// A way to run the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NumaStep {
    pub(super) name: &'static str,
    /// Clients have branches or warehouses of their own.
    is_placed: bool,
    /// PostgreSQL is the changed one.
    pub(super) is_changed: bool,
}

/// The steps of the study.
pub(super) const STEPS: [NumaStep; 3] = [
    NumaStep { name: "as it is", is_placed: false, is_changed: false },
    NumaStep { name: "own branches or warehouses", is_placed: true, is_changed: false },
    NumaStep { name: "the same, changed PostgreSQL", is_placed: true, is_changed: true },
];
