//! From a linked image to the intermediate representation.
//!
//! A relocation is used for its address and type only; the value comes from the instruction or datum itself, since the
//! linker does not keep addends of section symbols up to date.

mod blocks;
mod extents;
mod jumps;
mod relocations;

use object::elf;

use crate::elf::{Elf, ElfSection};
use crate::error::Problem;
use crate::exceptions;
use crate::program::{CodeBlockId, CodeExtent, DataForm, DataReference, Program, Reference};
use crate::unwind::UnwindingTables;

/// The section whose code stays where it is: it is reached through the global offset table only.
const LINKAGE: &str = ".plt";
/// The section that spike adds to what it writes.
pub const MARKER: &str = ".pathlength.spike";

/// Takes an image apart. `bytes` are those of a file that [`image::Image`] accepts.
pub fn lift(bytes: Vec<u8>) -> Result<Program, Problem> {
    let elf = Elf::read(bytes)?;
    check(&elf)?;
    let mut code = code_map(&elf)?;
    let mut row_of = vec![crate::unwind::NO_ROW; code.words.len()];
    let frames = UnwindingTables::read(&elf, |start, end, row| {
        let Some(first) = code.index(start) else { return };
        let count = (end.saturating_sub(start) / 4) as usize;
        row_of[first as usize..].iter_mut().take(count).for_each(|one| *one = row);
    })?;
    let tables = exceptions::read(&elf, &code, &frames);
    let named = extents::named(&elf, &code);
    let found = relocations::read(&elf, &code, &named)?;
    let mut extents = extents::fill(named, &code, &found);
    let leaders = blocks::leaders(&code, &extents, &found, &elf, &tables);
    let mut program = blocks::build(
        elf,
        &mut code,
        &mut extents,
        &leaders,
        &found,
        &exceptions::landing_pads(&tables),
        (frames, &row_of),
    )?;
    program.data = data_references(&program.code, &found);
    mark_address_taken(&mut program, &found);
    jumps::resolve(&mut program, &found);
    exceptions::assign(&mut program, tables);
    Ok(program)
}

fn check(elf: &Elf) -> Result<(), Problem> {
    if elf.section(MARKER).is_some() {
        return Err(Problem::Rewritten);
    }
    if elf.sections.is_empty() {
        return Err(Problem::NoSections);
    }
    if elf.symbols.is_empty() {
        return Err(Problem::NoSymbols);
    }
    if !elf.kept_relocations().any(|(_, section)| section.is_code()) {
        return Err(Problem::NoRelocations);
    }
    Ok(())
}

/// Whether the code of a section is moved.
pub fn is_moved(section: &ElfSection) -> bool {
    section.is_code() && section.name != LINKAGE
}

/// The largest extent of code, from its first to its last section: what a branch spans many times.
const MOST_CODE: u64 = 1 << 28;

fn code_map(elf: &Elf) -> Result<CodeExtent, Problem> {
    let mut sections: Vec<&ElfSection> = elf.sections.iter().filter(|one| is_moved(one)).collect();
    sections.sort_by_key(|section| section.address);
    let (Some(first), Some(last)) = (sections.first(), sections.last()) else {
        return Err(Problem::Damaged("there is no code section".into()));
    };
    let (base, length) = (first.address, last.address - first.address + last.size);
    if length > MOST_CODE || base % 4 != 0 {
        return Err(Problem::Damaged("code sections are too far apart".into()));
    }
    let mut code = CodeExtent {
        base,
        words: vec![0; length.div_ceil(4) as usize],
        ranges: Vec::new(),
        block_at: Vec::new(),
    };
    for section in sections {
        let start = ((section.address - base) / 4) as usize;
        let words = elf.data(section).as_chunks::<4>().0;
        if section.address % 4 != 0 || code.ranges.last().is_some_and(|&(_, end)| end as usize > start) {
            return Err(Problem::Damaged(format!("section {} overlaps another one", section.name)));
        }
        for (old, word) in code.words[start..].iter_mut().zip(words) {
            *old = u32::from_le_bytes(*word);
        }
        code.ranges.push((start as u32, (start + words.len()) as u32));
    }
    code.block_at = vec![None; code.words.len()];
    Ok(code)
}

fn data_references(code: &CodeExtent, found: &relocations::FoundRelocations) -> Vec<DataReference> {
    let words = found.data.iter().filter_map(|&(at, form, address)| {
        Some(DataReference { address: at, form, target: code.block(address)? })
    });
    let slots = found.slots.iter().filter_map(|(&at, &address)| {
        Some(DataReference { address: at, form: DataForm::Absolute, target: code.block(address)? })
    });
    let mut all: Vec<DataReference> = words.chain(slots).collect();
    all.sort_by_key(|one| one.address);
    all.dedup_by_key(|one| one.address);
    all
}

/// Marks the blocks that can be reached otherwise than by the branches of the program.
fn mark_address_taken(program: &mut Program, found: &relocations::FoundRelocations) {
    let exported: Vec<u64> = exported(&program.elf).collect();
    let addresses = exported.into_iter().chain(found.taken.iter().copied()).chain([program.elf.entry]);
    let taken: Vec<_> = addresses.filter_map(|address| program.code.block(address)).collect();
    let data = program.data.iter().map(|reference| reference.target);
    let entered = program.blocks.iter().flat_map(|block| {
        let called = block.call().and_then(|call| match call.reference {
            Reference::Branch(target) => target.block(),
            _ => None,
        });
        called.into_iter().chain(block.exit.successors()).map(move |target| (block.procedure, target))
    });
    let is_other =
        |&(procedure, target): &(u32, CodeBlockId)| program.blocks[target as usize].procedure != procedure;
    let entered = entered.filter(is_other).map(|(_, target)| target);
    for block in taken.into_iter().chain(data).chain(entered).collect::<Vec<_>>() {
        program.blocks[block as usize].is_address_taken = true;
    }
}

/// The addresses that other images can refer to.
fn exported(elf: &Elf) -> impl Iterator<Item = u64> {
    let tables = elf.sections.iter().filter(|section| section.kind == elf::SHT_DYNSYM.0);
    let entries = tables.flat_map(|table| elf.data(table).as_chunks::<24>().0);
    let dynamic = entries.map(|entry| u64::from_le_bytes(std::array::from_fn(|index| entry[8 + index])));
    let global =
        elf.symbols.iter().filter(|symbol| symbol.is_function() && symbol.info >> 4 != elf::STB_LOCAL.0);
    dynamic.chain(dynamic_entries(elf)).chain(global.map(|symbol| symbol.value))
}

/// The functions that the dynamic section names.
pub fn dynamic_entries(elf: &Elf) -> impl Iterator<Item = u64> {
    let tables = elf.sections.iter().filter(|section| section.kind == elf::SHT_DYNAMIC.0);
    let entries = tables.flat_map(|table| elf.data(table).as_chunks::<16>().0);
    entries.filter_map(|entry| {
        let [tag, value] =
            [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|index| entry[at + index])));
        [elf::DT_INIT.0 as u64, elf::DT_FINI.0 as u64].contains(&tag).then_some(value)
    })
}
