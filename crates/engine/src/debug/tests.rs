//! What a debugger does while threads begin.

use alpha::debugger::DebuggerHook;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use linux::Thread;

/// A program that goes on, its new threads only when that is ordered.
fn session() -> Arc<Session> {
    let session = Arc::new(Session {
        state: Mutex::new(State::new(PathBuf::new(), 0)),
        changed: Condvar::new(),
        memory: Arc::new(Memory::new().expect("memory")),
        tell: Box::new(|_| {}),
    });
    session.resume(&BTreeMap::new(), &Order::Stay);
    session
}

/// Long enough for a thread to begin on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a thread of the program that begins is let into the guest in so much time.
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

/// It was started before the debugger went.
#[test]
fn a_thread_that_begins_when_the_debugger_has_gone_goes_on() {
    let session = session();
    session.detach();
    assert!(begins(&session, PATIENCE));
}

/// Or else it could not end.
#[test]
fn a_thread_that_begins_when_the_program_ends_goes_on() {
    let session = session();
    Attached::new(&session).end_all(&Cpu::default());
    assert!(begins(&session, PATIENCE));
}
