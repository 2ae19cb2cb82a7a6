//! A program that runs already.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use engine::AttachTarget;
use host::interrupt::InterruptGuard;

/// A program to attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedProgram {
    /// The number of its process.
    pub process: u32,
    /// Whether the processes that it has forked belong to it.
    pub children: bool,
    /// How long it is observed, if not until Ctrl-C.
    pub duration: Option<Duration>,
}

impl AttachedProgram {
    /// The processes to attach to.
    pub(crate) fn target(&self) -> AttachTarget {
        AttachTarget { process: self.process, with_children: self.children }
    }
}

/// The end of an observation: Ctrl-C, or the end of its duration, which begins when all processes are observed.
pub(crate) struct ObservationEnd {
    duration: Option<Duration>,
    began: OnceLock<Instant>,
    caught: InterruptGuard,
}

impl ObservationEnd {
    /// From now on, Ctrl-C ends the observation instead of this process.
    pub fn of(attached: &AttachedProgram) -> ObservationEnd {
        let &AttachedProgram { duration, .. } = attached;
        ObservationEnd { duration, began: OnceLock::new(), caught: InterruptGuard::new() }
    }

    /// Whether it has come, as [`engine::IsEnough`] asks.
    pub fn has_come(&self, has_begun: bool) -> bool {
        let began = if has_begun { Some(self.began.get_or_init(Instant::now)) } else { self.began.get() };
        let is_over = |began: &Instant| self.duration.is_some_and(|duration| began.elapsed() >= duration);
        self.caught.is_interrupted() || began.is_some_and(is_over)
    }
}
