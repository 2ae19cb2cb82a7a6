//! Loads a program as Linux's `execve` does: its segments, those of its dynamic loader, and the initial stack.
//!
//! The layout is QEMU's, so that registers can be compared with QEMU's: room for the heap after the
//! program; from [`Layout::map_base`] on the stack, the dynamic loader, and a page in the place of qemu's
//! signal trampoline.

use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use events::LoadedImage;
use image::{Image, ImageKind, Segment};

use crate::abi::{Abi, SignalReturn};
use guest_memory::{Layout, Memory, RegionBacking};

/// Why a program could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not an executable image.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// The program's dynamic loader is missing.
    #[error(
        "the program's dynamic loader {interpreter} is not under the sysroot {}: install {c_library} or name a \
         sysroot with --sysroot DIR", sysroot.display()
    )]
    NoInterpreter {
        /// Its path as the program states it.
        interpreter: String,
        /// The host path that was tried.
        sysroot: PathBuf,
        /// The guest's C library, and how to install it.
        c_library: &'static str,
    },
    /// The arguments and the environment do not fit into the stack.
    #[error("the arguments and the environment take {0} bytes: more than a quarter of the stack")]
    ArgumentsTooLong(u64),
    /// The host failed to map memory.
    #[error("cannot map {}: {error}", path.display())]
    Map {
        /// The image or other region that was to be mapped.
        path: PathBuf,
        /// The host's error.
        error: std::io::Error,
    },
}

/// A program to load, with its arguments.
pub struct ProgramToLoad<'a> {
    /// The executable on the host.
    pub path: &'a Path,
    /// The file that is loaded for it.
    pub file: &'a Path,
    /// Its name as the program sees it (`AT_EXECFN`).
    pub name: &'a std::ffi::OsStr,
    /// `argv`, including `argv[0]`.
    pub arguments: &'a [OsString],
    /// `NAME=value` strings, in the order of `environ`.
    pub environment: &'a [OsString],
    /// Size of the stack in bytes.
    pub stack_bytes: u64,
    /// The 16 bytes at `AT_RANDOM`.
    pub random: [u8; 16],
}

/// A loaded program, ready to start.
pub struct LoadedProgram {
    /// The entry address: the dynamic loader's, if there is one.
    pub entry: u64,
    /// The initial contents of the stack.
    pub stack: Stack,
    /// The initial end of the heap.
    pub heap: u64,
    /// Whether the program requests an executable stack; its heap is then executable, too.
    pub executable_stack: bool,
    /// The images mapped.
    pub images: Vec<LoadedImage>,
}

/// Addresses of the stack's initial contents.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// The initial stack pointer.
    pub pointer: u64,
    /// The strings of the environment.
    pub environment: Range<u64>,
    /// The auxiliary vector.
    pub vector: Range<u64>,
}

/// Address space in bytes that is kept free after the program for its heap.
const HEAP_ROOM: u64 = 32 << 20;

/// The name of the stack's region.
pub const STACK: &str = "[stack]";

/// The name of the region of the code to which signal handlers return.
const SIGNAL_RETURN: &str = "[vdso]";

/// Loads `program` into empty `memory`. `locate` finds the dynamic loader's file.
pub fn load<G: Abi>(
    program: &ProgramToLoad,
    memory: &Memory,
    sysroot: &Path,
    locate: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<LoadedProgram, LoadError> {
    let image = open(program.file)?;
    let room = if image.kind() == ImageKind::Executable { HEAP_ROOM } else { 0 };
    let main = map_image(&image, program.path, memory, room)?;
    let heap = main.end;
    let executable_stack = image.executable_stack();
    let stack_top = map_stack(memory, program.stack_bytes, executable_stack)?;
    let mut images = vec![main];
    let mut entry = image.entry().wrapping_add(images[0].bias);
    let mut interpreter_base = 0;
    if let Some(interpreter) = image.interpreter() {
        let path = locate(Path::new(interpreter)).ok_or_else(|| LoadError::NoInterpreter {
            interpreter: interpreter.into(),
            sysroot: sysroot.into(),
            c_library: G::C_LIBRARY,
        })?;
        let loader = open(&path)?;
        let mapped = map_image(&loader, &path, memory, 0)?;
        entry = loader.entry().wrapping_add(mapped.bias);
        interpreter_base = mapped.bias;
        images.push(mapped);
    }
    // The page of qemu's trampoline. It stays unused, as the C library has its own.
    let page = G::LAYOUT.page;
    let trampoline = memory.find_free(0, page).ok_or_else(|| no_room(program.path))?;
    map_anonymous(memory, trampoline, page, libc::PROT_READ, "[trampoline]")?;
    if let Some(SignalReturn { address, code }) = G::SIGNAL_RETURN {
        let failed = |error| LoadError::Map { path: SIGNAL_RETURN.into(), error };
        map_anonymous(memory, address, page, libc::PROT_READ | libc::PROT_WRITE, SIGNAL_RETURN)?;
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.write(address, &bytes).expect("just mapped writable");
        memory.protect(address, page, libc::PROT_READ | libc::PROT_EXEC).map_err(failed)?;
    }
    let header = image.program_header_address().map_or(0, |address| address.wrapping_add(images[0].bias));
    let start = images[0].bias.wrapping_add(image.entry());
    let vector = auxiliary_vector::<G>(header, image.program_header_count(), interpreter_base, start);
    let stack = build_stack(program, memory, stack_top, &vector)?;
    Ok(LoadedProgram { entry, stack, heap, executable_stack, images })
}

/// Opens an executable image. Without usable section headers it runs, but has no symbols.
fn open(path: &Path) -> Result<Image, LoadError> {
    let image = Image::open(path)?;
    if let Some(damage) = image.damage() {
        text::message!("{}: {damage}; it runs, but its functions have no names", path.display());
    }
    Ok(image)
}

fn no_room(path: &Path) -> LoadError {
    LoadError::Map { path: path.into(), error: std::io::Error::from_raw_os_error(libc::ENOMEM) }
}

fn map_anonymous(
    memory: &Memory,
    start: u64,
    bytes: u64,
    protection: i32,
    name: &'static str,
) -> Result<(), LoadError> {
    memory
        .map_anonymous(start, bytes, protection, false, RegionBacking::Named(name))
        .map_err(|error| LoadError::Map { path: name.into(), error })
}

fn map_stack(memory: &Memory, bytes: u64, executable: bool) -> Result<u64, LoadError> {
    let Layout { page, .. } = memory.layout();
    let bytes = bytes.next_multiple_of(page);
    let execute = if executable { libc::PROT_EXEC } else { 0 };
    let protection = libc::PROT_READ | libc::PROT_WRITE | execute;
    // A guard page below, which is never accessible.
    let low = memory.find_free(0, bytes + page).ok_or_else(|| no_room(Path::new(STACK)))?;
    map_anonymous(memory, low, page, libc::PROT_NONE, "[guard]")?;
    map_anonymous(memory, low + page, bytes, protection, STACK)?;
    Ok(low + page + bytes)
}

/// Maps an image's segments; a position-independent image at a free range. The program sees them as those of the file
/// `shown`. `room` bytes after it are left free.
fn map_image(image: &Image, shown: &Path, memory: &Memory, room: u64) -> Result<LoadedImage, LoadError> {
    let failed = |error| LoadError::Map { path: image.path().into(), error };
    let segments = image.segments();
    if image.is_kernel() {
        let error = std::io::Error::other("it is a kernel, or firmware: no process can have its addresses");
        return Err(failed(error));
    }
    let layout = memory.layout();
    let low = layout.page_of(segments[0].address);
    let high = segments[segments.len() - 1].addresses().end.next_multiple_of(layout.page);
    let bias = if image.position_independent() {
        let start = memory.find_free(0, high - low + room).ok_or_else(|| no_room(image.path()))?;
        start.wrapping_sub(low)
    } else {
        0
    };
    let file = File::open(image.path()).map_err(failed)?;
    let shown = Arc::new(std::fs::canonicalize(shown).unwrap_or_else(|_| shown.into()));
    for segment in segments {
        map_segment(image, segment, bias, memory, &file, &shown).map_err(failed)?;
    }
    Ok(LoadedImage {
        // The program may change its folder.
        path: std::path::absolute(image.path()).unwrap_or_else(|_| image.path().into()),
        start: low.wrapping_add(bias),
        end: high.wrapping_add(bias),
        bias,
    })
}

/// Pages that contain bytes of the file are private mappings of the file, including the last one, so that pages which
/// the program discards are read from the file again (elf_map in fs/binfmt_elf.c). Memory beyond the file's bytes is
/// zeroed. A segment whose file offset does not allow a mapping is copied.
fn map_segment(
    image: &Image,
    segment: &Segment,
    bias: u64,
    memory: &Memory,
    file: &File,
    path: &Arc<PathBuf>,
) -> std::io::Result<()> {
    let address = segment.address.wrapping_add(bias);
    let layout = memory.layout();
    let start = layout.page_of(address);
    let end = (address + segment.memory_size).next_multiple_of(layout.page);
    let lead = address - start;
    let offset = segment.file.start as u64;
    let protection = protection(segment);
    let writable = protection | libc::PROT_READ | libc::PROT_WRITE;
    let bytes = segment.file.len() as u64;
    let congruent = offset >= lead && (offset - lead).is_multiple_of(layout.page);
    let from_file = if congruent && bytes > 0 { (lead + bytes).next_multiple_of(layout.page) } else { 0 };
    if from_file > 0 {
        let fd = file.as_raw_fd();
        memory.map_file(start, from_file, writable, false, fd, offset - lead, path.clone())?;
        if segment.memory_size > bytes {
            let rest = (from_file - lead - bytes) as usize;
            memory.write(address + bytes, &vec![0; rest]).expect("just mapped writable");
        }
    }
    if start + from_file < end {
        let backing =
            RegionBacking::File { path: path.clone(), offset: (offset + from_file).saturating_sub(lead) };
        memory.map_anonymous(start + from_file, end - start - from_file, writable, false, backing)?;
        if from_file == 0 {
            memory.write(address, &image.bytes()[segment.file.clone()]).expect("just mapped writable");
        }
    }
    if protection != writable { memory.protect(start, end - start, protection) } else { Ok(()) }
}

fn protection(segment: &Segment) -> i32 {
    let bit = |set, bit| if set { bit } else { 0 };
    bit(segment.readable, libc::PROT_READ)
        | bit(segment.writable, libc::PROT_WRITE)
        | bit(segment.executable, libc::PROT_EXEC)
}

/// The entries of the auxiliary vector (include/uapi/linux/auxvec.h) that do not point into the stack; the others are
/// added with the stack.
fn auxiliary_vector<G: Abi>(header: u64, headers: u16, base: u64, entry: u64) -> Vec<(u64, u64)> {
    const SIZE_OF_PROGRAM_HEADER: u64 = 56;
    const TICKS_PER_SECOND: u64 = 100;
    // SAFETY: these calls have no preconditions.
    let ids = unsafe { [libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()] };
    vec![
        (libc::AT_PHDR, header),
        (libc::AT_PHENT, SIZE_OF_PROGRAM_HEADER),
        (libc::AT_PHNUM, u64::from(headers)),
        (libc::AT_PAGESZ, G::LAYOUT.page),
        (libc::AT_BASE, base),
        (libc::AT_FLAGS, 0),
        (libc::AT_ENTRY, entry),
        (libc::AT_UID, u64::from(ids[0])),
        (libc::AT_EUID, u64::from(ids[1])),
        (libc::AT_GID, u64::from(ids[2])),
        (libc::AT_EGID, u64::from(ids[3])),
        (libc::AT_HWCAP, G::HARDWARE_CAPABILITIES),
        (libc::AT_CLKTCK, TICKS_PER_SECOND),
    ]
}

/// Writes strings, random bytes, auxiliary vector, environment and arguments; `argc` is at the stack pointer.
fn build_stack(
    program: &ProgramToLoad,
    memory: &Memory,
    top: u64,
    vector: &[(u64, u64)],
) -> Result<Stack, LoadError> {
    let strings = || program.arguments.iter().chain(program.environment).map(|s| s.as_bytes());
    let name = program.name.as_bytes();
    let text_bytes: u64 = strings().map(|s| s.len() as u64 + 1).sum::<u64>() + name.len() as u64 + 1;
    let text = top - 8 - text_bytes;
    let random = (text & !15) - 16;
    let mut vector = vector.to_vec();
    let execfn = top - 8 - (name.len() as u64 + 1);
    vector.extend([(libc::AT_RANDOM, random), (libc::AT_SECURE, 0), (libc::AT_EXECFN, execfn), (0, 0)]);
    let pointers = program.arguments.len() + program.environment.len() + 3;
    let words = pointers + 2 * vector.len();
    let stack_pointer = (random - 8 * words as u64) & !15;
    if top - stack_pointer > program.stack_bytes / 4 {
        return Err(LoadError::ArgumentsTooLong(top - stack_pointer));
    }
    let vector_start = stack_pointer + 8 * pointers as u64;
    let stack = Stack {
        pointer: stack_pointer,
        environment: execfn - program.environment.iter().map(|s| s.len() as u64 + 1).sum::<u64>()..execfn,
        vector: vector_start..vector_start + 16 * vector.len() as u64,
    };
    let mut block = Vec::new();
    let mut at = text;
    let mut push = |value: u64| block.extend_from_slice(&value.to_le_bytes());
    push(program.arguments.len() as u64);
    for list in [program.arguments, program.environment] {
        for string in list {
            push(at);
            at += string.len() as u64 + 1;
        }
        push(0);
    }
    for (key, value) in vector {
        push(key);
        push(value);
    }
    let text: Vec<u8> = strings().chain([name]).flat_map(|s| [s, b"\0"].concat()).collect();
    let written = memory
        .write(stack_pointer, &block)
        .and_then(|()| memory.write(random, &program.random))
        .and_then(|()| memory.write(top - 8 - text_bytes, &text));
    written.expect("the stack was just mapped");
    Ok(stack)
}
