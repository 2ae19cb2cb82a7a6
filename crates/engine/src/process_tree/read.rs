//! Reads what the processes of a program have counted.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use events::{Block, BlockId, Counts, LoadedImage};
use guest::flow::{self, Term};
use isa::InstructionSet;
use serde::{Deserialize, Serialize};

use super::area::{AreaCounts, class_executions};
use super::log::{Inherited, LOG, LogEntry, LogName, ProcessNumber, ProcessState, UnitEntry};

/// Why a folder of counts cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the counts in {}: {error}", .path.display())]
pub struct ProcessTreeError {
    path: PathBuf,
    error: io::Error,
}

impl ProcessTreeError {
    pub(super) fn new(path: &Path, error: io::Error) -> ProcessTreeError {
        ProcessTreeError { path: path.into(), error }
    }
}

/// The counts of all processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessTreeCounts {
    /// The sum over the processes.
    pub counts: Counts,
    /// Each process, in the order of their numbers.
    pub processes: Vec<CountedProcess>,
    /// The units of work, those of each process together.
    pub units: Vec<CountedUnit>,
    /// The executions in all units of each class.
    pub classes: BTreeMap<String, BTreeMap<BlockId, u64>>,
}

/// The executions of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedProcess {
    /// Its number in the tree.
    pub number: ProcessNumber,
    /// The programs that it executed, one after the other.
    #[serde(with = "events::any_paths")]
    pub programs: Vec<PathBuf>,
    /// How it ended.
    pub state: ProcessState,
    /// Executions of blocks.
    pub executions: BTreeMap<BlockId, u64>,
    /// Those of them in units of work.
    pub in_units: BTreeMap<BlockId, u64>,
    /// System calls by the guest's number.
    pub system_calls: BTreeMap<u32, u64>,
}

/// A unit of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedUnit {
    /// Its process, by the index.
    pub process: u32,
    /// Its thread in that process.
    pub thread: u32,
    /// Its class, or the unit's name.
    pub class: String,
    /// Instructions executed.
    pub instructions: u64,
    /// False if it was left by other means than its end.
    pub returned: bool,
}

impl ProcessTreeCounts {
    /// Reads a folder. Of processes that run, the counts are those of this moment, more or less.
    pub fn read(folder: &Path) -> Result<ProcessTreeCounts, ProcessTreeError> {
        let failed = |error| ProcessTreeError { path: folder.into(), error };
        let logs = Logs::open(folder).map_err(failed)?;
        let (mut merged, mut replays) = (Merged::default(), logs.replays());
        for name in logs.0.keys() {
            merged.add(folder, name, replays.whole(name)).map_err(failed)?;
        }
        Ok(merged.finish())
    }

    /// Gives the units of a class another name, under which there are none.
    pub fn rename_class(&mut self, name: &str, new: &str) {
        let units = self.units.iter_mut().filter(|unit| unit.class == name);
        units.for_each(|unit| unit.class = new.into());
        if let Some(executions) = self.classes.remove(name) {
            self.classes.insert(new.into(), executions);
        }
    }
}

/// The entries of all logs, each with the length of the log behind it.
pub(super) struct Logs(pub(super) BTreeMap<LogName, Vec<(u64, LogEntry)>>);

impl Logs {
    pub(super) fn open(folder: &Path) -> io::Result<Logs> {
        let mut logs = BTreeMap::new();
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            let file_name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(name) = file_name.strip_suffix(LOG).and_then(LogName::parse) {
                logs.insert(name, entries(&fs::read(&path)?));
            }
        }
        Ok(Logs(logs))
    }

    /// Replays them.
    pub(super) fn replays(&self) -> Replays<'_> {
        Replays { logs: self, parts: HashMap::new() }
    }
}

/// Replays logs. A process may have forked thousands of others, which inherit what it had defined until then: its log is replayed
/// up to one after the other, not from its beginning for each.
pub(super) struct Replays<'a> {
    logs: &'a Logs,
    /// By log: what its first entries say, as many as these.
    parts: HashMap<&'a LogName, (usize, Replayed)>,
}

impl<'a> Replays<'a> {
    /// The contents of a whole log.
    pub(super) fn whole(&mut self, name: &LogName) -> Replayed {
        let mut part = (0, Replayed::default());
        self.replay_log(&mut part, name, u64::MAX, 0);
        part.1
    }

    /// Replays the following entries of a log that lie before an end.
    fn replay_log(
        &mut self,
        (next, replayed): &mut (usize, Replayed),
        name: &LogName,
        end: u64,
        depth: usize,
    ) {
        let entries = self.logs.0.get(name).map_or(&[][..], |entries| &entries[*next..]);
        for (_, entry) in entries.iter().take_while(|(position, _)| *position <= end) {
            if let LogEntry::Began { inherited: Some(inherited), .. } = entry
                && depth < MOST_GENERATIONS
            {
                *replayed = self.inherited(inherited, depth + 1);
            }
            replayed.add(entry);
            *next += 1;
        }
    }

    /// The initial state of a process that inherits from another one's log.
    fn inherited(&mut self, Inherited { log, bytes, thread }: &Inherited, depth: usize) -> Replayed {
        let Some((name, entries)) = self.logs.0.get_key_value(log) else { return Replayed::default() };
        // Children come in the order in which they were forked. If not, the log is replayed from its beginning.
        let part = self.parts.remove(name);
        let is_before = |next: usize| next == 0 || entries[next - 1].0 <= *bytes;
        let mut part = part.filter(|(next, _)| is_before(*next)).unwrap_or_default();
        self.replay_log(&mut part, name, *bytes, depth);
        let inherited = part.1.inherited(*thread);
        self.parts.insert(name, part);
        inherited
    }
}

/// Logs that refer to each other in a circle are damaged.
const MOST_GENERATIONS: usize = 10_000;

/// The entries up to the first line that is not whole.
fn entries(bytes: &[u8]) -> Vec<(u64, LogEntry)> {
    let mut position = 0;
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let entry = |line: &[u8]| {
        position += line.len() as u64;
        Some((position, serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?))
    };
    lines.map_while(entry).collect()
}

/// The contents of a log's entries.
#[derive(Default)]
pub(super) struct Replayed {
    pub(super) host_process: u32,
    /// That of its blocks.
    instruction_set: Option<&'static dyn InstructionSet>,
    pub(super) images: Vec<LoadedImage>,
    blocks: Vec<Rc<BlockCode>>,
    threads: BTreeMap<u32, ReplayedThread>,
    classes: Vec<ReplayedClass>,
    units: Vec<UnitEntry>,
    /// The last entry, if the program has ended.
    pub(super) end: Option<LogEntry>,
}

#[derive(Clone, Default)]
pub(super) struct ReplayedThread {
    numbers: Vec<u32>,
    terms: Vec<[u32; 4]>,
    settlements: u64,
    executions: HashMap<u32, u64>,
    system_calls: BTreeMap<u32, u64>,
}

pub(super) struct ReplayedClass {
    name: String,
    settled: Option<Vec<(u32, u64)>>,
}

impl Replayed {
    /// The initial state of a child that one of this program's threads forked.
    fn inherited(&self, thread: u32) -> Replayed {
        let (numbers, terms) = match self.threads.get(&thread) {
            Some(forked) => (forked.numbers.clone(), forked.terms.clone()),
            None => Default::default(),
        };
        let first = ReplayedThread { numbers, terms, ..ReplayedThread::default() };
        let (images, blocks) = (self.images.clone(), self.blocks.clone());
        let instruction_set = self.instruction_set;
        Replayed {
            instruction_set,
            images,
            blocks,
            threads: BTreeMap::from([(0, first)]),
            ..Replayed::default()
        }
    }

    fn add(&mut self, entry: &LogEntry) {
        match entry {
            LogEntry::Began { host_process, .. } => self.host_process = *host_process,
            LogEntry::Guest(set) => self.instruction_set = Some(*set),
            LogEntry::Image(image) => self.images.push(image.clone()),
            LogEntry::Block(address, words) => self.blocks.push(Rc::new((*address, words.clone()))),
            LogEntry::Numbered(thread, number) => self.thread(*thread).numbers.push(*number),
            LogEntry::Counters(thread, terms) => self.thread(*thread).terms.extend(terms),
            LogEntry::Settled(thread, executions, system_calls) => {
                let thread = self.thread(*thread);
                thread.settlements += 1;
                thread.terms.clear();
                executions.iter().for_each(|(block, n)| *thread.executions.entry(*block).or_default() += n);
                system_calls
                    .iter()
                    .for_each(|(number, n)| *thread.system_calls.entry(*number).or_default() += n);
            }
            LogEntry::Class(name) => self.classes.push(ReplayedClass { name: name.clone(), settled: None }),
            LogEntry::Unit(unit) => self.units.push(*unit),
            LogEntry::ClassSettled(class, executions) => {
                if let Some(class) = self.classes.get_mut(*class as usize) {
                    class.settled = Some(executions.clone());
                }
            }
            LogEntry::Replaced | LogEntry::Ended(_) => self.end = Some(entry.clone()),
        }
    }

    /// How the process has ended, if it has.
    pub(super) fn state(&self) -> ProcessState {
        match &self.end {
            Some(LogEntry::Ended(how)) => ProcessState::Ended(*how),
            _ if is_alive(self.host_process) => ProcessState::Running,
            _ => ProcessState::Gone,
        }
    }

    fn thread(&mut self, thread: u32) -> &mut ReplayedThread {
        self.threads.entry(thread).or_default()
    }
}

impl ReplayedThread {
    /// Adds what the thread's file has counted since the last settlement.
    fn add_area(&mut self, area: &AreaCounts) -> io::Result<()> {
        if area.settlements()? != self.settlements {
            return Ok(());
        }
        let mut executions = area.executions(self.numbers.len())?;
        if let Some(terms) = Term::from_words(&self.terms) {
            let counters: Vec<Cell<u64>> = area.counters(terms.len())?.into_iter().map(Cell::new).collect();
            let zeros = vec![Cell::new(0); counters.len()];
            flow::take(&terms[..counters.len()], &counters, &zeros, |id, times| {
                if let Some(sum) = executions.get_mut(id as usize) {
                    *sum = sum.wrapping_add(times);
                }
            });
        }
        for (number, times) in self.numbers.iter().zip(executions) {
            // A process that was killed within compiled code has not counted where it left that.
            if (times as i64) > 0 {
                *self.executions.entry(*number).or_default() += times;
            }
        }
        for (number, times) in (0..).zip(area.system_calls()?).filter(|(_, n)| *n != 0) {
            *self.system_calls.entry(number).or_default() += times;
        }
        Ok(())
    }
}

/// The address of a block, and its instructions.
type BlockCode = (u64, Vec<u32>);

/// An image, and where it was mapped.
type ImageKey = (PathBuf, u64, u64, u64);

/// The sum over programs.
#[derive(Default)]
struct Merged {
    tree: ProcessTreeCounts,
    images: HashMap<ImageKey, u32>,
    /// By image, instruction set and code.
    blocks: HashMap<(Option<u32>, &'static str, Rc<BlockCode>), BlockId>,
}

impl Merged {
    /// Adds a program.
    fn add(&mut self, folder: &Path, name: &LogName, mut program: Replayed) -> io::Result<()> {
        for (thread, counted) in &mut program.threads {
            match AreaCounts::open(&folder.join(name.area(*thread))) {
                Ok(area) => counted.add_area(&area)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let images: Vec<u32> = program.images.iter().map(|image| self.image(image)).collect();
        let mut ids = vec![None; program.blocks.len()];
        let process = self.process(name, &program);
        for counted in program.threads.values() {
            for (&number, &times) in &counted.executions {
                let Some(id) = self.block(&program, &images, &mut ids, number) else { continue };
                self.tree.counts.executions[id as usize] += times;
                *self.tree.processes[process].executions.entry(id).or_default() += times;
            }
            for (&number, &times) in &counted.system_calls {
                *self.tree.processes[process].system_calls.entry(number).or_default() += times;
            }
        }
        for (class, number) in program.classes.iter().zip(0..) {
            let executed = match &class.settled {
                Some(executed) => executed.clone(),
                None => match class_executions(&folder.join(name.class(number)), program.blocks.len()) {
                    Ok(words) => (0..).zip(words).filter(|(_, n)| *n != 0).collect(),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                    Err(error) => return Err(error),
                },
            };
            for (number, times) in executed {
                let Some(id) = self.block(&program, &images, &mut ids, number) else { continue };
                let sums = self.tree.classes.entry(class.name.clone()).or_default();
                *sums.entry(id).or_default() += times;
                *self.tree.processes[process].in_units.entry(id).or_default() += times;
            }
        }
        let units = program.units.iter().filter_map(|unit| {
            let class = program.classes.get(unit.class as usize)?.name.clone();
            let UnitEntry { thread, instructions, returned, .. } = *unit;
            Some(CountedUnit { process: process as u32, thread, class, instructions, returned })
        });
        self.tree.units.extend(units);
        Ok(())
    }

    /// The index of the program's process.
    fn process(&mut self, name: &LogName, program: &Replayed) -> usize {
        let state = program.state();
        let path = program.images.first().map(|image| image.path.clone());
        let processes = &mut self.tree.processes;
        // Logs are in the order of processes and their programs.
        if processes.last().is_none_or(|last| last.number != name.process) {
            processes.push(CountedProcess {
                number: name.process.clone(),
                programs: Vec::new(),
                state: ProcessState::Gone,
                executions: BTreeMap::new(),
                in_units: BTreeMap::new(),
                system_calls: BTreeMap::new(),
            });
        }
        let index = processes.len() - 1;
        processes[index].programs.extend(path);
        processes[index].state = state;
        index
    }

    fn image(&mut self, image: &LoadedImage) -> u32 {
        let key = (image.path.clone(), image.start, image.end, image.bias);
        let images = &mut self.tree.counts.images;
        *self.images.entry(key).or_insert_with(|| {
            images.push(image.clone());
            images.len() as u32 - 1
        })
    }

    /// The number of a program's block, which lies in the image that was mapped last where it is.
    fn block(
        &mut self,
        program: &Replayed,
        images: &[u32],
        ids: &mut [Option<BlockId>],
        number: u32,
    ) -> Option<BlockId> {
        let id = ids.get_mut(number as usize)?;
        if id.is_none() {
            let block = program.blocks[number as usize].clone();
            let holds = |image: &LoadedImage| (image.start..image.end).contains(&block.0);
            let image = program.images.iter().rposition(holds).map(|index| images[index]);
            let counts = &mut self.tree.counts;
            let set = program.instruction_set?;
            *id = Some(*self.blocks.entry((image, set.name(), block)).or_insert_with_key(
                |(image, _, block)| {
                    let (address, words) = &**block;
                    let made = Block::new(set, *address, words.clone());
                    counts.blocks.push(Block { image: *image, ..made });
                    counts.executions.push(0);
                    counts.blocks.len() as BlockId - 1
                },
            ));
        }
        *id
    }

    fn finish(mut self) -> ProcessTreeCounts {
        let mut calls: BTreeMap<u32, u64> = BTreeMap::new();
        for process in &self.tree.processes {
            process.system_calls.iter().for_each(|(number, n)| *calls.entry(*number).or_default() += n);
        }
        self.tree.counts.system_calls = calls.into_iter().collect();
        self.tree
    }
}

/// Whether the host has a process of this number.
fn is_alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

impl CountedProcess {
    /// Instructions executed, by the blocks of the whole.
    pub fn instructions(&self, counts: &Counts) -> u64 {
        let length = |id: BlockId| counts.blocks[id as usize].words.len() as u64;
        self.executions.iter().map(|(&id, times)| length(id) * times).sum()
    }
}
