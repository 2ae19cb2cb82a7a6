//! Writes traces.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bytes::Malformed;
use crate::codec::{BlockSummaries, Packer};
use crate::container::{self, Head, MAX_BLOCK, PayloadKind};
use crate::definitions::Definitions;
use crate::{Function, Header};
use events::record::Event;
use events::{Block, BlockId, Consumer, MappedImage};
use isa::{INSTRUCTION_SETS, InstructionSet};

/// A trace file that is being written. All recorded processes and threads append whole chunks to it.
pub struct Writer {
    file: File,
    set: &'static dyn InstructionSet,
    has_values: bool,
    notify: Notify,
    /// Whether this process has called `notify`.
    has_notified: AtomicBool,
}

/// Called once the first records are in the file; possibly called again by a forked process.
type Notify = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

impl std::fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("Writer").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Writer {
    /// Begins a trace in an empty file that was opened for appending.
    pub fn new(file: File, header: &Header) -> io::Result<Arc<Writer>> {
        Writer::with_sets(file, header, &INSTRUCTION_SETS)
    }

    /// As [`Writer::new`], of a program of one of these instruction sets.
    pub fn with_sets(
        file: File,
        header: &Header,
        sets: &[&'static dyn InstructionSet],
    ) -> io::Result<Arc<Writer>> {
        let writer = Writer::with(file, header, sets, Box::new(|| Ok(())))?;
        writer.begin(header)?;
        Ok(Arc::new(writer))
    }

    /// As [`Writer::new`]; `notify` is called once the first records are in the file, possibly by a forked process,
    /// and possibly again by another one.
    pub fn notifying(
        file: File,
        header: &Header,
        notify: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Arc<Writer>> {
        let writer = Writer::with(file, header, &INSTRUCTION_SETS, Box::new(notify))?;
        writer.begin(header)?;
        Ok(Arc::new(writer))
    }

    fn with(
        file: File,
        header: &Header,
        sets: &[&'static dyn InstructionSet],
        notify: Notify,
    ) -> io::Result<Writer> {
        let set = header.set_among(sets).map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
        let has_notified = AtomicBool::new(false);
        Ok(Writer { file, set, has_values: header.has_values, notify, has_notified })
    }

    /// Writes the beginning of the trace to a file that is still empty.
    pub fn begin(&self, header: &Header) -> io::Result<()> {
        container::begin(&self.file, &serde_json::to_vec(header)?)
    }

    /// A writer for a trace that another process has begun, or will begin, with the same instruction set and kind of
    /// records, to a file that was opened for appending.
    pub fn join(file: File, header: &Header) -> io::Result<Arc<Writer>> {
        Writer::with(file, header, &INSTRUCTION_SETS, Box::new(|| Ok(()))).map(Arc::new)
    }

    /// Appends records.
    fn append_records(&self, head: Head, payload: &[u8]) -> io::Result<()> {
        container::append(&self.file, head, payload)?;
        // An atomic flag instead of a lock, which another thread might hold at a fork.
        if self.has_notified.swap(true, Ordering::Relaxed) { Ok(()) } else { (self.notify)() }
    }
}

/// The dictionary of a process, which the streams of its threads share.
#[derive(Debug)]
pub struct ProcessDictionary {
    writer: Arc<Writer>,
    number: u32,
    host: u32,
    threads: AtomicU32,
    dictionary: Mutex<DictionaryWriter>,
}

#[derive(Debug, Default)]
struct DictionaryWriter {
    images: Vec<MappedImage>,
    functions: HashMap<Function, u32>,
    numbers: HashMap<(BlockKey, Option<u32>), BlockId>,
    blocks: Vec<(BlockKey, Option<u32>)>,
    /// The numbers of objects that it maps.
    objects: BTreeSet<u32>,
    /// Definitions that are neither sealed nor written.
    pending: Definitions,
    /// Definitions that are sealed but not written; and the number of seals already written.
    sealed: VecDeque<Definitions>,
    written: u64,
}

/// A prefix of a process's dictionary, to which records can refer: see [`ProcessDictionary::seal`].
#[derive(Clone, Copy, Debug)]
pub struct Seal(u64);

/// The number of a process's definitions that a consumer has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefinitionCursor {
    images: usize,
    blocks: usize,
}

/// A block's address, instruction words and code.
type BlockKey = (u64, Arc<[u32]>, Arc<[u8]>);

/// Number of blocks after which definitions are sealed, far below the limit of a chunk.
const SEALED_BLOCKS: usize = 1 << 12;

impl ProcessDictionary {
    /// A recorded process, with its number among the recorded ones and the host's number.
    pub fn new(writer: &Arc<Writer>, number: u32, host: u32) -> Arc<ProcessDictionary> {
        let (threads, dictionary) = (AtomicU32::new(0), Mutex::default());
        Arc::new(ProcessDictionary { writer: writer.clone(), number, host, threads, dictionary })
    }

    /// Its number among the recorded processes.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// An image was mapped.
    pub fn add_image(&self, image: MappedImage) {
        let mut dictionary = self.dictionary();
        dictionary.images.push(image.clone());
        dictionary.pending.images.push(image);
    }

    /// The process maps an object of memory: its number in the recording, and its name. Known numbers are ignored.
    pub fn add_object(&self, number: u32, name: impl FnOnce() -> String) {
        let mut dictionary = self.dictionary();
        if dictionary.objects.insert(number) {
            dictionary.pending.objects.push((number, name()));
        }
    }

    /// A unit of work is of this class. Called before the mark of its end is recorded.
    pub fn add_unit_class(&self, unit: u64, class: &str) {
        self.dictionary().pending.unit_classes.push((unit, class.into()));
    }

    /// The number of a block in the dictionary. Blocks with equal addresses and instructions in the same image have the same
    /// number.
    /// `function` is called for a new block and returns its function, whose `image` is the number of an image of
    /// [`ProcessDictionary::add_image`].
    pub fn block(&self, block: Block, function: impl FnOnce() -> Option<Function>) -> io::Result<BlockId> {
        if block.words.is_empty() || block.words.len() > MAX_BLOCK {
            let what =
                format!("a block has {} instructions; 1 to {MAX_BLOCK} can be kept", block.words.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut dictionary = self.dictionary();
        let key: BlockKey = (block.address, block.words[..].into(), block.code[..].into());
        let key = (key, block.image);
        if let Some(&id) = dictionary.numbers.get(&key) {
            return Ok(id);
        }
        let id = dictionary.blocks.len() as BlockId;
        let function = function().map(|function| dictionary.function(function));
        dictionary.blocks.push(key.clone());
        dictionary.numbers.insert(key, id);
        dictionary.pending.blocks.push((block, function));
        if dictionary.pending.blocks.len() >= SEALED_BLOCKS {
            dictionary.seal();
        }
        Ok(id)
    }

    fn dictionary(&self) -> MutexGuard<'_, DictionaryWriter> {
        self.dictionary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seals the dictionary's present state. Records that refer to it are appended with the seal; so the contents of
    /// the file do not depend on what other threads add meanwhile.
    pub fn seal(&self) -> Seal {
        self.dictionary().seal()
    }

    /// Writes the definitions up to a seal to the file.
    fn write(&self, seal: Seal) -> io::Result<()> {
        let mut dictionary = self.dictionary();
        while dictionary.written < seal.0 {
            let Some(mut definitions) = dictionary.sealed.pop_front() else { break };
            dictionary.written += 1;
            while dictionary.written < seal.0
                && definitions.blocks.len() < SEALED_BLOCKS
                && let Some(more) = dictionary.sealed.pop_front()
            {
                dictionary.written += 1;
                definitions.append(more);
            }
            container::append(
                &self.writer.file,
                Head::new(PayloadKind::Dictionary, self.number),
                &definitions.encode()?,
            )?;
        }
        Ok(())
    }

    /// Calls `report` with address and instruction words of each block from this number on.
    pub fn blocks_from(&self, number: usize, mut report: impl FnMut(u64, &[u32])) {
        for ((address, words, _), _) in &self.dictionary().blocks[number..] {
            report(*address, words);
        }
    }

    /// Reports those images and blocks to a consumer that it has not received, and advances `cursor`.
    pub fn define(&self, cursor: &mut DefinitionCursor, consumer: &mut dyn Consumer) {
        let DictionaryWriter { images, blocks, .. } = &*self.dictionary();
        images[cursor.images..].iter().for_each(|image| consumer.map(image));
        for ((address, words, code), image) in &blocks[cursor.blocks..] {
            let block = Block::new(self.writer.set, *address, &**words);
            consumer.define(&Block { image: *image, code: code.to_vec(), ..block });
        }
        *cursor = DefinitionCursor { images: images.len(), blocks: blocks.len() };
    }

    /// Writes the dictionary to the file, for a trace without records.
    pub fn write_dictionary(&self) -> io::Result<()> {
        self.write(self.seal())
    }
}

impl DictionaryWriter {
    fn seal(&mut self) -> Seal {
        if !self.pending.is_empty() {
            let next = self.pending.next();
            self.sealed.push_back(std::mem::replace(&mut self.pending, next));
        }
        Seal(self.written + self.sealed.len() as u64)
    }

    fn function(&mut self, function: Function) -> u32 {
        let next = self.functions.len() as u32;
        *self.functions.entry(function).or_insert_with_key(|function| {
            self.pending.functions.push(function.clone());
            next
        })
    }
}

/// Compresses records of one thread into chunks. Several threads may compress chunks of the same stream in parallel.
pub struct ChunkPacker {
    process: Arc<ProcessDictionary>,
    summaries: BlockSummaries,
    packer: Option<Box<Packer>>,
}

/// A compressed chunk that has not been written.
pub struct PackedChunk {
    head: Head,
    /// The number of its last order mark.
    last_order: Option<u64>,
    payload: Vec<u8>,
}

impl ChunkPacker {
    /// Packs records of threads of a process.
    pub fn new(process: &Arc<ProcessDictionary>) -> ChunkPacker {
        let summaries = BlockSummaries::new(process.writer.set, process.writer.has_values);
        ChunkPacker { process: process.clone(), summaries, packer: None }
    }

    /// Adds records whose blocks are numbered by [`ProcessDictionary::block`]. Returns the records that are left when the chunk
    /// is complete.
    pub fn add<'a>(&mut self, mut words: &'a [u64]) -> io::Result<&'a [u64]> {
        while let Some(&word) = words.first().filter(|_| !self.is_full()) {
            let packer = self.packer.get_or_insert_with(|| Box::new(Packer::new(&self.summaries)));
            match Event::new(word) {
                Event::Block(id) => {
                    if id as usize >= self.summaries.len() {
                        let summaries = &mut self.summaries;
                        self.process
                            .blocks_from(summaries.len(), |address, words| summaries.push(address, words));
                    }
                    words = packer.execution(id, words, &self.summaries).map_err(invalid)?;
                }
                Event::Mark(mark) => {
                    packer.mark(mark);
                    words = &words[1..];
                }
                Event::Access(_) => return Err(invalid(Malformed("an address has no block"))),
            }
        }
        Ok(words)
    }

    /// Whether the chunk is complete: it holds some million instructions.
    pub fn is_full(&self) -> bool {
        self.packer.as_ref().is_some_and(|packer| packer.is_full())
    }

    /// Completes the chunk, if it is not empty.
    pub fn finish(&mut self) -> io::Result<Option<PackedChunk>> {
        let Some(packer) = self.packer.take() else { return Ok(None) };
        let process = &self.process;
        let head = Head {
            host_process: if process.number == 0 { 0 } else { process.host },
            words: packer.words,
            instructions: packer.instructions,
            first_unit: packer.first_unit,
            ..Head::new(PayloadKind::Records, process.number)
        };
        Ok(Some(PackedChunk { head, last_order: packer.last_order, payload: packer.payload()? }))
    }
}

/// Writes the records of one thread, a chunk at a time. A chunk is complete when it holds some million instructions,
/// when [`StreamWriter::finish`] is called, or when the stream is dropped.
pub struct StreamWriter {
    packer: ChunkPacker,
    thread: u32,
    /// Number of instructions of the chunks before.
    instructions: u64,
    /// The number of the last order mark in these chunks, or 0.
    order: u64,
    /// The host process that owns the stream. A copy made by fork does not write.
    owner: u32,
}

impl std::fmt::Debug for StreamWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        let process = self.packer.process.number;
        formatter
            .debug_struct("StreamWriter")
            .field("process", &process)
            .field("thread", &self.thread)
            .finish()
    }
}

impl StreamWriter {
    /// The stream of a thread of a process.
    pub fn new(process: &Arc<ProcessDictionary>) -> StreamWriter {
        StreamWriter {
            packer: ChunkPacker::new(process),
            thread: process.threads.fetch_add(1, Ordering::Relaxed),
            instructions: 0,
            order: 0,
            owner: std::process::id(),
        }
    }

    /// The process that the thread belongs to.
    pub fn process(&self) -> &Arc<ProcessDictionary> {
        &self.packer.process
    }

    /// The number of the thread among the recorded ones of its process.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Appends records whose blocks are numbered by [`ProcessDictionary::block`].
    pub fn write(&mut self, mut words: &[u64]) -> io::Result<()> {
        while !words.is_empty() {
            words = self.packer.add(words)?;
            if self.packer.is_full() {
                self.finish()?;
            }
        }
        Ok(())
    }

    /// Completes the chunk. More records may follow.
    pub fn finish(&mut self) -> io::Result<()> {
        let seal = self.packer.process.seal();
        self.packer.finish()?.map_or(Ok(()), |chunk| self.append(chunk, seal))
    }

    /// Appends a chunk that was compressed elsewhere, with the seal of the dictionary that its records refer to.
    pub fn append(&mut self, chunk: PackedChunk, seal: Seal) -> io::Result<()> {
        let process = &self.packer.process;
        process.write(seal)?;
        let (first_instruction, order) = (self.instructions, self.order);
        let head = Head { thread: self.thread, first_instruction, order, ..chunk.head };
        self.instructions += head.instructions;
        self.order = chunk.last_order.unwrap_or(order);
        process.writer.append_records(head, &chunk.payload)
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            // A caller that needs the result calls `finish` before.
            let _ = self.finish();
        }
    }
}

fn invalid(error: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("these are no records: {}", error.0))
}
