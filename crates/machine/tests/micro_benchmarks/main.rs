//! Micro-benchmarks: small programs whose cycles follow from the fields of a machine's description, on every machine that comes
//! with the crate. Each has a formula, which knows nothing of the models. docs/micro-benchmarks.md is the table of the results.

#[path = "../pipeline/assembler.rs"]
mod assembler;
mod described;
mod loops;
mod memory_cases;
mod operation_cases;
mod reach;
mod sweeps;
mod table;

use std::fmt;

use described::{Core, Described};

/// The machines whose cores and memories differ: the table shows them, and sweeps change them. Others differ by the clock alone,
/// or only `sharing` and `caches` take them.
const DIFFERENT_MACHINES: &[&str] = &[
    "dec3000",
    "alphastation500",
    "alpha21264",
    "origin200",
    "r10000",
    "pentium-pro-core",
    "present-day",
    "present-day-core",
];

/// A program that is measured on machines.
pub struct MicroBenchmark {
    /// The measured quantity, as in the table.
    pub name: String,
    /// The table in which it is.
    pub section: &'static str,
    /// The measurement on a machine, and the value that follows from the machine's fields; none if it does not apply.
    pub case: Box<Case>,
}

/// Measures a machine, and computes what follows from its fields.
type Case = dyn Fn(&Described) -> Option<(f64, Expected)>;

/// The result of a formula.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// One value.
    Exactly(f64),
    /// From, to: where the alignment of instructions matters.
    Between(f64, f64),
}

impl Expected {
    fn fits(self, measured: f64) -> bool {
        let (from, to) = match self {
            Expected::Exactly(value) => (value, value),
            Expected::Between(from, to) => (from, to),
        };
        (from - 1e-9..=to + 1e-9).contains(&measured)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Expected::Exactly(value) => write!(f, "{value}"),
            Expected::Between(from, to) => write!(f, "{from} to {to}"),
        }
    }
}

/// A micro-benchmark of machines that have a core.
fn bench(
    section: &'static str,
    name: impl Into<String>,
    case: impl Fn(&Described, &Core) -> Option<(f64, Expected)> + 'static,
) -> MicroBenchmark {
    let case = move |described: &Described| case(described, &described.core()?);
    MicroBenchmark { name: name.into(), section, case: Box::new(case) }
}

/// All of them, in the order of the table.
fn all() -> Vec<MicroBenchmark> {
    [operation_cases::all(), memory_cases::all(), reach::all()].into_iter().flatten().collect()
}
