//! The 1998 paper's Figures 4, 8 and 9 on this machine: the memory of page tables, and the time to start
//! server processes that map and touch a section, against the number of processes and the size.
//!
//! Each measurement has a first process that has touched all memory before; the processes that are measured
//! then start together, map the memory, and read a byte of each page.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::FdFlags;
use rustix::mm::ProtFlags;

use crate::error::{Error, Result};
use crate::region::Region;
use crate::registry::LockedRegistry;
use crate::reservation::check_rights;
use crate::verify::{Toucher, read_pages, report_faults};
use crate::{Allocation, PageTables, Registry, RegistryEntry, Reservations, Section, Size, memory};

/// The memory's backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Pages of 4 KiB, without transparent huge pages.
    SmallPages,
    /// Pages of 2 MiB, each process with its own page tables.
    PrivateTables,
    /// Pages of 2 MiB, with shared page tables.
    SharedTables,
}

impl Backing {
    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Backing::SmallPages => "pages of 4 KiB",
            Backing::PrivateTables => "pages of 2 MiB with private tables",
            Backing::SharedTables => "pages of 2 MiB with shared tables",
        }
    }
}

/// The settings of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The backings of memory that are measured.
    pub backings: Vec<Backing>,
    /// The sizes of sections.
    pub sizes: Vec<Size>,
    /// The numbers of processes.
    pub processes: Vec<usize>,
    /// The command `vlm`, by which processes are started.
    pub vlm: PathBuf,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRow {
    /// The backing of the memory.
    pub backing: Backing,
    /// How much it was.
    pub size: Size,
    /// The processes that were started.
    pub processes: usize,
    /// From the first process's start until the last had touched all pages.
    pub start_up: Duration,
    /// The processor time of this process and the started ones, from start to end.
    pub cpu: Duration,
    /// How much the page tables of the machine grew, in bytes; other programs count, too.
    pub page_tables: i64,
    /// The median of the processes' minor faults while they touched the memory.
    pub faults: u64,
}

/// The same three systems with PostgreSQL, as a script for bash that prints its figures as CSV: see its first lines.
pub const POSTGRESQL: &str = include_str!("../study/postgresql");

/// Measures all combinations, and passes each to `measured`. Memory is reserved and given back.
pub fn study(settings: &Settings, measured: &mut dyn FnMut(StudyRow)) -> Result<()> {
    // Pages of 4 KiB need no rights, but their measurement takes minutes.
    if settings.backings.iter().any(|backing| *backing != Backing::SmallPages) {
        check_rights()?;
    }
    for &size in &settings.sizes {
        for &backing in &settings.backings {
            study_memory(settings, backing, size, measured)?;
        }
    }
    Ok(())
}

/// Measures memory of one kind and size with each number of processes, and passes the results to `measured`. The memory is
/// reserved and given back.
pub fn study_memory(
    settings: &Settings,
    backing: Backing,
    size: Size,
    measured: &mut dyn FnMut(StudyRow),
) -> Result<()> {
    catch_interrupts();
    let most_processes = settings.processes.iter().copied().max().unwrap_or(0);
    let memory = StudyMemory::new(backing, size, most_processes)?;
    // The first process.
    let mut first = memory.start(settings)?;
    first.faults()?;
    for &processes in &settings.processes {
        measured(measure(&memory, settings, processes)?);
    }
    drop(first);
    memory.give_back()
}

fn measure(memory: &StudyMemory, settings: &Settings, processes: usize) -> Result<StudyRow> {
    let tables = memory::page_tables()?;
    let cpu = processor_time();
    let begin = Instant::now();
    let start = |_| check_interrupt().and_then(|()| memory.start(settings));
    let mut started = (0..processes).map(start).collect::<Result<Vec<_>>>()?;
    let finish = |toucher: &mut Toucher| check_interrupt().and_then(|()| toucher.faults());
    let mut faults = started.iter_mut().map(finish).collect::<Result<Vec<_>>>()?;
    let start_up = begin.elapsed();
    let page_tables = memory::page_tables()?.bytes() as i64 - tables.bytes() as i64;
    drop(started);
    faults.sort_unstable();
    Ok(StudyRow {
        backing: memory.backing,
        size: memory.size,
        processes,
        start_up,
        cpu: processor_time().saturating_sub(cpu),
        page_tables,
        faults: faults.get(faults.len() / 2).copied().unwrap_or(0),
    })
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// An interrupt ends the study after what it has begun, so that its memory is given back.
fn catch_interrupts() {
    extern "C" fn interrupt(_: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: The handler stores to an atomic, which every context allows.
        unsafe { libc::signal(signal, interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

/// Whether the study was interrupted: by Ctrl-C, or by another program that ends it.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

fn check_interrupt() -> Result<()> {
    if is_interrupted() {
        Err(Error::State("the study was interrupted; its memory was given back".to_owned()))
    } else {
        Ok(())
    }
}

fn processor_time() -> Duration {
    let of = |who| {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: The kernel fills the structure; with these arguments the call cannot fail.
        let usage = unsafe {
            libc::getrusage(who, usage.as_mut_ptr());
            usage.assume_init()
        };
        let time =
            |time: libc::timeval| Duration::new(time.tv_sec.cast_unsigned(), time.tv_usec as u32 * 1000);
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

const NAME: &str = "study";

/// The memory of one size and kind.
#[derive(Debug)]
struct StudyMemory {
    backing: Backing,
    size: Size,
    source: BackingSource,
}

#[derive(Debug)]
enum BackingSource {
    File(OwnedFd),
    Section(Box<StudySection>),
}

impl StudyMemory {
    fn new(backing: Backing, size: Size, processes: usize) -> Result<StudyMemory> {
        let tables = match backing {
            Backing::SmallPages => {
                return Ok(StudyMemory {
                    backing,
                    size,
                    source: BackingSource::File(small_pages(size, processes)?),
                });
            }
            Backing::PrivateTables => PageTables::Private,
            Backing::SharedTables => PageTables::Shared,
        };
        Ok(StudyMemory {
            backing,
            size,
            source: BackingSource::Section(Box::new(StudySection::reserve(size, tables)?)),
        })
    }

    /// A process that maps and touches the memory.
    fn start(&self, settings: &Settings) -> Result<Toucher> {
        let mut command = Command::new(&settings.vlm);
        match &self.source {
            BackingSource::File(file) => {
                command.arg("touch-file").arg(file.as_raw_fd().to_string());
                command.arg(self.size.bytes().to_string());
            }
            BackingSource::Section(section) => {
                command
                    .arg("--registry")
                    .arg(section.locked.registry().path())
                    .args([crate::verify::TOUCH_COMMAND, NAME]);
            }
        }
        without_randomization(&mut command);
        Toucher::start(command)
    }

    fn give_back(self) -> Result<()> {
        match self.source {
            BackingSource::File(_) => Ok(()),
            BackingSource::Section(section) => section.give_back(),
        }
    }
}

/// Processes are placed at the same addresses, close together: so their own page tables are few, and the same in each run.
fn without_randomization(command: &mut Command) {
    let set = || {
        // SAFETY: The call has no pointers. It fails only where a filter forbids it, and then addresses are random.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        Ok(())
    };
    // SAFETY: Between fork and exec, the function makes a system call and nothing else.
    unsafe { command.pre_exec(set) };
}

/// Memory in pages of 4 KiB, which started processes inherit as a descriptor.
fn small_pages(size: Size, processes: usize) -> Result<OwnedFd> {
    let available = memory::available()?;
    // Eight bytes for each page of 4 KiB, in each process.
    let tables = (size.bytes() >> 9).saturating_mul(processes as u64);
    let spare = size.bytes() / 8 + (256 << 20);
    if available.bytes() < size.bytes().saturating_add(tables).saturating_add(spare) {
        return Err(Error::Memory(format!(
            "{size} in pages of 4 KiB, and {} MiB of page tables of {processes} processes, do not fit into the {} MiB that are \
             available: study less memory or fewer processes",
            tables >> 20,
            available.bytes() >> 20
        )));
    }
    let name = CString::new("vlm-study").expect("no null");
    let failed = |error: rustix::io::Errno| Error::io("create", "memory of 4 KiB pages".as_ref())(error);
    let file = rustix::fs::memfd_create(&name, MemfdFlags::empty()).map_err(failed)?;
    rustix::io::fcntl_setfd(&file, FdFlags::empty()).map_err(failed)?;
    rustix::fs::ftruncate(&file, size.bytes()).map_err(failed)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size.bytes()).map_err(failed)?;
    Ok(file)
}

/// A registry of one entry, reserved until it is dropped.
#[derive(Debug)]
struct StudySection {
    section: Option<Section>,
    locked: LockedRegistry,
    folder: tempfile::TempDir,
    is_reserved: bool,
}

impl StudySection {
    fn reserve(size: Size, page_tables: PageTables) -> Result<StudySection> {
        let folder = tempfile::tempdir().map_err(Error::io("create", &std::env::temp_dir()))?;
        let mut locked = LockedRegistry::open(&folder.path().join("vlm.toml"))?;
        let entry = RegistryEntry {
            name: NAME.to_owned(),
            size,
            page_size: Size::mib(2),
            allocation: Allocation::Alloc,
            page_tables,
            owner: "root".to_owned(),
            node: None,
        };
        let mounts = folder.path().join("mounts");
        locked.change(|registry: &mut Registry| {
            registry.mounts = mounts;
            registry.entries.push(entry);
        })?;
        let mut study = StudySection { section: None, locked, folder, is_reserved: false };
        let registry = study.locked.registry();
        let reservations = Reservations::lock(registry)?;
        study.is_reserved = true;
        for (entry, _) in reservations.plan(&registry.entries.iter().collect::<Vec<_>>())? {
            reservations.apply(entry)?;
        }
        drop(reservations);
        let section = Section::create(registry, NAME)?;
        study.section = Some(section);
        Ok(study)
    }

    fn give_back(mut self) -> Result<()> {
        self.free()
    }

    fn free(&mut self) -> Result<()> {
        self.section = None;
        if std::mem::take(&mut self.is_reserved) {
            Reservations::lock(self.locked.registry())?.free(NAME)?;
        }
        Ok(())
    }
}

impl Drop for StudySection {
    fn drop(&mut self) {
        if let Err(error) = self.free() {
            eprintln!("the study's memory stays reserved at {}: {error}", self.folder.path().display());
        }
    }
}

/// The work of a process of the study with a descriptor that it inherited.
pub fn touch_file(descriptor: i32, size: u64) -> Result<()> {
    let failed =
        |error: rustix::io::Errno| Error::io("map", format!("descriptor {descriptor}").as_ref())(error);
    // SAFETY: The command's caller gives the descriptor to this process, which has no other use of it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let region = Region::reserve(size as usize).map_err(failed)?;
    let address = region
        .map(size as usize, ProtFlags::READ | ProtFlags::WRITE, file.as_fd(), PageTables::Shared)
        .map_err(failed)?;
    report_faults(|| read_pages(address.cast(), size as usize, 4096));
    Ok(())
}
