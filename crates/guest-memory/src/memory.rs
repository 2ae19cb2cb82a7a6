//! The guest's address space: a reserved window of the host's address space, so that a guest address is a host
//! address minus a constant, and a list of its mapped regions.
//!
//! The guest cannot access memory outside the window, since every address is first compared with [`WINDOW`].
//! Inside the window only mapped pages are accessible.
//!
//! The guest's threads share one `Memory`. Loads and stores need no lock. The list of regions has a lock; a thread
//! that changes the list also holds the kernel's lock, so that the list does not change between two reads under that
//! lock. Unmapped ranges stay reserved, so that the host never allocates memory inside the window.

mod tails;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use crate::access::{self, HostFault};
use crate::layout::{Fault, Layout, Protection, SEGV_MAPERR, WINDOW};
use crate::objects::MappedObject;
use crate::regions::{MemoryRegion, RegionBacking, Regions};

/// The first address of a window in which guest addresses equal host addresses. The host's kernel maps nothing below
/// it.
const LOWEST: u64 = 1 << 16;

/// Guard space reserved after the window: an access that begins in the window, or at a small
/// displacement from a checked address, stays within the reservation.
const GUARD: u64 = 1 << 16;

/// Reserves host addresses without access rights.
fn reserve(start: *mut u8, bytes: usize, placement: i32) -> std::io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | placement;
    // SAFETY: without MAP_FIXED a reservation replaces nothing; with it, only the guest's own memory.
    let mapped = unsafe { libc::mmap(start.cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(mapped.cast()) }
}

/// A guest's memory.
pub struct Memory {
    base: *mut u8,
    /// Never held while another lock is taken.
    layout: Mutex<Layout>,
    regions: RwLock<Regions>,
    /// Counts changes to executable mappings. Blocks that were decoded in an older generation are invalid.
    code_generation: AtomicU64,
    /// Counts changes to mappings.
    mapping_generation: AtomicU64,
    /// Pages in which a file ends that is mapped shared, and whether zeroed memory stands [in their rest](tails).
    tails: Mutex<BTreeMap<u64, bool>>,
    /// Whether there is such zeroed memory.
    has_tails: AtomicBool,
}

// SAFETY: `base` is the address of a reservation that lives as long as the value. Its pages belong to the guest and
// are accessed only by the routines of `access` and by the host's kernel, for which data races are as harmless as for
// the guest.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Reserves the window for a guest's address space. This takes address space, but no memory.
    ///
    /// If the host's addresses of the window are free, guest addresses equal host addresses. Code is compiled only in
    /// this case, since compiled code adds no base.
    ///
    /// # Panics
    ///
    /// If the layout is no guest's: pages are no power of two, or the address space is not whole pages in the window.
    pub fn new(layout: Layout) -> std::io::Result<Memory> {
        assert!(layout.page.is_power_of_two() && layout.bytes.is_multiple_of(layout.page), "{layout:?}");
        assert!(layout.bytes <= WINDOW && layout.map_base < layout.large_base, "{layout:?}");
        assert!(layout.large_page.is_power_of_two() && layout.large_base <= layout.bytes, "{layout:?}");
        assert!(layout.large_base.is_multiple_of(layout.large_page), "{layout:?}");
        access::catch_faults();
        let bytes = (WINDOW + GUARD - LOWEST) as usize;
        let base = match reserve(LOWEST as *mut u8, bytes, libc::MAP_FIXED_NOREPLACE) {
            Ok(start) if start as u64 == LOWEST => std::ptr::null_mut(),
            _ => reserve(std::ptr::null_mut(), (WINDOW + GUARD) as usize, 0)?,
        };
        let regions = RwLock::new(Regions::new(layout));
        Ok(Memory {
            base,
            layout: Mutex::new(layout),
            regions,
            code_generation: AtomicU64::new(0),
            mapping_generation: AtomicU64::new(0),
            tails: Mutex::new(BTreeMap::new()),
            has_tails: AtomicBool::new(false),
        })
    }

    /// The host address of a guest address range, if the range lies in the window. Whether it is mapped is not
    /// checked: the result is meant for the host's kernel, which checks that.
    #[inline(always)]
    pub fn host(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        if address < WINDOW && bytes <= WINDOW - address {
            Some(self.base.wrapping_add(address as usize))
        } else {
            None
        }
    }

    /// The layout of the guest's address space.
    pub fn layout(&self) -> Layout {
        *self.layout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether guest addresses equal host addresses.
    pub fn is_identity(&self) -> bool {
        self.base.is_null()
    }

    /// The lowest guest address that can be mapped.
    pub fn lowest(&self) -> u64 {
        if self.is_identity() { LOWEST } else { 0 }
    }

    /// The guest address of a host address in the window.
    pub fn guest(&self, host: *const u8) -> u64 {
        (host as u64).wrapping_sub(self.base as u64)
    }

    #[cold]
    fn fault(&self, address: u64, write: bool, fault: HostFault) -> Fault {
        // The kernel reports the exact byte, which is not the first one of a misaligned access that crosses a page.
        let exact = (fault.address as u64).wrapping_sub(self.base as u64);
        let address = if exact.wrapping_sub(address) < 8 { exact } else { address };
        if address >= self.layout().bytes {
            return Self::outside(address, write);
        }
        Fault { address, write, signal: fault.signal, code: fault.code }
    }

    #[cold]
    fn outside(address: u64, write: bool) -> Fault {
        Fault { address, write, signal: libc::SIGSEGV, code: SEGV_MAPERR }
    }

    /// Loads 1, 2, 4 or 8 bytes, zero-extended, little-endian.
    #[inline(always)]
    pub fn load<const SIZE: usize>(&self, address: u64) -> Result<u64, Fault> {
        if address >= WINDOW {
            return Err(Self::outside(address, false));
        }
        // SAFETY: the address lies in the reservation.
        unsafe { access::load::<SIZE>(self.base.wrapping_add(address as usize)) }
            .map_err(|fault| self.fault(address, false, fault))
    }

    /// Stores the low 1, 2, 4 or 8 bytes of `value`, little-endian.
    #[inline(always)]
    pub fn store<const SIZE: usize>(&self, address: u64, value: u64) -> Result<(), Fault> {
        if address >= WINDOW {
            return Err(Self::outside(address, true));
        }
        // SAFETY: the address lies in the reservation.
        unsafe { access::store::<SIZE>(self.base.wrapping_add(address as usize), value) }
            .map_err(|fault| self.fault(address, true, fault))
    }

    /// Atomic compare-and-exchange of an aligned 4 or 8 bytes; true if the exchange took place.
    pub fn compare_exchange<const SIZE: usize>(
        &self,
        address: u64,
        expected: u64,
        new: u64,
    ) -> Result<bool, Fault> {
        if address >= WINDOW {
            return Err(Self::outside(address, true));
        }
        let expected = if SIZE == 4 { expected & 0xffff_ffff } else { expected };
        // SAFETY: the address lies in the reservation; the caller checked the alignment.
        unsafe { access::compare_exchange::<SIZE>(self.base.wrapping_add(address as usize), expected, new) }
            .map(|found| found == expected)
            .map_err(|fault| self.fault(address, true, fault))
    }

    /// Fills `buffer` from guest memory.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        let host = self.host(address, buffer.len() as u64).ok_or_else(|| Self::outside(address, false))?;
        // SAFETY: the source lies in the reservation, the target is the caller's slice.
        unsafe { access::copy(buffer.as_mut_ptr(), host, buffer.len()) }
            .map_err(|fault| self.fault(address, false, fault))
    }

    /// Writes `bytes` to guest memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let host = self.host(address, bytes.len() as u64).ok_or_else(|| Self::outside(address, true))?;
        // SAFETY: the target lies in the reservation, the source is the caller's slice.
        unsafe { access::copy(host, bytes.as_ptr(), bytes.len()) }
            .map_err(|fault| self.fault(address, true, fault))
    }

    /// Reads a NUL-terminated string of at most `limit` bytes; None if it is longer.
    pub fn read_string(&self, address: u64, limit: usize) -> Result<Option<Vec<u8>>, Fault> {
        let mut bytes = Vec::new();
        for at in 0..limit as u64 {
            match self.load::<1>(address.wrapping_add(at))? as u8 {
                0 => return Ok(Some(bytes)),
                byte => bytes.push(byte),
            }
        }
        Ok(None)
    }

    fn view<T>(&self, look: impl FnOnce(&Regions) -> T) -> T {
        look(&self.regions.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn list(&self) -> RwLockWriteGuard<'_, Regions> {
        self.regions.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the list; `change` returns whether executable memory was added or removed.
    fn note(&self, change: impl FnOnce(&mut Regions) -> bool) {
        let code = change(&mut self.list());
        self.mapping_generation.fetch_add(1, Ordering::Release);
        if code {
            self.code_changed();
        }
    }

    /// Runs a fork while no other thread holds the lock of the list, which would stay locked in the child.
    pub fn undisturbed<T>(&self, what: impl FnOnce() -> T) -> T {
        let _list = self.list();
        what()
    }

    /// The mapped regions in ascending order: start and region.
    pub fn regions(&self) -> Vec<(u64, MemoryRegion)> {
        self.view(|regions| regions.iter().map(|(start, region)| (start, region.clone())).collect())
    }

    /// Number of mapped bytes.
    pub fn mapped_bytes(&self) -> u64 {
        self.view(|regions| regions.mapped_bytes()[0])
    }

    /// The highest number of mapped bytes since the program was loaded.
    pub fn peak_bytes(&self) -> u64 {
        self.view(|regions| regions.mapped_bytes()[1])
    }

    /// The region that contains `address`: start and region.
    pub fn region_at(&self, address: u64) -> Option<(u64, MemoryRegion)> {
        self.view(|regions| regions.at(address).map(|(start, region)| (start, region.clone())))
    }

    /// True if the whole range is mapped.
    pub fn is_mapped(&self, start: u64, bytes: u64) -> bool {
        self.view(|regions| regions.covers(start, start + bytes))
    }

    /// True if part of the range is executable.
    pub fn holds_code(&self, start: u64, bytes: u64) -> bool {
        self.view(|regions| regions.hold_code(start, start + bytes))
    }

    /// True if nothing in the range is mapped and the range lies in the address space, above page 0.
    pub fn is_free(&self, start: u64, bytes: u64) -> bool {
        self.view(|regions| regions.is_free(start, bytes))
    }

    /// Finds a free range of `bytes` (whole pages): at `hint` if that is free and not 0, else the first
    /// one at or above the end of the last range found.
    pub fn find_free(&self, hint: u64, bytes: u64) -> Option<u64> {
        self.list().find_free(hint, bytes)
    }

    /// Finds a free range of `bytes` (whole large pages) for memory in large pages.
    pub fn find_free_large(&self, bytes: u64) -> Option<u64> {
        self.list().find_free_large(bytes)
    }

    /// The generation of executable memory. It grows when executable memory is mapped, unmapped or protected, or
    /// reported as changed, so that code decoded before may be out of date.
    pub fn code_generation(&self) -> u64 {
        self.code_generation.load(Ordering::Acquire)
    }

    /// A number that grows when anything is mapped, unmapped or protected.
    pub fn mapping_generation(&self) -> u64 {
        self.mapping_generation.load(Ordering::Acquire)
    }

    /// Reports that instructions in memory may have changed.
    pub fn code_changed(&self) {
        self.code_generation.fetch_add(1, Ordering::Release);
    }

    /// Maps zeroed memory at exactly this range and replaces previous mappings.
    pub fn map_anonymous(
        &self,
        start: u64,
        bytes: u64,
        protection: Protection,
        shared: bool,
        backing: RegionBacking,
    ) -> std::io::Result<()> {
        let object = shared.then(MappedObject::anonymous);
        self.map(
            start,
            bytes,
            MemoryRegion { end: start + bytes, protection, shared, backing, object },
            -1,
            0,
        )
    }

    /// Maps a file at exactly this range and replaces previous mappings. `offset` must be a multiple of the host's
    /// page size. Bytes after the end of the file in its last page are zero ([`tails`]).
    #[allow(clippy::too_many_arguments)]
    pub fn map_file(
        &self,
        start: u64,
        bytes: u64,
        protection: Protection,
        shared: bool,
        file: i32,
        offset: u64,
        path: Arc<PathBuf>,
    ) -> std::io::Result<()> {
        let backing = RegionBacking::File { path, offset };
        let object = MappedObject::file(file, offset);
        let region = MemoryRegion { end: start + bytes, protection, shared, backing, object };
        self.map(start, bytes, region, file, offset)?;
        if shared { Ok(()) } else { self.zero_last_page(start, bytes, protection, file, offset) }
    }

    fn map(
        &self,
        start: u64,
        bytes: u64,
        region: MemoryRegion,
        file: i32,
        offset: u64,
    ) -> std::io::Result<()> {
        let Layout { page, bytes: end, .. } = self.layout();
        let host = self
            .host(start, bytes)
            .filter(|_| start.is_multiple_of(page) && bytes.is_multiple_of(page) && bytes > 0)
            .filter(|_| start + bytes <= end)
            .ok_or_else(invalid)?;
        let sharing = if region.shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let source = if file < 0 { libc::MAP_ANONYMOUS } else { 0 };
        // SAFETY: the range lies inside the reservation, which belongs to the guest alone.
        let mapped = unsafe {
            libc::mmap(
                host.cast(),
                bytes as usize,
                host_protection(region.protection),
                libc::MAP_FIXED | libc::MAP_NORESERVE | sharing | source,
                file,
                offset as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        self.note(|regions| regions.insert(start, region));
        Ok(())
    }

    /// Records shared memory that the host's kernel has attached at exactly this range.
    pub fn adopt(
        &self,
        start: u64,
        bytes: u64,
        protection: Protection,
        backing: RegionBacking,
        object: MappedObject,
    ) {
        let region =
            MemoryRegion { end: start + bytes, protection, shared: true, backing, object: Some(object) };
        self.note(|regions| regions.insert(start, region));
    }

    /// Unmaps a range. Parts that are not mapped are ignored.
    pub fn unmap(&self, start: u64, bytes: u64) -> std::io::Result<()> {
        let host = self.host(start, bytes).ok_or_else(invalid)?;
        self.reserve(host, bytes)?;
        self.note(|regions| regions.remove(start, start + bytes));
        Ok(())
    }

    /// Unmaps everything, as `execve` does. No other thread may run guest code any more.
    pub fn clear(&self, layout: Layout) {
        *self.layout.lock().unwrap_or_else(PoisonError::into_inner) = layout;
        let lowest = self.lowest();
        let start = self.base.wrapping_add(lowest as usize);
        self.reserve(start, WINDOW - lowest).expect("the reservation can be renewed");
        self.note(|regions| {
            *regions = Regions::new(layout);
            false
        });
        self.forget_tails();
        self.code_changed();
    }

    /// Replaces a range of the window by reserved space.
    fn reserve(&self, host: *mut u8, bytes: u64) -> std::io::Result<()> {
        // SAFETY: the range lies inside the reservation.
        let mapped = unsafe {
            libc::mmap(
                host.cast(),
                bytes as usize,
                libc::PROT_NONE,
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Moves, shrinks or grows the mapping at `start`, as `mremap` does: `old` bytes become `new` bytes at `to`,
    /// where previous mappings are replaced. If `old` is 0, a second mapping of shared memory is made.
    pub fn remap(&self, start: u64, old: u64, new: u64, to: u64) -> std::io::Result<()> {
        if to == start && new <= old {
            return if new == old { Ok(()) } else { self.unmap(start + new, old - new) };
        }
        let region = self.view(|regions| regions.rest_at(start)).ok_or_else(invalid)?;
        let region_end = region.end;
        let region = MemoryRegion { end: to + new, ..region };
        let moved = match region.shared {
            true if start + old > region_end => Err(std::io::Error::from_raw_os_error(libc::EFAULT)),
            true => self.view_again(start, new, to),
            false => self.move_private(start, old, new, to, &region),
        };
        if let Err(error) = moved {
            if to != start {
                self.unmap(to, new)?;
            }
            return Err(error);
        }
        if to != start && old > 0 {
            self.unmap(start, old)?;
        }
        self.note(|regions| regions.insert(to, region));
        Ok(())
    }

    /// Maps `new` bytes of the shared mapping at `start` also, or instead, at `to`. The mapping is made outside the
    /// window and then moved into place in one step.
    fn view_again(&self, start: u64, new: u64, to: u64) -> std::io::Result<()> {
        let (from, target) = (self.host(start, 0), self.host(to, new).ok_or_else(invalid)?);
        let from = from.ok_or_else(invalid)?.cast();
        // SAFETY: the first call changes no existing mapping; the second one moves its result into the reservation.
        unsafe {
            let view = libc::mremap(from, 0, new as usize, libc::MREMAP_MAYMOVE);
            if view == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            if libc::mremap(view, new as usize, new as usize, flags, target) == libc::MAP_FAILED {
                let error = std::io::Error::last_os_error();
                libc::munmap(view, new as usize);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Moves private pages. Growth is mapped as new memory, which is not possible for a file.
    fn move_private(
        &self,
        start: u64,
        old: u64,
        new: u64,
        to: u64,
        region: &MemoryRegion,
    ) -> std::io::Result<()> {
        if new > old {
            if matches!(region.backing, RegionBacking::File { .. }) {
                return Err(std::io::Error::from_raw_os_error(libc::ENOMEM));
            }
            self.map(to + old, new - old, region.clone(), -1, 0)?;
        }
        if to == start {
            return Ok(());
        }
        let bytes = old.min(new) as usize;
        let from = self.host(start, bytes as u64).ok_or_else(invalid)?;
        let target = self.host(to, new).ok_or_else(invalid)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        // SAFETY: both ranges lie inside the reservation, and neither call leaves a part of it unreserved.
        let moved = unsafe { libc::mremap(from.cast(), bytes, bytes, flags, target) };
        if moved == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Changes the protection of a range. ENOMEM if it is not mapped completely.
    pub fn protect(&self, start: u64, bytes: u64, protection: Protection) -> std::io::Result<()> {
        let host = self.host(start, bytes).filter(|_| self.is_mapped(start, bytes));
        let host = host.ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: the range lies inside the reservation.
        if unsafe { libc::mprotect(host.cast(), bytes as usize, host_protection(protection)) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        self.note(|regions| regions.protect(start, start + bytes, protection));
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let lowest = self.lowest();
        let start = self.base.wrapping_add(lowest as usize);
        // SAFETY: the reservation was made by `new` and nothing borrows from it any more.
        unsafe { libc::munmap(start.cast(), (WINDOW + GUARD - lowest) as usize) };
    }
}

fn invalid() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::EINVAL)
}

/// The host protection of a guest mapping. Guest code is only data to the host, so it is readable and not executable.
/// Writable pages are readable, as on Alpha: most hosts have no others.
fn host_protection(guest: Protection) -> Protection {
    let read = guest & (libc::PROT_READ | libc::PROT_EXEC | libc::PROT_WRITE) != 0;
    (if read { libc::PROT_READ } else { 0 }) | guest & libc::PROT_WRITE
}
