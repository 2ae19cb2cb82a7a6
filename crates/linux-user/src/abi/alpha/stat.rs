//! File status (stat) and file system status (statfs) in Alpha's layouts.

use crate::abi::layout::GuestStructure;
use crate::calls::stat::{FileSystem, file_status, of_descriptor, of_path};
use host::Errno;

use super::{Call, CallOutcome};

/// `struct stat64`.
#[allow(clippy::unnecessary_cast)]
fn stat64_layout(status: &libc::stat) -> Result<GuestStructure, Errno> {
    Ok(GuestStructure::new()
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
fn stat_layout(status: &libc::stat) -> Result<GuestStructure, Errno> {
    let narrow = |value: u64| u32::try_from(value).map_err(|_| Errno(libc::EOVERFLOW));
    Ok(GuestStructure::new()
        .u32s(&[narrow(status.st_dev as u64)?, narrow(status.st_ino as u64)?, status.st_mode])
        .u32s(&[status.st_nlink as u32, status.st_uid, status.st_gid, narrow(status.st_rdev as u64)?, 0])
        .u64s(&[status.st_size as u64, status.st_atime as u64])
        .u64s(&[status.st_mtime as u64, status.st_ctime as u64])
        .u32s(&[status.st_blksize as u32, status.st_blocks as u32, 0, 0]))
}

/// `struct osf_stat` (arch/alpha/kernel/osf_sys.c): values are truncated as in Linux.
#[allow(clippy::unnecessary_cast)]
fn osf_layout(status: &libc::stat) -> Result<GuestStructure, Errno> {
    let microseconds = |nanoseconds: i64| (nanoseconds / 1000) as u32;
    let (device, number) = (status.st_rdev as u32, status.st_ino as u32);
    Ok(GuestStructure::new()
        .u32s(&[status.st_dev as u32, 0, status.st_mode, status.st_nlink as u32 & 0xffff])
        .u32s(&[status.st_uid, status.st_gid, device, device])
        .u64s(&[status.st_size as u64])
        .u32s(&[0, microseconds(status.st_atime_nsec), 0, microseconds(status.st_mtime_nsec)])
        .u32s(&[0, microseconds(status.st_ctime_nsec), 0, 0, 0, 0])
        .u64s(&[0; 4])
        .u32s(&[number, 0, status.st_atime as u32, 0, status.st_mtime as u32, 0, status.st_ctime as u32, 0])
        .u64s(&[status.st_blksize as u64, status.st_blocks as u64]))
}

/// osf_stat(path, buffer)
pub fn osf_stat(call: &mut Call) -> CallOutcome {
    of_path(call, 0, osf_layout)
}

/// osf_lstat(path, buffer)
pub fn osf_lstat(call: &mut Call) -> CallOutcome {
    of_path(call, libc::AT_SYMLINK_NOFOLLOW, osf_layout)
}

/// osf_fstat(descriptor, buffer)
pub fn osf_fstat(call: &mut Call) -> CallOutcome {
    of_descriptor(call, osf_layout)
}

/// stat64(path, buffer)
pub fn stat64(call: &mut Call) -> CallOutcome {
    of_path(call, 0, stat64_layout)
}

/// lstat64(path, buffer)
pub fn lstat64(call: &mut Call) -> CallOutcome {
    of_path(call, libc::AT_SYMLINK_NOFOLLOW, stat64_layout)
}

/// fstat64(descriptor, buffer)
pub fn fstat64(call: &mut Call) -> CallOutcome {
    of_descriptor(call, stat64_layout)
}

/// stat(path, buffer)
pub fn stat(call: &mut Call) -> CallOutcome {
    of_path(call, 0, stat_layout)
}

/// lstat(path, buffer)
pub fn lstat(call: &mut Call) -> CallOutcome {
    of_path(call, libc::AT_SYMLINK_NOFOLLOW, stat_layout)
}

/// fstat(descriptor, buffer)
pub fn fstat(call: &mut Call) -> CallOutcome {
    of_descriptor(call, stat_layout)
}

/// fstatat64(directory, path, buffer, flags)
pub fn fstatat64(call: &mut Call) -> CallOutcome {
    let [directory, _, buffer, flags, ..] = call.arguments;
    let path = call.path(1)?;
    file_status(call, directory as i32, &path, flags as i32, buffer, stat64_layout)
}

/// Indexes of the identity and of the fragment size.
const IDENTITY: usize = 7;

const FRAGMENT: usize = 9;

/// `struct statfs`: of the 64-bit architectures only Alpha has 32-bit words here.
fn short(FileSystem(words): &FileSystem) -> Result<GuestStructure, Errno> {
    let narrow = |value: &u64| match *value {
        // -1: unknown.
        u64::MAX => Ok(u32::MAX),
        value => u32::try_from(value).map_err(|_| Errno(libc::EOVERFLOW)),
    };
    let narrow = |values: &[u64]| values.iter().map(narrow).collect::<Result<Vec<u32>, Errno>>();
    let record = GuestStructure::new().u32s(&narrow(&words[..7])?).u64s(&words[7..8]);
    Ok(record.u32s(&narrow(&words[8..11])?).zeros_to(64))
}

/// `struct osf_statfs`: the type truncated to 16 bits, and no flags.
fn osf(FileSystem(words): &FileSystem) -> GuestStructure {
    let cut: Vec<u32> = words[1..7].iter().map(|&word| word as u32).collect();
    let record = GuestStructure::new().u32s(&[words[0] as u32 & 0xffff, words[FRAGMENT] as u32]);
    record.u32s(&cut).u64s(&[words[IDENTITY]])
}

/// `struct osf_statfs64`.
fn osf_long(FileSystem(words): &FileSystem) -> GuestStructure {
    const IDENTITY_AT: usize = 32;
    const SIZES_AT: usize = 456;
    let record = GuestStructure::new().u32s(&[words[0] as u32 & 0xffff]).zeros_to(IDENTITY_AT);
    let record = record.u64s(&[words[IDENTITY]]).zeros_to(SIZES_AT);
    record.u64s(&[words[FRAGMENT]]).u64s(&words[1..7])
}

/// `struct statfs64`.
fn long(FileSystem(words): &FileSystem) -> GuestStructure {
    let narrow = |values: &[u64]| values.iter().map(|value| *value as u32).collect::<Vec<_>>();
    let record = GuestStructure::new().u32s(&narrow(&words[..2])).u64s(&words[2..8]);
    record.u32s(&narrow(&words[8..11])).zeros_to(88)
}

fn statfs_short(call: &mut Call, of_path: bool) -> CallOutcome {
    let status = FileSystem::of(call, of_path)?;
    let buffer = call.arguments[1];
    call.write(buffer, &short(&status)?)?;
    Ok(0)
}

fn statfs_long(call: &mut Call, of_path: bool) -> CallOutcome {
    let [_, size, buffer, ..] = call.arguments;
    if size != 88 {
        return Err(Errno(libc::EINVAL));
    }
    let status = FileSystem::of(call, of_path)?;
    call.write(buffer, &long(&status))?;
    Ok(0)
}

/// statfs(path, buffer)
pub fn statfs(call: &mut Call) -> CallOutcome {
    statfs_short(call, true)
}

/// fstatfs(descriptor, buffer)
pub fn fstatfs(call: &mut Call) -> CallOutcome {
    statfs_short(call, false)
}

/// statfs64(path, size, buffer)
pub fn statfs64(call: &mut Call) -> CallOutcome {
    statfs_long(call, true)
}

/// fstatfs64(descriptor, size, buffer)
pub fn fstatfs64(call: &mut Call) -> CallOutcome {
    statfs_long(call, false)
}

/// (path or descriptor, buffer, size): writes as much of the structure as fits into the buffer.
fn statfs_osf(call: &mut Call, of_path: bool, layout: fn(&FileSystem) -> GuestStructure) -> CallOutcome {
    let status = FileSystem::of(call, of_path)?;
    let [_, buffer, size, ..] = call.arguments;
    let record = layout(&status);
    let bytes = record.bytes();
    call.memory.write(buffer, &bytes[..bytes.len().min(size as usize)])?;
    Ok(0)
}

/// osf_statfs(path, buffer, size)
pub fn osf_statfs(call: &mut Call) -> CallOutcome {
    statfs_osf(call, true, osf)
}

/// osf_fstatfs(descriptor, buffer, size)
pub fn osf_fstatfs(call: &mut Call) -> CallOutcome {
    statfs_osf(call, false, osf)
}

/// osf_statfs64(path, buffer, size)
pub fn osf_statfs64(call: &mut Call) -> CallOutcome {
    statfs_osf(call, true, osf_long)
}

/// osf_fstatfs64(descriptor, buffer, size)
pub fn osf_fstatfs64(call: &mut Call) -> CallOutcome {
    statfs_osf(call, false, osf_long)
}
