//! Damages traces in all ways, and reads what is left: nothing may panic, take long or much memory.
//!
//! ```text
//! cargo run -p pathlength-trace --example fuzz -- SECONDS SEED TRACE...
//! ```
//!
//! The traces should be small. Bytes are changed, cut out and repeated: of the file as it is; of heads, of
//! payloads and of what is packed in them, with their checksums made right again. The file that is read is kept
//! if reading it fails.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use pathlength_trace::Trace;
use pathlength_trace::check::check;

/// Of the file's beginning, and of a head.
const BEGINNING: usize = 12;
const HEAD: usize = 72;

/// Random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Changes, cuts out and repeats bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            let end = (at + 1 + self.below(30)).min(bytes.len());
            match self.below(8) {
                0 => drop(bytes.drain(at..end)),
                1 => {
                    let again = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, again);
                }
                2 => bytes.truncate(at),
                3 => bytes[at..end].fill(0xff),
                4 => bytes[at..end].iter_mut().for_each(|byte| *byte = self.next() as u8),
                _ if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                _ => {}
            }
        }
    }
}

/// A chunk's head and payload.
type Chunk = (Vec<u8>, Vec<u8>);

fn split(file: &[u8]) -> Vec<Chunk> {
    let (mut chunks, mut at) = (Vec::new(), BEGINNING);
    while at < file.len() {
        let length = u32::from_le_bytes(file[at + 24..at + 28].try_into().unwrap()) as usize;
        let payload = at + HEAD..at + HEAD + length;
        chunks.push((file[at..at + HEAD].to_vec(), file[payload].to_vec()));
        at += HEAD + length;
    }
    chunks
}

/// Makes a chunk's length and checksums right.
fn seal((head, payload): &mut Chunk) {
    head[24..28].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[64..68].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let checksum = crc32fast::hash(&head[..HEAD - 4]);
    head[HEAD - 4..].copy_from_slice(&checksum.to_le_bytes());
}

fn number(bytes: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Damages what is packed in a payload.
fn damage_sections(random: &mut Random, payload: &mut Vec<u8>) {
    let (mut rest, mut sections) = (&payload[..], Vec::new());
    while !rest.is_empty() {
        let (length, packed) = (number(&mut rest), number(&mut rest));
        let (section, behind) = rest.split_at(packed);
        rest = behind;
        let is_packed = packed != length;
        sections.push(if is_packed {
            zstd::bulk::decompress(section, length).unwrap()
        } else {
            section.into()
        });
    }
    let filled: Vec<usize> = (0..sections.len()).filter(|&index| !sections[index].is_empty()).collect();
    let chosen = filled[random.below(filled.len())];
    random.damage(&mut sections[chosen]);
    payload.clear();
    for section in sections {
        put(payload, section.len());
        put(payload, section.len());
        payload.extend(section);
    }
}

fn damaged(random: &mut Random, file: &[u8]) -> Vec<u8> {
    let kind = random.below(4);
    if kind == 0 {
        let mut bytes = file.to_vec();
        random.damage(&mut bytes);
        return bytes;
    }
    let mut chunks = split(file);
    for _ in 0..1 + random.below(2) {
        // Not the header: without it nothing is read.
        let index = 1 + random.below(chunks.len() - 1);
        let chunk = &mut chunks[index];
        match kind {
            1 => {
                let at = 8 + random.below(HEAD - 16);
                chunk.0[at] = random.next() as u8;
            }
            2 => random.damage(&mut chunk.1),
            _ => damage_sections(random, &mut chunk.1),
        }
        seal(chunk);
        if random.below(10) == 0 {
            let other = 1 + random.below(chunks.len() - 1);
            chunks.swap(index, other);
        }
    }
    let chunks = chunks.into_iter().flat_map(|(head, payload)| [head, payload].concat());
    file[..BEGINNING].iter().copied().chain(chunks).collect()
}

/// Reads a file in every way. Returns how many chunks could be read.
fn read(path: &Path, random: &mut Random) -> usize {
    let Ok(trace) = Trace::open(path) else { return 0 };
    let mut words = Vec::new();
    let chunks = (0..trace.chunks().len()).filter(|&index| trace.read(index, &mut words).is_ok()).count();
    check(&trace);
    let _ = trace.seek(0, random.next() % 100_000);
    let _ = trace.unit(random.next() % 1100);
    let (mut ordered, mut schedule) = (trace.ordered(), trace.schedule(2, 1000));
    // One that cannot be read is left out.
    while !matches!(ordered.next_piece(), Ok(None)) {}
    while !matches!(schedule.next_turn(), Ok(None)) {}
    chunks
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, seconds, seed, traces @ ..] = &arguments[..] else {
        return Err("usage: fuzz SECONDS SEED TRACE...".into());
    };
    let traces: Vec<Vec<u8>> = traces.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    if traces.is_empty() {
        return Err("usage: fuzz SECONDS SEED TRACE...".into());
    }
    let mut random = Random(seed.parse::<u64>()? | 1 << 63);
    let path = std::env::temp_dir().join(format!("damaged-{seed}.trace"));
    let (begin, limit) = (Instant::now(), Duration::from_secs(seconds.parse()?));
    let (mut files, mut opened, mut longest) = (0u64, 0u64, Duration::ZERO);
    while begin.elapsed() < limit {
        let original = random.below(traces.len());
        let bytes = damaged(&mut random, &traces[original]);
        std::fs::write(&path, &bytes)?;
        let start = Instant::now();
        opened += u64::from(read(&path, &mut random) > 0);
        longest = longest.max(start.elapsed());
        files += 1;
    }
    std::fs::remove_file(&path)?;
    println!("{files} files, of {opened} records could be read; the longest took {longest:.1?}");
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}
