//! Exact counts of executed blocks, for the whole run and for each call of one function.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use events::{BlockId, Counts, LoadedImage, ProcessEnd, Unit};

use crate::calls::{Ended, ThreadUnits};
use crate::lock;
use crate::platform::Platform;
use crate::program_location::Name;
use crate::sampling::Sampling;
use crate::unit_class::ClassRule;
use guest::{BlockCache, Debugged, DecodedBlock, Instrumentation, InstrumentationLevel, Observer};
use guest_memory::Memory;
use serde::{Deserialize, Serialize};

/// A growing array of counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockTally(Vec<u64>);

impl BlockTally {
    #[inline(always)]
    fn slot(&mut self, id: u32) -> &mut u64 {
        let index = id as usize;
        if index >= self.0.len() {
            self.grow(index);
        }
        &mut self.0[index]
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.0.resize((index + 1).next_power_of_two(), 0);
    }

    /// Adds executions. The addition wraps, since an execution by compiled code may be subtracted before it is added.
    #[inline(always)]
    pub(crate) fn add(&mut self, id: u32, executions: u64) {
        let slot = self.slot(id);
        *slot = slot.wrapping_add(executions);
    }

    /// Takes the counts that are not zero, with their indexes.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (u32, u64)> {
        let counts = (0..).zip(&mut self.0).filter(|(_, n)| **n != 0);
        counts.map(|(id, n)| (id, std::mem::take(n)))
    }

    /// The counts that are not zero, with their indexes.
    fn nonzero(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(&self.0).filter(|(_, n)| **n != 0).map(|(id, n)| (id, *n))
    }
}

/// Adding this subtracts one execution.
pub(crate) const ONE_LESS: u64 = u64::MAX;

/// The blocks that the counts of all threads refer to, and the counts of threads and programs that have ended.
#[derive(Clone, Debug, Default)]
struct RunTotals {
    blocks: Vec<events::Block>,
    /// By the machine of the guest, the address and the words.
    ids: HashMap<(u16, u64, Vec<u32>), BlockId>,
    executions: BlockTally,
    system_calls: BlockTally,
}

impl RunTotals {
    /// The number of a block in the totals. Blocks of all threads with equal addresses and instructions share it.
    fn id<G: Platform>(&mut self, block: &DecodedBlock<G>) -> BlockId {
        let key = (G::ELF_MACHINE, block.address, block.words.clone());
        let next = self.blocks.len() as BlockId;
        *self.ids.entry(key).or_insert_with_key(|(_, address, words)| {
            self.blocks.push(events::Block::new(G::INSTRUCTION_SET, *address, words.clone()));
            next
        })
    }
}

/// Counts executions of blocks and system calls over the whole run.
#[derive(Debug, Default)]
pub struct RunCounter {
    executions: BlockTally,
    system_calls: BlockTally,
    images: Vec<LoadedImage>,
    /// Shared with the counters of the other threads.
    totals: Arc<Mutex<RunTotals>>,
}

impl RunCounter {
    /// The counts of all threads, once they have ended.
    pub fn counts(&self) -> Counts {
        let totals = lock(&self.totals).clone();
        let with_image =
            |block: events::Block| events::Block { image: self.image_of(block.address), ..block };
        let blocks: Vec<events::Block> = totals.blocks.into_iter().map(with_image).collect();
        let system_calls = totals.system_calls.nonzero().collect();
        let mut executions = totals.executions.0;
        executions.resize(blocks.len(), 0);
        Counts { images: self.images.clone(), blocks, executions, system_calls }
    }

    /// Adds the counts of the thread, whose blocks are those of this cache, to the totals.
    fn settle<G: Platform>(&mut self, cache: &BlockCache<G>) {
        let executions = &mut self.executions;
        cache.take_executions(|id, times| executions.add(id, times));
        let totals = &mut *lock(&self.totals);
        for (block, id) in cache.blocks().iter().zip(0..) {
            let total = totals.id(block);
            totals.executions.add(total, self.executions.0.get(id).copied().unwrap_or(0));
        }
        self.executions = BlockTally::default();
        for (number, times) in self.system_calls.take_all() {
            *totals.system_calls.slot(number) += times;
        }
    }

    /// The image that was mapped last at an address.
    fn image_of(&self, address: u64) -> Option<u32> {
        let holds = |image: &LoadedImage| (image.start..image.end).contains(&address);
        self.images.iter().rposition(holds).map(|index| index as u32)
    }
}

impl<G: Platform> Instrumentation<G> for RunCounter {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Counts;
}

impl<G: Platform> Debugged<G> for RunCounter {}

impl<G: Platform> Observer<G> for RunCounter {
    #[inline(always)]
    fn enter(&mut self, id: BlockId, _: &BlockCache<G>, _: &G, _: &Memory) {
        self.executions.add(id, 1);
    }

    fn truncated(&mut self, entered: BlockId, executed: Option<(BlockId, &DecodedBlock<G>)>) {
        self.executions.add(entered, ONE_LESS);
        if let Some((id, _)) = executed {
            self.executions.add(id, 1);
        }
    }

    fn system_call(&mut self, number: u32) {
        *self.system_calls.slot(number) += 1;
    }

    fn mapped(&mut self, image: &LoadedImage) {
        self.images.push(image.clone());
    }

    fn thread(&self) -> RunCounter {
        RunCounter { images: self.images.clone(), totals: self.totals.clone(), ..RunCounter::default() }
    }

    fn ended(&mut self, _: &G, _: &Memory, cache: &BlockCache<G>) {
        self.settle(cache);
    }

    fn replaced(&mut self, _: &G, cache: &BlockCache<G>, _: bool) {
        self.settle(cache);
    }

    fn exits(&mut self, _: ProcessEnd, _: &G, _: &Memory, cache: &BlockCache<G>) {
        self.settle(cache);
    }

    fn forked(&mut self, _: u32, _: &BlockCache<G>) {
        self.totals = Arc::default();
    }
}

/// Whether an image has a variable: `name` or `image!name`.
pub fn has_variable(name: &str, image: &LoadedImage, file: &image::Image) -> bool {
    let name = Name::new(name);
    name.may_be_in(image) && !name.symbols_in(file).is_empty()
}

/// The definition of units of work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UnitOfWork {
    /// The functions whose calls are the units, a class each: `name` or `image!name`; or two functions, of which the unit
    /// begins at the entry of one and ends at the other's entry (`first to last`) or return (`first through last`).
    pub functions: Vec<String>,
    /// How the program itself says what class a unit is of.
    pub classes: Vec<ClassRule>,
    /// 8-byte variables whose values are recorded at the end of each unit.
    pub gauges: Vec<String>,
    /// How the program is sampled meanwhile ([`ProcessTreeCounter`](crate::ProcessTreeCounter)).
    pub sampling: Option<Sampling>,
    /// The program is sampled, and not counted.
    pub is_uncounted: bool,
}

/// Receives each unit as it ends, with the number of its name, and the class that the program gave it; those of several
/// threads may end in another order than they began. Returns false when it needs no more of them.
pub type UnitSink<'a> = Box<dyn FnMut(u32, Option<&str>, Unit) -> bool + Send + 'a>;

/// State shared by the counters of all threads.
struct Units<'a> {
    sink: Mutex<UnitSink<'a>>,
    wanted: AtomicBool,
    /// Number of units that have begun. Units are numbered in the order of their beginnings.
    begun: AtomicU64,
}

impl<'a> Units<'a> {
    fn new(sink: UnitSink<'a>, wanted: bool) -> Arc<Units<'a>> {
        let (sink, wanted) = (Mutex::new(sink), AtomicBool::new(wanted));
        Arc::new(Units { sink, wanted, begun: AtomicU64::new(0) })
    }

    /// The number of a unit that begins.
    fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Reports a unit that has ended.
    fn push(&self, ended: &Ended, unit: Unit) {
        let sink = &mut *lock(&self.sink);
        if !sink(ended.unit, ended.class.as_deref(), unit) {
            self.wanted.store(false, Ordering::Relaxed);
        }
    }
}

/// Counts the whole run and each unit of work. A unit belongs to the thread in which it began.
pub struct UnitCounter<'a> {
    /// The counts of the whole run.
    pub total: RunCounter,
    work: UnitOfWork,
    units: Arc<Units<'a>>,
    calls: ThreadUnits,
    /// The number of the open unit, or of the last one.
    number: u64,
    gauges: Vec<Option<u64>>,
    /// Executions in the open unit, which are not in the totals yet.
    executions: BlockTally,
    /// Maps the thread's block numbers to the totals'.
    ids: Vec<BlockId>,
    system_calls: Vec<(u32, u64)>,
}

impl<'a> UnitCounter<'a> {
    /// Counts calls of `work.functions` and hands each to `sink`.
    pub fn new(work: UnitOfWork, sink: UnitSink<'a>) -> UnitCounter<'a> {
        let (calls, gauges) =
            (ThreadUnits::new(&work.functions, &work.classes), vec![None; work.gauges.len()]);
        UnitCounter::with(RunCounter::default(), work, Units::new(sink, true), calls, gauges)
    }

    fn with(
        total: RunCounter,
        work: UnitOfWork,
        units: Arc<Units<'a>>,
        calls: ThreadUnits,
        gauges: Vec<Option<u64>>,
    ) -> UnitCounter<'a> {
        let (executions, ids, system_calls) = (BlockTally::default(), Vec::new(), Vec::new());
        UnitCounter { total, work, units, calls, number: 0, gauges, executions, ids, system_calls }
    }

    /// The first function that no image mapped so far has.
    pub fn missing_function(&self) -> Option<&str> {
        self.calls.missing()
    }

    /// The first gauge that no image mapped so far has.
    pub fn missing_gauge(&self) -> Option<&str> {
        let missing = self.gauges.iter().position(Option::is_none)?;
        Some(&self.work.gauges[missing])
    }

    /// Number of units that have begun.
    pub fn begun(&self) -> u64 {
        self.units.begun.load(Ordering::Relaxed)
    }

    /// Ends the open unit, if there is one, at the end of the program.
    fn finish<G: Platform>(&mut self, cpu: &G, memory: &Memory, cache: &BlockCache<G>) {
        self.take(self.calls.is_open(), cache);
        if let Some(ended) = self.calls.end(false) {
            self.end(cpu, Some(memory), cache, &ended);
        }
    }

    /// Adds the executions counted by compiled code to the open unit or to the totals.
    #[cold]
    fn take<G: Platform>(&mut self, is_open: bool, cache: &BlockCache<G>) {
        let executions = self.executions(is_open);
        cache.take_executions(|id, times| executions.add(id, times));
    }

    /// The counts of the open unit, or else the totals.
    #[inline(always)]
    fn executions(&mut self, is_open: bool) -> &mut BlockTally {
        if is_open { &mut self.executions } else { &mut self.total.executions }
    }

    #[cold]
    fn end<G: Platform>(&mut self, cpu: &G, memory: Option<&Memory>, cache: &BlockCache<G>, ended: &Ended) {
        let value = |address| memory?.load::<8>(address).ok();
        let gauge = |address: &Option<u64>| address.and_then(value).unwrap_or(0);
        let mut unit = Unit {
            number: self.number,
            instructions: cpu.executed() - ended.began,
            blocks: Vec::new(),
            system_calls: std::mem::take(&mut self.system_calls),
            gauges: self.gauges.iter().map(gauge).collect(),
            returned: ended.returned,
        };
        self.number_new_blocks(cache);
        for (id, executions) in self.executions.take_all() {
            self.total.executions.add(id, executions);
            unit.blocks.push((self.ids[id as usize], executions));
        }
        self.units.push(ended, unit);
    }

    /// Finds the totals' numbers of new blocks.
    fn number_new_blocks<G: Platform>(&mut self, cache: &BlockCache<G>) {
        let new = &cache.blocks()[self.ids.len()..];
        if !new.is_empty() {
            let mut totals = lock(&self.total.totals);
            self.ids.extend(new.iter().map(|block| totals.id(block)));
        }
    }
}

impl<'a, G: Platform> Instrumentation<G> for UnitCounter<'a> {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Counts;

    fn must_report(&self, block: &DecodedBlock<G>) -> bool {
        self.calls.must_report(block)
    }

    fn requires_recompilation(&mut self) -> bool {
        self.calls.requires_recompilation()
    }
}

impl<'a, G: Platform> Debugged<G> for UnitCounter<'a> {}

impl<'a, G: Platform> Observer<G> for UnitCounter<'a> {
    #[inline(always)]
    fn enter(&mut self, id: BlockId, cache: &BlockCache<G>, cpu: &G, memory: &Memory) {
        let was_open = self.calls.is_open();
        let wanted = || self.units.wanted.load(Ordering::Relaxed);
        let change = self.calls.enter(cache.block(id), cpu, memory, wanted);
        if change.ended.is_some() || change.begins {
            self.take(was_open, cache);
        }
        if let Some(ended) = &change.ended {
            self.end(cpu, Some(memory), cache, ended);
        }
        if change.begins {
            self.number = self.units.begin();
        }
        self.executions(self.calls.is_open()).add(id, 1);
    }

    fn truncated(&mut self, entered: BlockId, executed: Option<(BlockId, &DecodedBlock<G>)>) {
        let executions = self.executions(self.calls.is_open());
        executions.add(entered, ONE_LESS);
        if let Some((id, _)) = executed {
            executions.add(id, 1);
        }
    }

    fn system_call(&mut self, number: u32) {
        Observer::<G>::system_call(&mut self.total, number);
        if self.calls.is_open() {
            match self.system_calls.iter_mut().find(|(known, _)| *known == number) {
                Some((_, times)) => *times += 1,
                None => self.system_calls.push((number, 1)),
            }
        }
    }

    fn mapped(&mut self, image: &LoadedImage) {
        Observer::<G>::mapped(&mut self.total, image);
        let gauges: Vec<Name> = self.work.gauges.iter().map(|gauge| Name::new(gauge)).collect();
        if !gauges.iter().any(|name| name.may_be_in(image)) && !self.calls.may_be_in(image) {
            return;
        }
        // An image that cannot be read any more has no symbols.
        let Ok(file) = linux_user::read_image(&image.path) else { return };
        self.calls.mapped(image, &file);
        for (name, address) in gauges.iter().zip(&mut self.gauges) {
            if name.may_be_in(image)
                && let Some(symbol) = name.symbols_in(&file).first()
            {
                address.get_or_insert(symbol.address.wrapping_add(image.bias));
            }
        }
    }

    fn thread(&self) -> UnitCounter<'a> {
        let (work, units) = (self.work.clone(), self.units.clone());
        UnitCounter::with(
            Observer::<G>::thread(&self.total),
            work,
            units,
            self.calls.thread(),
            self.gauges.clone(),
        )
    }

    fn ended(&mut self, cpu: &G, memory: &Memory, cache: &BlockCache<G>) {
        self.finish(cpu, memory, cache);
        self.total.settle(cache);
    }

    fn replaced(&mut self, cpu: &G, cache: &BlockCache<G>, _: bool) {
        self.take(self.calls.is_open(), cache);
        if let Some(ended) = self.calls.end(false) {
            self.end(cpu, None, cache, &ended);
        }
        self.total.settle(cache);
        self.ids.clear();
    }

    fn exits(&mut self, _: ProcessEnd, cpu: &G, memory: &Memory, cache: &BlockCache<G>) {
        self.finish(cpu, memory, cache);
        self.total.settle(cache);
    }

    /// Units of a forked process are not counted.
    fn forked(&mut self, ordinal: u32, cache: &BlockCache<G>) {
        self.total.forked(ordinal, cache);
        self.ids.clear();
        self.units = Units::new(Box::new(|_, _, _| false), false);
    }
}
