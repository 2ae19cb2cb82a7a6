//! Reads traces.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::record::{Event, Shape};
use crate::writer::Line;
use crate::{Block, BlockId, Function, Header, Image, Stream};

/// Why a file, or a part of it, could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The host's reason.
        source: std::io::Error,
    },
    /// It is no trace, or damaged.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
}

/// A part of a trace that could not be read: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there, for people.
    pub what: String,
}

/// A piece of a stream's records that decodes alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Whose: an index of [`Trace::streams`].
    pub stream: u32,
    /// How many instructions of the stream come before it.
    pub first_instruction: u64,
    /// Instructions in it.
    pub instructions: u64,
}

/// A trace in a file.
#[derive(Debug, Default)]
pub struct Trace {
    header: Header,
    images: Vec<Image>,
    functions: Vec<Function>,
    blocks: Vec<Block>,
    block_functions: Vec<Option<u32>>,
    shapes: Vec<Shape>,
    streams: Vec<Stream>,
    chunks: Vec<Chunk>,
    problems: Vec<Problem>,
    words: Vec<Vec<u64>>,
}

impl Trace {
    /// Opens a trace: reads everything but the records. A damaged file opens as far as it can be read; see
    /// [`Trace::problems`].
    pub fn open(path: &Path) -> Result<Trace, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::Io { path: path.into(), source: error })?;
        let mut trace = Trace::default();
        let mut images: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut functions: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut blocks: HashMap<u32, Vec<BlockId>> = HashMap::new();
        let mut streams = HashMap::new();
        for line in text.lines() {
            let line: Line = serde_json::from_str(line)
                .map_err(|error| Error::Damaged { path: path.into(), what: error.to_string() })?;
            match line {
                Line::Header(header) => trace.header = header,
                Line::Image(process, image) => {
                    images.entry(process).or_default().push(trace.images.len() as u32);
                    trace.images.push(image);
                }
                Line::Function(process, mut function) => {
                    function.image = images[&process][function.image as usize];
                    functions.entry(process).or_default().push(trace.functions.len() as u32);
                    trace.functions.push(function);
                }
                Line::Block(process, mut block, function) => {
                    block.image = block.image.map(|image| images[&process][image as usize]);
                    blocks.entry(process).or_default().push(trace.blocks.len() as BlockId);
                    trace.shapes.push(Shape::new(&block.words, trace.header.has_values));
                    trace.block_functions.push(function.map(|index| functions[&process][index as usize]));
                    trace.blocks.push(block);
                }
                Line::Stream(number, stream) => {
                    streams.insert(number, trace.streams.len() as u32);
                    trace.streams.push(stream);
                }
                Line::Records { stream, instructions, mut words } => {
                    let process = stream >> 16;
                    let stream = streams[&stream];
                    let mut at = 0;
                    while at < words.len() {
                        match Event::new(words[at]) {
                            Event::Block(local) => {
                                let id = blocks[&process][local as usize];
                                words[at] = Event::Block(id).word();
                                let shape = trace.shapes[id as usize];
                                at += (1 + shape.accesses + shape.values) as usize;
                            }
                            _ => at += 1,
                        }
                    }
                    let before = trace.chunks.iter().filter(|chunk| chunk.stream == stream);
                    let first_instruction = before.map(|chunk| chunk.instructions).sum();
                    trace.chunks.push(Chunk { stream, first_instruction, instructions });
                    trace.words.push(words);
                }
            }
        }
        Ok(trace)
    }

    /// What was recorded, and how.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Every image that was mapped into a process that was recorded.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The functions that blocks belong to.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The blocks of all processes, by [`BlockId`].
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The function that a block's first instruction belongs to: an index of [`Trace::functions`].
    pub fn function_of(&self, block: BlockId) -> Option<u32> {
        self.block_functions[block as usize]
    }

    /// The shapes of the blocks, by [`BlockId`].
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The threads that were recorded.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The records, in the file's order: those of one stream in the order of execution.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// What could not be read.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Reads the records of a chunk, by its index, into `words`; its blocks are numbered as in
    /// [`Trace::blocks`].
    pub fn read(&self, chunk: usize, words: &mut Vec<u64>) -> Result<(), Error> {
        words.clear();
        words.extend_from_slice(&self.words[chunk]);
        Ok(())
    }
}
