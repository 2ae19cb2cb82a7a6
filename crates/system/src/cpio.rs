//! Archives of files for the kernel's initial file system: cpio's format `newc`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Types of files, in the mode of an entry.
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMBOLIC_LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;
const PERMISSIONS: u32 = 0o7777;
/// The largest file that the format has.
const LARGEST: usize = u32::MAX as usize;

/// An archive in memory.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<PathBuf>,
    entries: u32,
    /// The user and group that all files belong to.
    owner: u32,
}

impl Archive {
    /// An empty archive, whose files belong to the user and the group of this number.
    pub fn owned_by(owner: u32) -> Archive {
        Archive { owner, ..Archive::default() }
    }

    /// Adds a folder, and those above it, unless it is there.
    pub fn folder(&mut self, path: &Path) {
        let mut above = PathBuf::new();
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            above.push(name);
            if self.folders.insert(above.clone()) {
                self.entry(&above, FOLDER | 0o755, (0, 0), b"");
            }
        }
    }

    /// Adds a file. An earlier one of the same path is replaced.
    pub fn file(&mut self, path: &Path, permissions: u32, contents: &[u8]) -> io::Result<()> {
        if contents.len() > LARGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a file of 4 GiB or more"));
        }
        self.above(path);
        self.entry(path, REGULAR | permissions & PERMISSIONS, (0, 0), contents);
        Ok(())
    }

    /// Adds the device through which the kernel and the first process write messages.
    pub fn console(&mut self) {
        self.above(Path::new("dev/console"));
        self.entry(Path::new("dev/console"), DEVICE | 0o600, (5, 1), b"");
    }

    /// Adds a file or a folder of the host, with what is in it. Symbolic links within folders stay links.
    pub fn host(&mut self, path: &Path, guest: &Path) -> io::Result<()> {
        let status = fs::metadata(path)?;
        if !status.is_dir() {
            return self.file(guest, status.mode(), &fs::read(path)?);
        }
        self.above(guest);
        if self
            .folders
            .insert(guest.components().filter(|part| matches!(part, Component::Normal(_))).collect())
        {
            self.entry(guest, FOLDER | status.mode() & PERMISSIONS, (0, 0), b"");
        }
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let inside = guest.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                let target = fs::read_link(entry.path())?;
                self.entry(&inside, SYMBOLIC_LINK | 0o777, (0, 0), target.as_os_str().as_bytes());
            } else if kind.is_file() || kind.is_dir() {
                self.host(&entry.path(), &inside)?;
            }
        }
        Ok(())
    }

    /// The complete archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(Path::new("TRAILER!!!"), 0, (0, 0), b"");
        self.bytes
    }

    fn above(&mut self, path: &Path) {
        if let Some(parent) = path.parent() {
            self.folder(parent);
        }
    }

    fn entry(&mut self, path: &Path, mode: u32, device: (u32, u32), contents: &[u8]) {
        let name = path.as_os_str().as_bytes();
        let name = name.strip_prefix(b"/").unwrap_or(name);
        self.entries += 1;
        let links = if mode & FOLDER != 0 && mode & REGULAR == 0 { 2 } else { 1 };
        let length = contents.len() as u32;
        // Inode, mode, user, group, links, time, size, device, special device, length of the name, checksum.
        let (user, group, time, checksum) = (self.owner, self.owner, 0, 0);
        let name_length = name.len() as u32 + 1;
        let (major, minor) = device;
        let fields =
            [self.entries, mode, user, group, links, time, length, 0, 0, major, minor, name_length, checksum];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(contents);
        self.align();
    }

    /// Fills with zeros to a multiple of four bytes.
    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn cpio_extracts_what_was_archived() {
        let (host, extracted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(host.path().join("inner")).unwrap();
        fs::write(host.path().join("inner/data"), "some data").unwrap();
        std::os::unix::fs::symlink("inner/data", host.path().join("link")).unwrap();
        let mut archive = Archive::default();
        archive.file(Path::new("/bin/program"), 0o755, b"odd").unwrap();
        archive.file(Path::new("bin/empty"), 0o600, b"").unwrap();
        archive.host(host.path(), Path::new("/copy/of")).unwrap();
        let bytes = archive.finish();
        let mut cpio = Command::new("cpio");
        cpio.args(["-idm", "--quiet"]).current_dir(extracted.path()).stdin(Stdio::piped());
        let mut cpio = cpio.spawn().expect("cpio, which ./setup installs");
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(cpio.wait().unwrap().success());
        let read = |name: &str| fs::read_to_string(extracted.path().join(name)).unwrap();
        assert_eq!((read("bin/program"), read("bin/empty")), ("odd".into(), String::new()));
        assert_eq!(
            (read("copy/of/inner/data"), read("copy/of/link")),
            ("some data".into(), "some data".into())
        );
        let mode = |name: &str| fs::metadata(extracted.path().join(name)).unwrap().mode() & PERMISSIONS;
        assert_eq!((mode("bin/program"), mode("bin/empty"), mode("copy")), (0o755, 0o600, 0o755));
    }
}
