//! The memory that the translator shares with the process that started it: counters, and a log of blocks and images. It survives the
//! translator, however the program ends.
//!
//! | offset in the file | |
//! |---|---|
//! | 0 | [`SharedHeader`] |
//! | [`LOG`] | entries of the log, each a tag and a size of 32 bits and its contents |
//! | [`SLOTS`] | the counters of each thread's area; the first slot has those of threads that have ended |

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::area::{COUNTERS, COUNTERS_SIZE, SYSTEM_CALLS, ThreadArea};

const LOG: u64 = 1 << 20;
const SLOTS: u64 = 4 << 30;
/// Bytes of the file, most of which are never touched.
const FILE_SIZE: u64 = SLOTS + (MAX_SLOTS * COUNTERS_SIZE) as u64;
/// Threads that exist at a time, at most.
const MAX_SLOTS: usize = 4096;
/// Bytes of a message.
const MESSAGE: usize = 4096;

/// The tags of entries.
pub(crate) const BLOCK_ENTRY: u32 = 1;
pub(crate) const IMAGE_ENTRY: u32 = 2;

/// The beginning of the file.
#[repr(C)]
struct SharedHeader {
    /// Bytes of the log.
    logged: AtomicU64,
    /// Slots of counters that have been used.
    slots: AtomicU32,
    /// Processes that the program forked.
    forked: AtomicU32,
    /// Whether the translator has begun to execute the program.
    started: AtomicI32,
    /// Bytes of the message.
    message_size: AtomicU32,
    message: [u8; MESSAGE],
}

/// The translator's view.
pub(crate) struct SharedResults {
    base: *mut u8,
    free: Mutex<Vec<u32>>,
    /// Whether this is a forked process, whose counts are lost.
    is_detached: AtomicBool,
}

// SAFETY: the header's fields are atomic, and the log is written under the lock of the code cache.
unsafe impl Sync for SharedResults {}
// SAFETY: as above.
unsafe impl Send for SharedResults {}

/// A new file for results.
pub(crate) fn new_file() -> io::Result<File> {
    // SAFETY: a call with a constant name.
    let file = unsafe { libc::memfd_create(c"pathlength-counts".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just made.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(file) });
    file.set_len(FILE_SIZE)?;
    Ok(file)
}

fn map(file: &File, offset: u64, size: usize, protection: i32) -> io::Result<*mut u8> {
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    let offset = offset as libc::off_t;
    // SAFETY: a new mapping.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, file.as_raw_fd(), offset) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast()) }
}

impl SharedResults {
    /// Maps the file in the translator, which keeps no descriptor of it: the program has the numbers of all descriptors.
    pub fn new(file: File) -> io::Result<SharedResults> {
        let base = map(&file, 0, FILE_SIZE as usize, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: only says that a core file does not need this memory.
        unsafe { libc::madvise(base.cast(), FILE_SIZE as usize, libc::MADV_DONTDUMP) };
        let results =
            SharedResults { base, free: Mutex::new(Vec::new()), is_detached: AtomicBool::new(false) };
        results.header().slots.store(1, Ordering::Relaxed);
        Ok(results)
    }

    fn header(&self) -> &SharedHeader {
        // SAFETY: the file begins with a header, whose fields are atomic, but for the message.
        unsafe { &*self.base.cast::<SharedHeader>() }
    }

    /// The counters of a slot.
    fn counters(&self, slot: u32) -> *mut u64 {
        // SAFETY: the mapping has MAX_SLOTS slots.
        unsafe { self.base.add(SLOTS as usize + slot as usize * COUNTERS_SIZE).cast() }
    }

    /// Gives an area its counters. Returns the number of its slot.
    pub fn attach(&self, area: *mut ThreadArea) -> io::Result<u32> {
        if self.is_detached.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        let slot = free.unwrap_or_else(|| self.header().slots.fetch_add(1, Ordering::Relaxed));
        if slot as usize >= MAX_SLOTS {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let target = (area as usize + COUNTERS) as *mut libc::c_void;
        // SAFETY: with an old size of 0 the counters are mapped once more, in the place of the area's memory for them.
        let at = unsafe { libc::mremap(self.counters(slot).cast(), 0, COUNTERS_SIZE, flags, target) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(slot)
    }

    /// A thread has ended: its counts of the first blocks are added to those of ended threads, and its slot is free.
    pub fn retire(&self, slot: u32, blocks: usize) {
        if self.is_detached.load(Ordering::Relaxed) {
            return;
        }
        let mut free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (own, ended) = (self.counters(slot), self.counters(0));
        for counter in 0..SYSTEM_CALLS + blocks {
            // SAFETY: there are fewer than a slot's counters, and no other thread uses these: the lock is held.
            unsafe {
                let count = own.add(counter).replace(0);
                let total = ended.add(counter);
                total.write(total.read().wrapping_add(count));
            }
        }
        free.push(slot);
    }

    fn log(&self, tag: u32, parts: &[&[u8]]) {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        let start = self.header().logged.load(Ordering::Relaxed);
        assert!(LOG + start + 8 + (size as u64) < SLOTS, "the log of blocks is full");
        let mut at = (LOG + start) as usize;
        let [tag, length] = [tag.to_le_bytes(), (size as u32).to_le_bytes()];
        for part in [&tag[..], &length[..]].iter().chain(parts) {
            // SAFETY: within the log, which only one thread writes at a time.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), self.base.add(at), part.len()) };
            at += part.len();
        }
        self.header().logged.store(at as u64 - LOG, Ordering::Release);
    }

    /// Logs a block; its number is that of the blocks before it.
    pub fn add_block(&self, address: u64, image: u32, code: &[u8]) {
        self.log(BLOCK_ENTRY, &[&address.to_le_bytes(), &image.to_le_bytes(), code]);
    }

    /// Logs that a file was mapped for execution: its name, where, and from which offset.
    pub fn add_image(&self, address: u64, offset: u64, path: &[u8]) {
        self.log(IMAGE_ENTRY, &[&address.to_le_bytes(), &offset.to_le_bytes(), path]);
    }

    /// Counts a forked process.
    pub fn add_fork(&self) {
        self.header().forked.fetch_add(1, Ordering::Relaxed);
    }

    /// The program begins.
    pub fn set_started(&self) {
        self.header().started.store(1, Ordering::Relaxed);
    }

    /// Leaves a message for the process that started the translator.
    pub fn set_message(&self, text: &str) {
        let size = text.len().min(MESSAGE);
        let header = self.base.cast::<SharedHeader>();
        // SAFETY: the message is only read after this process has ended.
        unsafe {
            let message = (&raw mut (*header).message).cast::<u8>();
            std::ptr::copy_nonoverlapping(text.as_ptr(), message, size);
        }
        self.header().message_size.store(size as u32, Ordering::Release);
    }

    /// In a forked process: counts and logs go to memory of its own from now on, and are lost.
    pub fn detach(&self, area: *mut ThreadArea) {
        self.is_detached.store(true, Ordering::Relaxed);
        let size = FILE_SIZE as usize;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces shared memory by private memory of the same size; the process never reads the log.
        unsafe {
            libc::mmap(self.base.cast(), size, rights, flags, -1, 0);
            libc::mmap((area as usize + COUNTERS) as *mut _, COUNTERS_SIZE, rights, flags, -1, 0);
        }
    }
}

/// The results, after the translator has ended.
pub(crate) struct FinishedResults {
    file: File,
    base: *mut u8,
}

impl FinishedResults {
    /// Maps the file.
    pub fn new(file: File) -> io::Result<FinishedResults> {
        let base = map(&file, 0, SLOTS as usize, libc::PROT_READ)?;
        Ok(FinishedResults { file, base })
    }

    fn header(&self) -> &SharedHeader {
        // SAFETY: as above; the translator has ended.
        unsafe { &*self.base.cast::<SharedHeader>() }
    }

    /// Whether the program began.
    pub fn has_started(&self) -> bool {
        self.header().started.load(Ordering::Relaxed) != 0
    }

    /// Processes that the program forked.
    pub fn forked(&self) -> u64 {
        self.header().forked.load(Ordering::Relaxed).into()
    }

    /// The translator's message.
    pub fn message(&self) -> Option<String> {
        let size = (self.header().message_size.load(Ordering::Acquire) as usize).min(MESSAGE);
        let text = || String::from_utf8_lossy(&self.header().message[..size]).into_owned();
        (size > 0).then(text)
    }

    /// The entries of the log: tags and contents.
    pub fn entries(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let logged = self.header().logged.load(Ordering::Acquire).min(SLOTS - LOG) as usize;
        // SAFETY: within the mapping; nothing writes to it any more.
        let mut rest = unsafe { std::slice::from_raw_parts(self.base.add(LOG as usize), logged) };
        std::iter::from_fn(move || {
            let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
            let (tag, size) = (number(0)?, number(4)? as usize);
            let contents = rest.get(8..8 + size)?;
            rest = &rest[8 + size..];
            Some((tag, contents))
        })
    }

    /// The numbers of system calls, and of executions of the first blocks, by all threads.
    pub fn counts(&self, blocks: usize) -> io::Result<(Vec<u64>, Vec<u64>)> {
        let mut counts = vec![0u64; SYSTEM_CALLS + blocks];
        let slots = self.header().slots.load(Ordering::Relaxed).min(MAX_SLOTS as u32);
        for slot in 0..slots {
            let offset = SLOTS + u64::from(slot) * COUNTERS_SIZE as u64;
            let counters = map(&self.file, offset, COUNTERS_SIZE, libc::PROT_READ)?;
            // SAFETY: the mapping has COUNTERS_SIZE bytes, which are more than these counters have.
            unsafe {
                let counters = std::slice::from_raw_parts(counters.cast::<u64>(), counts.len());
                for (sum, &count) in counts.iter_mut().zip(counters) {
                    *sum = sum.wrapping_add(count);
                }
                libc::munmap(counters.as_ptr().cast_mut().cast(), COUNTERS_SIZE);
            }
        }
        let executions = counts.split_off(SYSTEM_CALLS);
        Ok((counts, executions))
    }
}

impl Drop for FinishedResults {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`.
        unsafe { libc::munmap(self.base.cast(), SLOTS as usize) };
    }
}
