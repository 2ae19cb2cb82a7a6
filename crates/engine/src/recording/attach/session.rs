//! The request of a client that attached: a recording, or counts.

use std::sync::{Arc, Weak};

use super::super::session::{RecordingSession, RecordingState};
use super::client;
use super::connection::{AttachConnection, ConnectionEnd};
use super::counting::CountSession;

/// The session of a client.
#[derive(Clone)]
pub(in super::super) enum AttachedSession {
    /// It records.
    Recording(Arc<RecordingSession>),
    /// It counts.
    Counting(Arc<CountSession>),
}

impl AttachedSession {
    /// Whether both are the same session.
    pub(super) fn is(&self, other: &AttachedSession) -> bool {
        match (self, other) {
            (AttachedSession::Recording(one), AttachedSession::Recording(other)) => Arc::ptr_eq(one, other),
            (AttachedSession::Counting(one), AttachedSession::Counting(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub(super) fn state(&self) -> RecordingState {
        match self {
            AttachedSession::Recording(session) => session.state(),
            AttachedSession::Counting(session) if session.is_over() => RecordingState::Over,
            AttachedSession::Counting(_) => RecordingState::Active,
        }
    }

    pub(super) fn set_state(&self, state: RecordingState) {
        match self {
            AttachedSession::Recording(session) => session.set_state(state),
            AttachedSession::Counting(session) if state == RecordingState::Over => session.end(),
            AttachedSession::Counting(_) => {}
        }
    }

    /// Whether the client has ended the session.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            AttachedSession::Recording(session) => session.is_abandoned(),
            AttachedSession::Counting(session) => session.is_abandoned(),
        }
    }

    /// Sets the connection on which the session reports its end.
    pub(super) fn set_connection(&self, connection: AttachConnection) {
        match self {
            AttachedSession::Recording(session) => session.set_connection(connection),
            AttachedSession::Counting(session) => session.set_connection(connection),
        }
    }

    fn connection_end(&self) -> Option<ConnectionEnd> {
        match self {
            AttachedSession::Recording(session) => session.connection_end(),
            AttachedSession::Counting(session) => session.connection_end(),
        }
    }

    /// Ends the session when the connection ends.
    pub(super) fn watch(&self) {
        let Some(ended) = self.connection_end() else { return };
        let session: Box<dyn Fn() -> Option<AttachedSession> + Send> = match self {
            AttachedSession::Recording(session) => {
                let session = Arc::downgrade(session);
                Box::new(move || Weak::upgrade(&session).map(AttachedSession::Recording))
            }
            AttachedSession::Counting(session) => {
                let session = Arc::downgrade(session);
                Box::new(move || Weak::upgrade(&session).map(AttachedSession::Counting))
            }
        };
        let body = move || {
            ended.wait();
            if let Some(session) = session() {
                session.set_state(RecordingState::Over);
                drop(session);
                client::kick_process_tree(std::process::id(), 0);
            }
        };
        // If the thread cannot be started, the client must kick this process.
        let _ = host::spawn("attached", body);
    }
}
