//! The registry: named reservations of memory in one file.
//!
//! ```toml
//! minimum_free = "2 GiB"
//!
//! [[section]]
//! name = "orders"
//! size = "8 GiB"
//! page_size = "2 MiB"
//! allocation = "alloc"
//! page_tables = "shared"
//! owner = "postgres"
//! ```

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::trust::check_trusted;
use crate::{Size, memory};

/// The registry of the machine.
pub const DEFAULT_REGISTRY: &str = "/etc/vlm.toml";

/// The variable that names another registry.
pub const REGISTRY_VARIABLE: &str = "VLM_REGISTRY";

const HEADER: &str = "# The registry of very large memory sections. Written by `vlm add|modify|remove`; `vlm apply` reserves.\n\n";

/// When the pages of a section are allocated. All are reserved either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allocation {
    /// Before a program asks: all pages are allocated and zeroed by `vlm apply`.
    #[default]
    Alloc,
    /// Each page at its first touch.
    Fluid,
}

/// Whether writable mappings of a section share their page tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageTables {
    /// All processes use the same page tables, for each whole GiB of the section.
    #[default]
    Shared,
    /// Each process has its own.
    Private,
}

/// A named reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryEntry {
    /// The section's name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The size, a multiple of `page_size`.
    pub size: Size,
    /// The size of the pages.
    #[serde(default = "two_mib")]
    pub page_size: Size,
    /// When pages are allocated.
    #[serde(default)]
    pub allocation: Allocation,
    /// Whether page tables are shared.
    #[serde(default)]
    pub page_tables: PageTables,
    /// The user who may use the section, or `user:group`.
    #[serde(default = "root")]
    pub owner: String,
    /// The NUMA node whose memory is reserved; without it, the kernel chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
}

fn two_mib() -> Size {
    Size::mib(2)
}

fn root() -> String {
    "root".to_owned()
}

impl RegistryEntry {
    /// The number of huge pages.
    pub fn pages(&self) -> u64 {
        self.size.bytes() / self.page_size.bytes()
    }

    fn problem(&self) -> Option<String> {
        let RegistryEntry { name, size, page_size, .. } = self;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.chars().all(allowed) {
            return Some(format!(
                "`{name}` is no name of a section: use up to 64 letters, digits, `_`, `-` and `.`, and begin with a letter or digit"
            ));
        }
        if !page_size.bytes().is_power_of_two() || page_size.bytes() < Size::mib(1).bytes() {
            return Some(format!(
                "section `{name}` cannot have pages of {page_size}: use `2 MiB` or `1 GiB`"
            ));
        }
        let rounded = size.bytes().checked_next_multiple_of(page_size.bytes());
        if size.bytes() == 0 || rounded != Some(size.bytes()) || size.bytes() > 1 << 46 {
            let better =
                Size(rounded.filter(|&bytes| (1..=1 << 46).contains(&bytes)).unwrap_or(page_size.bytes()));
            return Some(format!(
                "section `{name}` cannot have {size}, which is no number of whole pages of {page_size}: use `{better}`"
            ));
        }
        None
    }
}

/// The contents of a registry's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Where sections are mounted.
    #[serde(default = "default_mounts")]
    pub mounts: PathBuf,
    /// The memory that is always left to the system; without it, a tenth of the machine's, at least 512 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_free: Option<Size>,
    /// The reservations, largest first.
    #[serde(default, rename = "section")]
    pub entries: Vec<RegistryEntry>,
    #[serde(skip)]
    path: PathBuf,
}

fn default_mounts() -> PathBuf {
    PathBuf::from("/run/vlm")
}

impl Registry {
    /// The registry's file that is used where none is given: `VLM_REGISTRY`, or the machine's.
    pub fn default_path() -> PathBuf {
        std::env::var_os(REGISTRY_VARIABLE).map_or_else(|| PathBuf::from(DEFAULT_REGISTRY), PathBuf::from)
    }

    /// Reads a registry; a file that does not exist is an empty one.
    pub fn load(path: &Path) -> Result<Registry> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        let invalid = |reason: String| Error::Registry { path: path.to_owned(), reason };
        let mut registry: Registry =
            toml::from_str(&text).map_err(|error| invalid(error.to_string().trim_end().to_owned()))?;
        registry.path = path.to_owned();
        registry.validate().map_err(invalid)?;
        Ok(registry)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Orders the entries, and says what is wrong with them.
    fn validate(&mut self) -> std::result::Result<(), String> {
        if !self.mounts.is_absolute() {
            return Err(format!("`mounts` must be an absolute path, not `{}`", self.mounts.display()));
        }
        self.entries.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.name.cmp(&b.name)));
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(problem) = entry.problem() {
                return Err(problem);
            }
            if self.entries[..index].iter().any(|other| other.name == entry.name) {
                return Err(format!("section `{}` occurs twice", entry.name));
            }
        }
        Ok(())
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Result<&RegistryEntry> {
        let unknown =
            || Error::Unknown { registry: self.path.clone(), name: name.to_owned(), known: self.known() };
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(unknown)
    }

    fn known(&self) -> String {
        let names: Vec<_> = self.entries.iter().map(|entry| format!("`{}`", entry.name)).collect();
        if names.is_empty() { "it is empty".to_owned() } else { format!("it has {}", names.join(", ")) }
    }

    /// Where a section is mounted.
    pub fn mount_point(&self, name: &str) -> PathBuf {
        self.mounts.join(name)
    }

    /// The memory that is left to the system.
    pub fn minimum_free(&self) -> Result<Size> {
        match self.minimum_free {
            Some(size) => Ok(size),
            None => Ok(Size::mib(((memory::total()?.bytes() / 10) >> 20).max(512))),
        }
    }

    /// Writes the registry, complete or not at all.
    fn save(&mut self) -> Result<()> {
        self.validate().map_err(Error::Request)?;
        let text = toml::to_string(self).map_err(|error| Error::Request(error.to_string()))?;
        write_atomically(&self.path, format!("{HEADER}{text}").as_bytes())
    }
}

/// Replaces a file by a rename, after its contents have reached the disk.
pub(crate) fn write_atomically(path: &Path, contents: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| Error::io("write", path)(error);
    let folder = parent(path);
    let mut file = tempfile::Builder::new().prefix(".vlm-").tempfile_in(folder).map_err(failed)?;
    file.write_all(contents).map_err(failed)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The registry while no other command can change it.
#[derive(Debug)]
pub struct LockedRegistry {
    registry: Registry,
    _lock: File,
}

impl LockedRegistry {
    /// Waits for other commands, and reads the registry. Root's commands do what it says, so that nobody else may be able
    /// to write it.
    pub fn open(path: &Path) -> Result<LockedRegistry> {
        if rustix::process::geteuid().is_root() {
            check_trusted(path)?;
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock = lock_file(&parent(path).join(name))?;
        Ok(LockedRegistry { registry: Registry::load(path)?, _lock: lock })
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Changes the registry and writes it; after an error it is as it was.
    pub fn change(&mut self, change: impl FnOnce(&mut Registry)) -> Result<()> {
        let mut changed = self.registry.clone();
        change(&mut changed);
        changed.save()?;
        self.registry = changed;
        Ok(())
    }
}

/// A file of the user's, locked until it is closed: the kernel unlocks it however the process ends.
pub(crate) fn lock_file(path: &Path) -> Result<File> {
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Error::Privilege("changing the registry"),
        _ => Error::io("open", path)(error),
    })?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome.map(|()| file).map_err(Error::io("lock", path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Registry> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vlm.toml");
        fs::write(&path, text).unwrap();
        Registry::load(&path)
    }

    #[test]
    fn entries_have_defaults_and_are_ordered_by_size() {
        let registry =
            read("[[section]]\nname='a'\nsize='64M'\n[[section]]\nname='b'\nsize='8 GiB'\n").unwrap();
        assert_eq!(registry.entries.iter().map(|entry| &*entry.name).collect::<Vec<_>>(), ["b", "a"]);
        let entry = registry.entry("a").unwrap();
        assert_eq!(
            (entry.page_size, entry.allocation, entry.page_tables),
            (Size::mib(2), Allocation::Alloc, PageTables::Shared)
        );
        assert_eq!(entry.pages(), 32);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("[[section]]\nname='a/b'\nsize='64M'", "no name"),
            ("[[section]]\nname='..'\nsize='64M'", "no name"),
            ("[[section]]\nname='a'\nsize='3M'", "use `4 MiB`"),
            ("[[section]]\nname='a'\nsize='0M'", "use `2 MiB`"),
            ("[[section]]\nname='a'\nsize='17000000T'", "a"),
            ("[[section]]\nname='a'\nsize='64M'\npage_size='3M'", "use `2 MiB` or `1 GiB`"),
            ("[[section]]\nname='a'\nsize='64M'\n[[section]]\nname='a'\nsize='8M'", "occurs twice"),
            ("[[section]]\nname='a'\nsize='64M'\ncolour='red'", "unknown field"),
            ("mounts='here'", "absolute"),
            ("[[sect", "unclosed"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(said), "{text}: {message}");
        }
    }

    #[test]
    fn a_change_that_is_refused_leaves_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vlm.toml");
        let entry = |name: &str, size| RegistryEntry {
            name: name.to_owned(),
            size,
            page_size: Size::mib(2),
            allocation: Allocation::Fluid,
            page_tables: PageTables::Private,
            owner: root(),
            node: Some(0),
        };
        let mut locked = LockedRegistry::open(&path).unwrap();
        locked.change(|registry| registry.entries.push(entry("a", Size::mib(4)))).unwrap();
        let before = fs::read(&path).unwrap();
        locked.change(|registry| registry.entries.push(entry("b", Size::mib(3)))).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(locked.registry().entries, [entry("a", Size::mib(4))]);
        assert_eq!(Registry::load(&path).unwrap(), *locked.registry());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the registry and its lock");
    }
}
