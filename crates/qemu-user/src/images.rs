//! The files in which a program's code lies, and their functions.

use std::path::{Path, PathBuf};

use gimli::{BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::stream::HostMapping;

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileFunction {
    address: u64,
    size: u64,
    name: String,
}

/// A segment that is loaded from a file: where its bytes are in it, and at which address of the link.
#[derive(Clone, Copy, Debug)]
struct FileSegment {
    offset: u64,
    bytes: u64,
    address: u64,
    end: u64,
}

/// A file with code.
#[derive(Debug)]
struct CodeFile {
    path: PathBuf,
    contents: Vec<u8>,
    segments: Vec<FileSegment>,
    /// By address; each ends before the next one begins.
    functions: Vec<FileFunction>,
    build_id: Vec<u8>,
}

/// A file in the program's address space: its index, and run-time address minus link-time address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadedFile {
    pub file: usize,
    pub bias: u64,
}

/// The files, and what the host maps of them.
#[derive(Debug, Default)]
pub(crate) struct CodeFiles {
    files: Vec<CodeFile>,
    mappings: Vec<(HostMapping, Option<usize>)>,
}

impl CodeFiles {
    /// A file is mapped. One that is no image shows nothing.
    pub fn map(&mut self, mapping: HostMapping) {
        let known = self.files.iter().position(|file| file.path == mapping.path);
        let index = known.or_else(|| {
            self.files.push(CodeFile::open(&mapping.path)?);
            Some(self.files.len() - 1)
        });
        self.mappings.push((mapping, index));
    }

    /// The file in which a block's code lies, if it has this code there.
    pub fn find(&self, address: u64, host_address: u64, code: &[u8]) -> Option<LoadedFile> {
        let holds = |mapping: &HostMapping| (mapping.start..mapping.end).contains(&host_address);
        let (mapping, index) = self.mappings.iter().rev().find(|(mapping, _)| holds(mapping))?;
        let file = (*index)?;
        let offset = mapping.offset.checked_add(host_address - mapping.start)?;
        let CodeFile { contents, segments, .. } = &self.files[file];
        let own = contents.get(usize::try_from(offset).ok()?..)?.get(..code.len())?;
        let segment = segments.iter().find(|segment| {
            (segment.offset..segment.offset.saturating_add(segment.bytes)).contains(&offset)
        })?;
        let link = segment.address.wrapping_add(offset - segment.offset);
        (own == code).then_some(LoadedFile { file, bias: address.wrapping_sub(link) })
    }

    /// The file as traces have it.
    pub fn described(&self, loaded: LoadedFile) -> events::MappedImage {
        let CodeFile { path, segments, build_id, .. } = &self.files[loaded.file];
        let start = segments.iter().map(|segment| segment.address).min().unwrap_or(0);
        let end = segments.iter().map(|segment| segment.end).max().unwrap_or(0);
        events::MappedImage {
            path: path.clone(),
            start: start.wrapping_add(loaded.bias),
            end: end.wrapping_add(loaded.bias),
            bias: loaded.bias,
            build_id: build_id.clone(),
            functions: Vec::new(),
        }
    }

    /// The function at an address of a loaded file, whose number in the process is `image`.
    pub fn function(&self, loaded: LoadedFile, image: u32, address: u64) -> Option<trace::Function> {
        let link = address.wrapping_sub(loaded.bias);
        let functions = &self.files[loaded.file].functions;
        let last = functions.partition_point(|function| function.address <= link).checked_sub(1)?;
        let FileFunction { address, size, name } = &functions[last];
        (link - address < *size).then(|| trace::Function {
            name: name.clone(),
            image,
            address: address.wrapping_add(loaded.bias),
            size: *size,
        })
    }
}

impl CodeFile {
    fn open(path: &Path) -> Option<CodeFile> {
        let contents = std::fs::read(path).ok()?;
        let file = object::File::parse(&contents[..]).ok()?;
        let segments: Vec<_> = file
            .segments()
            .map(|segment| {
                let (offset, bytes) = segment.file_range();
                let address = segment.address();
                FileSegment { offset, bytes, address, end: address.saturating_add(segment.size()) }
            })
            .collect();
        let end = segments.iter().map(|segment| segment.end).max()?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default().to_vec();
        let functions = functions(&file, end);
        Some(CodeFile { path: path.into(), segments, functions, build_id, contents })
    }
}

/// The functions of a file by address: by its symbols, and where there are none by its unwinding tables. One whose size the symbol
/// does not say ends where the next one begins.
fn functions(file: &object::File, end: u64) -> Vec<FileFunction> {
    let mut functions: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some(FileFunction { address: symbol.address(), size: symbol.size(), name: name.into() })
        })
        .collect();
    // Of several at an address, the one with a size, and among those the first name.
    functions.sort_by(|a, b| (a.address, a.size == 0, &a.name).cmp(&(b.address, b.size == 0, &b.name)));
    functions.dedup_by_key(|function| function.address);
    let is_named = |address: u64| {
        let before = functions.partition_point(|function| function.address <= address).checked_sub(1);
        before.is_some_and(|before| address - functions[before].address < functions[before].size.max(1))
    };
    let unnamed: Vec<_> =
        unwound_functions(file).into_iter().filter(|function| !is_named(function.address)).collect();
    functions.extend(unnamed);
    functions.sort_by_key(|function| function.address);
    functions.dedup_by_key(|function| function.address);
    let mut next = end;
    for function in functions.iter_mut().rev() {
        let room = next.saturating_sub(function.address);
        function.size = if function.size == 0 { room } else { function.size.min(room) };
        next = function.address;
    }
    functions
}

/// The functions that the unwinding tables (`.eh_frame`) know, of files of any size of addresses and order of bytes.
fn unwound_functions(file: &object::File) -> Vec<FileFunction> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut table = EhFrame::new(section.data().unwrap_or_default(), endian);
    table.set_address_size(if file.is_64() { 8 } else { 4 });
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let (mut entries, mut functions) = (table.entries(&bases), Vec::new());
    // The first damaged entry ends the walk: later entries cannot be found.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { break };
        let (address, size) = (entry.initial_address(), entry.len());
        if size > 0 {
            functions.push(FileFunction { address, size, name: format!("sub_{address:x}") });
        }
    }
    functions
}
