//! Records traces: of a whole program, between two places, or of units of work, from its start or after attaching
//! (`attach`). Parts that are not recorded run nearly as fast as without recording.

mod attach;
mod delivery;
mod encoder;
mod heap;
mod plan;
mod recorded;
mod session;
mod tracer;

use std::io;
use std::sync::{Arc, Mutex};

use events::{BlockId, Consumer, HitFilter, LoadedImage, ProcessEnd};
use trace::Writer;

use self::attach::AttachServer;
pub use self::attach::{AttachError, Attached, attach};
pub use self::delivery::{ForkedConsumer, ForkedProcess};
pub use self::plan::{Missing, Plan, UnitPlan};
pub use self::recorded::Recorded;
use self::session::Session;
use self::tracer::Tracer;
use crate::platform::{Block, BlockCache, Cpu};
use guest::{Debugged, Instrumentation, InstrumentationLevel, Observer};
use memory::Memory;

/// The observer that records a thread, if a recording is active.
pub struct Recorder {
    images: Vec<LoadedImage>,
    tracer: Option<Tracer>,
    /// The level of instrumentation returned last.
    level: InstrumentationLevel,
    /// Accepts requests to attach.
    attach_server: Option<Arc<AttachServer>>,
    /// The number of the last attach session that this thread has seen.
    session_number: u64,
}

impl Recorder {
    /// Records a program into a trace that has been begun.
    pub fn new(plan: Plan, writer: Arc<Writer>) -> io::Result<Recorder> {
        let tracer = Tracer::new(Session::new(plan, writer)?, &[]);
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
        let tracer = Tracer::new(Session::live(plan, writer, consumer, is_parallel, forked)?, &[]);
        Ok(Recorder::with(Some(tracer), None, 0, Vec::new()))
    }

    /// Records nothing until another process calls [`attach`]. The program has these arguments, and runs on this
    /// processor model.
    pub fn idle(arguments: Vec<String>, model: isa::Cpu) -> Recorder {
        Recorder::with(None, Some(Arc::new(AttachServer::new(arguments, model))), 0, Vec::new())
    }

    fn with(
        tracer: Option<Tracer>,
        attach_server: Option<Arc<AttachServer>>,
        session_number: u64,
        images: Vec<LoadedImage>,
    ) -> Recorder {
        let level = tracer.as_ref().map_or(InstrumentationLevel::Off, Tracer::idle_level);
        Recorder { images, tracer, level, attach_server, session_number }
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

    /// Checks for new or ended attach sessions.
    fn check_attach_requests(&mut self) {
        let Some(attach_server) = &self.attach_server else { return };
        attach_server.check_requests(&self.images);
        let sessions = attach_server.sessions();
        if sessions != self.session_number {
            self.session_number = sessions;
            self.tracer = attach_server.session().map(|session| Tracer::new(session, &self.images));
        }
    }
}

impl Instrumentation<Cpu> for Recorder {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Values;

    const CHANGES_LEVEL: bool = true;

    fn initial_level(&self) -> InstrumentationLevel {
        self.level
    }

    fn level(&mut self, block: &Block, cpu: &Cpu, memory: &Memory) -> Option<InstrumentationLevel> {
        self.check_attach_requests();
        let (level, has_news) = match &mut self.tracer {
            Some(tracer) => tracer.level(block, cpu, memory),
            None => (InstrumentationLevel::Off, false),
        };
        let turns = has_news || level != self.level;
        self.level = level;
        turns.then_some(level)
    }

    fn hit_filter(&self) -> Option<&HitFilter> {
        self.tracer.as_ref()?.hit_filter()
    }

    fn first_instruction(&self, id: BlockId) -> u32 {
        self.tracer.as_ref().map_or(0, |tracer| tracer.first_instruction(id))
    }

    fn instruction_limit(&self) -> u64 {
        self.tracer.as_ref().map_or(u64::MAX, Tracer::instruction_limit)
    }

    fn must_report(&self, block: &Block) -> bool {
        self.tracer.as_ref().is_some_and(|tracer| tracer.must_report(block))
    }

    fn requires_recompilation(&mut self) -> bool {
        self.tracer.as_mut().is_some_and(Tracer::requires_recompilation)
    }

    fn block_boundaries(&self) -> &[u64] {
        self.tracer.as_ref().map_or(&[], Tracer::block_boundaries)
    }
}

impl Debugged<Cpu> for Recorder {}

impl Observer<Cpu> for Recorder {
    fn define_blocks(&mut self, cache: &BlockCache) {
        if let Some(tracer) = &mut self.tracer {
            tracer.define_all(cache);
        }
    }

    fn collect_counts(&mut self, cache: &BlockCache) {
        if let Some(tracer) = &mut self.tracer {
            tracer.collect_counts(cache);
        }
    }

    fn thread(&self) -> Recorder {
        let tracer = self.tracer.as_ref().map(Tracer::thread);
        Recorder::with(tracer, self.attach_server.clone(), self.session_number, self.images.clone())
    }

    fn executed(&mut self, records: &[u64], cache: &BlockCache) {
        if let Some(tracer) = &mut self.tracer {
            tracer.executed(records, cache);
        }
    }

    fn system_call(&mut self, number: u32) {
        if let Some(tracer) = &mut self.tracer {
            tracer.system_call(number);
        }
    }

    fn discontinuity(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.discontinuity();
        }
    }

    fn replaced(&mut self, _: &Cpu, _: &BlockCache) {
        if let Some(tracer) = &mut self.tracer {
            tracer.replaced();
        }
    }

    fn resumed(&mut self) {
        let Some(tracer) = &mut self.tracer else { return };
        tracer.resumed();
        // The recording that a client requested has ended.
        if let Some(attach_server) = &self.attach_server
            && tracer.is_over()
        {
            tracer.end();
            attach_server.leave(tracer.session());
            self.tracer = None;
        }
    }

    fn mapped(&mut self, image: &LoadedImage) {
        if let Some(tracer) = &mut self.tracer {
            tracer.mapped(image);
        }
        self.images.push(image.clone());
    }

    fn exits(&mut self, how: ProcessEnd, _: &Cpu, _: &Memory, _: &BlockCache) {
        if let Some(tracer) = &mut self.tracer {
            tracer.exits(how);
        }
    }

    fn ended(&mut self, _: &Cpu, _: &Memory, _: &BlockCache) {
        if let Some(mut tracer) = self.tracer.take() {
            tracer.end();
        }
        self.attach_server = None;
    }

    fn forked(&mut self, ordinal: u32, _: &BlockCache) {
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
            let session = self.tracer.as_ref().map(|tracer| tracer.session().clone());
            self.attach_server = Some(Arc::new(attach_server.forked(self.session_number, session)));
        }
    }
}
