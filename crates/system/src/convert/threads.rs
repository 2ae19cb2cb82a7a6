//! The guest's processes and threads, and their streams in the trace.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use analysis::kernel_entries::KernelEntries;
use events::record::{CALLSYS, Event, Mark};
use events::{Block, BlockId};
use isa::AlphaSystem;
use trace::{ExecutionMode, ProcessDictionary, RecordTimes, StreamWriter, Writer};

use super::counts::ThreadCounts;
use super::extent::ExtentBlock;
use super::images::{ImageFiles, PlacedImage};
use super::{UNKNOWN_SYSTEM_CALL, marks_between};
use crate::Error;
use crate::palcode::PalEntry;
use crate::stream::KernelThread;

/// Words of a thread that are kept before they are encoded.
const ENOUGH_WORDS: usize = 1 << 16;
/// Words that are kept at most while the number of a system call is not known.
const MOST_WORDS: usize = 1 << 20;
/// The process that all threads of the kernel belong to, by the number that the guest gives to their parent.
const KERNEL_PROCESS: u32 = 2;

/// All threads.
#[derive(Default)]
pub(super) struct TracedThreads {
    threads: Vec<TracedThread>,
    numbers: HashMap<(u64, u32), usize>,
    processes: Vec<TracedProcess>,
    writer: Option<Arc<Writer>>,
    /// The number of the last order mark.
    order: u64,
    /// The thread that executed last.
    last: Option<usize>,
    /// Whether executions are only counted.
    only_counts: bool,
}

/// A thread.
struct TracedThread {
    guest: KernelThread,
    /// Its process, once it is in the trace: an index of `processes`.
    process: usize,
    stream: Option<StreamWriter>,
    words: Vec<u64>,
    /// The index in `words` of the mark of a system call whose number is not known yet.
    unresolved: Option<usize>,
    mode: Option<ExecutionMode>,
    /// The call of PALcode that the last block ended with.
    call: Option<u32>,
    /// The entries to the kernel that have not ended.
    entries: KernelEntries,
    /// By the number of these, the word of the address of the last load-locked: what interrupts a program or the kernel has its
    /// own.
    last_locked: Vec<u64>,
    /// If executions are only counted.
    counts: ThreadCounts,
}

/// A process in the trace.
struct TracedProcess {
    /// The guest's number and the name.
    guest: u32,
    name: String,
    process: Arc<ProcessDictionary>,
    images: Vec<PlacedImage>,
    /// The numbers of blocks that were executed whole, and of parts, by the recorder's number.
    blocks: Vec<Option<BlockId>>,
    /// The number of addresses in each block's record.
    accesses: Vec<usize>,
    parts: HashMap<(u32, Range<usize>), BlockId>,
}

impl TracedThreads {
    /// The number of a thread.
    pub fn number(&mut self, guest: KernelThread) -> usize {
        let next = self.threads.len();
        let number = *self.numbers.entry((guest.task, guest.thread)).or_insert(next);
        if number == next {
            self.threads.push(TracedThread {
                guest,
                process: usize::MAX,
                stream: None,
                words: Vec::new(),
                unresolved: None,
                mode: None,
                call: None,
                entries: KernelEntries::default(),
                last_locked: Vec::new(),
                counts: ThreadCounts::default(),
            });
        } else if self.threads[number].stream.is_none() {
            // A new thread gets its name, and perhaps a program, only after its first instructions.
            self.threads[number].guest = guest;
        }
        number
    }

    /// Executions are only counted.
    pub fn count(&mut self) {
        self.only_counts = true;
    }

    /// See [`TracedThreads::count`].
    pub fn only_counts(&self) -> bool {
        self.only_counts
    }

    /// The guest's number of a thread's process.
    pub fn guest_process(&self, thread: usize) -> u32 {
        self.threads[thread].guest.process
    }

    /// Recording begins with this thread.
    pub fn begin(&mut self, writer: Arc<Writer>, thread: usize) {
        self.writer = Some(writer);
        // The first process is the program's.
        self.threads[thread].mode = None;
        self.open(thread);
    }

    /// The word of the address of a thread's last load-locked, in what it executes now.
    pub fn last_locked(&mut self, thread: usize) -> &mut u64 {
        let TracedThread { entries, last_locked, .. } = &mut self.threads[thread];
        let depth = entries.depth();
        if last_locked.len() <= depth {
            last_locked.resize(depth + 1, 0);
        }
        &mut last_locked[depth]
    }

    /// Gives a thread a stream in the trace.
    fn open(&mut self, thread: usize) {
        let Some(writer) = &self.writer else { return };
        let state = &mut self.threads[thread];
        let guest = if state.guest.is_user { state.guest.process } else { KERNEL_PROCESS };
        let process = self.processes.iter().position(|process| process.guest == guest);
        state.process = process.unwrap_or_else(|| {
            let number = self.processes.len() as u32;
            let name = if state.guest.is_user { state.guest.name.clone() } else { "kernel".into() };
            self.processes.push(TracedProcess {
                guest,
                name,
                process: ProcessDictionary::new(writer, number, guest),
                images: Vec::new(),
                blocks: Vec::new(),
                accesses: Vec::new(),
                parts: HashMap::new(),
            });
            number as usize
        });
        state.stream = Some(StreamWriter::new(&self.processes[state.process].process));
    }

    /// A thread enters a block that is not recorded, with marks before it.
    pub fn pass(&mut self, thread: usize, mode: ExecutionMode, marks: &[Mark]) {
        self.mark(thread, marks);
        let state = &mut self.threads[thread];
        (state.mode, state.call) = (Some(mode), None);
    }

    /// Marks in a thread's stream.
    pub fn mark(&mut self, thread: usize, marks: &[Mark]) {
        self.threads[thread].words.extend(marks.iter().map(|&mark| Event::Mark(mark).word()));
    }

    /// A thread enters a block, with marks before it.
    pub fn enter(&mut self, thread: usize, mode: ExecutionMode, entry: Option<PalEntry>, before: &[Mark]) {
        let is_new = self.threads[thread].stream.is_none();
        if is_new {
            self.open(thread);
        }
        if self.last != Some(thread) {
            self.last = Some(thread);
            self.order += 1;
            self.threads[thread].words.push(Event::Mark(Mark::Order(self.order)).word());
        }
        let state = &mut self.threads[thread];
        if is_new {
            state.words.push(Event::Mark(Mark::Gap).word());
        }
        if !before.is_empty() {
            state.words.extend(before.iter().map(|&mark| Event::Mark(mark).word()));
            // What was before is not in the trace.
            state.mode = state.mode.filter(|_| !before.contains(&Mark::Gap));
        }
        if state.mode == Some(mode) && entry.is_none() {
            state.call = None;
            return;
        }
        let mut is_entry = false;
        for mark in marks_between(state.mode, state.call, mode, entry) {
            is_entry |= state.entries.mark(mark).is_some();
            state.words.push(Event::Mark(mark).word());
        }
        if mode == ExecutionMode::User {
            state.entries.in_program();
        }
        if self.only_counts {
            state.words.clear();
            let reason = (mode != ExecutionMode::User).then(|| state.entries.reason());
            state.counts.enter(reason, is_entry);
        }
        (state.mode, state.call) = (Some(mode), None);
    }

    /// Whether a thread is the one that executed last.
    #[inline]
    pub fn executes(&self, thread: usize) -> bool {
        self.last == Some(thread)
    }

    /// The number of a block in the trace, if it is known.
    #[inline]
    pub fn known_block(
        &self,
        thread: usize,
        block: u32,
        executed: &Range<usize>,
        is_whole: bool,
    ) -> Option<BlockId> {
        let process = &self.processes[self.threads[thread].process];
        if is_whole {
            process.blocks.get(block as usize).copied().flatten()
        } else {
            process.parts.get(&(block, executed.clone())).copied()
        }
    }

    /// The images of a thread's process so far.
    pub fn images(&self, thread: usize) -> impl Iterator<Item = PlacedImage> {
        self.processes[self.threads[thread].process].images.iter().copied()
    }

    /// Defines some instructions of a block in the process of a thread.
    pub fn define(
        &mut self,
        thread: usize,
        block: u32,
        known: &ExtentBlock,
        executed: Range<usize>,
        image: Option<PlacedImage>,
        files: &ImageFiles,
    ) -> Result<BlockId, Error> {
        let process = &mut self.processes[self.threads[thread].process];
        let number = image.map(|image| match process.images.iter().position(|one| *one == image) {
            Some(number) => number as u32,
            None => {
                process.images.push(image);
                process.process.add_image(files.described(image));
                process.images.len() as u32 - 1
            }
        });
        let words = &known.words[executed.clone()];
        let address = known.address + 4 * executed.start as u64;
        let defined = Block { image: number, ..Block::new(&AlphaSystem, address, words) };
        let function = || files.function(image?, number?, address);
        let accesses = known.accesses_within(&executed).len();
        let id = process.process.block(defined, function).map_err(Error::Write)?;
        if process.accesses.len() <= id as usize {
            process.accesses.resize(id as usize + 1, 0);
        }
        process.accesses[id as usize] = accesses;
        if executed.len() == known.words.len() {
            let index = block as usize;
            if process.blocks.len() <= index {
                process.blocks.resize(index + 1, None);
            }
            process.blocks[index] = Some(id);
        } else {
            process.parts.insert((block, executed), id);
        }
        Ok(id)
    }

    /// A thread executed a block, which perhaps ended with a call of PALcode.
    #[inline]
    pub fn executed(
        &mut self,
        thread: usize,
        block: u64,
        addresses: impl Iterator<Item = u64>,
        call: Option<u32>,
    ) -> Result<(), Error> {
        let state = &mut self.threads[thread];
        state.words.push(block);
        state.words.extend(addresses);
        state.call = call;
        if call == Some(CALLSYS) {
            state.unresolved = Some(state.words.len());
            state.words.push(Event::Mark(Mark::SystemCall(UNKNOWN_SYSTEM_CALL)).word());
        }
        let words = state.words.len();
        if words >= ENOUGH_WORDS && (state.unresolved.is_none() || words >= MOST_WORDS) {
            state.flush()?;
        }
        Ok(())
    }

    /// A thread executed a block, which perhaps ended with a call of PALcode; only its number matters.
    #[inline]
    pub fn counted(&mut self, thread: usize, block: BlockId, call: Option<u32>) {
        let state = &mut self.threads[thread];
        state.counts.count(block);
        state.call = call;
    }

    /// The last system call of a thread has this number.
    pub fn resolve(&mut self, thread: usize, number: u32) {
        let state = &mut self.threads[thread];
        if self.only_counts && state.counts.resolve(number) {
            state.entries.resolve(number);
        }
        if let Some(index) = state.unresolved.take() {
            state.words[index] = Event::Mark(Mark::SystemCall(number)).word();
        }
    }

    /// Writes everything. Returns the processes: the guest's numbers and names; and of counts, how often each record happened, by
    /// process and thread.
    pub fn finish(mut self) -> Result<(Vec<(u32, String)>, RecordTimes), Error> {
        let mut times = RecordTimes::new();
        for thread in &mut self.threads {
            let Some(stream) = &thread.stream else { continue };
            if self.only_counts {
                let owner = (stream.process().number(), stream.thread());
                let accesses = &self.processes[thread.process].accesses;
                let condensed = thread.counts.condensed(|block| accesses[block as usize]);
                thread.words = condensed.words;
                times.insert(owner, condensed.times);
            }
            thread.flush()?;
            if let Some(stream) = &mut thread.stream {
                stream.finish().map_err(Error::Write)?;
            }
        }
        let processes = self.processes.into_iter().map(|process| (process.guest, process.name)).collect();
        Ok((processes, times))
    }
}

impl TracedThread {
    fn flush(&mut self) -> Result<(), Error> {
        self.unresolved = None;
        if let Some(stream) = &mut self.stream {
            stream.write(&self.words).map_err(Error::Write)?;
        }
        self.words.clear();
        Ok(())
    }
}
