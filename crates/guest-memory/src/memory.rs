//! The guest's address space: one reserved window of the host's, so that a guest address is a host
//! address minus a constant, plus a list of what is mapped where.
//!
//! Nothing outside the window can be reached: every access checks the address against
//! [`ADDRESS_SPACE`] first, and inside the window only what the guest mapped is accessible.
//!
//! The guest's threads share one `Memory`. Loads and stores need no lock. The list of regions has
//! one; who changes it holds the kernel's lock as well, so that between two looks at the list nobody
//! else changes it. At no time is there a hole in the window that the host could give to somebody
//! else: what is unmapped is replaced by reserved space, never removed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use crate::access::{self, HostFault};
use crate::layout::{ADDRESS_SPACE, Fault, PAGE, Protection, SEGV_MAPERR};
use crate::regions::{Backing, Region, Regions};

/// The first address of the window that can be reserved where addresses are the host's own: what lies
/// below, the host's kernel gives to nobody.
const LOWEST: u64 = 1 << 16;

/// Reserved behind the address space, so that an access that begins inside, and a displacement added to a
/// checked address, stay inside.
const GUARD: u64 = 1 << 16;

/// Reserves host addresses without access rights.
fn reserve(start: *mut u8, bytes: usize, placement: i32) -> std::io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | placement;
    // SAFETY: a reservation replaces nothing, but for the guest's own memory with MAP_FIXED.
    let mapped = unsafe { libc::mmap(start.cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(mapped.cast()) }
}

/// A guest's memory.
pub struct Memory {
    base: *mut u8,
    regions: RwLock<Regions>,
    /// Counts changes to executable mappings: the translated blocks of an older generation are void.
    code_generation: AtomicU64,
}

// SAFETY: `base` is the address of a reservation that lives as long as the value; the pages behind
// it are the guest's alone and are only touched by the routines of `access` and by the host's
// kernel, for which races between threads are as harmless as they are for the guest.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Reserves the window. Costs address space only, no memory.
    ///
    /// If the host leaves it free, the window is where the addresses are the host's own: only then is
    /// there compiled code, which need not add a base.
    pub fn new() -> std::io::Result<Memory> {
        access::catch_faults();
        let bytes = (ADDRESS_SPACE + GUARD - LOWEST) as usize;
        let base = match reserve(LOWEST as *mut u8, bytes, libc::MAP_FIXED_NOREPLACE) {
            Ok(start) if start as u64 == LOWEST => std::ptr::null_mut(),
            _ => reserve(std::ptr::null_mut(), (ADDRESS_SPACE + GUARD) as usize, 0)?,
        };
        let regions = RwLock::new(Regions::new());
        Ok(Memory { base, regions, code_generation: AtomicU64::new(0) })
    }

    /// The host address of a guest address range, if the range lies in the address space. What is
    /// mapped there is not checked: meant for passing to the host's kernel, which checks.
    #[inline(always)]
    pub fn host(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        if address < ADDRESS_SPACE && bytes <= ADDRESS_SPACE - address {
            Some(self.base.wrapping_add(address as usize))
        } else {
            None
        }
    }

    /// Whether guest addresses are host addresses.
    pub fn is_identity(&self) -> bool {
        self.base.is_null()
    }

    /// The first guest address that there can be memory at.
    pub fn lowest(&self) -> u64 {
        if self.is_identity() { LOWEST } else { 0 }
    }

    /// The guest address of a host address in the window.
    pub fn guest(&self, host: *const u8) -> u64 {
        (host as u64).wrapping_sub(self.base as u64)
    }

    #[cold]
    fn fault(&self, address: u64, write: bool, fault: HostFault) -> Fault {
        // The kernel gives the exact byte, which for a misaligned access is not the first one.
        let exact = (fault.address as u64).wrapping_sub(self.base as u64);
        let address = if exact.wrapping_sub(address) < 8 { exact } else { address };
        Fault { address, write, signal: fault.signal, code: fault.code }
    }

    #[cold]
    fn outside(address: u64, write: bool) -> Fault {
        Fault { address, write, signal: libc::SIGSEGV, code: SEGV_MAPERR }
    }

    /// Loads 1, 2, 4 or 8 bytes, zero-extended, little-endian.
    #[inline(always)]
    pub fn load<const SIZE: usize>(&self, address: u64) -> Result<u64, Fault> {
        if address >= ADDRESS_SPACE {
            return Err(Self::outside(address, false));
        }
        // SAFETY: the address lies in the reservation.
        unsafe { access::load::<SIZE>(self.base.wrapping_add(address as usize)) }
            .map_err(|fault| self.fault(address, false, fault))
    }

    /// Stores the low 1, 2, 4 or 8 bytes of `value`, little-endian.
    #[inline(always)]
    pub fn store<const SIZE: usize>(&self, address: u64, value: u64) -> Result<(), Fault> {
        if address >= ADDRESS_SPACE {
            return Err(Self::outside(address, true));
        }
        // SAFETY: the address lies in the reservation.
        unsafe { access::store::<SIZE>(self.base.wrapping_add(address as usize), value) }
            .map_err(|fault| self.fault(address, true, fault))
    }

    /// Atomic compare-and-exchange of an aligned 4 or 8 bytes; true if it was replaced.
    pub fn compare_exchange<const SIZE: usize>(
        &self,
        address: u64,
        expected: u64,
        new: u64,
    ) -> Result<bool, Fault> {
        if address >= ADDRESS_SPACE {
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

    /// Changes the list; `change` tells whether code came or went.
    fn note(&self, change: impl FnOnce(&mut Regions) -> bool) {
        let code = change(&mut self.list());
        if code {
            self.code_changed();
        }
    }

    /// Does something while no other thread looks at the list of regions: a fork, whose child would
    /// find the list locked for ever otherwise.
    pub fn undisturbed<T>(&self, what: impl FnOnce() -> T) -> T {
        let _list = self.list();
        what()
    }

    /// The mapped regions in ascending order: start and region.
    pub fn regions(&self) -> Vec<(u64, Region)> {
        self.view(|regions| regions.iter().map(|(start, region)| (start, region.clone())).collect())
    }

    /// How many bytes are mapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.view(|regions| regions.iter().map(|(start, region)| region.end - start).sum())
    }

    /// The region that holds `address`: start and region.
    pub fn region_at(&self, address: u64) -> Option<(u64, Region)> {
        self.view(|regions| regions.at(address).map(|(start, region)| (start, region.clone())))
    }

    /// True if something is mapped throughout.
    pub fn is_mapped(&self, start: u64, bytes: u64) -> bool {
        self.view(|regions| regions.covers(start, start + bytes))
    }

    /// True if part of the range is executable.
    pub fn holds_code(&self, start: u64, bytes: u64) -> bool {
        self.view(|regions| regions.hold_code(start, start + bytes))
    }

    /// True if nothing is mapped in the range and it lies in the address space, above page 0.
    pub fn is_free(&self, start: u64, bytes: u64) -> bool {
        self.view(|regions| regions.is_free(start, bytes))
    }

    /// A free range of `bytes` (a multiple of [`PAGE`]): at `hint` if it is free there and not 0,
    /// else the first at or above the place where the last search ended.
    pub fn find_free(&self, hint: u64, bytes: u64) -> Option<u64> {
        self.list().find_free(hint, bytes)
    }

    /// Grows each time executable memory is mapped, unmapped, protected anew or said to have
    /// changed: code translated before may no longer be what is there.
    pub fn code_generation(&self) -> u64 {
        self.code_generation.load(Ordering::Acquire)
    }

    /// Instructions in memory may have changed.
    pub fn code_changed(&self) {
        self.code_generation.fetch_add(1, Ordering::Release);
    }

    /// Maps fresh zeroed memory at exactly this range, replacing what was there.
    pub fn map_anonymous(
        &self,
        start: u64,
        bytes: u64,
        protection: Protection,
        shared: bool,
        backing: Backing,
    ) -> std::io::Result<()> {
        self.map(start, bytes, Region { end: start + bytes, protection, shared, backing }, -1, 0)
    }

    /// Maps a file at exactly this range, replacing what was there. `offset` must be a multiple of
    /// the host's page size. Bytes of the last page behind the end of a private file read as zeros.
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
        let backing = Backing::File { path, offset };
        self.map(start, bytes, Region { end: start + bytes, protection, shared, backing }, file, offset)?;
        if shared { Ok(()) } else { self.zero_last_page(start, bytes, protection, file, offset) }
    }

    /// Where the file ends in the first half of a guest's page, the host has no page for the second
    /// half and would raise SIGBUS: zeros go there.
    fn zero_last_page(
        &self,
        start: u64,
        bytes: u64,
        protection: Protection,
        file: i32,
        offset: u64,
    ) -> std::io::Result<()> {
        // SAFETY: an all-zero stat is valid and only written to; sysconf has no preconditions.
        let (host_page, size) = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            let known = libc::fstat(file, &mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG;
            (
                libc::sysconf(libc::_SC_PAGESIZE) as u64,
                if known { status.st_size as u64 } else { return Ok(()) },
            )
        };
        let in_file = size.saturating_sub(offset).min(bytes);
        let (from, to) = (in_file.next_multiple_of(host_page), in_file.next_multiple_of(PAGE));
        if from == to {
            return Ok(());
        }
        // SAFETY: the range lies inside the mapping just made.
        let mapped = unsafe {
            libc::mmap(
                self.base.wrapping_add((start + from) as usize).cast(),
                (to - from) as usize,
                host_protection(protection),
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    fn map(&self, start: u64, bytes: u64, region: Region, file: i32, offset: u64) -> std::io::Result<()> {
        let host = self
            .host(start, bytes)
            .filter(|_| start.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE) && bytes > 0)
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

    /// Notes shared memory that the host's kernel has attached at exactly this range.
    pub fn adopt(&self, start: u64, bytes: u64, protection: Protection, backing: Backing) {
        let region = Region { end: start + bytes, protection, shared: true, backing };
        self.note(|regions| regions.insert(start, region));
    }

    /// Unmaps a range; what was not mapped stays so.
    pub fn unmap(&self, start: u64, bytes: u64) -> std::io::Result<()> {
        let host = self.host(start, bytes).ok_or_else(invalid)?;
        self.reserve(host, bytes)?;
        self.note(|regions| regions.remove(start, start + bytes));
        Ok(())
    }

    /// Unmaps everything, as `execve` does. No other thread runs the guest any more.
    pub fn clear(&self) {
        let lowest = self.lowest();
        let start = self.base.wrapping_add(lowest as usize);
        self.reserve(start, ADDRESS_SPACE - lowest).expect("the reservation can be renewed");
        *self.list() = Regions::new();
        self.code_changed();
    }

    /// Makes a range of the window reserved space again.
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

    /// Moves, shrinks or grows what is mapped at `start`, as `mremap` does: `old` bytes become `new`
    /// bytes at `to`, where what was mapped is replaced. `old` of 0 makes a second view of a shared
    /// mapping.
    pub fn remap(&self, start: u64, old: u64, new: u64, to: u64) -> std::io::Result<()> {
        if to == start && new <= old {
            return if new == old { Ok(()) } else { self.unmap(start + new, old - new) };
        }
        let region = self.view(|regions| regions.rest_at(start)).ok_or_else(invalid)?;
        let region_end = region.end;
        let region = Region { end: to + new, ..region };
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

    /// Shows `new` bytes of the shared mapping at `start` also, or instead, at `to`. The view is made
    /// outside the window and then put into its place at once.
    fn view_again(&self, start: u64, new: u64, to: u64) -> std::io::Result<()> {
        let (from, target) = (self.host(start, 0), self.host(to, new).ok_or_else(invalid)?);
        let from = from.ok_or_else(invalid)?.cast();
        // SAFETY: the first call changes nothing that is mapped, the second moves its result into
        // the reservation.
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

    /// Moves private pages; what grows is mapped anew, which for a file cannot be done.
    fn move_private(&self, start: u64, old: u64, new: u64, to: u64, region: &Region) -> std::io::Result<()> {
        if new > old {
            if matches!(region.backing, Backing::File { .. }) {
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
        // SAFETY: both ranges lie inside the reservation, and neither leaves a hole in it.
        let moved = unsafe { libc::mremap(from.cast(), bytes, bytes, flags, target) };
        if moved == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Changes the protection of a range that is mapped throughout (ENOMEM if it is not).
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
        unsafe { libc::munmap(start.cast(), (ADDRESS_SPACE + GUARD - lowest) as usize) };
    }
}

fn invalid() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::EINVAL)
}

/// Guest code is data to the host: it is read, never executed. Alpha grants reading with writing.
fn host_protection(guest: Protection) -> Protection {
    let read = guest & (libc::PROT_READ | libc::PROT_EXEC | libc::PROT_WRITE) != 0;
    (if read { libc::PROT_READ } else { 0 }) | guest & libc::PROT_WRITE
}
