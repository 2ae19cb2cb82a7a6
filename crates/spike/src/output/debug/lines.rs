//! Tables of lines: the header of each stays, and the program that makes its rows is written anew.

use std::collections::HashMap;

use gimli::{ColumnType, DebugLine, DebugLineOffset, LineRow, LittleEndian, constants};

use super::input::damaged;
use super::moves::Moves;
use crate::program::LENGTH;

/// The new tables as they are made.
#[derive(Default)]
pub struct LineTableWriter {
    /// The section.
    pub bytes: Vec<u8>,
    /// New offsets of tables by their original ones.
    tables: HashMap<usize, u32>,
}

/// The registers of the program, apart from the address.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LineTableRow {
    file: u64,
    line: u64,
    column: u64,
    is_statement: bool,
    discriminator: u64,
}

/// The parameters on which the program's encoding depends.
#[derive(Clone, Copy)]
struct Parameters {
    minimum_length: u64,
    line_base: i64,
    line_range: u64,
    opcode_base: u64,
    is_statement: bool,
}

impl LineTableWriter {
    /// The offset of the changed form of a table.
    pub fn table(&mut self, section: &[u8], offset: usize, moves: &Moves) -> Result<u32, String> {
        if let Some(&new) = self.tables.get(&offset) {
            return Ok(new);
        }
        let failed = damaged(".debug_line");
        let lines = DebugLine::new(section, LittleEndian);
        let program = lines.program(DebugLineOffset(offset), 8, None, None).map_err(&failed)?;
        let header = program.header();
        let length = section
            .get(offset..offset + 4)
            .map(|bytes| u32::from_le_bytes(std::array::from_fn(|index| bytes[index])) as usize);
        let end = offset + 4 + length.unwrap_or(0);
        let start = end.checked_sub(header.raw_program_buf().len()).filter(|&start| start > offset);
        let start = start.ok_or(".debug_line: a table of 64-bit form")?;
        let parameters = Parameters {
            minimum_length: u64::from(header.minimum_instruction_length()).max(1),
            line_base: header.line_base().into(),
            line_range: header.line_range().into(),
            opcode_base: header.opcode_base().into(),
            is_statement: header.default_is_stmt(),
        };
        if parameters.opcode_base < 10
            || parameters.line_range == 0
            || !LENGTH.is_multiple_of(parameters.minimum_length)
        {
            return Err(".debug_line: a table without the usual operations".into());
        }
        let new = self.bytes.len();
        self.bytes.extend(&section[offset..start]);
        let mut rows = program.rows();
        let mut sequence: Vec<(u64, LineTableRow)> = Vec::new();
        while let Some((_, row)) = rows.next_row().map_err(&failed)? {
            if !row.end_sequence() {
                sequence.push((row.address(), LineTableRow::of(row)));
                continue;
            }
            if let Some(&(first, _)) = sequence.first() {
                for run in moves.runs(first, row.address()) {
                    self.sequence(parameters, &sequence, run, moves);
                }
            }
            sequence.clear();
        }
        let length = (self.bytes.len() - new - 4) as u32;
        self.bytes[new..new + 4].copy_from_slice(&length.to_le_bytes());
        let new = u32::try_from(new).map_err(|_| ".debug_line is too large")?;
        self.tables.insert(offset, new);
        Ok(new)
    }

    /// Writes the rows of a run of new instructions.
    fn sequence(
        &mut self,
        parameters: Parameters,
        rows: &[(u64, LineTableRow)],
        (first, end): (u32, u32),
        moves: &Moves,
    ) {
        let start = moves.new_address(first);
        let mut state = LineTableState { address: start, row: LineTableRow::initial(parameters), parameters };
        self.extended(constants::DW_LNE_set_address.0, &start.to_le_bytes());
        let mut before: Option<u64> = None;
        for new in first..end {
            let original = moves.original(new);
            if before == Some(original) {
                continue;
            }
            // The rows of this address, or else the last ones before it, unless they hold already.
            let after = rows.partition_point(|row| row.0 <= original);
            let Some(last) = after.checked_sub(1) else { continue };
            let from = rows[..after].partition_point(|row| row.0 < rows[last].0);
            let holds = before.is_some_and(|before| before < original && before >= rows[last].0);
            if !holds {
                let address = moves.new_address(new);
                rows[from..after].iter().for_each(|row| self.row(&mut state, address, row.1));
            }
            before = Some(original);
        }
        self.advance(&state, moves.new_address(end));
        self.extended(constants::DW_LNE_end_sequence.0, &[]);
    }

    fn row(&mut self, state: &mut LineTableState, address: u64, row: LineTableRow) {
        if row.file != state.row.file {
            self.standard(constants::DW_LNS_set_file, Some(row.file));
        }
        if row.column != state.row.column {
            self.standard(constants::DW_LNS_set_column, Some(row.column));
        }
        if row.is_statement != state.row.is_statement {
            self.standard(constants::DW_LNS_negate_stmt, None);
        }
        if row.discriminator != 0 {
            let mut value = Vec::new();
            let _ = gimli::leb128::write::unsigned(&mut value, row.discriminator);
            self.extended(constants::DW_LNE_set_discriminator.0, &value);
        }
        let Parameters { line_base, line_range, opcode_base, minimum_length, .. } = state.parameters;
        let lines = row.line.wrapping_sub(state.row.line) as i64;
        let advance = (address - state.address) / minimum_length;
        let special = u64::try_from(lines.wrapping_sub(line_base)).ok().filter(|&above| above < line_range);
        let special = special.and_then(|above| {
            let opcode = advance.checked_mul(line_range)?.checked_add(above + opcode_base)?;
            u8::try_from(opcode).ok()
        });
        match special {
            Some(opcode) => self.bytes.push(opcode),
            None => {
                self.advance(state, address);
                self.bytes.push(constants::DW_LNS_advance_line.0);
                // Writing to memory does not fail.
                let _ = gimli::leb128::write::signed(&mut self.bytes, lines);
                self.standard(constants::DW_LNS_copy, None);
            }
        }
        state.address = address;
        state.row = LineTableRow { discriminator: 0, ..row };
    }

    fn advance(&mut self, state: &LineTableState, address: u64) {
        if address != state.address {
            let operations = (address - state.address) / state.parameters.minimum_length;
            self.standard(constants::DW_LNS_advance_pc, Some(operations));
        }
    }

    fn standard(&mut self, opcode: constants::DwLns, operand: Option<u64>) {
        self.bytes.push(opcode.0);
        if let Some(operand) = operand {
            let _ = gimli::leb128::write::unsigned(&mut self.bytes, operand);
        }
    }

    fn extended(&mut self, opcode: u8, operands: &[u8]) {
        self.bytes.push(0);
        let _ = gimli::leb128::write::unsigned(&mut self.bytes, operands.len() as u64 + 1);
        self.bytes.push(opcode);
        self.bytes.extend(operands);
    }
}

struct LineTableState {
    address: u64,
    row: LineTableRow,
    parameters: Parameters,
}

impl LineTableRow {
    fn initial(parameters: Parameters) -> LineTableRow {
        LineTableRow { file: 1, line: 1, column: 0, is_statement: parameters.is_statement, discriminator: 0 }
    }

    fn of(row: &LineRow) -> LineTableRow {
        LineTableRow {
            file: row.file_index(),
            line: row.line().map_or(0, u64::from),
            column: match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => column.into(),
            },
            is_statement: row.is_stmt(),
            discriminator: row.discriminator(),
        }
    }
}
