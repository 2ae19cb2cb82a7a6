//! Folders and files for what is not finished. A command that is killed leaves them behind; the next one that makes such
//! a folder or file removes them.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

/// The age from which an entry that nobody has locked is abandoned: its maker locks it at once.
const AGE: Duration = Duration::from_secs(10);
/// The file in a folder that stays although nobody has locked it.
const KEPT: &str = ".kept";

/// A folder that is removed when this is dropped; and if this process is killed before, by another command, once the
/// processes have ended that it forked.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    /// Locked, by this process and by those that it forks.
    lock: OwnedFd,
}

impl ScratchFolder {
    /// Makes a folder with permissions, as far as the user's mask allows them, and removes abandoned ones of the same
    /// prefix.
    pub fn new(parent: &Path, prefix: &str, mode: u32) -> io::Result<ScratchFolder> {
        remove_abandoned(parent, prefix);
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(prefix).permissions(Permissions::from_mode(mode)).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        lock.lock_shared()?;
        Ok(ScratchFolder { folder, lock: lock.into() })
    }

    /// The same with another number of the descriptor that holds the lock.
    pub fn renumbered(self, how: impl FnOnce(OwnedFd) -> OwnedFd) -> ScratchFolder {
        ScratchFolder { folder: self.folder, lock: how(self.lock) }
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

    /// It has been renamed, and is not removed.
    pub fn moved(self) -> PathBuf {
        self.folder.keep()
    }
}

/// Removes this user's folders and files of a prefix whose makers have ended. Errors are ignored: they concern nobody now.
pub(crate) fn remove_abandoned(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            let _ = remove_if_abandoned(&entry);
        }
    }
}

fn remove_if_abandoned(entry: &fs::DirEntry) -> io::Result<()> {
    let (metadata, path) = (entry.metadata()?, entry.path());
    // SAFETY: no preconditions.
    let is_ours = metadata.uid() == unsafe { libc::geteuid() };
    let is_old = metadata.modified()?.elapsed().is_ok_and(|age| age >= AGE);
    if !is_ours || !is_old || !(metadata.is_dir() || metadata.is_file()) {
        return Ok(());
    }
    let lock = File::open(&path)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    match metadata.is_dir() {
        true if path.join(KEPT).exists() => Ok(()),
        true => fs::remove_dir_all(&path),
        false => fs::remove_file(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unnamed::{PREFIX, UnnamedFile};

    fn make_old(path: &Path) {
        let time = std::time::SystemTime::now() - 2 * AGE;
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn what_a_killed_command_left_is_removed_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let make = || ScratchFolder::new(parent.path(), ".unfinished-", 0o700).unwrap();
        let (abandoned, used, kept) = (make().moved(), make(), make().keep());
        fs::write(abandoned.join("file"), "half").unwrap();
        let young = make().moved();
        [&abandoned, used.path(), &kept].into_iter().for_each(make_old);
        drop(make());
        assert_eq!(
            [abandoned.exists(), used.path().exists(), kept.exists(), young.exists()],
            [false, true, true, true]
        );
    }

    #[test]
    fn temporary_files_of_killed_commands_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [abandoned, used] = ["a", "b"].map(|end| folder.path().join(format!("{PREFIX}{end}")));
        [&abandoned, &used].into_iter().for_each(|path| fs::write(path, "half").unwrap());
        let user = File::open(&used).unwrap();
        user.lock_shared().unwrap();
        [&abandoned, &used].into_iter().for_each(|path| make_old(path));
        UnnamedFile::create(folder.path()).unwrap();
        assert_eq!([abandoned.exists(), used.exists()], [false, true]);
    }
}
