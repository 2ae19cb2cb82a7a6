//! The tables for unwinders: one for each fragment, with an index.

use std::collections::HashMap;

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, EhFrame, EndianVec, Expression,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{BaseAddresses, CieOrFde, Encoding, Format, LittleEndian, Register, UnwindSection, constants};

use super::exceptions::ExceptionTables;
use crate::assemble::{Assembly, CodeLayout};
use crate::error::Problem;
use crate::program::{LENGTH, Program};
use crate::unwind::{FrameAddress, FrameHeader, NO_ROW, UnwindRow, UnwindRule};

/// The tables, ready to be placed.
pub struct Tables {
    /// The index (`.eh_frame_hdr`), then the tables (`.eh_frame`).
    pub bytes: Vec<u8>,
    /// The address of the index.
    pub index: u64,
    /// Bytes of the index; 0 if there are no tables.
    pub index_size: u64,
    /// The address of the tables.
    pub tables: u64,
    /// Bytes of the tables.
    pub tables_size: u64,
}

/// Addresses are distances from their own address, in 32 bits.
const RELATIVE: gimli::DwEhPe = gimli::DwEhPe(constants::DW_EH_PE_pcrel.0 | constants::DW_EH_PE_sdata4.0);
/// Bytes of the index before its entries, and of an entry.
const INDEX_HEADER: u64 = 12;
const INDEX_ENTRY: u64 = 8;

/// Makes the tables of all fragments, for code at its new addresses. The index begins at `address`.
pub fn write(
    program: &Program,
    layout: &CodeLayout,
    assembly: &Assembly,
    exceptions: &ExceptionTables,
    address: u64,
) -> Result<Tables, Problem> {
    let described: Vec<usize> = (0..layout.fragments.len())
        .filter(|&index| {
            let procedure = layout.fragments[index].procedure as usize;
            assembly.fragments[index].0 < assembly.fragments[index].1
                && program.procedures[procedure].frame.is_some()
        })
        .collect();
    if described.is_empty() {
        return Ok(Tables { bytes: Vec::new(), index: 0, index_size: 0, tables: 0, tables_size: 0 });
    }
    let index_size = (INDEX_HEADER + INDEX_ENTRY * described.len() as u64).next_multiple_of(8);
    let tables = address + index_size;
    let mut writer = FrameWriter {
        program,
        assembly,
        exceptions,
        base: tables,
        table: FrameTable::default(),
        headers: HashMap::new(),
    };
    described.iter().for_each(|&index| writer.fragment(layout, index));
    let mut section = EhFrame::from(EndianVec::new(LittleEndian));
    let failed =
        |error: gimli::write::Error| Problem::Damaged(format!(".eh_frame cannot be written: {error}"));
    writer.table.write_eh_frame(&mut section).map_err(failed)?;
    let mut contents = section.0.into_vec();
    contents.extend([0; 4]);
    let mut bytes = index(&contents, address, tables)?;
    bytes.resize(index_size as usize, 0);
    let tables_size = contents.len() as u64;
    bytes.extend(contents);
    Ok(Tables { bytes, index: address, index_size, tables, tables_size })
}

struct FrameWriter<'a> {
    program: &'a Program,
    assembly: &'a Assembly,
    exceptions: &'a ExceptionTables,
    /// The address of the section: addresses in it are given relative to it.
    base: u64,
    table: FrameTable,
    headers: HashMap<(u32, bool), gimli::write::CieId>,
}

impl FrameWriter<'_> {
    fn relative(&self, address: u64) -> Address {
        Address::Constant(address.wrapping_sub(self.base))
    }

    fn fragment(&mut self, layout: &CodeLayout, index: usize) {
        let program = self.program;
        let fragment = &layout.fragments[index];
        let Some(number) = program.procedures[fragment.procedure as usize].frame else { return };
        let original = program.frames.tables[number as usize];
        let header = &program.frames.headers[original.header as usize];
        // An exception table that is not understood remains: the procedure is one fragment.
        let exceptions = self.exceptions.addresses[index].or(original.exceptions);
        let exceptions = exceptions.filter(|_| header.exceptions.is_some());
        let key = (original.header, exceptions.is_some());
        let id = match self.headers.get(&key) {
            Some(&id) => id,
            None => {
                let id = self.table.add_cie(self.header(header, exceptions.is_some()));
                self.headers.insert(key, id);
                id
            }
        };
        let (start, end) = self.assembly.fragments[index];
        let before = if program.is_trampoline(fragment.procedure) { LENGTH } else { 0 };
        let mut entry =
            FrameDescriptionEntry::new(self.relative(start - before), (end - start + before) as u32);
        entry.lsda = exceptions.map(|address| self.relative(address));
        let first = ((start - self.assembly.base) / LENGTH) as usize;
        let count = ((end - start) / LENGTH) as usize;
        let mut current = program.frames.rows[header.row as usize].clone();
        for (offset, &row) in self.assembly.frames[first..first + count].iter().enumerate() {
            if row != NO_ROW {
                let row = &program.frames.rows[row as usize];
                // The instruction before a trampoline has the row of its first one.
                let at = if offset == 0 { 0 } else { before + offset as u64 * LENGTH };
                change(&mut entry, at as u32, &current, row);
                current.clone_from(row);
            }
        }
        self.table.add_fde(id, entry);
    }

    fn header(&self, header: &FrameHeader, has_exceptions: bool) -> CommonInformationEntry {
        let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: 8 };
        let mut entry = CommonInformationEntry::new(
            encoding,
            LENGTH as u8,
            header.data_alignment,
            Register(header.return_address),
        );
        entry.fde_address_encoding = RELATIVE;
        entry.signal_trampoline = header.is_signal_trampoline;
        entry.personality = header.personality.map(|(encoding, address)| {
            let encoding = gimli::DwEhPe(encoding);
            let is_relative = encoding.application() == constants::DW_EH_PE_pcrel;
            (encoding, if is_relative { self.relative(address) } else { Address::Constant(address) })
        });
        entry.lsda_encoding = has_exceptions.then_some(RELATIVE);
        for one in instructions(&UnwindRow::default(), &self.program.frames.rows[header.row as usize], true) {
            entry.add_instruction(one);
        }
        entry
    }
}

fn change(entry: &mut FrameDescriptionEntry, offset: u32, from: &UnwindRow, to: &UnwindRow) {
    if from != to {
        instructions(from, to, false).into_iter().for_each(|one| entry.add_instruction(offset, one));
    }
}

/// The instructions that change one row to another.
fn instructions(from: &UnwindRow, to: &UnwindRow, is_first: bool) -> Vec<CallFrameInstruction> {
    let mut all = Vec::new();
    if is_first || from.frame_address != to.frame_address {
        all.push(match &to.frame_address {
            FrameAddress::Register(register, offset) => {
                CallFrameInstruction::Cfa(Register(*register), *offset as i32)
            }
            FrameAddress::Expression(bytes) => {
                CallFrameInstruction::CfaExpression(Expression::raw(bytes.clone()))
            }
        });
    }
    for (register, _) in &from.registers {
        if !to.registers.iter().any(|(other, _)| other == register) {
            all.push(CallFrameInstruction::SameValue(Register(*register)));
        }
    }
    for one in &to.registers {
        if !from.registers.contains(one) {
            all.push(rule(Register(one.0), &one.1));
        }
    }
    all
}

fn rule(register: Register, rule: &UnwindRule) -> CallFrameInstruction {
    match rule {
        UnwindRule::Undefined => CallFrameInstruction::Undefined(register),
        UnwindRule::Offset(offset) => CallFrameInstruction::Offset(register, *offset as i32),
        UnwindRule::ValueOffset(offset) => CallFrameInstruction::ValOffset(register, *offset as i32),
        UnwindRule::Register(other) => CallFrameInstruction::Register(register, Register(*other)),
        UnwindRule::Expression(bytes) => {
            CallFrameInstruction::Expression(register, Expression::raw(bytes.clone()))
        }
        UnwindRule::ValueExpression(bytes) => {
            CallFrameInstruction::ValExpression(register, Expression::raw(bytes.clone()))
        }
    }
}

/// The index by which unwinders search: it is made from the tables as they were written.
fn index(contents: &[u8], address: u64, tables: u64) -> Result<Vec<u8>, Problem> {
    let damaged = |error: gimli::Error| Problem::Damaged(format!(".eh_frame was written wrongly: {error}"));
    let section = gimli::EhFrame::new(contents, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(tables);
    let mut entries = section.entries(&bases);
    let mut found = Vec::new();
    while let Some(entry) = entries.next().map_err(damaged)? {
        if let CieOrFde::Fde(partial) = entry {
            let table = partial.parse(gimli::EhFrame::cie_from_offset).map_err(damaged)?;
            found.push((table.initial_address(), tables + table.offset() as u64));
        }
    }
    found.sort_unstable();
    let encodings = [
        1,
        RELATIVE.0,
        constants::DW_EH_PE_udata4.0,
        constants::DW_EH_PE_datarel.0 | constants::DW_EH_PE_sdata4.0,
    ];
    let mut bytes = encodings.to_vec();
    let distance = |to: u64, from: u64| (to.wrapping_sub(from) as i32).to_le_bytes();
    bytes.extend(distance(tables, address + 4));
    bytes.extend((found.len() as u32).to_le_bytes());
    for (code, table) in found {
        bytes.extend(distance(code, address));
        bytes.extend(distance(table, address));
    }
    Ok(bytes)
}
