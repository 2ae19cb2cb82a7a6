//! The result of the study.

use super::measure::ProgramResult;

/// Everything that was found.
pub struct SpikeStudy {
    /// The programs, in the requested order.
    pub programs: Vec<ProgramResult>,
    /// Versions and commands.
    pub(super) provenance: Vec<(String, String)>,
}
