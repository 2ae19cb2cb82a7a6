//! Sections: create, map, unmap and delete, by name.
//!
//! A section's mount holds these files:
//!
//! | file | what it is |
//! |---|---|
//! | `users` | empty; each process that uses the section holds a shared lock on it |
//! | `section` | the section's memory, from its creation until its last user is gone |
//! | `prepared` | zeroed pages for the next creation of an ALLOC section |
//! | `preparing` | the same, before all pages are allocated |
//!
//! The kernel releases a process's locks when it ends, also by SIGKILL. A process that holds the lock of the mount's folder
//! and gets an exclusive lock on `users` has shown that no other process uses the section, and removes it: its pages return
//! to the mount's reserve, which no other program can take.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use rustix::mm::ProtFlags;

use crate::error::{Error, Result};
use crate::fault::explain_faults;
use crate::mount::Mount;
use crate::node_policy::NodePolicy;
use crate::pool::Pool;
use crate::region::{Region, SHARING_UNIT};
use crate::registry::{Allocation, PageTables, Registry, RegistryEntry};
use crate::{Size, limits};

const USERS: &str = "users";
const SECTION: &str = "section";
const PREPARED: &str = "prepared";
const PREPARING: &str = "preparing";

/// The accesses that a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads and stores. Page tables are shared, unless the registry says otherwise.
    ReadWrite,
    /// Loads. Page tables are the process's own, because they hold the protection.
    ReadOnly,
}

/// A section in use: while it, or a mapping of it, exists in any process, its contents stay.
#[derive(Debug)]
pub struct Section {
    entry: RegistryEntry,
    point: PathBuf,
    file: File,
    users: Arc<File>,
}

impl Section {
    /// Creates the section: all zeroes.
    pub fn create(registry: &Registry, name: &str) -> Result<Section> {
        let folder = Folder::lock(registry.entry(name)?, &registry.mount_point(name))?;
        folder.create()
    }

    /// Opens a section that exists.
    pub fn open(registry: &Registry, name: &str) -> Result<Section> {
        let folder = Folder::lock(registry.entry(name)?, &registry.mount_point(name))?;
        folder.open_section()?.ok_or_else(|| {
            Error::State(format!(
                "section `{name}` does not exist: no program has created it, or its last user is gone"
            ))
        })
    }

    /// Opens the section, or creates it if it does not exist.
    pub fn open_or_create(registry: &Registry, name: &str) -> Result<Section> {
        let folder = Folder::lock(registry.entry(name)?, &registry.mount_point(name))?;
        folder.open_section()?.map_or_else(|| folder.create(), Ok)
    }

    /// Deletes the section: it can be created anew when the last of its users is gone.
    pub fn delete(registry: &Registry, name: &str) -> Result<()> {
        let folder = Folder::lock(registry.entry(name)?, &registry.mount_point(name))?;
        let missing = || Error::State(format!("section `{name}` does not exist"));
        if folder.remove(SECTION)? { Ok(()) } else { Err(missing()) }
    }

    /// The section's entry in the registry.
    pub fn entry(&self) -> &RegistryEntry {
        &self.entry
    }

    /// Maps the whole section at addresses that the kernel chooses.
    ///
    /// If the kernel cannot keep its promise later, because the section's file was truncated or its reserve is gone, a process that
    /// touches what is missing ends with a message and exit status 74: this registers a handler of SIGBUS, which leaves all
    /// signals that do not concern sections to the handler before it.
    pub fn map(&self, access: Access) -> Result<Mapping> {
        let RegistryEntry { name, size, page_size, allocation, page_tables, .. } = &self.entry;
        let actual = Size(self.file.metadata().map_err(|error| self.failed("examine")(error))?.size());
        if actual != *size {
            return Err(Error::Truncated { name: name.clone(), actual, size: *size });
        }
        if *allocation == Allocation::Fluid {
            limits::check(*size, *page_size)?;
        }
        check_reserve(*page_size)?;
        let length = usize::try_from(size.bytes()).map_err(|_| self.too_large())?;
        let (protection, tables) = match access {
            Access::ReadWrite => (ProtFlags::READ | ProtFlags::WRITE, *page_tables),
            Access::ReadOnly => (ProtFlags::READ, PageTables::Private),
        };
        // Pages of 1 GiB have no tables that could be shared, and cannot be mapped in pieces.
        let tables = if page_size.bytes() < SHARING_UNIT as u64 { tables } else { PageTables::Shared };
        explain_faults(&self.point, name);
        let region = Region::reserve(length).map_err(|_| self.too_large())?;
        let address = region.map(length, protection, self.file.as_fd(), tables).map_err(|error| match error {
            Errno::NOMEM => Error::ReserveLost(format!(
                "section `{name}` cannot be mapped, because its reserve is gone or deleted memory of it is still mapped: \
                 `vlm check` says which"
            )),
            error => self.failed("map")(error.into()),
        })?;
        let mapping =
            Mapping { address: address.cast(), length, _region: region, _users: Arc::clone(&self.users) };
        // The reserve may have gone between the check above and the mapping.
        check_reserve(*page_size)?;
        Ok(mapping)
    }

    fn too_large(&self) -> Error {
        Error::Memory(format!(
            "there is no room in the address space of this process for the {} of section `{}`: raise its limit (`ulimit -v`)",
            self.entry.size, self.entry.name
        ))
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        Error::io(action, Path::new(&self.entry.name))
    }
}

/// A section's memory in this process, until the value is dropped. Processes forked from this one have it, too.
#[derive(Debug)]
pub struct Mapping {
    address: *mut u8,
    length: usize,
    _region: Region,
    _users: Arc<File>,
}

// SAFETY: The memory is shared with other processes in any case; this value only names its addresses.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first byte. Other processes may change the memory at any time: use atomics or volatile accesses.
    pub fn address(&self) -> *mut u8 {
        self.address
    }

    /// The number of bytes.
    pub fn length(&self) -> usize {
        self.length
    }
}

/// Refuses to map where the next touch could end in SIGBUS.
pub(crate) fn check_reserve(page_size: Size) -> Result<()> {
    let problem = Pool::open(page_size, None)?.counts()?.lost_reserve(page_size);
    problem.map_or(Ok(()), |problem| Err(Error::ReserveLost(problem)))
}

/// The folder of a section's mount, locked against all others, and rid of a section without users.
#[derive(Debug)]
pub(crate) struct Folder<'e> {
    entry: &'e RegistryEntry,
    point: PathBuf,
    mount: Mount,
    users: File,
    _lock: File,
}

impl<'e> Folder<'e> {
    pub(crate) fn lock(entry: &'e RegistryEntry, point: &Path) -> Result<Folder<'e>> {
        let mount = Mount::at(point)?.ok_or_else(|| Error::NotReserved(entry.name.clone()))?;
        if !mount.matches(entry) {
            return Err(Error::State(format!(
                "section `{}` has {} of reserved memory, and the registry says {}: run `vlm free {0}` and `vlm apply {0}`",
                entry.name, mount.reserve, entry.size
            )));
        }
        let denied = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Request(format!(
                "section `{}` belongs to {}: run as this user, or change the owner (`vlm modify {0} --owner`)",
                entry.name, entry.owner
            )),
            _ => Error::io("open", point)(error),
        };
        let lock = File::open(point).map_err(denied)?;
        flock_wait(&lock, FlockOperation::LockExclusive, point)?;
        let path = point.join(USERS);
        let users = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(denied)?;
        open_to_owners(&users);
        let folder = Folder { entry, point: point.to_owned(), mount, users, _lock: lock };
        if !folder.is_in_use()? {
            folder.remove_unused()?;
        }
        Ok(folder)
    }

    /// Whether a process uses the section.
    pub(crate) fn is_in_use(&self) -> Result<bool> {
        match flock(&self.users, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(Error::io("lock", &self.point.join(USERS))(error)),
        }
    }

    /// Marks the section as used by this process, and those that inherit the descriptor.
    pub(crate) fn into_user(self) -> Result<File> {
        flock_wait(&self.users, FlockOperation::LockShared, &self.point.join(USERS))?;
        Ok(self.users)
    }

    /// The memory that a new section can have, allocated in advance or not.
    pub(crate) fn available(&self) -> Result<Size> {
        let prepared = fs::metadata(self.point.join(PREPARED)).map_or(0, |metadata| metadata.size());
        Ok(Size(self.mount.free()?.bytes() + prepared))
    }

    fn remove_unused(&self) -> Result<()> {
        let failed = |error: io::Error| Error::io("read", &self.point)(error);
        for file in fs::read_dir(&self.point).map_err(failed)? {
            let name = file.map_err(failed)?.file_name();
            if name != USERS && name != PREPARED {
                self.remove(&name.to_string_lossy())?;
            }
        }
        Ok(())
    }

    /// Removes a file; false if there is none.
    fn remove(&self, name: &str) -> Result<bool> {
        let path = self.point.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("remove", &path)(error)),
        }
    }

    fn open_section(&self) -> Result<Option<Section>> {
        let path = self.point.join(SECTION);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => self.section(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", &path)(error)),
        }
    }

    fn section(&self, file: File) -> Result<Section> {
        let users = self.users.try_clone().map_err(Error::io("open", &self.point))?;
        flock_wait(&users, FlockOperation::LockShared, &self.point.join(USERS))?;
        Ok(Section { entry: self.entry.clone(), point: self.point.clone(), file, users: Arc::new(users) })
    }

    fn create(&self) -> Result<Section> {
        let RegistryEntry { name, size, allocation, .. } = self.entry;
        if self.point.join(SECTION).exists() {
            return Err(Error::State(format!(
                "section `{name}` exists already: open it, or delete it and end its users"
            )));
        }
        self.check_available()?;
        let path = self.point.join(SECTION);
        let prepared = self.point.join(PREPARED);
        if fs::metadata(&prepared).is_ok_and(|metadata| metadata.size() == size.bytes())
            && *allocation == Allocation::Alloc
        {
            fs::rename(&prepared, &path).map_err(Error::io("rename", &prepared))?;
        } else {
            self.remove(PREPARED)?;
            self.allocate(SECTION)?;
        }
        let file = File::options().read(true).write(true).open(&path).map_err(Error::io("open", &path))?;
        self.section(file)
    }

    /// Refuses to create a section while memory of a deleted one is still mapped somewhere.
    pub(crate) fn check_available(&self) -> Result<()> {
        let available = self.available()?;
        if available >= self.entry.size {
            return Ok(());
        }
        let held = Size(self.entry.size.bytes() - available.bytes());
        Err(match crate::mount::in_use(&self.entry.name, &self.point) {
            Error::State(users) => {
                Error::State(format!("{held} of a deleted section are still mapped: {users}"))
            }
            other => other,
        })
    }

    /// Makes a file of the section's size; of an ALLOC section with all pages.
    fn allocate(&self, name: &str) -> Result<()> {
        let RegistryEntry { size, page_size, allocation, node, .. } = self.entry;
        check_reserve(*page_size)?;
        let path = self.point.join(name);
        let file =
            File::options().create_new(true).write(true).open(&path).map_err(Error::io("create", &path))?;
        open_to_owners(&file);
        let outcome = file.set_len(size.bytes()).map_err(Error::io("extend", &path)).and_then(|()| match allocation {
            Allocation::Fluid => Ok(()),
            Allocation::Alloc => {
                let _policy = NodePolicy::set(*node)?;
                fallocate_all(&file, size.bytes()).map_err(|error| match error {
                    Errno::NOSPC | Errno::NOMEM => Error::ReserveLost(format!(
                        "section `{}` cannot have its {size}: the pool has too few pages, or none on its node; `vlm check` says why",
                        self.entry.name
                    )),
                    error => Error::io("allocate", &path)(error),
                })
            }
        });
        if outcome.is_err() {
            self.remove(name)?;
        }
        outcome
    }
}

/// Allocates the pages of an ALLOC section before a program asks, if nothing uses it and it is not done yet.
pub(crate) fn prepare(entry: &RegistryEntry, point: &Path) -> Result<()> {
    let folder = Folder::lock(entry, point)?;
    if folder.is_in_use()? || point.join(PREPARED).exists() || folder.mount.free()? < entry.size {
        return Ok(());
    }
    folder.allocate(PREPARING)?;
    let prepared = point.join(PREPARED);
    fs::rename(point.join(PREPARING), &prepared).map_err(Error::io("rename to", &prepared))
}

/// How much of a reserved section a new user would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Whether a process uses the section.
    pub is_in_use: bool,
    /// The memory that is neither in use nor still mapped after a deletion.
    pub available: Size,
}

/// Examines a section whose memory is reserved; what was left by users that are gone is removed.
pub fn usage(registry: &Registry, name: &str) -> Result<Usage> {
    let folder = Folder::lock(registry.entry(name)?, &registry.mount_point(name))?;
    Ok(Usage { is_in_use: folder.is_in_use()?, available: folder.available()? })
}

/// The mount's own permissions say who gets at its files.
fn open_to_owners(file: &File) {
    // Fails only for another user's file, whose owner has done it.
    let _ = file.set_permissions(fs::Permissions::from_mode(0o666));
}

fn fallocate_all(file: &File, size: u64) -> rustix::io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, size) {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

fn flock_wait(file: &File, operation: FlockOperation, path: &Path) -> Result<()> {
    loop {
        match flock(file, operation) {
            Err(Errno::INTR) => {}
            outcome => return outcome.map_err(Error::io("lock", path)),
        }
    }
}
