//! Variables of functions: where they are while control is at an instruction.

use gimli::{AttributeValue, Encoding, Operation, constants as dw};

use super::types::{TypeRef, Types};
use crate::dwarf::{DwarfEntry, DwarfSlice};

/// A variable of a function.
pub(super) struct Local {
    pub(super) of: TypeRef,
    pub(super) location: LocalLocation,
}

/// Where a variable is.
pub(super) enum LocalLocation {
    /// In the register of this number, as debug information numbers them.
    Register(u16),
    /// So many bytes from the stack pointer before the call.
    Frame(i64),
}

impl<'a> Types<'a, '_> {
    /// The variable with a name at an instruction of a function, which begins at a link-time address, but for variables of functions
    /// that are inlined there. None if the function has no such variable; an error if it has no known location at the instruction.
    pub(super) fn local(&self, function: u64, name: &str, at: u64) -> Option<Result<Local, &'static str>> {
        let (unit, function) = self.function(function)?;
        let mut found = None;
        let mut entries = self.unit(unit)?.entries_at_offset(function.offset()).ok()?;
        let root = entries.next_dfs().ok()??.depth();
        let mut inlined = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth();
            if depth <= root {
                break;
            }
            if inlined.is_some_and(|inlined| depth > inlined) {
                continue;
            }
            inlined = (entry.tag() == dw::DW_TAG_inlined_subroutine).then_some(depth);
            let is_variable = matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
            if is_variable && self.name(unit, entry).as_deref() == Some(name) {
                let location =
                    self.location_at(unit, entry, at, has_plain_frame(&function, self.encoding(unit)?));
                match (location, self.type_of(unit, entry)) {
                    (Some(location), Some(of)) => return Some(Ok(Local { of, location })),
                    _ => found = Some(Err("its value is in no register and not in the frame there")),
                }
            }
        }
        found
    }

    fn location_at(
        &self,
        unit: usize,
        entry: &DwarfEntry<'a>,
        at: u64,
        has_plain_frame: bool,
    ) -> Option<LocalLocation> {
        let location = entry.attr_value(dw::DW_AT_location)?;
        let expression = match location {
            AttributeValue::Exprloc(expression) => expression,
            list => {
                let mut all = self.dwarf.attr_locations(self.unit(unit)?, list).ok()??;
                loop {
                    let one = all.next().ok()??;
                    if (one.range.begin..one.range.end).contains(&at) {
                        break one.data;
                    }
                }
            }
        };
        let mut operations = expression.operations(self.encoding(unit)?);
        let location = match operations.next().ok()?? {
            Operation::Register { register } => LocalLocation::Register(register.0),
            Operation::FrameOffset { offset } if has_plain_frame => LocalLocation::Frame(offset),
            _ => return None,
        };
        operations.next().ok()?.is_none().then_some(location)
    }

    fn encoding(&self, unit: usize) -> Option<Encoding> {
        Some(self.unit(unit)?.encoding())
    }
}

/// Whether the frame of a function begins at the stack pointer before its call.
fn has_plain_frame(function: &DwarfEntry, encoding: Encoding) -> bool {
    let Some(AttributeValue::Exprloc(base)) = function.attr_value(dw::DW_AT_frame_base) else { return false };
    let base: gimli::Expression<DwarfSlice> = base;
    let mut operations = base.operations(encoding);
    matches!(operations.next(), Ok(Some(Operation::CallFrameCFA))) && matches!(operations.next(), Ok(None))
}
