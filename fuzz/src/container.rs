//! Splits trace files into chunks and sections (docs/trace-format.md), and assembles them with correct checksums, so
//! that a mutation is not rejected because of its checksum.

use std::ops::Range;

/// The file's magic number and version.
const BEGINNING: usize = 12;
const HEAD: usize = 72;
/// A head's magic number.
const MAGIC: [u8; 8] = [0xf5, 0x63, 0x68, 0x75, 0x6e, 0x6b, 0xa3, 0x1c];
const LENGTH: Range<usize> = 24..28;
const PAYLOAD_CHECKSUM: Range<usize> = 64..68;
/// Maximum size of a decompressed section: more than in any seed, so that a damaged length does not allocate much
/// memory.
const LARGEST_SECTION: usize = 1 << 20;

/// A chunk: head and payload.
pub struct Chunk {
    /// The head, whose length and checksums [`File::bytes`] corrects.
    pub head: [u8; HEAD],
    /// The payload.
    pub payload: Vec<u8>,
}

/// A trace file in parts.
pub struct File {
    beginning: [u8; BEGINNING],
    /// Its chunks, at least one.
    pub chunks: Vec<Chunk>,
}

impl File {
    /// Splits a file. None unless it consists of whole chunks only.
    pub fn split(bytes: &[u8]) -> Option<File> {
        let (beginning, mut rest) = bytes.split_first_chunk()?;
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let (head, behind) =
                rest.split_first_chunk::<HEAD>().filter(|(head, _)| head.starts_with(&MAGIC))?;
            let length = u32::from_le_bytes(head[LENGTH].try_into().expect("four bytes"));
            let (payload, behind) = behind.split_at_checked(length as usize)?;
            chunks.push(Chunk { head: *head, payload: payload.into() });
            rest = behind;
        }
        (!chunks.is_empty()).then_some(File { beginning: *beginning, chunks })
    }

    /// The bytes of the file, with correct lengths and checksums.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.beginning.to_vec();
        for Chunk { head, payload } in &self.chunks {
            let mut head = *head;
            head[..MAGIC.len()].copy_from_slice(&MAGIC);
            head[LENGTH].copy_from_slice(&(payload.len() as u32).to_le_bytes());
            head[PAYLOAD_CHECKSUM].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
            let checksum = crc32fast::hash(&head[..HEAD - 4]);
            head[HEAD - 4..].copy_from_slice(&checksum.to_le_bytes());
            bytes.extend(head);
            bytes.extend(payload);
        }
        bytes
    }
}

/// The decompressed sections of a payload. None if it has no sections.
pub fn sections(payload: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut rest, mut sections) = (payload, Vec::new());
    while !rest.is_empty() {
        let (length, stored) = (number(&mut rest)?, number(&mut rest)?);
        let (section, behind) = rest.split_at_checked(stored)?;
        sections.push(match length == stored {
            true => section.into(),
            false => zstd::bulk::decompress(section, length.min(LARGEST_SECTION)).ok()?,
        });
        rest = behind;
    }
    Some(sections)
}

/// A payload of these sections, stored uncompressed.
pub fn payload(sections: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = Vec::new();
    for section in sections {
        put(&mut payload, section.len());
        put(&mut payload, section.len());
        payload.extend(section);
    }
    payload
}

/// Decodes a varint at the beginning.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..28).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
