//! Records a program that runs already.
//!
//! The client listens at a socket in the program's /tmp that only the program's user can connect to, and sends each thread
//! of the program a SIGBUS with a code of ours and the socket's number ([`host::send_attach_request`]). So a program that can be attached to has no cost and no open
//! socket before. One of its threads connects and receives a request, a line of JSON, with the descriptors of the
//! trace's file and of the counters that several processes share. It answers that it has begun or that it
//! refuses, later that the plan is carried out, and at its end what was recorded (`messages.rs`). The recording ends with
//! the connection.

mod client;
mod connection;
mod counting;
mod listener;
mod messages;
mod session;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use events::LoadedImage;
use trace::{Header, Writer};

pub use self::client::{AttachError, AttachTarget, Attached, IsEnough};
pub(super) use self::connection::{AttachConnection, ConnectionEnd};
pub(super) use self::counting::{CountSession, CountingThread};
pub(super) use self::messages::AttachAnswer;
use self::messages::AttachRequest;
pub(super) use self::session::AttachedSession;
use super::Tracer;
use super::delivery::AttachedConsumers;
use super::plan::Plan;
use super::session::{RecordingSession, RecordingState, SharedCounters};
use crate::lock;

/// An error if no image has a symbol of the plan.
fn check_names(session: &Arc<RecordingSession>, images: &[LoadedImage]) -> io::Result<()> {
    match Tracer::new(session.clone(), images).missing() {
        Some(missing) => Err(io::Error::other(missing.to_string())),
        None => Ok(()),
    }
}

/// Accepts requests to record this process.
pub(super) struct AttachServer {
    /// The program's arguments.
    arguments: Vec<String>,
    /// The model of its processor.
    model: isa::Processors,
    /// Makes consumers for clients that observe it.
    consumers: Arc<dyn AttachedConsumers>,
    session: Mutex<Option<AttachedSession>>,
    /// Number of sessions so far.
    sessions: AtomicU64,
    /// The request of the last one. Every thread of this process gets it.
    request: AtomicU64,
}

impl AttachServer {
    pub(super) fn new(
        arguments: Vec<String>,
        model: isa::Processors,
        consumers: Arc<dyn AttachedConsumers>,
    ) -> AttachServer {
        AttachServer {
            arguments,
            model,
            consumers,
            session: Mutex::new(None),
            sessions: AtomicU64::new(0),
            request: AtomicU64::new(0),
        }
    }

    /// The server of a forked process.
    pub(super) fn forked(&self, sessions: u64, session: Option<AttachedSession>) -> AttachServer {
        AttachServer {
            session: Mutex::new(session),
            sessions: AtomicU64::new(sessions),
            request: AtomicU64::new(self.request.load(Ordering::Relaxed)),
            ..AttachServer::new(self.arguments.clone(), self.model, self.consumers.clone())
        }
    }

    /// Checks for an attach request. The process has mapped these images.
    #[inline]
    pub(super) fn check_requests(&self, images: &[LoadedImage]) {
        if let Some(request) = host::take_attach_request() {
            self.answer(request, images);
        }
    }

    #[cold]
    fn answer(&self, request: u64, images: &[LoadedImage]) {
        let mut current = lock(&self.session);
        if let Some(session) = current.as_ref().filter(|session| session.state() != RecordingState::Over) {
            if session.is_abandoned() {
                session.set_state(RecordingState::Over);
            } else if ![0, self.request.load(Ordering::Relaxed)].contains(&request)
                && let Ok(mut connection) = AttachConnection::connect(request)
            {
                connection.send(&AttachAnswer::Refused("somebody else records or counts it".into()));
            }
            return;
        }
        if request == 0 {
            return;
        }
        let Ok(mut connection) = AttachConnection::connect(request) else { return };
        match self.open(&mut connection, images) {
            Err(reason) => connection.send(&AttachAnswer::Refused(reason.to_string())),
            Ok(session) => {
                self.request.store(request, Ordering::Relaxed);
                connection.send(&AttachAnswer::Begun);
                session.set_connection(connection);
                session.watch();
                *current = Some(session);
                self.sessions.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Begins a session as requested.
    fn open(&self, connection: &mut AttachConnection, images: &[LoadedImage]) -> io::Result<AttachedSession> {
        let (request, [file, numbers]) = connection.request()?;
        Ok(match serde_json::from_str(&request)? {
            AttachRequest::Count(work, number) => {
                AttachedSession::Counting(CountSession::open(file, number, work, images)?)
            }
            AttachRequest::Record(plan, begins) => {
                let header = self.header(&plan, images);
                let writer = Writer::join(file.into(), &header)?;
                let session =
                    RecordingSession::attached(plan, writer.clone(), SharedCounters::map(Some(&numbers))?);
                check_names(&session, images)?;
                // A file into which nothing will be recorded stays empty.
                if begins {
                    writer.begin(&header)?;
                }
                AttachedSession::Recording(session)
            }
            AttachRequest::Observe(plan, number) => {
                let dictionary = rustix::fs::memfd_create("dictionary", rustix::fs::MemfdFlags::CLOEXEC)?;
                let writer =
                    Writer::new(linux_user::out_of_reach(dictionary).into(), &self.header(&plan, images))?;
                let numbers = SharedCounters::map(Some(&numbers))?;
                let session =
                    RecordingSession::observed(plan, writer, numbers, (&*self.consumers, file, number))?;
                check_names(&session, images)?;
                AttachedSession::Recording(session)
            }
        })
    }

    /// The header of a recording of this process.
    fn header(&self, plan: &Plan, images: &[LoadedImage]) -> Header {
        let program = images.first().map(|image| image.path.clone()).unwrap_or_default();
        plan.header(program, self.arguments.clone(), self.model)
    }

    /// Number of sessions so far.
    #[inline]
    pub(super) fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Acquire)
    }

    /// The present session.
    pub(super) fn session(&self) -> Option<AttachedSession> {
        lock(&self.session).clone()
    }

    /// A thread leaves its session.
    pub(super) fn leave(&self, session: &AttachedSession) {
        let mut current = lock(&self.session);
        if current.as_ref().is_some_and(|current| current.is(session)) {
            *current = None;
        }
    }
}
