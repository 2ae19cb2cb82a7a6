//! The states of a processor's copy of a line.

/// The state of a processor's copy of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CoherenceState {
    /// There is no copy.
    #[default]
    Invalid,
    /// Other caches may have a copy.
    Shared,
    /// The only copy, as in memory.
    Exclusive,
    /// Others may have copies; memory is stale, and this cache supplies the line.
    Owned,
    /// The only copy; memory is stale.
    Modified,
}

impl CoherenceState {
    /// All states, in order.
    pub const ALL: [CoherenceState; 5] = [
        CoherenceState::Invalid,
        CoherenceState::Shared,
        CoherenceState::Exclusive,
        CoherenceState::Owned,
        CoherenceState::Modified,
    ];

    pub(super) fn is_dirty(self) -> bool {
        matches!(self, CoherenceState::Owned | CoherenceState::Modified)
    }
}
