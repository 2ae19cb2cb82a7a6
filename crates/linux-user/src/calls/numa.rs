//! NUMA policy: the host's memory nodes of the guest's pages.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u64_at};
use crate::calls::call::{Call, CallOutcome};
use crate::calls::mm::{mapped_or, range};
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);
const EFAULT: Errno = Errno(libc::EFAULT);

/// The host pointer to a mask of `bits` nodes; the kernel uses one bit less (mm/mempolicy.c, get_nodes).
fn mask<G: Abi>(call: &Call<G>, address: u64, bits: u64) -> Result<u64, Errno> {
    /// The kernel accepts at most a page of mask.
    const MOST_BITS: u64 = 8 * 4096;
    if address != 0 && bits > MOST_BITS {
        return Err(EINVAL);
    }
    call.pointer(address, bits.div_ceil(64) * 8)
}

/// mbind(address, length, mode, mask, bits, flags)
pub fn mbind<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, mode, nodes, bits, flags] = call.arguments;
    let bytes = range(G::LAYOUT, start, length, EINVAL)?;
    let nodes = mask(call, nodes, bits)?;
    mapped_or(call, start, bytes, EFAULT)?;
    let host = call.pointer(start, bytes)?;
    call.host_unlocked(libc::SYS_mbind, [host, bytes, mode, nodes, bits, flags])
}

/// set_mempolicy(mode, mask, bits)
pub fn set_mempolicy<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [mode, nodes, bits, ..] = call.arguments;
    let nodes = mask(call, nodes, bits)?;
    call.host(libc::SYS_set_mempolicy, [mode, nodes, bits, 0, 0, 0])
}

/// get_mempolicy(mode, mask, bits, address, flags)
pub fn get_mempolicy<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    const OF_ADDRESS: u64 = 2;
    let [mode, nodes, bits, address, flags, _] = call.arguments;
    let mode = call.pointer(mode, 4)?;
    let nodes = mask(call, nodes, bits)?;
    let address = if flags & OF_ADDRESS == 0 {
        address
    } else {
        call.memory.region_at(address).ok_or(EFAULT)?;
        call.pointer(address, 1)?
    };
    call.host(libc::SYS_get_mempolicy, [mode, nodes, bits, address, flags, 0])
}

/// set_mempolicy_home_node(address, length, node, flags)
pub fn set_mempolicy_home_node<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, node, flags, ..] = call.arguments;
    let bytes = range(G::LAYOUT, start, length, EINVAL)?;
    mapped_or(call, start, bytes, EFAULT)?;
    let host = call.pointer(start, bytes)?;
    call.host(libc::SYS_set_mempolicy_home_node, [host, bytes, node, flags, 0, 0])
}

/// migrate_pages(process, bits, old mask, new mask)
pub fn migrate_pages<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [process, bits, old, new, ..] = call.arguments;
    let (old, new) = (mask(call, old, bits)?, mask(call, new, bits)?);
    call.host_unlocked(libc::SYS_migrate_pages, [process, bits, old, new, 0, 0])
}

/// move_pages(process, number, pages, nodes, statuses, flags)
pub fn move_pages<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    /// Maximum number of pages in a call; a longer list takes several.
    const AT_ONCE: u64 = 1024;
    let [process, count, pages, nodes, statuses, flags] = call.arguments;
    let mut at = 0;
    loop {
        let some = (count - at).min(AT_ONCE);
        let mut bytes = vec![0u8; 8 * some as usize];
        call.memory.read(pages.wrapping_add(8 * at), &mut bytes)?;
        // Pages that the guest has not mapped are reported as absent, although they are reserved.
        let host = |bytes: &[u8]| {
            let page = u64_at(bytes, 0);
            call.memory.region_at(page).and_then(|_| call.pointer(page, 1).ok()).unwrap_or(0)
        };
        let hosts: Vec<u64> = bytes.chunks(8).map(host).collect();
        let word = |address: u64| match address {
            0 => Ok(0),
            _ => call.pointer(address.wrapping_add(4 * at), 4 * some),
        };
        let (nodes, mut found) = (word(nodes)?, vec![0i32; some as usize]);
        let (list, status) = (hosts.as_ptr() as u64, found.as_mut_ptr() as u64);
        call.host_unlocked(libc::SYS_move_pages, [process, some, list, nodes, status, flags])?;
        let guest = |status: &i32| match *status {
            failed if failed < 0 => (G::guest_error(Errno(-failed)) as u32).wrapping_neg(),
            node => node as u32,
        };
        let record = GuestStructure::new().u32s(&found.iter().map(guest).collect::<Vec<u32>>());
        call.write(statuses.wrapping_add(4 * at), &record)?;
        at += some;
        if at >= count {
            return Ok(0);
        }
    }
}
