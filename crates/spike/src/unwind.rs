//! The unwinding tables of the original code: for each instruction, where the caller's registers are.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, EhFrame, LittleEndian, Pointer, RegisterRule,
    UnwindContext, UnwindSection,
};

use crate::elf::Elf;
use crate::error::Problem;
use crate::section_bytes::SectionBytes;

/// The row of code that no table describes.
pub const NO_ROW: u32 = 0;

/// The tables of `.eh_frame`.
#[derive(Clone, Debug, Default)]
pub struct UnwindingTables {
    /// The different states of frames; the first one stands for none.
    pub rows: Vec<UnwindRow>,
    /// The different headers of tables.
    pub headers: Vec<FrameHeader>,
    /// One for each table.
    pub tables: Vec<UnwindTable>,
    numbers: HashMap<UnwindRow, u32>,
}

/// Where the caller's frame and registers are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnwindRow {
    /// The canonical frame address.
    pub frame_address: FrameAddress,
    /// Registers that are not as they were, ascending.
    pub registers: Vec<(u16, UnwindRule)>,
}

/// How the canonical frame address is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FrameAddress {
    /// A register plus an offset.
    Register(u16, i64),
    /// A DWARF expression.
    Expression(Vec<u8>),
}

impl Default for FrameAddress {
    fn default() -> FrameAddress {
        FrameAddress::Register(30, 0)
    }
}

/// Where a register of the caller is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnwindRule {
    /// Nowhere.
    Undefined,
    /// In memory, at an offset from the canonical frame address.
    Offset(i64),
    /// The canonical frame address plus an offset.
    ValueOffset(i64),
    /// In another register.
    Register(u16),
    /// In memory, at the address that a DWARF expression gives.
    Expression(Vec<u8>),
    /// The value of a DWARF expression.
    ValueExpression(Vec<u8>),
}

/// The fields that tables have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The factor of offsets.
    pub data_alignment: i8,
    /// The column of the return address.
    pub return_address: u16,
    /// The encoding of the personality routine's address, and the address.
    pub personality: Option<(u8, u64)>,
    /// The encoding of the address of exception tables.
    pub exceptions: Option<u8>,
    /// Whether the code is a signal handler's trampoline.
    pub is_signal_trampoline: bool,
    /// The first row.
    pub row: u32,
}

/// The table of a range of instructions.
#[derive(Clone, Copy, Debug)]
pub struct UnwindTable {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Index of its header.
    pub header: u32,
    /// The address of its exception table.
    pub exceptions: Option<u64>,
}

impl UnwindingTables {
    /// Reads the tables. `row_at` is called for each range of addresses with the same row.
    pub fn read(elf: &Elf, mut row_at: impl FnMut(u64, u64, u32)) -> Result<UnwindingTables, Problem> {
        let mut frames = UnwindingTables { rows: vec![UnwindRow::default()], ..UnwindingTables::default() };
        let Some(section) = elf.section(".eh_frame") else { return Ok(frames) };
        let damaged = |error: gimli::Error| Problem::Damaged(format!(".eh_frame: {error}"));
        let tables = EhFrame::new(elf.data(section), LittleEndian);
        let mut bases = BaseAddresses::default().set_eh_frame(section.address);
        if let Some(got) = elf.section(".got") {
            bases = bases.set_got(got.address);
        }
        let mut headers: HashMap<usize, u32> = HashMap::new();
        let mut context = UnwindContext::new();
        let mut entries = tables.entries(&bases);
        while let Some(entry) = entries.next().map_err(damaged)? {
            let CieOrFde::Fde(partial) = entry else { continue };
            let table = partial.parse(EhFrame::cie_from_offset).map_err(damaged)?;
            let number = headers.len() as u32;
            let header = *headers.entry(table.cie().offset()).or_insert(number);
            if header as usize == frames.headers.len() {
                frames.headers.push(common(table.cie())?);
            }
            let exceptions = match table.lsda() {
                Some(Pointer::Direct(address)) => Some(address),
                Some(Pointer::Indirect(_)) => {
                    return Err(Problem::Damaged("an indirect exception table".into()));
                }
                None => None,
            };
            let (start, end) = (table.initial_address(), table.initial_address().wrapping_add(table.len()));
            let mut rows = table.rows(&tables, &bases, &mut context).map_err(damaged)?;
            let mut is_first = true;
            while let Some(row) = rows.next_row().map_err(damaged)? {
                let number = frames.number(convert(row, &tables)?);
                if std::mem::take(&mut is_first) && frames.headers[header as usize].row == NO_ROW {
                    frames.headers[header as usize].row = number;
                }
                row_at(row.start_address(), row.end_address(), number);
            }
            frames.tables.push(UnwindTable {
                start,
                end,
                header,
                exceptions: exceptions.filter(|&one| one != 0),
            });
        }
        Ok(frames)
    }

    /// The number of a row.
    pub fn number(&mut self, row: UnwindRow) -> u32 {
        let next = self.rows.len() as u32;
        *self.numbers.entry(row).or_insert_with_key(|row| {
            self.rows.push(row.clone());
            next
        })
    }
}

fn common(entry: &CommonInformationEntry<SectionBytes>) -> Result<FrameHeader, Problem> {
    let personality = entry.personality_with_encoding().map(|(encoding, pointer)| match pointer {
        Pointer::Direct(address) | Pointer::Indirect(address) => (encoding.0, address),
    });
    Ok(FrameHeader {
        data_alignment: i8::try_from(entry.data_alignment_factor())
            .ok()
            .filter(|&factor| factor != 0)
            .ok_or_else(|| Problem::Damaged(".eh_frame: a data alignment that no compiler writes".into()))?,
        return_address: entry.return_address_register().0,
        personality,
        exceptions: entry.lsda_encoding().map(|encoding| encoding.0),
        is_signal_trampoline: entry.is_signal_trampoline(),
        row: NO_ROW,
    })
}

fn convert(row: &gimli::UnwindTableRow<usize>, tables: &EhFrame<SectionBytes>) -> Result<UnwindRow, Problem> {
    let damaged = |error: gimli::Error| Problem::Damaged(format!(".eh_frame: {error}"));
    let expression = |expression: &gimli::UnwindExpression<usize>| {
        Ok::<_, Problem>(expression.get(tables).map_err(damaged)?.0.slice().to_vec())
    };
    let frame_address = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => FrameAddress::Register(register.0, *offset),
        CfaRule::Expression(one) => FrameAddress::Expression(expression(one)?),
    };
    let mut registers = Vec::new();
    for (register, rule) in row.registers() {
        let rule = match rule {
            RegisterRule::Undefined => UnwindRule::Undefined,
            RegisterRule::SameValue => continue,
            RegisterRule::Offset(offset) => UnwindRule::Offset(*offset),
            RegisterRule::ValOffset(offset) => UnwindRule::ValueOffset(*offset),
            RegisterRule::Register(other) => UnwindRule::Register(other.0),
            RegisterRule::Expression(one) => UnwindRule::Expression(expression(one)?),
            RegisterRule::ValExpression(one) => UnwindRule::ValueExpression(expression(one)?),
            other => return Err(Problem::Damaged(format!(".eh_frame: the rule {other:?}"))),
        };
        registers.push((register.0, rule));
    }
    registers.sort_by_key(|(register, _)| *register);
    Ok(UnwindRow { frame_address, registers })
}
