//! Models observe all processes of a program. They run in this process, which gets what the program's processes execute through
//! memory that it shares with them, so that a process that is killed takes no results with it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Configuration, Plan, ProcessNumber, ProcessState};
use events::record::{Event, Mark};
use events::{BlockId, Consumer, LABELS, Object, Thread};
use rustix::fs::MemfdFlags;
use trace::Trace;

use super::dictionary::TreeDictionary;
use super::forked_tree::ForkedTree;
use super::messages::{self, ProcessEvent, RingConsumer, RingConsumers, RingMessage};
use super::rings::Rings;
use super::{file_name, is_alive};
use crate::attached_program::{AttachedProgram, ObservationEnd};
use crate::measure::{Ending, Error};
use crate::objects::ObjectRules;
use crate::record::AttachFailure;
use crate::{live, record};

/// A program that was observed with all of its processes.
#[derive(Debug)]
pub struct Observed<M> {
    /// The model. Its processes are numbered as in the list of them.
    pub model: M,
    /// The blocks that it observed, their functions and images; without records.
    pub trace: Trace,
    /// The processes, in the order of their numbers.
    pub processes: Vec<ObservedProcess>,
    /// How the first process ended, if it did.
    pub ending: Option<Ending>,
    /// Processes that were not observed, as there were too many at the same time.
    pub left_out: u64,
}

/// A process that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedProcess {
    /// Its number in the process tree.
    pub number: ProcessNumber,
    /// The number that records have.
    pub process: u32,
    /// The file name of the program that it executed last.
    pub program: String,
    /// How it ended.
    pub state: ProcessState,
}

/// The shortest and the longest pause if no process has anything to tell.
const PAUSES: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(5)];
/// How often to look whether processes still live.
const CHECKED_EVERY: Duration = Duration::from_millis(50);

/// Runs a program until all of its processes have ended, or until the user has enough of it, and lets a model observe all
/// of them. The records of each process come in their order. `begin` is called when the program has a process of its own: only from
/// then on the model may have threads.
pub fn observe<M: Consumer>(
    configuration: &Configuration,
    plan: &Plan,
    mut model: M,
    begin: impl FnOnce(&mut M),
) -> Result<Observed<M>, Error> {
    let (rings, _) = Rings::new().map_err(Error::Simulation)?;
    let dictionary = dictionary(&record::header(configuration, plan)).map_err(Error::Simulation)?;
    let mut forked = ForkedTree::run(true, || {
        let consumer = RingConsumer::first(rings.clone()).expect("no process has a ring yet");
        let forked = Arc::new(RingConsumers::first(rings.clone()));
        Ok(live::run_tree(configuration, plan, consumer, false, Some(forked))?.ending)
    })?;
    begin(&mut model);
    let mut collector = Collector::new(rings, model, dictionary);
    collector.collect_until(|| forked.is_over(Duration::ZERO)).map_err(Error::Simulation)?;
    let ending = forked.ending()?;
    collector.finish(&configuration.program, ending).map_err(Error::Simulation)
}

/// The same of a program that runs already: until it ends, the user ends
/// the command, or the time is over. The program goes on.
pub fn observe_running<M: Consumer>(
    attached: &AttachedProgram,
    plan: &Plan,
    mut model: M,
    begin: impl FnOnce(&mut M),
) -> Result<Observed<M>, AttachFailure> {
    let plan = &ObjectRules::plan_of_process(attached.process, plan);
    let (rings, file) = Rings::new().map_err(Error::Simulation)?;
    let program = PathBuf::from(format!("process {}", attached.process));
    let header = plan.header(program.clone(), Vec::new(), isa::Processors::default());
    let dictionary = dictionary(&header).map_err(Error::Simulation)?;
    begin(&mut model);
    let mut collector = Collector::new(rings, model, dictionary);
    let end = ObservationEnd::of(attached);
    // The connection is served by another thread: processes wait for room in their rings before they say that they have ended.
    let client = || attached.target().observe(plan, &file, &|has_begun| end.has_come(has_begun));
    let (attached, collected) = std::thread::scope(|scope| {
        let client = scope.spawn(client);
        let collected = collector.collect_until(|| client.is_finished());
        (client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), collected)
    });
    attached?;
    collected.map_err(Error::Simulation)?;
    Ok(collector.finish(&program, None).map_err(Error::Simulation)?)
}

/// A dictionary in memory.
fn dictionary(header: &trace::Header) -> io::Result<TreeDictionary> {
    let file = File::from(rustix::fs::memfd_create("dictionary", MemfdFlags::CLOEXEC)?);
    TreeDictionary::new(crate::descriptors::out_of_reach(file), header)
}

/// Passes what processes execute to a model.
struct Collector<M> {
    rings: Rings,
    model: M,
    dictionary: TreeDictionary,
    /// The processes that have rings, by these.
    processes: BTreeMap<usize, CollectedProcess>,
    /// Those that have ended.
    ended: Vec<ObservedProcess>,
    /// The numbers of threads among those of all processes.
    threads: HashMap<(u32, u32), u32>,
    /// The common numbers of objects.
    objects: HashMap<Object, u32>,
}

/// A process whose messages are read.
struct CollectedProcess {
    observed: ObservedProcess,
    /// Words that were read, the last message of which may not be whole.
    words: Vec<u64>,
    /// The common numbers of its images, blocks and objects.
    images: Vec<u32>,
    blocks: Vec<BlockId>,
    /// From 1.
    objects: Vec<u32>,
    /// Another program begins, whose image comes next.
    begins_program: bool,
}

impl CollectedProcess {
    /// Of which nothing is known yet.
    fn new() -> CollectedProcess {
        let (number, state) = (ProcessNumber::default(), ProcessState::Running);
        let observed = ObservedProcess { number, process: 0, program: String::new(), state };
        let (words, images, blocks, objects) = Default::default();
        CollectedProcess { observed, words, images, blocks, objects, begins_program: true }
    }
}

impl CollectedProcess {
    /// The common number of an object.
    fn object(&self, object: u32) -> u32 {
        if object == LABELS {
            return object;
        }
        (object as usize).checked_sub(1).map_or(0, |index| self.objects[index])
    }

    /// A mark with the common number of its object.
    fn mark(&self, mark: Mark) -> Mark {
        match mark {
            Mark::ObjectEntered(object) => Mark::ObjectEntered(self.object(object)),
            Mark::ObjectLeft(object) => Mark::ObjectLeft(self.object(object)),
            Mark::LockAcquired(lock) => Mark::LockAcquired(self.object(lock)),
            Mark::LockReleased(lock) => Mark::LockReleased(self.object(lock)),
            Mark::LockAwaited(lock) => Mark::LockAwaited(self.object(lock)),
            mark => mark,
        }
    }
}

impl<M: Consumer> Collector<M> {
    /// That has passed on nothing.
    fn new(rings: Rings, model: M, dictionary: TreeDictionary) -> Collector<M> {
        let (processes, ended, threads, objects) = Default::default();
        Collector { rings, model, dictionary, processes, ended, threads, objects }
    }

    /// Passes on what is written until nothing follows any more. What is written afterwards is dropped.
    fn collect_until(&mut self, mut is_over: impl FnMut() -> bool) -> io::Result<()> {
        let (mut pause, mut checked) = (PAUSES[0], Instant::now());
        loop {
            let is_over = is_over();
            let had_news = self.collect()?;
            if is_over && !had_news {
                break;
            }
            if checked.elapsed() > CHECKED_EVERY {
                self.release()?;
                checked = Instant::now();
            }
            pause = if had_news { PAUSES[0] } else { (pause * 2).min(PAUSES[1]) };
            if !had_news {
                std::thread::sleep(pause);
            }
        }
        self.rings.close();
        Ok(())
    }

    /// What was observed.
    fn finish(mut self, program: &Path, ending: Option<Ending>) -> io::Result<Observed<M>> {
        let processes = self.processes();
        let trace = self.dictionary.finish(program)?;
        Ok(Observed { model: self.model, trace, processes, ending, left_out: self.rings.left_out().into() })
    }

    /// Passes on what has been written so far. Returns whether that was anything.
    fn collect(&mut self) -> io::Result<bool> {
        let mut had_news = false;
        for ring in self.rings.clone().opened() {
            had_news |= self.collect_from(ring)?;
        }
        Ok(had_news)
    }

    fn collect_from(&mut self, ring: usize) -> io::Result<bool> {
        let mut process = self.processes.remove(&ring).unwrap_or_else(CollectedProcess::new);
        let mut words = std::mem::take(&mut process.words);
        let had_news = self.rings.read(ring, &mut words);
        let mut read = 0;
        while let Some((message, length)) = messages::first(&mut words[read..]) {
            self.pass_on(&mut process, message)?;
            read += length;
        }
        words.drain(..read);
        process.words = words;
        self.processes.insert(ring, process);
        Ok(had_news)
    }

    fn pass_on(&mut self, process: &mut CollectedProcess, message: RingMessage) -> io::Result<()> {
        match message {
            RingMessage::Event(ProcessEvent::Began(number, session)) => {
                process.observed.number = number;
                process.observed.process = session;
            }
            RingMessage::Event(ProcessEvent::Image(image)) => {
                if std::mem::take(&mut process.begins_program) {
                    process.observed.program = file_name(&image.path);
                }
                process.images.push(self.dictionary.image(image, &mut self.model));
            }
            RingMessage::Event(ProcessEvent::Object(object)) => {
                let parent = process.object(object.parent);
                let object = Object { parent, ..object };
                let (model, next) = (&mut self.model, self.objects.len() as u32 + 1);
                let number = *self.objects.entry(object).or_insert_with_key(|object| {
                    model.object(object);
                    next
                });
                process.objects.push(number);
            }
            RingMessage::Event(ProcessEvent::UnitClass(unit, class)) => self.model.unit_class(unit, &class),
            RingMessage::Event(ProcessEvent::Replaced) => process.begins_program = true,
            RingMessage::Event(ProcessEvent::Ended(how)) => process.observed.state = ProcessState::Ended(how),
            RingMessage::Block(address, image, words) => {
                let image = image.map(|image| process.images[image as usize]);
                let id = self.dictionary.block((address, image, words), &mut self.model)?;
                process.blocks.push(id);
            }
            RingMessage::Records(thread, records) => {
                for word in &mut *records {
                    match Event::new(*word) {
                        Event::Block(id) => *word = Event::Block(process.blocks[id as usize]).word(),
                        Event::Mark(mark) => *word = Event::Mark(process.mark(mark)).word(),
                        Event::Access(_) => {}
                    }
                }
                let (number, next) = (process.observed.process, self.threads.len() as u32);
                let thread = *self.threads.entry((number, thread)).or_insert(next);
                self.model.executed(Thread { process: number, number: thread }, records);
            }
        }
        Ok(())
    }

    /// Releases the rings of processes that have ended, so that others can use them.
    fn release(&mut self) -> io::Result<()> {
        for ring in self.processes.keys().copied().collect::<Vec<_>>() {
            let is_gone = !is_alive(self.rings.process(ring));
            // What it wrote before it ended is there now.
            let had_news = self.collect_from(ring)?;
            let has_ended = self.processes[&ring].observed.state != ProcessState::Running;
            if (is_gone || has_ended)
                && !had_news
                && let Some(process) = self.processes.remove(&ring)
            {
                self.rings.release(ring);
                self.model.process_ended(process.observed.process);
                self.ended.push(gone(process.observed));
            }
        }
        Ok(())
    }

    /// All processes, in the order of their numbers.
    fn processes(&mut self) -> Vec<ObservedProcess> {
        let mut all = std::mem::take(&mut self.ended);
        for (ring, process) in std::mem::take(&mut self.processes) {
            let is_alive = is_alive(self.rings.process(ring));
            all.push(if is_alive { process.observed } else { gone(process.observed) });
        }
        all.sort_by(|a, b| a.number.cmp(&b.number));
        all
    }
}

/// The process does not exist any more.
fn gone(process: ObservedProcess) -> ObservedProcess {
    let has_ended = process.state != ProcessState::Running;
    ObservedProcess { state: if has_ended { process.state } else { ProcessState::Gone }, ..process }
}
