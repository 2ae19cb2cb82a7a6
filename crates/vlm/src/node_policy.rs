//! Allocation on one NUMA node.

use std::ffi::c_ulong;

use crate::error::{Error, Result};

/// While the value exists, this thread allocates pages on one node only.
#[derive(Debug)]
pub struct NodePolicy {
    is_set: bool,
}

const NODES: u32 = 1024;
const BITS: u32 = c_ulong::BITS;

impl NodePolicy {
    /// Sets the policy; without a node there is none to set.
    pub fn set(node: Option<u32>) -> Result<NodePolicy> {
        let Some(node) = node else { return Ok(NodePolicy { is_set: false }) };
        let refused = |reason: &str| Error::Request(format!("cannot allocate on NUMA node {node}: {reason}"));
        let mut mask = [0 as c_ulong; (NODES / BITS) as usize];
        let word = mask.get_mut((node / BITS) as usize).ok_or_else(|| refused("there is no such node"))?;
        *word = 1 << (node % BITS);
        // SAFETY: The mask has as many bits as the call is told, and the kernel only reads it.
        let outcome = unsafe {
            libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), u64::from(NODES))
        };
        if outcome == 0 {
            Ok(NodePolicy { is_set: true })
        } else {
            Err(refused(&std::io::Error::last_os_error().to_string()))
        }
    }
}

impl Drop for NodePolicy {
    fn drop(&mut self) {
        if self.is_set {
            // SAFETY: The default policy has no mask.
            unsafe {
                libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_DEFAULT, std::ptr::null::<c_ulong>(), 0_u64)
            };
        }
    }
}
