//! The parts of an image that a loader maps.

use crate::error::ImageProblem;
use object::elf::{self, ProgramHeader64};
use object::read::elf::ProgramHeader;
use object::{LittleEndian, LittleEndian as LE};
use std::ops::Range;

/// First address that a Linux/Alpha process cannot have (`TASK_SIZE`, asm/processor.h).
pub const ADDRESS_LIMIT: u64 = 0x400_0000_0000;

/// The addresses of kernels: all of memory, and what they map beside it.
const KERNEL_ADDRESSES: Range<u64> = 0xffff_fc00_0000_0000..0xffff_ffff_0000_0000;

/// Whether a program, or a kernel, can have something of this size at an address.
pub(crate) fn is_possible(address: u64, size: u64) -> bool {
    let end = address.checked_add(size);
    end.is_some_and(|end| {
        end <= ADDRESS_LIMIT || (address >= KERNEL_ADDRESSES.start && end <= KERNEL_ADDRESSES.end)
    })
}

/// A loadable segment (`PT_LOAD`). It lies inside the file, its memory inside [`ADDRESS_LIMIT`] or, of a kernel, among its
/// addresses, and segments ascend without overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Link-time address of the first byte.
    pub address: u64,
    /// Bytes in memory; those beyond the file's are zero.
    pub memory_size: u64,
    /// Where its bytes are in the file.
    pub file: Range<usize>,
    /// A power of two to which address and file offset are congruent.
    pub align: u64,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
    /// May be executed.
    pub executable: bool,
}

impl Segment {
    /// The link-time addresses it occupies.
    pub fn addresses(&self) -> Range<u64> {
        self.address..self.address + self.memory_size
    }
}

/// The range `offset..offset + size` of a file of `length` bytes.
pub(crate) fn file_range(
    what: &str,
    offset: u64,
    size: u64,
    length: usize,
) -> Result<Range<usize>, ImageProblem> {
    let end = offset.saturating_add(size);
    if end > length as u64 {
        return Err(ImageProblem::Truncated { what: what.into(), end, size: length as u64 });
    }
    Ok(offset as usize..end as usize)
}

/// All loadable segments, checked.
pub(crate) fn read(
    headers: &[ProgramHeader64<LittleEndian>],
    length: usize,
) -> Result<Vec<Segment>, ImageProblem> {
    let loadable = headers.iter().filter(|header| header.p_type(LE) == elf::PT_LOAD);
    let segments = loadable.map(|header| segment(header, length)).collect::<Result<Vec<_>, _>>()?;
    if segments.is_empty() {
        return Err(ImageProblem::Damaged("no loadable segment".into()));
    }
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].addresses().end > pair[1].address) {
        return Err(ImageProblem::Damaged(format!(
            "segment at {:#x} overlaps or follows the one at {:#x}",
            pair[0].address, pair[1].address
        )));
    }
    Ok(segments)
}

/// Whether the stack is executable: as PT_GNU_STACK says; without one it is, by the kernel's default for Alpha
/// (EXSTACK_DEFAULT in fs/binfmt_elf.c, VM_DATA_DEFAULT_FLAGS in include/linux/mm.h).
pub(crate) fn executable_stack(headers: &[ProgramHeader64<LittleEndian>]) -> bool {
    // The last one counts, as in the kernel.
    let header = headers.iter().rfind(|header| header.p_type(LE) == elf::PT_GNU_STACK);
    header.is_none_or(|header| header.p_flags(LE).contains(elf::PF_X))
}

fn segment(header: &ProgramHeader64<LittleEndian>, length: usize) -> Result<Segment, ImageProblem> {
    let (address, memory_size) = (header.p_vaddr(LE), header.p_memsz(LE));
    let (offset, file_size) = (header.p_offset(LE), header.p_filesz(LE));
    let damaged = |fault: &str| ImageProblem::Damaged(format!("segment at {address:#x} {fault}"));
    let align = header.p_align(LE).max(1);
    if !align.is_power_of_two() {
        return Err(damaged("has an alignment that is no power of two"));
    }
    if !address.wrapping_sub(offset).is_multiple_of(align) {
        return Err(damaged("is not aligned with its offset in the file"));
    }
    if file_size > memory_size {
        return Err(damaged("is larger in the file than in memory"));
    }
    if !is_possible(address, memory_size) {
        return Err(damaged("reaches beyond the address space"));
    }
    let flags = header.p_flags(LE);
    Ok(Segment {
        address,
        memory_size,
        file: file_range(&format!("segment at {address:#x}"), offset, file_size, length)?,
        align,
        readable: flags.contains(elf::PF_R),
        writable: flags.contains(elf::PF_W),
        executable: flags.contains(elf::PF_X),
    })
}
