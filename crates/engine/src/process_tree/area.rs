//! Counts of a thread in a file that its process maps, so that they outlive the process however that ends.
//!
//! The file has a head of [`HEAD_BYTES`] with the number of settlements and the system calls by number, then the
//! executions of blocks by the interpreter, then the counters of compiled code. Pages that are not written take no room.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use guest::counters::MAX_COUNTERS;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

const WORD: usize = size_of::<u64>();
/// Bytes of the head: a word, and one for each system call.
const HEAD_BYTES: usize = 8192;
/// System calls of greater numbers do not exist, and are counted as this one.
pub(super) const LAST_SYSTEM_CALL: u32 = (HEAD_BYTES / WORD - 2) as u32;
/// The most blocks that a thread may have.
const MOST_BLOCKS: usize = 16 << 20;
const COUNTERS_AT: usize = HEAD_BYTES + MOST_BLOCKS * WORD;
const BYTES: usize = COUNTERS_AT + MAX_COUNTERS * WORD;
/// The file gets room in steps of this number of words.
const STEP: usize = 2048;

/// Allocates the pages of a range, and fails if there is no room (linux/mman.h, since 5.14).
const MADV_POPULATE_WRITE: i32 = 23;

/// A range of words that is shared with a file.
struct SharedWords {
    first: NonNull<u64>,
    words: usize,
}

impl SharedWords {
    fn map(file: &File, from: usize, bytes: usize) -> io::Result<SharedWords> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping overlaps nothing.
        let first = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), from as i64)
        };
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedWords { first: NonNull::new(first.cast()).expect("not at 0"), words: bytes / WORD })
    }

    fn cells(&self) -> &[Cell<u64>] {
        // SAFETY: mapped, aligned, and accessed through cells only, by the thread that has `self`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr().cast(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.words * WORD) };
    }
}

/// Creates a file in a folder, of zeros.
fn create(folder: i32, name: &str, bytes: usize) -> io::Result<File> {
    // SAFETY: the descriptor of the folder stays open while programs are counted.
    let directory = unsafe { BorrowedFd::borrow_raw(folder) };
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::TRUNC;
    let file = File::from(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.set_len(bytes as u64)?;
    Ok(file)
}

/// Removes a file, whose counts have been written elsewhere. One that stays is ignored by its readers.
fn remove(folder: i32, name: &str) {
    // SAFETY: as for creation.
    let directory = unsafe { BorrowedFd::borrow_raw(folder) };
    let _ = unlinkat(directory, name, AtFlags::empty());
}

/// Executions of blocks in all units of a class.
pub(super) struct ClassBlockCounts {
    folder: i32,
    name: String,
    words: SharedWords,
    room: usize,
}

// SAFETY: the mapping is its own, and one thread accesses it at a time.
unsafe impl Send for ClassBlockCounts {}

impl ClassBlockCounts {
    /// A new file in a folder.
    pub(super) fn new(folder: i32, name: String) -> io::Result<ClassBlockCounts> {
        let bytes = MOST_BLOCKS * WORD;
        let words = SharedWords::map(&create(folder, &name, bytes)?, 0, bytes)?;
        Ok(ClassBlockCounts { folder, name, words, room: 0 })
    }

    /// Adds executions of blocks, of which there are `blocks`.
    pub(super) fn add(
        &mut self,
        blocks: usize,
        executed: impl Iterator<Item = (u32, u64)>,
    ) -> io::Result<()> {
        let wanted = blocks.min(MOST_BLOCKS).next_multiple_of(STEP);
        if wanted > self.room {
            // SAFETY: so many are mapped.
            make_room(unsafe { self.words.first.add(self.room) }, wanted - self.room)?;
            self.room = wanted;
        }
        for (block, executions) in executed {
            if let Some(sum) = self.words.cells().get(block as usize) {
                sum.update(|sum| sum + executions);
            }
        }
        Ok(())
    }

    /// The blocks that were executed, and how often.
    pub(super) fn executed(&self) -> Vec<(u32, u64)> {
        let words = self.words.cells()[..self.room].iter().map(Cell::get);
        (0..).zip(words).filter(|(_, n)| *n != 0).collect()
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        remove(self.folder, &self.name);
    }
}

/// The words in a file of sums.
pub(super) fn class_executions(path: &std::path::Path, blocks: usize) -> io::Result<Vec<u64>> {
    AreaCounts::open(path)?.words(0, blocks.min(MOST_BLOCKS))
}

/// The counts of a thread.
pub(super) struct Area {
    folder: i32,
    name: String,
    /// Head and executions.
    words: SharedWords,
    /// The counters, until they are moved to where compiled code is.
    counters: Option<SharedWords>,
    /// Where they were moved to.
    moved_to: Option<NonNull<u64>>,
    /// Executions and counters for which the file has room.
    room: [usize; 2],
    is_removed: bool,
}

// SAFETY: the mappings are its own, and one thread accesses them at a time.
unsafe impl Send for Area {}

impl Area {
    /// A new file in a folder.
    pub(super) fn new(folder: i32, name: String) -> io::Result<Area> {
        let file = create(folder, &name, BYTES)?;
        let words = SharedWords::map(&file, 0, COUNTERS_AT)?;
        let counters = Some(SharedWords::map(&file, COUNTERS_AT, BYTES - COUNTERS_AT)?);
        make_room(words.first, HEAD_BYTES / WORD)?;
        Ok(Area { folder, name, words, counters, moved_to: None, room: [0; 2], is_removed: false })
    }

    fn executions(&self) -> &[Cell<u64>] {
        &self.words.cells()[HEAD_BYTES / WORD..]
    }

    /// Makes room for blocks and counters in the file.
    pub(super) fn reserve(&mut self, blocks: usize, counters: usize) -> io::Result<()> {
        if blocks > MOST_BLOCKS {
            return Err(io::Error::other("the program executes too many different blocks of code"));
        }
        // SAFETY: the mapping has executions behind its head.
        let executions = unsafe { self.words.first.add(HEAD_BYTES / WORD) };
        let parts = [(blocks, Some(executions)), (counters, self.moved_to)];
        for (room, (wanted, first)) in self.room.iter_mut().zip(parts) {
            let Some(first) = first else { continue };
            let wanted = wanted.next_multiple_of(STEP);
            if wanted > *room {
                // SAFETY: so many are mapped.
                make_room(unsafe { first.add(*room) }, wanted - *room)?;
                *room = wanted;
            }
        }
        Ok(())
    }

    /// The counters are at `first` from now on, where `MAX_COUNTERS` of them have been mapped.
    pub(super) fn move_counters(&mut self, first: NonNull<u64>) -> io::Result<()> {
        let Some(counters) = self.counters.take() else { return Ok(()) };
        let (bytes, flags) = (counters.words * WORD, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
        // SAFETY: nothing refers to the present address of the mapping, and the new one is the counters' own.
        let moved =
            unsafe { libc::mremap(counters.first.as_ptr().cast(), bytes, bytes, flags, first.as_ptr()) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        std::mem::forget(counters);
        self.moved_to = Some(first);
        Ok(())
    }

    /// Adds executions of a block. The addition wraps: executions by compiled code may be subtracted before they are added.
    #[inline(always)]
    pub(super) fn add(&self, block: u32, executions: u64) {
        if let Some(count) = self.executions().get(block as usize) {
            count.set(count.get().wrapping_add(executions));
        }
    }

    pub(super) fn add_system_call(&self, number: u32) {
        let number = number.min(LAST_SYSTEM_CALL) as usize;
        self.words.cells()[1 + number].update(|count| count + 1);
    }

    /// The executions of the first blocks, and system calls by number.
    pub(super) fn counted(&self, blocks: usize) -> (Vec<u64>, Vec<u64>) {
        let copy = |cells: &[Cell<u64>]| cells.iter().map(Cell::get).collect();
        (copy(&self.executions()[..blocks]), copy(&self.words.cells()[1..HEAD_BYTES / WORD]))
    }

    /// Begins anew, as all counts have been written elsewhere: `blocks` of them. The counters have to be cleared, then the
    /// area is [used](Area::renew) again.
    pub(super) fn clear(&self, blocks: usize) {
        let cells = self.words.cells();
        cells[1..HEAD_BYTES / WORD + blocks].iter().for_each(|count| count.set(0));
    }

    /// The counts are valid from this settlement on.
    pub(super) fn renew(&self, settlements: u64) {
        // SAFETY: the word is mapped and aligned, and others read it in other processes only.
        unsafe { AtomicU64::from_ptr(self.words.first.as_ptr()) }.store(settlements, Ordering::Release);
    }

    /// Whether the file has been removed.
    pub(super) fn is_removed(&self) -> bool {
        self.is_removed
    }

    /// Removes the file, whose counts have been written elsewhere.
    pub(super) fn remove(&mut self) {
        self.is_removed = true;
        remove(self.folder, &self.name);
    }
}

/// Makes room in the file for mapped words, which would otherwise be found missing, by a fault, when they are written.
fn make_room(first: NonNull<u64>, words: usize) -> io::Result<()> {
    // SAFETY: the words are mapped, and keep their values.
    let made = unsafe { libc::madvise(first.as_ptr().cast(), words * WORD, MADV_POPULATE_WRITE) };
    match made {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // Hosts before Linux 5.14 cannot say.
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            error if error.raw_os_error() == Some(libc::EFAULT) => Err(io::ErrorKind::StorageFull.into()),
            error => Err(error),
        },
    }
}

/// The counts in the file of a thread, as far as they were written.
pub(super) struct AreaCounts(File);

impl AreaCounts {
    pub(super) fn open(path: &std::path::Path) -> io::Result<AreaCounts> {
        Ok(AreaCounts(File::open(path)?))
    }

    /// The number of settlements after which the counts are valid.
    pub(super) fn settlements(&self) -> io::Result<u64> {
        Ok(self.words(0, 1)?[0])
    }

    pub(super) fn system_calls(&self) -> io::Result<Vec<u64>> {
        self.words(WORD, LAST_SYSTEM_CALL as usize + 1)
    }

    pub(super) fn executions(&self, blocks: usize) -> io::Result<Vec<u64>> {
        self.words(HEAD_BYTES, blocks.min(MOST_BLOCKS))
    }

    pub(super) fn counters(&self, counters: usize) -> io::Result<Vec<u64>> {
        self.words(COUNTERS_AT, counters.min(MAX_COUNTERS))
    }

    fn words(&self, from: usize, count: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * WORD];
        self.0.read_exact_at(&mut bytes, from as u64)?;
        let words = bytes.chunks_exact(WORD);
        Ok(words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect())
    }
}
