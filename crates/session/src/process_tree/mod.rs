//! All processes of a program: counted, or observed by models.

mod counts;
mod dictionary;
mod forked_tree;
mod forwarding;
mod messages;
mod observe;
mod rings;
mod watcher;

use std::path::Path;

use engine::ProcessState;

pub use self::counts::{
    CountFolder, CountedTree, attach_watched, classes, count, count_running, count_watched, is_folder,
    processes, read, run_counts,
};
pub(crate) use self::dictionary::TreeDictionary;
pub use self::messages::AttachedRings;
pub use self::observe::{Observed, ObservedProcess, observe, observe_running};

/// How a process ended, for people.
pub fn describe(state: &ProcessState) -> String {
    match state {
        ProcessState::Ended(events::ProcessEnd::Exited(status)) => format!("exited with status {status}"),
        ProcessState::Ended(events::ProcessEnd::Killed(signal)) => format!("killed by signal {signal}"),
        ProcessState::Gone => "killed, or replaced by a program of the host".into(),
        ProcessState::Running => "still runs".into(),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether the host has a process of this number.
fn is_alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}
