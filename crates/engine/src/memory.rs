//! The guest's address space: one reserved window of the host's, so that a guest address is a host
//! address minus a constant, plus a list of what is mapped where.
//!
//! Nothing outside the window can be reached: every access checks the address against
//! [`ADDRESS_SPACE`] first, and inside the window only what the guest mapped is accessible.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::access::{self, HostFault};

/// Alpha's page size under Linux, in bytes.
pub const PAGE: u64 = 8192;

/// Size of a user's address space in bytes (42 bits, as Linux sets TASK_SIZE on Alpha).
pub const ADDRESS_SPACE: u64 = 1 << 42;

/// Where `mmap` without an address begins to look, as qemu-alpha does, so that the two can be
/// compared register by register.
pub const MAP_BASE: u64 = 0x40_0000_0000;

/// The first address of the window that can be reserved where addresses are the host's own: what lies
/// below, the host's kernel gives to nobody.
const LOWEST: u64 = 1 << 16;

/// Reserved behind the address space, so that a displacement added to a checked address stays inside.
const GUARD: u64 = 1 << 16;

/// Reserves host addresses without access rights.
fn reserve(start: *mut u8, bytes: usize, placement: i32) -> std::io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | placement;
    // SAFETY: a reservation replaces nothing, but for the guest's own memory with MAP_FIXED.
    let mapped = unsafe { libc::mmap(start.cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(mapped.cast()) }
}

/// What may be done with a region: the bits of `PROT_*`, the same on Alpha and on the host.
pub type Protection = i32;

/// An access that the guest may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The guest's address.
    pub address: u64,
    /// True for a store.
    pub write: bool,
    /// SIGSEGV or SIGBUS, in the host's numbering.
    pub signal: i32,
    /// The signal's code: SEGV_MAPERR, SEGV_ACCERR or BUS_ADRERR.
    pub code: i32,
}

/// What backs a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeros to begin with.
    Anonymous,
    /// A file, from an offset on.
    File {
        /// The file's path on the host.
        path: Arc<PathBuf>,
        /// Where in the file the region begins, in bytes.
        offset: u64,
    },
    /// A name that `/proc/self/maps` shows: `[stack]`, `[heap]`.
    Named(&'static str),
}

/// A run of pages mapped alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address behind it.
    pub end: u64,
    /// `PROT_*` bits.
    pub protection: Protection,
    /// True for MAP_SHARED.
    pub shared: bool,
    /// What is in it.
    pub backing: Backing,
}

/// A guest's memory.
pub struct Memory {
    base: *mut u8,
    regions: BTreeMap<u64, Region>,
    next: u64,
    /// Counts changes to executable mappings: the translated blocks of an older generation are void.
    code_generation: u64,
}

// SAFETY: `base` is the address of a reservation that lives as long as the value; the pages behind
// it are shared with the guest alone.
unsafe impl Send for Memory {}

impl Memory {
    /// Reserves the window. Costs address space only, no memory.
    ///
    /// With a compiler, if the host leaves it free, the window is where the addresses are the host's own: then compiled
    /// code need not add a base.
    pub fn new() -> std::io::Result<Memory> {
        access::catch_faults();
        let bytes = (ADDRESS_SPACE + GUARD - LOWEST) as usize;
        let identity =
            cfg!(feature = "compiler").then(|| reserve(LOWEST as *mut u8, bytes, libc::MAP_FIXED_NOREPLACE));
        let base = match identity {
            Some(Ok(start)) if start as u64 == LOWEST => std::ptr::null_mut(),
            _ => reserve(std::ptr::null_mut(), (ADDRESS_SPACE + GUARD) as usize, 0)?,
        };
        Ok(Memory { base, regions: BTreeMap::new(), next: MAP_BASE, code_generation: 0 })
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

    fn lowest(&self) -> u64 {
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
        if address > ADDRESS_SPACE - 8 {
            return Err(Self::outside(address, false));
        }
        // SAFETY: the address lies in the reservation.
        unsafe { access::load::<SIZE>(self.base.wrapping_add(address as usize)) }
            .map_err(|fault| self.fault(address, false, fault))
    }

    /// Stores the low 1, 2, 4 or 8 bytes of `value`, little-endian.
    #[inline(always)]
    pub fn store<const SIZE: usize>(&self, address: u64, value: u64) -> Result<(), Fault> {
        if address > ADDRESS_SPACE - 8 {
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
        if address > ADDRESS_SPACE - 8 {
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

    /// The mapped regions in ascending order: start and region.
    pub fn regions(&self) -> impl Iterator<Item = (u64, &Region)> {
        self.regions.iter().map(|(&start, region)| (start, region))
    }

    /// The region that holds `address`: start and region.
    pub fn region_at(&self, address: u64) -> Option<(u64, &Region)> {
        self.regions.range(..=address).next_back().map(|(&s, r)| (s, r)).filter(|(_, r)| address < r.end)
    }

    /// Grows each time executable memory is mapped, unmapped or protected anew: code translated
    /// before may no longer be what is there.
    pub fn code_generation(&self) -> u64 {
        self.code_generation
    }

    /// A free range of `bytes` (a multiple of [`PAGE`]): at `hint` if it is free there and not 0,
    /// else the first at or above the place where the last search ended.
    pub fn find_free(&mut self, hint: u64, bytes: u64) -> Option<u64> {
        if hint != 0 && hint.is_multiple_of(PAGE) && self.is_free(hint, bytes) {
            if hint == self.next {
                self.next = hint + bytes;
            }
            return Some(hint);
        }
        let found = self.search(self.next, bytes).or_else(|| self.search(MAP_BASE, bytes))?;
        self.next = found + bytes;
        Some(found)
    }

    fn search(&self, from: u64, bytes: u64) -> Option<u64> {
        let mut at = from;
        while let Some(end) = at.checked_add(bytes).filter(|&end| end <= ADDRESS_SPACE) {
            match self.regions.range(..end).next_back() {
                Some((_, region)) if region.end > at => at = region.end.next_multiple_of(PAGE),
                _ => return Some(at),
            }
        }
        None
    }

    /// True if nothing is mapped in the range and it lies in the address space, above page 0.
    pub fn is_free(&self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        start >= PAGE
            && end <= ADDRESS_SPACE
            && self.regions.range(..end).next_back().is_none_or(|(_, region)| region.end <= start)
    }

    /// Maps fresh zeroed memory at exactly this range, replacing what was there.
    pub fn map_anonymous(
        &mut self,
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
        &mut self,
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

    fn map(&mut self, start: u64, bytes: u64, region: Region, file: i32, offset: u64) -> std::io::Result<()> {
        let host = self
            .host(start, bytes)
            .filter(|_| start.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE) && bytes > 0)
            .ok_or_else(|| std::io::Error::from_raw_os_error(libc::EINVAL))?;
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
        self.cut(start, start + bytes);
        if region.protection & libc::PROT_EXEC != 0 {
            self.code_generation += 1;
        }
        self.regions.insert(start, region);
        Ok(())
    }

    /// Notes shared memory that the host's kernel has attached at exactly this range.
    pub fn adopt(&mut self, start: u64, bytes: u64, protection: Protection, backing: Backing) {
        self.cut(start, start + bytes);
        self.code_generation += u64::from(protection & libc::PROT_EXEC != 0);
        self.regions.insert(start, Region { end: start + bytes, protection, shared: true, backing });
    }

    /// Unmaps a range; what was not mapped stays so.
    pub fn unmap(&mut self, start: u64, bytes: u64) -> std::io::Result<()> {
        let host = self.host(start, bytes).ok_or_else(|| std::io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the range lies inside the reservation; it becomes reserved again.
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
        if mapped == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        self.cut(start, start + bytes);
        Ok(())
    }

    /// Unmaps everything, as `execve` does.
    pub fn clear(&mut self) {
        let lowest = self.lowest();
        let start = self.base.wrapping_add(lowest as usize);
        let renewed = reserve(start, (ADDRESS_SPACE + GUARD - lowest) as usize, libc::MAP_FIXED);
        assert!(renewed.is_ok(), "the reservation can be renewed");
        self.regions.clear();
        self.next = MAP_BASE;
        self.code_generation += 1;
    }

    /// Moves, shrinks or grows what is mapped at `start`, as `mremap` does: `old` bytes become `new`
    /// bytes at `to`, where what was mapped is replaced. `old` of 0 makes a second view of a shared
    /// mapping.
    pub fn remap(&mut self, start: u64, old: u64, new: u64, to: u64) -> std::io::Result<()> {
        let invalid = || std::io::Error::from_raw_os_error(libc::EINVAL);
        if to == start && new <= old {
            return if new == old { Ok(()) } else { self.unmap(start + new, old - new) };
        }
        let from = self.host(start, old).ok_or_else(invalid)?;
        let target = self.host(to, new).ok_or_else(invalid)?;
        let flags = if to == start {
            // The host grows in place only if nothing, not even the reservation, is behind.
            // SAFETY: a part of the reservation where the guest has nothing mapped.
            unsafe { libc::munmap(from.wrapping_add(old as usize).cast(), (new - old) as usize) };
            0
        } else {
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED
        };
        // SAFETY: both ranges lie inside the reservation.
        let moved = unsafe { libc::mremap(from.cast(), old as usize, new as usize, flags, target) };
        if moved == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            if to == start {
                self.unmap(start + old, new - old)?;
            }
            return Err(error);
        }
        self.split(start);
        let (_, region) = self.region_at(start).ok_or_else(invalid)?;
        let region = Region { end: to + new, ..region.clone() };
        if to != start && old > 0 {
            // What moved away becomes part of the reservation again.
            self.unmap(start, old)?;
        }
        self.cut(to, to + new);
        self.regions.insert(to, region);
        Ok(())
    }

    /// Changes the protection of a range that is mapped throughout (ENOMEM if it is not).
    pub fn protect(&mut self, start: u64, bytes: u64, protection: Protection) -> std::io::Result<()> {
        let end = start + bytes;
        let mut covered = start;
        while covered < end {
            match self.region_at(covered) {
                Some((_, region)) => covered = region.end,
                None => return Err(std::io::Error::from_raw_os_error(libc::ENOMEM)),
            }
        }
        let host = self.host(start, bytes).ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: the range lies inside the reservation.
        if unsafe { libc::mprotect(host.cast(), bytes as usize, host_protection(protection)) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        self.split(start);
        self.split(end);
        let mut executable = protection & libc::PROT_EXEC != 0;
        for (_, region) in self.regions.range_mut(start..end) {
            executable |= region.protection & libc::PROT_EXEC != 0;
            region.protection = protection;
        }
        self.code_generation += u64::from(executable);
        Ok(())
    }

    /// Makes `at` a border between regions, if it lies inside one.
    fn split(&mut self, at: u64) {
        let Some((&start, region)) = self.regions.range(..at).next_back() else { return };
        if region.end <= at {
            return;
        }
        let mut upper = region.clone();
        if let Backing::File { offset, .. } = &mut upper.backing {
            *offset += at - start;
        }
        self.regions.get_mut(&start).expect("just found").end = at;
        self.regions.insert(at, upper);
    }

    /// Forgets every region, and part of a region, between `start` and `end`.
    fn cut(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        let gone: Vec<u64> = self.regions.range(start..end).map(|(&start, _)| start).collect();
        for start in gone {
            let region = self.regions.remove(&start).expect("just found");
            self.code_generation += u64::from(region.protection & libc::PROT_EXEC != 0);
        }
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

/// Guest code is data to the host: it is read, never executed. Alpha grants reading with writing.
fn host_protection(guest: Protection) -> Protection {
    let read = guest & (libc::PROT_READ | libc::PROT_EXEC | libc::PROT_WRITE) != 0;
    (if read { libc::PROT_READ } else { 0 }) | guest & libc::PROT_WRITE
}

/// `si_code` of a SIGSEGV at an address that nothing is mapped at.
pub const SEGV_MAPERR: i32 = 1;
/// `si_code` of a SIGSEGV at an address whose protection forbids the access.
pub const SEGV_ACCERR: i32 = 2;
