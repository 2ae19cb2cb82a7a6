//! Abbreviations: an entry's lowest and highest address become a reference to a list of ranges and unused attributes, so
//! that entries keep their lengths.

use std::collections::HashMap;

use gimli::{DwAt, DwForm, LittleEndian, Reader, constants};

use super::input::damaged;
use crate::section_bytes::SectionBytes;

/// Attributes that no one knows, for the bytes that become free.
const UNUSED: [DwAt; 3] = [DwAt(0x3f50), DwAt(0x3f51), DwAt(0x3f52)];
/// Attributes that refer to sections that are left out.
const DROPPED: [DwAt; 3] =
    [constants::DW_AT_GNU_locviews, constants::DW_AT_macros, constants::DW_AT_GNU_macros];

/// The new abbreviations as they are made.
#[derive(Default)]
pub struct AbbreviationWriter {
    /// The section.
    pub bytes: Vec<u8>,
    /// New offsets of tables by their original ones.
    tables: HashMap<usize, usize>,
}

impl AbbreviationWriter {
    /// The offset of the changed form of a table.
    pub fn table(&mut self, section: &[u8], offset: usize) -> Result<usize, String> {
        if let Some(&new) = self.tables.get(&offset) {
            return Ok(new);
        }
        let new = self.bytes.len();
        let mut input = SectionBytes::new(section.get(offset..).unwrap_or_default(), LittleEndian);
        self.copy(&mut input).map_err(damaged(".debug_abbrev"))??;
        self.tables.insert(offset, new);
        Ok(new)
    }

    fn copy(&mut self, input: &mut SectionBytes) -> gimli::Result<Result<(), String>> {
        loop {
            let code = input.read_uleb128()?;
            self.unsigned(code);
            if code == 0 {
                return Ok(Ok(()));
            }
            let tag = input.read_uleb128()?;
            self.unsigned(tag);
            self.bytes.push(input.read_u8()?);
            let mut attributes = Vec::new();
            loop {
                let (name, form) = (input.read_uleb128_u16()?, input.read_uleb128_u16()?);
                let form = DwForm(form);
                let value =
                    if form == constants::DW_FORM_implicit_const { input.read_sleb128()? } else { 0 };
                attributes.push((DwAt(name), form, value));
                if name == 0 {
                    break;
                }
            }
            if let Err(reason) = self.attributes(&attributes) {
                return Ok(Err(reason));
            }
        }
    }

    fn attributes(&mut self, attributes: &[(DwAt, DwForm, i64)]) -> Result<(), String> {
        let form_of = |name| attributes.iter().find(|one| one.0 == name).map(|one| one.1);
        let has_range = form_of(constants::DW_AT_high_pc).is_some();
        if has_range && form_of(constants::DW_AT_low_pc) != Some(constants::DW_FORM_addr) {
            return Err("the form of a lowest address is not supported".into());
        }
        for &(name, form, value) in attributes {
            match name {
                constants::DW_AT_low_pc if has_range => {
                    self.one(constants::DW_AT_ranges, constants::DW_FORM_sec_offset);
                    self.one(UNUSED[0], constants::DW_FORM_data4);
                }
                constants::DW_AT_high_pc => self.one(UNUSED[1], form),
                // In other forms it is a distance from an address that is no longer there.
                constants::DW_AT_entry_pc if form != constants::DW_FORM_addr => self.one(UNUSED[2], form),
                _ if DROPPED.contains(&name) => self.one(UNUSED[2], form),
                _ => self.one(name, form),
            }
            if form == constants::DW_FORM_implicit_const {
                // Writing to memory does not fail.
                let _ = gimli::leb128::write::signed(&mut self.bytes, value);
            }
        }
        Ok(())
    }

    fn one(&mut self, name: DwAt, form: DwForm) {
        self.unsigned(name.0.into());
        self.unsigned(form.0.into());
    }

    fn unsigned(&mut self, value: u64) {
        let _ = gimli::leb128::write::unsigned(&mut self.bytes, value);
    }
}
