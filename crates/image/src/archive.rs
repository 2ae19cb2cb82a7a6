//! Names for the functions of a stripped library, from the static library of the same build.
//!
//! The objects of `libc.a` are compiled from the sources of `libc.so`, often by the same switches, and still have all
//! symbols. A function of the library matches one of theirs if all instructions are equal, except those that relocations
//! apply to. If two functions match, the functions that they call match, too.
//! Neither a function that has several candidates gets a name, nor several of one candidate.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use object::elf;
use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, SectionHeader, Sym};
use object::{LittleEndian as LE, SectionIndex};

use crate::Image;
use crate::names::text;
use crate::symbols::FunctionSymbol;

/// The least number of equal instructions for a match: shorter functions resemble each other.
const FEWEST: usize = 8;
/// Larger archives are not read.
const LARGEST: u64 = 256 << 20;
/// The relocation of calls between functions of one global pointer (binutils' include/elf/alpha.h).
const BRSGP: elf::RelocationType = elf::RelocationType(28);
/// `bsr`'s opcode.
const BSR: u32 = 0x34;

/// The static library in the folder of a shared one: `libc.a` of `libc.so.6`.
pub(crate) fn beside(library: &Path) -> Option<PathBuf> {
    let name = library.file_name()?.to_str()?;
    let (stem, _) = name.split_once(".so")?;
    let archive = library.with_file_name(format!("{stem}.a"));
    let metadata = fs::metadata(&archive).ok()?;
    (metadata.is_file() && metadata.len() <= LARGEST).then_some(archive)
}

/// Whether a symbol's name is anywhere in an archive: which most are not.
pub(crate) fn mentions(archive: &Path, name: &str) -> bool {
    let needle = [b"\0", name.as_bytes(), b"\0"].concat();
    fs::read(archive).is_ok_and(|bytes| memchr::memmem::find(&bytes, &needle).is_some())
}

/// The names of unnamed functions of an image by address, where an archive's objects have a match.
pub(crate) fn names(image: &Image, archive: &Path) -> HashMap<u64, String> {
    let Ok(bytes) = fs::read(archive) else { return HashMap::new() };
    let Ok(archive) = ArchiveFile::parse(bytes.as_slice()) else { return HashMap::new() };
    let members = archive.members().filter_map(Result::ok);
    let objects = members.filter_map(|member| member.data(bytes.as_slice()).ok());
    let candidates: Vec<Candidate> = objects.filter_map(Candidate::of_object).flatten().collect();
    NameSearch::new(image, &candidates).names()
}

/// A function of an object file.
struct Candidate {
    name: String,
    /// All its names.
    aliases: Vec<String>,
    /// The instructions, without those that pad it; none where a relocation applies.
    words: Vec<Option<u32>>,
    /// Its calls: the index of the instruction, and the name of the called function.
    calls: Vec<(usize, String)>,
}

impl Candidate {
    /// The functions of a relocatable file; none of a damaged one.
    fn of_object(bytes: &[u8]) -> Option<Vec<Candidate>> {
        let file = ElfFile64::<LE>::parse(bytes).ok()?;
        let table = file.elf_section_table();
        let mut candidates = Vec::new();
        for (index, section) in table.enumerate() {
            if section.sh_flags(LE).contains(elf::SHF_EXECINSTR) {
                let code = section.data(LE, bytes).ok()?;
                candidates.extend(ObjectSection::new(&file, index, code).candidates());
            }
        }
        Some(candidates)
    }
}

/// A section of instructions of an object file.
struct ObjectSection {
    words: Vec<Option<u32>>,
    calls: BTreeMap<usize, String>,
    /// The names of functions by the index of their first instruction, with their number of instructions.
    functions: BTreeMap<usize, (usize, Vec<String>)>,
}

impl ObjectSection {
    fn new(file: &ElfFile64<LE>, index: SectionIndex, code: &[u8]) -> ObjectSection {
        let words = code.as_chunks::<4>().0.iter().map(|&word| Some(u32::from_le_bytes(word)));
        let mut section =
            ObjectSection { words: words.collect(), calls: BTreeMap::new(), functions: BTreeMap::new() };
        let symbols = file.elf_symbol_table();
        for symbol in
            symbols.iter().filter(|symbol| symbol.st_shndx(LE) == elf::SymbolSection(index.0 as u16))
        {
            let (at, size) = (symbol.st_value(LE) as usize / 4, symbol.st_size(LE) as usize / 4);
            let name = symbol.name(LE, symbols.strings()).ok().map(text);
            if let Some(name) = name.filter(|_| symbol.st_type() == elf::STT_FUNC && size > 0) {
                let function = section.functions.entry(at).or_default();
                function.0 = function.0.max(size);
                function.1.push(name.into());
            }
        }
        section.branches();
        for relocations in file.elf_section_table().iter() {
            let applies = relocations.sh_info(LE) as usize == index.0;
            if let (true, Ok(Some((all, _)))) = (applies, relocations.rela(LE, file.data())) {
                all.iter().for_each(|one| section.relocation(file, one));
            }
        }
        section
    }

    /// Calls within the section, which need no relocation.
    fn branches(&mut self) {
        for (index, word) in self.words.iter().enumerate() {
            let target = word.and_then(|word| bsr_target(word, index as u64 * 4));
            let name = target.and_then(|target| self.name_at(target));
            self.calls.extend(name.map(|name| (index, name)));
        }
    }

    /// The function that a call to an offset enters: at its beginning, or after the instructions that set the global pointer.
    fn name_at(&self, offset: u64) -> Option<String> {
        let index = offset as usize / 4;
        let found = [Some(index), index.checked_sub(2)];
        let function = found.into_iter().flatten().find_map(|index| self.functions.get(&index))?;
        best(&function.1)
    }

    fn relocation(&mut self, file: &ElfFile64<LE>, relocation: &elf::Rela64<LE>) {
        let (offset, kind) = (relocation.r_offset.get(LE), relocation.r_type(LE, false));
        let addend = relocation.r_addend.get(LE);
        let index = offset as usize / 4;
        if let Some(word) = self.words.get_mut(index) {
            *word = None;
        }
        // The second of the two instructions that compute the global pointer.
        if kind == elf::R_ALPHA_GPDISP
            && let Some(word) = self.words.get_mut(offset.saturating_add_signed(addend) as usize / 4)
        {
            *word = None;
        }
        if [elf::R_ALPHA_HINT, elf::R_ALPHA_BRADDR, BRSGP].contains(&kind) {
            let symbols = file.elf_symbol_table();
            let symbol = symbols.symbol(object::SymbolIndex(relocation.r_sym(LE, false) as usize)).ok();
            let name = symbol.and_then(|symbol| symbol.name(LE, symbols.strings()).ok());
            let name = name.map(text).filter(|name| !name.is_empty());
            self.calls.extend(name.filter(|_| addend == 0).map(|name| (index, name.into_owned())));
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let functions = self.functions.iter().filter_map(|(&at, (size, names))| {
            let mut words = self.words.get(at..at + size)?.to_vec();
            trim(&mut words);
            let calls = self.calls.range(at..at + words.len());
            let calls = calls.map(|(index, name)| (index - at, name.clone())).collect();
            Some(Candidate { name: best(names)?, aliases: names.clone(), words, calls })
        });
        functions.collect()
    }
}

/// Which of the names of a function to show.
fn best(names: &[String]) -> Option<String> {
    let key =
        |name: &&String| (name.len() - name.trim_start_matches('_').len(), name.len(), name.to_string());
    names.iter().min_by_key(key).cloned()
}

/// The target of a `bsr`.
fn bsr_target(word: u32, address: u64) -> Option<u64> {
    let displacement = i64::from((word << 11).cast_signed() >> 11) * 4;
    (word >> 26 == BSR).then(|| address.wrapping_add(4).wrapping_add_signed(displacement))
}

/// Takes away the no-operations that fill the room up to the next function.
fn trim(words: &mut Vec<Option<u32>>) {
    // unop, nop, fnop
    let is_padding = |word: &Option<u32>| matches!(word, Some(0x2ffe_0000 | 0x47ff_041f | 0x5fff_041f));
    while words.last().is_some_and(is_padding) {
        words.pop();
    }
}

/// The search for names.
struct NameSearch<'a> {
    functions: &'a [FunctionSymbol],
    bodies: Vec<Vec<Option<u32>>>,
    candidates: &'a [Candidate],
    /// By function: the candidates that it can be.
    possible: Vec<Vec<usize>>,
    /// By function: its name, if it is known.
    names: Vec<Option<String>>,
    /// By each name of a candidate the one to show; none if candidates of several objects have it.
    shown: HashMap<&'a str, Option<&'a str>>,
}

impl<'a> NameSearch<'a> {
    fn new(image: &'a Image, candidates: &'a [Candidate]) -> NameSearch<'a> {
        let functions = image.functions();
        let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            by_length.entry(candidate.words.len()).or_default().push(index);
        }
        let bodies: Vec<Vec<Option<u32>>> = functions.iter().map(|function| body(image, function)).collect();
        let possible = bodies.iter().map(|body| {
            let same_length = by_length.get(&body.len()).into_iter().flatten().copied();
            same_length.filter(|&index| is_same(body, &candidates[index].words)).collect()
        });
        let possible = possible.collect();
        let names =
            functions.iter().map(|function| function.is_named.then(|| function.name.clone())).collect();
        let mut shown = HashMap::new();
        for candidate in candidates {
            for alias in &candidate.aliases {
                let name = shown.entry(alias.as_str()).or_insert(Some(candidate.name.as_str()));
                *name = name.filter(|name| *name == candidate.name);
            }
        }
        NameSearch { functions, bodies, candidates, possible, names, shown }
    }

    /// The names found for functions that had none.
    fn names(mut self) -> HashMap<u64, String> {
        self.by_instructions();
        // What functions call can name further ones, which call others.
        while self.by_calls() {}
        let found = self.functions.iter().zip(self.names).filter(|(function, _)| !function.is_named);
        found.filter_map(|(function, name)| Some((function.address, name?))).collect()
    }

    /// Names functions by their instructions.
    fn by_instructions(&mut self) {
        let mut users: HashMap<usize, usize> = HashMap::new();
        self.possible.iter().flatten().for_each(|&candidate| *users.entry(candidate).or_default() += 1);
        for function in 0..self.functions.len() {
            let [candidate] = self.possible[function][..] else { continue };
            let fixed = self.candidates[candidate].words.iter().flatten().count();
            if self.names[function].is_none() && fixed >= FEWEST && users[&candidate] == 1 {
                self.names[function] = Some(self.candidates[candidate].name.clone());
            }
        }
    }

    /// Names functions by their callers. Returns whether it named any.
    fn by_calls(&mut self) -> bool {
        let mut votes: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for function in 0..self.functions.len() {
            let Some(candidate) = self.identified(function) else { continue };
            for (index, callee) in &candidate.calls {
                let at = self.functions[function].address + 4 * *index as u64;
                let word = self.bodies[function].get(*index).copied().flatten();
                let target = word.and_then(|word| bsr_target(word, at));
                let called = target.and_then(|target| self.entered_at(target));
                let name = self.shown.get(callee.as_str()).copied().flatten();
                if let (Some(called), Some(name)) = (called, name)
                    && self.names[called].is_none()
                {
                    votes.entry(called).or_default().push(name);
                }
            }
        }
        let mut has_named = false;
        for (function, mut callees) in votes {
            callees.sort();
            callees.dedup();
            if let [callee] = callees[..] {
                self.names[function] = Some(callee.to_string());
                has_named = true;
            }
        }
        has_named
    }

    /// The candidate that a function is, by its name among those of equal instructions.
    fn identified(&self, function: usize) -> Option<&'a Candidate> {
        let name = self.names[function].as_ref()?;
        let possible = self.possible[function].iter().map(|&candidate| &self.candidates[candidate]);
        let mut named = possible.filter(|candidate| candidate.aliases.contains(name));
        named.next().filter(|_| named.next().is_none())
    }

    /// The function that a call enters: at its beginning, or after the instructions that set the global pointer.
    fn entered_at(&self, address: u64) -> Option<usize> {
        let starts = [Some(address), address.checked_sub(8)].into_iter().flatten();
        let find = |start: u64| self.functions.binary_search_by_key(&start, |function| function.address).ok();
        starts.filter_map(find).next()
    }
}

/// The instructions of a function, without those that pad it.
fn body(image: &Image, function: &FunctionSymbol) -> Vec<Option<u32>> {
    let code = image.code().iter().find(|code| (code.address..code.end()).contains(&function.address));
    let Some(code) = code else { return Vec::new() };
    let start = code.file.start + (function.address - code.address) as usize;
    let bytes = image.bytes().get(start..start + function.size as usize).unwrap_or_default();
    let words = bytes.as_chunks::<4>().0.iter().map(|&word| Some(u32::from_le_bytes(word)));
    let mut words = words.collect();
    trim(&mut words);
    words
}

fn is_same(body: &[Option<u32>], candidate: &[Option<u32>]) -> bool {
    body.len() == candidate.len() && body.iter().zip(candidate).all(|(a, b)| b.is_none() || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: &str = "/usr/alpha-linux-gnu/lib/libc.so.6.1";

    /// Of functions whose names are known every other one is hidden, and found again or not, but never as another one.
    #[test]
    fn names_found_by_code_are_the_right_ones() {
        let mut image = Image::open(LIBC).unwrap();
        let archive = beside(Path::new(LIBC)).unwrap();
        let real: HashMap<u64, Vec<String>> = image.symbols.iter().filter(|symbol| symbol.function).fold(
            HashMap::new(),
            |mut all: HashMap<_, Vec<_>>, symbol| {
                all.entry(symbol.address).or_default().push(symbol.name.clone());
                all
            },
        );
        let mut hidden = 0;
        for function in image.functions.iter_mut().filter(|function| function.is_named).step_by(2) {
            function.is_named = false;
            hidden += 1;
        }
        let found = names(&image, &archive);
        let found: Vec<_> =
            found.iter().filter(|(address, _)| !real[address][0].starts_with("sub_")).collect();
        assert!(found.len() * 3 > hidden, "{} of {hidden}", found.len());
        // The shared library has versions of functions that the static one does not have, by other names.
        let is_same = |real: &String, name: &&String| real.trim_matches('_') == name.trim_matches('_');
        let wrong =
            found.iter().filter(|(address, name)| !real[address].iter().any(|real| is_same(real, name)));
        let wrong: Vec<_> = wrong.map(|(address, name)| (name, &real[address])).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
