//! Tables of what spike did, of what it proved, and of what branch logs have.

mod checked;
mod logged;
mod optimized;

use table::{Value, separated};

pub use checked::{differences, proved};
pub use logged::{LoggedInstructions, LoggedRows};
pub use optimized::{coverage, procedures, reduction};

/// A number for people.
pub fn number(number: u64) -> String {
    separated(&number.to_string())
}

/// A cell with a number.
fn count(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The share of a part, in percent.
fn share(part: u64, whole: u64) -> Value {
    if whole == 0 { Value::Missing } else { Value::Real(part as f64 * 100.0 / whole as f64) }
}
