//! Writes traces.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bytes::Malformed;
use crate::codec::{Packer, Recipes};
use crate::container::{self, Head, Kind};
use crate::definitions::Definitions;
use crate::record::{Event, Mark};
use crate::{Block, BlockId, Function, Header, Image};

/// A trace's file. All processes and threads that are recorded append whole chunks to it.
#[derive(Debug)]
pub struct Writer {
    file: File,
    has_values: bool,
}

impl Writer {
    /// Begins a trace in an empty file that was opened for appending.
    pub fn new(file: File, header: &Header) -> io::Result<Arc<Writer>> {
        container::begin(&file, &serde_json::to_vec(header)?)?;
        Ok(Arc::new(Writer { file, has_values: header.has_values }))
    }

    /// Goes on with a trace that another process has begun, in a file that was opened for appending.
    pub fn join(file: File, has_values: bool) -> Arc<Writer> {
        Arc::new(Writer { file, has_values })
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
    functions: HashMap<Function, u32>,
    numbers: HashMap<Place, BlockId>,
    blocks: Vec<Place>,
    /// What is not in the file yet.
    pending: Definitions,
    pending_words: usize,
}

/// A block's address and instruction words.
type Place = (u64, Arc<[u32]>);

/// So many words of blocks are not left pending: a chunk's limit is far.
const MANY_WORDS: usize = 1 << 20;

impl Process {
    /// A process that is recorded: its number among them, and the host's.
    pub fn new(writer: &Arc<Writer>, number: u32, host: u32) -> Arc<Process> {
        let (threads, dictionary) = (AtomicU32::new(0), Mutex::default());
        Arc::new(Process { writer: writer.clone(), number, host, threads, dictionary })
    }

    /// An image was mapped.
    pub fn add_image(&self, image: Image) -> io::Result<()> {
        self.dictionary().pending.images.push(image);
        Ok(())
    }

    /// The number of a block in the dictionary: the same instructions at the same address have the same.
    /// `function` tells the function that it belongs to, if it is new; its `image` is counted among those
    /// of [`Process::add_image`].
    pub fn block(&self, block: Block, function: impl FnOnce() -> Option<Function>) -> io::Result<BlockId> {
        let mut dictionary = self.dictionary();
        let place: Place = (block.address, block.words[..].into());
        if let Some(&id) = dictionary.numbers.get(&place) {
            return Ok(id);
        }
        let id = dictionary.blocks.len() as BlockId;
        let function = function().map(|function| dictionary.function(function));
        dictionary.pending_words += block.words.len();
        dictionary.pending.blocks.push((block, function));
        dictionary.numbers.insert(place.clone(), id);
        dictionary.blocks.push(place);
        if dictionary.pending_words >= MANY_WORDS {
            self.write_pending(&mut dictionary)?;
        }
        Ok(id)
    }

    fn dictionary(&self) -> MutexGuard<'_, Dictionary> {
        self.dictionary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what the file does not have yet of the dictionary.
    fn write_pending(&self, dictionary: &mut Dictionary) -> io::Result<()> {
        if dictionary.pending.is_empty() {
            return Ok(());
        }
        let payload = dictionary.pending.encode()?;
        dictionary.pending = dictionary.pending.next();
        dictionary.pending_words = 0;
        container::append(&self.writer.file, Head::new(Kind::Dictionary, self.number), &payload)
    }

    /// Adds the recipes of blocks that are new.
    fn complete(&self, recipes: &mut Recipes) {
        let dictionary = self.dictionary();
        for (address, words) in &dictionary.blocks[recipes.len()..] {
            recipes.push(*address, words);
        }
    }
}

impl Dictionary {
    fn function(&mut self, function: Function) -> u32 {
        let next = self.functions.len() as u32;
        *self.functions.entry(function).or_insert_with_key(|function| {
            self.pending.functions.push(function.clone());
            next
        })
    }
}

/// Writes the records of one thread, a chunk at a time. A chunk is complete when it holds some million
/// instructions, or when [`StreamWriter::finish`] is called, or when the stream is dropped.
pub struct StreamWriter {
    process: Arc<Process>,
    thread: u32,
    recipes: Recipes,
    packer: Option<Box<Packer>>,
    /// Instructions of the chunks before.
    instructions: u64,
    /// The number of the last order mark, and at the beginning of the chunk.
    order: u64,
    first_order: u64,
    /// The host's process that this belongs to: a fork's copy is not its own.
    owner: u32,
}

impl std::fmt::Debug for StreamWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        let process = self.process.number;
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
            process: process.clone(),
            thread: process.threads.fetch_add(1, Ordering::Relaxed),
            recipes: Recipes::new(process.writer.has_values),
            packer: None,
            instructions: 0,
            order: 0,
            first_order: 0,
            owner: std::process::id(),
        }
    }

    /// Appends records, whose blocks are numbered as [`Process::block`] says.
    pub fn write(&mut self, mut words: &[u64]) -> io::Result<()> {
        while let Some(&word) = words.first() {
            let packer = self.packer.get_or_insert_with(|| {
                self.first_order = self.order;
                Box::new(Packer::new(self.recipes.has_values))
            });
            match Event::new(word) {
                Event::Block(id) => {
                    if id as usize >= self.recipes.len() {
                        self.process.complete(&mut self.recipes);
                    }
                    words = packer.execution(id, words, &self.recipes).map_err(invalid)?;
                }
                Event::Mark(mark) => {
                    if let Mark::Order(number) = mark {
                        self.order = number;
                    }
                    packer.mark(mark);
                    words = &words[1..];
                }
                Event::Access(_) => return Err(invalid(Malformed("an address has no block"))),
            }
            if packer.is_full() {
                self.finish()?;
            }
        }
        Ok(())
    }

    /// Completes the chunk. The stream may go on.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(packer) = self.packer.take() else { return Ok(()) };
        let process = &self.process;
        process.write_pending(&mut process.dictionary())?;
        let head = Head {
            thread: self.thread,
            host_process: if process.number == 0 { 0 } else { process.host },
            words: packer.words,
            first_instruction: self.instructions,
            instructions: packer.instructions,
            order: self.first_order,
            first_unit: packer.first_unit,
            ..Head::new(Kind::Records, process.number)
        };
        self.instructions += packer.instructions;
        container::append(&process.writer.file, head, &packer.payload()?)
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
