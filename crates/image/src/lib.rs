//! ELF images of programs: their segments, their functions, and where each instruction came from.
//!
//! ```no_run
//! let image = pathlength_image::Image::open("/usr/alpha-linux-gnu/lib/libc.so.6.1")?;
//! for function in image.functions() {
//!     println!("{:#x} {:6} {}", function.address, function.size, function.name);
//! }
//! # Ok::<(), pathlength_image::Error>(())
//! ```
//!
//! Every address here is the one the linker gave; a loader that maps the image elsewhere adds its
//! bias. Relocatable object files are refused: their functions have no addresses yet. Nothing in a
//! file is trusted: what lies outside the file or contradicts itself is an
//! [`Error`], never a panic.

mod archive;
mod code;
mod debug_file;
mod demangle;
mod dwarf;
mod dynamic;
mod error;
mod expression;
mod frames;
mod lines;
mod names;
mod segments;
mod symbols;
mod variables;

pub use code::CodeSection;
pub use demangle::{SymbolPattern, demangle, is_image};
pub use error::{Error, ImageProblem};
pub use expression::{
    CallState, CompiledExpression, EvaluationPoint, Expression, ExpressionError, ExpressionTypes,
};
pub use frames::{FrameRow, FrameTable, SavedRegister};
pub use lines::SourceLocation;
pub use names::text;
pub use segments::{ADDRESS_LIMIT, Segment};
pub use symbols::{FunctionSymbol, Symbol};
pub use variables::{Element, StructureMember, Variable};

use code::code_sections;
use dynamic::Dynamic;
use error::SetOfMachine;
use isa::InstructionSet;
use lines::Lines;
use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian as LE, Object};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use symbols::Extents;

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// A program, at fixed addresses or position-independent.
    Executable,
    /// A library, or the dynamic linker.
    SharedObject,
}

/// An executable or shared object.
pub struct Image {
    path: PathBuf,
    bytes: Vec<u8>,
    instruction_set: &'static dyn InstructionSet,
    kind: ImageKind,
    position_independent: bool,
    entry: u64,
    program_headers: Option<u64>,
    interpreter: Option<String>,
    needed: Vec<String>,
    soname: Option<String>,
    build_id: Option<Vec<u8>>,
    segments: Vec<Segment>,
    executable_stack: bool,
    code: Vec<CodeSection>,
    symbols: Vec<Symbol>,
    functions: Vec<FunctionSymbol>,
    extents: Extents,
    /// The file with the symbols and the debug information that the image lacks.
    debug_file: OnceLock<Option<Vec<u8>>>,
    /// Names of functions that have no symbol, by address.
    recovered: OnceLock<HashMap<u64, String>>,
    lines: OnceLock<Mutex<Lines>>,
    /// Why the section headers were left out of account.
    damage: Option<String>,
}

impl Image {
    /// Reads an image from a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Image, Error> {
        Image::open_of(path.as_ref(), isa::of_elf_machine)
    }

    /// The same of any instruction set that traces are recorded of. Of those that only an emulator knows the image has functions,
    /// lines and variables, but no [instructions](Image::instructions).
    pub fn open_of_any_set(path: impl AsRef<Path>) -> Result<Image, Error> {
        Image::open_of(path.as_ref(), isa::any_of_elf_machine)
    }

    fn open_of(path: &Path, set_of: SetOfMachine) -> Result<Image, Error> {
        let bytes = read(path, set_of).map_err(|problem| Error { path: path.into(), problem })?;
        Image::parse_of(path.into(), bytes, set_of)
    }

    /// Reads an image from memory; `path` only names it.
    pub fn parse(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<Image, Error> {
        Image::parse_of(path.into(), bytes, isa::of_elf_machine)
    }

    fn parse_of(path: PathBuf, bytes: Vec<u8>, set_of: SetOfMachine) -> Result<Image, Error> {
        let parsed = error::identify(&bytes, set_of).and_then(|set| {
            let whole = Image::parse_elf(&path, &bytes, set);
            whole.or_else(|problem| {
                // What runs a program needs the program headers alone.
                let image = Image::parse_elf(&path, &without_sections(&bytes), set)?;
                Ok(Image { damage: Some(problem.to_string()), ..image })
            })
        });
        match parsed {
            Ok(image) => Ok(Image { bytes, ..image }),
            Err(problem) => Err(Error { path, problem }),
        }
    }

    /// Why the section headers cannot be used, if they cannot: the image can run, but its functions have no
    /// names.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Fails if the section headers are unusable: for callers that analyse an image.
    pub fn check_sections(&self) -> Result<(), Error> {
        let problem = |damage: &String| Error {
            path: self.path.clone(),
            problem: ImageProblem::Sections(damage.clone()),
        };
        self.damage.as_ref().map_or(Ok(()), |damage| Err(problem(damage)))
    }

    fn parse_elf(
        path: &Path,
        bytes: &[u8],
        instruction_set: &'static dyn InstructionSet,
    ) -> Result<Image, ImageProblem> {
        check_tables(bytes)?;
        let file = ElfFile64::<LE>::parse(bytes)?;
        let header = file.elf_header();
        let program_headers = file.elf_program_headers();
        let segments = segments::read(program_headers, bytes.len())?;
        let alignment = instruction_set.code_alignment();
        let code = code_sections(&file, &segments, bytes.len(), alignment)?;
        let mut symbols = symbols::read(&file, &code, bytes.len())?;
        let stripped = file.elf_symbol_table().is_empty();
        let debug_file = OnceLock::new();
        if stripped {
            let debug = debug_file.get_or_init(|| debug_file::find(path, &file)).as_deref();
            let debug = debug.and_then(|bytes| ElfFile64::<LE>::parse(bytes).ok());
            let debug = debug.filter(|debug| !debug.elf_symbol_table().is_empty());
            // A damaged one is of no use, and no reason to refuse the image.
            let debug = debug.and_then(|debug| symbols::read(&debug, &code, debug.data().len()).ok());
            symbols = debug.unwrap_or(symbols);
        }
        let frames = section(&file, ".eh_frame").filter(|_| stripped);
        let frames = frames.map_or(Vec::new(), |(address, bytes)| symbols::unwind_extents(bytes, address));
        let functions = symbols::functions(&symbols, &code, frames, alignment);
        symbols::add_unnamed(&mut symbols, &functions);
        let interpreter = program_headers.iter().find_map(|header| header.interpreter(LE, bytes).transpose());
        let dynamic = Dynamic::read(program_headers, &segments, bytes)?;
        let kind = if header.e_type(LE) == elf::ET_EXEC || dynamic.position_independent_executable {
            ImageKind::Executable
        } else {
            ImageKind::SharedObject
        };
        let entry = header.e_entry(LE);
        let executable = |address| {
            segments.iter().any(|segment| segment.executable && segment.addresses().contains(&address))
        };
        if kind == ImageKind::Executable && !(entry.is_multiple_of(alignment) && executable(entry)) {
            return Err(ImageProblem::Damaged(format!("entry point {entry:#x} is not in executable code")));
        }
        Ok(Image {
            instruction_set,
            path: path.into(),
            bytes: Vec::new(),
            kind,
            position_independent: header.e_type(LE) == elf::ET_DYN,
            entry,
            program_headers: program_header_address(header, &segments),
            interpreter: interpreter.transpose()?.map(|name| text(name).into()),
            needed: dynamic.needed,
            soname: dynamic.soname,
            build_id: file.build_id()?.map(Into::into),
            extents: Extents::new(&functions),
            segments,
            executable_stack: segments::executable_stack(program_headers),
            code,
            symbols,
            functions,
            debug_file,
            recovered: OnceLock::new(),
            lines: OnceLock::new(),
            damage: None,
        })
    }

    /// The file's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's name without directories.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The purpose of the file.
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// Whether it can be mapped at any address (ELF type `ET_DYN`).
    pub fn position_independent(&self) -> bool {
        self.position_independent
    }

    /// Address of the first instruction executed.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Address of the program headers in memory, if a segment holds them (`AT_PHDR`).
    pub fn program_header_address(&self) -> Option<u64> {
        self.program_headers
    }

    /// Number of program headers, of 56 bytes each (`AT_PHNUM`).
    pub fn program_header_count(&self) -> u16 {
        u16::from_le_bytes([self.bytes[0x38], self.bytes[0x39]])
    }

    /// The dynamic linker that it requests.
    pub fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }

    /// The shared libraries that it needs, in order (`DT_NEEDED`).
    pub fn needed(&self) -> &[String] {
        &self.needed
    }

    /// The name by which programs ask for a library (`DT_SONAME`).
    pub fn soname(&self) -> Option<&str> {
        self.soname.as_deref()
    }

    /// The names of the functions that other images can call.
    pub fn exported(&self) -> impl Iterator<Item = &str> {
        let exported = self.symbols.iter().filter(|symbol| symbol.function && symbol.global);
        exported.map(|symbol| symbol.name.as_str())
    }

    /// The identity that the linker gave it.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// The loadable segments, ascending and disjoint.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether the program's stack is executable (`PT_GNU_STACK`).
    pub fn executable_stack(&self) -> bool {
        self.executable_stack
    }

    /// Whether it is a kernel, or something else that no process can map.
    pub fn is_kernel(&self) -> bool {
        self.segments.iter().any(|segment| segment.addresses().end > ADDRESS_LIMIT)
    }

    /// The sections that hold instructions, ascending and disjoint; the executable segments of an
    /// image without section headers.
    pub fn code(&self) -> &[CodeSection] {
        &self.code
    }

    /// The instruction set of its code.
    pub fn instruction_set(&self) -> &'static dyn InstructionSet {
        self.instruction_set
    }

    /// The instructions of a section with their addresses; none if only an emulator knows them.
    pub fn instructions(&self, code: &CodeSection) -> impl Iterator<Item = (u64, u32)> {
        self.instructions_from(code, code.address)
    }

    /// The instructions of a section from an address on.
    pub fn instructions_from(&self, code: &CodeSection, first: u64) -> impl Iterator<Item = (u64, u32)> {
        let known = Some(code.file.clone()).filter(|_| !self.instruction_set.describes());
        let bytes = known.and_then(|range| self.bytes.get(range)).unwrap_or_default();
        let mut rest = bytes.get(first.wrapping_sub(code.address) as usize..).unwrap_or_default();
        let mut next = first;
        std::iter::from_fn(move || {
            let mut word = [0; 4];
            let held = rest.len().min(4);
            word[..held].copy_from_slice(&rest[..held]);
            let word = u32::from_le_bytes(word);
            let length = self.instruction_set.length(word);
            rest = rest.get(length as usize..)?;
            let address = next;
            next = next.wrapping_add(length);
            // A short one is in the low half.
            Some((address, word & u32::MAX >> (32 - 8 * length.min(4))))
        })
    }

    /// The functions by address, one for each first instruction.
    ///
    /// They come from the symbol table. A stripped image still has the names of its exported
    /// functions, and the extents of the others from its unwind tables; those are named after
    /// their addresses.
    pub fn functions(&self) -> &[FunctionSymbol] {
        &self.functions
    }

    /// The innermost function that contains the instruction at `address`.
    pub fn function_at(&self, address: u64) -> Option<&FunctionSymbol> {
        self.extents.find(&self.functions, address)
    }

    /// The symbol of a function; for a function without a symbol in the image, the name that the static library
    /// in the image's folder gives it, or else an artificial name.
    pub fn symbol_of<'a>(&'a self, function: &'a FunctionSymbol) -> &'a str {
        if function.is_named {
            return &function.name;
        }
        self.recovered().get(&function.address).unwrap_or(&function.name)
    }

    fn recovered(&self) -> &HashMap<u64, String> {
        let recover = || self.static_library().map(|archive| archive::names(self, &archive));
        self.recovered.get_or_init(|| recover().unwrap_or_default())
    }

    /// The static library of the same build, whose instructions can be compared.
    fn static_library(&self) -> Option<PathBuf> {
        archive::beside(&self.path).filter(|_| !self.instruction_set.describes())
    }

    /// The functions without a symbol that a user names as the static library does.
    fn find_recovered(&self, pattern: &SymbolPattern) -> Vec<&Symbol> {
        let Some(archive) = self.static_library() else { return Vec::new() };
        if self.functions.iter().all(|function| function.is_named)
            || !archive::mentions(&archive, pattern.name())
        {
            return Vec::new();
        }
        let unnamed = self.functions.iter().filter(|function| !function.is_named);
        let found = unnamed.filter(|function| pattern.matches_entry(self.symbol_of(function)));
        found.filter_map(|function| self.symbol(&function.name)).collect()
    }

    /// All functions and variables of this name, global ones first. Several source files can each
    /// have a local one.
    pub fn symbols(&self, name: &str) -> &[Symbol] {
        let start = self.symbols.partition_point(|symbol| symbol.name.as_str() < name);
        let rest = &self.symbols[start..];
        &rest[..rest.partition_point(|symbol| symbol.name == name)]
    }

    /// The function or variable of this name; a global one before local ones.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols(name).first()
    }

    /// The file with its sections, if they can be used.
    fn sections(&self) -> Option<ElfFile64<'_, LE>> {
        let file = ElfFile64::<LE>::parse(self.bytes.as_slice()).ok();
        file.filter(|_| self.damage.is_none())
    }

    /// The functions and variables that a user names so: those of this very symbol, or if there are none those
    /// that it is the name of in their source's language.
    pub fn find(&self, pattern: &SymbolPattern) -> Vec<&Symbol> {
        let exact = self.symbols(pattern.name());
        if exact.is_empty() {
            let found: Vec<&Symbol> =
                self.symbols.iter().filter(|symbol| pattern.matches_entry(&symbol.name)).collect();
            return if found.is_empty() { self.find_recovered(pattern) } else { found };
        }
        let start = self.symbols.partition_point(|symbol| symbol.name.as_str() <= pattern.name());
        let clones =
            self.symbols[start..].iter().take_while(|symbol| symbol.name.starts_with(pattern.name()));
        exact.iter().chain(clones.filter(|clone| pattern.matches_entry(&clone.name))).collect()
    }

    /// The file, or if it lacks debug information the one that has it.
    fn with_debug_information(&self) -> Option<ElfFile64<'_, LE>> {
        let file = self.sections()?;
        if section(&file, ".debug_info").is_some() {
            return Some(file);
        }
        let debug = self.debug_file.get_or_init(|| debug_file::find(&self.path, &file)).as_deref();
        debug.and_then(|bytes| ElfFile64::parse(bytes).ok()).or(Some(file))
    }

    /// The variables at fixed addresses, ascending and disjoint: as the debug information has them, with types
    /// and shapes; what that does not know is named by its symbol.
    pub fn variables(&self) -> Vec<Variable> {
        let file = self.with_debug_information();
        let named = self.symbols.iter().filter(|symbol| !symbol.function);
        variables::read(|name| section(file.as_ref()?, name).map(|(_, bytes)| bytes), named)
    }

    /// The line of source that the instruction at `address` was compiled from, if the image has
    /// debug information. Compressed debug sections are not read.
    pub fn location(&self, address: u64) -> Option<SourceLocation> {
        let lines = self.lines.get_or_init(|| {
            let file = self.with_debug_information();
            Mutex::new(Lines::new(|name| section(file.as_ref()?, name).map(|(_, bytes)| bytes)))
        });
        lines.lock().ok()?.location(address)
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Image").field("path", &self.path).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Bytes of the largest file that is read: more than the address space of Alpha's linkers' images, debug information
/// included.
const LARGEST: u64 = 4 << 30;

/// Reads a whole file, but only after its first bytes have been found to be an image's.
fn read(path: &Path, set_of: SetOfMachine) -> Result<Vec<u8>, ImageProblem> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ImageProblem::Missing,
        _ => ImageProblem::Read(error),
    })?;
    if !metadata.is_file() {
        return Err(ImageProblem::NotAFile);
    }
    if metadata.len() > LARGEST {
        return Err(ImageProblem::TooLarge(metadata.len()));
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(error::IDENTIFICATION as u64).read_to_end(&mut bytes)?;
    error::identify(&bytes, set_of)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same file, but its header says that there are no section headers.
fn without_sections(bytes: &[u8]) -> Vec<u8> {
    /// e_shoff; e_shnum and e_shstrndx.
    const FIELDS: [Range<usize>; 2] = [0x28..0x30, 0x3c..0x40];
    let mut bytes = bytes.to_vec();
    FIELDS.into_iter().for_each(|field| bytes[field].fill(0));
    bytes
}

/// Distinguishes a truncated file from an invalid one: both header tables must lie within it.
fn check_tables(bytes: &[u8]) -> Result<(), ImageProblem> {
    let header = FileHeader64::<LE>::parse(bytes)?;
    let tables = [
        ("the program header table", header.e_phoff(LE), header.e_phnum(LE), header.e_phentsize(LE)),
        ("the section header table", header.e_shoff(LE), header.e_shnum(LE), header.e_shentsize(LE)),
    ];
    for (what, offset, count, size) in tables {
        segments::file_range(what, offset, u64::from(count) * u64::from(size), bytes.len())?;
    }
    Ok(())
}

/// A section's address and contents.
fn section<'data>(file: &ElfFile64<'data, LE>, name: &str) -> Option<(u64, &'data [u8])> {
    let (_, section) = file.elf_section_table().section_by_name(LE, name.as_bytes())?;
    Some((section.sh_addr(LE), section.data(LE, file.data()).ok()?))
}

fn program_header_address(header: &FileHeader64<LE>, segments: &[Segment]) -> Option<u64> {
    let offset = usize::try_from(header.e_phoff(LE)).ok()?;
    let segment = segments.iter().find(|segment| segment.file.contains(&offset))?;
    Some(segment.address + (offset - segment.file.start) as u64)
}
