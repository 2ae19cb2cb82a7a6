//! Opening files by path.
//!
//! A file of /proc must never be open to the guest before it has been identified: another thread that guesses the
//! descriptor's number would write to the engine's memory. So a process with several threads opens with O_PATH first,
//! which gives no access to contents, and then, if it may, the very same file.
//!
//! A name may be exchanged between its check and the call. So links of /proc to open files are not followed at first; if one
//! is on the way, what was found is compared with the engine's files.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use crate::abi::Abi;
use crate::abi::layout::u64_at;
use crate::calls::call::RestartRule::Restarts;
use crate::calls::call::{Call, CallOutcome};
use crate::state::fd::Special;
use crate::state::settings::RandomSource;
use crate::{proc_files, procfs, reserved};
use host::Errno;

/// Flags with which a call makes a new file.
const NEW: i32 = libc::O_CREAT | libc::O_EXCL;
/// The bit of O_TMPFILE that is not in O_DIRECTORY.
const TEMPORARY: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// The flags that O_PATH does not ignore.
const BY_PATH: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
/// openat2 fails with ELOOP at a link of /proc to an open file (linux/openat2.h).
const RESOLVE_NO_MAGICLINKS: u64 = 2;

/// How a file is opened, with the host's flags.
struct Opening {
    directory: u64,
    path: CString,
    flags: i32,
    mode: u64,
    /// Restrictions on path resolution, for openat2.
    resolve: Option<u64>,
}

/// openat(directory, path, flags, mode)
pub fn openat<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let [directory, _, flags, mode, ..] = call.arguments;
    let (path, flags) = (call.path(1)?, G::OPEN.host(flags) as i32);
    open_path(call, Opening { directory, path, flags, mode, resolve: None })
}

/// openat2(directory, path, how, size of how)
pub fn openat2<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    /// `struct open_how`: flags, mode and restrictions on path resolution.
    const HOW_BYTES: u64 = 24;
    const EINVAL: Errno = Errno(libc::EINVAL);
    let [directory, _, how, size, ..] = call.arguments;
    let path = call.path(1)?;
    if size < HOW_BYTES {
        return Err(EINVAL);
    }
    if size > 4096 {
        return Err(Errno(libc::E2BIG));
    }
    let mut bytes = vec![0; size as usize];
    call.memory.read(how, &mut bytes)?;
    if bytes[HOW_BYTES as usize..].iter().any(|&byte| byte != 0) {
        return Err(Errno(libc::E2BIG));
    }
    let [guest_flags, mode, resolve] = [0, 8, 16].map(|offset| u64_at(&bytes, offset));
    let flags = G::OPEN.host(guest_flags);
    if G::OPEN.guest(flags) != guest_flags {
        return Err(EINVAL);
    }
    let opening = Opening { directory, path, flags: flags as i32, mode, resolve: Some(resolve) };
    open_path(call, opening)
}

/// open_by_handle_at(mount, handle, flags): a handle, too, may be that of a file of the engine.
pub fn open_by_handle_at<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    /// `struct file_handle` with the longest handle (MAX_HANDLE_SZ in linux/exportfs.h).
    const HANDLE_BYTES: u64 = 8 + 128;
    let [mount, handle, flags, ..] = call.arguments;
    let (handle, flags) = (call.pointer(handle, HANDLE_BYTES)?, G::OPEN.host(flags) as i32);
    let mut open =
        |flags: i32| call.wait(libc::SYS_open_by_handle_at, [mount, handle, flags as u64, 0, 0, 0], Restarts);
    if flags & libc::O_PATH != 0 {
        return without_engines_files(open(flags)?);
    }
    let path_only = libc::O_PATH | libc::O_CLOEXEC | flags & libc::O_DIRECTORY;
    let found = without_engines_files(open(path_only)?)?;
    open_found(call, found as RawFd, flags, 0)
}

/// truncate(path, length): of the file that was found, whatever the path leads to later.
pub fn truncate<G: Abi>(call: &mut Call<G>) -> CallOutcome {
    let (path, length) = (call.path(0)?, call.arguments[1]);
    let (name, flags) = (path.as_ptr() as u64, libc::O_PATH | libc::O_CLOEXEC);
    let opening =
        Opening { directory: libc::AT_FDCWD as u64, path: path.clone(), flags, mode: 0, resolve: None };
    // The call needs no descriptor of the guest's limit.
    let found = reserved::beyond_limit(|| opening.open_safely(call, flags))? as RawFd;
    // SAFETY: the guest has not received the descriptor.
    let found = unsafe { OwnedFd::from_raw_fd(found) };
    if reserved::is_executable(found.as_raw_fd()) {
        return Err(Errno(libc::ETXTBSY));
    }
    let link = CString::new(format!("/proc/thread-self/fd/{}", found.as_raw_fd())).expect("digits");
    match call.host_unlocked(libc::SYS_truncate, [link.as_ptr() as u64, length, 0, 0, 0, 0]) {
        // The guest has changed its root directory, and there is no /proc.
        Err(Errno(libc::ENOENT)) => call.host_unlocked(libc::SYS_truncate, [name, length, 0, 0, 0, 0]),
        other => other,
    }
}

/// Opens a path for the guest.
fn open_path<G: Abi>(call: &mut Call<G>, opening: Opening) -> CallOutcome {
    let path = opening.path.clone();
    let is_safe = !call.kernel.is_watched() && opening.is_restricted();
    let at_once = match is_safe {
        true => opening.open(call, opening.flags, RESOLVE_NO_MAGICLINKS),
        false => Err(Errno(libc::ELOOP)),
    };
    let descriptor = match at_once {
        Err(Errno(libc::ELOOP)) => open_unseen(call, opening)?,
        other => other?,
    };
    if call.kernel.settings.substitution.is_some() && call.kernel.interpreter.contains(&call.cpu.pc()) {
        call.kernel.substitute_opened(descriptor as i32)?;
    }
    if call.kernel.settings.random != RandomSource::Host
        && let Some(special) = Special::file(path.as_bytes())
    {
        call.kernel.special.insert(descriptor as i32, special);
    }
    Ok(descriptor)
}

impl Opening {
    /// Opens a new file, or an existing one with O_PATH, in which other threads see nothing; ENOENT if it is the engine's.
    fn open_safely<G: Abi>(&self, call: &mut Call<G>, flags: i32) -> CallOutcome {
        if self.is_restricted() {
            let found = self.open(call, flags, RESOLVE_NO_MAGICLINKS);
            if found != Err(Errno(libc::ELOOP)) {
                return found;
            }
        }
        without_engines_files(self.open(call, flags, 0)?)
    }

    /// Whether restrictions on path resolution have an effect.
    fn is_restricted(&self) -> bool {
        self.resolve.is_some() || has_restrictions()
    }

    /// Makes the call with these flags and restrictions on path resolution.
    fn open<G: Abi>(&self, call: &mut Call<G>, flags: i32, resolve: u64) -> CallOutcome {
        let (directory, path) = (self.directory, self.path.as_ptr() as u64);
        let makes = flags & (libc::O_CREAT | TEMPORARY) != 0;
        let flags = if flags & libc::O_PATH != 0 && self.resolve.is_none() { flags & BY_PATH } else { flags };
        // openat ignores what openat2 refuses: bits of the mode that no file has, and a mode for a file that is not made.
        let mode = match self.resolve {
            None if makes => self.mode & 0o7777,
            Some(_) if makes || flags == self.flags => self.mode,
            _ => 0,
        };
        let how = [u64::from(flags as u32), mode, self.resolve.unwrap_or(0) | resolve];
        let (pointer, bytes) = (how.as_ptr() as u64, size_of_val(&how) as u64);
        if !self.is_restricted() {
            return call.wait(libc::SYS_openat, [directory, path, flags as u64, mode, 0, 0], Restarts);
        }
        call.wait(libc::SYS_openat2, [directory, path, pointer, bytes, 0, 0], Restarts)
    }
}

/// Closes a descriptor that the guest has not received if its file is an engine's: ENOENT.
fn without_engines_files(descriptor: u64) -> CallOutcome {
    // SAFETY: the guest has not received the descriptor yet.
    let found = unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) };
    if reserved::is_engines_file(found.as_raw_fd()) {
        return Err(Errno(libc::ENOENT));
    }
    Ok(found.into_raw_fd() as u64)
}

/// Whether the host has openat2: Linux 5.6, unless a container forbids it.
fn has_restrictions() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let how = [libc::O_PATH as u64, 0, RESOLVE_NO_MAGICLINKS];
        let (pointer, bytes) = (how.as_ptr() as u64, size_of_val(&how) as u64);
        // An empty path is none: it fails in another way than a call that does not exist.
        // SAFETY: the path and the structure outlive the call.
        let outcome = unsafe {
            host::call(libc::SYS_openat2, [libc::AT_FDCWD as u64, c"".as_ptr() as u64, pointer, bytes, 0, 0])
        };
        outcome == Err(Errno(libc::ENOENT))
    })
}

/// Opens a path so that no other thread can use a descriptor of a file that the guest must not have.
fn open_unseen<G: Abi>(call: &mut Call<G>, mut opening: Opening) -> CallOutcome {
    const MOST_LINKS: usize = 40;
    let flags = opening.flags;
    if flags & libc::O_PATH != 0 || flags & NEW == NEW || flags & TEMPORARY != 0 {
        return opening.open_safely(call, flags);
    }
    let path_only = libc::O_PATH | libc::O_CLOEXEC | flags & (libc::O_NOFOLLOW | libc::O_DIRECTORY);
    for _ in 0..MOST_LINKS {
        match opening.open_safely(call, path_only) {
            Err(Errno(libc::ENOENT)) if flags & libc::O_CREAT != 0 => {}
            Ok(found) => return open_found(call, found as RawFd, flags, opening.mode),
            error => return error,
        }
        match opening.open_safely(call, flags | libc::O_EXCL) {
            Err(Errno(libc::EEXIST)) => {}
            other => return other,
        }
        // Another thread has made it meanwhile, or it is a link to a file that does not exist.
        let path = opening.path.as_bytes();
        if let Some(target) = reserved::read_link(opening.directory as RawFd, path) {
            let folder = if target.starts_with(b"/") { &[] } else { reserved::folder_of(path) };
            opening.path = CString::new([folder, &target].concat()).map_err(|_| Errno(libc::EINVAL))?;
        }
    }
    Err(Errno(libc::ELOOP))
}

/// Opens the file of a descriptor that was opened with O_PATH. A second descriptor of the file itself must not be closed: that
/// would end all record locks of the process on it (F_SETLK in fcntl(2)).
fn open_found<G: Abi>(call: &mut Call<G>, found: RawFd, flags: i32, mode: u64) -> CallOutcome {
    // SAFETY: the guest has not received the descriptor. Unless another takes its number it must be closed.
    let found = unsafe { OwnedFd::from_raw_fd(found) };
    if procfs::is_file(found.as_raw_fd()) {
        let entry = procfs::identify(found.as_raw_fd());
        if let Some(instead) = proc_files::stand_in(call.kernel, entry.as_ref(), flags)? {
            return proc_files::put(instead, found, flags);
        }
    }
    let flags = flags & !(libc::O_NOFOLLOW | libc::O_EXCL);
    // The file gets the lowest number.
    let found = reserved::out_of_reach(found);
    let directory = procfs::directory().ok_or(Errno(libc::ENOENT))?.as_raw_fd() as u64;
    let link = CString::new(format!("thread-self/fd/{}", found.as_raw_fd())).expect("digits");
    let arguments = [directory, link.as_ptr() as u64, flags as u64, mode, 0, 0];
    call.wait_checked(libc::SYS_openat, arguments, Restarts)
}
