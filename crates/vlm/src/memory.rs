//! The machine's memory, as the kernel reports it.

use std::fs;
use std::path::Path;

use crate::Size;
use crate::error::{Error, Result};

const MEMINFO: &str = "/proc/meminfo";

/// All memory of the machine.
pub fn total() -> Result<Size> {
    field("MemTotal")
}

/// The memory that programs can get without swapping.
pub fn available() -> Result<Size> {
    field("MemAvailable")
}

/// The memory of all page tables, exact: counters of processors are added up first, where the caller has
/// the rights to ask for it.
pub fn page_tables() -> Result<Size> {
    // Without root's rights the figure may be some pages off.
    let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
    field("PageTables")
}

fn field(name: &str) -> Result<Size> {
    let path = Path::new(MEMINFO);
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    parse(&text, name).ok_or_else(|| Error::Request(format!("{MEMINFO} has no field {name}")))
}

fn parse(text: &str, name: &str) -> Option<Size> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Size(kib << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_names() {
        let text = "MemTotal:       100 kB\nMemAvailable:   50 kB\nMemTotalX: 3 kB\n";
        assert_eq!(parse(text, "MemAvailable"), Some(Size(50 << 10)));
        assert_eq!(parse(text, "Mem"), None);
        assert!(total().unwrap() > available().unwrap());
    }
}
