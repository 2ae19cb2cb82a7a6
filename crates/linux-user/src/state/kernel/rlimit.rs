//! The resource limits that a process has set.

use super::Kernel;
use crate::abi::Abi;
use crate::reserved;
use crate::state::rlimit::begin;

/// Sets the guest's limit of descriptors, or else the one with which the engine started, before a host program
/// replaces the engine.
pub fn hand_over<G: Abi>(kernel: &Kernel<G>) {
    let own = kernel.limits[libc::RLIMIT_NOFILE as usize];
    reserved::change_limit(Some(own.unwrap_or(reserved::inherited_limit())));
}

/// The host program could not be executed.
pub fn take_back<G: Abi>(kernel: &Kernel<G>) {
    match kernel.limits[libc::RLIMIT_NOFILE as usize] {
        Some([soft, _]) => drop(reserved::change_limit(Some([soft, reserved::inherited_limit()[1]]))),
        None => begin(),
    }
}

/// The stack's size if its limit is too low or too high.
const STACK_BYTES: std::ops::RangeInclusive<u64> = 128 << 10..=16 << 30;

impl<G: Abi> Kernel<G> {
    /// The size of a stack under the process's limit.
    pub(crate) fn stack_limit(&self) -> Option<u64> {
        let [soft, _] = self.limits[libc::RLIMIT_STACK as usize]?;
        Some(soft.clamp(*STACK_BYTES.start(), *STACK_BYTES.end()))
    }

    /// The process's soft limit of an emulated resource; u64::MAX if there is none.
    pub(crate) fn own_limit(&self, resource: u32) -> u64 {
        self.limits[resource as usize].map_or(u64::MAX, |[soft, _]| soft)
    }
}
