//! Files without a name (O_TMPFILE in open(2)), which the kernel removes however the process ends. Where the file system
//! has none, they have temporary names, and the next command that writes there removes those of killed ones.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, fstat, linkat};
use tempfile::TempPath;

use crate::scratch::remove_abandoned;

/// How temporary names begin.
pub(crate) const PREFIX: &str = ".pathlength-";

/// A file that has no name yet.
#[derive(Debug)]
pub(crate) struct UnnamedFile {
    /// The temporary name, if it needs one; unique, since it has the inode's number or was new. Removed on drop.
    temporary: TempPath,
    /// Locked, so that nobody takes the temporary name for an abandoned one; also in processes that this one forks.
    descriptor: OwnedFd,
}

impl UnnamedFile {
    /// Creates a file in a directory, with the permissions of any new file, for appending.
    pub(crate) fn create(directory: &Path) -> io::Result<(File, UnnamedFile)> {
        remove_abandoned(directory, PREFIX);
        let (file, temporary) = match open_unnamed(directory) {
            Some(file) => {
                let name = format!("{PREFIX}{:x}", file.metadata()?.ino());
                (file, TempPath::try_from_path(directory.join(name))?)
            }
            None => open_named(directory)?,
        };
        // A file system without locks keeps temporary names.
        let _ = file.lock_shared();
        let descriptor = file.try_clone()?.into();
        Ok((file, UnnamedFile { temporary, descriptor }))
    }

    /// Whether nobody has given it a name, or it still has its temporary one.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.has_no_link() || self.temporary.exists()
    }

    fn has_no_link(&self) -> bool {
        fstat(&self.descriptor).is_ok_and(|file| file.st_nlink == 0)
    }

    /// A path to it, for this process.
    pub(crate) fn path(&self) -> PathBuf {
        link_in_proc(self.descriptor.as_raw_fd())
    }

    /// The same with another descriptor of the file.
    pub(crate) fn renumbered(self, how: impl FnOnce(OwnedFd) -> OwnedFd) -> UnnamedFile {
        UnnamedFile { temporary: self.temporary, descriptor: how(self.descriptor) }
    }

    /// Gives it its name, in place of another file, unless it had one before.
    pub(crate) fn name(&self, target: &Path) -> io::Result<()> {
        if self.has_no_link() {
            match self.link(target) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.link(&self.temporary)?,
                // It had a name, which somebody has removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                linked => return linked,
            }
        }
        match fs::rename(&self.temporary, target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // If another process has named it meanwhile, both are names of one file, and rename does nothing (rename(2)).
        let _ = fs::remove_file(&self.temporary);
        Ok(())
    }

    fn link(&self, name: &Path) -> io::Result<()> {
        Ok(linkat(CWD, self.path(), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

fn link_in_proc(descriptor: i32) -> PathBuf {
    format!("/proc/self/fd/{descriptor}").into()
}

/// A file without a name. None if it could not get one: the file system has no such files, or there is no /proc.
fn open_unnamed(directory: &Path) -> Option<File> {
    let file = File::options().append(true).custom_flags(libc::O_TMPFILE).open(directory).ok()?;
    link_in_proc(file.as_raw_fd()).exists().then_some(file)
}

/// A file with a temporary name.
fn open_named(directory: &Path) -> io::Result<(File, TempPath)> {
    let create = |path: &Path| File::options().append(true).create_new(true).open(path);
    Ok(tempfile::Builder::new().prefix(PREFIX).make_in(directory, create)?.into_parts())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Both kinds: without a name, and with a temporary one.
    fn both(folder: &Path) -> [UnnamedFile; 2] {
        let (file, unnamed) = UnnamedFile::create(folder).unwrap();
        assert!(!names(folder).iter().any(|name| name.starts_with(PREFIX)), "a file without a name");
        let (mut other, temporary) = open_named(folder).unwrap();
        other.write_all(b"new").unwrap();
        (&file).write_all(b"new").unwrap();
        [unnamed, UnnamedFile { temporary, descriptor: other.into() }]
    }

    #[test]
    fn a_name_comes_once_and_replaces_what_was_there() {
        for kind in 0..2 {
            for before in [None, Some("old")] {
                let folder = tempfile::tempdir().unwrap();
                let target = folder.path().join("target");
                let [first, second] = both(folder.path());
                let file = if kind == 0 { (drop(second), first).1 } else { (drop(first), second).1 };
                assert_eq!(names(folder.path()).len(), kind);
                before.inspect(|old| fs::write(&target, old).unwrap());
                assert!(file.is_unnamed());
                assert_eq!(fs::read(file.path()).unwrap(), b"new");
                file.name(&target).unwrap();
                assert_eq!(fs::read(&target).unwrap(), b"new");
                assert!(!file.is_unnamed());
                fs::remove_file(&target).unwrap();
                file.name(&target).unwrap();
                assert_eq!(names(folder.path()), [""; 0], "removed by somebody else, and not made again");
            }
        }
    }

    #[test]
    fn a_file_that_gets_no_name_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("target")).unwrap();
        for file in both(folder.path()) {
            assert!(file.name(&folder.path().join("target")).is_err());
        }
        assert_eq!(names(folder.path()), ["target"]);
    }
}
