//! Whether only root can have written a file: it, all folders that lead to it, and all links on the way must be root's, and
//! writable by root alone. In a folder with the sticky bit, as /tmp, others cannot replace what is root's.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// Maximum number of links in a path (path_resolution(7)).
const MOST_LINKS: usize = 40;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Fails if somebody other than root can change the file that a path leads to, or what it leads to. The file need not
/// exist.
pub(crate) fn check_trusted(path: &Path) -> Result<()> {
    let failed = |source| Error::io("examine", path)(source);
    let whole = std::path::absolute(path).map_err(failed)?;
    let mut rest: VecDeque<OsString> = parts(&whole).collect();
    let (mut here, mut links) = (PathBuf::from("/"), 0);
    check(path, &here, &fs::symlink_metadata(&here).map_err(failed)?)?;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        let status = match fs::symlink_metadata(&next) {
            // A new file will be root's.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        };
        check(path, &next, &status)?;
        if !status.is_symlink() {
            here = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(failed(io::Error::from_raw_os_error(libc::ELOOP)));
        }
        let target = fs::read_link(&next).map_err(failed)?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(())
}

/// The names in a path.
fn parts(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

fn check(registry: &Path, path: &Path, status: &Metadata) -> Result<()> {
    let mode = status.mode();
    let writers = if status.uid() != 0 {
        format!("user {}", status.uid())
    } else if status.is_symlink() || status.is_dir() && mode & STICKY != 0 {
        return Ok(());
    } else if mode & OTHERS_WRITE != 0 {
        "every user".into()
    } else if mode & GROUP_WRITES != 0 && status.gid() != 0 {
        format!("group {}", status.gid())
    } else {
        return Ok(());
    };
    Err(Error::Request(format!(
        "root does not use the registry {}, because {writers} can write {}: give that to root alone (chown root, chmod go-w), \
         or name another registry",
        registry.display(),
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_roots_files_are_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let registry = folder.path().join("vlm.toml");
        let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        if !rustix::process::geteuid().is_root() {
            // What is this user's is not root's.
            assert!(check_trusted(&registry).unwrap_err().to_string().contains("can write"));
            return;
        }
        check_trusted(&registry).unwrap();
        fs::write(&registry, "").unwrap();
        check_trusted(&registry).unwrap();
        let link = folder.path().join("link");
        symlink(&registry, &link).unwrap();
        check_trusted(&link).unwrap();
        let refused = |path: &Path, whose: &str| {
            let error = check_trusted(path).unwrap_err().to_string();
            assert!(error.contains(whose), "{error}");
        };
        mode(&registry, 0o666);
        refused(&registry, "every user can write");
        refused(&link, "every user can write");
        mode(&registry, 0o644);
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("vlm.toml"), "").unwrap();
        mode(&inner, 0o777);
        refused(&inner.join("vlm.toml"), "every user can write");
        refused(&inner.join("new.toml"), "every user can write");
        // A folder that others can write lies on the way to the link's target, or to the link.
        symlink(inner.join("vlm.toml"), folder.path().join("in")).unwrap();
        refused(&folder.path().join("in"), "every user can write");
        symlink("../vlm.toml", inner.join("out")).unwrap();
        refused(&inner.join("out"), "every user can write");
        mode(&inner, 0o1777);
        check_trusted(&inner.join("vlm.toml")).unwrap();
        std::os::unix::fs::chown(inner.join("vlm.toml"), Some(65534), None).unwrap();
        refused(&inner.join("vlm.toml"), "user 65534 can write");
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        refused(&link, "user 65534 can write");
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(check_trusted(&folder.path().join("loop")).is_err());
    }
}
