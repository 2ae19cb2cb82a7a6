//! Debug information of the new image.
//!
//! The entries of `.debug_info` keep their offsets and lengths, so that no reference among them changes: addresses and
//! offsets into other sections are changed in place. A procedure's lowest and highest address become a reference to a list
//! of ranges of the same length, by a change of the abbreviations. Lists of ranges and of locations and the tables of
//! lines are made anew. If a form is not supported, all debug information is dropped: none is better than a wrong one.

mod abbreviations;
mod info;
mod input;
mod lines;
mod lists;
mod moves;

use object::elf;

use crate::assemble::Assembly;
use crate::program::Program;
use input::section;
use moves::Moves;

/// Sections of debug information that describe no code.
const KEPT: [&str; 3] = [".debug_str", ".debug_line_str", ".debug_str_offsets"];
/// Those that would have to be changed and are not.
const FOREIGN: [&str; 3] = [".debug_types", ".debug_addr", ".debug_cu_index"];

/// The debug information of the new image.
#[derive(Debug, Default)]
pub struct DebugInformation {
    /// The sections, by name.
    pub sections: Vec<(&'static str, Vec<u8>)>,
    /// Why it was left out, if it was.
    pub dropped: Option<String>,
}

impl DebugInformation {
    /// Whether a section of the original describes no code, and stays.
    pub fn keeps(&self, name: &str) -> bool {
        self.dropped.is_none() && KEPT.contains(&name)
    }
}

/// Whether a section is debug information.
pub fn is_debug(name: &str) -> bool {
    name.starts_with(".debug_") || name == ".gdb_index"
}

/// Makes the debug information for code at its new addresses.
pub fn rewrite(program: &Program, assembly: &Assembly) -> DebugInformation {
    if section(&program.elf, ".debug_info").is_empty() {
        return DebugInformation::default();
    }
    let foreign = FOREIGN.iter().find(|name| program.elf.section(name).is_some());
    let compressed =
        |one: &&crate::elf::ElfSection| is_debug(&one.name) && one.flags & elf::SHF_COMPRESSED.0 != 0;
    let compressed = program.elf.sections.iter().find(compressed);
    let reason = match (foreign, compressed) {
        (Some(name), _) => Some(format!("{name} is not supported")),
        (_, Some(section)) => Some(format!("{} is compressed", section.name)),
        _ => None,
    };
    let sections = match reason {
        Some(reason) => Err(reason),
        None => info::rewrite(&program.elf, &Moves::new(program, assembly)),
    };
    match sections {
        Ok(sections) => DebugInformation { sections, dropped: None },
        Err(reason) => DebugInformation { sections: Vec::new(), dropped: Some(reason) },
    }
}
