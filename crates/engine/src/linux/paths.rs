//! Which host file a guest's path names, and the files of /proc that must speak of the guest.

use std::ffi::{CStr, CString, OsStr};
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Kernel;
use super::call::{Outcome, c_path};
use super::errno::Errno;
use crate::memory::{Backing, Memory, Region};

impl Kernel {
    /// The host's path for a guest's: under the sysroot if it is absolute and exists there.
    pub(super) fn host_path(&self, path: CString) -> CString {
        let bytes = path.as_bytes();
        if bytes.first() != Some(&b'/') || self.settings.sysroot.as_os_str().is_empty() {
            return path;
        }
        if self.own_proc_entry(bytes) == Some("exe") {
            return c_path(&self.executable).unwrap_or(path);
        }
        let mut inside = self.settings.sysroot.as_os_str().as_bytes().to_vec();
        inside.extend_from_slice(bytes);
        match CString::new(inside) {
            Ok(inside) if exists(&inside) => inside,
            _ => path,
        }
    }

    /// The host's file for a guest's path; for the loader, which looks for the program's interpreter.
    pub fn locate(&self, path: &Path) -> PathBuf {
        match c_path(path) {
            Ok(path) => PathBuf::from(OsStr::from_bytes(self.host_path(path).as_bytes())),
            Err(_) => path.to_path_buf(),
        }
    }

    /// The NAME of `/proc/self/NAME` or `/proc/PID/NAME` with the process's own PID.
    pub(super) fn own_proc_entry<'a>(&self, path: &'a [u8]) -> Option<&'a str> {
        let rest = std::str::from_utf8(path).ok()?.strip_prefix("/proc/")?;
        let (process, name) = rest.split_once('/')?;
        let own = ["self", "thread-self"].contains(&process)
            || process.parse::<u32>().is_ok_and(|pid| pid == std::process::id());
        own.then_some(name)
    }

    /// Opens a file of /proc whose contents are the guest's, not the engine's. None for every other
    /// file.
    pub(super) fn open_own(&self, memory: &Memory, path: &CStr, flags: i32) -> Option<Outcome> {
        let path = path.to_bytes();
        let contents = match self.own_proc_entry(path) {
            Some("maps") => maps(memory).into_bytes(),
            Some("cmdline") => {
                let arguments = self.arguments.iter();
                arguments.flat_map(|argument| argument.iter().chain(&[0])).copied().collect()
            }
            Some("environ") => contents(memory, &self.stack.environment),
            Some("auxv") => contents(memory, &self.stack.vector),
            _ => return None,
        };
        Some(open_contents(&contents, flags))
    }
}

/// What memory holds now, which the program may have overwritten or unmapped.
fn contents(memory: &Memory, range: &Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    memory.read(range.start, &mut bytes).map_or(Vec::new(), |()| bytes)
}

fn exists(path: &CStr) -> bool {
    // SAFETY: the pointer is to a NUL-terminated string.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::F_OK, libc::AT_SYMLINK_NOFOLLOW) == 0 }
}

/// A descriptor for a file in memory.
fn open_contents(contents: &[u8], flags: i32) -> Outcome {
    let close_on_exec = if flags & libc::O_CLOEXEC != 0 { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is NUL-terminated.
    let descriptor = unsafe { libc::memfd_create(c"guest".as_ptr(), close_on_exec) };
    if descriptor < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the descriptor is new and ours.
    let mut file = unsafe { std::fs::File::from_raw_fd(descriptor) };
    file.write_all(contents)?;
    std::io::Seek::rewind(&mut file)?;
    Ok(file.into_raw_fd() as u64)
}

/// The guest's memory in the form of /proc/PID/maps (proc(5)).
fn maps(memory: &Memory) -> String {
    let mut text = String::new();
    for (start, region) in memory.regions() {
        let (offset, device, inode, name) = backing(&region);
        let bits = [(1, 'r'), (2, 'w'), (4, 'x')];
        let protection: String = bits
            .iter()
            .map(|(bit, letter)| if region.protection & bit != 0 { *letter } else { '-' })
            .collect();
        let sharing = if region.shared { 's' } else { 'p' };
        let mut line =
            format!("{start:08x}-{:08x} {protection}{sharing} {offset:08x} {device} {inode} ", region.end);
        if !name.is_empty() {
            // The kernel pads to column 73.
            let _ = write!(line, "{:width$}{name}", "", width = 73usize.saturating_sub(line.len()));
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn backing(region: &Region) -> (u64, String, u64, String) {
    use std::os::unix::fs::MetadataExt;
    match &region.backing {
        Backing::Anonymous => (0, "00:00".into(), 0, String::new()),
        Backing::Named(name) => (0, "00:00".into(), 0, (*name).into()),
        Backing::File { path, offset } => {
            let (device, inode) = std::fs::metadata(&**path).map_or((0, 0), |file| (file.dev(), file.ino()));
            let device = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
            (*offset, device, inode, path.display().to_string())
        }
    }
}
