//! What of a trace is wanted.

use std::collections::{HashMap, HashSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use events::BlockId;
use events::record::{Execution, Mark};
use image::{SymbolPattern, is_image};
use trace::{Chunk, Trace};

use super::accesses::Accesses;
use super::calls::Calls;
use super::dictionary::{Dictionary, Place};
use crate::names::{FunctionName, Names};
use crate::similar::{hint, similar};

/// What of a trace is wanted, in its users' words; each thing that is given narrows it down. All ranges
/// include both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Instructions of these functions: `NAME` or `IMAGE!NAME`, mangled or not.
    pub functions: Vec<String>,
    /// And of all that the functions call.
    pub with_callees: bool,
    /// Instructions of these images, by file name or its beginning up to a dot.
    pub images: Vec<String>,
    /// Instructions at these addresses.
    pub range: Option<RangeInclusive<u64>>,
    /// Accesses to these addresses, and the instructions that do them.
    pub data_range: Option<RangeInclusive<u64>>,
    /// Threads: a process, and one of its threads or all.
    pub threads: Vec<(u32, Option<u32>)>,
    /// Instructions by their number in their thread, from 1.
    pub instructions: Option<RangeInclusive<u64>>,
    /// Units of work by their number, from 0.
    pub units: Option<RangeInclusive<u64>>,
}

/// Something is wanted that the trace does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// A function, and names that are like the one given.
    #[error("no function '{0}' was executed in this trace{end}", end = hint(.1, "show --as functions lists those that were"))]
    Function(String, Vec<String>),
    /// An image, and names that are like the one given.
    #[error("no instruction of an image '{0}' was executed in this trace{end}", end = hint(.1, "show lists the images"))]
    Image(String, Vec<String>),
    /// A process or a thread.
    #[error("there is no {0} in this trace; show lists its threads")]
    Thread(String),
}

/// Which instructions of a block are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen<'a> {
    /// All.
    All,
    /// None.
    None,
    /// Those with `true`, of which there is one or more; as long as the block.
    Some(&'a [bool]),
}

impl Chosen<'_> {
    /// Whether the instruction of this index is wanted.
    #[inline]
    pub fn has(self, index: usize) -> bool {
        match self {
            Chosen::All => true,
            Chosen::None => false,
            Chosen::Some(which) => which[index],
        }
    }
}

/// The same for a block's instructions by their addresses, found out once.
#[derive(Clone, Debug)]
enum Code {
    All,
    None,
    Some(Box<[bool]>),
}

/// What is wanted, worked out for a trace.
#[derive(Clone)]
pub struct Filter {
    /// Of those that are wanted, the chunks by their first instruction that can hold the units wanted.
    streams: Vec<Option<Range<u64>>>,
    /// By block; empty if it does not depend on the instructions' addresses.
    code: Vec<Code>,
    /// With the functions that are called: by place, whether it is a wanted function.
    callers: Option<Vec<bool>>,
    data_range: Option<RangeInclusive<u64>>,
    instructions: Option<RangeInclusive<u64>>,
    units: Option<RangeInclusive<u64>>,
}

/// What the filter has to know of a stream on its way.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// Instructions before the next one.
    pub instructions: u64,
    unit: Option<u64>,
    calls: Calls,
    /// Whether the last instruction was wanted.
    last: bool,
    which: Vec<bool>,
}

impl Filter {
    /// Works out what is wanted of a trace.
    pub fn new(wanted: &Wanted, dictionary: &Dictionary) -> Result<Filter, Absent> {
        let Wanted { data_range, instructions, units, .. } = wanted.clone();
        let by_address = !wanted.functions.is_empty() || !wanted.images.is_empty() || wanted.range.is_some();
        let code = if by_address { code(wanted, dictionary)? } else { Vec::new() };
        let callers = (wanted.with_callees && !wanted.functions.is_empty()).then(|| {
            let functions = WantedFunctions::new(&wanted.functions, dictionary.names);
            let is_wanted = |place: &Place| {
                let name = place.name.as_deref();
                let symbol = place.symbol.as_deref();
                name.is_some_and(|name| functions.named(name, symbol, place.start).contains(&true))
            };
            dictionary.places.iter().map(is_wanted).collect()
        });
        let is_wanted = streams(wanted, dictionary.trace)?.into_iter().zip(0..);
        let chunks =
            |stream| units.as_ref().map_or(0..u64::MAX, |units| of_units(dictionary.trace, stream, units));
        let streams = is_wanted.map(|(is_wanted, stream)| is_wanted.then(|| chunks(stream))).collect();
        Ok(Filter { streams, code, callers, data_range, instructions, units })
    }

    /// The same, but of one process only.
    pub fn of_process(&self, trace: &Trace, process: u32) -> Filter {
        let mut filter = self.clone();
        let others =
            filter.streams.iter_mut().zip(trace.streams()).filter(|(_, stream)| stream.process != process);
        others.for_each(|(wanted, _)| *wanted = None);
        filter
    }

    /// Whether anything in a chunk can be wanted, or it tells where control went from what is.
    pub fn chunk(&self, chunk: &Chunk) -> bool {
        let stream = &self.streams[chunk.stream as usize];
        let Chunk { first_instruction: first, instructions: count, .. } = *chunk;
        let reaches = |wanted: &RangeInclusive<u64>| {
            *wanted.end() >= first && *wanted.start() <= first.saturating_add(count)
        };
        match stream {
            None => false,
            // From where the units begin: the records before tell nothing of which unit they are in.
            Some(units) if self.units.is_some() => units.contains(&first),
            Some(_) => self.instructions.as_ref().is_none_or(reaches),
        }
    }

    /// Whether all of the threads that are wanted is.
    pub fn takes_all(&self) -> bool {
        !self.narrows() && self.instructions.is_none() && self.units.is_none()
    }

    /// Whether accesses are wanted by their address.
    pub fn access(&self, address: u64, size: u8) -> bool {
        let last = address.saturating_add(u64::from(size).saturating_sub(1));
        let wanted = self.data_range.as_ref();
        wanted.is_none_or(|wanted| *wanted.start() <= last && *wanted.end() >= address)
    }

    /// Whether accesses are chosen by their addresses.
    pub fn is_by_data(&self) -> bool {
        self.data_range.is_some()
    }

    /// Goes past a mark; tells whether it is wanted.
    pub fn mark(&self, position: &mut Position, mark: Mark) -> bool {
        if self.callers.is_some() {
            position.calls.mark(mark);
        }
        match mark {
            Mark::UnitBegins(number) => {
                position.unit = Some(number);
                self.is_within(position)
            }
            Mark::UnitEnds(_) | Mark::UnitLeft(_) => {
                let wanted = self.is_within(position);
                position.unit = None;
                wanted
            }
            _ => position.last || (!self.narrows() && self.is_within(position)),
        }
    }

    /// Goes past a block; tells which of its instructions are wanted.
    #[inline]
    pub fn block<'p>(
        &self,
        position: &'p mut Position,
        execution: &Execution,
        length: usize,
        dictionary: &Dictionary,
        accesses: &Accesses,
    ) -> Chosen<'p> {
        let first = position.instructions;
        position.instructions = first.saturating_add(length as u64);
        let inside = self.callers.as_ref().is_some_and(|callers| {
            position.calls.block(dictionary.facts(execution.block), |place| callers[place as usize]);
            position.calls.is_inside()
        });
        let code = if inside { None } else { self.code.get(execution.block as usize) };
        let unit = self.units.as_ref().is_none_or(|units| position.unit.is_some_and(|n| units.contains(&n)));
        let (chosen, last) = match code {
            _ if !unit || length == 0 => (Chosen::None, false),
            Some(Code::None) => (Chosen::None, false),
            None | Some(Code::All) if self.instructions.is_none() && self.data_range.is_none() => {
                (Chosen::All, true)
            }
            _ => {
                position.which.clear();
                position.which.resize(length, true);
                if let Some(Code::Some(which)) = code {
                    position.which.copy_from_slice(which);
                }
                self.narrow(&mut position.which, first, execution, accesses);
                let last = position.which[length - 1];
                (summed_up(&position.which), last)
            }
        };
        position.last = last;
        chosen
    }

    /// Takes out what is not wanted by number, or by the addresses that it accesses.
    fn narrow(&self, which: &mut [bool], first: u64, execution: &Execution, accesses: &Accesses) {
        if let Some(wanted) = &self.instructions {
            let numbers = (1..).map(|index| first.saturating_add(index));
            which.iter_mut().zip(numbers).for_each(|(one, number)| *one &= wanted.contains(&number));
        }
        if self.data_range.is_some() {
            let mut found = vec![false; which.len()];
            for (access, &address) in accesses.of(execution.block).iter().zip(execution.addresses) {
                found[access.index as usize] = self.access(address, access.size);
            }
            which.iter_mut().zip(found).for_each(|(one, found)| *one &= found);
        }
    }

    /// Whether less than whole stretches of execution is wanted.
    fn narrows(&self) -> bool {
        !self.code.is_empty() || self.data_range.is_some()
    }

    /// Whether the next instruction is wanted by its number and its unit.
    fn is_within(&self, position: &Position) -> bool {
        let number = position.instructions.saturating_add(1);
        let unit = |units: &RangeInclusive<u64>| position.unit.is_some_and(|unit| units.contains(&unit));
        self.instructions.as_ref().is_none_or(|wanted| wanted.contains(&number))
            && self.units.as_ref().is_none_or(unit)
    }
}

fn summed_up(which: &[bool]) -> Chosen<'_> {
    if which.iter().all(|&one| one) {
        Chosen::All
    } else if which.iter().any(|&one| one) {
        Chosen::Some(which)
    } else {
        Chosen::None
    }
}

/// The instructions of each block that are wanted by their addresses.
fn code(wanted: &Wanted, dictionary: &Dictionary) -> Result<Vec<Code>, Absent> {
    let names = dictionary.names;
    let mut functions = WantedFunctions::new(&wanted.functions, names);
    let mut absent_images: Vec<&String> = wanted.images.iter().collect();
    let blocks = dictionary.trace.blocks().iter().map(|block| {
        let image = names.image(block.image);
        absent_images.retain(|wanted| !is_image(&image, wanted));
        let image = wanted.images.is_empty() || wanted.images.iter().any(|wanted| is_image(&image, wanted));
        let mut which = Vec::with_capacity(block.words.len());
        for address in block.addresses() {
            let function = wanted.functions.is_empty() || { functions.has(names, block.image, address) };
            let range = wanted.range.as_ref().is_none_or(|range| range.contains(&address));
            which.push(image && function && range);
        }
        match summed_up(&which) {
            Chosen::All => Code::All,
            Chosen::None => Code::None,
            Chosen::Some(_) => Code::Some(which.into()),
        }
    });
    let code = blocks.collect();
    match (functions.absent(), absent_images.first()) {
        (Some(name), _) => {
            let functions =
                dictionary.places.iter().filter_map(|place| Some(place.name.as_ref()?.function.clone()));
            Err(Absent::Function(name.clone(), similar(SymbolPattern::new(name).name(), functions)))
        }
        (_, Some(name)) => {
            let images = dictionary.trace.blocks().iter().map(|block| names.image(block.image));
            Err(Absent::Image((*name).clone(), similar(name, images)))
        }
        (None, None) => Ok(code),
    }
}

/// The functions that are wanted, and which of a trace's are among them.
struct WantedFunctions<'a> {
    wanted: &'a [String],
    patterns: Vec<SymbolPattern>,
    /// Where those begin that have one of these names, or had it if they were not shown by another one.
    starts: Vec<HashSet<u64>>,
    /// Whether one of the trace's functions is wanted so.
    found: Vec<bool>,
    /// The answers so far, by name and first address.
    known: HashMap<(Arc<FunctionName>, u64), bool>,
}

impl<'a> WantedFunctions<'a> {
    fn new(wanted: &'a [String], names: &Names) -> WantedFunctions<'a> {
        let patterns: Vec<SymbolPattern> = wanted.iter().map(|name| SymbolPattern::new(name)).collect();
        let starts = patterns.iter().map(|pattern| names.starts(pattern)).collect();
        WantedFunctions {
            wanted,
            starts,
            found: vec![false; patterns.len()],
            patterns,
            known: HashMap::new(),
        }
    }

    /// Whether the instruction at an address is of one of the functions.
    fn has(&mut self, names: &Names, image: Option<u32>, address: u64) -> bool {
        let (name, symbol, start) = match names.place(image, address) {
            Some(place) => (place.name, place.symbol, place.start),
            None => (names.name(image, address), None, address),
        };
        let key = (name, start);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let named = self.named(&key.0, symbol.as_deref(), start);
        self.found.iter_mut().zip(&named).for_each(|(found, named)| *found |= named);
        let is_wanted = named.contains(&true);
        self.known.insert(key, is_wanted);
        is_wanted
    }

    /// By each of the names whether it is one of a function, or of other code.
    fn named(&self, name: &FunctionName, symbol: Option<&str>, start: u64) -> Vec<bool> {
        let is_named = |(pattern, starts): (&SymbolPattern, &HashSet<u64>)| {
            let by_name = || match symbol {
                Some(symbol) => starts.contains(&start) || pattern.matches(symbol),
                None => name.function == pattern.name(),
            };
            pattern.may_be_in(&name.image) && by_name()
        };
        self.patterns.iter().zip(&self.starts).map(is_named).collect()
    }

    /// One that the trace has nothing of.
    fn absent(&self) -> Option<&String> {
        self.wanted.iter().zip(&self.found).find(|(_, found)| !**found).map(|(name, _)| name)
    }
}

fn streams(wanted: &Wanted, trace: &Trace) -> Result<Vec<bool>, Absent> {
    let is = |stream: &trace::Stream, (process, thread): (u32, Option<u32>)| {
        stream.process == process && thread.is_none_or(|thread| stream.thread == thread)
    };
    for &one in &wanted.threads {
        if !trace.streams().iter().any(|stream| is(stream, one)) {
            return Err(Absent::Thread(match one {
                (process, Some(thread)) => format!("thread {process}.{thread}"),
                (process, None) => format!("process {process}"),
            }));
        }
    }
    let chosen = |stream| wanted.threads.is_empty() || wanted.threads.iter().any(|&one| is(stream, one));
    Ok(trace.streams().iter().map(chosen).collect())
}

/// The first instructions of the chunks of a stream that can hold these units, whose numbers rise.
fn of_units(trace: &Trace, stream: u32, units: &RangeInclusive<u64>) -> Range<u64> {
    let (mut start, mut end) = (0, u64::MAX);
    for chunk in trace.stream_chunks(stream).iter().map(|&chunk| &trace.chunks()[chunk]) {
        match chunk.first_unit {
            Some(unit) if unit <= *units.start() => start = chunk.first_instruction,
            Some(unit) if unit > *units.end() => {
                // The last of the units wanted may end in it.
                end = chunk.first_instruction.saturating_add(1);
                break;
            }
            _ => {}
        }
    }
    start..end
}

/// The number of a block's instructions, as a slice's length.
pub(super) fn length(trace: &Trace, block: BlockId) -> usize {
    trace.shapes()[block as usize].instructions as usize
}
