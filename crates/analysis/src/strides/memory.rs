//! What is where in the memory of a program: its variables, by name, and its stacks.

use image::Variable;
use trace::{BlockId, Trace};

use crate::names::Names;

/// A piece of memory with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name; in parentheses for what is no variable.
    pub name: String,
    /// The function, module or common block, and the image.
    pub place: String,
    /// The size of its elements, if that is known.
    pub element: Option<u64>,
    /// Type and shape, as the source has them.
    pub shape: String,
    /// What it is, if it is a variable.
    pub variable: Option<Variable>,
}

/// The memory of the processes of a trace.
pub struct Memory<'a> {
    trace: &'a Trace,
    names: &'a Names,
    arrays: Vec<Array>,
    /// By image: where its variables are, and which they are. None if it is not known yet.
    images: Vec<Option<Vec<Piece>>>,
    /// By process.
    processes: Vec<Process>,
    /// By stream.
    stacks: Vec<Option<(u64, u64)>>,
}

/// The memory of a process.
#[derive(Clone, Debug, Default)]
struct Process {
    /// Images whose code it executed, and which no later one replaced.
    images: Vec<u32>,
    last: Option<u32>,
    /// Ascending and disjoint.
    pieces: Vec<Piece>,
}

/// Addresses from `start` up to `end`, and the array that they are of.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    array: u32,
}

/// What is not known to be anything else.
const OTHER: u32 = 0;
/// The threads' stacks.
const STACK: u32 = 1;
/// What the stack pointer points to is on the same stack if it is no further from it: as large as stacks are, if
/// nobody says otherwise.
const STACK_SIZE: u64 = 8 << 20;
/// The stack pointer.
const SP: u8 = 30;

impl<'a> Memory<'a> {
    /// Of a trace.
    pub fn new(trace: &'a Trace, names: &'a Names) -> Memory<'a> {
        let unnamed = |name: &str| Array {
            name: name.into(),
            place: String::new(),
            element: None,
            shape: String::new(),
            variable: None,
        };
        let processes = trace.streams().iter().map(|stream| stream.process as usize + 1).max().unwrap_or(0);
        Memory {
            trace,
            names,
            arrays: vec![unnamed("(heap and other)"), unnamed("(stack)")],
            images: vec![None; trace.images().len()],
            processes: vec![Process::default(); processes],
            stacks: vec![None; trace.streams().len()],
        }
    }

    /// What the numbers of arrays mean.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// A block is executed: the image that it is in is there.
    #[inline]
    pub fn block(&mut self, stream: u32, block: BlockId) {
        let process = self.trace.streams()[stream as usize].process;
        let image = self.trace.blocks()[block as usize].image;
        if let Some(image) = image.filter(|_| self.processes[process as usize].last != image) {
            self.map(process, image);
        }
    }

    /// An address is accessed, by the register `base`; the number of the array that it is in.
    #[inline]
    pub fn find(&mut self, stream: u32, base: u8, address: u64) -> u32 {
        let stack = &mut self.stacks[stream as usize];
        if base == SP {
            let (low, high) = stack.unwrap_or((address, address));
            let is_near =
                address >= low.saturating_sub(STACK_SIZE) && address <= high.saturating_add(STACK_SIZE);
            *stack = Some(if is_near { (low.min(address), high.max(address)) } else { (address, address) });
            return STACK;
        }
        let process = self.trace.streams()[stream as usize].process;
        let pieces = &self.processes[process as usize].pieces;
        let behind = pieces.partition_point(|piece| piece.start <= address);
        match behind.checked_sub(1).map(|index| pieces[index]) {
            Some(piece) if address < piece.end => piece.array,
            _ if stack.is_some_and(|(low, high)| (low..=high).contains(&address)) => STACK,
            _ => OTHER,
        }
    }

    /// Adds an image to a process, in place of what was there.
    #[cold]
    fn map(&mut self, process: u32, image: u32) {
        self.processes[process as usize].last = Some(image);
        if self.processes[process as usize].images.contains(&image) {
            return;
        }
        let new = self.pieces(image);
        let all = self.trace.images();
        let range = all[image as usize].start..all[image as usize].end;
        let process = &mut self.processes[process as usize];
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

    /// The variables of an image, and between them the rest of its data.
    fn pieces(&mut self, image: u32) -> Vec<Piece> {
        if let Some(known) = &self.images[image as usize] {
            return known.clone();
        }
        let trace::Image { start, end, bias, .. } = self.trace.images()[image as usize];
        let name = self.names.image(Some(image));
        let rest = Array {
            name: format!("(data of {name})"),
            place: name.clone(),
            element: None,
            shape: String::new(),
            variable: None,
        };
        let rest = self.number(rest);
        let mut pieces = Vec::new();
        let mut at = start;
        for variable in self.names.variables(image) {
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
        self.images[image as usize] = Some(pieces.clone());
        pieces
    }

    fn number(&mut self, array: Array) -> u32 {
        self.arrays.push(array);
        self.arrays.len() as u32 - 1
    }
}

impl Array {
    fn of(variable: &Variable, image: &str) -> Array {
        let Variable { name, scope, element, shape, .. } = variable;
        let place = scope.as_ref().map_or(image.into(), |scope| format!("{scope} in {image}"));
        let element_name = element.as_ref().map_or("", |element| element.name.as_str());
        let counts: Vec<String> = shape.iter().map(u64::to_string).collect();
        let shape = match (shape.is_empty(), variable.is_column_major) {
            (true, _) => element_name.into(),
            (false, true) => format!("{element_name} ({})", counts.join(",")),
            (false, false) => format!("{element_name} [{}]", counts.join("][")),
        };
        let element = element.as_ref().map(|element| element.size);
        Array { name: name.clone(), place, element, shape, variable: Some(variable.clone()) }
    }
}
