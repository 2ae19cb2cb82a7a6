//! The PALcode of QEMU's Alpha machine: where it lies, and how it is entered.

use std::ops::Range;
use std::path::PathBuf;

use events::record::ExceptionKind;
use image::Image;
use trace::ExecutionMode;

use crate::Error;
use crate::machine::emulator_file;

/// The file that the emulator loads.
const FILE: &str = "palcode-clipper";
/// Bytes of the code at each entry.
const ENTRY_BYTES: u64 = 64;
/// The first entries of privileged and of unprivileged calls; those of exceptions are before them.
const PRIVILEGED: u64 = 0x1000;
const UNPRIVILEGED: u64 = 0x2000;
/// The number of the first unprivileged call.
const FIRST_UNPRIVILEGED: u32 = 0x80;
/// Calls by which a kernel continues what was interrupted.
const SWITCH_CONTEXT: u32 = 0x30;

/// The entries of exceptions, from the beginning of PALcode (QEMU, `target/alpha/helper.c`).
const EXCEPTIONS: [(u64, ExceptionKind); 9] = [
    (0x080, ExceptionKind::MachineCheck),
    (0x100, ExceptionKind::ProcessorInterrupt),
    (0x180, ExceptionKind::ClockInterrupt),
    (0x200, ExceptionKind::DeviceInterrupt),
    (0x280, ExceptionKind::PageFault),
    (0x300, ExceptionKind::UnalignedAccess),
    (0x380, ExceptionKind::IllegalInstruction),
    (0x400, ExceptionKind::Arithmetic),
    (0x480, ExceptionKind::FloatDisabled),
];

/// PALcode as the guest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palcode {
    /// Its file.
    pub path: PathBuf,
    /// The addresses of its instructions.
    pub code: Range<u64>,
}

/// How PALcode is entered at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PalEntry {
    /// By a call of this function.
    Call(u32),
    /// By an exception.
    Exception(ExceptionKind),
}

impl Palcode {
    /// Finds the emulator's file.
    pub fn find() -> Result<Palcode, Error> {
        let path = emulator_file(FILE)?;
        let image = Image::open(&path)?;
        let code = image.code();
        let start = code.iter().map(|section| section.address).min().unwrap_or(0);
        let end = code.iter().map(|section| section.end()).max().unwrap_or(0);
        Ok(Palcode { path, code: start..end })
    }

    /// Whether an instruction is PALcode's.
    pub fn has(&self, address: u64) -> bool {
        self.code.contains(&address)
    }

    /// The mode that executes the instruction at an address.
    pub fn mode(&self, address: u64) -> ExecutionMode {
        match address >> 63 {
            0 => ExecutionMode::User,
            _ if self.has(address) => ExecutionMode::Pal,
            _ => ExecutionMode::Kernel,
        }
    }

    /// Where the code for the call begins by which the kernel switches to another thread.
    pub fn switch_context(&self) -> u64 {
        self.entry(SWITCH_CONTEXT)
    }

    /// Where the code for a call begins.
    pub fn entry(&self, function: u32) -> u64 {
        let (first, number) = match function.checked_sub(FIRST_UNPRIVILEGED) {
            Some(number) => (UNPRIVILEGED, number),
            None => (PRIVILEGED, function),
        };
        self.code.start + first + u64::from(number) * ENTRY_BYTES
    }

    /// How PALcode is entered at this address; None if the address is no entry.
    pub fn entered_at(&self, address: u64) -> Option<PalEntry> {
        let offset = address.checked_sub(self.code.start).filter(|_| self.has(address))?;
        if let Some(&(_, exception)) = EXCEPTIONS.iter().find(|(entry, _)| *entry == offset) {
            return Some(PalEntry::Exception(exception));
        }
        let (first, number) = if offset >= UNPRIVILEGED {
            (UNPRIVILEGED, FIRST_UNPRIVILEGED)
        } else {
            (offset.min(PRIVILEGED), 0)
        };
        let is_call =
            first >= PRIVILEGED && (offset - first) % ENTRY_BYTES == 0 && (offset - first) / ENTRY_BYTES < 64;
        is_call.then(|| PalEntry::Call(number + ((offset - first) / ENTRY_BYTES) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_again() {
        let palcode = Palcode { path: PathBuf::new(), code: 0xffff_fc00_0000_0000..0xffff_fc00_0000_6898 };
        for function in (0..0x40).chain(0x80..0xc0) {
            assert_eq!(palcode.entered_at(palcode.entry(function)), Some(PalEntry::Call(function)));
        }
        let fault = palcode.code.start + 0x280;
        assert_eq!(palcode.entered_at(fault), Some(PalEntry::Exception(ExceptionKind::PageFault)));
        assert_eq!(palcode.entered_at(fault + 4), None);
        assert_eq!(palcode.entered_at(palcode.entry(0x83) + 8), None);
        assert_eq!(palcode.entered_at(0x1_2000_0280), None);
        assert_eq!(palcode.switch_context(), palcode.code.start + 0x1c00);
    }
}
