//! Reads traces.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::bytes::Malformed;
use crate::codec::{BlockSummaries, unpack_records};
use crate::container::{ChunkLocation, FILE_MAGIC, FIRST_CHUNK, NONE, PayloadKind, TraceFile, VERSION};
use crate::definitions::Definitions;
use crate::error::{Error, TraceProblem};
use crate::{Function, Header, ThreadStream, pipe};
use events::record::RecordShape;
use events::{Block, BlockId, MappedImage};
use isa::{INSTRUCTION_SETS, InstructionSet};

/// A part of a stream's records that can be decoded independently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The stream: an index of [`Trace::streams`].
    pub stream: u32,
    /// Number of instructions of the stream before the chunk.
    pub first_instruction: u64,
    /// Number of instructions in the chunk.
    pub instructions: u64,
    /// The number of the stream's last order mark before the chunk, or 0.
    pub order: u64,
    /// The first unit of work that begins in the chunk.
    pub first_unit: Option<u64>,
}

/// A trace in a file.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    source: TraceFile,
    header: Header,
    set: &'static dyn InstructionSet,
    images: Vec<MappedImage>,
    functions: Vec<Function>,
    blocks: Vec<Block>,
    block_functions: Vec<Option<u32>>,
    shapes: Vec<RecordShape>,
    /// The dictionaries of the processes, by the process's number.
    processes: HashMap<u32, ProcessNumbers>,
    streams: Vec<ThreadStream>,
    chunks: Vec<Chunk>,
    /// By stream, the indexes of its chunks.
    stream_chunks: Vec<Vec<usize>>,
    found: Vec<ChunkLocation>,
    problems: Vec<TraceProblem>,
    /// The names of mapped objects, by number.
    objects: BTreeMap<u32, String>,
    /// The classes of units of work, by the unit's number.
    unit_classes: BTreeMap<u64, String>,
}

/// A process's dictionary: maps the process's numbers to the trace's.
#[derive(Debug, Default)]
struct ProcessNumbers {
    images: Vec<u32>,
    functions: Vec<u32>,
    blocks: Vec<BlockId>,
    summaries: OnceLock<BlockSummaries>,
}

/// Stands for a number whose definition is missing since its chunk was damaged.
const MISSING: u32 = u32::MAX;
/// Maximum number of missing definitions in a file. This bounds the memory for them.
const MAX_MISSING: usize = 1 << 20;

impl Trace {
    /// Opens a trace and reads everything but the records. A damaged file is opened as far as it can be read; see
    /// [`Trace::problems`]. A trace may come through a pipe or through standard input (`-`), and is copied to a
    /// temporary file then.
    pub fn open(path: &Path) -> Result<Trace, Error> {
        let file = pipe::open(path).map_err(|source| Error::Io { path: path.into(), source })?;
        Trace::from_file(file, path)
    }

    /// Whether a file begins as a trace does. True for every pipe.
    pub fn is_trace(path: &Path) -> bool {
        if pipe::is_pipe(path) {
            return true;
        }
        let mut start = [0; FILE_MAGIC.len()];
        // Opening a pipe would block until somebody writes to it.
        let is_file = path.metadata().is_ok_and(|there| there.is_file());
        is_file
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == FILE_MAGIC
    }

    /// As [`Trace::open`], with a file that is already open, at any offset. `path` is its name in errors.
    pub fn from_file(file: File, path: &Path) -> Result<Trace, Error> {
        Trace::with_sets(file, path, &INSTRUCTION_SETS)
    }

    /// As [`Trace::from_file`], of a program of one of these instruction sets.
    pub fn with_sets(file: File, path: &Path, sets: &[&'static dyn InstructionSet]) -> Result<Trace, Error> {
        let io = |source| Error::Io { path: path.into(), source };
        let damaged = |what: &str| Error::Damaged { path: path.into(), what: what.into() };
        let source = TraceFile::new(file).map_err(io)?;
        let start = source.bytes(0, FIRST_CHUNK as usize).map_err(io)?;
        let version = start.strip_prefix(&FILE_MAGIC).and_then(|rest| rest.first_chunk());
        match version.map(|bytes| u32::from_le_bytes(*bytes)) {
            None => return Err(damaged("not a trace that pathlength recorded")),
            // Version 1 had no heap marks, version 2 no marks of mappings.
            Some(1 | 2 | VERSION) => {}
            Some(version) => {
                let what = format!("a trace of version {version}; this pathlength reads version {VERSION}");
                return Err(damaged(&what));
            }
        }
        let (mut found, problems) = source.chunks().map_err(io)?;
        let header = match found.first() {
            Some(first) if first.head.kind == PayloadKind::Header => source.payload(first).map_err(io)?,
            _ => None,
        };
        let header = header.and_then(|payload| serde_json::from_slice(&payload).ok());
        let header: Header = header.ok_or_else(|| damaged("the trace's header is damaged"))?;
        let set = header.set_among(sets).map_err(|what| damaged(&what))?;
        found.remove(0);
        let mut trace = Trace {
            path: path.into(),
            source,
            header,
            set,
            images: Vec::new(),
            functions: Vec::new(),
            blocks: Vec::new(),
            block_functions: Vec::new(),
            shapes: Vec::new(),
            processes: HashMap::new(),
            streams: Vec::new(),
            chunks: Vec::new(),
            stream_chunks: Vec::new(),
            found: Vec::new(),
            problems,
            objects: BTreeMap::new(),
            unit_classes: BTreeMap::new(),
        };
        trace.read_dictionaries(&found).map_err(io)?;
        trace.list_streams(&found);
        trace.problems.sort_by_key(|problem| problem.offset);
        Ok(trace)
    }

    fn read_dictionaries(&mut self, found: &[ChunkLocation]) -> io::Result<()> {
        let mut lost = 0;
        for chunk in found.iter().filter(|chunk| chunk.head.kind == PayloadKind::Dictionary) {
            let what = match self.source.payload(chunk)? {
                None => "its checksum is wrong".into(),
                Some(payload) => {
                    let decoded = Definitions::decode(&payload, self.set).map_err(|error| error.0);
                    match decoded.and_then(|definitions| self.define(chunk, definitions, &mut lost)) {
                        Ok(()) => continue,
                        Err(what) => what.to_string(),
                    }
                }
            };
            let what = format!("a chunk of the dictionary is skipped: {what}");
            self.problems.push(TraceProblem { offset: chunk.offset, what });
        }
        Ok(())
    }

    fn define(
        &mut self,
        chunk: &ChunkLocation,
        definitions: Definitions,
        lost: &mut usize,
    ) -> Result<(), &'static str> {
        let process = self.processes.entry(chunk.head.process).or_default();
        mark_missing(&mut process.images, definitions.first_image, lost)?;
        mark_missing(&mut process.functions, definitions.first_function, lost)?;
        mark_missing(&mut process.blocks, definitions.first_block, lost)?;
        self.objects.extend(definitions.objects);
        self.unit_classes.extend(definitions.unit_classes);
        for image in definitions.images {
            process.images.push(self.images.len() as u32);
            self.images.push(image);
        }
        for mut function in definitions.functions {
            let Some(image) = trace_number(&process.images, function.image) else {
                process.functions.push(MISSING);
                continue;
            };
            function.image = image;
            process.functions.push(self.functions.len() as u32);
            self.functions.push(function);
        }
        for (mut block, function) in definitions.blocks {
            block.image = block.image.and_then(|image| trace_number(&process.images, image));
            let function = function.and_then(|function| trace_number(&process.functions, function));
            process.blocks.push(self.blocks.len() as BlockId);
            self.shapes.push(RecordShape::new(self.set, &block.words, self.header.has_values));
            self.block_functions.push(function);
            self.blocks.push(block);
        }
        Ok(())
    }

    fn list_streams(&mut self, found: &[ChunkLocation]) {
        let mut numbers = HashMap::new();
        let mut ends: Vec<u64> = Vec::new();
        for chunk in found.iter().filter(|chunk| chunk.head.kind == PayloadKind::Records) {
            let head = &chunk.head;
            // A process of which only marks were recorded has defined nothing.
            self.processes.entry(head.process).or_default();
            let stream = *numbers.entry((head.process, head.thread)).or_insert_with(|| {
                let (process, thread, host_process) = (head.process, head.thread, head.host_process);
                self.streams.push(ThreadStream { process, thread, host_process });
                self.stream_chunks.push(Vec::new());
                ends.push(0);
                self.streams.len() as u32 - 1
            });
            let (first_instruction, instructions) = (head.first_instruction, head.instructions);
            let end = &mut ends[stream as usize];
            if first_instruction != *end {
                let what = format!(
                    "instructions {end} to {first_instruction} of process {}, thread {} are missing",
                    head.process, head.thread
                );
                self.problems.push(TraceProblem { offset: chunk.offset, what });
            }
            *end = first_instruction + instructions;
            let first_unit = Some(head.first_unit).filter(|&unit| unit != NONE);
            let order = head.order;
            self.chunks.push(Chunk { stream, first_instruction, instructions, order, first_unit });
            self.stream_chunks[stream as usize].push(self.found.len());
            self.found.push(*chunk);
        }
    }

    /// The names of the objects that processes map ([`Mapping`](events::record::Mapping)), by number.
    pub fn mapped_objects(&self) -> &BTreeMap<u32, String> {
        &self.objects
    }

    /// The classes of units of work by the unit's number, if it was recorded with classes.
    pub fn unit_classes(&self) -> &BTreeMap<u64, String> {
        &self.unit_classes
    }

    /// The header: the recorded program, and how it was recorded.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The instruction set of the recorded program.
    pub fn instruction_set(&self) -> &'static dyn InstructionSet {
        self.set
    }

    /// Every image that was mapped into a recorded process.
    pub fn images(&self) -> &[MappedImage] {
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
    pub fn shapes(&self) -> &[RecordShape] {
        &self.shapes
    }

    /// The threads that were recorded.
    pub fn streams(&self) -> &[ThreadStream] {
        &self.streams
    }

    /// The chunks of records in the order of the file. Those of one stream are in the order of execution.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The chunks of a stream, in the order of execution: indexes of [`Trace::chunks`].
    pub fn stream_chunks(&self, stream: u32) -> &[usize] {
        self.stream_chunks.get(stream as usize).map_or(&[], |chunks| chunks)
    }

    /// Problems found when the trace was opened. Records are checked only by [`Trace::read`].
    pub fn problems(&self) -> &[TraceProblem] {
        &self.problems
    }

    /// Reads the records of the chunk with this index into `words`, with blocks numbered as in [`Trace::blocks`].
    /// After an error the other chunks can still be read.
    pub fn read(&self, chunk: usize, words: &mut Vec<u64>) -> Result<(), Error> {
        words.clear();
        let found = &self.found[chunk];
        let payload = self.source.payload(found);
        let payload = payload.map_err(|source| Error::Io { path: self.path.clone(), source })?;
        let decoded = match payload {
            None => Err("its checksum is wrong"),
            Some(payload) => self.decode(found, &payload, words).map_err(|error| error.0),
        };
        decoded.map_err(|what| {
            words.clear();
            let what = format!("the records at byte {} cannot be read: {what}", found.offset);
            Error::Damaged { path: self.path.clone(), what }
        })
    }

    fn decode(&self, found: &ChunkLocation, payload: &[u8], words: &mut Vec<u64>) -> Result<(), Malformed> {
        let head = &found.head;
        let process = &self.processes[&head.process];
        let summaries = process.summaries.get_or_init(|| process.summaries(self));
        let global = |id: BlockId| process.blocks[id as usize];
        let instructions = unpack_records(payload, head.words, summaries, global, words)?;
        if instructions != head.instructions {
            return Err(Malformed("it does not have the instructions that its head claims"));
        }
        Ok(())
    }
}

/// Marks the numbers before `first` as missing that were not defined.
fn mark_missing(numbers: &mut Vec<u32>, first: u32, lost: &mut usize) -> Result<(), &'static str> {
    let missing = (first as usize).checked_sub(numbers.len()).ok_or("it defines something again")?;
    *lost = lost.saturating_add(missing);
    if *lost > MAX_MISSING {
        return Err("too much before it is missing");
    }
    numbers.resize(first as usize, MISSING);
    Ok(())
}

impl ProcessNumbers {
    fn summaries(&self, trace: &Trace) -> BlockSummaries {
        let mut summaries = BlockSummaries::new(trace.set, trace.header.has_values);
        for &id in &self.blocks {
            match trace.blocks.get(id as usize) {
                Some(block) => summaries.push(block.address, &block.words),
                None => summaries.push(0, &[]),
            }
        }
        summaries
    }
}

/// Maps a number of a process to the trace's, if its definition is not missing.
fn trace_number(numbers: &[u32], number: u32) -> Option<u32> {
    numbers.get(number as usize).copied().filter(|&trace_number| trace_number != MISSING)
}
