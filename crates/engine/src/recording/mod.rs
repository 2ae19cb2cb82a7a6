//! Records traces: of a whole program, between two locations, or of units of work, from its start or after attaching
//! (`attach`). Parts that are not recorded run nearly as fast as without recording.

mod attach;
mod delivery;
mod encoder;
mod heap;
mod mappings;
mod plan;
mod recorded;
mod session;
mod tracer;

use std::io;
use std::sync::{Arc, Mutex};

use events::{BlockId, Consumer, HitFilter, LoadedImage, ProcessEnd};
use trace::Writer;

pub use self::attach::{AttachError, AttachTarget, Attached, IsEnough};
use self::attach::{AttachServer, AttachedSession, CountingThread};
pub use self::delivery::{AttachedConsumers, ConsumerOfFork, ForkedConsumer, ForkedProcess};
pub use self::plan::{ClassPlan, Missing, Plan, UnitPlan};
pub use self::recorded::Recorded;
use self::session::{RecordingSession, RecordingState};
use self::tracer::Tracer;
use crate::platform::Platform;
use guest::{BlockCache, Debugged, DecodedBlock, Instrumentation, InstrumentationLevel, Observer};
use guest_memory::Memory;

/// The observer that records a thread, if a recording is active.
pub struct Recorder {
    images: Vec<LoadedImage>,
    tracer: Option<Tracer>,
    /// Counts for a client that has attached.
    counting: Option<CountingThread>,
    /// The level of instrumentation returned last.
    level: InstrumentationLevel,
    /// Accepts requests to attach.
    attach_server: Option<Arc<AttachServer>>,
    /// The number of the last attach session that this thread has seen.
    session_number: u64,
    /// The value of [`Instrumentation::session`] when a level was returned last.
    session: u64,
}

impl Recorder {
    /// Records a program into a trace that has been begun.
    pub fn new(plan: Plan, writer: Arc<Writer>) -> io::Result<Recorder> {
        let tracer = Tracer::new(RecordingSession::new(plan, writer)?, &[]);
        Ok(Recorder::with(Some(tracer), None, 0, Vec::new()))
    }

    /// Reports the planned part of the execution to a consumer while the program runs: on the program's threads or,
    /// if `is_parallel`, on a thread of its own. Forked processes are reported to consumers of their own, or not at
    /// all. The dictionary is written to a trace that has been begun, which has no records.
    pub fn live(
        plan: Plan,
        writer: Arc<Writer>,
        consumer: Arc<Mutex<dyn Consumer>>,
        is_parallel: bool,
        forked: Option<Arc<dyn ForkedConsumer>>,
    ) -> io::Result<Recorder> {
        let tracer = Tracer::new(RecordingSession::live(plan, writer, consumer, is_parallel, forked)?, &[]);
        Ok(Recorder::with(Some(tracer), None, 0, Vec::new()))
    }

    /// Records nothing until another process calls [`attach`]. The program has these arguments, and runs on this
    /// processor model. A process that calls [`AttachTarget::observe`] gets what `consumers` report to it.
    pub fn idle(
        arguments: Vec<String>,
        model: isa::Processors,
        consumers: Arc<dyn AttachedConsumers>,
    ) -> Recorder {
        let server = AttachServer::new(arguments, model, consumers);
        Recorder::with(None, Some(Arc::new(server)), 0, Vec::new())
    }

    fn with(
        tracer: Option<Tracer>,
        attach_server: Option<Arc<AttachServer>>,
        session_number: u64,
        images: Vec<LoadedImage>,
    ) -> Recorder {
        let level = tracer.as_ref().map_or(InstrumentationLevel::Off, Tracer::idle_level);
        let recorder =
            Recorder { images, tracer, counting: None, level, attach_server, session_number, session: 0 };
        Recorder { session: recorder.session_in_progress(), ..recorder }
    }

    /// The first symbol of the plan that no image mapped so far has.
    pub fn missing(&self) -> Option<Missing> {
        self.tracer.as_ref().and_then(Tracer::missing)
    }

    /// The program has ended: writes everything that was recorded to the file.
    pub fn finish(mut self) -> io::Result<Recorded> {
        let Some(mut tracer) = self.tracer.take() else { return Ok(Recorded::default()) };
        tracer.end();
        let session = tracer.session();
        let delivered = session.finish_delivery();
        match session.failure() {
            Some(error) => Err(error),
            None => delivered.map(|()| session.recorded()),
        }
    }

    /// The number of the session that observes the thread, or 0.
    fn session_in_progress(&self) -> u64 {
        let is_observed = self.tracer.is_some() || self.counting.as_ref().is_some_and(CountingThread::is_on);
        if is_observed { self.session_number } else { 0 }
    }

    /// A thread that is sampled without being counted begins or ends to be.
    fn update_samples(&mut self) {
        let Some(counting) = &mut self.counting else { return };
        counting.update_samples();
        if counting.is_done()
            && let Some(attach_server) = &self.attach_server
            && let Some(counting) = self.counting.take()
        {
            attach_server.leave(&AttachedSession::Counting(counting.session));
        }
    }

    /// Checks for new or ended attach sessions.
    fn check_attach_requests(&mut self) {
        let Some(attach_server) = &self.attach_server else { return };
        attach_server.check_requests(&self.images);
        let sessions = attach_server.sessions();
        if sessions != self.session_number {
            self.session_number = sessions;
            (self.tracer, self.counting) = match attach_server.session() {
                Some(AttachedSession::Recording(session)) => (Some(Tracer::new(session, &self.images)), None),
                Some(AttachedSession::Counting(session)) => {
                    (None, CountingThread::new(session, &self.images))
                }
                None => (None, None),
            };
        }
    }
}

impl<G: Platform> Instrumentation<G> for Recorder {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Values;

    const CHANGES_LEVEL: bool = true;

    fn initial_level(&self) -> InstrumentationLevel {
        self.level
    }

    fn level(&mut self, block: &DecodedBlock<G>, cpu: &G, memory: &Memory) -> Option<InstrumentationLevel> {
        self.check_attach_requests();
        let counts = self.counting.as_mut().is_some_and(|counting| counting.continues(cpu.executed()));
        self.update_samples();
        let (level, has_news) = match &mut self.tracer {
            Some(tracer) => tracer.level(block, cpu, memory),
            None if counts && self.counting.as_ref().is_some_and(CountingThread::is_counted) => {
                (InstrumentationLevel::Counts, false)
            }
            None => (InstrumentationLevel::Off, false),
        };
        let session = self.session_in_progress();
        let turns = has_news || (level, session) != (self.level, self.session);
        (self.level, self.session) = (level, session);
        turns.then_some(level)
    }

    fn session(&self) -> u64 {
        self.session_in_progress()
    }

    #[inline]
    fn is_level_due(&self) -> bool {
        let Some(attach_server) = &self.attach_server else { return false };
        attach_server.sessions() != self.session_number
            || self.counting.as_ref().is_some_and(|counting| counting.session.is_over())
            || self.tracer.as_ref().is_some_and(|tracer| tracer.session().state() == RecordingState::Over)
    }

    fn hit_filter(&self) -> Option<&HitFilter> {
        self.tracer.as_ref()?.hit_filter()
    }

    fn first_instruction(&self, id: BlockId) -> u32 {
        self.tracer.as_ref().map_or(0, |tracer| tracer.first_instruction(id))
    }

    fn instruction_limit(&self) -> u64 {
        let counted = || self.counting.as_ref().map_or(u64::MAX, CountingThread::instruction_limit);
        self.tracer.as_ref().map_or_else(counted, Tracer::instruction_limit)
    }

    fn must_report(&self, block: &DecodedBlock<G>) -> bool {
        let counts = |counting: &CountingThread| counting.counter.must_report(block);
        self.tracer.as_ref().is_some_and(|tracer| tracer.must_report(block))
            || self.counting.as_ref().is_some_and(counts)
    }

    fn requires_recompilation(&mut self) -> bool {
        let counts = |counting: &mut CountingThread| {
            guest::Instrumentation::<G>::requires_recompilation(&mut counting.counter)
        };
        self.tracer.as_mut().is_some_and(Tracer::requires_recompilation)
            || self.counting.as_mut().is_some_and(counts)
    }

    fn block_boundaries(&self) -> &[u64] {
        self.tracer.as_ref().map_or(&[], Tracer::block_boundaries)
    }
}

impl<G: Platform> Debugged<G> for Recorder {}

impl<G: Platform> Observer<G> for Recorder {
    #[inline(always)]
    fn enter(&mut self, id: BlockId, cache: &BlockCache<G>, cpu: &G, memory: &Memory) {
        if let Some(counter) = self.counting.as_mut().and_then(CountingThread::active) {
            counter.enter(id, cache, cpu, memory);
        }
    }

    fn truncated(&mut self, entered: BlockId, executed: Option<(BlockId, &DecodedBlock<G>)>) {
        if let Some(counter) = self.counting.as_mut().and_then(CountingThread::active) {
            counter.truncated(entered, executed);
        }
    }

    fn leaves_level(&mut self, cache: &BlockCache<G>) {
        if let Some(counting) = &mut self.counting {
            counting.leaves_level(cache);
        }
    }

    fn enters_level(&mut self, cache: &BlockCache<G>) {
        if let Some(counting) = &mut self.counting {
            counting.enters_level(cache);
        }
    }

    fn compiled(&mut self, cache: &BlockCache<G>) {
        if let Some(counter) = self.counting.as_mut().and_then(CountingThread::active) {
            counter.compiled(cache);
        }
    }

    fn discarding(&mut self, cache: &BlockCache<G>) {
        if let Some(counter) = self.counting.as_mut().and_then(CountingThread::active) {
            counter.discarding(cache);
        }
    }

    fn define_blocks(&mut self, cache: &BlockCache<G>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.define_all(cache);
        }
    }

    fn collect_counts(&mut self, cache: &BlockCache<G>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.collect_counts(cache);
        }
    }

    fn thread(&self) -> Recorder {
        let tracer = self.tracer.as_ref().map(Tracer::thread);
        let counting = self.counting.as_ref().map(CountingThread::thread);
        let recorder =
            Recorder::with(tracer, self.attach_server.clone(), self.session_number, self.images.clone());
        let recorder = Recorder { counting, ..recorder };
        Recorder { session: recorder.session_in_progress(), ..recorder }
    }

    fn executed(&mut self, records: &[u64], cache: &BlockCache<G>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.executed(records, cache);
        }
    }

    fn system_call(&mut self, number: u32) {
        if let Some(tracer) = &mut self.tracer {
            tracer.system_call::<G>(number);
        }
        if let Some(counter) = self.counting.as_mut().and_then(CountingThread::active) {
            Observer::<G>::system_call(counter, number);
        }
    }

    fn discontinuity(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.discontinuity();
        }
    }

    fn replaced(&mut self, cpu: &G, cache: &BlockCache<G>, is_same_guest: bool) {
        if let Some(counting) = &mut self.counting {
            counting.replaced(cpu, cache, is_same_guest);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.replaced(is_same_guest);
        }
        if !is_same_guest {
            // What executes the other guest asks for the level at its first block.
            self.level = self.tracer.as_ref().map_or(InstrumentationLevel::Off, Tracer::idle_level);
        }
    }

    fn resumed(&mut self, memory: &Memory) {
        // What a client requested has ended.
        if let Some(attach_server) = &self.attach_server
            && let Some(counting) = self.counting.take_if(|counting| counting.is_done())
        {
            attach_server.leave(&AttachedSession::Counting(counting.session));
        }
        if let Some(counter) = self.counting.as_mut().and_then(CountingThread::active) {
            counter.begin_samples();
        }
        let Some(tracer) = &mut self.tracer else { return };
        tracer.resumed(memory);
        if let Some(attach_server) = &self.attach_server
            && tracer.is_over()
        {
            tracer.end();
            attach_server.leave(&AttachedSession::Recording(tracer.session().clone()));
            self.tracer = None;
        }
    }

    fn mapped(&mut self, image: &LoadedImage) {
        if let Some(tracer) = &mut self.tracer {
            tracer.mapped(image);
        }
        if let Some(counting) = &mut self.counting {
            counting.counter.add_image(image);
        }
        self.images.push(image.clone());
    }

    fn exits(&mut self, how: ProcessEnd, cpu: &G, memory: &Memory, cache: &BlockCache<G>) {
        if let Some(mut counting) = self.counting.take() {
            counting.counter.exits(how, cpu, memory, cache);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.exits(how);
        }
    }

    fn ended(&mut self, cpu: &G, memory: &Memory, cache: &BlockCache<G>) {
        if let Some(mut counting) = self.counting.take() {
            counting.counter.ended(cpu, memory, cache);
        }
        if let Some(mut tracer) = self.tracer.take() {
            tracer.end();
        }
        self.attach_server = None;
    }

    fn forked(&mut self, ordinal: u32, cache: &BlockCache<G>) {
        if let Some(counting) = &mut self.counting {
            counting.counter.forked(ordinal, cache);
            counting.forked();
        }
        if let Some(mut tracer) = self.tracer.take() {
            if tracer.session().delivery().is_some() {
                // What is filtered may change.
                host::kick_self();
            }
            match tracer.forked(ordinal) {
                true => self.tracer = Some(tracer),
                // The tracer is leaked, since the consumer's thread may have held its locks.
                false => std::mem::forget(tracer),
            }
        }
        if let Some(attach_server) = &self.attach_server {
            let recording = self.tracer.as_ref().map(|it| AttachedSession::Recording(it.session().clone()));
            let counting = self.counting.as_ref().map(|it| AttachedSession::Counting(it.session.clone()));
            let session = recording.or(counting);
            self.attach_server = Some(Arc::new(attach_server.forked(self.session_number, session)));
        }
    }
}
