//! Symbolizes addresses: image, function and line of source.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use events::{Counts, LoadedImage};
pub use image::demangle;
use image::{Image, SourceLocation, SymbolPattern, Variable};
use trace::Trace;

use crate::similar::{hint, similar};

/// A function, named so that it can be found again in another build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionName {
    /// The image's file name; `(none)` for code outside images.
    pub image: String,
    /// The function's name, demangled; its section in parentheses if no symbol covers the code; or the address.
    pub function: String,
}

impl FunctionName {
    /// Whether a user means it by this name.
    pub fn is_named(&self, pattern: &SymbolPattern) -> bool {
        pattern.may_be_in(&self.image) && pattern.matches_shown(&self.function)
    }
}

/// No function of a name that a user gave was executed. There are names that are like it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no function '{0}' was executed{end}", end = hint(.1, "--by function shows those that were"))]
pub struct NotExecuted(String, Vec<String>);

/// Whether functions of all given names are among those that were executed.
pub fn check_executed<'f>(
    given: &[String],
    executed: impl Iterator<Item = &'f FunctionName> + Clone,
) -> Result<(), NotExecuted> {
    for name in given {
        let pattern = SymbolPattern::new(name);
        if !executed.clone().any(|function| function.is_named(&pattern)) {
            let names = executed.map(|function| function.function.clone());
            return Err(NotExecuted(name.clone(), similar(pattern.name(), names)));
        }
    }
    Ok(())
}

/// Code with a name: a function, or a section without functions, such as the linkage table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCode {
    /// Its name.
    pub name: Arc<FunctionName>,
    /// The function's symbol; none for a section.
    pub symbol: Option<Arc<str>>,
    /// Its first run-time address.
    pub start: u64,
}

/// The images of a run or a trace, their files opened when first needed.
#[derive(Default)]
pub struct Names {
    images: Vec<LoadedNames>,
    /// By image, first address, and whether it is a function: one can begin where its section does.
    found: RefCell<HashMap<(u32, u64, bool), NamedCode>>,
}

struct LoadedNames {
    image: LoadedImage,
    /// The build id that the file must have, if it is known.
    build_id: Option<Vec<u8>>,
    /// The functions that a trace names: address, size, name; by address.
    functions: Vec<(u64, u64, String)>,
    /// The file; none if it cannot be read, or is another one now.
    file: OnceCell<Option<Arc<Image>>>,
}

impl Names {
    /// Of the images that were mapped in a run.
    pub fn of_counts(counts: &Counts) -> Names {
        Names::new(counts.images.iter().map(|image| LoadedNames::new(image.clone())).collect())
    }

    /// For the images of a trace: by their files if those are unchanged, otherwise by the functions that the
    /// trace names.
    pub fn of_trace(trace: &Trace) -> Names {
        Names::new(images_of(trace).iter().map(LoadedNames::of_trace).collect())
    }

    fn new(images: Vec<LoadedNames>) -> Names {
        Names { images, found: RefCell::default() }
    }

    /// Adds an image of a program that runs.
    pub fn add(&mut self, image: &events::MappedImage) {
        self.images.push(LoadedNames::of_trace(image));
    }

    /// The file name of an image; `(none)` for code outside images.
    pub fn image(&self, image: Option<u32>) -> String {
        let loaded = image.and_then(|index| self.images.get(index as usize));
        loaded.map_or_else(|| "(none)".into(), |loaded| file_name(&loaded.image.path))
    }

    /// The function, or else the section, at a run-time address.
    pub fn code(&self, image: Option<u32>, address: u64) -> Option<NamedCode> {
        let index = image?;
        let loaded = self.images.get(index as usize)?;
        let file = self.file(index)?.as_deref();
        let (start, found) = loaded.find(address, file)?;
        let new = || {
            let function = match found {
                FoundCode::Function(symbol) => image::demangle(symbol).into_owned(),
                FoundCode::Section(section) => format!("({section})"),
            };
            let symbol = match found {
                FoundCode::Function(symbol) => Some(symbol.into()),
                FoundCode::Section(_) => None,
            };
            NamedCode { name: Arc::new(FunctionName { image: self.image(image), function }), symbol, start }
        };
        let key = (index, start, matches!(found, FoundCode::Function(_)));
        Some(self.found.borrow_mut().entry(key).or_insert_with(new).clone())
    }

    /// The name of the code at a run-time address.
    pub fn name(&self, image: Option<u32>, address: u64) -> Arc<FunctionName> {
        match self.code(image, address) {
            Some(code) => code.name,
            None => Arc::new(FunctionName { image: self.image(image), function: format!("{address:#x}") }),
        }
    }

    /// The run-time addresses of the functions that have a name, any of their names.
    pub fn starts(&self, pattern: &SymbolPattern) -> HashSet<u64> {
        let indexes = 0..self.images.len() as u32;
        let starts = indexes.filter(|&index| pattern.may_be_in(&self.image(Some(index)))).flat_map(|index| {
            let file = self.file(index).and_then(Option::as_ref);
            let symbols = file.map_or(Vec::new(), |file| file.find(pattern));
            let bias = self.images[index as usize].image.bias;
            symbols.into_iter().map(move |symbol| symbol.address.wrapping_add(bias))
        });
        starts.collect()
    }

    /// The file of source that the function at a run-time address is defined in.
    pub fn source(&self, image: Option<u32>, address: u64) -> Option<String> {
        let function = self.code(image, address)?;
        function.symbol.as_ref()?;
        Some(self.location(image, function.start)?.file)
    }

    /// The line of source that the instruction at a run-time address comes from.
    pub fn location(&self, image: Option<u32>, address: u64) -> Option<SourceLocation> {
        let index = image?;
        let bias = self.images.get(index as usize)?.image.bias;
        self.file(index)?.as_ref()?.location(address.wrapping_sub(bias))
    }

    /// The instructions of the function at a run-time address: their addresses and words, executed or not. None if the
    /// image's file is not there, or another one, or if only an emulator knows its instructions.
    pub fn instructions(&self, image: Option<u32>, address: u64) -> Option<Vec<(u64, u32)>> {
        let index = image?;
        let bias = self.images.get(index as usize)?.image.bias;
        let file = self.file(index)?.as_ref().filter(|file| !file.instruction_set().describes())?;
        let link_address = address.wrapping_sub(bias);
        let function = file.function_at(link_address)?;
        let section = file.code().iter().find(|code| (code.address..code.end()).contains(&link_address))?;
        let instructions = file.instructions(section);
        let parts = file.symbols(&format!("{}{COLD}", file.symbol_of(function)));
        let parts = parts.iter().map(|part| part.address..part.address.saturating_add(part.size));
        // A cold part that is not the only one of its name may be that of another function.
        let parts: Vec<Range<u64>> =
            Some(parts).filter(|parts| parts.len() == 1).into_iter().flatten().collect();
        let is_own = |address: &u64| {
            (function.address..function.end()).contains(address)
                || parts.iter().any(|part| part.contains(address))
        };
        let own = instructions.filter(|(address, _)| is_own(address));
        Some(own.map(|(address, word)| (address.wrapping_add(bias), word)).collect())
    }

    /// The variables of an image, at link-time addresses; none if its file is not there, or another one.
    pub fn variables(&self, image: u32) -> Vec<Variable> {
        self.file(image).and_then(Option::as_ref).map_or(Vec::new(), |file| file.variables())
    }

    /// The file of an image, shared by all mappings of it.
    fn file(&self, index: u32) -> Option<&Option<Arc<Image>>> {
        let loaded = self.images.get(index as usize)?;
        let open = || {
            let same = |other: &&LoadedNames| other.image.path == loaded.image.path;
            let shared = self.images.iter().filter(same).find_map(|other| other.file.get()?.clone());
            let file = shared.or_else(|| Image::open_of_any_set(&loaded.image.path).ok().map(Arc::new))?;
            let loaded_id = loaded.build_id.as_deref();
            loaded_id.is_none_or(|id| id == file.build_id().unwrap_or_default()).then_some(file)
        };
        Some(loaded.file.get_or_init(open))
    }
}

impl LoadedNames {
    fn new(image: LoadedImage) -> LoadedNames {
        LoadedNames { image, build_id: None, functions: Vec::new(), file: OnceCell::new() }
    }

    /// An image as traces have it.
    fn of_trace(image: &events::MappedImage) -> LoadedNames {
        let events::MappedImage { path, start, end, bias, build_id, functions } = image.clone();
        let loaded = LoadedNames::new(LoadedImage { path, start, end, bias });
        LoadedNames { build_id: Some(build_id), functions, ..loaded }
    }

    /// The start and the name of the code at a run-time address.
    fn find<'a>(&'a self, address: u64, file: Option<&'a Image>) -> Option<(u64, FoundCode<'a>)> {
        let bias = self.image.bias;
        let Some(file) = file else { return self.traced(address) };
        let link_address = address.wrapping_sub(bias);
        if let Some(function) = file.function_at(link_address) {
            let symbol = file.symbol_of(function);
            let (start, name) = match symbol.strip_suffix(COLD) {
                Some(whole) => (start_of_whole(file, whole).unwrap_or(function.address), whole),
                None => (function.address, symbol),
            };
            return Some((start.wrapping_add(bias), FoundCode::Function(name)));
        }
        // The linkage table and the like: named by their section.
        let section = file.code().iter().find(|code| (code.address..code.end()).contains(&link_address))?;
        Some((section.address.wrapping_add(bias), FoundCode::Section(&section.name)))
    }

    /// The same by the functions that a trace names.
    fn traced(&self, address: u64) -> Option<(u64, FoundCode<'_>)> {
        let before = self.functions.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (start, size, name) = &self.functions[before];
        let whole = name.strip_suffix(COLD);
        let mut named = self.functions.iter().filter(|function| Some(function.2.as_str()) == whole);
        let of_whole = named.next().filter(|_| named.next().is_none()).map(|function| function.0);
        let found = (of_whole.unwrap_or(*start), FoundCode::Function(whole.unwrap_or(name)));
        (address - start < *size).then_some(found)
    }
}

/// The end of the name of a function's cold part, which compilers and optimizers put elsewhere.
const COLD: &str = ".cold";

/// Where a function begins that has a cold part, if only one has its name.
fn start_of_whole(file: &Image, name: &str) -> Option<u64> {
    match file.symbols(name) {
        [one] if one.function => Some(one.address),
        _ => None,
    }
}

/// The code at an address: a function by its symbol, or a section.
#[derive(Clone, Copy)]
enum FoundCode<'a> {
    Function(&'a str),
    Section(&'a str),
}

/// The images of a trace, with the functions that it names, by their addresses.
pub(crate) fn images_of(trace: &Trace) -> Vec<events::MappedImage> {
    let mut images = trace.images().to_vec();
    for function in trace.functions() {
        if let Some(image) = images.get_mut(function.image as usize) {
            image.functions.push((function.address, function.size, function.name.clone()));
        }
    }
    images.iter_mut().for_each(|image| image.functions.sort_unstable());
    images
}

/// The last component of a path, as text.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
