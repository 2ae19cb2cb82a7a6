//! The program's memory: where code may be executed, from which images it comes, and the program's heap.

use std::collections::BTreeMap;

/// The image of code that comes from no file.
pub(crate) const NO_IMAGE: u32 = u32::MAX;
const PAGE: u64 = 4096;

/// Memory that the program may execute.
#[derive(Clone, Copy, Debug)]
struct ExecutableRegion {
    end: u64,
    is_writable: bool,
    image: u32,
}

/// The program's memory.
#[derive(Debug, Default)]
pub(crate) struct ProgramMemory {
    /// Executable regions by their start; disjoint.
    code: BTreeMap<u64, ExecutableRegion>,
    /// Writable pages whose code has been translated: they are protected from writes, so that these are noticed.
    protected: std::collections::BTreeSet<u64>,
    /// The start of the heap, its end, and the highest end that it can have.
    heap: (u64, u64, u64),
}

impl ProgramMemory {
    /// Executable memory has been mapped.
    pub fn add_code(&mut self, start: u64, end: u64, is_writable: bool, image: u32) {
        self.remove(start, end);
        self.code.insert(start, ExecutableRegion { end, is_writable, image });
    }

    /// Memory has been unmapped, or is no longer executable.
    pub fn remove(&mut self, start: u64, end: u64) {
        let overlapping: Vec<(u64, ExecutableRegion)> = self
            .code
            .range(..end)
            .rev()
            .take_while(|(_, region)| region.end > start)
            .map(|(&start, &region)| (start, region))
            .collect();
        for (first, region) in overlapping {
            self.code.remove(&first);
            if first < start {
                self.code.insert(first, ExecutableRegion { end: start, ..region });
            }
            if region.end > end {
                self.code.insert(end, region);
            }
        }
        let pages: Vec<u64> = self.protected.range(start / PAGE..end.div_ceil(PAGE)).copied().collect();
        pages.iter().for_each(|page| {
            self.protected.remove(page);
        });
    }

    /// The protection of memory has changed. Returns whether code may have been there.
    pub fn protect(&mut self, start: u64, end: u64, is_executable: bool, is_writable: bool) -> bool {
        let image = self.image_at(start);
        let had_code = self.overlaps(start, end);
        if is_executable {
            self.add_code(start, end, is_writable, image);
        } else {
            self.remove(start, end);
        }
        had_code
    }

    /// Whether a range has executable memory.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.code.range(..end).next_back().is_some_and(|(_, region)| region.end > start)
    }

    fn region(&self, address: u64) -> Option<&ExecutableRegion> {
        self.code.range(..=address).next_back().map(|(_, region)| region).filter(|it| it.end > address)
    }

    /// The image of the code at an address.
    pub fn image_at(&self, address: u64) -> u32 {
        self.region(address).map_or(NO_IMAGE, |region| region.image)
    }

    /// The code from an address to the end of executable memory; None if it is not executable.
    pub fn code_at(&self, address: u64) -> Option<&[u8]> {
        const LONGEST: u64 = 4 * PAGE;
        let mut end = self.region(address)?.end;
        while let Some(region) = self.region(end).filter(|_| end - address < LONGEST) {
            end = region.end;
        }
        // SAFETY: the kernel has mapped this memory for the program, as its system calls tell. If the program unmaps it in another thread
        // at this moment, or if it is a mapping beyond the end of a file, this thread gets a fault that ends the program.
        Some(unsafe {
            std::slice::from_raw_parts(address as *const u8, (end - address).min(LONGEST) as usize)
        })
    }

    /// Code has been translated: writes to it must be noticed from now on.
    pub fn translated(&mut self, start: u64, end: u64) {
        for page in start / PAGE..end.div_ceil(PAGE) {
            let is_writable =
                self.region(page * PAGE).or(self.region(start)).is_some_and(|it| it.is_writable);
            if is_writable && self.protected.insert(page) {
                // SAFETY: only takes the right to write from memory of the program; `unprotect` gives it back.
                unsafe {
                    libc::mprotect((page * PAGE) as *mut _, PAGE as usize, libc::PROT_READ | libc::PROT_EXEC)
                };
            }
        }
    }

    /// Lets the program write to a page whose code was translated. False if the page was not protected by [`ProgramMemory::translated`].
    pub fn unprotect(&mut self, address: u64) -> Option<u64> {
        let page = address / PAGE;
        if !self.protected.remove(&page) {
            return None;
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: gives back what the program had.
        unsafe { libc::mprotect((page * PAGE) as *mut _, PAGE as usize, rights) };
        Some(page * PAGE)
    }

    /// Lets the kernel write to all protected pages of a range. Returns those pages.
    pub fn unprotect_range(&mut self, start: u64, end: u64) -> Vec<u64> {
        let pages: Vec<u64> = self.protected.range(start / PAGE..end.div_ceil(PAGE)).copied().collect();
        pages.into_iter().filter_map(|page| self.unprotect(page * PAGE)).collect()
    }

    /// The heap begins here, and may grow to a limit.
    pub fn set_heap(&mut self, start: u64, limit: u64) {
        self.heap = (start, start, limit);
    }

    /// The system call `brk`.
    pub fn set_break(&mut self, wanted: u64) -> u64 {
        let (start, end, limit) = self.heap;
        if wanted < start || wanted > limit {
            return end;
        }
        let (old, new) = (end.next_multiple_of(PAGE), wanted.next_multiple_of(PAGE));
        if new > old {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping, which replaces none.
            let at = unsafe { libc::mmap(old as *mut _, (new - old) as usize, rights, flags, -1, 0) };
            if at as u64 != old {
                return end;
            }
        } else if new < old {
            // SAFETY: memory of the program's heap.
            unsafe { libc::munmap(new as *mut _, (old - new) as usize) };
        }
        self.heap.1 = wanted;
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_cut() {
        let mut memory = ProgramMemory::default();
        memory.add_code(0x1000, 0x9000, false, 3);
        memory.remove(0x3000, 0x4000);
        memory.add_code(0x5000, 0x6000, true, 4);
        let image = |address| memory.image_at(address);
        assert_eq!([0xfff, 0x1000, 0x2fff, 0x3000].map(image), [NO_IMAGE, 3, 3, NO_IMAGE]);
        assert_eq!([0x4000, 0x5000, 0x6000, 0x8fff, 0x9000].map(image), [3, 4, 3, 3, NO_IMAGE]);
        assert!(memory.overlaps(0, 0x1001) && !memory.overlaps(0x3000, 0x4000));
        assert!(memory.protect(0x8000, 0x9000, false, false) && !memory.overlaps(0x8000, 0x9000));
    }
}
