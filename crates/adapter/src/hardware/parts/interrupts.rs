//! The state of interrupts.

use crate::clock::Picoseconds;

/// An interrupt of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::hardware) struct InterruptLine {
    /// Something has happened that the host was not told.
    pub(in crate::hardware) is_pending: bool,
    /// The host serves it, and has not written the delay yet.
    pub(in crate::hardware) is_served: bool,
    /// The end of the delay.
    pub(in crate::hardware) armed: Picoseconds,
}
