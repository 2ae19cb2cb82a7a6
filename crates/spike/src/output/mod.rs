//! Writes the new image: the original file with its data in place, the new code in a segment behind it.
//!
//! The new segment has the code and the tables for unwinders. The original code becomes zeros, which are `call_pal halt`:
//! whatever should still jump there ends at once. The program headers, of which there are more than before, take the place of
//! the last of it: loaders expect the same distance between address and offset in the file as in the first segment.
//!
//! Code and heap keep their cache colors, that is their addresses modulo the size of a direct-mapped board cache, so that
//! they share its lines with the same data as before: the new code lies whole spans of colors behind the original, and a last
//! segment of one page ends where the heap must begin.

mod data;
mod debug;
mod exceptions;
mod frames;
mod sections;
mod segment;
mod symbols;

use object::elf;

use crate::assemble::{Assembly, CodeLayout, assemble_with};
use crate::elf::{Elf, ElfSection, SegmentHeader};
use crate::error::Problem;
use crate::lift::{self, MARKER};
use crate::program::Program;
use debug::DebugInformation;
use sections::OutputSection;
use segment::OutputSegment;

/// Alignment of the new segment: the largest page of an Alpha system.
const PAGE: u64 = 0x1_0000;
/// The size of the largest direct-mapped cache of the machines: the board cache of an AlphaServer 8400.
const COLOR_SPAN: u64 = 4 << 20;
/// The most bytes of the file that may lie unused before the new segment (the size of the program's `.bss`).
const MOST_UNUSED: u64 = 1 << 30;
const HEADER_BYTES: usize = 56;

/// The address of the new code: that of the original, at a page, and so many spans of colors higher that it is free.
pub fn code_base(elf: &Elf) -> u64 {
    let code = elf.sections.iter().filter(|section| lift::is_moved(section));
    let original = code.map(|section| section.address).min().unwrap_or(0) & !(PAGE - 1);
    same_color(original, loaded_end(elf).next_multiple_of(PAGE))
}

/// The first address behind all segments.
fn loaded_end(elf: &Elf) -> u64 {
    let loaded = elf.headers.iter().filter(|header| header.kind == elf::PT_LOAD.0);
    loaded.map(|header| header.address.saturating_add(header.memory_size)).max().unwrap_or(0)
}

/// The lowest address of the same color as another one that is not below a limit.
fn same_color(address: u64, limit: u64) -> u64 {
    address.wrapping_add(limit.saturating_sub(address).next_multiple_of(COLOR_SPAN))
}

/// Puts the program together. Returns the file, and where the code is.
pub fn write(program: &Program, layout: &CodeLayout) -> Result<(Vec<u8>, Assembly), Problem> {
    let elf = &program.elf;
    let loaded = || elf.headers.iter().filter(|header| header.kind == elf::PT_LOAD.0);
    let first = loaded().next().ok_or_else(|| Problem::Damaged("there is no loadable segment".into()))?;
    let base = code_base(elf);
    let used = loaded().map(|header| header.offset + header.file_size).max().unwrap_or(0);
    let room = room_for_headers(program, first);
    let offset = match room {
        Some(_) => used.next_multiple_of(PAGE),
        None => base.wrapping_sub(first.address).wrapping_add(first.offset),
    };
    if offset < used || offset - used > MOST_UNUSED {
        return Err(Problem::Damaged(format!("no room for a segment at {base:#x}")));
    }
    let mut assembly = assemble_with(program, layout, base, base)?;
    let mut segment = OutputSegment { base, offset, bytes: Vec::new() };
    segment.bytes.extend(assembly.words.iter().flat_map(|word| word.to_le_bytes()));
    let code_size = segment.bytes.len() as u64;
    let exceptions = segment.reserve();
    let exceptions = exceptions::write(program, &layout.fragments, &assembly, exceptions)?;
    segment.bytes.extend(&exceptions.bytes);
    let frames = segment.reserve();
    let tables = frames::write(program, layout, &assembly, &exceptions, frames)?;
    segment.bytes.extend(&tables.bytes);
    let address = segment.reserve();
    let location = room.unwrap_or(HeadersLocation { address, offset: segment.offset_of(address) });
    if room.is_none() {
        segment.bytes.resize(segment.bytes.len() + header_count(elf) * HEADER_BYTES, 0);
    }
    let headers = program_headers(program, &segment, location, &tables);
    if let Some(header) = headers.iter().find(|header| is_counters(program, header)) {
        // The words were computed without the counters' address, but there are as many.
        assembly = assemble_with(program, layout, base, header.address)?;
        let words = segment.bytes.as_chunks_mut::<4>().0.iter_mut().zip(&assembly.words);
        words.for_each(|(old, word)| *old = word.to_le_bytes());
    }

    let mut out = elf.bytes[..used as usize].to_vec();
    let debug = debug::rewrite(program, &assembly);
    let mut sections =
        sections::OutputSections::new(program, &assembly, code_size, &segment, &tables, &debug);
    data::patch(program, &assembly, &sections, &mut out)?;
    out.resize(offset as usize, 0);
    out.extend(&segment.bytes);
    let bytes: Vec<u8> = headers.iter().flat_map(header_bytes).collect();
    out[location.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    let symbols = symbols::table(program, layout, &assembly, &sections);
    sections.append_unloaded(elf, &mut out, symbols, added(program, debug));
    let entry = program.start(elf.entry).map_or(elf.entry, |block| assembly.block_addresses[block as usize]);
    sections.finish(&mut out, entry, location.offset, headers.len() as u16);
    Ok((out, assembly))
}

/// Where the program headers are.
#[derive(Clone, Copy)]
struct HeadersLocation {
    address: u64,
    offset: u64,
}

/// How many program headers the new image has at most: one for the code, one for the counters or the page before the heap, and
/// one for the index of the tables for unwinders.
fn header_count(elf: &Elf) -> usize {
    elf.headers.len() + 3
}

/// The end of the original code, if that is large enough for the program headers.
fn room_for_headers(program: &Program, first: &SegmentHeader) -> Option<HeadersLocation> {
    let elf = &program.elf;
    let &(start, end) = program.code.ranges.iter().max_by_key(|(start, end)| end - start)?;
    let bytes = (header_count(elf) * HEADER_BYTES) as u64;
    let address = program.code.address(end).checked_sub(bytes)? & !15;
    let offset = elf.offset(address)? as u64;
    let is_within = address >= program.code.address(start) && (offset + bytes) as usize <= elf.bytes.len();
    let is_as_first = address.wrapping_sub(first.address) == offset.wrapping_sub(first.offset);
    (is_within && is_as_first).then_some(HeadersLocation { address, offset })
}

/// Whether a program header is that of the counters.
fn is_counters(program: &Program, header: &SegmentHeader) -> bool {
    program.counters.is_some()
        && header.kind == elf::PT_LOAD.0
        && header.file_size == 0
        && header.align == PAGE
        && header.address > code_base(&program.elf)
}

fn program_headers(
    program: &Program,
    segment: &OutputSegment,
    location: HeadersLocation,
    tables: &frames::Tables,
) -> Vec<SegmentHeader> {
    let elf = &program.elf;
    let own_size = (header_count(elf) * HEADER_BYTES) as u64;
    let size = segment.bytes.len() as u64;
    let new = SegmentHeader {
        kind: elf::PT_LOAD.0,
        flags: elf::PF_R.0 | elf::PF_X.0,
        offset: segment.offset,
        address: segment.base,
        file_size: size,
        memory_size: size,
        align: PAGE,
    };
    let table = |header: &SegmentHeader, address: u64, size: u64| SegmentHeader {
        offset: segment.offset_of(address),
        address,
        file_size: size,
        memory_size: size,
        ..*header
    };
    let mut headers = Vec::with_capacity(header_count(elf));
    let last_loaded = elf.headers.iter().rposition(|header| header.kind == elf::PT_LOAD.0);
    for (index, header) in elf.headers.iter().enumerate() {
        headers.push(match elf::ProgramType(header.kind) {
            elf::PT_PHDR => SegmentHeader {
                offset: location.offset,
                address: location.address,
                file_size: own_size,
                memory_size: own_size,
                ..*header
            },
            elf::PT_GNU_EH_FRAME => continue,
            _ => *header,
        });
        if Some(index) == last_loaded {
            headers.push(new);
            headers.push(behind(program, &new));
        }
    }
    // Static images have no such header: they register the tables of the original code, and unwinders look here for others.
    if tables.index_size > 0 {
        let index = SegmentHeader { kind: elf::PT_GNU_EH_FRAME.0, flags: elf::PF_R.0, align: 4, ..new };
        headers.push(table(&index, tables.index, tables.index_size));
    }
    headers
}

/// The last segment, behind the one with the code: the counters, or the page before the heap. It has no bytes in the file.
fn behind(program: &Program, code: &SegmentHeader) -> SegmentHeader {
    let end = (code.address + code.memory_size).next_multiple_of(PAGE);
    let last = SegmentHeader { offset: code.offset, file_size: 0, ..*code };
    match program.counters {
        Some(counters) => SegmentHeader {
            flags: elf::PF_R.0 | elf::PF_W.0,
            address: end,
            memory_size: counters.size,
            ..last
        },
        None => {
            let heap = same_color(loaded_end(&program.elf), end + PAGE);
            let address = (heap - 1) & !(PAGE - 1);
            SegmentHeader { flags: elf::PF_R.0, address, memory_size: heap - address, ..last }
        }
    }
}

fn header_bytes(header: &SegmentHeader) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&header.kind.to_le_bytes());
    bytes[4..8].copy_from_slice(&header.flags.to_le_bytes());
    let words =
        [header.offset, header.address, header.address, header.file_size, header.memory_size, header.align];
    for (word, bytes) in words.iter().zip(bytes[8..].chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The sections that the original does not have, or that are made anew: debug information, and what wrote the image.
fn added(program: &Program, debug: DebugInformation) -> Vec<OutputSection> {
    let mut text =
        format!("pathlength {} from {} instructions\n", env!("CARGO_PKG_VERSION"), program.code.words.len());
    if let Some(reason) = debug.dropped {
        text += &format!("debug information was left out: {reason}\n");
    }
    let debug = debug.sections.into_iter().map(|(name, bytes)| unloaded(name, bytes));
    debug.chain([unloaded(MARKER, text.into_bytes())]).collect()
}

fn unloaded(name: &str, bytes: Vec<u8>) -> OutputSection {
    OutputSection {
        header: ElfSection {
            name: name.into(),
            kind: elf::SHT_PROGBITS.0,
            flags: 0,
            address: 0,
            offset: 0,
            size: bytes.len() as u64,
            link: 0,
            info: 0,
            align: 1,
            entry_size: 0,
        },
        bytes: Some(bytes),
    }
}
