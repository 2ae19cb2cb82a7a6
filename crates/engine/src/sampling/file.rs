//! The samples of a thread in a file that its process maps, so that they outlive it however that ends.
//!
//! The file has a head of [`HEAD_WORDS`], then the samples: each a word with its kind, the number of addresses, the system call
//! and its weight; its time; and the chain of addresses.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use super::{MOST_CALLERS, Sampling};

const WORD: usize = size_of::<u64>();
/// A page: words that were written behind it, samples that were lost, and how was sampled.
const HEAD_WORDS: usize = 512;
/// The most words of a file: 128 M, which are weeks of a thread that is sampled by the host's ticks.
const MOST_WORDS: usize = 128 << 20;
/// The file gets room in steps of this number of words.
const STEP: usize = 8192;

/// Allocates the pages of a range, and fails if there is no room (linux/mman.h, since 5.14).
const MADV_POPULATE_WRITE: i32 = 23;

/// The code that a thread was executing when it was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SampleKind {
    /// Compiled code.
    Compiled,
    /// The engine, on behalf of the program: the interpreter, or the compiler.
    Interpreted,
    /// A system call, by the guest's number.
    SystemCall(u32),
    /// An instruction, chosen by the number of instructions executed before.
    Instruction,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The code that was executed.
    pub kind: SampleKind,
    /// When: nanoseconds of the host's monotonic clock; by instructions, the thread's number of them.
    pub time: u64,
    /// The number of intervals that it stands for.
    pub weight: u32,
    /// The instruction, then the return address of each call that is open.
    pub chain: Vec<u64>,
}

/// A file that is written.
pub(super) struct SampleFile {
    words: NonNull<u64>,
    used: usize,
    /// Words that the file has room for.
    room: usize,
}

// SAFETY: the mapping is its own, and one thread accesses it at a time.
unsafe impl Send for SampleFile {}

impl SampleFile {
    /// A new file in a folder.
    pub(super) fn new(folder: i32, name: &str, sampling: Sampling) -> io::Result<SampleFile> {
        // SAFETY: the descriptor of the folder stays open while programs are sampled.
        let directory = unsafe { BorrowedFd::borrow_raw(folder) };
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::TRUNC;
        let file = File::from(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?);
        file.set_len((MOST_WORDS * WORD) as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping overlaps nothing.
        let words = unsafe {
            let (bytes, shared) = (MOST_WORDS * WORD, libc::MAP_SHARED | libc::MAP_NORESERVE);
            libc::mmap(std::ptr::null_mut(), bytes, protection, shared, file.as_raw_fd(), 0)
        };
        if words == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(words.cast()).expect("not at 0");
        let mut file = SampleFile { words, used: HEAD_WORDS, room: 0 };
        if !file.reserve(HEAD_WORDS) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (kind, interval) = match sampling {
            Sampling::Time(nanoseconds) => (1, nanoseconds),
            Sampling::Instructions(instructions) => (2, instructions),
        };
        file.set(2, kind);
        file.set(3, interval);
        Ok(file)
    }

    /// Makes room for words, and says whether there is some. Async-signal-safe.
    fn reserve(&mut self, words: usize) -> bool {
        let wanted = (self.used + words).next_multiple_of(STEP);
        if wanted > MOST_WORDS {
            return false;
        }
        if self.used + words > self.room {
            // SAFETY: so many are mapped.
            let made = unsafe {
                let first = self.words.as_ptr().add(self.room);
                libc::madvise(first.cast(), (wanted - self.room) * WORD, MADV_POPULATE_WRITE)
            };
            // Hosts before Linux 5.14 cannot say.
            if made != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
                return false;
            }
            self.room = wanted;
        }
        true
    }

    /// Appends a sample, or counts that it was lost. Async-signal-safe.
    pub(super) fn append(&mut self, kind: SampleKind, time: u64, weight: u32, chain: &[u64]) {
        if !self.reserve(2 + chain.len()) {
            // SAFETY: the head is mapped.
            let lost = unsafe { self.words.as_ptr().add(1).read() };
            return self.set(1, lost + 1);
        }
        let (kind, number) = match kind {
            SampleKind::Compiled => (0, 0),
            SampleKind::Interpreted => (1, 0),
            SampleKind::SystemCall(number) => (2, number.min(0xffff)),
            SampleKind::Instruction => (3, 0),
        };
        let weight = u64::from(weight.min(0xff_ffff));
        let head = kind | (chain.len() as u64) << 8 | u64::from(number) << 24 | weight << 40;
        self.set(self.used, head);
        self.set(self.used + 1, time);
        for (index, &address) in chain.iter().enumerate() {
            self.set(self.used + 2 + index, address);
        }
        self.used += 2 + chain.len();
        // SAFETY: the word is mapped and aligned, and only readers share it.
        let written = unsafe { AtomicU64::from_ptr(self.words.as_ptr()) };
        written.store((self.used - HEAD_WORDS) as u64, Ordering::Release);
    }

    fn set(&mut self, index: usize, word: u64) {
        debug_assert!(index < MOST_WORDS);
        // SAFETY: mapped, and the thread's own.
        unsafe { self.words.as_ptr().add(index).write(word) };
    }
}

impl Drop for SampleFile {
    fn drop(&mut self) {
        // SAFETY: mapped when it was made, and nothing refers to it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), MOST_WORDS * WORD) };
    }
}

/// Reads the samples of a thread, also while it writes them.
#[derive(Debug)]
pub struct SampleReader {
    file: File,
    /// Words read so far.
    read: u64,
    /// Whether it is damaged: nothing more can be read.
    is_damaged: bool,
}

impl SampleReader {
    /// Opens a file.
    pub fn open(path: &Path) -> io::Result<SampleReader> {
        Ok(SampleReader { file: File::open(path)?, read: 0, is_damaged: false })
    }

    /// How the thread is sampled, if it was written yet.
    pub fn sampling(&self) -> Option<Sampling> {
        let interval = self.word(3).filter(|interval| *interval > 0)?;
        match self.word(2)? {
            1 => Some(Sampling::Time(interval)),
            2 => Some(Sampling::Instructions(interval)),
            _ => None,
        }
    }

    /// Samples that were lost, as there was no room for them.
    pub fn lost(&self) -> u64 {
        self.word(1).unwrap_or(0)
    }

    fn word(&self, index: u64) -> Option<u64> {
        let mut bytes = [0; WORD];
        self.file.read_exact_at(&mut bytes, index * WORD as u64).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The samples since the last call.
    pub fn new_samples(&mut self) -> io::Result<Vec<Sample>> {
        let written = self.word(0).unwrap_or(0);
        let (written, read) = (written.min((MOST_WORDS - HEAD_WORDS) as u64), self.read);
        if self.is_damaged || written <= read {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; (written - read) as usize * WORD];
        self.file.read_exact_at(&mut bytes, (HEAD_WORDS as u64 + read) * WORD as u64)?;
        let words: Vec<u64> = bytes
            .chunks_exact(WORD)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight")))
            .collect();
        self.read = written;
        let (mut samples, mut rest) = (Vec::new(), &words[..]);
        while !rest.is_empty() {
            let Some((sample, next)) = decode(rest) else {
                self.is_damaged = true;
                break;
            };
            samples.push(sample);
            rest = next;
        }
        Ok(samples)
    }
}

/// The first sample, and what follows it.
fn decode(words: &[u64]) -> Option<(Sample, &[u64])> {
    let (&head, &time) = (words.first()?, words.get(1)?);
    let length = (head >> 8 & 0xffff) as usize;
    if !(1..=MOST_CALLERS).contains(&length) {
        return None;
    }
    let (chain, rest) = (words.get(2..2 + length)?.to_vec(), &words[2 + length..]);
    let kind = match head & 0xff {
        0 => SampleKind::Compiled,
        1 => SampleKind::Interpreted,
        2 => SampleKind::SystemCall((head >> 24 & 0xffff) as u32),
        3 => SampleKind::Instruction,
        _ => return None,
    };
    Some((Sample { kind, time, weight: (head >> 40) as u32, chain }, rest))
}
