//! The host's file status (stat) and file system status (statfs), for structures of the guest.

use std::ffi::CStr;

use crate::abi::Abi;
use crate::abi::layout::GuestStructure;
use crate::calls::call::{Call, CallOutcome};
use crate::reserved;
use crate::state::kernel::paths::c_path;
use crate::state::substitution::identity;
use host::Errno;

/// Fills in a structure of the guest.
pub type StatLayout = fn(&libc::stat) -> Result<GuestStructure, Errno>;

pub fn file_status<G: Abi>(
    call: &mut Call<G>,
    directory: i32,
    path: &CStr,
    flags: i32,
    buffer: u64,
    layout: StatLayout,
) -> CallOutcome {
    let instead = reserved::check_path(directory, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
    let (directory, path) = match &instead {
        Some(instead) => (instead.directory, instead.path.as_c_str()),
        None => (directory, path),
    };
    let mut status = host_status(directory, path, flags)?;
    if let Some(original) = call.kernel.original(identity(&status)) {
        status = host_status(libc::AT_FDCWD, &c_path(original)?, 0)?;
    }
    call.write(buffer, &layout(&status)?)?;
    Ok(0)
}

/// The host's status of a file.
pub fn host_status(directory: i32, path: &CStr, flags: i32) -> Result<libc::stat, Errno> {
    // SAFETY: the path is NUL-terminated; an all-zero stat is valid and only written to.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        match libc::fstatat(directory, path.as_ptr(), &mut status, flags) {
            0 => Ok(status),
            _ => Err(Errno::last()),
        }
    }
}

pub fn of_path<G: Abi>(call: &mut Call<G>, flags: i32, layout: StatLayout) -> CallOutcome {
    let path = call.path(0)?;
    let buffer = call.arguments[1];
    file_status(call, libc::AT_FDCWD, &path, flags, buffer, layout)
}

pub fn of_descriptor<G: Abi>(call: &mut Call<G>, layout: StatLayout) -> CallOutcome {
    let [descriptor, buffer, ..] = call.arguments;
    if (descriptor as i32) < 0 {
        return Err(Errno(libc::EBADF));
    }
    file_status(call, descriptor as i32, c"", libc::AT_EMPTY_PATH, buffer, layout)
}

/// The host's statfs: type, block size; blocks, free, available, files, free files; identity; name length, fragment
/// size, flags (asm-generic/statfs.h, 64-bit words).
pub struct FileSystem(pub [u64; 15]);

impl FileSystem {
    /// Of the path or the descriptor in the first argument.
    pub fn of<G: Abi>(call: &Call<G>, of_path: bool) -> Result<FileSystem, Errno> {
        let mut words = [0u64; 15];
        let buffer = words.as_mut_ptr() as u64;
        if of_path {
            let path = call.path(0)?;
            call.host(libc::SYS_statfs, [path.as_ptr() as u64, buffer, 0, 0, 0, 0])?;
        } else {
            call.host(libc::SYS_fstatfs, [call.arguments[0], buffer, 0, 0, 0, 0])?;
        }
        Ok(FileSystem(words))
    }
}
