//! Records a thread for one session.

use std::io;
use std::sync::Arc;

use image::Image;
use trace::record::{Event, Heap, Mark};
use trace::{BlockId, LoadedImage, Lookaside, StreamWriter};

use super::feed::{Feed, PIECE, Piece};
use super::heap::Allocations;
use super::plan::{Addresses, Missing};
use super::session::{Session, State};
use crate::alpha::block::{Block, BlockCache};
use crate::alpha::cpu::Cpu;
use crate::alpha::interpreter::Interest;
use crate::calls::Calls;
use crate::linux;
use crate::memory::Memory;

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
    feed: Option<Feed>,
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
        self.hand_on();
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
        linux::notice();
    }

    fn mark(&mut self, mark: Mark) {
        self.piece.push(Event::Mark(mark).word());
    }

    /// Hands the piece on.
    fn hand_on(&mut self) {
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
            .unwrap_or_else(|| Feed::new(stream.take().unwrap_or_else(|| StreamWriter::new(process))));
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
    fn learn(&mut self, id: BlockId, block: &Block) -> io::Result<()> {
        let mut number = None;
        let mut mapped = None;
        for one in &self.images {
            let image = self.session.image(&one.0, one.1.as_deref());
            // What was mapped last is there.
            if (one.0.start..one.0.end).contains(&block.address) {
                (number, mapped) = (Some(image), Some(one));
            }
        }
        let entry = trace::Block { address: block.address, words: block.words.clone(), image: number };
        let function = || function(mapped?, number?, block.address);
        let number = self.session.process.block(entry, function)?;
        if self.ids.len() <= id as usize {
            self.ids.resize(id as usize + 1, (UNKNOWN, 0));
        }
        self.ids[id as usize] = (number, block.words.len() as u32);
        self.has_same_numbers &= number == id;
        Ok(())
    }

    /// Delivers records to a consumer: as they are, if nothing in them need be changed.
    fn deliver(&mut self, records: &[u64], cache: &BlockCache) -> io::Result<()> {
        self.learn_more(cache)?;
        let mut records = records;
        if !self.has_same_numbers || self.left.is_some() {
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
                self.learn(id, block)?;
            }
            let (number, instructions) = self.ids[id as usize];
            if let Some(left) = &mut self.left {
                if *left == 0 {
                    break;
                }
                *left = left.saturating_sub(instructions.into());
            }
            let values = if self.session.plan.values { block.values().count() } else { 0 };
            let end = at + 1 + block.accesses as usize + values;
            self.piece.push(Event::Block(number).word());
            self.piece.extend_from_slice(&records[at + 1..end]);
            self.instructions += u64::from(instructions);
            at = end;
        }
        Ok(())
    }

    /// The interest while nothing is recorded.
    pub(super) fn watching(&self) -> Interest {
        let plan = &self.session.plan;
        match plan.from.as_ref().and_then(|place| place.instructions()) {
            Some(_) if self.session.state() == State::Before => Interest::Limited,
            _ => Interest::Instructions,
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
            self.hand_on();
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
            }
        } else if session.state() == State::Active
            && (self.left == Some(0) || self.is_recording && addresses.until.contains(&block.address))
        {
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
        self.unit.is_some()
    }
}

/// The function of an image that an address belongs to.
fn function((loaded, file): &Mapped, image: u32, address: u64) -> Option<trace::Function> {
    let function = file.as_ref()?.function_at(address.wrapping_sub(loaded.bias))?;
    let (name, size) = (function.name.clone(), function.size);
    Some(trace::Function { name, image, address: function.address.wrapping_add(loaded.bias), size })
}

/// What an observer hears of.
impl Tracer {
    /// What must be heard of from before a block on; and whether what was executed before must be told first.
    pub(super) fn interest(&mut self, block: &Block, cpu: &Cpu, memory: &Memory) -> (Interest, bool) {
        let is_recorded = self.follow(block, cpu);
        let mut has_news = false;
        if let Some(heap) = self.heap.as_mut().filter(|_| self.session.state() != State::Over) {
            heap.enter(block, cpu, memory);
            has_news = !heap.marks.is_empty();
        }
        if is_recorded && !self.is_recording && self.marks.is_empty() {
            self.marks.push(Mark::Gap);
        }
        self.is_recording = is_recorded;
        let interest = match is_recorded {
            false => self.watching(),
            true if self.session.plan.values => Interest::Values,
            true if self.left.is_none() && self.lookaside().is_some() => Interest::Unusual,
            true => Interest::Accesses,
        };
        (interest, has_news || !self.marks.is_empty())
    }

    /// What is usual for a consumer, if there is one that is told only what is not.
    pub(super) fn lookaside(&self) -> Option<&Lookaside> {
        self.session.delivery()?.lookaside()
    }

    /// Tells the consumer what was usual.
    pub(super) fn counted(&mut self, cache: &BlockCache) {
        self.learn_all(cache);
        let Some(delivery) = self.session.delivery() else { return };
        let mut passed = Vec::new();
        cache.take_executions(|id, executions| passed.push((self.number(id), executions)));
        delivery.passed(&passed);
    }

    /// Makes all blocks of the cache known to the consumer.
    pub(super) fn learn_all(&mut self, cache: &BlockCache) {
        self.follow_cache(cache);
        if let Err(error) = self.learn_more(cache) {
            return self.fail(error);
        }
        if let Some(delivery) = self.session.delivery() {
            delivery.define();
        }
    }

    /// The number that a block's first instruction has for the consumer.
    pub(super) fn first_instruction(&self, id: BlockId) -> u32 {
        self.session.delivery().map_or(0, |delivery| delivery.first_instruction(self.number(id)))
    }

    /// The number of a block in the trace.
    fn number(&self, id: BlockId) -> BlockId {
        self.ids.get(id as usize).map_or(UNKNOWN, |known| known.0)
    }

    /// Learns the blocks that the cache has now. In its order they get its numbers, if no other thread has blocks.
    fn learn_more(&mut self, cache: &BlockCache) -> io::Result<()> {
        let mut more = cache.blocks().iter().enumerate().skip(self.ids.len());
        more.try_for_each(|(id, block)| self.learn(id as BlockId, block))
    }

    pub(super) fn wants(&self, block: &Block) -> bool {
        self.calls.wants(block) || self.addresses.all.contains(&block.address)
    }

    pub(super) fn wants_more(&mut self) -> bool {
        self.calls.wants_more()
    }

    pub(super) fn breaks(&self) -> &[u64] {
        &self.addresses.all
    }

    pub(super) fn limit(&self) -> u64 {
        let plan = &self.session.plan;
        plan.from.as_ref().and_then(|place| place.instructions()).unwrap_or(u64::MAX)
    }

    pub(super) fn thread(&self) -> Tracer {
        if let Some(delivery) = self.session.delivery() {
            delivery.add_thread();
        }
        let addresses = self.addresses.clone();
        let heap = self.heap.as_ref().map(Allocations::thread);
        let tracer = Tracer::of(self.session.clone(), addresses, self.calls.thread(), self.images.clone());
        Tracer { heap, ..tracer }
    }

    pub(super) fn executed(&mut self, records: &[u64], cache: &BlockCache) {
        if self.has_failed {
            return;
        }
        self.follow_cache(cache);
        let is_live = self.session.delivery().is_some();
        let added = if is_live {
            self.deliver(records, cache)
        } else {
            self.mark(Mark::Order(self.order));
            self.add(records, cache)
        };
        if let Err(error) = added {
            self.fail(error);
        }
        if self.left == Some(0) {
            linux::notice();
        }
        self.order = self.session.next_order();
        if !is_live && self.piece.len() >= PIECE {
            self.hand_on();
        }
    }

    pub(super) fn system_call(&mut self, number: u32) {
        /// execve and execveat: what comes after may not be ours.
        const REPLACING: [u32; 2] = [59, 513];
        if self.is_recording {
            self.mark(Mark::SystemCall(number));
        }
        if REPLACING.contains(&number) && self.instructions > 0 {
            self.flush();
        }
    }

    pub(super) fn diverted(&mut self) {
        if self.is_recording {
            self.mark(Mark::Diverted);
        }
    }

    pub(super) fn goes_on(&mut self) {
        self.order = self.session.next_order();
        self.add_heap();
        self.piece.extend(self.marks.drain(..).map(|mark| Event::Mark(mark).word()));
        if self.lookaside().is_some() {
            // Compiled code may tell what is behind them before there is another record.
            self.hand_on();
        }
    }

    pub(super) fn mapped(&mut self, image: &LoadedImage) {
        // An image that cannot be read any more has no symbols.
        let file = Image::open(&image.path).ok().map(Arc::new);
        if let Some(file) = &file {
            self.calls.mapped(image, file);
            self.addresses.mapped(&self.session.plan, image, file);
            if let Some(heap) = &mut self.heap {
                // Whoever hears of callers knows where they are.
                self.session.image(image, Some(file));
                self.addresses.all.extend(heap.mapped(image, file));
            }
        }
        self.images.push((image.clone(), file));
    }

    /// Another program takes the place of this one.
    pub(super) fn replaced(&mut self) {
        if let Some(heap) = &mut self.heap {
            heap.replaced();
        }
    }

    pub(super) fn forked(&mut self) {
        // Nobody feeds from here: the other thread is the parent's.
        std::mem::forget(self.feed.take());
        let session = self.session.forked();
        let (addresses, calls) = (self.addresses.clone(), self.calls.clone());
        let images = std::mem::take(&mut self.images);
        let (is_recording, order) = (self.is_recording, self.order);
        let (parent, mut heap) = (self.session.process.number(), self.heap.take());
        if let Some(heap) = &mut heap {
            heap.marks = vec![Mark::Heap(Heap::Copied(parent))];
        }
        *self = Tracer { is_recording, order, heap, ..Tracer::of(session, addresses, calls, images) };
        // The number is from before the parent goes on.
        self.add_heap();
        if is_recording {
            self.marks.push(Mark::Gap);
        }
    }
}
