//! The result of the study.

use super::measure::SpikeProgramResult;

/// Everything that was found.
pub struct SpikeStudy {
    /// The programs, in the requested order.
    pub programs: Vec<SpikeProgramResult>,
    /// Versions and commands.
    pub(super) provenance: Vec<(String, String)>,
}
