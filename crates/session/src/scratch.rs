//! Folders for what is not finished. A command that is killed leaves them behind; the next one that makes such a folder
//! removes them.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

/// A folder of this age that nobody has locked is nobody's: its maker locks it at once.
const AGE: Duration = Duration::from_secs(10);
/// The file in a folder that stays although nobody has locked it.
const KEPT: &str = ".kept";

/// A folder that is removed when this is dropped; and if this process is killed before, by another command, once the
/// processes have ended that it forked.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    /// Locked, by this process and by those that it forks.
    _lock: OwnedFd,
}

impl ScratchFolder {
    /// Makes a folder, and removes abandoned ones of the same prefix.
    pub fn new(parent: &Path, prefix: &str, mode: u32) -> io::Result<ScratchFolder> {
        remove_abandoned(parent, prefix);
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(prefix).permissions(Permissions::from_mode(mode)).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        lock.lock_shared()?;
        Ok(ScratchFolder { folder, _lock: linux_user::out_of_reach(lock.into()) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves it where it is, for good.
    pub fn keep(self) -> PathBuf {
        // Without the mark it would be removed some time.
        let _ = File::create(self.folder.path().join(KEPT));
        self.moved()
    }

    /// It has been moved to its place, and is not removed.
    pub fn moved(self) -> PathBuf {
        self.folder.keep()
    }
}

/// Removes this user's folders of a prefix whose makers have ended. Errors are ignored: they concern nobody now.
fn remove_abandoned(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = || {
            let metadata = entry.metadata().ok().filter(|metadata| metadata.is_dir())?;
            let age = metadata.modified().ok()?.elapsed().ok()?;
            // SAFETY: no preconditions.
            (metadata.uid() == unsafe { libc::geteuid() } && age >= AGE).then_some(())
        };
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) || is_ours().is_none() {
            continue;
        }
        let path = entry.path();
        let lock = File::open(&path);
        if lock.is_ok_and(|lock| lock.try_lock().is_ok() && !path.join(KEPT).exists()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_command_left_is_removed_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let make = || ScratchFolder::new(parent.path(), ".unfinished-", 0o700).unwrap();
        let old = |folder: &Path| {
            let time = std::time::SystemTime::now() - 2 * AGE;
            File::open(folder).unwrap().set_modified(time).unwrap();
        };
        let (abandoned, used, kept) = (make().moved(), make(), make().keep());
        fs::write(abandoned.join("file"), "half").unwrap();
        let young = make().moved();
        [&abandoned, used.path(), &kept].into_iter().for_each(old);
        drop(make());
        assert_eq!(
            [abandoned.exists(), used.path().exists(), kept.exists(), young.exists()],
            [false, true, true, true]
        );
    }
}
