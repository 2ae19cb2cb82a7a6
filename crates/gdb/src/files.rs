//! Serves files to GDB: those that the program has mapped, so that GDB finds the symbols of its libraries without
//! configuration. No others: a debugger must not reach more than the program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use gdbstub::target::ext::host_io::{
    FsKind, HostIo, HostIoClose, HostIoCloseOps, HostIoErrno, HostIoError, HostIoFstat, HostIoFstatOps,
    HostIoOpen, HostIoOpenFlags, HostIoOpenMode, HostIoOpenOps, HostIoPread, HostIoPreadOps, HostIoReadlink,
    HostIoReadlinkOps, HostIoResult, HostIoSetfs, HostIoSetfsOps, HostIoStat,
};

use crate::target::GdbTarget;

/// The greatest number of open files.
const MAX_OPEN_FILES: usize = 64;

/// Files that GDB has open for reading. They are opened anew for each read, so that the program finds no additional
/// descriptor.
pub struct HostFiles {
    /// The folder in which absolute paths are searched first.
    sysroot: PathBuf,
    open: BTreeMap<u32, (PathBuf, DeviceInode)>,
}

/// Device and inode.
type DeviceInode = (u64, u64);

fn identity(status: &Metadata) -> DeviceInode {
    (status.dev(), status.ino())
}

impl HostFiles {
    /// None is open.
    pub fn new(sysroot: &Path) -> HostFiles {
        HostFiles { sysroot: sysroot.into(), open: BTreeMap::new() }
    }

    /// The host's file for the program's path.
    fn locate(&self, name: &[u8]) -> PathBuf {
        let path = Path::new(OsStr::from_bytes(name));
        let inside = path.strip_prefix("/").map(|rest| self.sysroot.join(rest));
        inside.ok().filter(|inside| inside.exists()).unwrap_or_else(|| path.into())
    }

    fn get(&self, number: u32) -> HostIoResult<File, GdbTarget> {
        let (path, opened) = self.open.get(&number).ok_or(HostIoError::Errno(HostIoErrno::EBADF))?;
        let file = File::open(path)?;
        if identity(&file.metadata()?) != *opened {
            return Err(HostIoError::Errno(HostIoErrno::EACCES));
        }
        Ok(file)
    }
}

impl GdbTarget {
    /// The host's file for the program's path, and its identity, if the program has mapped it.
    fn mapped(&self, name: &[u8]) -> HostIoResult<(PathBuf, DeviceInode), GdbTarget> {
        let path = self.files.locate(name);
        let file = identity(&std::fs::metadata(&path)?);
        let same = |mapped: PathBuf| std::fs::metadata(mapped).is_ok_and(|mapped| identity(&mapped) == file);
        match self.session().mapped_files().into_iter().any(same) {
            true => Ok((path, file)),
            false => Err(HostIoError::Errno(HostIoErrno::EACCES)),
        }
    }
}

impl HostIo for GdbTarget {
    fn support_open(&mut self) -> Option<HostIoOpenOps<'_, Self>> {
        Some(self)
    }

    fn support_close(&mut self) -> Option<HostIoCloseOps<'_, Self>> {
        Some(self)
    }

    fn support_pread(&mut self) -> Option<HostIoPreadOps<'_, Self>> {
        Some(self)
    }

    fn support_fstat(&mut self) -> Option<HostIoFstatOps<'_, Self>> {
        Some(self)
    }

    fn support_readlink(&mut self) -> Option<HostIoReadlinkOps<'_, Self>> {
        Some(self)
    }

    fn support_setfs(&mut self) -> Option<HostIoSetfsOps<'_, Self>> {
        Some(self)
    }
}

impl HostIoOpen for GdbTarget {
    fn open(&mut self, name: &[u8], flags: HostIoOpenFlags, _: HostIoOpenMode) -> HostIoResult<u32, Self> {
        let writes = HostIoOpenFlags::O_WRONLY | HostIoOpenFlags::O_RDWR | HostIoOpenFlags::O_CREAT;
        if flags.intersects(writes) {
            return Err(HostIoError::Errno(HostIoErrno::EROFS));
        }
        let free = (0..MAX_OPEN_FILES as u32).find(|number| !self.files.open.contains_key(number));
        let number = free.ok_or(HostIoError::Errno(HostIoErrno::EMFILE))?;
        let file = self.mapped(name)?;
        // Another kind of file might let us wait.
        if !std::fs::metadata(&file.0)?.is_file() {
            return Err(HostIoError::Errno(HostIoErrno::EACCES));
        }
        File::open(&file.0)?;
        self.files.open.insert(number, file);
        Ok(number)
    }
}

impl HostIoClose for GdbTarget {
    fn close(&mut self, number: u32) -> HostIoResult<(), Self> {
        let closed = self.files.open.remove(&number);
        closed.map(drop).ok_or(HostIoError::Errno(HostIoErrno::EBADF))
    }
}

impl HostIoPread for GdbTarget {
    fn pread(
        &mut self,
        number: u32,
        count: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> HostIoResult<usize, Self> {
        let count = count.min(buffer.len());
        Ok(self.files.get(number)?.read_at(&mut buffer[..count], offset)?)
    }
}

impl HostIoFstat for GdbTarget {
    fn fstat(&mut self, number: u32) -> HostIoResult<HostIoStat, Self> {
        let status = self.files.get(number)?.metadata()?;
        Ok(HostIoStat {
            st_dev: status.dev() as u32,
            st_ino: status.ino() as u32,
            st_mode: HostIoOpenMode::from_bits_truncate(status.mode()),
            st_nlink: status.nlink() as u32,
            st_uid: status.uid(),
            st_gid: status.gid(),
            st_rdev: status.rdev() as u32,
            st_size: status.size(),
            st_blksize: status.blksize(),
            st_blocks: status.blocks(),
            st_atime: status.atime() as u32,
            st_mtime: status.mtime() as u32,
            st_ctime: status.ctime() as u32,
        })
    }
}

impl HostIoReadlink for GdbTarget {
    fn readlink(&mut self, name: &[u8], buffer: &mut [u8]) -> HostIoResult<usize, Self> {
        let target = std::fs::read_link(self.mapped(name)?.0)?;
        let bytes = target.as_os_str().as_bytes();
        let room = buffer.get_mut(..bytes.len()).ok_or(HostIoError::Errno(HostIoErrno::ENAMETOOLONG))?;
        room.copy_from_slice(bytes);
        Ok(bytes.len())
    }
}

impl HostIoSetfs for GdbTarget {
    fn setfs(&mut self, _: FsKind) -> HostIoResult<(), Self> {
        Ok(())
    }
}
