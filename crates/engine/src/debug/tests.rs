//! Tests of a debugger's control over threads that begin or stop.

use guest::DebuggerHook;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use alpha::cpu::Cpu;
use linux_user::Task;

/// Starts a program whose new threads run only if `default` is `Order::Run`.
fn session() -> Arc<DebugSession> {
    let session = Arc::new(DebugSession {
        state: Mutex::new(SessionState::new(crate::guest_of(&isa::Alpha), PathBuf::new(), 0)),
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
fn begins(session: &Arc<DebugSession>, patience: Duration) -> bool {
    let (goes_on, has_gone_on) = channel();
    let mut attached = DebugObserver::new(session);
    std::thread::spawn(move || {
        attached.begin(Task::<Cpu>::first().address(), &mut Cpu::default());
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
    DebugObserver::new(&session).end_all(&Cpu::default());
    assert!(begins(&session, PATIENCE));
}

/// A signal handler is called twice from the same instruction. Once it stops at its second entry, once really before it.
#[test]
fn a_stop_at_a_second_entry_is_over_when_the_thread_is_before_it() {
    let (session, address) = (session(), Task::<Cpu>::first().address());
    let mut cpu = Cpu { pc: 0x1008, ..Cpu::default() };
    let debugged = DebuggedThread::new(address, ThreadRegisters::of(&cpu), Order::Run);
    session.lock().threads.insert(address.id, debugged);
    let mut stop_and_go_on = |pc: u64, second_entry_stop: Option<SecondEntryStop>| {
        cpu.pc = pc;
        session.stop(&mut session.lock(), address.id, &cpu, StopReason::Step, second_entry_stop);
        let registers = session.registers(address.id).expect("it has stopped");
        session.set_registers(address.id, registers.words().to_vec()).expect("it has stopped");
        session.resume(&BTreeMap::new(), &Order::Run);
        drop(session.hold(session.lock(), address.id, &mut cpu));
        (registers.pc(), cpu.pc)
    };
    let at_second_entry = SecondEntryStop::new(0x1004, &Cpu { pc: 0x1008, ..Cpu::default() });
    assert_eq!(stop_and_go_on(0x1008, Some(at_second_entry)), (0x1004, 0x1008));
    assert_eq!(stop_and_go_on(0x1004, None), (0x1004, 0x1004));
}

/// It was in the call that ended it when the program stopped.
#[test]
fn a_thread_that_ends_is_known_until_the_program_is_resumed() {
    let (session, address) = (session(), Task::<Cpu>::first().address());
    session.resume(&BTreeMap::new(), &Order::Run);
    let (ends, has_ended) = channel();
    let (mut attached, mut cpu) = (DebugObserver::new(&session), Cpu::default());
    attached.begin(address, &mut cpu);
    attached.leave_guest(&cpu);
    assert_eq!(session.interrupt(), Some(address.id));
    std::thread::spawn(move || {
        attached.leave();
        ends.send(())
    });
    assert!(has_ended.recv_timeout(Duration::from_millis(500)).is_err());
    assert!(session.registers(address.id).is_ok());
    session.resume(&BTreeMap::new(), &Order::Stay);
    has_ended.recv_timeout(PATIENCE).expect("it ends");
    assert!(session.threads().is_empty());
}
