//! Limits of control groups on huge pages: beyond `hugetlb.SIZE.max` a touch would end in SIGBUS.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Size;
use crate::error::{Error, Result};

const GROUPS: &str = "/sys/fs/cgroup";

/// Refuses a section, pages of which this process's groups would not let it touch.
pub fn check(size: Size, page_size: Size) -> Result<()> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    check_in(Path::new(GROUPS), &groups, size, page_size)
}

fn check_in(root: &Path, groups: &str, size: Size, page_size: Size) -> Result<()> {
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return Ok(()) };
    let name = format!("hugetlb.{}", page_size.to_string().replace(" MiB", "MB").replace(" GiB", "GB"));
    let own = PathBuf::from(own);
    for group in own.ancestors() {
        let folder = root.join(group);
        let number = |suffix: &str| -> Option<u64> {
            fs::read_to_string(folder.join(format!("{name}.{suffix}"))).ok()?.trim().parse().ok()
        };
        let Some(limit) = number("max") else { continue };
        let left = limit.saturating_sub(number("current").unwrap_or(0));
        if left < size.bytes() {
            return Err(Error::Memory(format!(
                "the control group {} allows {} more of huge pages, and the section needs {size}: raise {name}.max there, or \
                 switch the section to ALLOC (`vlm modify NAME --allocation alloc`)",
                folder.display(),
                Size(left)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_any_group_above_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let check = || check_in(folder.path(), "1:x:/\n0::/a/b\n", Size::mib(64), Size::mib(2));
        assert!(check().is_ok());
        fs::write(inner.join("hugetlb.2MB.max"), "max\n").unwrap();
        fs::write(folder.path().join("a/hugetlb.2MB.max"), "67108864\n").unwrap();
        assert!(check().is_ok());
        fs::write(folder.path().join("a/hugetlb.2MB.current"), "2097152\n").unwrap();
        let message = check().unwrap_err().to_string();
        assert!(message.contains("allows 62 MiB more"), "{message}");
    }
}
