//! Sections of code.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, SectionHeader};

use crate::error::ImageProblem;
use crate::names::text;
use crate::segments::{self, Segment};

/// A section that holds instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// Its name, such as `.text`.
    pub name: String,
    /// Link-time address of the first instruction.
    pub address: u64,
    /// Where its bytes are in the file.
    pub file: Range<usize>,
}

impl CodeSection {
    /// First address after it.
    pub fn end(&self) -> u64 {
        self.address + self.file.len() as u64
    }
}

/// The sections that hold instructions, at multiples of `alignment`; without section headers, the segments.
pub fn code_sections(
    file: &ElfFile64<LE>,
    segments: &[Segment],
    length: usize,
    alignment: u64,
) -> Result<Vec<CodeSection>, ImageProblem> {
    let table = file.elf_section_table();
    let mut code = Vec::new();
    for section in table.iter() {
        let flags = section.sh_flags(LE);
        if !flags.contains(elf::SHF_ALLOC)
            || !flags.contains(elf::SHF_EXECINSTR)
            || section.sh_type(LE) == elf::SHT_NOBITS
        {
            continue;
        }
        let name = text(table.section_name(LE, section)?).into_owned();
        let (address, size) = (section.sh_addr(LE), section.sh_size(LE));
        if !segments::is_possible(address, size) || !address.is_multiple_of(alignment) {
            return Err(ImageProblem::Damaged(format!(
                "section {name} at the impossible address {address:#x}"
            )));
        }
        let file = segments::file_range(&format!("section {name}"), section.sh_offset(LE), size, length)?;
        code.push(CodeSection { name, address, file });
    }
    if table.is_empty() {
        code.extend(segments.iter().filter(|segment| segment.executable).map(|segment| CodeSection {
            name: "segment".into(),
            address: segment.address,
            file: segment.file.clone(),
        }));
    }
    // Both in the file and in memory, so that work is bounded by the file's size.
    code.sort_by_key(|code| code.file.start);
    let overlap_in_file = code.windows(2).any(|pair| pair[0].file.end > pair[1].file.start);
    code.sort_by_key(|code| code.address);
    if overlap_in_file || code.windows(2).any(|pair| pair[0].end() > pair[1].address) {
        return Err(ImageProblem::Damaged("code sections overlap".into()));
    }
    Ok(code)
}
