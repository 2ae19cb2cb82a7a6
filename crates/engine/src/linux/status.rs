//! What is known of a file (stat) and of a file system (statfs).

use super::call::{Call, Outcome};
use super::errno::Errno;
use super::layout::Record;

/// Which of Alpha's structures to fill.
type Layout = fn(&libc::stat) -> Result<Record, Errno>;

fn file_status(
    call: &mut Call,
    directory: i32,
    path: *const libc::c_char,
    flags: i32,
    buffer: u64,
    layout: Layout,
) -> Outcome {
    // SAFETY: the path is NUL-terminated; an all-zero stat is valid and only written to.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstatat(directory, path, &mut status, flags) != 0 {
            return Err(Errno::last());
        }
        status
    };
    call.write(buffer, &layout(&status)?)?;
    Ok(0)
}

fn of_path(call: &mut Call, flags: i32, layout: Layout) -> Outcome {
    let path = call.path(0)?;
    let buffer = call.arguments[1];
    file_status(call, libc::AT_FDCWD, path.as_ptr(), flags, buffer, layout)
}

fn of_descriptor(call: &mut Call, layout: Layout) -> Outcome {
    let [descriptor, buffer, ..] = call.arguments;
    if (descriptor as i32) < 0 {
        return Err(Errno(libc::EBADF));
    }
    file_status(call, descriptor as i32, c"".as_ptr(), libc::AT_EMPTY_PATH, buffer, layout)
}

/// `struct stat64`.
#[allow(clippy::unnecessary_cast)]
fn stat64_layout(status: &libc::stat) -> Result<Record, Errno> {
    Ok(Record::new()
        .u64s(&[status.st_dev as u64, status.st_ino as u64, status.st_rdev as u64])
        .u64s(&[status.st_size as u64, status.st_blocks as u64])
        .u32s(&[status.st_mode, status.st_uid, status.st_gid])
        .u32s(&[status.st_blksize as u32, status.st_nlink as u32, 0])
        .u64s(&[status.st_atime as u64, status.st_atime_nsec as u64])
        .u64s(&[status.st_mtime as u64, status.st_mtime_nsec as u64])
        .u64s(&[status.st_ctime as u64, status.st_ctime_nsec as u64])
        .u64s(&[0, 0, 0]))
}

/// `struct stat`, the older one with 32-bit fields.
#[allow(clippy::unnecessary_cast)]
fn stat_layout(status: &libc::stat) -> Result<Record, Errno> {
    let narrow = |value: u64| u32::try_from(value).map_err(|_| Errno(libc::EOVERFLOW));
    Ok(Record::new()
        .u32s(&[narrow(status.st_dev as u64)?, narrow(status.st_ino as u64)?, status.st_mode])
        .u32s(&[status.st_nlink as u32, status.st_uid, status.st_gid, narrow(status.st_rdev as u64)?, 0])
        .u64s(&[status.st_size as u64, status.st_atime as u64])
        .u64s(&[status.st_mtime as u64, status.st_ctime as u64])
        .u32s(&[status.st_blksize as u32, status.st_blocks as u32, 0, 0]))
}

/// stat64(path, buffer)
pub fn stat64(call: &mut Call) -> Outcome {
    of_path(call, 0, stat64_layout)
}

/// lstat64(path, buffer)
pub fn lstat64(call: &mut Call) -> Outcome {
    of_path(call, libc::AT_SYMLINK_NOFOLLOW, stat64_layout)
}

/// fstat64(descriptor, buffer)
pub fn fstat64(call: &mut Call) -> Outcome {
    of_descriptor(call, stat64_layout)
}

/// stat(path, buffer)
pub fn stat(call: &mut Call) -> Outcome {
    of_path(call, 0, stat_layout)
}

/// lstat(path, buffer)
pub fn lstat(call: &mut Call) -> Outcome {
    of_path(call, libc::AT_SYMLINK_NOFOLLOW, stat_layout)
}

/// fstat(descriptor, buffer)
pub fn fstat(call: &mut Call) -> Outcome {
    of_descriptor(call, stat_layout)
}

/// fstatat64(directory, path, buffer, flags)
pub fn fstatat64(call: &mut Call) -> Outcome {
    let [directory, _, buffer, flags, ..] = call.arguments;
    let path = call.path(1)?;
    file_status(call, directory as i32, path.as_ptr(), flags as i32, buffer, stat64_layout)
}

fn file_system(call: &mut Call, of_path: bool) -> Result<libc::statfs, Errno> {
    // SAFETY: an all-zero statfs is valid and only written to; the path is NUL-terminated.
    unsafe {
        let mut status: libc::statfs = std::mem::zeroed();
        let result = if of_path {
            libc::statfs(call.path(0)?.as_ptr(), &mut status)
        } else {
            libc::fstatfs(call.int(0), &mut status)
        };
        if result == 0 { Ok(status) } else { Err(Errno::last()) }
    }
}

/// The words of a statfs: type, block size; blocks, free, available, files, free files; the
/// identity; name length, fragment size, flags.
struct FileSystem {
    kind: [u64; 2],
    counts: [u64; 5],
    identity: [u8; 8],
    rest: [u64; 3],
}

#[allow(clippy::unnecessary_cast)]
impl FileSystem {
    fn new(status: &libc::statfs) -> FileSystem {
        // SAFETY: fsid_t is 8 bytes of plain data.
        let identity = unsafe { std::mem::transmute::<libc::fsid_t, [u8; 8]>(status.f_fsid) };
        FileSystem {
            kind: [status.f_type as u64, status.f_bsize as u64],
            counts: [
                status.f_blocks as u64,
                status.f_bfree as u64,
                status.f_bavail as u64,
                status.f_files as u64,
                status.f_ffree as u64,
            ],
            identity,
            rest: [status.f_namelen as u64, status.f_frsize as u64, status.f_flags as u64],
        }
    }

    /// `struct statfs`: Alpha is the only 64-bit platform whose words are 32 bits wide.
    fn short(&self) -> Result<Record, Errno> {
        let narrow = |value: &u64| match *value {
            // -1: not known.
            u64::MAX => Ok(u32::MAX),
            value => u32::try_from(value).map_err(|_| Errno(libc::EOVERFLOW)),
        };
        let all = |values: &[u64]| values.iter().map(narrow).collect::<Result<Vec<u32>, Errno>>();
        let record = Record::new().u32s(&all(&self.kind)?).u32s(&all(&self.counts)?);
        Ok(record.raw(&self.identity).u32s(&all(&self.rest)?).zeros_to(64))
    }

    /// `struct statfs64`.
    fn long(&self) -> Record {
        let words = |values: &[u64]| values.iter().map(|value| *value as u32).collect::<Vec<_>>();
        let record = Record::new().u32s(&words(&self.kind)).u64s(&self.counts);
        record.raw(&self.identity).u32s(&words(&self.rest)).zeros_to(88)
    }
}

fn statfs_short(call: &mut Call, of_path: bool) -> Outcome {
    let status = file_system(call, of_path)?;
    let buffer = call.arguments[1];
    call.write(buffer, &FileSystem::new(&status).short()?)?;
    Ok(0)
}

fn statfs_long(call: &mut Call, of_path: bool) -> Outcome {
    let [_, size, buffer, ..] = call.arguments;
    if size != 88 {
        return Err(Errno(libc::EINVAL));
    }
    let status = file_system(call, of_path)?;
    call.write(buffer, &FileSystem::new(&status).long())?;
    Ok(0)
}

/// statfs(path, buffer)
pub fn statfs(call: &mut Call) -> Outcome {
    statfs_short(call, true)
}

/// fstatfs(descriptor, buffer)
pub fn fstatfs(call: &mut Call) -> Outcome {
    statfs_short(call, false)
}

/// statfs64(path, size, buffer)
pub fn statfs64(call: &mut Call) -> Outcome {
    statfs_long(call, true)
}

/// fstatfs64(descriptor, size, buffer)
pub fn fstatfs64(call: &mut Call) -> Outcome {
    statfs_long(call, false)
}
