//! Memory access patterns: the strides of a trace's selection, or of a running program, by series.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use events::record::{Event, Mark, address_of_word};
use events::{Block, BlockId, Consumer, MappedImage, Thread};

use super::classes::ClassStrides;
use super::{MemoryLayout, Series, StrideSettings, Strides};
use crate::names::{FunctionName, Names};
use crate::replay::{Dictionary, Executed, Visitor};

/// The series: whose references are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrideRows {
    /// The references of single instructions.
    Instruction,
    /// The references of lines of source.
    Line,
    /// The references of functions.
    Function,
    /// The references to arrays.
    Array,
    /// The references of lines to arrays.
    Walk,
    /// The references of processes.
    Process,
    /// All references.
    All,
}

/// Counts strides.
struct StrideCounting {
    by: StrideRows,
    strides: Strides,
    /// By group: one of its instructions, by block and index. Groups that are arrays have none.
    first: Vec<(BlockId, usize)>,
    groups: Groups,
    /// The images of blocks.
    images: Vec<Option<u32>>,
    /// The layout of memory, if series depend on it.
    memory: Option<MemoryLayout>,
    /// Only references to arrays with these names, if there are any.
    names: Vec<String>,
    /// By array: whether it has one of the names.
    is_named: Vec<bool>,
    /// The counts of classes of units of work, if they are wanted.
    classes: Option<ClassStrides>,
    /// By array or process: the series of its loads and of its stores.
    of_groups: Vec<[Option<u32>; 2]>,
    /// With [`StrideRows::Walk`]: lines and arrays.
    walks: Walks,
}

/// A file and a line of it.
type PatternLine = (String, Option<u32>);

/// The key by which instructions are grouped.
#[derive(Default)]
struct Groups {
    /// The image counts as another one in each process.
    images: ValueNumbers<(PathBuf, u64)>,
    of_images: Vec<u32>,
    instructions: ValueNumbers<(Option<u32>, u64, u32)>,
    lines: ValueNumbers<(Option<PatternLine>, Arc<FunctionName>)>,
    functions: ValueNumbers<Arc<FunctionName>>,
}

impl StrideCounting {
    fn new(by: StrideRows, names: &[String], options: StrideSettings) -> StrideCounting {
        let has_memory = matches!(by, StrideRows::Array | StrideRows::Walk) || !names.is_empty();
        StrideCounting {
            by,
            strides: Strides::new(options),
            first: Vec::new(),
            groups: Groups::default(),
            images: Vec::new(),
            memory: has_memory.then(MemoryLayout::new),
            names: names.to_vec(),
            is_named: Vec::new(),
            classes: None,
            of_groups: Vec::new(),
            walks: Walks::default(),
        }
    }

    fn map(&mut self, image: &MappedImage) {
        let number = self.groups.images.number((image.path.clone(), image.bias)).0;
        self.groups.of_images.push(number);
        if let Some(memory) = &mut self.memory {
            memory.add_image(image);
        }
    }

    fn define(&mut self, block: &Block, names: &Names) {
        let id = self.images.len() as BlockId;
        self.images.push(block.image);
        let StrideCounting { by, groups, first, strides, .. } = self;
        let are_instructions = *by == StrideRows::Instruction;
        strides.define_groups(block, are_instructions, |site| {
            let function = || names.name(block.image, site.address);
            let (group, is_new) = match by {
                StrideRows::Instruction => {
                    let image = block.image.map(|image| groups.of_images[image as usize]);
                    groups.instructions.number((image, site.address, site.word))
                }
                StrideRows::Line | StrideRows::Walk => {
                    let line = names.location(block.image, site.address);
                    groups.lines.number((line.map(|line| (line.file, line.line)), function()))
                }
                StrideRows::Function => groups.functions.number(function()),
                StrideRows::All => (0, first.is_empty()),
                StrideRows::Array | StrideRows::Process => return None,
            };
            if is_new {
                first.push((id, site.index));
            }
            Some(group)
        });
    }

    /// Executions and marks of a thread, whole ones, whose blocks are defined.
    fn records(&mut self, thread: Thread, records: &[u64], names: &Names) {
        if self.memory.is_none() && self.by != StrideRows::Process && self.classes.is_none() {
            return self.strides.executed(thread.number, records);
        }
        let mut words = records;
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            match Event::new(word) {
                Event::Block(block) => {
                    let (addresses, rest) = words.split_at(self.strides.of_block(block).len());
                    words = rest;
                    self.execution(thread, block, addresses, names, |_| true);
                }
                Event::Mark(mark) => self.mark(thread, mark, names),
                Event::Access(_) => {}
            }
        }
    }

    fn mark(&mut self, thread: Thread, mark: Mark, names: &Names) {
        if let (Some(memory), Mark::Heap(heap)) = (&mut self.memory, mark) {
            memory.heap(thread, heap, names);
        }
        if let Some(classes) = &mut self.classes {
            classes.mark(thread.number, mark, &self.strides);
        }
    }

    /// Counts an execution of a block; `selected` says by index which instructions are selected.
    #[inline]
    fn execution(
        &mut self,
        thread: Thread,
        block: BlockId,
        addresses: &[u64],
        names: &Names,
        is_selected: impl Fn(usize) -> bool,
    ) {
        if let Some(memory) = &mut self.memory {
            memory.block(thread.process, self.images[block as usize], names);
        }
        for (number, &word) in addresses.iter().enumerate() {
            let address = address_of_word(word);
            let access = self.strides.of_block(block)[number];
            // Instructions that are not selected show where the stack is, too.
            let array = self.memory.as_mut().map(|memory| memory.find(thread, access.base, address));
            if !is_selected(access.index.into()) || !array.is_none_or(|array| self.has_name(array)) {
                continue;
            }
            let series = match (array, access.series) {
                _ if self.by == StrideRows::Process => Some(self.of_group(thread.process, access.is_store)),
                (Some(array), _) if self.by == StrideRows::Array => {
                    Some(self.of_group(array, access.is_store))
                }
                (Some(array), Some(line)) if self.by == StrideRows::Walk => {
                    Some(self.of_walk(line, array, access.is_store))
                }
                _ => access.series,
            };
            let element = array.and_then(|array| self.memory.as_ref()?.arrays()[array as usize].element);
            if let Some(mut series) = series {
                if let Some(classes) = &mut self.classes {
                    series = classes.reference(thread.number, series, &mut self.strides);
                }
                let element = element.filter(|&size| size > 0).unwrap_or(access.size.into());
                self.strides.reference(thread.number, series, address, element);
            }
        }
    }

    /// Whether references to an array are selected.
    #[inline]
    fn has_name(&mut self, array: u32) -> bool {
        let (false, Some(memory)) = (self.names.is_empty(), &self.memory) else { return true };
        let new = &memory.arrays()[self.is_named.len()..];
        self.is_named.extend(new.iter().map(|array| self.names.contains(&array.name)));
        self.is_named[array as usize]
    }

    /// The series of the loads or of the stores of an array or a process.
    #[inline]
    fn of_group(&mut self, group: u32, is_store: bool) -> u32 {
        let index = group as usize;
        if index >= self.of_groups.len() {
            self.of_groups.resize(index + 1, [None; 2]);
        }
        let StrideCounting { of_groups, strides, .. } = self;
        *of_groups[index][usize::from(is_store)].get_or_insert_with(|| strides.number((group, is_store)))
    }

    /// The series of the accesses of a line, whose own series is given, to an array.
    fn of_walk(&mut self, line: u32, array: u32, is_store: bool) -> u32 {
        let StrideCounting { walks, strides, .. } = self;
        let (group, is_new) = walks.numbers.number((line, array));
        if is_new {
            walks.of.push((strides.group(line), array));
        }
        strides.number((WALKS + group, is_store))
    }
}

/// The strides of a trace, or of a program that ran.
pub struct Patterns<'a> {
    pub(super) dictionary: &'a Dictionary<'a>,
    counting: StrideCounting,
    /// Names of processes, by their numbers; the others have their numbers.
    process_names: HashMap<u32, String>,
}

impl<'a> Patterns<'a> {
    /// For a trace; if `names` are given, only references to arrays with these names.
    pub fn new(
        dictionary: &'a Dictionary<'a>,
        by: StrideRows,
        names: &[String],
        options: StrideSettings,
    ) -> Patterns<'a> {
        let mut counting = StrideCounting::new(by, names, options);
        dictionary.trace.images().iter().for_each(|image| counting.map(image));
        dictionary.trace.blocks().iter().for_each(|block| counting.define(block, dictionary.names));
        Patterns { dictionary, counting, process_names: HashMap::new() }
    }

    /// For a program that was observed while it ran. Its blocks are those of the dictionary's trace, which has no records.
    pub fn of_program(dictionary: &'a Dictionary<'a>, live_strides: LiveStrides) -> Patterns<'a> {
        let mut counting = live_strides.counting;
        if let Some(classes) = &mut counting.classes {
            classes.finish(&counting.strides);
        }
        Patterns { dictionary, counting, process_names: HashMap::new() }
    }

    /// The same, with names of processes.
    pub fn with_process_names(self, process_names: HashMap<u32, String>) -> Patterns<'a> {
        Patterns { process_names, ..self }
    }

    /// The name of a process.
    pub(super) fn process_name(&self, process: u32) -> String {
        self.process_names.get(&process).cloned().unwrap_or_else(|| process.to_string())
    }

    /// The counts of classes of units of work, if they were wanted.
    pub(super) fn classes(&self) -> Option<&ClassStrides> {
        self.counting.classes.as_ref()
    }

    /// Whether counts are divided among classes of units of work.
    pub fn has_classes(&self) -> bool {
        self.classes().is_some()
    }

    /// The kind of series.
    pub(super) fn by(&self) -> StrideRows {
        self.counting.by
    }

    /// The layout of memory, if series depend on it.
    pub(super) fn memory(&self) -> Option<&MemoryLayout> {
        self.counting.memory.as_ref()
    }

    /// Whether blocks of the heap are not distinguished, because the trace has no heap marks.
    pub(super) fn lacks_heap(&self) -> bool {
        self.memory().is_some() && !self.dictionary.trace.header().has_heap
    }

    /// The array of a series, if it is of one.
    pub(super) fn array_of(&self, series: &Series) -> Option<u32> {
        match self.by() {
            StrideRows::Array => Some(series.group),
            StrideRows::Walk => {
                self.counting.walks.of.get(walk_number(series.group)?).map(|&(_, array)| array)
            }
            _ => None,
        }
    }

    /// An instruction of a group that is not an array, by its block and its index there.
    pub(super) fn site(&self, group: u32) -> (BlockId, usize) {
        let walk = walk_number(group).map(|walk| self.counting.walks.of[walk].0);
        self.counting.first[walk.unwrap_or(group) as usize]
    }

    /// The names that no array in memory has.
    pub fn missing(&self) -> Option<&str> {
        let arrays = self.counting.memory.as_ref()?.arrays();
        let is_missing = |name: &&String| !arrays.iter().any(|array| array.name == **name);
        self.counting.names.iter().find(is_missing).map(String::as_str)
    }

    /// The series with their strides.
    pub fn strides(&self) -> &Strides {
        &self.counting.strides
    }
}

impl Visitor for Patterns<'_> {
    fn follows_heap(&self) -> bool {
        self.memory().is_some() && self.dictionary.trace.header().has_heap
    }

    fn mark(&mut self, stream: u32, _before: u64, mark: Mark, _is_wanted: bool) -> io::Result<()> {
        let thread = thread(self.dictionary, stream);
        self.counting.mark(thread, mark, self.dictionary.names);
        Ok(())
    }

    #[inline]
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let Executed { stream, execution, selected, .. } = *executed;
        let thread = thread(self.dictionary, stream);
        let is_selected = |index| selected.has(index);
        let names = self.dictionary.names;
        self.counting.execution(thread, execution.block, execution.addresses, names, is_selected);
        Ok(())
    }
}

#[inline]
fn thread(dictionary: &Dictionary, stream: u32) -> Thread {
    Thread { process: dictionary.trace.streams()[stream as usize].process, number: stream }
}

/// Counts the strides of a program while it runs: a consumer.
pub struct LiveStrides {
    counting: StrideCounting,
    names: Names,
}

impl LiveStrides {
    /// If `arrays` are given, only references to variables with these names are counted.
    pub fn new(by: StrideRows, arrays: &[String], options: StrideSettings) -> LiveStrides {
        LiveStrides { counting: StrideCounting::new(by, arrays, options), names: Names::default() }
    }

    /// Also counts by class of units of work.
    pub fn with_classes(mut self) -> LiveStrides {
        self.counting.classes = Some(ClassStrides::default());
        self
    }

    /// Whether it needs heap marks.
    pub fn wants_heap(&self) -> bool {
        self.counting.memory.is_some()
    }
}

impl Consumer for LiveStrides {
    fn map(&mut self, image: &MappedImage) {
        self.names.add(image);
        self.counting.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.counting.define(block, &self.names);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.counting.records(thread, records, &self.names);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        if let Some(classes) = &mut self.counting.classes {
            classes.classes.add(unit, class);
        }
    }
}

/// Groups from this number on are lines and arrays.
const WALKS: u32 = 1 << 31;

/// The number of a group of a line and an array, among those.
fn walk_number(group: u32) -> Option<usize> {
    group.checked_sub(WALKS).map(|walk| walk as usize)
}

/// The groups of lines and arrays: numbered by the series of the line and the array; with the line's group.
#[derive(Default)]
struct Walks {
    numbers: ValueNumbers<(u32, u32)>,
    of: Vec<(u32, u32)>,
}

/// Numbers values in the order of their first occurrence.
struct ValueNumbers<K>(HashMap<K, u32>);

impl<K> Default for ValueNumbers<K> {
    fn default() -> ValueNumbers<K> {
        ValueNumbers(HashMap::new())
    }
}

impl<K: Eq + Hash> ValueNumbers<K> {
    /// The number of a value, and whether it is new.
    fn number(&mut self, key: K) -> (u32, bool) {
        let next = self.0.len() as u32;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}
