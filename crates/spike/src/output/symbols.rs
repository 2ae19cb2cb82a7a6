//! The symbol table of the new image.

use object::elf;

use super::sections::{OutputSections, SymbolTable, add_name};
use crate::assemble::{Assembly, CodeLayout};
use crate::elf::ElfSymbol;
use crate::program::Program;

/// The end of the names of parts of procedures other than the one with the entry, as GCC has it.
const COLD: &str = ".cold";

/// The symbols at their new addresses, and a local one for each part of a procedure that has no symbol at its beginning.
pub fn table(
    program: &Program,
    layout: &CodeLayout,
    assembly: &Assembly,
    sections: &OutputSections,
) -> SymbolTable {
    let parts = parts(program, layout, assembly);
    let mut writer = SymbolWriter { entries: Vec::new(), names: vec![0], count: 0 };
    let is_local = |symbol: &&ElfSymbol| symbol.info >> 4 == elf::STB_LOCAL.0;
    let dropped = |symbol: &&ElfSymbol| symbol.section != 0 && sections.renumber(symbol.section) == 0;
    let kept = || program.elf.symbols.iter().filter(|symbol| !dropped(symbol));
    kept().filter(is_local).for_each(|symbol| writer.moved(program, assembly, sections, &parts, symbol));
    parts.iter().filter(|part| part.is_new).for_each(|part| writer.part(part, sections));
    let locals = writer.count;
    kept().filter(|symbol| !is_local(symbol)).for_each(|symbol| {
        writer.moved(program, assembly, sections, &parts, symbol);
    });
    SymbolTable { entries: writer.entries, names: writer.names, locals }
}

/// A part of a procedure at its new address.
struct ProcedurePart {
    start: u64,
    end: u64,
    name: String,
    /// Whether no original symbol names it.
    is_new: bool,
}

fn parts(program: &Program, layout: &CodeLayout, assembly: &Assembly) -> Vec<ProcedurePart> {
    let mut all = Vec::with_capacity(layout.fragments.len());
    for (fragment, &(start, end)) in layout.fragments.iter().zip(&assembly.fragments) {
        let procedure = &program.procedures[fragment.procedure as usize];
        let has_entry = fragment.blocks.first() == procedure.blocks.first() && procedure.original.is_none();
        let name = if has_entry { procedure.name.clone() } else { format!("{}{COLD}", procedure.name) };
        all.push(ProcedurePart { start, end, name, is_new: !has_entry && start < end });
    }
    all.sort_by_key(|part| part.start);
    all
}

struct SymbolWriter {
    entries: Vec<u8>,
    names: Vec<u8>,
    count: u32,
}

impl SymbolWriter {
    fn push(&mut self, name: &[u8], info: u8, other: u8, section: u16, value: u64, size: u64) {
        let name = if name.is_empty() { 0 } else { add_name(&mut self.names, name) };
        self.entries.extend(name.to_le_bytes());
        self.entries.extend([info, other]);
        self.entries.extend(section.to_le_bytes());
        self.entries.extend(value.to_le_bytes());
        self.entries.extend(size.to_le_bytes());
        self.count += 1;
    }

    fn moved(
        &mut self,
        program: &Program,
        assembly: &Assembly,
        sections: &OutputSections,
        parts: &[ProcedurePart],
        symbol: &ElfSymbol,
    ) {
        let section = sections.renumber(symbol.section);
        let block = program.code.block(symbol.value).filter(|_| symbol.section != 0);
        let address = block.map(|block| assembly.block_addresses[block as usize]);
        let (value, size) = match address {
            _ if symbol.info & 15 == elf::STT_SECTION.0 && section == sections.code => (assembly.base, 0),
            None => (symbol.value, symbol.size),
            // Code that was removed has no symbol.
            Some(0) => return,
            Some(address) => {
                let part = parts[..parts.partition_point(|part| part.start <= address)].last();
                let room = part.map_or(0, |part| part.end.saturating_sub(address));
                (address, if symbol.is_function() { room } else { symbol.size })
            }
        };
        self.push(&symbol.name_bytes, symbol.info, symbol.other, section, value, size);
    }

    fn part(&mut self, part: &ProcedurePart, sections: &OutputSections) {
        let info = elf::STB_LOCAL.0 << 4 | elf::STT_FUNC.0;
        self.push(part.name.as_bytes(), info, 0, sections.code, part.start, part.end - part.start);
    }
}
