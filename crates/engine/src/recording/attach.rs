//! Records a program that runs already.
//!
//! Who wants that listens at an abstract socket named after his process and sends each thread of the program
//! a SIGBUS with a code of ours ([`host::send_attach_request`]); so nothing is paid before, and nothing need be open. One
//! of the threads connects and gets a request, a line of JSON, with the descriptors of the trace's file and
//! of the memory that numbers what several processes record. It answers `begun` or `refused: REASON`, later
//! `over` if the plan is carried out, and each process `done INSTRUCTIONS UNITS` or `failed: REASON` at its
//! end. The recording ends when the connection does.

mod client;
mod connection;
mod request;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use events::LoadedImage;
use trace::Writer;

pub use self::client::{AttachError, Attached, attach};
pub(super) use self::connection::{Connection, End};
use self::request::Request;
use super::Tracer;
use super::session::{Session, SharedCounters, State};
use crate::lock;

/// Where those come who want a process recorded that runs already.
pub(super) struct AttachServer {
    /// The program's.
    arguments: Vec<String>,
    /// The processor that runs it.
    model: isa::Cpu,
    session: Mutex<Option<Arc<Session>>>,
    /// How many sessions there were.
    sessions: AtomicU64,
}

impl AttachServer {
    pub(super) fn new(arguments: Vec<String>, model: isa::Cpu) -> AttachServer {
        AttachServer { arguments, model, session: Mutex::default(), sessions: AtomicU64::new(0) }
    }

    /// The desk of a process that this one forked.
    pub(super) fn forked(&self, sessions: u64, session: Option<Arc<Session>>) -> AttachServer {
        let (arguments, model) = (self.arguments.clone(), self.model);
        AttachServer { arguments, model, session: Mutex::new(session), sessions: AtomicU64::new(sessions) }
    }

    /// Looks whether somebody has come, or gone. The process has mapped these images.
    #[inline]
    pub(super) fn attend(&self, images: &[LoadedImage]) {
        if let Some(caller) = host::take_attach_request() {
            self.answer(caller, images);
        }
    }

    #[cold]
    fn answer(&self, caller: u32, images: &[LoadedImage]) {
        let mut current = lock(&self.session);
        if let Some(session) = current.as_ref().filter(|session| session.state() != State::Over) {
            if session.is_abandoned() {
                session.set_state(State::Over);
            } else if caller != 0
                && let Ok(mut line) = Connection::connect(caller)
            {
                line.say("refused: somebody else records it");
            }
            return;
        }
        if caller == 0 {
            return;
        }
        let Ok(mut line) = Connection::connect(caller) else { return };
        match self.open(&mut line, images) {
            Err(reason) => line.say(&format!("refused: {reason}")),
            Ok(session) => {
                line.say("begun");
                session.set_line(line);
                watch(&session);
                *current = Some(session);
                self.sessions.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Begins a session as somebody asks for.
    fn open(&self, line: &mut Connection, images: &[LoadedImage]) -> io::Result<Arc<Session>> {
        let (request, [file, numbers]) = line.request()?;
        let Request { plan, begins } = serde_json::from_str(&request)?;
        let program = images.first().map(|image| image.path.clone()).unwrap_or_default();
        let header = plan.header(program, self.arguments.clone(), self.model);
        let writer = Writer::join(file.into(), plan.values);
        let session = Session::attached(plan, writer.clone(), SharedCounters::map(Some(&numbers))?);
        if let Some(missing) = Tracer::new(session.clone(), images).missing() {
            return Err(io::Error::other(missing.to_string()));
        }
        // A file in which nothing will be recorded stays empty.
        if begins {
            writer.begin(&header)?;
        }
        Ok(session)
    }

    /// How many sessions there were.
    #[inline]
    pub(super) fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Acquire)
    }

    /// The session, if there is one.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        lock(&self.session).clone()
    }

    /// A thread has no more to do with its session.
    pub(super) fn leave(&self, session: &Arc<Session>) {
        let mut current = lock(&self.session);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *current = None;
        }
    }
}

/// Ends the session when the other end of the line does.
fn watch(session: &Arc<Session>) {
    let (Some(ended), session) = (session.line_end(), Arc::downgrade(session)) else { return };
    let body = move || {
        ended.wait();
        if let Some(session) = Weak::upgrade(&session) {
            session.set_state(State::Over);
            drop(session);
            client::summon_family(std::process::id(), 0);
        }
    };
    let spawn = || std::thread::Builder::new().name("attached".into()).spawn(body);
    // Without it the other end must summon us.
    let _ = host::without_signals(spawn);
}
