//! Counts all processes of a program, whether they are forked, execute other programs, have threads, or are killed.
//!
//! Each process counts in files of one folder, which it maps: the kernel keeps what was written there, however the process
//! ends. [`ProcessTreeCounts`] reads the folder, at any time.

mod area;
mod log;
mod program;
mod read;
mod samples;

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex};

use events::{BlockId, LoadedImage, ProcessEnd};

use self::area::Area;
use self::log::{LogEntry, LogName, UnitEntry};
pub use self::log::{ProcessNumber, ProcessState};
use self::program::LoggedProgram;
pub use self::read::{CountedProcess, CountedUnit, ProcessTreeCounts, ProcessTreeError};
pub use self::samples::{NewSamples, SampledProcessTree, SampledProgram};
use crate::calls::{Ended, ThreadUnits};
use crate::counting::{BlockTally, ONE_LESS, UnitOfWork};
use crate::lock;
use crate::platform::Platform;
use crate::sampling::{self, Sampler, Sampling};
use guest::{BlockCache, Debugged, DecodedBlock, Instrumentation, InstrumentationLevel, Observer};
use guest_memory::Memory;

/// Counts a thread in the folder of its process tree.
pub struct ProcessTreeCounter {
    work: Arc<UnitOfWork>,
    folder: i32,
    name: LogName,
    program: Arc<Mutex<LoggedProgram>>,
    /// Its number in the process.
    thread: u32,
    area: Area,
    /// The program's number of each block of the thread that has been defined.
    numbers: Vec<u32>,
    /// A block was truncated, so that there may be a new one.
    has_prefix: bool,
    /// How many counters of compiled code are in the log.
    counters: usize,
    /// How often the counts were settled.
    settlements: u64,
    images: Vec<LoadedImage>,
    calls: ThreadUnits,
    /// Executions in the open unit.
    unit: BlockTally,
    sampler: Option<Sampler>,
}

impl ProcessTreeCounter {
    /// Counts the first process in a folder, and units of work. Its processes are numbered from `number` on.
    pub fn new(folder: OwnedFd, number: ProcessNumber, work: UnitOfWork) -> io::Result<ProcessTreeCounter> {
        // Open as long as this process and those that it forks.
        let folder = linux_user::out_of_reach(folder).into_raw_fd();
        let name = LogName { process: number, program: 0 };
        let program = LoggedProgram::new(folder, name.clone(), None)?;
        let calls = ThreadUnits::new(&work.functions, &work.classes);
        ProcessTreeCounter::of(
            Arc::new(work),
            (folder, name),
            Arc::new(Mutex::new(program)),
            calls,
            Vec::new(),
        )
    }

    fn of(
        work: Arc<UnitOfWork>,
        (folder, name): (i32, LogName),
        program: Arc<Mutex<LoggedProgram>>,
        calls: ThreadUnits,
        images: Vec<LoadedImage>,
    ) -> io::Result<ProcessTreeCounter> {
        let (thread, area) = lock(&program).thread()?;
        let new_sampler = |sampling| Sampler::new(sampling, folder, name.samples(thread));
        let sampler = work.sampling.map(new_sampler);
        if let Some(Sampling::Time(_)) = work.sampling {
            jit::keep_code_map();
        }
        Ok(ProcessTreeCounter {
            work,
            folder,
            name,
            program,
            thread,
            area,
            numbers: Vec::new(),
            has_prefix: false,
            counters: 0,
            settlements: 0,
            images,
            calls,
            unit: BlockTally::default(),
            sampler,
        })
    }

    /// Enters the new blocks of the cache into the log.
    #[cold]
    fn define<G: Platform>(&mut self, cache: &BlockCache<G>) {
        self.has_prefix = false;
        let new = &cache.blocks()[self.numbers.len()..];
        if new.is_empty() {
            return;
        }
        let defined = lock(&self.program).define(self.thread, new);
        self.numbers.extend(self.checked(defined));
        let reserved = self.area.reserve(self.numbers.len(), self.counters);
        self.checked(reserved);
    }

    /// Adds the executions since the last call to the open unit, if there is one: the counters of compiled code keep them, too.
    #[cold]
    fn take<G: Platform>(&mut self, is_open: bool, cache: &BlockCache<G>) {
        let unit = &mut self.unit;
        cache.take_executions(|id, times| {
            if is_open {
                unit.add(id, times);
            }
        });
    }

    /// A unit has ended.
    #[cold]
    fn end<G: Platform>(&mut self, instructions: u64, cache: &BlockCache<G>, ended: &Ended) {
        self.define(cache);
        let numbers = &self.numbers;
        let executed = self.unit.take_all().map(|(id, times)| (numbers[id as usize], times));
        let unit = UnitEntry {
            class: 0,
            thread: self.thread,
            instructions: instructions - ended.began,
            returned: ended.returned,
        };
        let class = ended.class.as_deref().unwrap_or_else(|| &self.work.functions[ended.unit as usize]);
        let counted = lock(&self.program).unit(class, unit, executed);
        self.checked(counted);
    }

    /// Moves all counts to the log.
    #[cold]
    fn settle<G: Platform>(&mut self, cache: &BlockCache<G>) {
        if self.work.is_uncounted {
            return;
        }
        self.define(cache);
        self.take(self.calls.is_open(), cache);
        let (mut executions, system_calls) = self.area.counted(self.numbers.len());
        cache.counters.all_executions(|id, times| {
            executions[id as usize] = executions[id as usize].wrapping_add(times);
        });
        let executed = self.numbers.iter().copied().zip(executions).filter(|(_, n)| *n != 0).collect();
        let made = (0..).zip(system_calls).filter(|(_, n)| *n != 0).collect();
        let settled = lock(&self.program).log(&[LogEntry::Settled(self.thread, executed, made)]);
        self.checked(settled);
        self.area.clear(self.numbers.len());
        cache.counters.clear();
        self.counters = 0;
        self.settlements += 1;
        self.area.renew(self.settlements);
    }

    /// The thread, which has executed so many instructions, counts no more.
    pub(crate) fn leave<G: Platform>(&mut self, instructions: u64, cache: &BlockCache<G>) {
        self.take(self.calls.is_open(), cache);
        if let Some(ended) = self.calls.end(false) {
            self.end(instructions, cache, &ended);
        }
        self.settle(cache);
        self.sampler = None;
        self.area.remove();
    }

    /// The result; or else ends the process, whose counts would be wrong.
    fn checked<T>(&self, result: io::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            text::message!(
                "process {} is ended, as it cannot be counted any further: {error}",
                std::process::id()
            );
            // SAFETY: ends the process at once; what was counted is in files.
            unsafe { libc::_exit(NOT_COUNTED) }
        })
    }
}

/// A process that is counted from some time on, and joined by its threads.
pub(crate) struct CountedMember {
    work: Arc<UnitOfWork>,
    folder: i32,
    name: LogName,
    program: Arc<Mutex<LoggedProgram>>,
    /// Finds units of work in these images.
    calls: ThreadUnits,
    images: Vec<LoadedImage>,
}

impl CountedMember {
    /// Counts in a folder, which stays open meanwhile, as the first process with a number. It has mapped these images.
    pub(crate) fn new(
        folder: i32,
        number: u32,
        work: UnitOfWork,
        images: &[LoadedImage],
    ) -> io::Result<CountedMember> {
        let name = LogName { process: ProcessNumber::root(number), program: 0 };
        let mut program = LoggedProgram::new(folder, name.clone(), None)?;
        let mut calls = ThreadUnits::new(&work.functions, &work.classes);
        for (number, image) in (1..).zip(images) {
            program.mapped(number, image)?;
            map(&mut calls, image);
            if work.sampling.is_some() {
                sampling::map_image(image);
            }
        }
        let program = Arc::new(Mutex::new(program));
        Ok(CountedMember { work: Arc::new(work), folder, name, program, calls, images: images.to_vec() })
    }

    /// The first function of a unit that no image has.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.calls.missing()
    }

    /// Counts a thread, which has mapped these images.
    pub(crate) fn counter(&self, images: &[LoadedImage]) -> io::Result<ProcessTreeCounter> {
        let (work, owner, program) =
            (self.work.clone(), (self.folder, self.name.clone()), self.program.clone());
        let known = self.images.clone();
        let mut counter = ProcessTreeCounter::of(work, owner, program, self.calls.thread(), known)?;
        images.iter().skip(self.images.len()).for_each(|image| counter.add_image(image));
        Ok(counter)
    }
}

impl ProcessTreeCounter {
    /// Takes the samples that are due in a block that is about to be executed.
    #[cold]
    fn sample<G: Platform>(&mut self, block: &DecodedBlock<G>, cpu: &G) {
        if let Some(sampler) = &mut self.sampler {
            let address_of = |index| block.address_of(index as usize);
            sampler.sample_block(cpu, block.instructions.len() as u64, address_of);
        }
    }

    /// Begins to sample the calling thread, if it is to be sampled and is not yet.
    pub(crate) fn begin_samples(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            let begun = sampler.begin();
            self.checked(begun);
        }
    }

    /// The thread is sampled no more.
    pub(crate) fn end_samples(&mut self) {
        self.sampler = None;
        self.area.remove();
    }

    /// The counter of a new thread.
    pub(crate) fn new_thread(&self) -> ProcessTreeCounter {
        let (program, images) = (self.program.clone(), self.images.clone());
        let owner = (self.folder, self.name.clone());
        let begun = ProcessTreeCounter::of(self.work.clone(), owner, program, self.calls.thread(), images);
        self.checked(begun)
    }

    /// The number of instructions at which the next sample is due.
    #[inline(always)]
    pub(crate) fn next_sample(&self) -> u64 {
        self.sampler.as_ref().map_or(u64::MAX, Sampler::next)
    }

    /// An image was mapped.
    pub(crate) fn add_image(&mut self, image: &LoadedImage) {
        self.images.push(image.clone());
        let logged = lock(&self.program).mapped(self.images.len(), image);
        self.checked(logged);
        map(&mut self.calls, image);
        if self.sampler.is_some() {
            sampling::map_image(image);
        }
    }

    /// Whether the program is sampled, and not counted.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.work.is_uncounted
    }

    /// Its process.
    pub(crate) fn member(&self) -> CountedMember {
        let (work, name, program) = (self.work.clone(), self.name.clone(), self.program.clone());
        let (calls, images) = (self.calls.thread(), self.images.clone());
        CountedMember { work, folder: self.folder, name, program, calls, images }
    }
}

/// Finds the functions of an image. One that cannot be read any more has no symbols.
fn map(calls: &mut ThreadUnits, image: &LoadedImage) {
    if calls.may_be_in(image)
        && let Ok(file) = linux_user::read_image(&image.path)
    {
        calls.mapped(image, &file);
    }
}

/// The exit status of a process that cannot be counted.
const NOT_COUNTED: i32 = 125;

impl<G: Platform> Instrumentation<G> for ProcessTreeCounter {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Counts;

    fn initial_level(&self) -> InstrumentationLevel {
        if self.work.is_uncounted { InstrumentationLevel::Off } else { InstrumentationLevel::Counts }
    }

    fn instruction_limit(&self) -> u64 {
        self.next_sample()
    }

    fn must_report(&self, block: &DecodedBlock<G>) -> bool {
        self.calls.must_report(block)
    }

    fn requires_recompilation(&mut self) -> bool {
        self.calls.requires_recompilation()
    }
}

impl<G: Platform> Debugged<G> for ProcessTreeCounter {}

impl<G: Platform> Observer<G> for ProcessTreeCounter {
    #[inline(always)]
    fn enter(&mut self, id: BlockId, cache: &BlockCache<G>, cpu: &G, memory: &Memory) {
        if self.work.is_uncounted {
            return;
        }
        let block = cache.block(id);
        if self.next_sample() < cpu.executed() + block.instructions.len() as u64 {
            self.sample(block, cpu);
        }
        if id as usize >= self.numbers.len() || self.has_prefix {
            self.define(cache);
        }
        let was_open = self.calls.is_open();
        let change = self.calls.enter(cache.block(id), cpu, memory, || true);
        if change.ended.is_some() || change.begins {
            self.take(was_open, cache);
        }
        if let Some(ended) = &change.ended {
            self.end(cpu.executed(), cache, ended);
        }
        self.area.add(id, 1);
        if self.calls.is_open() {
            self.unit.add(id, 1);
        }
    }

    fn truncated(&mut self, entered: BlockId, executed: Option<(BlockId, &DecodedBlock<G>)>) {
        if self.work.is_uncounted {
            return;
        }
        self.has_prefix = true;
        for (id, times) in [(entered, ONE_LESS)].into_iter().chain(executed.map(|(id, _)| (id, 1))) {
            self.area.add(id, times);
            if self.calls.is_open() {
                self.unit.add(id, times);
            }
        }
    }

    fn system_call(&mut self, number: u32) {
        self.area.add_system_call(number);
    }

    fn mapped(&mut self, image: &LoadedImage) {
        self.add_image(image);
    }

    fn compiled(&mut self, cache: &BlockCache<G>) {
        if self.work.is_uncounted {
            return;
        }
        self.define(cache);
        let (counters, terms) = (&cache.counters, cache.counters.terms());
        if let Some(first) = counters.address() {
            let moved = self.area.move_counters(first);
            self.checked(moved);
        }
        let reserved = self.area.reserve(self.numbers.len(), terms.len());
        self.checked(reserved);
        if terms.len() > self.counters {
            let new = terms[self.counters..].iter().map(|term| term.to_words()).collect();
            let logged = lock(&self.program).log(&[LogEntry::Counters(self.thread, new)]);
            self.checked(logged);
            self.counters = terms.len();
        }
    }

    fn discarding(&mut self, cache: &BlockCache<G>) {
        self.settle(cache);
    }

    fn resumed(&mut self, _memory: &Memory) {
        if self.sampler.is_some() {
            self.begin_samples();
        }
    }

    fn thread(&self) -> ProcessTreeCounter {
        self.new_thread()
    }

    fn ended(&mut self, cpu: &G, _: &Memory, cache: &BlockCache<G>) {
        if !self.area.is_removed() {
            self.leave(cpu.executed(), cache);
        }
    }

    fn exits(&mut self, how: ProcessEnd, cpu: &G, _: &Memory, cache: &BlockCache<G>) {
        self.leave(cpu.executed(), cache);
        let ended = lock(&self.program).end(LogEntry::Ended(how));
        self.checked(ended);
    }

    fn replaced(&mut self, cpu: &G, cache: &BlockCache<G>, is_same_guest: bool) {
        self.leave(cpu.executed(), cache);
        if self.work.sampling.is_some() {
            sampling::forget_images();
        }
        let next = lock(&self.program).replaced();
        let next = Arc::new(Mutex::new(self.checked(next)));
        let owner = (self.folder, self.name.next());
        let begun = ProcessTreeCounter::of(self.work.clone(), owner, next, self.calls.renewed(), Vec::new());
        *self = self.checked(begun);
        if is_same_guest {
            self.continue_in(cache);
        }
    }

    fn forked(&mut self, ordinal: u32, cache: &BlockCache<G>) {
        let owner = (self.folder, self.name.child(ordinal));
        let child = LoggedProgram::forked(&self.program, owner.clone(), self.thread);
        let (program, is_inherited) = self.checked(child);
        let program = Arc::new(Mutex::new(program));
        let begun = ProcessTreeCounter::of(
            self.work.clone(),
            owner,
            program,
            self.calls.thread(),
            self.images.clone(),
        );
        let child = self.checked(begun);
        let parent = std::mem::replace(self, child);
        if is_inherited {
            (self.numbers, self.counters) = (parent.numbers.clone(), parent.counters);
        } else {
            let logged = (1..)
                .zip(&self.images)
                .try_for_each(|(number, image)| lock(&self.program).mapped(number, image));
            self.checked(logged);
            // The lock of the parent's program, which another thread held, is never released here.
            std::mem::forget(parent);
        }
        self.continue_in(cache);
    }
}

impl ProcessTreeCounter {
    /// The counters of a cache, all of whose executions were counted elsewhere, count in the thread's own area from now on.
    pub(crate) fn continue_in<G: Platform>(&mut self, cache: &BlockCache<G>) {
        if let Some(first) = cache.counters.address() {
            let moved = self.area.move_counters(first);
            self.checked(moved);
        }
        cache.counters.clear();
        self.compiled(cache);
    }
}
