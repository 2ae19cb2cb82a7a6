//! How to find the callers of a function that runs: the unwinding tables of an image (`.eh_frame`), in a form that can be
//! searched without allocation, so that a signal handler can follow a chain of calls.
//!
//! Only what callers are found by is kept: where a frame begins, and where it keeps the return address and the register
//! that addresses frames of varying size. So a table is an array of small rows, sorted by address, as the Linux kernel's ORC
//! tables are.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, Register, RegisterRule, UnwindContext, UnwindSection,
};
use object::LittleEndian as LE;
use object::read::elf::ElfFile64;

use crate::{Image, section};

/// The most instructions' rows of an image: larger tables are damaged, or of no program.
const MOST_ROWS: usize = 8 << 20;

/// Where the frame of a function begins and its caller's state is, from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The first instruction that this is true for, as linked.
    pub address: u64,
    /// The register from which the frame's begin is counted. None: nothing is known of the code from here on.
    pub base: Option<u8>,
    /// The frame's begin, which is the caller's stack pointer, from there.
    pub offset: i32,
    /// Where the return address is.
    pub return_address: SavedRegister,
    /// Where the caller's frame pointer is.
    pub frame_pointer: SavedRegister,
}

/// Where a register of the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedRegister {
    /// Still in the register.
    InRegister,
    /// In memory, at this distance from the frame's begin.
    At(i32),
}

/// The rows of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameTable {
    rows: Vec<FrameRow>,
}

impl FrameTable {
    /// Reads the table of an image; `frame_pointer` is the number of the register that functions with frames of varying
    /// size address them by. What cannot be read, or needs more than a register and an offset, is left out.
    pub fn of(image: &Image, frame_pointer: u8) -> FrameTable {
        let file = ElfFile64::<LE>::parse(image.bytes()).ok();
        let frames = file.as_ref().and_then(|file| section(file, ".eh_frame"));
        frames.map_or_else(FrameTable::default, |(address, bytes)| read(bytes, address, frame_pointer))
    }

    /// The row of an instruction, by its linked address.
    pub fn row(&self, address: u64) -> Option<&FrameRow> {
        let next = self.rows.partition_point(|row| row.address <= address);
        self.rows[..next].last().filter(|row| row.base.is_some())
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn read(bytes: &[u8], address: u64, frame_pointer: u8) -> FrameTable {
    let frames = EhFrame::new(bytes, gimli::LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let (mut context, mut rows) = (UnwindContext::new(), Vec::new());
    let mut entries = frames.entries(&bases);
    // The first damaged entry ends the walk: later entries cannot be found.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { break };
        let return_address = entry.cie().return_address_register();
        let Ok(mut table) = entry.rows(&frames, &bases, &mut context) else { continue };
        while let Ok(Some(row)) = table.next_row() {
            let saved = |register| match row.register(register) {
                Some(RegisterRule::Offset(offset)) => i32::try_from(offset).ok().map(SavedRegister::At),
                None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => {
                    Some(SavedRegister::InRegister)
                }
                _ => None,
            };
            let found = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => u8::try_from(register.0)
                    .ok()
                    .zip(i32::try_from(*offset).ok())
                    .zip(saved(return_address).zip(saved(Register(frame_pointer.into())))),
                CfaRule::Expression(_) => None,
            };
            rows.push(match found {
                Some(((base, offset), (return_address, frame_pointer))) => FrameRow {
                    address: row.start_address(),
                    base: Some(base),
                    offset,
                    return_address,
                    frame_pointer,
                },
                None => unknown(row.start_address()),
            });
        }
        rows.push(unknown(entry.initial_address().saturating_add(entry.len())));
        if rows.len() > MOST_ROWS {
            break;
        }
    }
    // Where one function ends, the next one may begin: what is known comes last, and counts.
    rows.sort_by_key(|row: &FrameRow| (row.address, row.base.is_some()));
    rows.dedup_by(|later, earlier| {
        let is_same = later.address == earlier.address;
        if is_same {
            *earlier = *later;
        }
        is_same
    });
    rows.dedup_by(|later, earlier| FrameRow { address: earlier.address, ..*later } == *earlier);
    FrameTable { rows }
}

/// Nothing is known from an address on.
fn unknown(address: u64) -> FrameRow {
    let saved = SavedRegister::InRegister;
    FrameRow { address, base: None, offset: 0, return_address: saved, frame_pointer: saved }
}
