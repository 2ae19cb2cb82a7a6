//! Images that are loaded in place of others, of which the program sees the originals' names and status.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{File, Metadata};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use events::LoadedImage;

use crate::abi::Abi;
use crate::state::kernel::Kernel;
use crate::{descriptor_table, procfs};
use host::Errno;

/// Loads other files in place of images, unnoticed by the program.
pub trait Substitution: Debug + Send + Sync {
    /// The file to load in place of `image`, in a process that executes `program` (the same for the program itself). None
    /// if the image itself is to be loaded. No descriptor may stay open, since it is a guest's process.
    fn substitute(&self, program: &Path, image: &Path) -> Option<PathBuf>;
}

/// The originals of the files that were loaded, by the identities of the substitutes.
pub(crate) type Originals = BTreeMap<FileIdentity, PathBuf>;

/// Device, inode, and the time of the last modification, as a removed file's inode is used again.
pub(crate) type FileIdentity = (u64, u64, i64, i64);

/// The identity of a file with this status.
pub(crate) fn identity(status: &libc::stat) -> FileIdentity {
    (status.st_dev, status.st_ino, status.st_mtime, status.st_mtime_nsec)
}

fn identity_of(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
}

impl<G: Abi> Kernel<G> {
    /// The file to load for an image of the process that executes `program`.
    pub fn substitute(&mut self, program: &Path, image: &Path) -> PathBuf {
        let Some(substitution) = self.settings.substitution.clone() else { return image.into() };
        let original = std::fs::canonicalize(image).unwrap_or_else(|_| image.into());
        let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.into());
        let substitute = descriptor_table::preferably_apart(|| substitution.substitute(&program, &original));
        let status = substitute.and_then(|path| Some((std::fs::metadata(&path).ok()?, path)));
        let Some((status, path)) = status else { return image.into() };
        self.originals.insert(identity_of(&status), original);
        path
    }

    /// The dynamic loader has opened a file: its descriptor becomes that of the substitute.
    pub(crate) fn substitute_opened(&mut self, descriptor: RawFd) -> Result<(), Errno> {
        let link = procfs::link_of(descriptor).unwrap_or_default();
        let link = PathBuf::from(OsString::from_vec(link));
        let path = self.substitute(&self.executable.clone(), &link);
        if path == link {
            return Ok(());
        }
        // SAFETY: no pointers are passed.
        let own = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        let close_on_exec = if own & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
        let file = File::options().read(true).custom_flags(libc::O_NOCTTY).open(&path)?;
        // SAFETY: both descriptors are open; the number is the one that the guest is about to receive.
        match unsafe { libc::dup3(file.as_raw_fd(), descriptor, close_on_exec) } {
            -1 => Err(Errno::last()),
            _ => Ok(()),
        }
    }

    /// The original of an image whose code at `pc` maps a file over a part of itself: a substitute may keep data there.
    pub(crate) fn original_around(&self, start: u64, pc: u64) -> Option<&Path> {
        if self.originals.is_empty() {
            return None;
        }
        let holds = |image: &&LoadedImage| [start, pc].iter().all(|at| (image.start..image.end).contains(at));
        let status = std::fs::metadata(&self.images.iter().rev().find(holds)?.path).ok()?;
        self.original(identity_of(&status))
    }

    /// The original of a substitute.
    pub(crate) fn original(&self, substitute: FileIdentity) -> Option<&Path> {
        self.originals.get(&substitute).map(PathBuf::as_path)
    }
}
