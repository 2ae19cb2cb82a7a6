//! The parts of the image that do not move: words that refer to code must refer to the same code, and everything else must
//! be as it was.

use object::elf;

use super::images::Images;
use super::proof::ProcedureEntry;
use crate::elf::Elf;
use crate::lift;
use crate::program::{DataForm, LENGTH, Program};

/// The result of a comparison of data.
#[derive(Debug, Default)]
pub struct DataComparison {
    /// Addresses where it is not the same.
    pub differences: Vec<u64>,
    /// Entries that other images and the loader know.
    pub entries: Vec<ProcedureEntry>,
}

/// Words of a table of the image that hold addresses of code: the address, and how the value is read.
fn tables(elf: &Elf) -> Vec<u64> {
    let mut addresses = Vec::new();
    for section in &elf.sections {
        let entries = |size: u64| (0..section.size / size).map(move |index| section.address + index * size);
        match section.kind {
            kind if kind == elf::SHT_DYNSYM.0 => addresses.extend(entries(24).map(|at| at + 8)),
            kind if kind == elf::SHT_RELA.0 && section.is_loaded() => {
                addresses.extend(entries(24).map(|at| at + 16));
            }
            kind if kind == elf::SHT_DYNAMIC.0 => {
                let tag = |at: u64| elf.at::<8>(at).map(u64::from_le_bytes);
                let is_code = |at: &u64| {
                    tag(*at).is_some_and(|tag| [elf::DT_INIT.0 as u64, elf::DT_FINI.0 as u64].contains(&tag))
                };
                addresses.extend(entries(16).filter(is_code).map(|at| at + 8));
            }
            _ => {}
        }
    }
    addresses
}

/// Compares the data, and notes what its words refer to.
pub fn compare(program: &Program, optimized: &Elf, images: &mut Images) -> DataComparison {
    let mut data = DataComparison::default();
    let original = &program.elf;
    let mut explained: Vec<(u64, u64)> = Vec::new();
    let word = |elf: &Elf, address: u64| elf.at::<8>(address).map(u64::from_le_bytes);
    for reference in &program.data {
        let address = reference.address;
        let size = match reference.form {
            DataForm::Absolute => 8,
            DataForm::GlobalPointerRelative(_) => 4,
        };
        let read = |elf: &Elf| match reference.form {
            DataForm::Absolute => word(elf, address),
            DataForm::GlobalPointerRelative(gp) => {
                let distance = elf.at::<4>(address).map(i32::from_le_bytes)?;
                Some(gp.wrapping_add_signed(distance.into()))
            }
        };
        let (Some(old), Some(new)) = (read(original), read(optimized)) else {
            data.differences.push(address);
            continue;
        };
        explained.push((address, address + size));
        images.add_word(address, old, new);
        // Every word with an absolute address can be a pointer to a procedure.
        if images.original.entries.contains_key(&old) {
            data.entries.push(ProcedureEntry { original: old, optimized: new });
        } else if !images.optimized.contains(new) {
            data.differences.push(address);
        }
    }
    for address in tables(original) {
        let (Some(old), Some(new)) = (word(original, address), word(optimized, address)) else { continue };
        if images.original.contains(old) && old != new {
            explained.push((address, address + 8));
            if images.original.entries.contains_key(&old) {
                data.entries.push(ProcedureEntry { original: old, optimized: new });
            }
        }
    }
    data.entries.push(ProcedureEntry { original: original.entry, optimized: optimized.entry });
    explained.extend(rewritten(original));
    explained.sort_unstable();
    compare_bytes(original, optimized, &explained, &mut data.differences);
    data
}

/// The parts of the image that are written anew: the code, the headers of the file, the section of each symbol.
fn rewritten(elf: &Elf) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for section in &elf.sections {
        let end = section.address + section.size;
        if lift::is_moved(section) {
            ranges.push((section.address, end));
        }
        if section.kind == elf::SHT_DYNSYM.0 {
            let entries = (0..section.size / 24).map(|index| section.address + index * 24);
            ranges.extend(entries.map(|at| (at + 6, at + 8)));
        }
    }
    let loaded = elf.headers.iter().find(|one| one.kind == elf::PT_LOAD.0 && one.offset == 0);
    ranges.extend(loaded.map(|one| (one.address, one.address + 64)));
    ranges
}

/// Notes the quadwords that differ, except in these ranges.
fn compare_bytes(original: &Elf, optimized: &Elf, explained: &[(u64, u64)], differences: &mut Vec<u64>) {
    let is_explained = |address: u64| {
        let after = explained.partition_point(|range| range.0 <= address);
        explained[..after].iter().rev().take(4).any(|range| address < range.1)
    };
    for header in original.headers.iter().filter(|one| one.kind == elf::PT_LOAD.0) {
        let bytes = |elf: &Elf| {
            let start = elf.offset(header.address)?;
            elf.bytes.get(start..start + header.file_size as usize).map(<[u8]>::to_vec)
        };
        let (Some(old), Some(new)) = (bytes(original), bytes(optimized)) else {
            differences.push(header.address);
            continue;
        };
        let differing = (0..old.len()).filter(|&at| old[at] != new[at]);
        let mut addresses: Vec<u64> = differing
            .map(|at| header.address + at as u64)
            .filter(|&address| !is_explained(address))
            .map(|address| address / LENGTH * LENGTH)
            .collect();
        addresses.dedup();
        differences.extend(addresses);
    }
}
