//! Memory that processes of a program share with the one that observes them: each process writes messages into a ring of its
//! own, which outlives it. What a killed process has written is read nevertheless.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::MemfdFlags;

const WORD: usize = size_of::<u64>();
/// Processes that are observed at the same time.
const RINGS: usize = 1024;
/// Words of a ring: a power of two. Pages that are not written take no room.
const RING_WORDS: u64 = 1 << 16;
/// Bytes of all heads.
const HEADS: usize = (RINGS + 1) * size_of::<RingHead>();
const BYTES: usize = HEADS + RINGS * RING_WORDS as usize * WORD;

/// How long a writer waits for room, and after how many pauses it looks whether there still is a reader.
const PAUSE: Duration = Duration::from_micros(50);
const PAUSES: u32 = 2000;

/// Nobody writes it.
const FREE: u32 = 0;
/// A process begins to write it.
const OPENING: u32 = 1;
/// It may have messages.
const OPEN: u32 = 2;

/// The state of a ring.
#[repr(C, align(128))]
struct RingHead {
    state: AtomicU32,
    /// The host's number of the process that writes.
    process: AtomicU32,
    /// Words written so far.
    written: AtomicU64,
    /// On a line of its own, as another processor writes it: words read so far.
    read: OwnLine,
}

#[repr(C, align(64))]
struct OwnLine(AtomicU64);

/// The state of all rings.
#[repr(C)]
struct CommonHead {
    /// The host's number of the process that reads; 0 if nobody reads any more.
    reader: AtomicU32,
    /// Processes for which there was no ring.
    left_out: AtomicU32,
}

/// All rings.
#[derive(Clone)]
pub struct Rings(Arc<MappedRings>);

/// The memory of all rings. A forked process has a copy of the mapping, which its own rings use.
struct MappedRings(NonNull<u8>);

// SAFETY: heads are atomic; a ring's words belong to its writer or its reader, as its head says.
unsafe impl Send for MappedRings {}
// SAFETY: as above.
unsafe impl Sync for MappedRings {}

impl Drop for MappedRings {
    fn drop(&mut self) {
        // SAFETY: mapped by `Rings::map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

impl Rings {
    /// Rings that this process, those that it forks, and those that map the file share; this one reads.
    pub fn new() -> io::Result<(Rings, File)> {
        let file = File::from(rustix::fs::memfd_create("rings", MemfdFlags::CLOEXEC)?);
        file.set_len(BYTES as u64)?;
        let rings = Rings::map(&file)?;
        rings.common().reader.store(std::process::id(), Ordering::Release);
        Ok((rings, file))
    }

    /// The rings in another process's file.
    pub fn map(file: &File) -> io::Result<Rings> {
        if file.metadata()?.len() < BYTES as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: asks for a new mapping.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, file.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Rings(Arc::new(MappedRings(NonNull::new(mapped.cast()).expect("not at 0")))))
    }

    fn start(&self) -> NonNull<u8> {
        self.0.0
    }

    fn common(&self) -> &CommonHead {
        // SAFETY: the mapping begins with it, and zeros are valid.
        unsafe { self.start().cast().as_ref() }
    }

    fn head(&self, ring: usize) -> &RingHead {
        assert!(ring < RINGS);
        // SAFETY: the heads of the rings follow that of all, and zeros are valid.
        unsafe { self.start().cast::<RingHead>().add(ring + 1).as_ref() }
    }

    fn words(&self, ring: usize) -> NonNull<u64> {
        // SAFETY: the words of the rings follow their heads.
        unsafe { self.start().add(HEADS).cast().add(ring * RING_WORDS as usize) }
    }

    /// Processes for which there was no ring.
    pub fn left_out(&self) -> u32 {
        self.common().left_out.load(Ordering::Relaxed)
    }

    /// Nobody reads any more: writers drop what they write.
    pub fn close(&self) {
        self.common().reader.store(0, Ordering::Release);
    }

    /// A ring for this process; none if too many processes have one.
    pub fn open(&self) -> Option<RingWriter> {
        let free = (0..RINGS).find(|&ring| {
            let exchange = |state: &AtomicU32| {
                state.compare_exchange(FREE, OPENING, Ordering::Acquire, Ordering::Relaxed)
            };
            exchange(&self.head(ring).state).is_ok()
        });
        let Some(ring) = free else {
            self.common().left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let head = self.head(ring);
        head.process.store(std::process::id(), Ordering::Relaxed);
        head.written.store(0, Ordering::Relaxed);
        head.read.0.store(0, Ordering::Relaxed);
        head.state.store(OPEN, Ordering::Release);
        Some(RingWriter { rings: self.clone(), ring, written: 0, is_abandoned: false })
    }

    /// The rings that may have messages.
    pub fn opened(&self) -> impl Iterator<Item = usize> {
        (0..RINGS).filter(|&ring| self.head(ring).state.load(Ordering::Acquire) == OPEN)
    }

    /// The host's number of the process that writes a ring.
    pub fn process(&self, ring: usize) -> u32 {
        self.head(ring).process.load(Ordering::Relaxed)
    }

    /// Appends to `words` what has been written since the last call. Returns whether that was anything.
    pub fn read(&self, ring: usize, words: &mut Vec<u64>) -> bool {
        let head = self.head(ring);
        let (read, written) = (head.read.0.load(Ordering::Relaxed), head.written.load(Ordering::Acquire));
        let mut position = read;
        while position < written {
            let (start, count) = contiguous(position, written - position);
            // SAFETY: within the ring; the writer has written these words, and changes them only once they are read.
            let part = unsafe { std::slice::from_raw_parts(self.words(ring).as_ptr().add(start), count) };
            words.extend_from_slice(part);
            position += count as u64;
        }
        head.read.0.store(position, Ordering::Release);
        position > read
    }

    /// The process that wrote a ring has ended, and all has been read: another one may have the ring.
    pub fn release(&self, ring: usize) {
        // SAFETY: the ring's own pages, whose contents nobody needs.
        unsafe {
            libc::madvise(self.words(ring).as_ptr().cast(), RING_WORDS as usize * WORD, libc::MADV_REMOVE);
        }
        self.head(ring).state.store(FREE, Ordering::Release);
    }
}

/// Where a position is in a ring, and how many of so many words follow there without a break.
fn contiguous(position: u64, words: u64) -> (usize, usize) {
    let start = position % RING_WORDS;
    (start as usize, words.min(RING_WORDS - start) as usize)
}

/// Writes the ring of a process.
pub struct RingWriter {
    rings: Rings,
    ring: usize,
    written: u64,
    /// Nobody reads any more.
    is_abandoned: bool,
}

impl RingWriter {
    /// Writes words, when there is room for them.
    pub fn write(&mut self, mut words: &[u64]) {
        let (rings, ring) = (self.rings.clone(), self.ring);
        let head = rings.head(ring);
        while !words.is_empty() && !self.is_abandoned {
            let room = self.room(head);
            let (start, count) = contiguous(self.written, room.min(words.len() as u64));
            let (now, rest) = words.split_at(count);
            // SAFETY: within the ring, and the reader has read what was there.
            unsafe {
                ptr::copy_nonoverlapping(now.as_ptr(), rings.words(ring).as_ptr().add(start), count);
            }
            words = rest;
            self.written += count as u64;
            head.written.store(self.written, Ordering::Release);
        }
    }

    /// Waits for room, of which there is some then unless nobody reads any more.
    fn room(&mut self, head: &RingHead) -> u64 {
        let room = |written: u64| RING_WORDS - (written - head.read.0.load(Ordering::Acquire));
        let mut pauses = 0;
        while room(self.written) == 0 && !self.is_abandoned {
            std::thread::sleep(PAUSE);
            pauses += 1;
            self.is_abandoned = pauses % PAUSES == 0 && !self.has_reader();
        }
        room(self.written)
    }

    fn has_reader(&self) -> bool {
        let reader = self.rings.common().reader.load(Ordering::Acquire);
        reader != 0 && super::is_alive(reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages longer than a ring, whatever their lengths, come through as they were written.
    #[test]
    fn words_come_through_as_written() {
        let (rings, _file) = Rings::new().unwrap();
        let mut writer = rings.open().unwrap();
        let lengths = [1, RING_WORDS as usize - 1, 3, 5 * RING_WORDS as usize + 7, 0, 2];
        let writing = std::thread::spawn(move || {
            let mut next = 0;
            for length in lengths {
                let words: Vec<u64> = (next..next + length as u64).collect();
                writer.write(&words);
                next += length as u64;
            }
        });
        let (mut words, total) = (Vec::new(), lengths.iter().sum::<usize>());
        while words.len() < total {
            for ring in rings.opened() {
                rings.read(ring, &mut words);
            }
        }
        writing.join().unwrap();
        assert!(words.iter().copied().eq(0..total as u64));
    }

    #[test]
    fn rings_are_used_again() {
        let (rings, _file) = Rings::new().unwrap();
        let all: Vec<RingWriter> = (0..RINGS).map(|_| rings.open().unwrap()).collect();
        assert!(rings.open().is_none());
        assert_eq!(rings.left_out(), 1);
        rings.release(all[7].ring);
        let mut again = rings.open().unwrap();
        assert_eq!(again.ring, 7);
        again.write(&[1, 2]);
        let mut words = Vec::new();
        assert!(rings.read(7, &mut words) && words == [1, 2]);
    }

    #[test]
    fn rings_of_a_file_are_those_of_their_reader() {
        let (rings, file) = Rings::new().unwrap();
        let mut writer = Rings::map(&file).unwrap().open().unwrap();
        writer.write(&[7]);
        let mut words = Vec::new();
        assert!(rings.read(writer.ring, &mut words) && words == [7]);
        file.set_len(100).unwrap();
        assert!(Rings::map(&file).is_err());
    }

    #[test]
    fn a_writer_does_not_wait_for_a_reader_that_is_gone() {
        let (rings, _file) = Rings::new().unwrap();
        let mut writer = rings.open().unwrap();
        rings.close();
        writer.write(&vec![0; RING_WORDS as usize + 1]);
        assert!(writer.is_abandoned);
    }
}
