//! From the translator's counters and log to counts as all commands use them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use events::{Block, Counts, LoadedImage};
use isa::InstructionSet;
use object::{Object, ObjectSegment};

use crate::shared::{BLOCK_ENTRY, FinishedResults, IMAGE_ENTRY};

/// The machine of x86-64 in ELF headers.
const EM_X86_64: u16 = 62;

/// A part of a file that was mapped for execution.
struct MappedPart {
    address: u64,
    offset: u64,
    path: PathBuf,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The counts of a finished run.
pub(crate) fn finished_counts(results: &FinishedResults) -> io::Result<Counts> {
    let (mut parts, mut blocks) = (Vec::new(), Vec::new());
    for (tag, contents) in results.entries() {
        let first = word(contents, 0).unwrap_or_default();
        match tag {
            IMAGE_ENTRY => parts.push(MappedPart {
                address: first,
                offset: word(contents, 8).unwrap_or_default(),
                path: OsString::from_vec(contents.get(16..).unwrap_or_default().to_vec()).into(),
            }),
            BLOCK_ENTRY => {
                let image = contents.get(8..12).and_then(|it| it.try_into().ok()).map(u32::from_le_bytes);
                blocks.push((first, image, contents.get(12..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    let (calls, executions) = results.counts(blocks.len())?;
    let system_calls = (0..).zip(calls).filter(|&(_, count)| count > 0).collect();
    let (images, numbers) = images(&parts);
    let mut counts = Counts { images, system_calls, ..Counts::default() };
    let set = isa::any_of_elf_machine(EM_X86_64).expect("the instruction set of this machine");
    for (&(address, image, code), count) in blocks.iter().zip(executions) {
        if count > 0 {
            let image = image.and_then(|part| numbers.get(part as usize).copied().flatten());
            counts.blocks.push(block(set, address, image, code));
            counts.executions.push(count);
        }
    }
    Ok(counts)
}

fn block(set: &'static dyn InstructionSet, address: u64, image: Option<u32>, code: &[u8]) -> Block {
    let words = isa::x86_64_words(code, address);
    Block { image, code: code.to_vec(), ..Block::new(set, address, words) }
}

/// The images, each once, and the number of the image of each part.
fn images(parts: &[MappedPart]) -> (Vec<LoadedImage>, Vec<Option<u32>>) {
    let mut images: Vec<LoadedImage> = Vec::new();
    let mut files: HashMap<&Path, Option<Vec<u8>>> = HashMap::new();
    let numbers = parts.iter().map(|part| {
        let contents = files.entry(&part.path).or_insert_with(|| fs::read(&part.path).ok()).as_deref();
        let image = loaded(part, contents?)?;
        let known = images.iter().position(|one| *one == image);
        Some(known.unwrap_or_else(|| {
            images.push(image);
            images.len() - 1
        }) as u32)
    });
    let numbers = numbers.collect();
    (images, numbers)
}

/// The image of which a part was mapped.
fn loaded(part: &MappedPart, contents: &[u8]) -> Option<LoadedImage> {
    let file = object::File::parse(contents).ok()?;
    let mapped = file.segments().find(|segment| {
        let (offset, size) = segment.file_range();
        (offset & !0xfff..offset.saturating_add(size)).contains(&part.offset)
    })?;
    let (offset, _) = mapped.file_range();
    let link = mapped.address().wrapping_sub(offset).wrapping_add(part.offset);
    let bias = part.address.wrapping_sub(link);
    let start = file.segments().map(|segment| segment.address()).min()?;
    let end = file.segments().map(|segment| segment.address().saturating_add(segment.size())).max()?;
    Some(LoadedImage {
        path: part.path.clone(),
        start: start.wrapping_add(bias),
        end: end.wrapping_add(bias),
        bias,
    })
}
