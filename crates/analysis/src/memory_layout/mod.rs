//! The layout of a program's memory: its variables by name, its stacks, and the blocks of its heap.

mod heap;

use std::collections::HashMap;

use events::record::Heap;
use events::{MappedImage, Thread};
use image::Variable;

use self::heap::{BlockOrigin, Heaps};
use crate::names::Names;

/// An array: a range of memory with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name; in parentheses unless it is a variable.
    pub name: String,
    /// The function, module or common block, and the image.
    pub location: String,
    /// The size of its elements, if that is known.
    pub element: Option<u64>,
    /// Type and shape, as the source has them.
    pub shape: String,
    /// The variable, if it is one.
    pub variable: Option<Variable>,
}

/// The memory of the processes of a trace, or of a program that runs.
pub struct MemoryLayout {
    arrays: Vec<Array>,
    images: Vec<MappedImage>,
    /// By image: the ranges of its variables. None if they have not been read yet.
    variables: Vec<Option<Vec<Piece>>>,
    /// By process.
    processes: Vec<ProcessMemory>,
    /// By thread.
    stacks: Vec<Option<(u64, u64)>>,
    heaps: Heaps,
    /// The arrays for heap blocks, one for each call that allocates: by its name; and by process and return address.
    allocated: HashMap<[String; 2], u32>,
    callers: HashMap<(u32, u64), u32>,
}

/// The memory of a process.
#[derive(Clone, Debug, Default)]
struct ProcessMemory {
    /// Images whose code it executed, unless a later one replaced them.
    images: Vec<u32>,
    last: Option<u32>,
    /// Ascending and disjoint.
    pieces: Vec<Piece>,
}

/// Addresses from `start` up to `end`, and their array.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    array: u32,
}

/// Memory that belongs to no other array.
const OTHER: u32 = 0;
/// The threads' stacks.
const STACK: u32 = 1;
/// The greatest distance of an address on the stack from the stack pointer: the default size of stacks.
const STACK_SIZE: u64 = 8 << 20;
/// The stack pointer.
const SP: u8 = 30;

/// The greatest number of processes and threads: a damaged trace may name any.
const MAX_STREAMS: usize = 1 << 20;

impl Default for MemoryLayout {
    fn default() -> MemoryLayout {
        MemoryLayout::new()
    }
}

impl MemoryLayout {
    /// Without images.
    pub fn new() -> MemoryLayout {
        MemoryLayout {
            arrays: vec![Array::unnamed("(heap and other)", ""), Array::unnamed("(stack)", "")],
            images: Vec::new(),
            variables: Vec::new(),
            processes: Vec::new(),
            stacks: Vec::new(),
            heaps: Heaps::default(),
            allocated: HashMap::new(),
            callers: HashMap::new(),
        }
    }

    /// Adds an image that blocks may belong to.
    pub fn add_image(&mut self, image: &MappedImage) {
        self.images.push(image.clone());
        self.variables.push(None);
    }

    /// All arrays, by number.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// A block of an image is executed by a process: the image is mapped there.
    #[inline]
    pub fn block(&mut self, process: u32, image: Option<u32>, names: &Names) {
        let known = self.processes.get(process as usize);
        if let Some(image) = image.filter(|_| known.is_none_or(|process| process.last != image)) {
            self.map(process, image, names);
        }
    }

    /// The number of the array that contains an address, which is accessed by the register `base`.
    #[inline]
    pub fn find(&mut self, thread: Thread, base: u8, address: u64) -> u32 {
        let stack = at(&mut self.stacks, thread.number);
        if base == SP {
            let (low, high) = stack.unwrap_or((address, address));
            let is_near =
                address >= low.saturating_sub(STACK_SIZE) && address <= high.saturating_add(STACK_SIZE);
            *stack = Some(if is_near { (low.min(address), high.max(address)) } else { (address, address) });
            return STACK;
        }
        let pieces = self.processes.get(thread.process as usize).map_or(&[][..], |process| &process.pieces);
        let behind = pieces.partition_point(|piece| piece.start <= address);
        match behind.checked_sub(1).map(|index| pieces[index]) {
            Some(piece) if address < piece.end => piece.array,
            _ => match self.heaps.find(thread.process, address) {
                Some(array) => array,
                None if stack.is_some_and(|(low, high)| (low..=high).contains(&address)) => STACK,
                None => OTHER,
            },
        }
    }

    /// Whether an array is of memory that belongs to no variable, stack or block.
    pub fn is_other(&self, array: u32) -> bool {
        array == OTHER
    }

    /// The number of a new array, for an object that processes map.
    pub fn add_object(&mut self, name: &str) -> u32 {
        self.number(Array::unnamed(name, ""))
    }

    /// The index of the member of a structure that an address of a variable belongs to: of
    /// [`image::Element::members`].
    pub fn member(&self, process: u32, address: u64) -> Option<usize> {
        let pieces = &self.processes.get(process as usize)?.pieces;
        let piece = pieces[pieces.partition_point(|piece| piece.start <= address).checked_sub(1)?];
        let element = self.arrays[piece.array as usize].variable.as_ref()?.element.as_ref()?;
        let offset = address - piece.start;
        if address >= piece.end || element.size == 0 {
            None
        } else {
            element.member_at(offset % element.size)
        }
    }

    /// The distance of an address from the beginning of the variable or block of the heap with this array that contains it.
    pub fn offset(&self, process: u32, array: u32, address: u64) -> Option<u64> {
        let pieces = self.processes.get(process as usize).map_or(&[][..], |process| &process.pieces);
        let before = pieces.partition_point(|piece| piece.start <= address).checked_sub(1);
        let piece = before.map(|index| pieces[index]).filter(|piece| address < piece.end);
        let start = match piece {
            Some(piece) => Some((piece.start, piece.array)),
            None => self.heaps.block(process, address),
        };
        start.filter(|(_, found)| *found == array).map(|(start, _)| address - start)
    }

    /// The name of an array, or of a member of it.
    pub fn name(&self, array: u32, member: Option<usize>) -> String {
        let array = &self.arrays[array as usize];
        let element = array.variable.as_ref().and_then(|variable| variable.element.as_ref());
        match member.and_then(|member| element?.members.get(member)) {
            Some(member) => format!("{}.{}", array.name, member.name),
            None => array.name.clone(),
        }
    }

    /// Follows a heap mark of a thread.
    #[cold]
    pub fn heap(&mut self, thread: Thread, mark: Heap, names: &Names) {
        if mark == Heap::Gone {
            *at(&mut self.processes, thread.process) = ProcessMemory::default();
            self.callers.retain(|(process, _), _| *process != thread.process);
        }
        let mut heaps = std::mem::take(&mut self.heaps);
        heaps.mark(thread, mark, |origin| match origin {
            BlockOrigin::Caller(caller) => self.allocated_for(thread.process, caller, names),
            BlockOrigin::Named(name) => self.allocated(name.to_owned(), String::new()),
        });
        self.heaps = heaps;
    }

    /// The array of blocks that are allocated by a call with this return address.
    fn allocated_for(&mut self, process: u32, caller: u64, names: &Names) -> u32 {
        if let Some(&known) = self.callers.get(&(process, caller)) {
            return known;
        }
        // An address in the call.
        let call = caller.wrapping_sub(1);
        let mapped = self.processes.get(process as usize).map_or(&[][..], |process| &process.images);
        let has = |image: &u32| {
            let MappedImage { start, end, .. } = &self.images[*image as usize];
            (*start..*end).contains(&call)
        };
        let image = mapped.iter().rev().copied().find(&has);
        let image = image.or_else(|| (0..self.images.len() as u32).rev().find(has));
        let name = match (names.location(image, call), names.code(image, call)) {
            (Some(at), Some(code)) => {
                let line = at.line.map_or(String::new(), |line| format!(":{line}"));
                let file = at.file.rsplit('/').next().unwrap_or_default();
                format!("allocated in {} ({file}{line})", code.name.function)
            }
            (None, Some(code)) => {
                format!("allocated in {}+{:#x}", code.name.function, call.wrapping_sub(code.start))
            }
            (_, None) => format!("allocated at {call:#x}"),
        };
        let array = self.allocated(name, names.image(image));
        self.callers.insert((process, caller), array);
        array
    }

    /// The array of blocks with a name.
    fn allocated(&mut self, name: String, image: String) -> u32 {
        let next = self.arrays.len() as u32;
        *self.allocated.entry([name, image]).or_insert_with_key(|[name, image]| {
            self.arrays.push(Array::unnamed(name, image));
            next
        })
    }

    /// Maps an image into a process, and removes images that it overlaps.
    #[cold]
    fn map(&mut self, process: u32, image: u32, names: &Names) {
        let known = at(&mut self.processes, process);
        known.last = Some(image);
        if known.images.contains(&image) {
            return;
        }
        let new = self.pieces(image, names);
        let all = &self.images;
        let range = all[image as usize].start..all[image as usize].end;
        let process = at(&mut self.processes, process);
        let is_apart = |other: &u32| {
            let other = &all[*other as usize];
            other.end <= range.start || other.start >= range.end
        };
        process.images.retain(is_apart);
        process.images.push(image);
        process.pieces.retain(|piece| piece.end <= range.start || piece.start >= range.end);
        process.pieces.extend(new);
        process.pieces.sort_by_key(|piece| piece.start);
    }

    /// The ranges of an image: its variables, and the other data between them.
    fn pieces(&mut self, image: u32, names: &Names) -> Vec<Piece> {
        if let Some(known) = &self.variables[image as usize] {
            return known.clone();
        }
        let MappedImage { start, end, bias, .. } = self.images[image as usize];
        let name = names.image(Some(image));
        let rest = self.number(Array::unnamed(&format!("(data of {name})"), &name));
        let mut pieces = Vec::new();
        let mut at = start;
        for variable in names.variables(image) {
            let (from, to) = (variable.address.wrapping_add(bias), variable.end().wrapping_add(bias));
            if from < at || to > end || to <= from {
                continue;
            }
            if from > at {
                pieces.push(Piece { start: at, end: from, array: rest });
            }
            let array = self.number(Array::of(&variable, &name));
            pieces.push(Piece { start: from, end: to, array });
            at = to;
        }
        if at < end {
            pieces.push(Piece { start: at, end, array: rest });
        }
        self.variables[image as usize] = Some(pieces.clone());
        pieces
    }

    fn number(&mut self, array: Array) -> u32 {
        self.arrays.push(array);
        self.arrays.len() as u32 - 1
    }
}

/// The entry of a process or a thread.
fn at<T: Default + Clone>(all: &mut Vec<T>, number: u32) -> &mut T {
    let index = (number as usize).min(MAX_STREAMS);
    if index >= all.len() {
        all.resize(index + 1, T::default());
    }
    &mut all[index]
}

impl Array {
    fn unnamed(name: &str, location: &str) -> Array {
        let (element, shape) = (None, String::new());
        Array { name: name.into(), location: location.into(), element, shape, variable: None }
    }

    fn of(variable: &Variable, image: &str) -> Array {
        let Variable { name, scope, element, shape, .. } = variable;
        let location = scope.as_ref().map_or(image.into(), |scope| format!("{scope} in {image}"));
        let element_name = element.as_ref().map_or("", |element| element.name.as_str());
        let counts: Vec<String> = shape.iter().map(u64::to_string).collect();
        let shape = match (shape.is_empty(), variable.is_column_major) {
            (true, _) => element_name.into(),
            (false, true) => format!("{element_name} ({})", counts.join(",")),
            (false, false) => format!("{element_name} [{}]", counts.join("][")),
        };
        let element = element.as_ref().map(|element| element.size);
        Array { name: name.clone(), location, element, shape, variable: Some(variable.clone()) }
    }
}
