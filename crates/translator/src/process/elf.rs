//! Maps the program and its interpreter as the kernel does (fs/binfmt_elf.c).

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramFlags, ProgramHeader64};

use crate::memory::ProgramMemory;
use crate::shared::SharedResults;

const PAGE: u64 = 4096;
/// Where position-independent programs are mapped.
const PROGRAM_BASE: u64 = 0x5000_0000_0000;
/// The room of the heap after a program.
const HEAP_ROOM: u64 = 64 << 30;
/// Bytes of program headers at most, as the kernel accepts.
const MAX_HEADERS: usize = 65536;

/// A mapped ELF file.
#[derive(Debug, Default)]
pub(super) struct MappedElf {
    /// The address of its first instruction.
    pub entry: u64,
    /// The address of its program headers in memory.
    pub headers: u64,
    /// Their number.
    pub header_count: u64,
    /// Run-time address minus link-time address.
    pub bias: u64,
    /// Its interpreter.
    pub interpreter: Option<PathBuf>,
    /// Whether its stack is executable.
    pub has_executable_stack: bool,
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_string())
}

/// The ELF header and the program headers.
fn headers(file: &File) -> io::Result<(FileHeader64<LE>, Vec<ProgramHeader64<LE>>)> {
    let mut bytes = [0; size_of::<FileHeader64<LE>>()];
    file.read_exact_at(&mut bytes, 0).map_err(|_| invalid("is too short for an ELF header"))?;
    let (header, _) =
        object::pod::from_bytes::<FileHeader64<LE>>(&bytes).map_err(|()| invalid("has no ELF header"))?;
    let header = *header;
    if header.e_ident.magic != elf::ELFMAG || header.e_machine.get(LE) != elf::EM_X86_64 {
        return Err(invalid("is no x86-64 ELF file"));
    }
    let count = usize::from(header.e_phnum.get(LE));
    let size = count * size_of::<ProgramHeader64<LE>>();
    if usize::from(header.e_phentsize.get(LE)) != size_of::<ProgramHeader64<LE>>()
        || count == 0
        || size > MAX_HEADERS
    {
        return Err(invalid("has damaged program headers"));
    }
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, header.e_phoff.get(LE))
        .map_err(|_| invalid("ends before its program headers"))?;
    let (headers, _) = object::pod::slice_from_bytes::<ProgramHeader64<LE>>(&bytes, count)
        .map_err(|()| invalid("has damaged program headers"))?;
    Ok((header, headers.to_vec()))
}

/// The name of the interpreter.
fn interpreter(file: &File, header: &ProgramHeader64<LE>) -> io::Result<PathBuf> {
    let size = header.p_filesz.get(LE) as usize;
    if !(2..=libc::PATH_MAX as usize).contains(&size) {
        return Err(invalid("has a damaged name of its interpreter"));
    }
    let mut name = vec![0; size];
    file.read_exact_at(&mut name, header.p_offset.get(LE))?;
    if name.pop() != Some(0) {
        return Err(invalid("has a damaged name of its interpreter"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(name.split(|&byte| byte == 0).next().unwrap_or_default())))
}

/// Where segments are, and with which rights.
struct ElfSegment {
    start: u64,
    file_end: u64,
    end: u64,
    offset: u64,
    rights: i32,
}

impl ElfSegment {
    fn of(header: &ProgramHeader64<LE>) -> io::Result<ElfSegment> {
        let (start, offset) = (header.p_vaddr.get(LE), header.p_offset.get(LE));
        let (in_file, size) = (header.p_filesz.get(LE), header.p_memsz.get(LE));
        let end = start.checked_add(size).filter(|&end| end < 1 << 47 && in_file <= size);
        let end = end.filter(|_| (start ^ offset).is_multiple_of(PAGE));
        let end = end.ok_or_else(|| invalid("has a damaged segment"))?;
        let flags = header.p_flags.get(LE);
        let right = |flag: ProgramFlags, right: i32| if flags.contains(flag) { right } else { 0 };
        let rights = right(elf::PF_R, libc::PROT_READ)
            | right(elf::PF_W, libc::PROT_WRITE)
            | right(elf::PF_X, libc::PROT_EXEC);
        Ok(ElfSegment { start, file_end: start + in_file, end, offset, rights })
    }

    /// Maps the segment at its place.
    fn map(&self, file: &File, bias: u64, replaces: bool) -> io::Result<()> {
        let first = self.start & !(PAGE - 1);
        let flags = if replaces { libc::MAP_FIXED } else { libc::MAP_FIXED_NOREPLACE };
        if self.file_end > self.start {
            let size = self.file_end.next_multiple_of(PAGE) - first;
            let offset = self.offset & !(PAGE - 1);
            let flags = flags | libc::MAP_PRIVATE;
            map(first.wrapping_add(bias), size, self.rights, flags, Some((file, offset)))?;
        }
        let bss = self.file_end.next_multiple_of(PAGE);
        if self.end <= self.file_end {
            return Ok(());
        }
        if self.rights & libc::PROT_WRITE != 0 && !self.file_end.is_multiple_of(PAGE) {
            let (at, size) = (self.file_end.wrapping_add(bias), (bss - self.file_end) as usize);
            // SAFETY: within the page that was mapped above, which is private and writable.
            unsafe { std::ptr::write_bytes(at as *mut u8, 0, size) };
        }
        if self.end > bss {
            let size = self.end.next_multiple_of(PAGE) - bss;
            let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            map(bss.wrapping_add(bias), size, self.rights, flags, None)?;
        }
        Ok(())
    }
}

fn map(at: u64, size: u64, rights: i32, flags: i32, file: Option<(&File, u64)>) -> io::Result<u64> {
    let (file, offset) = file.map_or((-1, 0), |(file, offset)| (file.as_raw_fd(), offset));
    // SAFETY: a new mapping, or one within the program's own reservation.
    let mapped =
        unsafe { libc::mmap(at as *mut _, size as usize, rights, flags, file, offset as libc::off_t) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(mapped as u64)
}

/// Maps a file. The program gets a heap after it; an interpreter is mapped where the kernel likes.
pub(super) fn load(
    path: &Path,
    is_program: bool,
    memory: &mut ProgramMemory,
    results: &SharedResults,
    images: &mut u32,
) -> io::Result<MappedElf> {
    let file = File::open(path)?;
    let (header, headers) = headers(&file)?;
    let loadable = headers.iter().filter(|one| one.p_type.get(LE) == elf::PT_LOAD);
    let segments: Vec<ElfSegment> = loadable.map(ElfSegment::of).collect::<io::Result<_>>()?;
    let start = segments.iter().map(|one| one.start & !(PAGE - 1)).min();
    let end = segments.iter().map(|one| one.end.next_multiple_of(PAGE)).max();
    let (Some(start), Some(end)) = (start, end) else { return Err(invalid("has nothing to load")) };
    let is_relocatable = match header.e_type.get(LE) {
        elf::ET_DYN => true,
        elf::ET_EXEC => false,
        _ => return Err(invalid("is no program")),
    };
    let mut bias = 0;
    if is_relocatable {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let (wanted, fixed) = if is_program { (PROGRAM_BASE, libc::MAP_FIXED_NOREPLACE) } else { (0, 0) };
        bias = map(wanted, end - start, libc::PROT_NONE, flags | fixed, None)?.wrapping_sub(start);
    }
    for segment in &segments {
        segment.map(&file, bias, is_relocatable)?;
        if segment.rights & libc::PROT_EXEC != 0 {
            let first = segment.start & !(PAGE - 1);
            let name = std::fs::canonicalize(path)?;
            let offset = segment.offset & !(PAGE - 1);
            results.add_image(first.wrapping_add(bias), offset, name.as_os_str().as_bytes());
            let is_writable = segment.rights & libc::PROT_WRITE != 0;
            let end = segment.end.next_multiple_of(PAGE).wrapping_add(bias);
            memory.add_code(first.wrapping_add(bias), end, is_writable, *images);
            *images += 1;
        }
    }
    let holds = |segment: &&ElfSegment| {
        let offset = header.e_phoff.get(LE);
        segment.offset <= offset && offset < segment.offset + (segment.file_end - segment.start)
    };
    let in_memory = segments.iter().find(holds);
    let in_memory =
        in_memory.map_or(0, |it| header.e_phoff.get(LE) - it.offset + it.start.wrapping_add(bias));
    if is_program {
        let end = end.wrapping_add(bias);
        memory.set_heap(end, end + HEAP_ROOM);
    }
    let interpreted = headers.iter().find(|one| one.p_type.get(LE) == elf::PT_INTERP);
    let stack = headers.iter().find(|one| one.p_type.get(LE) == elf::PT_GNU_STACK);
    Ok(MappedElf {
        entry: header.e_entry.get(LE).wrapping_add(bias),
        headers: in_memory,
        header_count: headers.len() as u64,
        bias,
        interpreter: interpreted.map(|one| interpreter(&file, one)).transpose()?,
        has_executable_stack: stack.is_none_or(|one| one.p_flags.get(LE).contains(elf::PF_X)),
    })
}
