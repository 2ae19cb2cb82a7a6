//! The file format: a magic number and a version, then chunks. A chunk is a head of fixed size and a payload, each
//! with a checksum. A reader goes from head to head; after damage it searches for the next head.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::TraceProblem;
use crate::bytes::{Bytes, Malformed, put};

/// The file's first bytes, followed by four bytes of version.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"PLTRACE\n";
/// The version of the format that is written, and the newest that can be read. There was no version 3: no flipped bit makes
/// this one a version that there was.
pub(crate) const VERSION: u32 = 4;
/// Offset of the first chunk.
pub(crate) const FIRST_CHUNK: u64 = 12;

const CHUNK_MAGIC: [u8; 8] = [0xf5, b'c', b'h', b'u', b'n', b'k', 0xa3, 0x1c];
const HEAD: usize = 72;

/// Maximum size in bytes of a payload, and of its decompressed sections together.
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// Maximum number of words of a chunk's records.
pub(crate) const MAX_WORDS: u32 = 8 << 20;
/// Maximum number of instructions of a block.
pub(crate) const MAX_BLOCK: usize = 1 << 16;

/// Stands for no number in those fields of a head that not every chunk has.
pub(crate) const NONE: u64 = u64::MAX;

/// The contents of a chunk's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadKind {
    Header = 1,
    Dictionary = 2,
    Records = 3,
}

/// The head of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: PayloadKind,
    pub process: u32,
    pub thread: u32,
    /// The host's number of the process; 0 for the first, whose number is in the header.
    pub host_process: u32,
    /// Size of the payload in bytes.
    pub length: u32,
    /// Number of words of the records.
    pub words: u32,
    /// Number of instructions of the stream before the chunk, and in the chunk.
    pub first_instruction: u64,
    pub instructions: u64,
    /// The number of the stream's last order mark before the chunk, or 0.
    pub order: u64,
    /// The first unit of work that begins in the chunk, or [`NONE`].
    pub first_unit: u64,
    /// The payload's checksum.
    pub checksum: u32,
}

impl Head {
    /// The head of a chunk without records.
    pub fn new(kind: PayloadKind, process: u32) -> Head {
        let (thread, host_process, length, words, checksum) = (0, 0, 0, 0, 0);
        let (first_instruction, instructions, order, first_unit) = (0, 0, 0, NONE);
        Head {
            kind,
            process,
            thread,
            host_process,
            length,
            words,
            first_instruction,
            instructions,
            order,
            first_unit,
            checksum,
        }
    }

    fn encode(&self) -> [u8; HEAD] {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&CHUNK_MAGIC);
        for number in
            [self.kind as u32, self.process, self.thread, self.host_process, self.length, self.words]
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.first_instruction, self.instructions, self.order, self.first_unit] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes.try_into().expect("the fields fill the head")
    }

    /// Decodes a head; `None` if the bytes are not one.
    fn decode(bytes: &[u8; HEAD]) -> Option<Head> {
        let short = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("within the head"));
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the head"));
        if bytes[..8] != CHUNK_MAGIC || short(HEAD - 4) != crc32fast::hash(&bytes[..HEAD - 4]) {
            return None;
        }
        let kind = match short(8) {
            1 => PayloadKind::Header,
            2 => PayloadKind::Dictionary,
            3 => PayloadKind::Records,
            _ => return None,
        };
        let head = Head {
            kind,
            process: short(12),
            thread: short(16),
            host_process: short(20),
            length: short(24),
            words: short(28),
            first_instruction: long(32),
            instructions: long(40),
            order: long(48),
            first_unit: long(56),
            checksum: short(64),
        };
        let fits = head.length as usize <= MAX_BYTES && head.words <= MAX_WORDS;
        (fits && head.first_instruction.checked_add(head.instructions).is_some()).then_some(head)
    }
}

/// Begins a file with its header chunk, in one write.
pub(crate) fn begin(file: &File, payload: &[u8]) -> io::Result<()> {
    let mut bytes = FILE_MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    push_chunk(&mut bytes, Head::new(PayloadKind::Header, 0), payload);
    write(file, &bytes)
}

/// Appends a chunk in one write, so that chunks of several processes do not interleave.
pub(crate) fn append(file: &File, head: Head, payload: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    push_chunk(&mut bytes, head, payload);
    write(file, &bytes)
}

fn push_chunk(bytes: &mut Vec<u8>, head: Head, payload: &[u8]) {
    let (length, checksum) = (payload.len() as u32, crc32fast::hash(payload));
    bytes.extend_from_slice(&Head { length, checksum, ..head }.encode());
    bytes.extend_from_slice(payload);
}

/// After a short write the rest is not written: other processes may have appended meanwhile.
fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use io::Write;
    loop {
        match file.write(bytes) {
            Ok(written) if written == bytes.len() => return Ok(()),
            // Writing the rest returns the host's error, as for a full disk.
            Ok(written) => {
                return Err(file
                    .write_all(&bytes[written..])
                    .err()
                    .unwrap_or(io::ErrorKind::WriteZero.into()));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A chunk in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkLocation {
    pub head: Head,
    /// Offset of its head in the file.
    pub offset: u64,
}

/// A trace file that is being read.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: File,
    length: u64,
}

impl TraceFile {
    pub fn new(file: File) -> io::Result<TraceFile> {
        let length = file.metadata()?.len();
        Ok(TraceFile { file, length })
    }

    /// Reads bytes at an offset; fewer at the end of the file.
    pub fn bytes(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let length = self.length.saturating_sub(offset).min(length as u64);
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Reads a chunk's payload; `None` if its checksum is wrong or the file is truncated.
    pub fn payload(&self, found: &ChunkLocation) -> io::Result<Option<Vec<u8>>> {
        let bytes = self.bytes(found.offset + HEAD as u64, found.head.length as usize)?;
        let is_whole = bytes.len() == found.head.length as usize;
        Ok((is_whole && crc32fast::hash(&bytes) == found.head.checksum).then_some(bytes))
    }

    fn head(&self, offset: u64) -> io::Result<Option<Head>> {
        Ok(self.bytes(offset, HEAD)?.first_chunk().and_then(Head::decode))
    }

    /// Finds all chunks, and reports the ranges between them that are not chunks.
    pub fn chunks(&self) -> io::Result<(Vec<ChunkLocation>, Vec<TraceProblem>)> {
        let (mut chunks, mut problems) = (Vec::new(), Vec::new());
        // A payload is checked if no chunk follows it. `patience` bounds that work.
        let mut patience = self.length;
        let mut offset = FIRST_CHUNK;
        while offset < self.length {
            let Some(head) = self.head(offset)? else {
                let next = self.next_magic(offset + 1)?;
                let bytes = next - offset;
                problems.push(TraceProblem { offset, what: format!("{bytes} bytes are no chunk; skipped") });
                offset = next;
                continue;
            };
            let found = ChunkLocation { head, offset };
            let end = offset + HEAD as u64 + u64::from(head.length);
            let is_followed = end == self.length || self.head(end)?.is_some();
            let is_whole = is_followed || {
                let affordable = end <= self.length && u64::from(head.length) <= patience;
                patience -= u64::from(head.length).min(patience);
                affordable && self.payload(&found)?.is_some()
            };
            if is_whole {
                chunks.push(found);
                offset = end;
            } else {
                let next = self.next_magic(offset + 1)?;
                problems.push(TraceProblem { offset, what: "a chunk was not written whole; skipped".into() });
                offset = next;
            }
        }
        Ok((chunks, problems))
    }

    /// The offset of the next chunk magic, or the file's end.
    fn next_magic(&self, mut offset: u64) -> io::Result<u64> {
        const WINDOW: usize = 1 << 20;
        while offset < self.length {
            let bytes = self.bytes(offset, WINDOW)?;
            if let Some(at) = bytes.windows(CHUNK_MAGIC.len()).position(|window| window == CHUNK_MAGIC) {
                return Ok(offset + at as u64);
            }
            // The magic may straddle two windows.
            offset += (bytes.len() - (CHUNK_MAGIC.len() - 1).min(bytes.len() - 1)) as u64;
        }
        Ok(self.length)
    }
}

/// Compresses a section of a payload: writes its decompressed and its stored size, then the bytes. They are stored
/// uncompressed if compression does not make them smaller. With `memory_follows` the ratio is at most 16, since the
/// reader keeps the section in memory: a small file must not take much memory.
pub(crate) fn pack(
    payload: &mut Vec<u8>,
    section: &[u8],
    level: i32,
    memory_follows: bool,
) -> io::Result<()> {
    let packed = zstd::bulk::compress(section, level)?;
    let too_small = memory_follows && packed.len() < section.len() / 16;
    let stored = if packed.len() < section.len() && !too_small { &packed[..] } else { section };
    put(payload, section.len() as u64);
    put(payload, stored.len() as u64);
    payload.extend_from_slice(stored);
    Ok(())
}

/// Decompresses what [`pack`] wrote if it fits into `room` bytes, and subtracts its size from them.
pub(crate) fn unpack(
    bytes: &mut Bytes,
    room: &mut usize,
    memory_follows: bool,
) -> Result<Vec<u8>, Malformed> {
    let length = bytes.below(*room as u64 + 1, "a section claims too many bytes")? as usize;
    *room -= length;
    let stored = bytes.slice()?;
    if stored.len() == length {
        return Ok(stored.to_vec());
    }
    if memory_follows && stored.len() < length / 16 {
        return Err(Malformed("a section claims too many bytes"));
    }
    match zstd::bulk::decompress(stored, length) {
        Ok(section) if section.len() == length => Ok(section),
        _ => Err(Malformed("a section cannot be unpacked")),
    }
}
