//! Limits of resources, as far as the engine must keep to them.

use crate::reserved;

/// How many there are (RLIM_NLIMITS).
pub const RESOURCE_COUNT: usize = 16;

/// The highest limit of descriptors that the guest can have: the engine's own lie above.
pub fn most_descriptors() -> u64 {
    reserved::first() as u64
}

/// Before the guest begins: it cannot have descriptors where the engine's are.
pub fn begin() {
    let [soft, hard] = reserved::inherited_limit();
    reserved::change_limit(Some([soft.min(most_descriptors()), hard]));
}

/// When the guest has ended: the engine's own limit of descriptors.
pub fn end() {
    reserved::change_limit(Some(reserved::inherited_limit()));
}
