//! The bytes after the end of a mapped file in its last page, which are zero. Where the guest's pages are larger than the
//! host's, the host has no page for the rest of a guest page, and an access to it raises SIGBUS.
//!
//! A private mapping gets zeroed memory there at once. A shared one must show what is written there when the file
//! grows: zeroed memory is mapped when the guest accesses the rest, and removed before the guest's next system call,
//! since files grow by system calls, and other processes' growth is noticed by them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use super::{Memory, host_protection};
use crate::layout::Protection;
use crate::regions::{MemoryRegion, RegionBacking};

/// Bytes of a host page.
fn host_page() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// The region's file, if it is mapped shared.
fn shared_file(region: &MemoryRegion) -> Option<(&std::path::Path, u64)> {
    match &region.backing {
        RegionBacking::File { path, offset } if region.shared => Some((path, *offset)),
        _ => None,
    }
}

impl Memory {
    /// Maps zeroed memory after the end of a private file in its last page.
    pub(super) fn zero_last_page(
        &self,
        start: u64,
        bytes: u64,
        protection: Protection,
        file: i32,
        offset: u64,
    ) -> std::io::Result<()> {
        // SAFETY: an all-zero stat is valid and only written to.
        let size = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            let known = libc::fstat(file, &mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG;
            if known { status.st_size as u64 } else { return Ok(()) }
        };
        let in_file = size.saturating_sub(offset).min(bytes);
        let (from, to) =
            (in_file.next_multiple_of(host_page()), in_file.next_multiple_of(self.layout().page));
        if from == to { Ok(()) } else { self.map_zeros(start + from, to - from, protection) }
    }

    /// Maps zeroed memory over a part of a mapping.
    fn map_zeros(&self, start: u64, bytes: u64, protection: Protection) -> std::io::Result<()> {
        // SAFETY: the callers' ranges lie inside mappings of the guest.
        let mapped = unsafe {
            libc::mmap(
                self.base.wrapping_add(start as usize).cast(),
                bytes as usize,
                host_protection(protection),
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    fn tails(&self) -> MutexGuard<'_, BTreeMap<u64, bool>> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps zeroed memory at an address that raised SIGBUS, if the file that is mapped shared there ends in the same page
    /// of the guest. True if the access succeeds now. The caller holds the kernel's lock.
    pub fn fill_tail(&self, address: u64) -> bool {
        let (page, host_page) = (self.layout().page_of(address), host_page());
        let Some((_, region)) = self.region_at(page) else { return false };
        let readable = |address| self.load::<1>(address).is_ok();
        if shared_file(&region).is_none() || !readable(page) {
            return false;
        }
        let end = page + self.layout().page;
        let mut host_pages = (page..end).step_by(host_page as usize);
        let Some(from) = host_pages.find(|&start| !readable(start)).filter(|&from| from <= address) else {
            return false;
        };
        let is_filled = self.map_zeros(from, end - from, region.protection).is_ok();
        if is_filled {
            self.tails().insert(page, true);
            self.has_tails.store(true, Ordering::Relaxed);
        }
        is_filled
    }

    /// The same for every file that is mapped shared and ends in one of the ranges, which a system call was passed that
    /// has failed with EFAULT. True if another attempt may succeed.
    pub fn fill_tails(&self, ranges: &[Range<u64>]) -> bool {
        let last = self.layout().page - 1;
        let mut pages: Vec<u64> = self.tails().keys().copied().collect();
        for (start, region) in self.regions() {
            let Some((path, offset)) = shared_file(&region) else { continue };
            let in_file = std::fs::metadata(path).map_or(0, |status| status.len()).saturating_sub(offset);
            if (1..=region.end - start).contains(&in_file) {
                pages.push(self.layout().page_of(start + in_file - 1));
            }
        }
        pages.retain(|page| ranges.iter().any(|range| range.start <= page + last && range.end > *page));
        pages.retain(|page| self.fill_tail(page + last));
        !pages.is_empty()
    }

    /// Maps the files again where zeroed memory stands after their ends. The caller holds the kernel's lock.
    #[inline]
    pub fn drop_tails(&self) {
        if self.has_tails.load(Ordering::Relaxed) {
            self.map_files_again();
        }
    }

    /// No file is mapped any more.
    pub(super) fn forget_tails(&self) {
        self.tails().clear();
        self.has_tails.store(false, Ordering::Relaxed);
    }

    #[cold]
    fn map_files_again(&self) {
        self.has_tails.store(false, Ordering::Relaxed);
        let mut tails = self.tails();
        tails.retain(|&page, _| {
            self.region_at(page).is_some_and(|(_, region)| shared_file(&region).is_some())
        });
        for (&page, is_filled) in tails.iter_mut().filter(|(_, is_filled)| **is_filled) {
            // A failure leaves zeroed memory there, as if the file did not grow.
            *is_filled = self.view_again(page, self.layout().page, page).is_err();
        }
    }
}
