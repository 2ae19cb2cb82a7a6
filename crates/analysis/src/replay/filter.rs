//! Selects a part of a trace.

use std::collections::{HashMap, HashSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use events::BlockId;
use events::record::{Execution, Mark, address_of_word};
use image::{SymbolPattern, is_image};
use isa::InstructionSet;
use trace::{Chunk, ExecutionMode, Trace};

use super::accesses::Accesses;
use super::calls::ActiveCalls;
use super::dictionary::{Dictionary, ProgramRegion};
use crate::names::{FunctionName, Names};
use crate::similar::{hint, similar};

/// A part of a trace, as users describe it: all conditions that are given must hold. Ranges include both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Instructions of these functions: `NAME` or `IMAGE!NAME`, mangled or not.
    pub functions: Vec<String>,
    /// And instructions of all functions that those call.
    pub with_callees: bool,
    /// Instructions of these images, by file name or its beginning up to a dot.
    pub images: Vec<String>,
    /// Instructions at these addresses.
    pub range: Option<RangeInclusive<u64>>,
    /// Instructions that are executed in these modes.
    pub modes: Vec<ExecutionMode>,
    /// Accesses to these addresses, and the instructions that do them.
    pub data_range: Option<RangeInclusive<u64>>,
    /// Threads: a process, and one of its threads or all.
    pub threads: Vec<(u32, Option<u32>)>,
    /// Instructions by their number in their thread, from 1.
    pub instructions: Option<RangeInclusive<u64>>,
    /// Units of work by their number, from 0.
    pub units: Option<RangeInclusive<u64>>,
}

/// The selection names something that the trace does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotInTrace {
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

/// The selected instructions of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedInstructions<'a> {
    /// All.
    All,
    /// None.
    None,
    /// Those with `true`, at least one; as long as the block.
    Some(&'a [bool]),
}

impl SelectedInstructions<'_> {
    /// Whether the instruction with this index is selected.
    #[inline]
    pub fn has(self, index: usize) -> bool {
        match self {
            SelectedInstructions::All => true,
            SelectedInstructions::None => false,
            SelectedInstructions::Some(which) => which[index],
        }
    }
}

/// The same, by the addresses of a block's instructions; computed once.
#[derive(Clone, Debug)]
enum CodeFilter {
    All,
    None,
    Some(Box<[bool]>),
}

/// A selection, prepared for a trace.
#[derive(Clone)]
pub struct Filter {
    instruction_set: &'static dyn InstructionSet,
    /// For each stream, None if it is not selected, or the range of first instructions of chunks that can have the
    /// selected units.
    streams: Vec<Option<Range<u64>>>,
    /// By block; empty if the selection does not depend on addresses of instructions.
    code: Vec<CodeFilter>,
    /// If functions are selected with their callees: by region, whether it is a selected function.
    callers: Option<Vec<bool>>,
    data_range: Option<RangeInclusive<u64>>,
    instructions: Option<RangeInclusive<u64>>,
    units: Option<RangeInclusive<u64>>,
}

/// The position of a replay in a stream.
#[derive(Clone, Debug, Default)]
pub struct ReplayPosition {
    /// The number of earlier instructions.
    pub instructions: u64,
    unit: Option<u64>,
    calls: ActiveCalls,
    /// Whether the last instruction was selected.
    last: bool,
    which: Vec<bool>,
}

impl Filter {
    /// Prepares a selection for a trace.
    pub fn new(selection: &Selection, dictionary: &Dictionary) -> Result<Filter, NotInTrace> {
        let Selection { data_range, instructions, units, .. } = selection.clone();
        let by_address = !selection.functions.is_empty()
            || !selection.images.is_empty()
            || !selection.modes.is_empty()
            || selection.range.is_some();
        let code = if by_address { code(selection, dictionary)? } else { Vec::new() };
        let callers = (selection.with_callees && !selection.functions.is_empty()).then(|| {
            let functions = SelectedFunctions::new(&selection.functions, dictionary.names);
            let is_selected = |region: &ProgramRegion| {
                let name = region.name.as_deref();
                let symbol = region.symbol.as_deref();
                name.is_some_and(|name| functions.named(name, symbol, region.start).contains(&true))
            };
            dictionary.regions.iter().map(is_selected).collect()
        });
        let is_selected = streams(selection, dictionary.trace)?.into_iter().zip(0..);
        let chunks =
            |stream| units.as_ref().map_or(0..u64::MAX, |units| of_units(dictionary.trace, stream, units));
        let streams = is_selected.map(|(is_selected, stream)| is_selected.then(|| chunks(stream))).collect();
        let instruction_set = dictionary.trace.instruction_set();
        Ok(Filter { instruction_set, streams, code, callers, data_range, instructions, units })
    }

    /// Whether a chunk must be read: it can have selected instructions, or shows where control went from one.
    pub fn chunk(&self, chunk: &Chunk) -> bool {
        let stream = &self.streams[chunk.stream as usize];
        let Chunk { first_instruction: first, instructions: count, .. } = *chunk;
        let reaches = |numbers: &RangeInclusive<u64>| {
            *numbers.end() >= first && *numbers.start() <= first.saturating_add(count)
        };
        match stream {
            None => false,
            // From the beginning of the units: earlier records do not say which unit they are in.
            Some(units) if self.units.is_some() => units.contains(&first),
            Some(_) => self.instructions.as_ref().is_none_or(reaches),
        }
    }

    /// The first unit of work that can be selected, if units are.
    pub(super) fn first_unit(&self) -> Option<u64> {
        self.units.as_ref().map(|units| *units.start())
    }

    /// Whether everything in the selected threads is selected.
    pub fn takes_all(&self) -> bool {
        !self.narrows() && self.instructions.is_none() && self.units.is_none()
    }

    /// Whether an access is selected by the word of its address.
    pub fn access(&self, address: u64, size: u8) -> bool {
        let address = address_of_word(address);
        let last = address.saturating_add(u64::from(size).saturating_sub(1));
        let range = self.data_range.as_ref();
        range.is_none_or(|range| *range.start() <= last && *range.end() >= address)
    }

    /// Whether accesses are selected by their addresses.
    pub fn is_by_data(&self) -> bool {
        self.data_range.is_some()
    }

    /// Follows a mark. Returns whether it is selected.
    pub fn mark(&self, position: &mut ReplayPosition, mark: Mark) -> bool {
        if self.callers.is_some() {
            position.calls.mark(mark, self.instruction_set);
        }
        match mark {
            Mark::UnitBegins(number) => {
                position.unit = Some(number);
                self.is_within(position)
            }
            Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_) => {
                let is_selected = self.is_within(position);
                position.unit = None;
                is_selected
            }
            _ => position.last || (!self.narrows() && self.is_within(position)),
        }
    }

    /// Follows the execution of a block. Returns its selected instructions.
    #[inline]
    pub fn block<'p>(
        &self,
        position: &'p mut ReplayPosition,
        execution: &Execution,
        length: usize,
        dictionary: &Dictionary,
        accesses: &Accesses,
    ) -> SelectedInstructions<'p> {
        let first = position.instructions;
        position.instructions = first.saturating_add(length as u64);
        let inside = self.callers.as_ref().is_some_and(|callers| {
            let facts = dictionary.facts(execution.block);
            position.calls.block(facts, execution.addresses, |region| callers[region as usize]);
            position.calls.is_inside()
        });
        let code = if inside { None } else { self.code.get(execution.block as usize) };
        let unit = self.units.as_ref().is_none_or(|units| position.unit.is_some_and(|n| units.contains(&n)));
        let (selected, last) = match code {
            _ if !unit || length == 0 => (SelectedInstructions::None, false),
            Some(CodeFilter::None) => (SelectedInstructions::None, false),
            None | Some(CodeFilter::All) if self.instructions.is_none() && self.data_range.is_none() => {
                (SelectedInstructions::All, true)
            }
            _ => {
                position.which.clear();
                position.which.resize(length, true);
                if let Some(CodeFilter::Some(which)) = code {
                    position.which.copy_from_slice(which);
                }
                self.narrow(&mut position.which, first, execution, accesses);
                let last = position.which[length - 1];
                (summed_up(&position.which), last)
            }
        };
        position.last = last;
        selected
    }

    /// Deselects instructions by number, and by the addresses that they access.
    fn narrow(&self, which: &mut [bool], first: u64, execution: &Execution, accesses: &Accesses) {
        if let Some(range) = &self.instructions {
            let numbers = (1..).map(|index| first.saturating_add(index));
            which.iter_mut().zip(numbers).for_each(|(one, number)| *one &= range.contains(&number));
        }
        if self.data_range.is_some() {
            let mut found = vec![false; which.len()];
            for (access, &address) in accesses.of(execution.block).iter().zip(execution.addresses) {
                found[access.index as usize] = self.access(address, access.size);
            }
            which.iter_mut().zip(found).for_each(|(one, found)| *one &= found);
        }
    }

    /// Whether single instructions may be deselected, not only whole stretches of execution.
    fn narrows(&self) -> bool {
        !self.code.is_empty() || self.data_range.is_some()
    }

    /// Whether the next instruction is selected by its number and its unit.
    fn is_within(&self, position: &ReplayPosition) -> bool {
        let number = position.instructions.saturating_add(1);
        let unit = |units: &RangeInclusive<u64>| position.unit.is_some_and(|unit| units.contains(&unit));
        self.instructions.as_ref().is_none_or(|range| range.contains(&number))
            && self.units.as_ref().is_none_or(unit)
    }
}

fn summed_up(which: &[bool]) -> SelectedInstructions<'_> {
    if which.iter().all(|&one| one) {
        SelectedInstructions::All
    } else if which.iter().any(|&one| one) {
        SelectedInstructions::Some(which)
    } else {
        SelectedInstructions::None
    }
}

/// The instructions of each block that are selected by their addresses.
fn code(selection: &Selection, dictionary: &Dictionary) -> Result<Vec<CodeFilter>, NotInTrace> {
    let names = dictionary.names;
    let mut functions = SelectedFunctions::new(&selection.functions, names);
    let mut absent_images: Vec<&String> = selection.images.iter().collect();
    let blocks = dictionary.trace.blocks().iter().map(|block| {
        let image = names.image(block.image);
        absent_images.retain(|name| !is_image(&image, name));
        let image = selection.images.is_empty() || selection.images.iter().any(|name| is_image(&image, name));
        let mode = dictionary.trace.header().mode(block.address);
        let mode = selection.modes.is_empty() || selection.modes.contains(&mode);
        let mut which = Vec::with_capacity(block.words.len());
        for address in block.addresses() {
            let function = selection.functions.is_empty() || { functions.has(names, block.image, address) };
            let range = selection.range.as_ref().is_none_or(|range| range.contains(&address));
            which.push(image && function && range && mode);
        }
        match summed_up(&which) {
            SelectedInstructions::All => CodeFilter::All,
            SelectedInstructions::None => CodeFilter::None,
            SelectedInstructions::Some(_) => CodeFilter::Some(which.into()),
        }
    });
    let code = blocks.collect();
    match (functions.absent(), absent_images.first()) {
        (Some(name), _) => {
            let functions =
                dictionary.regions.iter().filter_map(|region| Some(region.name.as_ref()?.function.clone()));
            Err(NotInTrace::Function(name.clone(), similar(SymbolPattern::new(name).name(), functions)))
        }
        (_, Some(name)) => {
            let images = dictionary.trace.blocks().iter().map(|block| names.image(block.image));
            Err(NotInTrace::Image((*name).clone(), similar(name, images)))
        }
        (None, None) => Ok(code),
    }
}

/// The selected functions, by name, and the trace's functions that match.
struct SelectedFunctions<'a> {
    given: &'a [String],
    patterns: Vec<SymbolPattern>,
    /// The addresses of functions that have these names, perhaps as another name than the one that is shown.
    starts: Vec<HashSet<u64>>,
    /// For each name, whether a function of the trace matches.
    found: Vec<bool>,
    /// The results so far, by name and first address.
    known: HashMap<(Arc<FunctionName>, u64), bool>,
}

impl<'a> SelectedFunctions<'a> {
    fn new(given: &'a [String], names: &Names) -> SelectedFunctions<'a> {
        let patterns: Vec<SymbolPattern> = given.iter().map(|name| SymbolPattern::new(name)).collect();
        let starts = patterns.iter().map(|pattern| names.starts(pattern)).collect();
        SelectedFunctions {
            given,
            starts,
            found: vec![false; patterns.len()],
            patterns,
            known: HashMap::new(),
        }
    }

    /// Whether the instruction at an address is of one of the functions.
    fn has(&mut self, names: &Names, image: Option<u32>, address: u64) -> bool {
        let (name, symbol, start) = match names.code(image, address) {
            Some(region) => (region.name, region.symbol, region.start),
            None => (names.name(image, address), None, address),
        };
        let key = (name, start);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let named = self.named(&key.0, symbol.as_deref(), start);
        self.found.iter_mut().zip(&named).for_each(|(found, named)| *found |= named);
        let is_selected = named.contains(&true);
        self.known.insert(key, is_selected);
        is_selected
    }

    /// For each of the names, whether a function or other code has it.
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

    /// A name that no function of the trace has.
    fn absent(&self) -> Option<&String> {
        self.given.iter().zip(&self.found).find(|(_, found)| !**found).map(|(name, _)| name)
    }
}

fn streams(selection: &Selection, trace: &Trace) -> Result<Vec<bool>, NotInTrace> {
    let is = |stream: &trace::ThreadStream, (process, thread): (u32, Option<u32>)| {
        stream.process == process && thread.is_none_or(|thread| stream.thread == thread)
    };
    for &one in &selection.threads {
        if !trace.streams().iter().any(|stream| is(stream, one)) {
            return Err(NotInTrace::Thread(match one {
                (process, Some(thread)) => format!("thread {process}.{thread}"),
                (process, None) => format!("process {process}"),
            }));
        }
    }
    let selected =
        |stream| selection.threads.is_empty() || selection.threads.iter().any(|&one| is(stream, one));
    Ok(trace.streams().iter().map(selected).collect())
}

/// The range of first instructions of chunks of a stream that can have these units, whose numbers ascend.
fn of_units(trace: &Trace, stream: u32, units: &RangeInclusive<u64>) -> Range<u64> {
    let (mut start, mut end) = (0, u64::MAX);
    for chunk in trace.stream_chunks(stream).iter().map(|&chunk| &trace.chunks()[chunk]) {
        match chunk.first_unit {
            Some(unit) if unit <= *units.start() => start = chunk.first_instruction,
            Some(unit) if unit > *units.end() => {
                // The last of the selected units may end in it, and the chunk after it shows where control went.
                end = chunk.first_instruction.saturating_add(chunk.instructions).saturating_add(1);
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
