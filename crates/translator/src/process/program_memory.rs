//! Accesses to the program's memory at addresses that it passes to system calls: a bad one is an error, not a fault.

/// The error number of a bad address.
pub(super) const BAD_ADDRESS: i32 = libc::EFAULT;

fn transfer(local: *mut u8, remote: u64, size: usize, writes: bool) -> Result<(), i32> {
    let local = libc::iovec { iov_base: local.cast(), iov_len: size };
    let remote = libc::iovec { iov_base: remote as *mut _, iov_len: size };
    // SAFETY: the kernel checks both ranges. The local one is the caller's, and the remote one the program's, by the program's word.
    let done = unsafe {
        match writes {
            true => libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0),
            false => libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0),
        }
    };
    if done == size as isize { Ok(()) } else { Err(BAD_ADDRESS) }
}

/// Reads a structure of plain numbers.
pub(super) fn read<T: Copy>(address: u64) -> Result<T, i32> {
    let mut value = std::mem::MaybeUninit::<T>::uninit();
    transfer(value.as_mut_ptr().cast(), address, size_of::<T>(), false)?;
    // SAFETY: all bytes were read, and the callers' types are structures of integers.
    Ok(unsafe { value.assume_init() })
}

/// Reads bytes.
pub(super) fn read_bytes(address: u64, size: usize) -> Result<Vec<u8>, i32> {
    let mut bytes = vec![0; size];
    transfer(bytes.as_mut_ptr(), address, size, false)?;
    Ok(bytes)
}

/// Reads a string up to its null byte, of at most this size.
pub(super) fn read_text(address: u64, most: usize) -> Result<Vec<u8>, i32> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    while text.len() < most {
        let at = address + text.len() as u64;
        let bytes = read_bytes(at, (PAGE - at % PAGE) as usize)?;
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            text.extend(&bytes[..end]);
            return Ok(text);
        }
        text.extend(bytes);
    }
    Err(libc::ENAMETOOLONG)
}

/// Writes a structure of plain numbers.
pub(super) fn write<T: Copy>(address: u64, value: &T) -> Result<(), i32> {
    transfer((value as *const T).cast_mut().cast(), address, size_of::<T>(), true)
}

/// Writes bytes.
pub(super) fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), i32> {
    transfer(bytes.as_ptr().cast_mut(), address, bytes.len(), true)
}
