//! The sections, symbols and relocations of a linked image, as far as rewriting it needs them.

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader, Sym};

use crate::error::Problem;

/// No address of a process is as high: those of the processors have 43 bits.
const HIGHEST: u64 = 1 << 43;

/// A section header with its name.
#[derive(Clone, Debug)]
pub struct ElfSection {
    /// The name.
    pub name: String,
    /// The type (`SHT_*`).
    pub kind: u32,
    /// The flags (`SHF_*`).
    pub flags: u64,
    /// Link-time address; 0 if it is not loaded.
    pub address: u64,
    /// Where its bytes are in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Index of an associated section.
    pub link: u32,
    /// Another index; of relocations, that of the section that they apply to.
    pub info: u32,
    /// Alignment of the address.
    pub align: u64,
    /// Bytes of an entry of a table.
    pub entry_size: u64,
}

impl ElfSection {
    /// Whether it is loaded.
    pub fn is_loaded(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// Whether it holds instructions.
    pub fn is_code(&self) -> bool {
        self.is_loaded() && self.flags & elf::SHF_EXECINSTR.0 != 0 && self.kind == elf::SHT_PROGBITS.0
    }

    /// Whether it lies at this address.
    pub fn contains(&self, address: u64) -> bool {
        self.is_loaded() && address.wrapping_sub(self.address) < self.size
    }
}

/// A program header.
#[derive(Clone, Copy, Debug)]
pub struct SegmentHeader {
    /// The type (`PT_*`).
    pub kind: u32,
    /// The flags (`PF_*`).
    pub flags: u32,
    /// Where its bytes are in the file.
    pub offset: u64,
    /// Link-time address.
    pub address: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Alignment.
    pub align: u64,
}

/// An entry of a symbol table.
#[derive(Clone, Debug)]
pub struct ElfSymbol {
    /// The name, with its version.
    pub name: String,
    /// The name as the image has it, in any encoding.
    pub name_bytes: Vec<u8>,
    /// Binding and type.
    pub info: u8,
    /// Visibility, and Alpha's bits on gp.
    pub other: u8,
    /// The section; may be a special one.
    pub section: u16,
    /// Link-time address.
    pub value: u64,
    /// Bytes.
    pub size: u64,
}

impl ElfSymbol {
    /// Whether it is a function.
    pub fn is_function(&self) -> bool {
        self.info & 15 == elf::STT_FUNC.0
    }
}

/// A relocation.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// The address that it applies to.
    pub address: u64,
    /// The type (`R_ALPHA_*`).
    pub kind: u32,
    /// Index of its symbol.
    pub symbol: u32,
    /// The addend.
    pub addend: i64,
}

/// A linked image in parts.
#[derive(Clone, Debug)]
pub struct Elf {
    /// The file.
    pub bytes: Vec<u8>,
    /// The sections; the first one is the null section.
    pub sections: Vec<ElfSection>,
    /// The program headers.
    pub headers: Vec<SegmentHeader>,
    /// The full symbol table.
    pub symbols: Vec<ElfSymbol>,
    /// Address of the first instruction.
    pub entry: u64,
}

impl Elf {
    /// Reads a file that [`image::Image`] has accepted.
    pub fn read(bytes: Vec<u8>) -> Result<Elf, Problem> {
        let file = ElfFile64::<LE>::parse(bytes.as_slice())?;
        let table = file.elf_section_table();
        let mut sections = Vec::new();
        for section in table.iter() {
            let name = image::text(table.section_name(LE, section)?).into_owned();
            sections.push(ElfSection {
                name,
                kind: section.sh_type(LE).0,
                flags: section.sh_flags(LE).0,
                address: section.sh_addr(LE),
                offset: section.sh_offset(LE),
                size: section.sh_size(LE),
                link: section.sh_link(LE),
                info: section.sh_info(LE),
                align: section.sh_addralign(LE),
                entry_size: section.sh_entsize(LE),
            });
            let last = &sections[sections.len() - 1];
            let end =
                last.offset.checked_add(last.size).filter(|_| last.address.checked_add(last.size).is_some());
            if last.kind != elf::SHT_NOBITS.0 && end.is_none_or(|end| end > bytes.len() as u64) {
                return Err(Problem::Damaged(format!("section {} reaches beyond the file", last.name)));
            }
        }
        let headers = file.elf_program_headers().iter().map(|header| SegmentHeader {
            kind: header.p_type(LE).0,
            flags: header.p_flags(LE).0,
            offset: header.p_offset(LE),
            address: header.p_vaddr(LE),
            file_size: header.p_filesz(LE),
            memory_size: header.p_memsz(LE),
            align: header.p_align(LE),
        });
        let headers: Vec<SegmentHeader> = headers.collect();
        let reaches_beyond = |one: &&SegmentHeader| {
            let end = |start: u64, size: u64| start.checked_add(size);
            end(one.offset, one.file_size).is_none_or(|end| end > bytes.len() as u64)
                || end(one.address, one.memory_size).is_none_or(|end| end > HIGHEST)
        };
        let mut loaded = headers.iter().filter(|one| one.kind == elf::PT_LOAD.0);
        if let Some(segment) = loaded.find(reaches_beyond) {
            return Err(Problem::Damaged(format!(
                "the segment at {:#x} reaches beyond the file",
                segment.address
            )));
        }
        let entry = file.elf_header().e_entry(LE);
        let table = file.elf_symbol_table();
        let symbols = table.iter().map(|symbol| {
            Ok(ElfSymbol {
                name: image::text(table.symbol_name(LE, symbol)?).into_owned(),
                name_bytes: table.symbol_name(LE, symbol)?.to_vec(),
                info: symbol.st_info().0,
                other: symbol.st_other().0,
                section: symbol.st_shndx(LE).0,
                value: symbol.st_value(LE),
                size: symbol.st_size(LE),
            })
        });
        let symbols = symbols.collect::<Result<Vec<_>, Problem>>()?;
        Ok(Elf { sections, headers, symbols, entry, bytes })
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&ElfSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The bytes of a section.
    pub fn data(&self, section: &ElfSection) -> &[u8] {
        let range = section.offset as usize..(section.offset + section.size) as usize;
        if section.kind == elf::SHT_NOBITS.0 { &[] } else { self.bytes.get(range).unwrap_or_default() }
    }

    /// Where the byte at an address is in the file.
    pub fn offset(&self, address: u64) -> Option<usize> {
        let loaded = self.headers.iter().filter(|header| header.kind == elf::PT_LOAD.0);
        let mut at = loaded.filter_map(|header| {
            let within = address.wrapping_sub(header.address);
            (within < header.file_size).then(|| (header.offset + within) as usize)
        });
        at.next().filter(|&offset| offset < self.bytes.len())
    }

    /// The bytes at an address.
    pub fn at<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let offset = self.offset(address)?;
        self.bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
    }

    /// The relocations of a table.
    pub fn relocations(&self, table: &ElfSection) -> Vec<Relocation> {
        let entries = self.data(table).as_chunks::<24>().0;
        let word =
            |bytes: &[u8; 24], at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let relocation = |bytes: &[u8; 24]| Relocation {
            address: word(bytes, 0),
            kind: word(bytes, 8) as u32,
            symbol: (word(bytes, 8) >> 32) as u32,
            addend: word(bytes, 16) as i64,
        };
        entries.iter().map(relocation).collect()
    }

    /// The tables of relocations that the linker kept (`--emit-relocs`), with the sections that they apply to.
    pub fn kept_relocations(&self) -> impl Iterator<Item = (&ElfSection, &ElfSection)> {
        let tables = self.sections.iter().filter(|one| one.kind == elf::SHT_RELA.0 && !one.is_loaded());
        tables.filter_map(|table| Some((table, self.sections.get(table.info as usize)?)))
    }

    /// The relocations that the dynamic linker carries out.
    pub fn dynamic_relocations(&self) -> impl Iterator<Item = &ElfSection> {
        self.sections.iter().filter(|one| one.kind == elf::SHT_RELA.0 && one.is_loaded())
    }
}
