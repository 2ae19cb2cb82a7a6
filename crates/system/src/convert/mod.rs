//! Converts the recorder's stream to a trace: blocks of processes and threads, with marks that say how the processor enters
//! and leaves PALcode, and which system calls are made.

mod counts;
mod extent;
mod images;
mod plan;
mod threads;

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Plan;
use events::record::{Event, ExceptionKind, Mark, word_of_address};
use image::Image;
use trace::{ExecutionMode, RecordTimes, Writer};

use self::extent::{ExtentBlock, ReportedAccess};
use self::images::{ImageFiles, PlacedImage};
use self::plan::{FollowedPlan, RecordedPortion};
use self::threads::TracedThreads;
use crate::Error;
use crate::machine::BEGIN;
use crate::palcode::{PalEntry, Palcode};
use crate::stream::{StreamEvent, StreamReader};

/// The number in the mark of a system call that the kernel does not have.
pub const UNKNOWN_SYSTEM_CALL: u32 = u32::MAX;
/// The successions that are listed.
const LISTED: usize = 10;

/// The images that a guest can execute: files that are known before it runs.
#[derive(Clone, Debug)]
pub struct GuestImages {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The PALcode.
    pub palcode: Palcode,
    /// Images that the program may execute.
    pub programs: Vec<PathBuf>,
}

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Instructions in the trace.
    pub instructions: u64,
    /// Units of work that began while the program ran, recorded or not.
    pub units: u64,
    /// The processes in the trace, by number: the guest's numbers and names.
    pub processes: Vec<(u32, String)>,
    /// Successions of blocks that follow neither from the code nor from an exception; and the first of them.
    pub unexplained: u64,
    /// See `unexplained`.
    pub listed: Vec<(u64, u64)>,
    /// Blocks of which only a part was executed, because of an exception or an access to a device.
    pub partial: u64,
    /// Of counts only: how often the records of the trace happened, by process and thread.
    pub times: RecordTimes,
}

/// Reads a stream and writes the part of a plan to a trace. `open` makes the trace; it gets the guest's number of the
/// program's process.
pub fn convert(
    source: impl Read,
    guest: &GuestImages,
    plan: &Plan,
    open: impl FnOnce(u32) -> io::Result<Arc<Writer>>,
) -> Result<Converted, Error> {
    SystemConverter::new(guest, plan)?.convert(source, open)
}

/// Reads a stream and counts what is executed: in the trace each block occurs once for each reason, with zeros for addresses, and
/// [`Converted::times`] tells how often. Addresses are not needed where [`exact_blocks`] does not ask for them.
pub fn count(
    source: impl Read,
    guest: &GuestImages,
    open: impl FnOnce(u32) -> io::Result<Arc<Writer>>,
) -> Result<Converted, Error> {
    let mut converter = SystemConverter::new(guest, &Plan::default())?;
    converter.threads.count();
    converter.convert(source, open)
}

/// The addresses of blocks whose accesses are needed where others are only counted: they look up system calls.
pub fn exact_blocks(kernel: &Path) -> Result<Range<u64>, Error> {
    Ok(system_calls(&Image::open(kernel)?, kernel)?.0)
}

impl SystemConverter<'_> {
    fn convert(
        mut self,
        source: impl Read,
        open: impl FnOnce(u32) -> io::Result<Arc<Writer>>,
    ) -> Result<Converted, Error> {
        let converter = &mut self;
        let mut reader = StreamReader::new(source);
        let mut open = Some(open);
        while let Some(event) = reader.next_event()? {
            match event {
                StreamEvent::Defined(block) => {
                    converter.blocks.push(ExtentBlock::new(block, &converter.guest.palcode));
                }
                StreamEvent::Accessed { address, is_conditional } => {
                    converter.accessed(ReportedAccess { address, is_conditional });
                    while let Some(address) = reader.next_access() {
                        converter.accessed(ReportedAccess { address, is_conditional: false });
                    }
                }
                StreamEvent::Resumed { processor } => converter.last = processor.into(),
                StreamEvent::Switched { processor, thread } => {
                    let number = converter.threads.number(thread);
                    converter.processor(processor).next_thread = Some(number);
                }
                StreamEvent::Entered { processor, block, accesses } => {
                    converter.processor(processor).counted = accesses.into();
                    if converter.entered(processor, block)? {
                        let thread = converter.processor(processor).thread;
                        if let (Some(thread), Some(open)) = (thread, open.take()) {
                            let writer =
                                open(converter.threads.guest_process(thread)).map_err(Error::Write)?;
                            converter.threads.begin(writer, thread);
                            converter.begin_block(processor, block);
                        }
                    }
                }
            }
        }
        self.finish()
    }
}

/// The state of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedSpan {
    /// The guest prepares itself.
    Before,
    /// This thread of the first process has made the mark.
    Marked(usize),
    /// And it has called the kernel for the program.
    Starting(usize),
    /// The program runs.
    Active,
    /// The program has ended.
    Over,
}

/// The state of a processor.
#[derive(Debug, Default)]
struct GuestProcessor {
    /// The thread that it executes.
    thread: Option<usize>,
    /// The thread to which it switches when PALcode returns.
    next_thread: Option<usize>,
    /// The block that it entered last, and the accesses since then.
    block: Option<u32>,
    seen: Vec<ReportedAccess>,
    /// The number of those that were only counted.
    counted: usize,
    /// The recorded part of this block, if it is recorded.
    portion: Option<RecordedPortion>,
}

struct SystemConverter<'a> {
    guest: &'a GuestImages,
    files: ImageFiles,
    kernel: PlacedImage,
    palcode_file: PlacedImage,
    /// The address of the kernel's code for system calls, and of the table with their functions.
    system_call_entry: Range<u64>,
    system_call_table: Range<u64>,
    blocks: Vec<ExtentBlock>,
    processors: Vec<GuestProcessor>,
    /// The processor that accesses are of.
    last: usize,
    threads: TracedThreads,
    /// None if everything is recorded.
    plan: Option<FollowedPlan>,
    span: RecordedSpan,
    words: Vec<u64>,
    converted: Converted,
}

impl<'a> SystemConverter<'a> {
    fn new(guest: &'a GuestImages, plan: &Plan) -> Result<SystemConverter<'a>, Error> {
        let mut files = ImageFiles::open(guest.programs.iter().map(PathBuf::as_path));
        let (kernel, palcode) = (Image::open(&guest.kernel)?, Image::open(&guest.palcode.path)?);
        let (system_call_entry, system_call_table) = system_calls(&kernel, &guest.kernel)?;
        let kernel = PlacedImage { file: files.add(&guest.kernel, kernel), bias: 0 };
        let palcode_file = PlacedImage { file: files.add(&guest.palcode.path, palcode), bias: 0 };
        Ok(SystemConverter {
            guest,
            plan: FollowedPlan::new(plan, kernel, &files),
            files,
            kernel,
            palcode_file,
            system_call_entry,
            system_call_table,
            blocks: Vec::new(),
            processors: Vec::new(),
            last: 0,
            threads: TracedThreads::default(),
            span: RecordedSpan::Before,
            words: Vec::new(),
            converted: Converted::default(),
        })
    }

    fn processor(&mut self, number: u16) -> &mut GuestProcessor {
        let number = usize::from(number);
        if self.processors.len() <= number {
            self.processors.resize_with(number + 1, GuestProcessor::default);
        }
        &mut self.processors[number]
    }

    fn accessed(&mut self, access: ReportedAccess) {
        if let Some(processor) = self.processors.get_mut(self.last) {
            processor.seen.push(access);
        }
    }

    /// A processor enters a block: what it executed before is complete. Returns whether the program
    /// begins with the block.
    fn entered(&mut self, number: u16, block: u32) -> Result<bool, Error> {
        self.last = number.into();
        if self.follows_plainly(number, block)? {
            return Ok(false);
        }
        let ExtentBlock { address: next, mode, entry, .. } = self.blocks[block as usize];
        self.settle(number, Some((next, entry)))?;
        let processor = self.processor(number);
        processor.seen.clear();
        // The registers of the new thread are those of the old one's call until PALcode returns.
        let is_in_call = mode == ExecutionMode::Pal && !matches!(entry, Some(PalEntry::Exception(_)));
        if !is_in_call && let Some(thread) = processor.next_thread.take() {
            processor.thread = Some(thread);
        }
        let thread = processor.thread;
        let known = &self.blocks[block as usize];
        match self.span {
            RecordedSpan::Before if mode == ExecutionMode::User && known.words.contains(&BEGIN) => {
                self.span = thread.map_or(RecordedSpan::Before, RecordedSpan::Marked);
            }
            // The mark is followed by the system call that starts the program.
            RecordedSpan::Marked(marked)
                if thread == Some(marked) && next == self.system_call_entry.start =>
            {
                self.span = RecordedSpan::Starting(marked);
            }
            RecordedSpan::Starting(marked) if thread == Some(marked) && mode == ExecutionMode::User => {
                self.span = RecordedSpan::Active;
                return Ok(true);
            }
            RecordedSpan::Active if mode == ExecutionMode::User && known.is_end => {
                for number in 0..self.processors.len() as u16 {
                    if number != self.last as u16 {
                        self.settle(number, None)?;
                    }
                }
                self.span = RecordedSpan::Over;
            }
            RecordedSpan::Active => self.begin_block(number, block),
            _ => {}
        }
        Ok(false)
    }

    /// Most blocks follow one that was executed whole, in the same thread and mode, where nothing but executions is looked for. Of
    /// such no more is to be done than to count or to record the one before; otherwise false is returned.
    #[inline]
    fn follows_plainly(&mut self, number: u16, block: u32) -> Result<bool, Error> {
        let processor = &mut self.processors[usize::from(number)];
        let (Some(before), Some(thread)) = (processor.block, processor.thread) else { return Ok(false) };
        let (known, next) = (&self.blocks[before as usize], &self.blocks[block as usize]);
        let seen = &mut processor.seen;
        let only_counts = self.threads.only_counts();
        let has_plain_accesses = || match only_counts {
            true => seen.is_empty(),
            false => {
                processor.counted == 0
                    && known.has_plain_accesses
                    && !seen.iter().any(|access| access.is_conditional)
                    && !self.system_call_entry.contains(&known.address)
            }
        };
        let is_plain = self.span == RecordedSpan::Active
            && processor.next_thread.is_none()
            && next.mode == known.mode
            && next.entry.is_none()
            && !next.is_end
            && known.pal_call.is_none()
            && known.is_whole(seen.len() + processor.counted, next.address)
            && has_plain_accesses()
            && (only_counts || self.plan.is_none() && self.threads.executes(thread));
        let find = || self.threads.known_block(thread, before, &(0..known.words.len()), true);
        let Some(id) = is_plain.then(find).flatten() else { return Ok(false) };
        processor.block = Some(block);
        self.converted.instructions += known.words.len() as u64;
        if only_counts {
            self.threads.counted(thread, id, None);
        } else {
            let addresses = seen.drain(..).map(|access| word_of_address(access.address));
            self.threads.executed(thread, Event::Block(id).word(), addresses, None)?;
        }
        Ok(true)
    }

    /// The program is active when the block is entered: what the plan wants of it is recorded.
    fn begin_block(&mut self, number: u16, block: u32) {
        let known = &self.blocks[block as usize];
        let (mode, entry) = (known.mode, known.entry);
        let processor = &mut self.processors[usize::from(number)];
        processor.block = Some(block);
        let Some(thread) = processor.thread else { return };
        let Some(plan) = &mut self.plan else {
            processor.portion = Some(RecordedPortion::WHOLE);
            return self.threads.enter(thread, mode, entry, &[]);
        };
        let process = self.threads.guest_process(thread);
        let planned = plan.enter(thread, process, mode, block, known, &self.files);
        processor.portion = planned.portion;
        if planned.portion.is_some() {
            self.threads.enter(thread, mode, entry, &planned.marks);
        } else {
            self.threads.pass(thread, mode, &planned.marks);
        }
    }

    /// Records what was executed of the block that a processor entered last, if another one at `next` follows.
    fn settle(&mut self, number: u16, next: Option<(u64, Option<PalEntry>)>) -> Result<(), Error> {
        let processor = self.processor(number);
        let (Some(block), Some(thread)) = (processor.block.take(), processor.thread) else { return Ok(()) };
        let portion = processor.portion.take();
        let known = &self.blocks[block as usize];
        let processor = &mut self.processors[usize::from(number)];
        let unknown = ReportedAccess { address: 0, is_conditional: false };
        processor.seen.extend(std::iter::repeat_n(unknown, processor.counted));
        let seen = &processor.seen;
        let (next, entry) = next.map_or((None, None), |(next, entry)| (Some(next), entry));
        self.words.clear();
        let extent = known.extent(seen, next, entry, self.threads.last_locked(thread), &mut self.words);
        if !extent.is_explained {
            self.converted.unexplained += 1;
            if self.converted.listed.len() < LISTED {
                self.converted.listed.push((known.address, next.unwrap_or(0)));
            }
        }
        let marks = match &mut self.plan {
            Some(plan) => plan.executed(thread, known.mode, known, extent.instructions, portion),
            None => Vec::new(),
        };
        if let Some(portion) = portion {
            let recorded = portion.first..extent.instructions.min(portion.limit);
            if !recorded.is_empty() {
                self.record(thread, block, recorded)?;
            }
        }
        self.threads.mark(thread, &marks);
        Ok(())
    }

    /// Records that a thread has executed these instructions of a block. `words` has the addresses of the block's accesses.
    fn record(&mut self, thread: usize, block: u32, executed: Range<usize>) -> Result<(), Error> {
        let known = &self.blocks[block as usize];
        let accesses = known.accesses_within(&executed);
        self.converted.instructions += executed.len() as u64;
        let is_whole = executed.len() == known.words.len();
        self.converted.partial += u64::from(!is_whole);
        let id = match self.threads.known_block(thread, block, &executed, is_whole) {
            Some(id) => id,
            None => {
                let image = self.image_of(thread, block);
                let known = &self.blocks[block as usize];
                self.threads.define(thread, block, known, executed.clone(), image, &self.files)?
            }
        };
        let call = self.blocks[block as usize].pal_call_within(&executed);
        if self.threads.only_counts() {
            self.threads.counted(thread, id, call);
            self.resolve_system_call(thread, block);
            return Ok(());
        }
        self.threads.executed(thread, Event::Block(id).word(), self.words[accesses].iter().copied(), call)?;
        self.resolve_system_call(thread, block);
        Ok(())
    }

    /// The number of a system call is the index in the kernel's table of what it loads there.
    fn resolve_system_call(&mut self, thread: usize, block: u32) {
        if !self.system_call_entry.contains(&self.blocks[block as usize].address) {
            return;
        }
        let addresses = self.words.iter().map(|&word| events::record::address_of_word(word));
        if let Some(address) = addresses.into_iter().find(|address| self.system_call_table.contains(address))
        {
            self.threads.resolve(thread, ((address - self.system_call_table.start) / 8) as u32);
        }
    }

    /// The image that a block lies in.
    fn image_of(&mut self, thread: usize, block: u32) -> Option<PlacedImage> {
        let known = &self.blocks[block as usize];
        match known.mode {
            ExecutionMode::Pal => Some(self.palcode_file),
            ExecutionMode::Kernel => Some(self.kernel),
            ExecutionMode::User => {
                let (address, words) = (known.address, &known.words);
                let mut mapped = self.threads.images(thread);
                let own = mapped.find(|&mapped| self.files.has(mapped, address, words));
                own.or_else(|| self.files.recognize(address, words))
            }
        }
    }

    fn finish(mut self) -> Result<Converted, Error> {
        match self.span {
            RecordedSpan::Before | RecordedSpan::Marked(_) | RecordedSpan::Starting(_) => {
                return Err(Error::NotStarted);
            }
            RecordedSpan::Active => return Err(Error::Incomplete),
            RecordedSpan::Over => {}
        }
        if let Some(plan) = &mut self.plan {
            self.converted.units = plan.units();
            for (thread, number) in plan.open_units() {
                self.threads.mark(thread, &[Mark::UnitCut(number)]);
            }
        }
        (self.converted.processes, self.converted.times) = self.threads.finish()?;
        Ok(self.converted)
    }
}

/// Where the kernel enters system calls, and its table of them.
fn system_calls(kernel: &Image, path: &Path) -> Result<(Range<u64>, Range<u64>), Error> {
    let missing = |symbol| Error::NoSymbol { path: path.into(), symbol };
    let entry = kernel.symbol("entSys").ok_or_else(|| missing("entSys"))?;
    let table = kernel.symbol("sys_call_table").ok_or_else(|| missing("sys_call_table"))?;
    let function = kernel.function_at(entry.address).map_or(0x200, |function| function.size.max(0x100));
    let size = if table.size > 0 { table.size } else { 8 * 1024 };
    Ok((entry.address..entry.address + function, table.address..table.address + size))
}

/// The marks between two blocks of a thread.
pub(crate) fn marks_between(
    before: Option<ExecutionMode>,
    call: Option<u32>,
    mode: ExecutionMode,
    entry: Option<PalEntry>,
) -> impl Iterator<Item = Mark> {
    let entered = match (mode, entry) {
        (ExecutionMode::Pal, Some(PalEntry::Exception(exception))) => Some(Mark::Exception(exception)),
        (ExecutionMode::Pal, Some(PalEntry::Call(function))) if call == Some(function) => {
            Some(Mark::PalCall(function))
        }
        (ExecutionMode::Pal, _) if before.is_some_and(|before| before != ExecutionMode::Pal) => {
            Some(Mark::Exception(ExceptionKind::Other))
        }
        _ => None,
    };
    let left = (before == Some(ExecutionMode::Pal) && mode != ExecutionMode::Pal).then_some(Mark::PalReturn);
    left.into_iter().chain(entered)
}
