//! What a recording says of itself.

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Instructions, of all threads; 0 if they went to a consumer as they were.
    pub instructions: u64,
    /// Units of work that began, whether they were recorded or not.
    pub units: u64,
    /// Whether the place at which recording was to begin was reached.
    pub has_begun: bool,
}
