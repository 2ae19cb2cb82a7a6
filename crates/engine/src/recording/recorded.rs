//! The summary of a recording.

/// A recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Number of instructions of all threads; 0 if a consumer received them unchanged.
    pub instructions: u64,
    /// Number of units of work that began, recorded or not.
    pub units: u64,
    /// Whether the location at which recording begins was reached.
    pub has_begun: bool,
}
