//! Summaries of traces: the statistics that the tools of 1997 reported.

mod condensed;
mod kinds;
mod memory;
mod modes;
mod sizes;
mod tables;

pub use condensed::{CondensedSummary, EXACT_TABLES};
pub use kinds::{EventKind, Kinds};
pub use memory::{GRANULE, LineUse, TouchedBytes};
pub use sizes::Sizes;

use std::collections::{BTreeMap, HashMap};
use std::io;

use events::record::{Mark, address_of_word};
use events::{Block, BlockId};
use trace::Trace;

use modes::ModeCounts;

use super::{Accesses, Dictionary, Executed, SelectedInstructions, Transfer, Visitor};

/// Options of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummarySettings {
    /// Sizes of cache lines: powers of two, from 8 to 4096.
    pub line_sizes: Vec<u64>,
    /// Sizes of pages: powers of two, from 4096.
    pub page_sizes: Vec<u64>,
    /// Instructions of a window of time, which ends with a block.
    pub window: u64,
}

/// The executions that a summary has counted.
#[derive(Clone, Debug, Default)]
pub struct SummaryTotals {
    /// Instructions of a basic block, in the mean; None if there was none.
    pub mean_block: Option<f64>,
    /// Executions of instructions: a block, the index of one of its instructions, how often it was executed. An instruction
    /// can occur twice.
    pub executions: Vec<(BlockId, usize, u64)>,
}

/// The default window for a trace: 1, 2 or 5 times a power of ten instructions, so that there are at most 50 windows.
pub fn window(trace: &Trace) -> u64 {
    let instructions = trace.chunks().iter().map(|chunk| chunk.instructions).fold(0, u64::saturating_add);
    let sizes = (0..19).flat_map(|power| [1, 2, 5].map(|digit: u64| digit * 10_u64.pow(power)));
    sizes.into_iter().find(|&size| instructions.div_ceil(size) <= 50).unwrap_or(u64::MAX)
}

/// The greatest number of units of work that are listed.
const MOST_UNITS: usize = 1 << 20;

/// Computes a summary.
pub struct Summary<'a> {
    dictionary: &'a Dictionary<'a>,
    accesses: &'a Accesses,
    options: SummarySettings,
    /// The instructions of each block, by kind.
    kinds: Vec<Kinds>,
    /// The instructions of blocks that are selected in part.
    instructions: HashMap<BlockId, Box<[SingleInstruction]>>,
    /// Executions of whole blocks in this window by this stream, and the blocks that have any.
    current: Vec<u64>,
    executed: Vec<BlockId>,
    stream: Option<u32>,
    counts: SummaryCounts,
    streams: Vec<ThreadSummary>,
    basic_blocks: Sizes,
    runs: Sizes,
    processes: Vec<ProcessPages>,
    window: TimeWindow,
    windows: Vec<TimeWindow>,
    code_lines: Vec<LineUse>,
    data_lines: Vec<LineUse>,
    system_calls: BTreeMap<u32, u64>,
    units: Vec<SummaryUnit>,
    /// Counts by mode, of a whole system's trace.
    modes: Option<ModeCounts>,
    /// How often the next record happened.
    times: u64,
}

/// Counts of instructions.
#[derive(Clone, Debug, Default)]
struct SummaryCounts {
    /// Executions of whole blocks.
    whole: Vec<u64>,
    /// Executions of single instructions of blocks that are selected in part.
    parts: BTreeMap<BlockId, Vec<u64>>,
    /// Unaligned accesses, by block and index of the instruction.
    unaligned: HashMap<(BlockId, u32), u64>,
}

/// An instruction of a block.
struct SingleInstruction {
    address: u64,
    length: u64,
    kinds: Kinds,
}

impl SingleInstruction {
    fn all(block: &Block) -> Box<[SingleInstruction]> {
        let set = block.instruction_set;
        let of = |(address, &word)| {
            let (length, kinds) = (set.length(word), Kinds::of_word(set, word));
            SingleInstruction { address, length, kinds }
        };
        block.addresses().zip(&block.words).map(of).collect()
    }
}

/// The state and counts of a thread.
#[derive(Clone, Debug, Default)]
struct ThreadSummary {
    kinds: Kinds,
    /// Its process: an index of [`Summary::processes`].
    process: usize,
    /// The end of the last block and its transfer of control, until the next block shows where it went.
    last: Option<(u64, Transfer)>,
    /// Selected instructions of the current basic block.
    basic_block: u64,
    /// Selected instructions since the last taken transfer of control.
    run: u64,
    unit: Option<usize>,
}

/// The memory of a process.
#[derive(Default)]
struct ProcessPages {
    code: TouchedBytes,
    data: TouchedBytes,
}

/// A unit of work.
struct SummaryUnit {
    number: u64,
    stream: u32,
    before: u64,
    after: Option<u64>,
    /// The event that ended it, or its recording.
    ended_by: &'static str,
}

/// A window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TimeWindow {
    instructions: u64,
    /// By page size: pages of instructions, of data, and of either.
    pages: Vec<[u64; 3]>,
}

impl<'a> Summary<'a> {
    /// Nothing executed yet.
    pub fn new(
        dictionary: &'a Dictionary<'a>,
        accesses: &'a Accesses,
        options: SummarySettings,
    ) -> Summary<'a> {
        let trace = dictionary.trace;
        let blocks = trace.blocks().len();
        let mut numbers: Vec<u32> = trace.streams().iter().map(|stream| stream.process).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let stream = |stream: &trace::ThreadStream| ThreadSummary {
            process: numbers.partition_point(|&number| number < stream.process),
            ..ThreadSummary::default()
        };
        let lines: Vec<LineUse> = options.line_sizes.iter().map(|&line| LineUse::new(line)).collect();
        Summary {
            dictionary,
            accesses,
            options,
            kinds: trace.blocks().iter().map(Kinds::of).collect(),
            instructions: HashMap::new(),
            current: vec![0; blocks],
            executed: Vec::new(),
            stream: None,
            counts: SummaryCounts { whole: vec![0; blocks], ..SummaryCounts::default() },
            streams: trace.streams().iter().map(stream).collect(),
            basic_blocks: Sizes::default(),
            runs: Sizes::default(),
            processes: numbers.iter().map(|_| ProcessPages::default()).collect(),
            window: TimeWindow::default(),
            windows: Vec::new(),
            code_lines: lines.clone(),
            data_lines: lines,
            system_calls: BTreeMap::new(),
            units: Vec::new(),
            modes: trace.header().has_system().then(|| ModeCounts::new(trace)),
            times: 1,
        }
    }

    /// Adds up the executions of blocks by the current stream.
    fn settle(&mut self) {
        let Some(stream) = self.stream else { return };
        let ThreadSummary { kinds, process, .. } = &mut self.streams[stream as usize];
        let code = &mut self.processes[*process].code;
        for block in self.executed.drain(..) {
            let times = std::mem::take(&mut self.current[block as usize]);
            self.counts.whole[block as usize] += times;
            kinds.add_times(&self.kinds[block as usize], times);
            let facts = self.dictionary.facts(block);
            code.touch_all(facts.address, facts.end);
        }
    }

    fn end_window(&mut self) {
        self.settle();
        let mut window = std::mem::take(&mut self.window);
        if window.instructions == 0 {
            return;
        }
        window.pages = vec![[0; 3]; self.options.page_sizes.len()];
        for process in &mut self.processes {
            let (code, data) = (process.code.pieces_in_window(), process.data.pieces_in_window());
            for (pages, &size) in window.pages.iter_mut().zip(&self.options.page_sizes) {
                let more = pages_of(&code, &data, size);
                pages.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
            process.code.end_window(&mut self.code_lines);
            process.data.end_window(&mut self.data_lines);
        }
        self.windows.push(window);
    }

    /// The end of the trace.
    fn end(&mut self) {
        (0..self.streams.len()).for_each(|stream| self.break_off(stream));
        self.end_window();
    }

    /// A discontinuity in a stream.
    fn break_off(&mut self, stream: usize) {
        let stream = &mut self.streams[stream];
        stream.last = None;
        self.basic_blocks.add(std::mem::take(&mut stream.basic_block));
        self.runs.add(std::mem::take(&mut stream.run));
    }

    /// Control was transferred from the last block to this address.
    #[inline]
    fn arrive(&mut self, stream: usize, address: u64) {
        let state = &mut self.streams[stream];
        let Some((end, transfer)) = state.last else { return };
        let elsewhere = address != end;
        if transfer == Transfer::Conditional && elsewhere {
            state.kinds.add(EventKind::Taken, 1);
        }
        if elsewhere || transfer.is_always_taken() {
            self.runs.add(std::mem::take(&mut state.run));
            self.basic_blocks.add(std::mem::take(&mut state.basic_block));
        }
    }

    /// Counts the selected accesses of a block.
    #[inline]
    fn touch(&mut self, executed: &Executed, is_selected: impl Fn(usize) -> bool) {
        let block = executed.execution.block;
        let accesses = self.accesses.of(block).iter().zip(executed.execution.addresses);
        if accesses.len() == 0 {
            return;
        }
        let ThreadSummary { kinds, process, .. } = &mut self.streams[executed.stream as usize];
        let data = &mut self.processes[*process].data;
        for (access, &address) in accesses.filter(|(access, _)| is_selected(access.index as usize)) {
            data.touch(address_of_word(address), access.size.into());
            if address & u64::from(access.size - 1) != 0 {
                *self.counts.unaligned.entry((block, access.index)).or_default() += 1;
                kinds.add(EventKind::Unaligned, 1);
            }
        }
    }

    /// Counts an execution of a whole block.
    #[inline]
    fn whole(&mut self, executed: &Executed) {
        let block = executed.execution.block;
        let facts = self.dictionary.facts(block);
        let count = &mut self.current[block as usize];
        if *count == 0 {
            self.executed.push(block);
        }
        *count += self.times;
        let length = facts.length();
        let state = &mut self.streams[executed.stream as usize];
        state.last = Some((facts.end, facts.transfer));
        state.run += length;
        state.basic_block += length;
        if facts.transfer.ends_basic_block() {
            self.basic_blocks.add(std::mem::take(&mut state.basic_block));
        }
        self.touch(executed, |_| true);
        self.window.instructions += length;
    }

    /// Counts the selected instructions of a block.
    fn parts(&mut self, executed: &Executed, which: &[bool]) {
        let (stream, block) = (executed.stream as usize, executed.execution.block);
        let facts = *self.dictionary.facts(block);
        let process = self.streams[stream].process;
        let own = &self.dictionary.trace.blocks()[block as usize];
        let own = self.instructions.entry(block).or_insert_with(|| SingleInstruction::all(own));
        let counts = self.counts.parts.entry(block).or_insert_with(|| vec![0; own.len()]);
        for (index, &is_selected) in which.iter().enumerate() {
            if is_selected {
                counts[index] += 1;
                self.streams[stream].kinds.add_times(&own[index].kinds, 1);
                self.processes[process].code.touch(own[index].address, own[index].length);
                self.streams[stream].run += 1;
                self.streams[stream].basic_block += 1;
                self.window.instructions += 1;
            } else {
                let state = &mut self.streams[stream];
                self.basic_blocks.add(std::mem::take(&mut state.basic_block));
                self.runs.add(std::mem::take(&mut state.run));
            }
        }
        let state = &mut self.streams[stream];
        state.last = which.last().is_some_and(|&last| last).then_some((facts.end, facts.transfer));
        if facts.transfer.ends_basic_block() {
            self.basic_blocks.add(std::mem::take(&mut state.basic_block));
        }
        self.touch(executed, |index| which[index]);
    }

    fn unit_begins(&mut self, stream: u32, before: u64, number: u64) {
        if self.units.len() < MOST_UNITS {
            self.streams[stream as usize].unit = Some(self.units.len());
            self.units.push(SummaryUnit {
                number,
                stream,
                before,
                after: None,
                ended_by: "end of the trace",
            });
        }
    }

    fn unit_ends(&mut self, stream: u32, before: u64, ended_by: &'static str) {
        if let Some(unit) = self.streams[stream as usize].unit.take() {
            let unit = &mut self.units[unit];
            (unit.after, unit.ended_by) = (Some(before), ended_by);
        }
    }
}

/// The numbers of pages with instructions, with data, and with either.
fn pages_of(code: &[u64], data: &[u64], size: u64) -> [u64; 3] {
    let mut either = [code, data].concat();
    either.sort_unstable();
    [code, data, &either].map(|granules| memory::pages(granules, size))
}

impl TouchedBytes {
    /// Marks the bytes between two addresses as touched.
    fn touch_all(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let size = (end - at).min(64 - at % 64);
            self.touch(at, size);
            at += size;
        }
    }
}

impl Visitor for Summary<'_> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        if let Some(modes) = &mut self.modes {
            modes.mark(stream, mark, is_selected, self.times);
        }
        match mark {
            Mark::Gap | Mark::Exception(_) | Mark::Discontinuity => self.break_off(stream as usize),
            Mark::SystemCall(number) if is_selected => {
                *self.system_calls.entry(number).or_default() += self.times;
            }
            Mark::UnitBegins(number) if is_selected => self.unit_begins(stream, before, number),
            Mark::UnitEnds(_) => self.unit_ends(stream, before, "return"),
            Mark::UnitLeft(_) => self.unit_ends(stream, before, "other means"),
            Mark::UnitCut(_) => self.unit_ends(stream, before, "end of recording"),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        if self.stream != Some(executed.stream) {
            self.settle();
            self.stream = Some(executed.stream);
        }
        if let Some(modes) = &mut self.modes {
            modes.executed(executed, self.times);
        }
        let stream = executed.stream as usize;
        self.arrive(stream, self.dictionary.facts(executed.execution.block).address);
        match executed.selected {
            SelectedInstructions::All => self.whole(executed),
            SelectedInstructions::None => self.break_off(stream),
            SelectedInstructions::Some(which) => self.parts(executed, which),
        }
        if self.window.instructions >= self.options.window {
            self.end_window();
        }
        Ok(())
    }
}
