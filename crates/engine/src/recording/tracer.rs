//! Records a thread for one session.

mod observer;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use events::record::{Event, Mark, RecordShape};
use events::{BlockId, LoadedImage};
use image::Image;
use trace::StreamWriter;

use super::encoder::{BUFFER_WORDS, RecordBuffer, ThreadEncoder};
use super::heap::Allocations;
use super::plan::{Missing, PlanAddresses};
use super::session::{RecordingSession, RecordingState};
use crate::calls::{Ended, ThreadUnits};
use crate::lock;
use crate::objects::{ObjectCalls, StructureSites};
use crate::platform::Platform;
use guest::{BlockCache, DecodedBlock, InstrumentationLevel};
use guest_memory::Memory;
use isa::InstructionSet;

/// The number of a block that has no number in the trace yet.
const UNKNOWN: BlockId = BlockId::MAX;

/// An image as it was mapped, and its file if that can be read.
type Mapped = (LoadedImage, Option<Arc<Image>>);

/// Records a thread.
pub(super) struct Tracer {
    session: Arc<RecordingSession>,
    addresses: PlanAddresses,
    calls: ThreadUnits,
    /// Allocations, if the plan records the heap.
    heap: Option<Allocations>,
    /// Of a program that ran before it was recorded: where to find what it has allocated, until that is recorded.
    structures: Option<StructureSites>,
    /// Calls that are for objects, if the plan has rules for those.
    objects: Option<ObjectCalls>,
    /// The number of the recorded unit.
    unit: Option<u64>,
    images: Vec<Mapped>,
    is_recording: bool,
    /// If the plan's `until` is a number of instructions: how many remain to be recorded.
    remaining: Option<u64>,
    /// An instruction after the last of those was executed.
    is_truncated: bool,
    /// If the plan's `from` is a number of instructions: how many of the next ones to skip.
    to_skip: u64,
    /// The number of the cache to which `ids` refers.
    cache: Option<u64>,
    /// By the cache's block number: the trace's number, and the number of instructions.
    ids: Vec<(BlockId, u32)>,
    /// Whether the trace's block numbers equal the cache's.
    has_same_numbers: bool,
    /// Records that have not been sent to the encoder or the consumer.
    buffer: RecordBuffer,
    /// The thread's number for the consumer, once it has delivered records.
    number: Option<u32>,
    /// The stream in the file, while no encoder has it.
    stream: Option<StreamWriter>,
    encoder: Option<ThreadEncoder>,
    /// An error occurred: nothing is recorded any more.
    has_failed: bool,
    /// Marks to record after everything executed so far.
    marks: Vec<Mark>,
    /// The order number of the records that come next.
    order: u64,
    /// Number of instructions recorded.
    instructions: u64,
}

impl Tracer {
    /// A tracer of a thread whose process has mapped these images so far.
    pub(super) fn new(session: Arc<RecordingSession>, images: &[LoadedImage]) -> Tracer {
        let plan = &session.plan;
        let calls = match (&plan.unit, &plan.classes) {
            (Some(unit), classes) => {
                let rules = classes.as_ref().map_or(&[][..], |classes| &classes.rules);
                ThreadUnits::new(std::slice::from_ref(&unit.function), rules)
            }
            (None, Some(classes)) => ThreadUnits::new(&classes.functions, &classes.rules),
            (None, None) => ThreadUnits::default(),
        };
        let addresses = PlanAddresses::new(plan);
        let heap = plan.heap.then(Allocations::default);
        let objects = (!plan.objects.is_empty()).then(|| ObjectCalls::new(plan.objects.as_slice().into()));
        let structures = (plan.heap && !plan.structures.is_empty()).then(StructureSites::default);
        let mut tracer =
            Tracer { heap, structures, objects, ..Tracer::of(session, addresses, calls, Vec::new()) };
        images.iter().for_each(|image| tracer.mapped(image));
        tracer
    }

    fn of(
        session: Arc<RecordingSession>,
        addresses: PlanAddresses,
        calls: ThreadUnits,
        images: Vec<Mapped>,
    ) -> Tracer {
        Tracer {
            remaining: session.plan.until.as_ref().and_then(|location| location.instructions()),
            session,
            addresses,
            calls,
            heap: None,
            structures: None,
            objects: None,
            unit: None,
            images,
            is_recording: false,
            is_truncated: false,
            to_skip: 0,
            cache: None,
            ids: Vec::new(),
            has_same_numbers: true,
            buffer: RecordBuffer::default(),
            number: None,
            stream: None,
            encoder: None,
            has_failed: false,
            marks: Vec::new(),
            order: 0,
            instructions: 0,
        }
    }

    /// The first symbol of the plan that no image mapped so far has.
    pub(super) fn missing(&self) -> Option<Missing> {
        let plan = &self.session.plan;
        if let Some(function) = self.calls.missing() {
            return Some(Missing::Function(function.into()));
        }
        [(&plan.from, &self.addresses.from), (&plan.until, &self.addresses.until)]
            .into_iter()
            .filter_map(|(location, addresses)| Some((location.as_ref()?, addresses)))
            .find(|(location, addresses)| location.instructions().is_none() && addresses.is_empty())
            .map(|(location, _)| Missing::Location(location.clone()))
    }

    /// The session to which it belongs.
    pub(super) fn session(&self) -> &Arc<RecordingSession> {
        &self.session
    }

    /// Whether recording has ended and all records were flushed.
    pub(super) fn is_over(&self) -> bool {
        self.session.state() == RecordingState::Over && !self.is_recording
    }

    /// The thread ends, or its recording does.
    pub(super) fn end(&mut self) {
        self.leave_unit();
        self.flush();
        self.session.add_instructions(std::mem::take(&mut self.instructions));
    }

    /// The open unit is recorded no more.
    fn leave_unit(&mut self) {
        let Some(number) = self.unit.take() else { return };
        let ended = self.calls.end(false);
        let mark = match ended.filter(|_| self.session.plan.classes.is_some()) {
            Some(ended) => {
                self.report_class(number, &ended);
                Mark::UnitEnds(number)
            }
            None => Mark::UnitCut(number),
        };
        self.mark(mark);
    }

    /// Reports the class of a unit, if it is wanted, before the mark of its end.
    fn report_class(&self, number: u64, ended: &Ended) {
        let plan = &self.session.plan;
        let Some(classes) = &plan.classes else { return };
        let function = match &plan.unit {
            Some(unit) => &unit.function,
            None => &classes.functions[ended.unit as usize],
        };
        let class = ended.class.as_deref().unwrap_or(function);
        match self.session.delivery() {
            Some(delivery) => delivery.unit_class(number, class),
            None => self.session.process.add_unit_class(number, class),
        }
    }

    /// Writes all records to the file, and waits until they are written.
    fn flush(&mut self) {
        self.flush_records();
        if let Some(encoder) = self.encoder.take() {
            match encoder.finish() {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => self.fail(error),
            }
        }
    }

    #[cold]
    fn fail(&mut self, error: io::Error) {
        self.has_failed = true;
        self.session.fail(error);
        // Makes the thread stop recording.
        host::kick_self();
    }

    fn mark(&mut self, mark: Mark) {
        self.buffer.push(Event::Mark(mark).word());
    }

    /// Sends the buffered records to the consumer or the encoder.
    fn flush_records(&mut self) {
        if self.buffer.is_empty() || self.has_failed {
            return self.buffer.clear();
        }
        if let Some(delivery) = self.session.delivery() {
            let thread = *self.number.get_or_insert_with(|| delivery.next_thread());
            if let Err(error) = delivery.flush(thread, &mut self.buffer) {
                self.fail(error);
            }
            return;
        }
        let stream = &mut self.stream;
        let process = &self.session.process;
        let mut encoder = self.encoder.take().unwrap_or_else(|| {
            ThreadEncoder::new(stream.take().unwrap_or_else(|| StreamWriter::new(process)))
        });
        match encoder.send(std::mem::take(&mut self.buffer)) {
            Ok(Some(empty)) => (self.buffer, self.encoder) = (empty, Some(encoder)),
            Ok(None) => match encoder.finish() {
                Ok(_) => {}
                Err(error) => self.fail(error),
            },
            Err(error) => self.fail(error),
        }
    }

    /// Resets the block numbers if the next records refer to another cache, after a change of level.
    fn follow_cache<G: Platform>(&mut self, cache: &BlockCache<G>) {
        if self.cache != Some(cache.number()) {
            self.cache = Some(cache.number());
            self.ids.clear();
            self.has_same_numbers = true;
        }
    }

    /// Finds the number of a block in the trace.
    #[cold]
    fn define_block<G: Platform>(&mut self, id: BlockId, block: &DecodedBlock<G>) -> io::Result<()> {
        let number = self.number_of_block(G::INSTRUCTION_SET, block.address, &block.words)?;
        if self.ids.len() <= id as usize {
            self.ids.resize(id as usize + 1, (UNKNOWN, 0));
        }
        self.ids[id as usize] = (number, block.words.len() as u32);
        self.has_same_numbers &= number == id;
        Ok(())
    }

    /// Numbers the cache's new blocks, in its order: the numbers are equal if no other thread defines blocks.
    fn define_new<G: Platform>(&mut self, cache: &BlockCache<G>) -> io::Result<()> {
        let mut more = cache.blocks().iter().enumerate().skip(self.ids.len());
        more.try_for_each(|(id, block)| self.define_block(id as BlockId, block))
    }

    /// The trace's number of a block with these instructions at this address.
    fn number_of_block(
        &self,
        set: &'static dyn InstructionSet,
        address: u64,
        words: &[u32],
    ) -> io::Result<BlockId> {
        let mut number = None;
        let mut mapped = None;
        for one in &self.images {
            let image = self.session.image(&one.0, one.1.as_deref());
            // Images mapped later take precedence.
            if (one.0.start..one.0.end).contains(&address) {
                (number, mapped) = (Some(image), Some(one));
            }
        }
        let entry = events::Block { image: number, ..events::Block::new(set, address, words) };
        self.session.process.block(entry, || function(mapped?, number?, address))
    }

    /// Delivers records to a consumer, without copying them if no word must be changed.
    fn deliver<G: Platform>(&mut self, records: &[u64], cache: &BlockCache<G>) -> io::Result<()> {
        self.define_new(cache)?;
        let mut records = records;
        if !self.has_same_numbers || self.remaining.is_some() || self.to_skip > 0 {
            self.add_records(records, cache)?;
            records = &[];
        }
        let Some(delivery) = self.session.delivery() else { return Ok(()) };
        let thread = *self.number.get_or_insert_with(|| delivery.next_thread());
        delivery.deliver(thread, &mut self.buffer, records)
    }

    /// Appends records to the buffer, with the trace's block numbers.
    fn add_records<G: Platform>(&mut self, records: &[u64], cache: &BlockCache<G>) -> io::Result<()> {
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
            let part = self.recorded_part(instructions);
            if part.len() == instructions as usize {
                self.buffer.push(Event::Block(number).word());
                self.buffer.extend_from_slice(record);
            } else if !part.is_empty() {
                self.add_part(block, part.start as usize..part.end as usize, record)?;
            }
            self.instructions += part.len() as u64;
            if self.is_truncated {
                break;
            }
        }
        Ok(())
    }

    /// Which part of a block with this number of instructions is recorded: recording can begin and end in the middle
    /// of a block.
    #[inline]
    fn recorded_part(&mut self, instructions: u32) -> Range<u32> {
        let first = self.to_skip.min(instructions.into()) as u32;
        self.to_skip -= u64::from(first);
        let mut end = instructions;
        if let Some(remaining) = &mut self.remaining {
            let count = (*remaining).min((instructions - first).into()) as u32;
            *remaining -= u64::from(count);
            end = first + count;
            self.is_truncated |= end < instructions;
        }
        first..end
    }

    /// Appends the record of a part of a block, which is a block of its own in the trace.
    #[cold]
    fn add_part<G: Platform>(
        &mut self,
        block: &DecodedBlock<G>,
        part: Range<usize>,
        record: &[u64],
    ) -> io::Result<()> {
        let (address, words) = (block.address_of(part.start), &block.words[part.clone()]);
        let number = self.number_of_block(G::INSTRUCTION_SET, address, words)?;
        let before =
            |end: usize| RecordShape::new(G::INSTRUCTION_SET, &block.words[..end], self.session.plan.values);
        let (before, until) = (before(part.start), before(part.end));
        let (addresses, values) = record.split_at(block.accesses as usize);
        self.buffer.push(Event::Block(number).word());
        self.buffer.extend_from_slice(&addresses[before.accesses as usize..until.accesses as usize]);
        self.buffer.extend_from_slice(&values[before.values as usize..until.values as usize]);
        Ok(())
    }

    /// The level of instrumentation while nothing is recorded.
    pub(super) fn idle_level(&self) -> InstrumentationLevel {
        let plan = &self.session.plan;
        match plan.from.as_ref().and_then(|location| location.instructions()) {
            Some(_) if self.session.state() == RecordingState::Before => InstrumentationLevel::Limited,
            _ => InstrumentationLevel::Instructions,
        }
    }

    /// Appends the blocks that the process has allocated before, once for all of its threads.
    fn add_structures(&mut self, memory: &Memory) {
        if let (Some(structures), Some(heap)) = (self.structures.take(), &mut self.heap)
            && self.session.is_first_with_structures()
        {
            heap.marks.splice(0..0, structures.blocks(memory).into_iter().map(Mark::Heap));
        }
    }

    /// Appends heap marks, ordered among the events of other threads.
    fn add_heap(&mut self) {
        let Some(heap) = self.heap.as_mut().filter(|heap| !heap.marks.is_empty()) else { return };
        let marks = std::mem::take(&mut heap.marks);
        let is_live = self.session.delivery().is_some();
        if !is_live {
            self.mark(Mark::Order(self.order));
            self.order = self.session.next_order();
        }
        marks.into_iter().for_each(|mark| self.mark(mark));
        if is_live || self.buffer.len() >= BUFFER_WORDS {
            self.flush_records();
        }
    }

    /// Appends marks of what is mapped, if that has changed, ordered among the events of other threads.
    pub(super) fn add_mappings(&mut self, memory: &Memory) {
        if !self.is_recording || self.is_truncated || self.session.delivery().is_some() {
            return;
        }
        let marks = self.session.mappings().changes(memory, &self.session);
        if marks.is_empty() {
            return;
        }
        self.mark(Mark::Order(self.order));
        self.order = self.session.next_order();
        marks.into_iter().for_each(|mark| self.mark(mark));
    }

    /// Appends the marks of objects, which are defined for the consumer first.
    fn add_objects(&mut self) {
        let Some(objects) = self.objects.as_mut().filter(|objects| !objects.marks.is_empty()) else { return };
        let marks = std::mem::take(&mut objects.marks);
        if let Some(delivery) = self.session.delivery() {
            delivery.define_objects(lock(objects.table()).objects());
        }
        let awaits = marks.iter().any(|mark| matches!(mark, Mark::LockAwaited(_)));
        marks.into_iter().for_each(|mark| self.mark(mark));
        // What the holder of a lock executes from now on is executed while this thread waits.
        if awaits && self.session.delivery().is_some() {
            self.flush_records();
        }
    }

    /// The last instruction was recorded. Corrects the marks that were made before that was known: a unit that was
    /// truncated did not end by its return, and no other unit begins.
    fn correct_unit_marks(&mut self) {
        let (is_truncated, mut begins) = (self.is_truncated, false);
        self.marks.retain_mut(|mark| {
            match *mark {
                Mark::UnitEnds(number) | Mark::UnitLeft(number) if is_truncated => {
                    *mark = Mark::UnitCut(number);
                }
                Mark::UnitBegins(_) => begins = true,
                _ => {}
            }
            !matches!(mark, Mark::UnitBegins(_))
        });
        if begins {
            self.unit = None;
        }
    }

    /// Updates the state of the session before a block. Returns whether the block is to be recorded.
    fn update_state<G: Platform>(&mut self, block: &DecodedBlock<G>, cpu: &G, memory: &Memory) -> bool {
        let (session, addresses) = (&*self.session, &self.addresses);
        let plan = &session.plan;
        if session.state() == RecordingState::Before {
            let number = plan.from.as_ref().and_then(|location| location.instructions());
            let is_late =
                number.is_some_and(|number| cpu.executed() + block.instructions.len() as u64 > number);
            if is_late || addresses.from.contains(&block.address) {
                session.set_state(RecordingState::Active);
                // With units, recording begins at the function's entry instead.
                let number = number.filter(|_| plan.unit.is_none());
                self.to_skip = number.map_or(0, |number| number.saturating_sub(cpu.executed()));
            }
        }
        let is_end =
            self.remaining == Some(0) || self.is_recording && addresses.until.contains(&block.address);
        if is_end && session.state() == RecordingState::Active {
            session.set_state(RecordingState::Over);
        }
        let is_active = session.state() == RecordingState::Active;
        let Some(unit) = &plan.unit else {
            if plan.classes.is_some() {
                self.update_class(block, cpu, memory, is_active);
            }
            return is_active;
        };
        let change = self.calls.enter(block, cpu, memory, || is_active && !unit.is_over(session.units()));
        if let Some(ended) = change.ended
            && let Some(number) = self.unit.take()
        {
            self.report_class(number, &ended);
            let mark = if ended.returned { Mark::UnitEnds } else { Mark::UnitLeft };
            self.marks.push(mark(number));
            if unit.is_over(number + 1) {
                session.set_state(RecordingState::Over);
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
            self.marks.push(Mark::UnitCut(number));
        }
        self.unit.is_some()
    }

    /// Updates the open unit, whose class is wanted, before a block.
    fn update_class<G: Platform>(
        &mut self,
        block: &DecodedBlock<G>,
        cpu: &G,
        memory: &Memory,
        is_active: bool,
    ) {
        let change = self.calls.enter(block, cpu, memory, || is_active);
        let ended = change.ended.or_else(|| if is_active { None } else { self.calls.end(false) });
        if let Some(ended) = ended
            && let Some(number) = self.unit.take()
        {
            self.report_class(number, &ended);
            self.marks.push(Mark::UnitEnds(number));
        }
        if change.begins {
            let number = self.session.next_unit();
            self.unit = Some(number);
            self.marks.push(Mark::UnitBegins(number));
        }
    }
}

/// The function of an image that an address belongs to.
fn function((loaded, file): &Mapped, image: u32, address: u64) -> Option<trace::Function> {
    let function = file.as_ref()?.function_at(address.wrapping_sub(loaded.bias))?;
    let (name, size) = (function.name.clone(), function.size);
    Some(trace::Function { name, image, address: function.address.wrapping_add(loaded.bias), size })
}
