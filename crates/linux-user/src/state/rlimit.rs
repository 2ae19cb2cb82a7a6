//! The limit of descriptors, which the engine must restrict.

use crate::{procfs, reserved};

/// Number of resources (RLIM_NLIMITS).
pub const RESOURCE_COUNT: usize = 16;

/// The highest limit of descriptors that the guest can set: reserved numbers lie above.
pub fn most_descriptors() -> u64 {
    reserved::first() as u64
}

/// Before the guest starts: restricts its descriptors to numbers below the reserved ones.
pub fn begin() {
    procfs::begin();
    let [soft, hard] = reserved::inherited_limit();
    reserved::change_limit(Some([soft.min(most_descriptors()), hard]));
}

/// After the guest has ended: restores the engine's limit of descriptors.
pub fn end() {
    reserved::change_limit(Some(reserved::inherited_limit()));
}
