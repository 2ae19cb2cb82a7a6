//! Reserves and frees the memory of the registry's entries.
//!
//! A section brings its own pages: its reservation makes the pool larger by the section's size and mounts
//! a hugetlbfs that reserves as much; freeing unmounts it and makes the pool as much smaller. Pages that
//! other programs have in the pool stay theirs. A journal makes both crash-safe: it says, before the
//! first step, how large the pool is without the section. The mount decides: if it exists after a crash,
//! the pages are its; if it does not, the pool gets the size that the journal says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mount::{self, Mount, Owner};
use crate::pool::Pool;
use crate::registry::{Allocation, Registry, RegistryEntry, lock_file, write_atomically};
use crate::{Size, memory, section};

const LOCK: &str = "/run/vlm.lock";
const JOURNAL: &str = "/run/vlm.journal";

/// The one step that may be under way.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    point: PathBuf,
    page_size: Size,
    node: Option<u32>,
    pool_size_without: u64,
}

/// The machine's pools while no other command can change them.
#[derive(Debug)]
pub struct Reservations<'r> {
    registry: &'r Registry,
    _lock: File,
}

/// The action of `apply` for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationStep {
    /// Reserves the memory.
    Reserve(Size),
    /// It is reserved already.
    Kept,
}

/// Whether this process may reserve and free huge pages.
pub(crate) fn check_rights() -> Result<()> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Error::Privilege("reserving and freeing huge pages")),
    }
}

impl<'r> Reservations<'r> {
    /// Waits for other commands, and finishes or undoes what a command left that was killed.
    pub fn lock(registry: &'r Registry) -> Result<Reservations<'r>> {
        check_rights()?;
        let lock = lock_file(Path::new(LOCK))?;
        recover()?;
        Ok(Reservations { registry, _lock: lock })
    }

    /// The actions of `apply` for each entry, or why it cannot carry out all of them; changes nothing.
    pub fn plan(&self, entries: &[&'r RegistryEntry]) -> Result<Vec<(&'r RegistryEntry, ReservationStep)>> {
        let mut plan = Vec::new();
        let mut needed = Vec::new();
        for entry in entries {
            let pool = Pool::open(entry.page_size, entry.node)?;
            let counts = pool.counts()?;
            if let Some(problem) = counts.lost_reserve(entry.page_size) {
                return Err(Error::ReserveLost(problem));
            }
            if counts.overcommit > 0 {
                return Err(Error::ReserveLost(format!(
                    "vm.nr_overcommit_hugepages is {} for pages of {}: the kernel would take the reserves of sections for \
                     surplus pages that are freed; set it to 0",
                    counts.overcommit, entry.page_size
                )));
            }
            Owner::find(&entry.owner)?;
            plan.push((*entry, self.step(entry)?));
            if plan.last().is_some_and(|(_, step)| *step != ReservationStep::Kept) {
                needed.push(*entry);
            }
        }
        self.check_memory(&needed)?;
        Ok(plan)
    }

    fn step(&self, entry: &RegistryEntry) -> Result<ReservationStep> {
        match Mount::at(&self.registry.mount_point(&entry.name))? {
            None => Ok(ReservationStep::Reserve(entry.size)),
            Some(mount) if mount.matches(entry) => Ok(ReservationStep::Kept),
            Some(mount) => Err(Error::State(format!(
                "section `{}` has {} of reserved memory at {}, and the registry says {}: free it first (`vlm free {0}`)",
                entry.name,
                mount.reserve,
                mount.point.display(),
                entry.size
            ))),
        }
    }

    /// Refuses what would leave less than the minimum to the system, and says which sections fit.
    fn check_memory(&self, entries: &[&RegistryEntry]) -> Result<()> {
        let minimum = self.registry.minimum_free()?;
        let available = memory::available()?;
        let mut left = available.bytes().saturating_sub(minimum.bytes());
        let mut lines = Vec::new();
        for entry in entries {
            let fits = entry.size.bytes() <= left;
            left -= if fits { entry.size.bytes() } else { 0 };
            lines.push((entry, fits));
        }
        if lines.iter().all(|(_, fits)| *fits) {
            return Ok(());
        }
        let sections: Vec<_> = lines
            .iter()
            .map(|(entry, fits)| {
                format!("`{}` ({}) {}", entry.name, entry.size, if *fits { "fits" } else { "does not fit" })
            })
            .collect();
        Err(Error::Memory(format!(
            "nothing was reserved: {} of memory are available, of which {minimum} stay with the system (`minimum_free` of \
             {}); {}: make sections smaller (`vlm modify`) or end programs",
            rounded(available),
            self.registry.path().display(),
            sections.join(", ")
        )))
    }

    /// Reserves an entry's memory and allocates its pages, if it is not done yet.
    pub fn apply(&self, entry: &RegistryEntry) -> Result<ReservationStep> {
        let step = self.step(entry)?;
        let point = self.registry.mount_point(&entry.name);
        if step != ReservationStep::Kept {
            let owner = Owner::find(&entry.owner)?;
            let pool = Pool::open(entry.page_size, entry.node)?;
            let without = pool.size()?;
            write_journal(entry, &point, without)?;
            let outcome = pool.grow(entry.pages()).and_then(|()| mount::mount(entry, owner, &point));
            if let Err(error) = outcome {
                recover()?;
                return Err(error);
            }
            remove_journal()?;
        }
        if entry.allocation == Allocation::Alloc {
            section::prepare(entry, &point)?;
        }
        Ok(step)
    }

    /// Gives an entry's memory back to the system. The result is the size that was freed; nothing was if
    /// nothing was reserved.
    pub fn free(&self, name: &str) -> Result<Option<Freed>> {
        let point = self.registry.mount_point(name);
        let Some(mount) = Mount::at(&point)? else { return Ok(None) };
        let node = self.registry.entries.iter().find(|entry| entry.name == name).and_then(|entry| entry.node);
        let pool = Pool::open(mount.page_size, node)?;
        let pages = mount.reserve.bytes() / mount.page_size.bytes();
        let without = pool.size()?.saturating_sub(pages);
        let journal =
            Journal { point: point.clone(), page_size: mount.page_size, node, pool_size_without: without };
        journal.write()?;
        if let Err(error) = mount::unmount(&point) {
            remove_journal()?;
            return Err(if error == Errno::BUSY {
                mount::in_use(name, &point)
            } else {
                Error::io("unmount", &point)(error)
            });
        }
        let stayed = pool.shrink_to(without)?;
        remove_journal()?;
        Ok(Some(Freed { size: mount.reserve, stayed: Size(stayed * mount.page_size.bytes()) }))
    }
}

/// Memory that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The section's size.
    pub size: Size,
    /// The size that stayed in the pool, because other programs had taken pages of the pool.
    pub stayed: Size,
}

fn rounded(size: Size) -> Size {
    Size(size.bytes() & !((1 << 20) - 1))
}

fn write_journal(entry: &RegistryEntry, point: &Path, pool_size_without: u64) -> Result<()> {
    Journal { point: point.to_owned(), page_size: entry.page_size, node: entry.node, pool_size_without }
        .write()
}

impl Journal {
    fn write(&self) -> Result<()> {
        let text = toml::to_string(self).map_err(|error| Error::Request(error.to_string()))?;
        write_atomically(Path::new(JOURNAL), text.as_bytes())
    }
}

fn remove_journal() -> Result<()> {
    match fs::remove_file(JOURNAL) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", Path::new(JOURNAL))(error))
        }
        _ => Ok(()),
    }
}

/// Brings the pool to the size that the mounts account for, after a command was killed.
fn recover() -> Result<()> {
    let path = Path::new(JOURNAL);
    let Ok(text) = fs::read_to_string(path) else { return Ok(()) };
    let invalid =
        |error: toml::de::Error| Error::Registry { path: path.to_owned(), reason: error.to_string() };
    let journal: Journal = toml::from_str(&text).map_err(invalid)?;
    if Mount::at(&journal.point)?.is_none() {
        Pool::open(journal.page_size, journal.node)?.shrink_to(journal.pool_size_without)?;
    }
    remove_journal()
}
