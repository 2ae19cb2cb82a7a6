//! Regions of the address space, reserved so that nothing else can be mapped there.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::registry::PageTables;

/// Page tables are shared by what one page of the upper table maps.
pub const SHARING_UNIT: usize = 1 << 30;

/// A reserved region; its addresses begin and end at multiples of 1 GiB.
#[derive(Debug)]
pub struct Region {
    start: *mut c_void,
    length: usize,
}

// SAFETY: A region is addresses that this value owns alone; nothing in it belongs to a thread.
unsafe impl Send for Region {}
// SAFETY: Shared references allow no change of the region.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves at least `length` bytes, inaccessible and without memory.
    pub fn reserve(length: usize) -> rustix::io::Result<Region> {
        let length = length.checked_next_multiple_of(SHARING_UNIT).ok_or(rustix::io::Errno::NOMEM)?;
        let all = length.checked_add(SHARING_UNIT).ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: The kernel chooses unused addresses.
        let base = unsafe {
            mmap_anonymous(ptr::null_mut(), all, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        let before = base.align_offset(SHARING_UNIT);
        let start = base.wrapping_byte_add(before);
        for (part, size) in [(base, before), (start.wrapping_byte_add(length), SHARING_UNIT - before)] {
            if size > 0 {
                // SAFETY: The part was mapped above, and nothing refers to it.
                unsafe { munmap(part, size) }?;
            }
        }
        Ok(Region { start, length })
    }

    /// Maps a file at the region's start. Tables are private if no mapping covers a whole unit of sharing: the file
    /// is then mapped in pieces, which the kernel does not join.
    pub fn map(
        &self,
        length: usize,
        access: ProtFlags,
        file: BorrowedFd<'_>,
        tables: PageTables,
    ) -> rustix::io::Result<*mut c_void> {
        assert!(length <= self.length, "a mapping within its region");
        let piece = match tables {
            PageTables::Shared => length,
            PageTables::Private => SHARING_UNIT / 2,
        };
        for offset in (0..length).step_by(piece) {
            let address = self.start.wrapping_byte_add(offset);
            let size = piece.min(length - offset);
            // SAFETY: The addresses lie within this region, in which nothing else is mapped.
            unsafe { mmap(address, size, access, MapFlags::SHARED | MapFlags::FIXED, file, offset as u64) }?;
        }
        Ok(self.start)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: The region is this value's alone, and users of a mapping borrow what owns it.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_aligned_and_given_back() {
        for length in [1, SHARING_UNIT, SHARING_UNIT + 1, 5 * SHARING_UNIT] {
            let region = Region::reserve(length).unwrap();
            assert_eq!(region.start.addr() % SHARING_UNIT, 0);
            assert_eq!(region.length, length.next_multiple_of(SHARING_UNIT));
            let range = format!("{:x}-", region.start.addr());
            let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(maps().lines().any(|line| line.starts_with(&range) && line.contains("---p")), "{range}");
            drop(region);
            assert!(!maps().lines().any(|line| line.starts_with(&range)), "{range}");
        }
        assert_eq!(Region::reserve(usize::MAX).unwrap_err(), rustix::io::Errno::NOMEM);
    }
}
