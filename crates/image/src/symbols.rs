//! Names and extents of functions and variables.

use crate::code::CodeSection;
use crate::error::ImageProblem;
use crate::names::text;
use gimli::{BaseAddresses, CieOrFde, EhFrame, UnwindSection};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, Sym, SymbolTable};
use std::borrow::Cow;
use std::cmp::Reverse;

/// A defined function or variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name, without a version.
    pub name: String,
    /// Link-time address.
    pub address: u64,
    /// Size in bytes as the symbol table has it; 0 if it does not say.
    pub size: u64,
    /// Visible outside its source file.
    pub global: bool,
    /// A definition that another one of the same name may replace; often the second name of a function.
    pub weak: bool,
    /// Whether it is a function: by its type, or as a label among instructions.
    pub function: bool,
    /// A symbol without a type, as hand-written assembly often leaves it out.
    pub(crate) untyped: bool,
}

/// A function: its extent in the code and the best of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSymbol {
    /// The symbol; `sub_` and its address in hexadecimal if the image names no function there.
    pub name: String,
    /// Link-time address of the first instruction.
    pub address: u64,
    /// Size in bytes, within its section.
    pub size: u64,
    /// Whether a symbol names it.
    pub is_named: bool,
}

impl FunctionSymbol {
    /// First address after it.
    pub fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// All defined functions and variables, sorted by name, global ones first among equals. They
/// come from the full symbol table, or from the dynamic one of a stripped image.
pub(crate) fn read(
    file: &ElfFile64<LE>,
    code: &[CodeSection],
    length: usize,
) -> Result<Vec<Symbol>, ImageProblem> {
    let table = [file.elf_symbol_table(), file.elf_dynamic_symbol_table()]
        .into_iter()
        .find(|table| !table.is_empty())
        .unwrap_or(file.elf_dynamic_symbol_table());
    let mut symbols = Vec::new();
    let mut bytes = 0;
    for entry in table.iter().filter(|entry| wanted(entry)) {
        let name = name(table, entry)?;
        if name.is_empty() || is_mapping_symbol(&name) {
            continue;
        }
        // Names can overlap in the file; a damaged one could make each as long as the table.
        bytes += name.len();
        if bytes > length {
            return Err(ImageProblem::Damaged("symbol names longer than the file".into()));
        }
        let address = entry.st_value(LE);
        let untyped = entry.st_type() == elf::STT_NOTYPE;
        symbols.push(Symbol {
            name: name.into(),
            address,
            size: entry.st_size(LE),
            global: entry.st_bind() != elf::STB_LOCAL,
            weak: entry.st_bind() == elf::STB_WEAK,
            function: is_function(entry.st_type()) || untyped && section_of(code, address).is_some(),
            untyped,
        });
    }
    sort(&mut symbols);
    Ok(symbols)
}

fn sort(symbols: &mut [Symbol]) {
    symbols.sort_by(|a, b| (&a.name, !a.global, a.address).cmp(&(&b.name, !b.global, b.address)));
}

/// Adds the names that functions without a symbol are shown by.
pub(crate) fn add_unnamed(symbols: &mut Vec<Symbol>, functions: &[FunctionSymbol]) {
    symbols.extend(functions.iter().filter(|function| !function.is_named).map(|function| Symbol {
        name: function.name.clone(),
        address: function.address,
        size: function.size,
        global: false,
        weak: false,
        function: true,
        untyped: false,
    }));
    sort(symbols);
}

/// The section of instructions that an address lies in.
fn section_of(code: &[CodeSection], address: u64) -> Option<&CodeSection> {
    let before = code.partition_point(|code| code.address <= address).checked_sub(1)?;
    Some(&code[before]).filter(|code| address < code.end())
}

fn is_function(kind: elf::SymbolType) -> bool {
    kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC
}

fn wanted(entry: &elf::Sym64<LE>) -> bool {
    let kind = entry.st_type();
    // Hand-written assembly often leaves out the type, and names without one are never empty.
    let named = is_function(kind) || kind == elf::STT_OBJECT || kind == elf::STT_NOTYPE;
    named && !entry.is_undefined(LE) && !entry.is_absolute(LE) && entry.st_name(LE) != 0
}

fn name<'data>(
    table: &SymbolTable<'data, FileHeader64<LE>>,
    entry: &elf::Sym64<LE>,
) -> Result<Cow<'data, str>, ImageProblem> {
    let name = table.symbol_name(LE, entry)?;
    // GNU ld writes versions into the full symbol table as name@VERSION.
    Ok(text(name.split(|&byte| byte == b'@').next().unwrap_or(name)))
}

/// Whether a name only says that code, or data, begin here (ELF for the Arm 64-bit Architecture, "Mapping symbols").
fn is_mapping_symbol(name: &str) -> bool {
    let kind = name.split('.').next().unwrap_or(name);
    matches!(kind, "$x" | "$d" | "$a" | "$t")
}

/// The functions by address, one for each first instruction.
///
/// A function without a size reaches to the next one or to the end of its section.
pub(crate) fn functions(
    symbols: &[Symbol],
    code: &[CodeSection],
    frames: Vec<FunctionSymbol>,
    alignment: u64,
) -> Vec<FunctionSymbol> {
    let (labels, typed): (Vec<&Symbol>, Vec<&Symbol>) =
        symbols.iter().filter(|symbol| symbol.function).partition(|symbol| symbol.untyped);
    let mut functions = merge(by_address(typed), frames);
    bound(&mut functions, code, alignment);
    // A label within a function is the target of a branch; elsewhere it is all that names the code.
    let mut functions = merge(functions, by_address(labels));
    bound(&mut functions, code, alignment);
    functions
}

/// One function for each address, by the best of its symbols.
fn by_address(mut symbols: Vec<&Symbol>) -> Vec<FunctionSymbol> {
    symbols.sort_by_key(|symbol| (symbol.address, preference(symbol)));
    let mut functions: Vec<FunctionSymbol> = Vec::with_capacity(symbols.len());
    for symbol in symbols {
        match functions.last_mut() {
            Some(last) if last.address == symbol.address => last.size = last.size.max(symbol.size),
            _ => functions.push(FunctionSymbol {
                name: symbol.name.clone(),
                address: symbol.address,
                size: symbol.size,
                is_named: true,
            }),
        }
    }
    functions
}

/// Gives functions without a size one, and keeps all of them within their sections.
fn bound(functions: &mut Vec<FunctionSymbol>, code: &[CodeSection], alignment: u64) {
    let mut next = u64::MAX;
    functions.retain(|function| function.address.is_multiple_of(alignment));
    for function in functions.iter_mut().rev() {
        let room = section_of(code, function.address).map_or(0, |code| code.end() - function.address);
        let until_next = next - function.address;
        function.size = room.min(if function.size == 0 { until_next } else { function.size });
        next = function.address;
    }
    functions.retain(|function| function.size > 0);
}

/// Which of several names of one function to show: a global one, with the fewest leading
/// underscores, not a weak one, the shortest.
fn preference(symbol: &Symbol) -> (Reverse<bool>, usize, bool, usize, &str) {
    let name = symbol.name.as_str();
    let underscores = name.len() - name.trim_start_matches('_').len();
    (Reverse(symbol.global), underscores, symbol.weak, name.len(), name)
}

/// Adds those of the second kind that begin in none of the first.
fn merge(named: Vec<FunctionSymbol>, unnamed: Vec<FunctionSymbol>) -> Vec<FunctionSymbol> {
    let extents = Extents::new(&named);
    let fresh = |function: &FunctionSymbol| {
        extents.find(&named, function.address).is_none()
            && named.binary_search_by_key(&function.address, |named| named.address).is_err()
    };
    let fresh: Vec<FunctionSymbol> = unnamed.into_iter().filter(fresh).collect();
    let mut all = named;
    all.extend(fresh);
    all.sort_by_key(|function| function.address);
    all.dedup_by_key(|function| function.address);
    all
}

/// The extents of functions that the unwind tables (`.eh_frame`) know: all that a stripped image
/// says about its local functions.
pub(crate) fn unwind_extents(section: &[u8], address: u64) -> Vec<FunctionSymbol> {
    let table = EhFrame::new(section, gimli::LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut entries = table.entries(&bases);
    let mut functions = Vec::new();
    // The first damaged entry ends the walk: later entries cannot be found.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { break };
        let (address, size) = (entry.initial_address(), entry.len());
        if size > 0 && address.checked_add(size).is_some() {
            functions.push(FunctionSymbol {
                name: format!("sub_{address:x}"),
                address,
                size,
                is_named: false,
            });
        }
    }
    functions
}

/// Finds the function at an address, also where one lies within another.
#[derive(Debug)]
pub(crate) struct Extents {
    /// For each function the highest end of all up to it.
    reach: Vec<u64>,
}

impl Extents {
    pub(crate) fn new(functions: &[FunctionSymbol]) -> Extents {
        let ends = functions.iter().scan(0, |reach, function| {
            *reach = function.address.saturating_add(function.size).max(*reach);
            Some(*reach)
        });
        Extents { reach: ends.collect() }
    }

    /// The function with the highest start that contains `address`.
    pub(crate) fn find<'a>(
        &self,
        functions: &'a [FunctionSymbol],
        address: u64,
    ) -> Option<&'a FunctionSymbol> {
        let after = functions.partition_point(|function| function.address <= address);
        (0..after)
            .rev()
            .take_while(|&index| self.reach[index] > address)
            .map(|index| &functions[index])
            .find(|function| address - function.address < function.size)
    }
}
