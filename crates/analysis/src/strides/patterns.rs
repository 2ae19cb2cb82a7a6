//! The memory access patterns of a trace: strides counted of what is wanted of it, for whom they are wanted.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;

use trace::{Block, BlockId, Consumer, Thread};

use super::{Memory, Options, Series, Strides};
use crate::replay::{Accesses, Dictionary, Executed, Visitor};

/// Whose references are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Those of single instructions.
    Instruction,
    /// Those of lines of source.
    Line,
    /// Those of functions.
    Function,
    /// Those to arrays.
    Array,
    /// Those of lines to arrays.
    Walk,
    /// All.
    All,
}

/// Counts the strides of a trace.
pub struct Patterns<'a> {
    pub(super) dictionary: &'a Dictionary<'a>,
    accesses: &'a Accesses,
    pub(super) by: By,
    pub(super) strides: Strides,
    pub(super) options: Options,
    /// By group: an instruction of it, by its block and its index there. Not of arrays.
    pub(super) first: Vec<(BlockId, usize)>,
    /// What is where, if that matters.
    pub(super) memory: Option<Memory<'a>>,
    /// Only references to arrays with these names, if there are any.
    names: Vec<String>,
    /// By array: whether it has one of the names.
    is_named: Vec<bool>,
    /// By array: the series of its loads and of its stores.
    of_arrays: Vec<[Option<u32>; 2]>,
    /// With [`By::Walk`]: lines and arrays.
    walks: Walks,
    /// By block, where its accesses begin in `bases`.
    starts: Vec<usize>,
    /// The registers that accesses are relative to.
    bases: Vec<u8>,
}

impl<'a> Patterns<'a> {
    /// Of a trace; if `names` are given only of arrays with these.
    pub fn new(
        dictionary: &'a Dictionary<'a>,
        accesses: &'a Accesses,
        by: By,
        names: &[String],
        options: Options,
    ) -> Patterns<'a> {
        let memory = || Memory::new(dictionary.trace, dictionary.names);
        let mut patterns = Patterns {
            dictionary,
            accesses,
            by,
            strides: Strides::new(options),
            options,
            first: Vec::new(),
            memory: (matches!(by, By::Array | By::Walk) || !names.is_empty()).then(memory),
            names: names.to_vec(),
            is_named: Vec::new(),
            of_arrays: Vec::new(),
            walks: Walks::default(),
            starts: Vec::new(),
            bases: Vec::new(),
        };
        patterns.define();
        patterns
    }

    /// Of a program that was heard while it ran. Its blocks are those of the dictionary's trace, which has no
    /// records.
    pub fn heard(
        dictionary: &'a Dictionary<'a>,
        accesses: &'a Accesses,
        Heard { by, strides, options }: Heard,
    ) -> Patterns<'a> {
        let mut patterns = Patterns::new(dictionary, accesses, by, &[], options);
        if by == By::Instruction {
            patterns.first = strides.sites().to_vec();
        }
        patterns.strides = strides;
        patterns
    }

    fn define(&mut self) {
        let Dictionary { trace, names, .. } = *self.dictionary;
        let mut lines = Numbers::default();
        let mut functions = Numbers::default();
        let mut instructions = Numbers::default();
        let mut images = Numbers::default();
        // Processes map the same image each for itself.
        let images: Vec<u32> =
            trace.images().iter().map(|image| images.number((&image.path, image.bias)).0).collect();
        for (id, block) in (0..).zip(trace.blocks()) {
            let first = &mut self.first;
            let by = self.by;
            self.strides.define_groups(block.address, &block.words, |site| {
                let function = || names.name(block.image, site.address);
                let (group, is_new) = match by {
                    By::Instruction => {
                        let image = block.image.map(|image| images[image as usize]);
                        instructions.number((image, site.address, site.word))
                    }
                    By::Line | By::Walk => {
                        let line = names.location(block.image, site.address);
                        lines.number((line.map(|line| (line.file, line.line)), function()))
                    }
                    By::Function => functions.number(function()),
                    By::All => (0, first.is_empty()),
                    By::Array => return None,
                };
                if is_new {
                    first.push((id, site.index));
                }
                Some(group)
            });
            self.starts.push(self.bases.len());
            if self.memory.is_some() {
                let accesses = self.accesses.of(id).iter();
                let words = accesses.map(|access| block.words[access.index as usize]);
                self.bases.extend(words.map(|word| isa::decode(word).map_or(31, |one| one.rb())));
            }
        }
    }

    /// Whether references to an array are wanted.
    #[inline]
    fn has_name(&mut self, array: u32) -> bool {
        let (false, Some(memory)) = (self.names.is_empty(), &self.memory) else { return true };
        let new = &memory.arrays()[self.is_named.len()..];
        self.is_named.extend(new.iter().map(|array| self.names.contains(&array.name)));
        self.is_named[array as usize]
    }

    /// The series of the loads or of the stores of an array.
    #[inline]
    fn of_array(&mut self, array: u32, is_store: bool) -> u32 {
        let index = array as usize;
        if index >= self.of_arrays.len() {
            self.of_arrays.resize(index + 1, [None; 2]);
        }
        let Patterns { of_arrays, strides, .. } = self;
        *of_arrays[index][usize::from(is_store)].get_or_insert_with(|| strides.number((array, is_store)))
    }

    /// The series of the accesses of a line, whose own series is given, to an array.
    fn of_walk(&mut self, line: u32, array: u32, is_store: bool) -> u32 {
        let Patterns { walks, strides, .. } = self;
        let (group, is_new) = walks.numbers.number((line, array));
        if is_new {
            walks.of.push((strides.group(line), array));
        }
        // Behind the groups that are lines.
        strides.number((self.first.len() as u32 + group, is_store))
    }

    /// The array of a series, if it is of one.
    pub(super) fn array_of(&self, series: &Series) -> Option<u32> {
        match self.by {
            By::Array => Some(series.group),
            By::Walk => self.walks.of.get(self.walk_number(series.group)?).map(|&(_, array)| array),
            _ => None,
        }
    }

    /// An instruction of a group that is not an array, by its block and its index there.
    pub(super) fn site(&self, group: u32) -> (BlockId, usize) {
        let walk = self.walk_number(group).map(|walk| self.walks.of[walk].0);
        self.first[walk.unwrap_or(group) as usize]
    }

    /// The groups behind those of lines are lines and arrays.
    fn walk_number(&self, group: u32) -> Option<usize> {
        (group as usize).checked_sub(self.first.len())
    }

    /// Which of the names no array in memory has.
    pub fn missing(&self) -> Option<&str> {
        let arrays = self.memory.as_ref()?.arrays();
        let is_missing = |name: &&String| !arrays.iter().any(|array| array.name == **name);
        self.names.iter().find(is_missing).map(String::as_str)
    }

    /// What was counted.
    pub fn strides(&self) -> &Strides {
        &self.strides
    }
}

impl Visitor for Patterns<'_> {
    #[inline]
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let Executed { stream, execution, chosen, .. } = *executed;
        if let Some(memory) = &mut self.memory {
            memory.block(stream, execution.block);
        }
        let accesses = self.accesses.of(execution.block).iter().zip(execution.addresses);
        for (number, (access, &address)) in accesses.enumerate() {
            // Where the stack is, what is not wanted tells too.
            let array = self.memory.as_mut().map(|memory| {
                let base = self.bases[self.starts[execution.block as usize] + number];
                memory.find(stream, base, address)
            });
            if !chosen.has(access.index as usize) || !array.is_none_or(|array| self.has_name(array)) {
                continue;
            }
            let series = self.strides.of_block(execution.block)[number].series;
            let series = match (array, series) {
                (Some(array), _) if self.by == By::Array => Some(self.of_array(array, access.is_store)),
                (Some(array), Some(line)) if self.by == By::Walk => {
                    Some(self.of_walk(line, array, access.is_store))
                }
                _ => series,
            };
            let element = array.and_then(|array| self.memory.as_ref()?.arrays()[array as usize].element);
            if let Some(series) = series {
                let element = element.filter(|&size| size > 0).unwrap_or(access.size.into());
                self.strides.reference(stream, series, address, element);
            }
        }
        Ok(())
    }
}

/// Hears a program while it runs.
#[derive(Clone, Debug)]
pub struct Heard {
    by: By,
    options: Options,
    strides: Strides,
}

impl Heard {
    /// To count by single instructions or, with [`By::All`], all together. None for what needs names, which are known
    /// only when the program has run.
    pub fn new(by: By, options: Options) -> Option<Heard> {
        matches!(by, By::Instruction | By::All).then(|| Heard { by, options, strides: Strides::new(options) })
    }
}

impl Consumer for Heard {
    fn define(&mut self, Block { address, words, .. }: &Block) {
        match self.by {
            By::All => self.strides.define_groups(*address, words, |_| Some(0)),
            _ => self.strides.define(*address, words),
        }
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.strides.executed(thread.number, records);
    }
}

/// The groups of lines and arrays: numbered by the series of the line and the array; with the line's group.
#[derive(Default)]
struct Walks {
    numbers: Numbers<(u32, u32)>,
    of: Vec<(u32, u32)>,
}

/// Numbers things in the order in which they come.
struct Numbers<K>(HashMap<K, u32>);

impl<K> Default for Numbers<K> {
    fn default() -> Numbers<K> {
        Numbers(HashMap::new())
    }
}

impl<K: Eq + Hash> Numbers<K> {
    /// The number of a thing, and whether it is new.
    fn number(&mut self, key: K) -> (u32, bool) {
        let next = self.0.len() as u32;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}
