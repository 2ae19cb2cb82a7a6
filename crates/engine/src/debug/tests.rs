//! Tests of a debugger's control over threads that begin.

use guest::DebuggerHook;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::platform::Thread;

/// Starts a program whose new threads run only if `default` is `Order::Run`.
fn session() -> Arc<Session> {
    let session = Arc::new(Session {
        state: Mutex::new(SessionState::new(PathBuf::new(), 0)),
        changed: Condvar::new(),
        memory: Arc::new(crate::platform::reserve_memory().expect("memory")),
        report: Box::new(|_| {}),
    });
    session.resume(&BTreeMap::new(), &Order::Stay);
    session
}

/// Long enough for a thread to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a thread that begins enters guest code within this time.
fn begins(session: &Arc<Session>, patience: Duration) -> bool {
    let (goes_on, has_gone_on) = channel();
    let mut attached = Attached::new(session);
    std::thread::spawn(move || {
        attached.begin(Thread::first().address(), &mut Cpu::default());
        goes_on.send(())
    });
    has_gone_on.recv_timeout(patience).is_ok()
}

#[test]
fn a_new_thread_stays_if_others_are_to() {
    assert!(!begins(&session(), Duration::from_millis(500)));
}

/// The thread was started before the debugger detached.
#[test]
fn a_thread_that_begins_when_the_debugger_has_gone_goes_on() {
    let session = session();
    session.detach();
    assert!(begins(&session, PATIENCE));
}

/// Otherwise it could not end.
#[test]
fn a_thread_that_begins_when_the_program_ends_goes_on() {
    let session = session();
    Attached::new(&session).end_all(&Cpu::default());
    assert!(begins(&session, PATIENCE));
}
