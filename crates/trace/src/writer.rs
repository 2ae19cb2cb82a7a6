//! Writes traces.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::record::Shape;
use crate::{Block, BlockId, Function, Header, Image, Stream};

/// A chunk of the file: a line of JSON each. TODO(codec): a placeholder.
#[derive(Serialize, Deserialize)]
pub(crate) enum Line {
    Header(Header),
    Image(u32, Image),
    Function(u32, Function),
    Block(u32, Block, Option<u32>),
    Stream(u32, Stream),
    Records { stream: u32, instructions: u64, words: Vec<u64> },
}

/// A trace's file. All processes and threads that are recorded append whole chunks to it.
#[derive(Debug)]
pub struct Writer {
    file: File,
    has_values: bool,
}

impl Writer {
    /// Begins a trace in an empty file that was opened for appending.
    pub fn new(file: File, header: &Header) -> io::Result<Arc<Writer>> {
        let writer = Writer { file, has_values: header.has_values };
        writer.line(&Line::Header(header.clone()))?;
        Ok(Arc::new(writer))
    }

    /// Goes on with a trace that another process has begun, in a file that was opened for appending.
    pub fn join(file: File, has_values: bool) -> Arc<Writer> {
        Arc::new(Writer { file, has_values })
    }

    fn line(&self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        (&self.file).write_all(text.as_bytes())
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
    images: u32,
    functions: Vec<Function>,
    blocks: HashMap<(u64, Vec<u32>), BlockId>,
}

impl Process {
    /// A process that is recorded: its number among them, and the host's.
    pub fn new(writer: &Arc<Writer>, number: u32, host: u32) -> Arc<Process> {
        let (threads, dictionary) = (AtomicU32::new(0), Mutex::default());
        Arc::new(Process { writer: writer.clone(), number, host, threads, dictionary })
    }

    /// An image was mapped.
    pub fn add_image(&self, image: Image) -> io::Result<()> {
        let mut dictionary = self.dictionary.lock().unwrap();
        dictionary.images += 1;
        self.writer.line(&Line::Image(self.number, image))
    }

    /// The number of a block in the dictionary: the same instructions at the same address have the same.
    /// `function` tells the function that it belongs to, if it is new; its `image` is counted among those
    /// of [`Process::add_image`].
    pub fn block(&self, block: Block, function: impl FnOnce() -> Option<Function>) -> io::Result<BlockId> {
        let mut dictionary = self.dictionary.lock().unwrap();
        let key = (block.address, block.words.clone());
        if let Some(&id) = dictionary.blocks.get(&key) {
            return Ok(id);
        }
        let id = dictionary.blocks.len() as BlockId;
        let function = match function() {
            None => None,
            Some(function) => match dictionary.functions.iter().position(|known| *known == function) {
                Some(index) => Some(index as u32),
                None => {
                    self.writer.line(&Line::Function(self.number, function.clone()))?;
                    dictionary.functions.push(function);
                    Some(dictionary.functions.len() as u32 - 1)
                }
            },
        };
        self.writer.line(&Line::Block(self.number, block, function))?;
        dictionary.blocks.insert(key, id);
        Ok(id)
    }
}

/// Writes the records of one thread.
#[derive(Debug)]
pub struct StreamWriter {
    process: Arc<Process>,
    thread: u32,
    is_announced: bool,
}

impl StreamWriter {
    /// The stream of a thread of a process.
    pub fn new(process: &Arc<Process>) -> StreamWriter {
        let thread = process.threads.fetch_add(1, Ordering::Relaxed);
        StreamWriter { process: process.clone(), thread, is_announced: false }
    }

    /// Appends a chunk of records, whose blocks are numbered as [`Process::block`] says and have these shapes.
    pub fn write(&mut self, words: &[u64], shapes: &[Shape]) -> io::Result<()> {
        let stream = self.process.number << 16 | self.thread;
        if !std::mem::replace(&mut self.is_announced, true) {
            let host_process = if self.process.number == 0 { 0 } else { self.process.host };
            let announced = Stream { process: self.process.number, thread: self.thread, host_process };
            self.process.writer.line(&Line::Stream(stream, announced))?;
        }
        let executions = crate::record::Entries::new(words, shapes);
        let instructions = executions
            .map(|entry| match entry {
                crate::record::Entry::Execution(one) => u64::from(shapes[one.block as usize].instructions),
                crate::record::Entry::Mark(_) => 0,
            })
            .sum();
        let words = words.to_vec();
        let _ = self.process.writer.has_values;
        self.process.writer.line(&Line::Records { stream, instructions, words })
    }
}
