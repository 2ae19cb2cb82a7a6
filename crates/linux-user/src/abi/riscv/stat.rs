//! File status and file system status in the generic layouts (`asm-generic/stat.h`, `asm-generic/statfs.h`).

use crate::abi::layout::GuestStructure;
use crate::calls::stat::{FileSystem, file_status, of_descriptor};
use host::Errno;

use super::{Call, CallOutcome};

/// `struct stat`.
#[allow(clippy::unnecessary_cast)]
fn layout(status: &libc::stat) -> Result<GuestStructure, Errno> {
    Ok(GuestStructure::new()
        .u64s(&[status.st_dev as u64, status.st_ino as u64])
        .u32s(&[status.st_mode, status.st_nlink as u32, status.st_uid, status.st_gid])
        .u64s(&[status.st_rdev as u64, 0, status.st_size as u64])
        .u32s(&[status.st_blksize as u32, 0])
        .u64s(&[status.st_blocks as u64])
        .u64s(&[status.st_atime as u64, status.st_atime_nsec as u64])
        .u64s(&[status.st_mtime as u64, status.st_mtime_nsec as u64])
        .u64s(&[status.st_ctime as u64, status.st_ctime_nsec as u64])
        .u32s(&[0, 0]))
}

/// newfstatat(directory, path, buffer, flags)
pub fn newfstatat(call: &mut Call) -> CallOutcome {
    let [directory, _, buffer, flags, ..] = call.arguments;
    let path = call.path(1)?;
    file_status(call, directory as i32, &path, flags as i32, buffer, layout)
}

/// fstat(descriptor, buffer)
pub fn fstat(call: &mut Call) -> CallOutcome {
    of_descriptor(call, layout)
}

/// `struct statfs`: 64-bit words.
fn file_system(call: &mut Call, of_path: bool) -> CallOutcome {
    let FileSystem(words) = FileSystem::of(call, of_path)?;
    let buffer = call.arguments[1];
    call.write(buffer, &GuestStructure::new().u64s(&words))?;
    Ok(0)
}

/// statfs(path, buffer)
pub fn statfs(call: &mut Call) -> CallOutcome {
    file_system(call, true)
}

/// fstatfs(descriptor, buffer)
pub fn fstatfs(call: &mut Call) -> CallOutcome {
    file_system(call, false)
}
