//! Exception tables (`.gcc_except_table`): which calls may throw, where their landing pads are, and which types those
//! handle. A table describes code by distances from its procedure's beginning, so that it is made anew for moved code.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::section_bytes::SectionBytes;
use gimli::{DwEhPe, LittleEndian, Reader, constants};

use crate::elf::Elf;
use crate::program::{CodeBlockId, CodeExit, CodeExtent, Frozen, Program};
use crate::unwind::UnwindingTables;

/// Index of a call site in [`Exceptions::call_sites`].
pub type CallSiteId = u32;

/// The exception tables of an image that are understood.
#[derive(Clone, Debug, Default)]
pub struct Exceptions {
    /// The contents of tables apart from addresses of code.
    pub tables: Vec<ExceptionTable>,
    /// The index of the table at each address.
    pub by_address: HashMap<u64, u32>,
    /// The call sites that they describe.
    pub call_sites: Vec<CallSite>,
}

/// Code in which an exception is handled in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Where control goes; if nowhere, unwinding continues.
    pub landing_pad: Option<CodeBlockId>,
    /// One more than the offset of the first action; 0 stands for clean-up.
    pub action: u64,
}

/// The contents of a table apart from addresses of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionTable {
    /// The actions, as they are encoded.
    pub actions: Vec<u8>,
    /// The encoding of types.
    pub type_encoding: u8,
    /// The addresses that the types' entries give, from the first type on; 0 stands for any type.
    pub types: Vec<u64>,
    /// Lists of types that a procedure may throw, as they are encoded.
    pub specifications: Vec<u8>,
}

/// A table with addresses of original code.
pub struct Located {
    address: u64,
    table: ExceptionTable,
    sites: Vec<LocatedSite>,
}

struct LocatedSite {
    start: u64,
    end: u64,
    landing_pad: Option<u64>,
    action: u64,
}

/// Reads all tables that [`UnwindingTables`] name and that are encoded as compilers encode them.
pub fn read(elf: &Elf, code: &CodeExtent, frames: &UnwindingTables) -> Vec<Located> {
    let named = frames.tables.iter().filter_map(|frame| Some((frame, frame.exceptions?)));
    named.filter_map(|(frame, address)| table(elf, code, frame.start, frame.end, address)).collect()
}

impl Located {
    /// The addresses at which blocks must begin.
    pub fn bounds(&self) -> impl Iterator<Item = u64> {
        self.sites.iter().flat_map(|site| [Some(site.start), Some(site.end), site.landing_pad]).flatten()
    }
}

/// The addresses of landing pads.
pub fn landing_pads(all: &[Located]) -> HashSet<u64> {
    all.iter().flat_map(|one| &one.sites).filter_map(|site| site.landing_pad).collect()
}

/// Gives the program's blocks their call sites, and freezes procedures whose table is not understood.
pub fn assign(program: &mut Program, all: Vec<Located>) {
    for located in all {
        let number = program.exceptions.tables.len() as u32;
        program.exceptions.by_address.insert(located.address, number);
        program.exceptions.tables.push(located.table);
        for site in located.sites {
            let landing_pad = site.landing_pad.and_then(|address| program.code.block(address));
            if let Some(block) = landing_pad {
                program.blocks[block as usize].is_address_taken = true;
            }
            let id = program.exceptions.call_sites.len() as CallSiteId;
            program.exceptions.call_sites.push(CallSite { landing_pad, action: site.action });
            let addresses = (site.start..site.end).step_by(4);
            for block in addresses.filter_map(|address| program.code.block(address)) {
                program.blocks[block as usize].call_site = Some(id);
            }
        }
    }
    // One table may be of several procedures, and begin before the first one: that of the C library's `sigreturn` routines does.
    let mut extents: Vec<(u64, u64, u32)> = program
        .frames
        .tables
        .iter()
        .zip(0..)
        .map(|(table, number)| (table.start, table.end, number))
        .collect();
    extents.sort_unstable();
    let table_at = |address: u64| {
        let before = extents.partition_point(|extent| extent.0 <= address).checked_sub(1)?;
        let &(_, end, number) = extents.get(before)?;
        (address < end).then_some(number)
    };
    for procedure in &mut program.procedures {
        let Some(&entry) = procedure.blocks.first() else { continue };
        // A procedure may begin with a branch, which is no instruction of its block.
        let block = &program.blocks[entry as usize];
        let branch = match &block.exit {
            CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch),
            _ => None,
        };
        let Some(first) = block.instructions.first().or(branch) else { continue };
        procedure.frame = table_at(program.code.address(first.origin));
        let table = procedure.frame.map(|number| program.frames.tables[number as usize]);
        if table.is_some_and(|table| program.frames.headers[table.header as usize].is_signal_trampoline) {
            procedure.frozen.get_or_insert(Frozen::SignalTrampoline);
        }
        let table = table.and_then(|table| table.exceptions);
        if table.is_some_and(|address| !program.exceptions.by_address.contains_key(&address)) {
            procedure.frozen.get_or_insert(Frozen::Exceptions);
        }
    }
}

/// The bytes of an encoded value; none for those of varying length.
fn width(encoding: DwEhPe) -> Option<usize> {
    match encoding.format() {
        constants::DW_EH_PE_udata4 | constants::DW_EH_PE_sdata4 => Some(4),
        constants::DW_EH_PE_absptr | constants::DW_EH_PE_udata8 | constants::DW_EH_PE_sdata8 => Some(8),
        _ => None,
    }
}

fn unsigned(input: &mut SectionBytes, encoding: DwEhPe) -> Option<u64> {
    match encoding {
        constants::DW_EH_PE_uleb128 => input.read_uleb128().ok(),
        constants::DW_EH_PE_udata4 => input.read_u32().ok().map(u64::from),
        constants::DW_EH_PE_udata8 | constants::DW_EH_PE_absptr => input.read_u64().ok(),
        _ => None,
    }
}

fn table(elf: &Elf, code: &CodeExtent, start: u64, end: u64, address: u64) -> Option<Located> {
    let section = elf.sections.iter().find(|section| section.contains(address))?;
    let data = elf.data(section);
    let mut input = SectionBytes::new(data.get((address - section.address) as usize..)?, LittleEndian);
    if DwEhPe(input.read_u8().ok()?) != constants::DW_EH_PE_omit {
        return None;
    }
    let type_encoding = DwEhPe(input.read_u8().ok()?);
    let types = match type_encoding {
        constants::DW_EH_PE_omit => None,
        _ => {
            let distance = input.read_uleb128().ok()?;
            Some((data.len() - input.len()).checked_add(distance as usize).filter(|&at| at <= data.len())?)
        }
    };
    let encoding = DwEhPe(input.read_u8().ok()?);
    let length = input.read_uleb128().ok()? as usize;
    let mut entries = input.split(length).ok()?;
    let mut sites = Vec::new();
    while !entries.is_empty() {
        let [from, size, pad, action] = [
            unsigned(&mut entries, encoding)?,
            unsigned(&mut entries, encoding)?,
            unsigned(&mut entries, encoding)?,
            entries.read_uleb128().ok()?,
        ];
        let from = start.checked_add(from)?;
        let to = from.checked_add(size).filter(|&to| to <= end)?;
        let landing_pad = if pad == 0 { None } else { Some(start.checked_add(pad)?) };
        let is_code = |address| code.index(address).is_some();
        if !is_code(from) || to % 4 != 0 || !landing_pad.is_none_or(is_code) {
            return None;
        }
        sites.push(LocatedSite { start: from, end: to, landing_pad, action });
    }
    let mut reader =
        ActionReader { data, actions: data.len() - input.len(), types, ..ActionReader::default() };
    sites.iter().try_for_each(|site| reader.chain(site.action))?;
    let table = reader.table(type_encoding, section.address)?;
    Some(Located { address, table, sites })
}

/// Follows the actions of a table, to find out how far it reaches.
#[derive(Default)]
struct ActionReader<'a> {
    /// The section.
    data: &'a [u8],
    /// Where actions begin.
    actions: usize,
    /// Where types end, and lists of types begin.
    types: Option<usize>,
    seen: BTreeSet<usize>,
    actions_end: usize,
    type_count: usize,
    specifications_end: usize,
}

impl ActionReader<'_> {
    fn chain(&mut self, action: u64) -> Option<()> {
        if action == 0 {
            return Some(());
        }
        let mut at = self.actions.checked_add(action as usize - 1)?;
        while self.seen.insert(at) {
            let mut input = SectionBytes::new(self.data.get(at..)?, LittleEndian);
            let filter = input.read_sleb128().ok()?;
            let link = self.data.len() - input.len();
            let distance = input.read_sleb128().ok()?;
            self.actions_end = self.actions_end.max(self.data.len() - input.len());
            match filter {
                ..0 => self.specification(usize::try_from(filter.checked_neg()? - 1).ok()?)?,
                _ => self.type_count = self.type_count.max(filter as usize),
            }
            if distance == 0 {
                break;
            }
            at = link.checked_add_signed(distance as isize).filter(|&at| at >= self.actions)?;
        }
        Some(())
    }

    fn specification(&mut self, at: usize) -> Option<()> {
        let mut input = SectionBytes::new(self.data.get(self.types?.checked_add(at)?..)?, LittleEndian);
        loop {
            let number = input.read_uleb128().ok()?;
            self.type_count = self.type_count.max(number as usize);
            if number == 0 {
                self.specifications_end = self.specifications_end.max(self.data.len() - input.len());
                return Some(());
            }
        }
    }

    fn table(&self, encoding: DwEhPe, address: u64) -> Option<ExceptionTable> {
        let mut table = ExceptionTable { type_encoding: encoding.0, ..ExceptionTable::default() };
        table.actions = self.data.get(self.actions..self.actions_end.max(self.actions))?.to_vec();
        let Some(base) = self.types else {
            return (self.type_count == 0).then_some(table);
        };
        // Only distances from their own address can be moved without relocations.
        let width = width(encoding).filter(|_| encoding.application() == constants::DW_EH_PE_pcrel)?;
        for number in 1..=self.type_count {
            let offset = base.checked_sub(number.checked_mul(width)?)?;
            let mut input = SectionBytes::new(self.data.get(offset..offset + width)?, LittleEndian);
            let distance = match width {
                4 => input.read_i32().ok()?.into(),
                _ => input.read_i64().ok()?,
            };
            let target = (address + offset as u64).wrapping_add_signed(distance);
            table.types.push(if distance == 0 { 0 } else { target });
        }
        table.specifications = self.data.get(base..self.specifications_end.max(base))?.to_vec();
        Some(table)
    }
}

impl ExceptionTable {
    /// The bytes of a type's entry.
    pub fn type_width(&self) -> usize {
        width(DwEhPe(self.type_encoding)).unwrap_or(0)
    }
}
