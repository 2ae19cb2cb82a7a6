//! The library's functions for C; `include/vlm.h` describes them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::{Access, Mapping, Registry, Section};

/// `VLM_READ_ONLY` of the header.
const READ_ONLY: c_int = 1;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

static MAPPINGS: LazyLock<Mutex<HashMap<usize, Mapping>>> = LazyLock::new(Mutex::default);

/// The value of a result, or `otherwise` with the error kept for `vlm_message`.
fn outcome<T>(result: Result<T>, otherwise: T) -> T {
    result.unwrap_or_else(|error| {
        let text = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
        MESSAGE.with(|message| *message.borrow_mut() = text);
        otherwise
    })
}

/// # Safety
/// `name` is null or a string that ends with a null byte.
unsafe fn with_name<T>(name: *const c_char, action: impl FnOnce(&Registry, &str) -> Result<T>) -> Result<T> {
    let wrong = || Error::Request("the name of a section must be a string in UTF-8".to_owned());
    if name.is_null() {
        return Err(wrong());
    }
    // SAFETY: The caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| wrong())?;
    action(&Registry::load(&Registry::default_path())?, name)
}

fn boxed(section: Section) -> *mut Section {
    Box::into_raw(Box::new(section))
}

/// Creates a section, all zeroes; null on failure.
///
/// # Safety
/// `name` is null or a string that ends with a null byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vlm_create(name: *const c_char) -> *mut Section {
    // SAFETY: The caller's promise.
    outcome(unsafe { with_name(name, Section::create) }.map(boxed), ptr::null_mut())
}

/// Opens a section that exists; null on failure.
///
/// # Safety
/// `name` is null or a string that ends with a null byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vlm_open(name: *const c_char) -> *mut Section {
    // SAFETY: The caller's promise.
    outcome(unsafe { with_name(name, Section::open) }.map(boxed), ptr::null_mut())
}

/// Closes a section; its mappings stay.
///
/// # Safety
/// `section` is null, or was returned by `vlm_create` or `vlm_open` and not closed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vlm_close(section: *mut Section) {
    if !section.is_null() {
        // SAFETY: By the caller's promise this is the box of that call, which nothing else refers to.
        drop(unsafe { Box::from_raw(section) });
    }
}

/// Deletes a section by name; 0, or -1 on failure.
///
/// # Safety
/// `name` is null or a string that ends with a null byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vlm_delete(name: *const c_char) -> c_int {
    // SAFETY: The caller's promise.
    outcome(unsafe { with_name(name, Section::delete) }.map(|()| 0), -1)
}

/// The size of a section in bytes.
///
/// # Safety
/// `section` is null, or was returned by `vlm_create` or `vlm_open` and not closed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vlm_size(section: *const Section) -> usize {
    // SAFETY: The caller's promise.
    unsafe { section.as_ref() }.map_or(0, |section| section.entry().size.bytes() as usize)
}

/// Maps a section; its first byte, or null on failure.
///
/// # Safety
/// `section` is null, or was returned by `vlm_create` or `vlm_open` and not closed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vlm_map(section: *const Section, flags: c_int) -> *mut c_void {
    // SAFETY: The caller's promise.
    let Some(section) = (unsafe { section.as_ref() }) else {
        return outcome(Err(Error::Request("no section is given to vlm_map".to_owned())), ptr::null_mut());
    };
    let access = match flags {
        0 => Access::ReadWrite,
        READ_ONLY => Access::ReadOnly,
        _ => {
            return outcome(
                Err(Error::Request(format!("vlm_map knows no flags {flags:#x}"))),
                ptr::null_mut(),
            );
        }
    };
    let mapped = section.map(access).map(|mapping| {
        let address = mapping.address();
        MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner).insert(address.addr(), mapping);
        address.cast()
    });
    outcome(mapped, ptr::null_mut())
}

/// Unmaps what `vlm_map` returned; 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn vlm_unmap(address: *mut c_void) -> c_int {
    let mapping = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner).remove(&address.addr());
    let missing = || Error::Request(format!("{address:?} is no address that vlm_map returned"));
    outcome(mapping.map(|_| 0).ok_or_else(missing), -1)
}

/// The last error of this thread, as a sentence, until its next error.
#[unsafe(no_mangle)]
pub extern "C" fn vlm_message() -> *const c_char {
    MESSAGE.with(|message| message.borrow().as_ptr())
}
