//! Faults in sections end the process with a message: see `fault.c`.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

unsafe extern "C" {
    fn vlm_explain_faults(mount: *const c_char, name: *const c_char);
}

/// From now on, a fault in a mapping of a section's files ends this process with a message and exit status 74; other signals go
/// where they went before.
pub fn explain_faults(mount_point: &Path, name: &str) {
    let texts = (CString::new(mount_point.as_os_str().as_bytes()), CString::new(name));
    if let (Ok(mount_point), Ok(name)) = texts {
        // SAFETY: Both are texts that end with null, which the function copies.
        unsafe { vlm_explain_faults(mount_point.as_ptr(), name.as_ptr()) };
    }
}
