//! Changes what the unmoved part of the image says of the code.

use object::elf;

use super::sections::OutputSections;
use crate::assemble::Assembly;
use crate::elf::Elf;
use crate::error::Problem;
use crate::program::{CodeExtent, DataForm, Program};

/// Changes words of the data, the dynamic section, dynamic symbols and relocations; clears the original code.
pub fn patch(
    program: &Program,
    assembly: &Assembly,
    sections: &OutputSections,
    out: &mut [u8],
) -> Result<(), Problem> {
    let elf = &program.elf;
    let mut patcher = DataPatcher { program, elf, code: &program.code, assembly, out };
    for reference in &program.data {
        let address = assembly.block_addresses[reference.target as usize];
        match reference.form {
            DataForm::Absolute => patcher.put(reference.address, &address.to_le_bytes())?,
            DataForm::GlobalPointerRelative(gp) => {
                let distance = i32::try_from(address.wrapping_sub(gp) as i64);
                let distance = distance.map_err(|_| Problem::OutOfReach { from: gp, to: address })?;
                patcher.put(reference.address, &distance.to_le_bytes())?;
            }
        }
    }
    patcher.dynamic()?;
    patcher.dynamic_symbols(sections)?;
    patcher.dynamic_relocations()?;
    for &(start, end) in &program.code.ranges {
        let from = elf.offset(program.code.address(start)).unwrap_or_default();
        let length = (end - start) as usize * 4;
        patcher.out.get_mut(from..from + length).unwrap_or_default().fill(0);
    }
    Ok(())
}

struct DataPatcher<'a> {
    program: &'a Program,
    elf: &'a Elf,
    code: &'a CodeExtent,
    assembly: &'a Assembly,
    out: &'a mut [u8],
}

impl DataPatcher<'_> {
    fn put(&mut self, address: u64, bytes: &[u8]) -> Result<(), Problem> {
        let offset = self.elf.offset(address);
        let old = offset.and_then(|offset| self.out.get_mut(offset..offset + bytes.len()));
        let old = old.ok_or_else(|| Problem::Damaged(format!("{address:#x} is not in the file")))?;
        old.copy_from_slice(bytes);
        Ok(())
    }

    /// The new address of code.
    fn moved(&self, address: u64) -> Option<u64> {
        let block = self.code.block(address)?;
        Some(self.assembly.block_addresses[block as usize]).filter(|&address| address != 0)
    }

    fn dynamic(&mut self) -> Result<(), Problem> {
        let elf = self.elf;
        for table in elf.sections.iter().filter(|section| section.kind == elf::SHT_DYNAMIC.0) {
            for at in (0..table.size / 16).map(|index| table.address + index * 16) {
                let (Some(tag), Some(value)) = (elf.at(at).map(u64::from_le_bytes), elf.at(at + 8)) else {
                    continue;
                };
                let is_code = [elf::DT_INIT.0 as u64, elf::DT_FINI.0 as u64].contains(&tag);
                let start = self.program.start(u64::from_le_bytes(value));
                let address = start.map(|block| self.assembly.block_addresses[block as usize]);
                if let Some(address) = address.filter(|&address| is_code && address != 0) {
                    self.put(at + 8, &address.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn dynamic_symbols(&mut self, sections: &OutputSections) -> Result<(), Problem> {
        let elf = self.elf;
        for table in elf.sections.iter().filter(|section| section.kind == elf::SHT_DYNSYM.0) {
            for at in (0..table.size / 24).map(|index| table.address + index * 24) {
                let (Some(section), Some(value)) = (elf.at(at + 6), elf.at(at + 8)) else { continue };
                let section = sections.renumber(u16::from_le_bytes(section));
                self.put(at + 6, &section.to_le_bytes())?;
                if let Some(address) = self.moved(u64::from_le_bytes(value)).filter(|_| section != 0) {
                    self.put(at + 8, &address.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn dynamic_relocations(&mut self) -> Result<(), Problem> {
        let elf = self.elf;
        for table in elf.dynamic_relocations() {
            for (relocation, index) in elf.relocations(table).iter().zip(0..) {
                if relocation.symbol != 0 {
                    continue;
                }
                if let Some(address) = self.moved(relocation.addend as u64) {
                    self.put(table.address + index * 24 + 16, &address.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }
}
