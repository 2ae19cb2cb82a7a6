//! Where procedures begin and end.

use crate::elf::Elf;
use crate::lift::relocations::FoundRelocations;
use crate::program::{CodeExtent, Frozen};

/// The instructions of a procedure.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The number of its first instruction.
    pub start: u32,
    /// That of the first one after it.
    pub end: u32,
    /// Its name.
    pub name: String,
    /// Why it must not be changed, if so.
    pub frozen: Option<Frozen>,
}

/// Adds the code between those with symbols, except padding.
pub fn fill(mut named: Vec<Extent>, code: &CodeExtent, found: &FoundRelocations) -> Vec<Extent> {
    // A label at the end of a procedure lies in the padding behind it.
    let data = found.data.iter().map(|(_, _, address)| address);
    let pointers = found.slots.values().chain(data).chain(&found.taken);
    let mut used: Vec<u32> = pointers.filter_map(|&address| code.index(address)).collect();
    used.sort_unstable();
    let mut all = Vec::with_capacity(named.len());
    for &(start, end) in &code.ranges {
        let mut next = start;
        let last = named.partition_point(|extent| extent.start < end);
        for extent in named.drain(..last) {
            all.extend(gap(code, &used, next, extent.start));
            next = extent.end;
            all.push(extent);
        }
        all.extend(gap(code, &used, next, end));
    }
    all
}

/// The extents of functions with symbols, ascending and disjoint. Functions that overlap are one.
pub fn named(elf: &Elf, code: &CodeExtent) -> Vec<Extent> {
    let functions = elf.symbols.iter().filter(|symbol| symbol.is_function() && symbol.section != 0);
    let mut starts: Vec<(u32, u64, bool, &str)> = functions
        .filter_map(|symbol| {
            let is_local = symbol.info >> 4 == 0;
            Some((code.index(symbol.value)?, symbol.size, is_local, symbol.name.as_str()))
        })
        .collect();
    // A global name is preferred to a local one, and the largest size counts.
    starts.sort_by_key(|&(start, size, is_local, name)| (start, is_local, std::cmp::Reverse(size), name));
    let mut all: Vec<Extent> = Vec::new();
    for (at, &(start, size, _, name)) in starts.iter().enumerate() {
        let limit = code
            .ranges
            .iter()
            .find(|range| (range.0..range.1).contains(&start))
            .map_or(start, |range| range.1);
        let next = starts[at..].iter().map(|one| one.0).find(|&next| next > start).unwrap_or(limit);
        let end = if size == 0 {
            next.min(limit)
        } else {
            start.saturating_add(size.div_ceil(4) as u32).min(limit)
        };
        match all.last_mut() {
            Some(last) if start < last.end => last.end = last.end.max(end),
            _ => {
                let name = name.split('@').next().unwrap_or(name).to_string();
                all.push(Extent { start, end, name, frozen: None });
            }
        }
    }
    all
}

/// Code without a symbol; none if it is only padding.
fn gap(code: &CodeExtent, used: &[u32], start: u32, end: u32) -> Option<Extent> {
    let is_padding = |&word: &u32| word == 0 || isa::nop_kind(word).is_some();
    let words = code.words.get(start as usize..end as usize)?;
    let is_used = used.get(used.partition_point(|&one| one < start)).is_some_and(|&one| one < end);
    if words.iter().all(is_padding) && !is_used {
        return None;
    }
    let name = format!("sub_{:x}", code.address(start));
    Some(Extent { start, end, name, frozen: Some(Frozen::NoSymbol) })
}
