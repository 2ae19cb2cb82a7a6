//! Conversion of guest paths to host paths.

use std::ffi::{CStr, CString, OsStr};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::abi::Abi;
use crate::state::kernel::Kernel;
use host::Errno;

impl<G: Abi> Kernel<G> {
    /// The host path of a guest path: under the sysroot if it is absolute and exists there. The root directory itself
    /// is the host's, at which `..` ends.
    pub(crate) fn host_path(&self, path: CString) -> CString {
        host_path(self.sysroot(), path)
    }

    /// The host path of a program's dynamic loader. A file of the host, which lies outside of the sysroot, is none unless it
    /// is an image of the guest: other instruction sets have loaders of the same names.
    pub fn locate_loader(&self, loader: &Path) -> Option<PathBuf> {
        self.locate_loader_of(G::ELF_MACHINE, loader)
    }

    /// The same of a program of this machine.
    pub(crate) fn locate_loader_of(&self, machine: u16, loader: &Path) -> Option<PathBuf> {
        let sysroot = self.sysroot_of(machine)?;
        let path = c_path(loader).map(|path| host_path(sysroot, path)).ok()?;
        let path = PathBuf::from(OsStr::from_bytes(path.as_bytes()));
        let is_loader = if path == loader { image_machine(&path) == Some(machine) } else { path.exists() };
        is_loader.then_some(path)
    }

    /// The host path of a guest path.
    pub(crate) fn locate(&self, path: &Path) -> PathBuf {
        match c_path(path) {
            Ok(path) => PathBuf::from(OsStr::from_bytes(self.host_path(path).as_bytes())),
            Err(_) => path.to_path_buf(),
        }
    }
}

/// The host path of a guest path, below a sysroot if it is absolute and exists there.
pub(crate) fn host_path(sysroot: &Path, path: CString) -> CString {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') || is_root(bytes) || sysroot.as_os_str().is_empty() {
        return path;
    }
    let mut inside = sysroot.as_os_str().as_bytes().to_vec();
    inside.extend_from_slice(bytes);
    match CString::new(inside) {
        Ok(inside) if exists(&inside) => inside,
        _ => path,
    }
}

/// The machine in the header of an ELF image.
fn image_machine(path: &Path) -> Option<u16> {
    let mut header = [0; 20];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    machine_of(&header)
}

/// The machine in an ELF header.
pub(crate) fn machine_of(header: &[u8]) -> Option<u16> {
    let machine = header.get(18..20).filter(|_| header.starts_with(b"\x7fELF"))?;
    Some(u16::from_le_bytes(machine.try_into().expect("two bytes")))
}

/// Whether an absolute path is the root directory.
fn is_root(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').all(|part| matches!(part, b"" | b"." | b".."))
}

fn exists(path: &CStr) -> bool {
    // SAFETY: the pointer is to a NUL-terminated string.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::F_OK, libc::AT_SYMLINK_NOFOLLOW) == 0 }
}

/// The bytes of a path for the kernel.
pub fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))
}
