//! System calls on the address space: mmap and related calls, and the heap.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use events::LoadedImage;

use crate::abi::Abi;
use crate::calls::call::{Call, CallOutcome};
use crate::calls::stat::host_status;
use crate::loader::STACK;
use crate::state::heap::ProgramHeap;
use crate::state::substitution::identity;
use crate::{descriptor_table, memory_file, procfs, reserved};
use guest_memory::{Layout, Memory, RegionBacking};
use host::Errno;

/// PROT_READ, PROT_WRITE, PROT_EXEC, PROT_SEM.
const PROTECTIONS: u64 = 0xf;

const EINVAL: Errno = Errno(libc::EINVAL);
const ENOMEM: Errno = Errno(libc::ENOMEM);

/// A length rounded up to whole pages; `error` if it wraps around or exceeds the address space.
fn pages(layout: Layout, bytes: u64, error: Errno) -> Result<u64, Errno> {
    bytes.checked_next_multiple_of(layout.page).filter(|&bytes| bytes <= layout.bytes).ok_or(error)
}

/// A range of whole pages; EINVAL if the address is not page-aligned.
pub fn range(layout: Layout, start: u64, bytes: u64, too_long: Errno) -> Result<u64, Errno> {
    if !start.is_multiple_of(layout.page) {
        return Err(EINVAL);
    }
    let bytes = pages(layout, bytes, too_long)?;
    if start > layout.bytes - bytes {
        return Err(too_long);
    }
    Ok(bytes)
}

/// brk(address): the new break, or the old one if it cannot be moved.
pub fn brk<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let wanted = call.arguments[0];
    let limit = call.kernel.own_limit(libc::RLIMIT_DATA);
    let ProgramHeap { start, end, is_executable } = call.kernel.heap;
    let Layout { page, bytes, .. } = G::LAYOUT;
    if wanted < start || wanted > start.saturating_add(limit).min(bytes - page) {
        return Ok(end);
    }
    let (old, new) = (end.next_multiple_of(page), wanted.next_multiple_of(page));
    let changed = if new > old {
        let execute = if is_executable { libc::PROT_EXEC } else { 0 };
        let protection = libc::PROT_READ | libc::PROT_WRITE | execute;
        check_space(call, new - old).is_ok()
            && call.memory.is_free(old, new - old)
            && call
                .memory
                .map_anonymous(old, new - old, protection, false, RegionBacking::Named("[heap]"))
                .is_ok()
    } else {
        new == old || call.memory.unmap(new, old - new).is_ok()
    };
    if changed {
        call.kernel.heap.end = wanted;
    }
    Ok(call.kernel.heap.end)
}

/// Fails with ENOMEM if `more` bytes of address space would exceed RLIMIT_AS.
fn check_space<G: Abi>(call: &Call<G>, more: u64) -> Result<(), Errno> {
    let limit = call.kernel.own_limit(libc::RLIMIT_AS);
    if limit == u64::MAX {
        return Ok(());
    }
    if call.memory.mapped_bytes().saturating_add(more) > limit { Err(ENOMEM) } else { Ok(()) }
}

/// mmap(address, length, protection, flags, descriptor, offset)
pub fn mmap<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [address, length, protection, flags, descriptor, offset] = call.arguments;
    let host_flags = G::MAP.host(flags) as i32;
    let kind = (flags & 0xf) as i32;
    let shared = kind == libc::MAP_SHARED || kind == libc::MAP_SHARED_VALIDATE;
    let anonymous = host_flags & libc::MAP_ANONYMOUS != 0;
    let is_known = shared && !(anonymous && kind == libc::MAP_SHARED_VALIDATE) || kind == libc::MAP_PRIVATE;
    if length == 0 || !is_known || !offset.is_multiple_of(G::LAYOUT.page) {
        return Err(EINVAL);
    }
    let is_large = anonymous && host_flags & libc::MAP_HUGETLB != 0;
    if is_large && !has_large_pages::<G>(address, flags) {
        return Err(EINVAL);
    }
    let length = match is_large {
        true => length.checked_next_multiple_of(G::LAYOUT.large_page).ok_or(ENOMEM)?,
        false => length,
    };
    let bytes = pages(G::LAYOUT, length, ENOMEM)?;
    if offset.checked_add(bytes).is_none() {
        return Err(Errno(libc::EOVERFLOW));
    }
    let file = if anonymous { None } else { Some(File::examine(descriptor as i32, protection, shared)?) };
    if kind == libc::MAP_SHARED_VALIDATE && flags & !G::MAP_VALIDATED != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    check_space(call, bytes)?;
    let start = match is_large && flags & (G::MAP_FIXED | G::MAP_FIXED_NOREPLACE) == 0 {
        true => call.memory.find_free_large(bytes).ok_or(ENOMEM)?,
        false => choose_address(call, address, bytes, flags)?,
    };
    let protection = (protection & PROTECTIONS) as i32;
    match file {
        None => call.memory.map_anonymous(start, bytes, protection, shared, RegionBacking::Anonymous)?,
        Some(File { path, status }) => {
            // What the program sees, and what is executed.
            let original = call.kernel.original(identity(&status));
            let original =
                original.or_else(|| call.kernel.original_around(start, call.cpu.pc())).unwrap_or(&path);
            let (shown, descriptor) = (Arc::new(original.to_path_buf()), descriptor as i32);
            call.memory.map_file(start, bytes, protection, shared, descriptor, offset, shown)?;
            if protection & libc::PROT_EXEC != 0 {
                call.kernel.images.extend(image_at(G::LAYOUT, &path, start, bytes, offset));
            }
        }
    }
    if host_flags & libc::MAP_LOCKED != 0 {
        let host = call.pointer(start, bytes)?;
        // As Linux: a failure to lock is not reported.
        let _ = call.host(libc::SYS_mlock, [host, bytes, 0, 0, 0, 0]);
    }
    Ok(start)
}

/// Whether memory of mmap can be in large pages: those that the guest has, at a fixed address only where they lie.
fn has_large_pages<G: Abi>(address: u64, flags: u64) -> bool {
    let Layout { large_page, large_base, .. } = G::LAYOUT;
    let logarithm = flags >> libc::MAP_HUGE_SHIFT & libc::MAP_HUGE_MASK as u64;
    let is_fixed = flags & (G::MAP_FIXED | G::MAP_FIXED_NOREPLACE) != 0;
    (logarithm == 0 || logarithm == large_page.ilog2().into())
        && (!is_fixed || address >= large_base && address.is_multiple_of(large_page))
}

fn choose_address<G: Abi>(call: &mut Call<G>, address: u64, bytes: u64, flags: u64) -> Result<u64, Errno> {
    let layout = G::LAYOUT;
    if flags & (G::MAP_FIXED | G::MAP_FIXED_NOREPLACE) == 0 {
        return call.memory.find_free(layout.page_of(address), bytes).ok_or(ENOMEM);
    }
    if !address.is_multiple_of(layout.page) {
        return Err(EINVAL);
    }
    if address > layout.bytes - bytes {
        return Err(ENOMEM);
    }
    if address < layout.page {
        // vm.mmap_min_addr.
        return Err(Errno(libc::EPERM));
    }
    if flags & G::MAP_FIXED_NOREPLACE != 0 && !call.memory.is_free(address, bytes) {
        return Err(Errno(libc::EEXIST));
    }
    Ok(address)
}

/// Properties of a descriptor that mmap checks.
struct File {
    path: PathBuf,
    status: libc::stat,
}

impl File {
    /// The checks that Linux makes before it unmaps the range of a fixed mapping.
    fn examine(descriptor: i32, protection: u64, shared: bool) -> Result<File, Errno> {
        reserved::check_descriptor(descriptor as u64)?;
        // SAFETY: no pointers are passed.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        if flags < 0 {
            return Err(Errno::last());
        }
        let access = flags & libc::O_ACCMODE;
        let writes = protection & libc::PROT_WRITE as u64 != 0;
        if access == libc::O_WRONLY || flags & libc::O_PATH != 0 || shared && writes && access != libc::O_RDWR
        {
            return Err(Errno(libc::EACCES));
        }
        if memory_file::process_of(descriptor).is_some() {
            return Err(Errno(libc::ENODEV));
        }
        let path = PathBuf::from(OsString::from_vec(procfs::link_of(descriptor).unwrap_or_default()));
        Ok(File { path, status: host_status(descriptor, c"", libc::AT_EMPTY_PATH)? })
    }
}

/// The image whose code a new mapping contains, if the file is one.
fn image_at(layout: Layout, path: &Path, start: u64, bytes: u64, offset: u64) -> Option<LoadedImage> {
    let image = descriptor_table::read_image(path).ok().filter(|image| !image.is_kernel())?;
    let segment = image.segments().iter().find(|segment| {
        segment.executable && (segment.file.start as u64) < offset + bytes && segment.file.end as u64 > offset
    })?;
    let linked = segment.address.wrapping_sub(segment.file.start as u64).wrapping_add(offset);
    let bias = start.wrapping_sub(linked);
    let low = layout.page_of(image.segments().first()?.address);
    let high = image.segments().last()?.addresses().end.next_multiple_of(layout.page);
    Some(LoadedImage { path: path.into(), start: low.wrapping_add(bias), end: high.wrapping_add(bias), bias })
}

/// munmap(address, length)
pub fn munmap<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, ..] = call.arguments;
    let bytes = range(G::LAYOUT, start, length, EINVAL)?;
    if bytes == 0 {
        return Err(EINVAL);
    }
    call.memory.unmap(start, bytes)?;
    Ok(0)
}

/// mprotect(address, length, protection)
pub fn mprotect<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, protection, ..] = call.arguments;
    const GROWS_DOWN: u64 = 0x0100_0000;
    if protection & !(PROTECTIONS | GROWS_DOWN) != 0 {
        return Err(EINVAL);
    }
    let bytes = range(G::LAYOUT, start, length, ENOMEM)?;
    if bytes > 0 {
        let (start, bytes) = match protection & GROWS_DOWN {
            0 => (start, bytes),
            _ => down_to_stack_end(call.memory, start, bytes)?,
        };
        call.memory.protect(start, bytes, (protection & PROTECTIONS) as i32)?;
    }
    Ok(0)
}

/// With PROT_GROWSDOWN a range of the stack is extended down to the stack's lowest address; EINVAL for other memory.
/// The C library uses it to make stacks executable.
fn down_to_stack_end(memory: &Memory, start: u64, bytes: u64) -> Result<(u64, u64), Errno> {
    let is_stack = |address| {
        memory.region_at(address).filter(|(_, region)| region.backing == RegionBacking::Named(STACK))
    };
    let (mut low, _) = is_stack(start).ok_or(EINVAL)?;
    // Parts of the stack may have different protections.
    while let Some((lower, _)) = is_stack(low - 1) {
        low = lower;
    }
    Ok((low, start + bytes - low))
}

/// mremap(address, old length, new length, flags, new address)
pub fn mremap<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, old, new, flags, target, _] = call.arguments;
    let (may_move, fixed) = (flags & 1 != 0, flags & 2 != 0);
    let layout = G::LAYOUT;
    if flags & !3 != 0 || !start.is_multiple_of(layout.page) || fixed && !may_move {
        return Err(EINVAL);
    }
    let (old, new) = (pages(layout, old, EINVAL)?, pages(layout, new, EINVAL)?);
    if new == 0 {
        return Err(EINVAL);
    }
    if start > layout.bytes - old {
        return Err(Errno(libc::EFAULT));
    }
    let (_, region) = call.memory.region_at(start).ok_or(Errno(libc::EFAULT))?;
    if start + old > region.end && !is_one_mapping(call.memory, start, old) {
        return Err(Errno(libc::EFAULT));
    }
    if old == 0 && !(region.shared && may_move) {
        return Err(EINVAL);
    }
    let to = if fixed {
        if !target.is_multiple_of(layout.page)
            || target > layout.bytes - new
            || target < start + old && start < target + new
        {
            return Err(EINVAL);
        }
        call.memory.unmap(target, new)?;
        target
    } else if may_move {
        // Move even if it could stay, as QEMU does, so that addresses can be compared.
        match start >= layout.large_base {
            true => call.memory.find_free_large(new),
            false => call.memory.find_free(0, new),
        }
        .ok_or(ENOMEM)?
    } else if new <= old || call.memory.is_free(start + old, new - old) {
        start
    } else {
        return Err(ENOMEM);
    };
    check_space(call, new.saturating_sub(old))?;
    call.memory.remap(start, old, new, to)?;
    Ok(to)
}

/// Linux merges adjacent mappings with the same properties.
fn is_one_mapping(memory: &Memory, start: u64, bytes: u64) -> bool {
    let Some((_, first)) = memory.region_at(start) else { return false };
    let alike = |region: &guest_memory::MemoryRegion| {
        region.protection == first.protection
            && region.shared == first.shared
            && std::mem::discriminant(&region.backing) == std::mem::discriminant(&first.backing)
    };
    memory.is_mapped(start, bytes)
        && memory
            .regions()
            .iter()
            .filter(|(at, region)| *at < start + bytes && region.end > start)
            .all(|(_, region)| alike(region))
}

/// madvise(address, length, advice)
pub fn madvise<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, advice, ..] = call.arguments;
    let bytes = range(G::LAYOUT, start, length, EINVAL)?;
    let host_advice = G::host_advice(advice).ok_or(EINVAL)?;
    match host_advice {
        libc::MADV_DONTNEED
        | libc::MADV_FREE
        | libc::MADV_REMOVE
        | libc::MADV_DONTFORK
        | libc::MADV_DOFORK
        | libc::MADV_WIPEONFORK
        | libc::MADV_KEEPONFORK
        | libc::MADV_POPULATE_READ
        | libc::MADV_POPULATE_WRITE => {}
        // Affects only performance.
        0..=3 | 12..=17 | 20 | 21 => return mapped_or_enomem(call, start, bytes),
        _ => return Err(EINVAL),
    }
    mapped_or_enomem(call, start, bytes)?;
    if bytes == 0 {
        return Ok(0);
    }
    let host = call.pointer(start, bytes)?;
    let outcome = call.host(libc::SYS_madvise, [host, bytes, host_advice as u64, 0, 0, 0]);
    if call.memory.holds_code(start, bytes) {
        // Even after a failure, since part of the range may have changed.
        call.memory.code_changed();
    }
    outcome
}

fn mapped_or_enomem<G: Abi>(call: &Call<G>, start: u64, bytes: u64) -> CallOutcome {
    mapped_or(call, start, bytes, ENOMEM)
}

/// `error` unless the whole range is mapped.
pub fn mapped_or<G: Abi>(call: &Call<G>, start: u64, bytes: u64, error: Errno) -> CallOutcome {
    if call.memory.is_mapped(start, bytes) { Ok(0) } else { Err(error) }
}

/// msync(address, length, flags)
pub fn msync<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, flags, ..] = call.arguments;
    let host_flags = G::SYNC.host(flags);
    let both = (libc::MS_ASYNC | libc::MS_SYNC) as u64;
    if G::SYNC.guest(host_flags) != flags || host_flags & both == both {
        return Err(EINVAL);
    }
    let bytes = range(G::LAYOUT, start, length, ENOMEM)?;
    mapped_or_enomem(call, start, bytes)?;
    let host = call.memory.host(start, bytes).ok_or(ENOMEM)? as u64;
    call.wait(libc::SYS_msync, [host, bytes, host_flags, 0, 0, 0], crate::calls::call::RestartRule::Restarts)
}

/// mlock(address, length), mlock2 (with flags) and munlock, by the host's number.
fn lock<G: Abi>(call: &mut Call<G>, number: libc::c_long, flags: u64) -> CallOutcome {
    let [start, length, ..] = call.arguments;
    let first = G::LAYOUT.page_of(start);
    let bytes = range(G::LAYOUT, first, length.checked_add(start - first).ok_or(EINVAL)?, ENOMEM)?;
    mapped_or_enomem(call, first, bytes)?;
    let host = call.memory.host(first, bytes).ok_or(ENOMEM)? as u64;
    call.host(number, [host, bytes, flags, 0, 0, 0])
}

/// mlock(address, length)
pub fn mlock<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    lock(call, libc::SYS_mlock, 0)
}

/// mlock2(address, length, flags)
pub fn mlock2<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let flags = call.arguments[2];
    lock(call, libc::SYS_mlock2, flags)
}

/// munlock(address, length)
pub fn munlock<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    lock(call, libc::SYS_munlock, 0)
}

/// mlockall(flags): checked, then granted without an effect, since the host would also lock the engine's memory and
/// the guest's unused reservation.
pub fn mlockall<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let flags = G::LOCK_ALL.host(call.arguments[0]);
    if flags == 0 || flags == 4 || G::LOCK_ALL.guest(flags) != call.arguments[0] {
        Err(EINVAL)
    } else {
        Ok(0)
    }
}

/// mincore(address, length, vector): one byte for each of the guest's pages. With the virtual clock all are resident, as
/// /proc says.
pub fn mincore<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [start, length, vector, ..] = call.arguments;
    let bytes = range(G::LAYOUT, start, length, ENOMEM)?;
    mapped_or_enomem(call, start, bytes)?;
    let host = call.memory.host(start, bytes).ok_or(ENOMEM)? as u64;
    // SAFETY: no arguments.
    let host_page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let mut resident = vec![0u8; (bytes / host_page) as usize];
    call.host(libc::SYS_mincore, [host, bytes, resident.as_mut_ptr() as u64, 0, 0, 0])?;
    let per_page = (G::LAYOUT.page / host_page).max(1) as usize;
    let is_resident = |page: &[u8]| call.kernel.is_virtual() || page.iter().all(|byte| byte & 1 != 0);
    let pages: Vec<u8> = resident.chunks(per_page).map(|page| u8::from(is_resident(page))).collect();
    call.memory.write(vector, &pages)?;
    Ok(0)
}
