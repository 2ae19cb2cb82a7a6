//! The kernel's pool of huge pages of one size: its counts, and how it grows and shrinks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Size;
use crate::error::{Error, Result};

const POOLS: &str = "/sys/kernel/mm/hugepages";

/// How often a pool that does not get all its pages is asked for them.
const ATTEMPTS: usize = 5;

/// The counts of a pool, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCounts {
    /// All pages, surplus pages included.
    pub total: u64,
    /// Pages not in use; a part of them is reserved.
    pub free: u64,
    /// Pages promised to mounts and mappings, not yet in use.
    pub reserved: u64,
    /// Pages beyond the pool's size, which the kernel takes back when any page is freed.
    pub surplus: u64,
    /// The number of surplus pages that the kernel may add.
    pub overcommit: u64,
}

impl PoolCounts {
    /// Why the kernel cannot keep the reserves of sections, and what to do; nothing if it can.
    pub fn lost_reserve(&self, page_size: Size) -> Option<String> {
        let PoolCounts { free, reserved, surplus, .. } = *self;
        if reserved > free {
            let missing = Size((reserved - free) * page_size.bytes());
            return Some(format!(
                "{missing} of the memory that is reserved for sections is gone, because the pool of {page_size} pages was \
                 made smaller: raise vm.nr_hugepages by {} before any program uses a section",
                reserved - free
            ));
        }
        (surplus > 0).then(|| {
            format!(
                "the pool of {page_size} pages has {surplus} surplus pages, which the kernel takes from the reserves of \
                 sections when it frees any page: set vm.nr_overcommit_hugepages to 0 and raise vm.nr_hugepages by {surplus}"
            )
        })
    }

    /// Pages that must stay: those in use and those reserved.
    fn needed(&self) -> u64 {
        self.total - self.free + self.reserved
    }
}

/// A pool.
#[derive(Clone, Debug)]
pub struct Pool {
    page_size: Size,
    folder: PathBuf,
    node: Option<u32>,
}

impl Pool {
    /// The pool of pages of that size; with `node`, only that node's part grows and shrinks.
    pub fn open(page_size: Size, node: Option<u32>) -> Result<Pool> {
        let name = format!("hugepages-{}kB", page_size.bytes() >> 10);
        let folder = Path::new(POOLS).join(&name);
        if !folder.is_dir() {
            let has = match sizes() {
                sizes if sizes.is_empty() => "it has no huge pages".to_owned(),
                sizes => {
                    format!("it has {}", sizes.iter().map(Size::to_string).collect::<Vec<_>>().join(" and "))
                }
            };
            return Err(Error::Request(format!("this kernel has no pages of {page_size}: {has}")));
        }
        let pool = Pool { page_size, folder, node };
        if let Some(node) = node
            && !pool.size_file().exists()
        {
            return Err(Error::Request(format!(
                "this machine has no NUMA node {node} with pages of {page_size}"
            )));
        }
        Ok(pool)
    }

    /// The counts of the whole pool, on all nodes.
    pub fn counts(&self) -> Result<PoolCounts> {
        let count = |name: &str| read(&self.folder.join(name));
        Ok(PoolCounts {
            total: count("nr_hugepages")?,
            free: count("free_hugepages")?,
            reserved: count("resv_hugepages")?,
            surplus: count("surplus_hugepages")?,
            overcommit: count("nr_overcommit_hugepages")?,
        })
    }

    /// The size of the pool, or of the node's part of it: the pages that are no surplus.
    pub fn size(&self) -> Result<u64> {
        let file = self.size_file();
        Ok(read(&file)?.saturating_sub(read(&file.with_file_name("surplus_hugepages"))?))
    }

    /// The file by which the size is read and changed.
    fn size_file(&self) -> PathBuf {
        match self.node {
            None => self.folder.join("nr_hugepages"),
            Some(node) => Path::new("/sys/devices/system/node")
                .join(format!("node{node}/hugepages"))
                .join(self.folder.file_name().expect("the folder of a pool has a name"))
                .join("nr_hugepages"),
        }
    }

    fn write(&self, size: u64) -> Result<()> {
        let path = self.size_file();
        fs::write(&path, size.to_string()).map_err(Error::io("write", &path))
    }

    /// Adds pages: all, or none and an error.
    pub fn grow(&self, pages: u64) -> Result<()> {
        let before = self.size()?;
        for _ in 0..ATTEMPTS {
            self.write(before + pages)?;
            if self.size()? >= before + pages {
                return Ok(());
            }
            // Free memory is in pieces: the kernel can put it together.
            let _ = fs::write("/proc/sys/vm/compact_memory", "1");
        }
        let got = self.size()?.saturating_sub(before);
        self.shrink_to(before)?;
        Err(Error::Memory(format!(
            "only {} of {} could be made pages of {}, because free memory is in pieces: reserve at boot (`systemctl enable \
             vlm`), or free memory first",
            Size(got * self.page_size.bytes()),
            Size(pages * self.page_size.bytes()),
            self.page_size
        )))
    }

    /// Makes the pool smaller, down to `size`, but never takes pages that are in use or reserved: they
    /// would become surplus pages. The result is the number of pages that had to stay.
    pub fn shrink_to(&self, size: u64) -> Result<u64> {
        let before = self.counts()?;
        let current = self.size()?;
        let removable = (before.total - before.surplus).saturating_sub(before.needed());
        self.write(size.max(current.saturating_sub(removable)).min(current))?;
        let surplus = self.counts()?.surplus.saturating_sub(before.surplus);
        if surplus > 0 {
            // Another program took pages meanwhile.
            self.write(self.size()? + surplus)?;
        }
        Ok(self.size()?.saturating_sub(size))
    }
}

/// The sizes of pages that the kernel has.
pub fn sizes() -> Vec<Size> {
    let names = fs::read_dir(POOLS).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let size = |name: &str| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok();
    let mut sizes: Vec<_> =
        names.filter_map(|name| size(name.to_str()?)).map(|kib| Size(kib << 10)).collect();
    sizes.sort();
    sizes
}

fn read(path: &Path) -> Result<u64> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    text.trim().parse().map_err(|_| Error::Request(format!("{} is no number", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_reserves_are_found_by_their_counts() {
        let counts = PoolCounts { total: 32, free: 20, reserved: 20, surplus: 0, overcommit: 0 };
        assert_eq!(counts.lost_reserve(Size::mib(2)), None);
        let lost = PoolCounts { reserved: 22, ..counts }.lost_reserve(Size::mib(2)).unwrap();
        assert!(lost.contains("4 MiB") && lost.contains("by 2"), "{lost}");
        let surplus = PoolCounts { surplus: 3, ..counts }.lost_reserve(Size::mib(2)).unwrap();
        assert!(surplus.contains("3 surplus pages"), "{surplus}");
    }

    #[test]
    fn a_page_size_that_does_not_exist_is_named() {
        let message = Pool::open(Size::mib(32), None).unwrap_err().to_string();
        assert!(message.contains("no pages of 32 MiB"), "{message}");
    }
}
