//! Writes traces.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bytes::Malformed;
use crate::codec::{Packer, Recipes};
use crate::container::{self, Head, Kind, LONGEST_BLOCK};
use crate::definitions::Definitions;
use crate::{Function, Header};
use events::record::Event;
use events::{Block, BlockId, Consumer, Image};

/// A trace's file. All processes and threads that are recorded append whole chunks to it.
pub struct Writer {
    file: File,
    has_values: bool,
    notify: Notify,
    /// Whether this process has called it.
    has_notified: AtomicBool,
}

/// What is called once the first records are in the file, perhaps again by a process that was forked.
type Notify = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

impl std::fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("Writer").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Writer {
    /// Begins a trace in an empty file that was opened for appending.
    pub fn new(file: File, header: &Header) -> io::Result<Arc<Writer>> {
        Writer::notifying(file, header, || Ok(()))
    }

    /// The same; `notify` is called once the first records are in the file, perhaps by a process that was forked, and
    /// perhaps again by another.
    pub fn notifying(
        file: File,
        header: &Header,
        notify: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Arc<Writer>> {
        let writer = Writer::with(file, header.has_values, Box::new(notify));
        writer.begin(header)?;
        Ok(Arc::new(writer))
    }

    fn with(file: File, has_values: bool, notify: Notify) -> Writer {
        Writer { file, has_values, notify, has_notified: AtomicBool::new(false) }
    }

    /// Begins the trace, in a file that is still empty.
    pub fn begin(&self, header: &Header) -> io::Result<()> {
        container::begin(&self.file, &serde_json::to_vec(header)?)
    }

    /// Goes on with a trace that is begun elsewhere, in a file that was opened for appending.
    pub fn join(file: File, has_values: bool) -> Arc<Writer> {
        Arc::new(Writer::with(file, has_values, Box::new(|| Ok(()))))
    }

    /// Appends records.
    fn append_records(&self, head: Head, payload: &[u8]) -> io::Result<()> {
        container::append(&self.file, head, payload)?;
        // Without a lock, which another thread may have at a fork.
        if self.has_notified.swap(true, Ordering::Relaxed) { Ok(()) } else { (self.notify)() }
    }
}

/// The dictionary of a process: shared by the streams of its threads.
#[derive(Debug)]
pub struct Process {
    writer: Arc<Writer>,
    number: u32,
    host: u32,
    threads: AtomicU32,
    dictionary: Mutex<Dictionary>,
}

#[derive(Debug, Default)]
struct Dictionary {
    images: Vec<Image>,
    functions: HashMap<Function, u32>,
    numbers: HashMap<Place, BlockId>,
    blocks: Vec<(Place, Option<u32>)>,
    /// What is not in the file yet, and not sealed.
    pending: Definitions,
    /// What is not in the file yet, but sealed; and how many seals there were before.
    sealed: VecDeque<Definitions>,
    written: u64,
}

/// All that was in a process's dictionary at a time: see [`Process::seal`].
#[derive(Clone, Copy, Debug)]
pub struct Seal(u64);

/// How many of a process's definitions somebody has heard of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    images: usize,
    blocks: usize,
}

/// A block's address and instruction words.
type Place = (u64, Arc<[u32]>);

/// So many blocks are not brought to the file at once: a chunk's limit is far.
const MANY_BLOCKS: usize = 1 << 12;

impl Process {
    /// A process that is recorded: its number among them, and the host's.
    pub fn new(writer: &Arc<Writer>, number: u32, host: u32) -> Arc<Process> {
        let (threads, dictionary) = (AtomicU32::new(0), Mutex::default());
        Arc::new(Process { writer: writer.clone(), number, host, threads, dictionary })
    }

    /// Its number among those that are recorded.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// An image was mapped.
    pub fn add_image(&self, image: Image) {
        let mut dictionary = self.dictionary();
        dictionary.images.push(image.clone());
        dictionary.pending.images.push(image);
    }

    /// The number of a block in the dictionary: the same instructions at the same address have the same.
    /// `function` tells the function that it belongs to, if it is new; its `image` is counted among those
    /// of [`Process::add_image`].
    pub fn block(&self, block: Block, function: impl FnOnce() -> Option<Function>) -> io::Result<BlockId> {
        if block.words.is_empty() || block.words.len() > LONGEST_BLOCK {
            let what =
                format!("a block has {} instructions; 1 to {LONGEST_BLOCK} can be kept", block.words.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut dictionary = self.dictionary();
        let place: Place = (block.address, block.words[..].into());
        if let Some(&id) = dictionary.numbers.get(&place) {
            return Ok(id);
        }
        let id = dictionary.blocks.len() as BlockId;
        let function = function().map(|function| dictionary.function(function));
        dictionary.numbers.insert(place.clone(), id);
        dictionary.blocks.push((place, block.image));
        dictionary.pending.blocks.push((block, function));
        if dictionary.pending.blocks.len() >= MANY_BLOCKS {
            dictionary.seal();
        }
        Ok(id)
    }

    fn dictionary(&self) -> MutexGuard<'_, Dictionary> {
        self.dictionary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seals what the dictionary has now. Records of these blocks are appended with the seal, so that what the
    /// file holds does not depend on what other threads add meanwhile.
    pub fn seal(&self) -> Seal {
        self.dictionary().seal()
    }

    /// Brings what was sealed to the file.
    fn write(&self, seal: Seal) -> io::Result<()> {
        let mut dictionary = self.dictionary();
        while dictionary.written < seal.0 {
            let Some(mut definitions) = dictionary.sealed.pop_front() else { break };
            dictionary.written += 1;
            while dictionary.written < seal.0
                && definitions.blocks.len() < MANY_BLOCKS
                && let Some(more) = dictionary.sealed.pop_front()
            {
                dictionary.written += 1;
                definitions.append(more);
            }
            container::append(
                &self.writer.file,
                Head::new(Kind::Dictionary, self.number),
                &definitions.encode()?,
            )?;
        }
        Ok(())
    }

    /// Tells the address and the instruction words of each block from this number on.
    pub fn blocks_from(&self, number: usize, mut tell: impl FnMut(u64, &[u32])) {
        for ((address, words), _) in &self.dictionary().blocks[number..] {
            tell(*address, words);
        }
    }

    /// Tells a consumer of the images and the blocks that it has not heard of, as `known` says, which is changed.
    pub fn define(&self, known: &mut Known, consumer: &mut dyn Consumer) {
        let Dictionary { images, blocks, .. } = &*self.dictionary();
        images[known.images..].iter().for_each(|image| consumer.map(image));
        for ((address, words), image) in &blocks[known.blocks..] {
            consumer.define(&Block { address: *address, words: words.to_vec(), image: *image });
        }
        *known = Known { images: images.len(), blocks: blocks.len() };
    }

    /// Brings the dictionary to the file: for a trace whose records go elsewhere.
    pub fn write_dictionary(&self) -> io::Result<()> {
        self.write(self.seal())
    }
}

impl Dictionary {
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

/// Packs records of one thread into chunks. Threads may pack chunks of the same stream at the same time.
pub struct ChunkPacker {
    process: Arc<Process>,
    recipes: Recipes,
    packer: Option<Box<Packer>>,
}

/// A chunk that is not in the file yet.
pub struct Packed {
    head: Head,
    /// The number of its last order mark.
    last_order: Option<u64>,
    payload: Vec<u8>,
}

impl ChunkPacker {
    /// Packs records of threads of a process.
    pub fn new(process: &Arc<Process>) -> ChunkPacker {
        let recipes = Recipes::new(process.writer.has_values);
        ChunkPacker { process: process.clone(), recipes, packer: None }
    }

    /// Adds records, whose blocks are numbered as [`Process::block`] says; what is left of them when the chunk
    /// is complete.
    pub fn add<'a>(&mut self, mut words: &'a [u64]) -> io::Result<&'a [u64]> {
        while let Some(&word) = words.first().filter(|_| !self.is_full()) {
            let has_values = self.recipes.has_values;
            let packer = self.packer.get_or_insert_with(|| Box::new(Packer::new(has_values)));
            match Event::new(word) {
                Event::Block(id) => {
                    if id as usize >= self.recipes.len() {
                        let recipes = &mut self.recipes;
                        self.process
                            .blocks_from(recipes.len(), |address, words| recipes.push(address, words));
                    }
                    words = packer.execution(id, words, &self.recipes).map_err(invalid)?;
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

    /// Whether the chunk holds some million instructions, and is complete.
    pub fn is_full(&self) -> bool {
        self.packer.as_ref().is_some_and(|packer| packer.is_full())
    }

    /// Completes the chunk, if it is not empty.
    pub fn finish(&mut self) -> io::Result<Option<Packed>> {
        let Some(packer) = self.packer.take() else { return Ok(None) };
        let process = &self.process;
        let head = Head {
            host_process: if process.number == 0 { 0 } else { process.host },
            words: packer.words,
            instructions: packer.instructions,
            first_unit: packer.first_unit,
            ..Head::new(Kind::Records, process.number)
        };
        Ok(Some(Packed { head, last_order: packer.last_order, payload: packer.payload()? }))
    }
}

/// Writes the records of one thread, a chunk at a time. A chunk is complete when it holds some million
/// instructions, or when [`StreamWriter::finish`] is called, or when the stream is dropped.
pub struct StreamWriter {
    packer: ChunkPacker,
    thread: u32,
    /// Instructions of the chunks before.
    instructions: u64,
    /// The number of the last order mark in them, or 0.
    order: u64,
    /// The host's process that this belongs to: a fork's copy is not its own.
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
    pub fn new(process: &Arc<Process>) -> StreamWriter {
        StreamWriter {
            packer: ChunkPacker::new(process),
            thread: process.threads.fetch_add(1, Ordering::Relaxed),
            instructions: 0,
            order: 0,
            owner: std::process::id(),
        }
    }

    /// The process that the thread belongs to.
    pub fn process(&self) -> &Arc<Process> {
        &self.packer.process
    }

    /// Appends records, whose blocks are numbered as [`Process::block`] says.
    pub fn write(&mut self, mut words: &[u64]) -> io::Result<()> {
        while !words.is_empty() {
            words = self.packer.add(words)?;
            if self.packer.is_full() {
                self.finish()?;
            }
        }
        Ok(())
    }

    /// Completes the chunk. The stream may go on.
    pub fn finish(&mut self) -> io::Result<()> {
        let seal = self.packer.process.seal();
        self.packer.finish()?.map_or(Ok(()), |chunk| self.append(chunk, seal))
    }

    /// Appends a chunk that was packed elsewhere, of records of blocks that were sealed.
    pub fn append(&mut self, chunk: Packed, seal: Seal) -> io::Result<()> {
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
            // Who wants to know whether it worked calls `finish` before.
            let _ = self.finish();
        }
    }
}

fn invalid(error: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("these are no records: {}", error.0))
}
