//! The table of sections of the new image.

use object::elf;

use super::debug::{DebugInformation, is_debug};
use super::frames::Tables;
use super::segment::OutputSegment;
use crate::assemble::Assembly;
use crate::elf::{Elf, ElfSection};
use crate::lift;
use crate::program::Program;

/// A section with new contents, or those of the original at another address.
pub struct OutputSection {
    /// The header; `link` and `info` are original indexes.
    pub header: ElfSection,
    /// New contents.
    pub bytes: Option<Vec<u8>>,
}

/// The sections of the new image.
pub struct OutputSections {
    all: Vec<OutputSection>,
    /// The new index of each original section.
    numbers: Vec<u16>,
    /// The new index of the section with the code.
    pub code: u16,
}

/// A symbol table, with its names.
pub struct SymbolTable {
    /// The entries.
    pub entries: Vec<u8>,
    /// The names.
    pub names: Vec<u8>,
    /// The number of local symbols.
    pub locals: u32,
}

const HEADER_BYTES: usize = 64;

impl OutputSections {
    /// The sections that remain: without the relocations that the linker kept, which no longer apply, and without debug
    /// information that describes the original code.
    pub fn new(
        program: &Program,
        assembly: &Assembly,
        size: u64,
        segment: &OutputSegment,
        tables: &Tables,
        debug: &DebugInformation,
    ) -> OutputSections {
        let elf = &program.elf;
        let code = main_code(elf);
        let mut sections = OutputSections { all: Vec::new(), numbers: vec![0; elf.sections.len()], code: 0 };
        let mut moved = Vec::new();
        for (index, section) in elf.sections.iter().enumerate() {
            let is_kept_relocation = section.kind == elf::SHT_RELA.0 && !section.is_loaded();
            if is_kept_relocation
                || !section.is_loaded() && is_debug(&section.name) && !debug.keeps(&section.name)
            {
                continue;
            }
            let is_moved = lift::is_moved(section);
            if is_moved && code != Some(index) {
                moved.push(index);
                continue;
            }
            let mut header = section.clone();
            let range = match section.name.as_str() {
                _ if is_moved => Some((assembly.base, size)),
                ".eh_frame_hdr" if tables.index_size > 0 => Some((tables.index, tables.index_size)),
                ".eh_frame" if tables.tables_size > 0 => Some((tables.tables, tables.tables_size)),
                _ => None,
            };
            if let Some((address, size)) = range {
                header = ElfSection { address, size, offset: segment.offset_of(address), ..header };
            }
            sections.numbers[index] = sections.all.len() as u16;
            if is_moved {
                sections.code = sections.all.len() as u16;
            }
            sections.all.push(OutputSection { header, bytes: None });
        }
        moved.into_iter().for_each(|index| sections.numbers[index] = sections.code);
        sections
    }

    /// The new index of a section; special ones remain.
    pub fn renumber(&self, index: u16) -> u16 {
        if index >= elf::SHN_LORESERVE {
            index
        } else {
            self.numbers.get(usize::from(index)).copied().unwrap_or(0)
        }
    }

    /// Appends the sections that are not loaded.
    pub fn append_unloaded(
        &mut self,
        elf: &Elf,
        out: &mut Vec<u8>,
        symbols: SymbolTable,
        added: Vec<OutputSection>,
    ) {
        self.all.extend(added);
        let names = self.all.iter().position(|one| one.header.name == ".shstrtab");
        let strings =
            self.all.iter().find(|one| one.header.kind == elf::SHT_SYMTAB.0).map(|one| one.header.link);
        let strings = strings.map(|link| usize::from(self.renumber(link as u16)));
        for index in 1..self.all.len() {
            let one = &mut self.all[index];
            if one.header.is_loaded() || one.header.kind == elf::SHT_NOBITS.0 {
                continue;
            }
            let bytes = match &one.bytes {
                _ if Some(index) == names => continue,
                _ if one.header.kind == elf::SHT_SYMTAB.0 => {
                    one.header.info = symbols.locals;
                    symbols.entries.as_slice()
                }
                _ if Some(index) == strings => symbols.names.as_slice(),
                Some(bytes) => bytes.as_slice(),
                None => elf.data(&one.header),
            };
            append(&mut one.header, out, bytes);
        }
    }

    /// Appends the table of sections, and changes the file's header.
    pub fn finish(mut self, out: &mut Vec<u8>, entry: u64, headers: u64, header_count: u16) {
        let mut names = vec![0];
        let offsets: Vec<u32> =
            self.all.iter().map(|one| add_name(&mut names, one.header.name.as_bytes())).collect();
        let own = self.all.iter().position(|one| one.header.name == ".shstrtab").unwrap_or(0);
        if own != 0 {
            append(&mut self.all[own].header, out, &names);
        }
        out.resize(out.len().next_multiple_of(8), 0);
        let table = out.len() as u64;
        for (section, name) in self.all.iter().zip(offsets) {
            out.extend(self.header_bytes(&section.header, name));
        }
        out[0x18..0x20].copy_from_slice(&entry.to_le_bytes());
        out[0x20..0x28].copy_from_slice(&headers.to_le_bytes());
        out[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        out[0x38..0x3a].copy_from_slice(&header_count.to_le_bytes());
        out[0x3c..0x3e].copy_from_slice(&(self.all.len() as u16).to_le_bytes());
        out[0x3e..0x40].copy_from_slice(&(own as u16).to_le_bytes());
    }

    fn header_bytes(&self, section: &ElfSection, name: u32) -> [u8; HEADER_BYTES] {
        let link = u32::from(self.renumber(section.link as u16));
        let refers = section.kind == elf::SHT_RELA.0 || section.flags & elf::SHF_INFO_LINK.0 != 0;
        let info = if refers { u32::from(self.renumber(section.info as u16)) } else { section.info };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&name.to_le_bytes());
        bytes[4..8].copy_from_slice(&section.kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&section.flags.to_le_bytes());
        bytes[16..24].copy_from_slice(&section.address.to_le_bytes());
        bytes[24..32].copy_from_slice(&section.offset.to_le_bytes());
        bytes[32..40].copy_from_slice(&section.size.to_le_bytes());
        bytes[40..44].copy_from_slice(&link.to_le_bytes());
        bytes[44..48].copy_from_slice(&info.to_le_bytes());
        bytes[48..56].copy_from_slice(&section.align.to_le_bytes());
        bytes[56..64].copy_from_slice(&section.entry_size.to_le_bytes());
        bytes
    }
}

/// The section whose header the new code gets.
fn main_code(elf: &Elf) -> Option<usize> {
    let moved = |index: &usize| lift::is_moved(&elf.sections[*index]);
    let mut all = (0..elf.sections.len()).filter(moved);
    let text = all.clone().find(|&index| elf.sections[index].name == ".text");
    text.or_else(|| all.next())
}

fn append(header: &mut ElfSection, out: &mut Vec<u8>, bytes: &[u8]) {
    out.resize(out.len().next_multiple_of(header.align.clamp(1, 16) as usize), 0);
    header.offset = out.len() as u64;
    header.size = bytes.len() as u64;
    out.extend(bytes);
}

/// Adds a name to a table of names. Returns its offset.
pub fn add_name(names: &mut Vec<u8>, name: &[u8]) -> u32 {
    let offset = names.len() as u32;
    names.extend(name);
    names.push(0);
    offset
}
