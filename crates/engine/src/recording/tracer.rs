//! Records a thread for one session.

mod observer;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use events::record::{Event, Mark, Shape};
use events::{BlockId, LoadedImage};
use image::Image;
use trace::StreamWriter;

use super::encoder::{Encoder, PIECE, Piece};
use super::heap::Allocations;
use super::plan::{Addresses, Missing};
use super::session::{Session, State};
use crate::calls::Calls;
use alpha::block::{Block, BlockCache};
use alpha::cpu::Cpu;
use alpha::observer::InstrumentationLevel;

/// A block of the cache whose number in the trace is not known yet.
const UNKNOWN: BlockId = BlockId::MAX;

/// An image as it was mapped, and its file if that can be read.
type Mapped = (LoadedImage, Option<Arc<Image>>);

/// Records a thread.
pub(super) struct Tracer {
    session: Arc<Session>,
    addresses: Addresses,
    calls: Calls,
    /// If the plan wants that.
    heap: Option<Allocations>,
    /// The number of the unit that is recorded.
    unit: Option<u64>,
    images: Vec<Mapped>,
    is_recording: bool,
    /// Of the plan's `until`, if that is a number of instructions: how many are still to be recorded.
    left: Option<u64>,
    /// Something was executed behind the last of those.
    is_cut: bool,
    /// How many of the instructions that are told next come before the plan's `from`, if that is a number.
    before_from: u64,
    /// The cache whose blocks are known.
    cache: Option<u64>,
    /// Their numbers in the trace, by the cache's own, and the numbers of instructions.
    ids: Vec<(BlockId, u32)>,
    /// Whether the trace's numbers are the cache's own.
    has_same_numbers: bool,
    /// Not handed on yet.
    piece: Piece,
    /// The thread's number for a consumer, if it has delivered to one.
    number: Option<u32>,
    /// Where the records go, when none are under way.
    stream: Option<StreamWriter>,
    feed: Option<Encoder>,
    /// Nothing more can be recorded.
    has_failed: bool,
    /// What is to be recorded behind what was executed so far.
    marks: Vec<Mark>,
    /// When what is executed now began, among what other threads execute.
    order: u64,
    /// Recorded so far.
    instructions: u64,
}

impl Tracer {
    /// Of a thread of a process that has mapped these images so far.
    pub(super) fn new(session: Arc<Session>, images: &[LoadedImage]) -> Tracer {
        let plan = &session.plan;
        let calls = plan.unit.as_ref().map_or_else(Calls::default, |unit| Calls::new(&unit.function));
        let addresses = Addresses::new(plan);
        let heap = plan.heap.then(Allocations::default);
        let mut tracer = Tracer { heap, ..Tracer::of(session, addresses, calls, Vec::new()) };
        images.iter().for_each(|image| tracer.mapped(image));
        tracer
    }

    fn of(session: Arc<Session>, addresses: Addresses, calls: Calls, images: Vec<Mapped>) -> Tracer {
        Tracer {
            left: session.plan.until.as_ref().and_then(|place| place.instructions()),
            session,
            addresses,
            calls,
            heap: None,
            unit: None,
            images,
            is_recording: false,
            is_cut: false,
            before_from: 0,
            cache: None,
            ids: Vec::new(),
            has_same_numbers: true,
            piece: Piece::default(),
            number: None,
            stream: None,
            feed: None,
            has_failed: false,
            marks: Vec::new(),
            order: 0,
            instructions: 0,
        }
    }

    /// What the plan names that no image has which was mapped so far.
    pub(super) fn missing(&self) -> Option<Missing> {
        let plan = &self.session.plan;
        if let Some(unit) = plan.unit.as_ref().filter(|_| !self.calls.is_found()) {
            return Some(Missing::Function(unit.function.clone()));
        }
        [(&plan.from, &self.addresses.from), (&plan.until, &self.addresses.until)]
            .into_iter()
            .filter_map(|(place, addresses)| Some((place.as_ref()?, addresses)))
            .find(|(place, addresses)| place.instructions().is_none() && addresses.is_empty())
            .map(|(place, _)| Missing::Place(place.clone()))
    }

    /// The session that it records for.
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whether there is nothing more to record, and all that was recorded is handed on.
    pub(super) fn is_over(&self) -> bool {
        self.session.state() == State::Over && !self.is_recording
    }

    /// The thread ends, or is no longer recorded.
    pub(super) fn end(&mut self) {
        if let Some(number) = self.unit.take() {
            self.mark(Mark::UnitLeft(number));
        }
        self.flush();
        self.session.add_instructions(std::mem::take(&mut self.instructions));
    }

    /// Brings everything to the file.
    fn flush(&mut self) {
        self.flush_records();
        if let Some(feed) = self.feed.take() {
            match feed.finish() {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => self.fail(error),
            }
        }
    }

    #[cold]
    fn fail(&mut self, error: io::Error) {
        self.has_failed = true;
        self.session.fail(error);
        // Nobody need go on recording.
        host::kick_self();
    }

    fn mark(&mut self, mark: Mark) {
        self.piece.push(Event::Mark(mark).word());
    }

    /// Hands the piece on.
    fn flush_records(&mut self) {
        if self.piece.is_empty() || self.has_failed {
            return self.piece.clear();
        }
        if let Some(delivery) = self.session.delivery() {
            let thread = *self.number.get_or_insert_with(|| delivery.next_thread());
            if let Err(error) = delivery.flush(thread, &mut self.piece) {
                self.fail(error);
            }
            return;
        }
        let stream = &mut self.stream;
        let process = &self.session.process;
        let mut feed = self
            .feed
            .take()
            .unwrap_or_else(|| Encoder::new(stream.take().unwrap_or_else(|| StreamWriter::new(process))));
        match feed.send(std::mem::take(&mut self.piece)) {
            Ok(Some(empty)) => (self.piece, self.feed) = (empty, Some(feed)),
            Ok(None) => match feed.finish() {
                Ok(_) => {}
                Err(error) => self.fail(error),
            },
            Err(error) => self.fail(error),
        }
    }

    /// What is told next is of the blocks of a cache: another one than before, if the observer has turned.
    fn follow_cache(&mut self, cache: &BlockCache) {
        if self.cache != Some(cache.number()) {
            self.cache = Some(cache.number());
            self.ids.clear();
            self.has_same_numbers = true;
        }
    }

    /// Finds the number of a block in the trace.
    #[cold]
    fn define_block(&mut self, id: BlockId, block: &Block) -> io::Result<()> {
        let number = self.define(block.address, &block.words)?;
        if self.ids.len() <= id as usize {
            self.ids.resize(id as usize + 1, (UNKNOWN, 0));
        }
        self.ids[id as usize] = (number, block.words.len() as u32);
        self.has_same_numbers &= number == id;
        Ok(())
    }

    /// Learns the blocks that the cache has now. In its order they get its numbers, if no other thread has blocks.
    fn define_new(&mut self, cache: &BlockCache) -> io::Result<()> {
        let mut more = cache.blocks().iter().enumerate().skip(self.ids.len());
        more.try_for_each(|(id, block)| self.define_block(id as BlockId, block))
    }

    /// The number in the trace of these instructions at this address.
    fn define(&self, address: u64, words: &[u32]) -> io::Result<BlockId> {
        let mut number = None;
        let mut mapped = None;
        for one in &self.images {
            let image = self.session.image(&one.0, one.1.as_deref());
            // What was mapped last is there.
            if (one.0.start..one.0.end).contains(&address) {
                (number, mapped) = (Some(image), Some(one));
            }
        }
        let entry = events::Block { address, words: words.to_vec(), image: number };
        self.session.process.block(entry, || function(mapped?, number?, address))
    }

    /// Delivers records to a consumer: as they are, if nothing in them need be changed.
    fn deliver(&mut self, records: &[u64], cache: &BlockCache) -> io::Result<()> {
        self.define_new(cache)?;
        let mut records = records;
        if !self.has_same_numbers || self.left.is_some() || self.before_from > 0 {
            self.add(records, cache)?;
            records = &[];
        }
        let Some(delivery) = self.session.delivery() else { return Ok(()) };
        let thread = *self.number.get_or_insert_with(|| delivery.next_thread());
        delivery.deliver(thread, &mut self.piece, records)
    }

    /// Adds records to the piece, blocks by their numbers in the trace.
    fn add(&mut self, records: &[u64], cache: &BlockCache) -> io::Result<()> {
        let mut at = 0;
        while let Some(&word) = records.get(at) {
            let Event::Block(id) = Event::new(word) else {
                return Err(io::Error::other("a record does not begin with a block"));
            };
            let block = cache.block(id);
            if self.ids.get(id as usize).is_none_or(|known| known.0 == UNKNOWN) {
                self.define_block(id, block)?;
            }
            let (number, instructions) = self.ids[id as usize];
            let values = if self.session.plan.values { block.values().count() } else { 0 };
            let record = &records[at + 1..at + 1 + block.accesses as usize + values];
            at += 1 + record.len();
            let wanted = self.wanted_of(instructions);
            if wanted.len() == instructions as usize {
                self.piece.push(Event::Block(number).word());
                self.piece.extend_from_slice(record);
            } else if !wanted.is_empty() {
                self.add_part(block, wanted.start as usize..wanted.end as usize, record)?;
            }
            self.instructions += wanted.len() as u64;
            if self.is_cut {
                break;
            }
        }
        Ok(())
    }

    /// Which of so many instructions that follow each other are to be recorded: recording can begin and end in the
    /// middle of a block.
    #[inline]
    fn wanted_of(&mut self, instructions: u32) -> Range<u32> {
        let first = self.before_from.min(instructions.into()) as u32;
        self.before_from -= u64::from(first);
        let mut end = instructions;
        if let Some(left) = &mut self.left {
            let count = (*left).min((instructions - first).into()) as u32;
            *left -= u64::from(count);
            end = first + count;
            self.is_cut |= end < instructions;
        }
        first..end
    }

    /// Adds a part of a block's record, which is a block of its own in the trace.
    #[cold]
    fn add_part(&mut self, block: &Block, part: Range<usize>, record: &[u64]) -> io::Result<()> {
        let number = self.define(block.address + 4 * part.start as u64, &block.words[part.clone()])?;
        let before = |end: usize| Shape::new(&block.words[..end], self.session.plan.values);
        let (before, until) = (before(part.start), before(part.end));
        let (addresses, values) = record.split_at(block.accesses as usize);
        self.piece.push(Event::Block(number).word());
        self.piece.extend_from_slice(&addresses[before.accesses as usize..until.accesses as usize]);
        self.piece.extend_from_slice(&values[before.values as usize..until.values as usize]);
        Ok(())
    }

    /// The interest while nothing is recorded.
    pub(super) fn idle_level(&self) -> InstrumentationLevel {
        let plan = &self.session.plan;
        match plan.from.as_ref().and_then(|place| place.instructions()) {
            Some(_) if self.session.state() == State::Before => InstrumentationLevel::Limited,
            _ => InstrumentationLevel::Instructions,
        }
    }

    /// Adds what became of the heap, in its place among what other threads do.
    fn add_heap(&mut self) {
        let Some(heap) = self.heap.as_mut().filter(|heap| !heap.marks.is_empty()) else { return };
        let marks = std::mem::take(&mut heap.marks);
        let is_live = self.session.delivery().is_some();
        if !is_live {
            self.mark(Mark::Order(self.order));
            self.order = self.session.next_order();
        }
        marks.into_iter().for_each(|mark| self.mark(mark));
        if is_live || self.piece.len() >= PIECE {
            self.flush_records();
        }
    }

    /// All that was to be recorded is. That was not known when the marks were made that wait: a unit has not ended of
    /// which something was left out, and no other one begins.
    fn cut_units(&mut self) {
        let (is_cut, mut begins) = (self.is_cut, false);
        self.marks.retain_mut(|mark| {
            match *mark {
                Mark::UnitEnds(number) if is_cut => *mark = Mark::UnitLeft(number),
                Mark::UnitBegins(_) => begins = true,
                _ => {}
            }
            !matches!(mark, Mark::UnitBegins(_))
        });
        if begins {
            self.unit = None;
        }
    }

    /// Follows the program from before a block: whether the block is to be recorded.
    fn follow(&mut self, block: &Block, cpu: &Cpu) -> bool {
        let (session, addresses) = (&*self.session, &self.addresses);
        let plan = &session.plan;
        if session.state() == State::Before {
            let number = plan.from.as_ref().and_then(|place| place.instructions());
            let is_late = number.is_some_and(|number| cpu.instructions + block.steps.len() as u64 > number);
            if is_late || addresses.from.contains(&block.address) {
                session.set_state(State::Active);
                // Units begin where their function does.
                let number = number.filter(|_| plan.unit.is_none());
                self.before_from = number.map_or(0, |number| number.saturating_sub(cpu.instructions));
            }
        }
        let is_end = self.left == Some(0) || self.is_recording && addresses.until.contains(&block.address);
        if is_end && session.state() == State::Active {
            session.set_state(State::Over);
        }
        let is_active = session.state() == State::Active;
        let Some(unit) = &plan.unit else { return is_active };
        let change = self.calls.enter(block, cpu, || is_active && !unit.is_over(session.units()));
        if let Some(ended) = change.ended
            && let Some(number) = self.unit.take()
        {
            let mark = if ended.returned { Mark::UnitEnds } else { Mark::UnitLeft };
            self.marks.push(mark(number));
            if unit.is_over(number + 1) {
                session.set_state(State::Over);
            }
        }
        if change.begins {
            let number = session.next_unit();
            if unit.wants(number) {
                self.unit = Some(number);
                self.marks.extend([Mark::Gap, Mark::UnitBegins(number)]);
            }
        }
        if is_end && let Some(number) = self.unit.take() {
            self.marks.push(Mark::UnitLeft(number));
        }
        self.unit.is_some()
    }
}

/// The function of an image that an address belongs to.
fn function((loaded, file): &Mapped, image: u32, address: u64) -> Option<trace::Function> {
    let function = file.as_ref()?.function_at(address.wrapping_sub(loaded.bias))?;
    let (name, size) = (function.name.clone(), function.size);
    Some(trace::Function { name, image, address: function.address.wrapping_add(loaded.bias), size })
}
