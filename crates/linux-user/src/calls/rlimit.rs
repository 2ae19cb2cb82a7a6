//! Resource limits. Those on memory are emulated: the host's would apply to the engine.

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u64_at};
use crate::calls::call::{Call, CallOutcome};
use crate::reserved;
use crate::state::rlimit::{RESOURCE_COUNT, most_descriptors};
use guest_memory::{Memory, MemoryRegion, RegionBacking};
use host::Errno;

const EINVAL: Errno = Errno(libc::EINVAL);

/// The host's number of a resource.
pub fn host_resource<G: Abi>(guest: u64) -> Result<u32, Errno> {
    if guest as u32 as usize >= RESOURCE_COUNT {
        return Err(EINVAL);
    }
    let guest = u64::from(guest as u32);
    let found = G::RESOURCES.iter().find(|(number, _)| *number == guest);
    Ok(found.map_or(guest as u32, |(_, host)| *host))
}

/// Limits that are emulated, since the host's would apply to the engine.
fn is_guests_own(resource: u32) -> bool {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_STACK].contains(&resource)
}

fn limit<G: Abi>(call: &Call<G>, process: u64, resource: u32) -> Result<[u64; 2], Errno> {
    let mut limit = [0u64; 2];
    let own = call.kernel.limits[resource as usize];
    if let Some(own) = own.filter(|_| is_own_process(process)) {
        return Ok(own);
    }
    let arguments = [process, u64::from(resource), 0, limit.as_mut_ptr() as u64, 0, 0];
    call.host(libc::SYS_prlimit64, arguments)?;
    if resource == libc::RLIMIT_NOFILE && is_own_process(process) {
        limit = limit.map(|value| value.min(most_descriptors()));
    }
    if resource == libc::RLIMIT_STACK && is_own_process(process) {
        limit[0] = call.kernel.stack_bytes().min(limit[1]);
    }
    Ok(limit)
}

fn is_own_process(process: u64) -> bool {
    process as u32 == 0 || process as u32 == std::process::id()
}

fn set_limit<G: Abi>(call: &mut Call<G>, process: u64, resource: u32, new: [u64; 2]) -> CallOutcome {
    if new[0] > new[1] {
        return Err(EINVAL);
    }
    let is_descriptors = resource == libc::RLIMIT_NOFILE;
    if (is_guests_own(resource) || is_descriptors) && is_own_process(process) {
        // SAFETY: no preconditions.
        let privileged = unsafe { libc::geteuid() } == 0;
        let is_too_high = is_descriptors && new[1] > most_descriptors();
        if is_too_high || new[1] > limit(call, process, resource)?[1] && !privileged {
            return Err(Errno(libc::EPERM));
        }
        if is_descriptors {
            // The engine may need more.
            reserved::change_limit(Some([new[0], reserved::inherited_limit()[1]]));
        }
        call.kernel.limits[resource as usize] = Some(new);
        if let Some(bytes) = call.kernel.stack_limit().filter(|_| resource == libc::RLIMIT_STACK) {
            grow_stack(call.memory, bytes);
        }
        return Ok(0);
    }
    call.host(libc::SYS_prlimit64, [process, u64::from(resource), new.as_ptr() as u64, 0, 0, 0])
}

/// getrlimit(resource, limit)
pub fn getrlimit<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [resource, address, ..] = call.arguments;
    let limit = limit(call, 0, host_resource::<G>(resource)?)?;
    call.write(address, &GuestStructure::new().u64s(&limit.map(|value| value.min(G::UNLIMITED))))?;
    Ok(0)
}

/// setrlimit(resource, limit)
pub fn setrlimit<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [resource, address, ..] = call.arguments;
    let bytes: [u8; 16] = call.read(address)?;
    let value = |offset| match u64_at(&bytes, offset) {
        value if value >= G::UNLIMITED => u64::MAX,
        value => value,
    };
    set_limit(call, 0, host_resource::<G>(resource)?, [value(0), value(8)])
}

/// prlimit64(process, resource, new, old)
pub fn prlimit64<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [process, resource, new, old, ..] = call.arguments;
    let resource = host_resource::<G>(resource)?;
    let before = limit(call, process, resource)?;
    if new != 0 {
        let bytes: [u8; 16] = call.read(new)?;
        set_limit(call, process, resource, [u64_at(&bytes, 0), u64_at(&bytes, 8)])?;
    }
    if old != 0 {
        call.write(old, &GuestStructure::new().u64s(&before))?;
    }
    Ok(0)
}

/// In Linux a stack grows on demand up to the current limit. The engine maps it completely, so a higher limit extends
/// it at once if there is room.
fn grow_stack(memory: &Memory, bytes: u64) {
    let stack =
        |(_, region): &&(u64, MemoryRegion)| matches!(region.backing, RegionBacking::Named("[stack]"));
    let regions = memory.regions();
    let (Some((start, _)), Some((_, last))) = (regions.iter().find(stack), regions.iter().rfind(stack))
    else {
        return;
    };
    let page = memory.layout().page;
    let low = last.end.saturating_sub(bytes.next_multiple_of(page));
    // The old guard page becomes part of the stack, and there is a new one below.
    let (guard, present) = (low.saturating_sub(page), start - page);
    if low >= *start || !memory.is_free(guard, present - guard) {
        return;
    }
    // Without room the stack keeps its size.
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let _ = memory
        .map_anonymous(low, start - low, protection, false, RegionBacking::Named("[stack]"))
        .and_then(|()| memory.map_anonymous(guard, page, 0, false, RegionBacking::Named("[guard]")));
}
