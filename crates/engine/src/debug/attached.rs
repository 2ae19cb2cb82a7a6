//! A debugged thread: the thread's side of the debugger.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use events::BlockId;

use super::{
    Breakpoints, DebugEvent, DebugSession, DebuggedThread, Order, SecondEntryStop, SessionState, StopReason,
    Stopped, ThreadRegisters, ThreadState, WatchedAccesses, Watchpoint,
};
use crate::platform::{Platform, describe};
use guest::{BlockCache, DecodedBlock};
use guest::{
    Debugged, DebuggerHook, InstructionProperties, Instrumentation, InstrumentationLevel, Observer,
    SignalHook,
};
use guest_memory::Memory;
use host::ThreadHandle;
use isa::InstructionSet;

/// The observer of a debugged thread. It observes blocks at breakpoints only, and every instruction while the thread
/// is stepped or has watchpoints.
pub struct DebugObserver {
    /// None after the debugger has detached.
    session: Option<Arc<DebugSession>>,
    thread: i32,
    order: Order,
    /// The resume count for which the order was given.
    resume_count: u64,
    /// An instruction was executed since the order was given.
    has_stepped: bool,
    breakpoints: Arc<Breakpoints>,
    watchpoints: Arc<BTreeSet<Watchpoint>>,
    /// The breakpoints that compiled code was made for, and their addresses in ascending order.
    compiled_breakpoints: Arc<Breakpoints>,
    compiled_addresses: Vec<u64>,
    /// The watched access of the last instruction.
    access: Option<StopReason>,
    /// The reason for which the thread stops.
    reason: Option<StopReason>,
    /// The breakpoint before a function's second entry for which the thread stops at the second entry, if it is
    /// there; and the last breakpoint for which it has stopped so.
    before_entry: Option<u64>,
    passed: Option<u64>,
    /// The end of the last interpreted block. If the thread is at this address it fell through, since the interpreter
    /// calls [`DebugObserver::holds`] before each block.
    fell_through_to: Option<u64>,
}

impl DebugObserver {
    /// The observer of the first thread of a program.
    pub fn new(session: &Arc<DebugSession>) -> DebugObserver {
        DebugObserver::of(Some(session.clone()), session.lock().guest.instruction_set())
    }

    fn of(session: Option<Arc<DebugSession>>, set: &'static dyn InstructionSet) -> DebugObserver {
        let none = Arc::new(Breakpoints::new(set));
        DebugObserver {
            session,
            thread: 0,
            order: Order::default(),
            resume_count: 0,
            has_stepped: false,
            breakpoints: none.clone(),
            watchpoints: Arc::default(),
            compiled_breakpoints: none,
            compiled_addresses: Vec::new(),
            access: None,
            reason: None,
            before_entry: None,
            passed: None,
            fell_through_to: None,
        }
    }

    /// The thread has ended. While the program is stopped, the debugger keeps all threads that it has found: it may resume
    /// one of them alone.
    pub(super) fn leave(&mut self) {
        let Some(session) = &self.session else { return };
        let mut state = session.lock();
        while state.is_held {
            state = session.wait(state);
        }
        state.threads.remove(&self.thread);
        session.changed.notify_all();
    }

    /// Waits until the thread may continue in the guest, and takes its order.
    fn resume<G: Platform>(&mut self, session: &DebugSession, state: MutexGuard<SessionState>, cpu: &mut G) {
        let mut state = session.hold(state, self.thread, cpu);
        if state.is_detached {
            state.threads.remove(&self.thread);
            self.detach::<G>();
            return;
        }
        (self.breakpoints, self.watchpoints) = (state.breakpoints.clone(), state.watchpoints.clone());
        let resume_count = state.resume_count;
        let Some(debugged) = state.threads.get_mut(&self.thread) else { return };
        debugged.thread_state = ThreadState::Guest;
        self.order = debugged.order.clone();
        if let Some(signal) = debugged.signal.take() {
            debugged.sent = Some(signal);
            linux_user::send_to_caller::<G>(signal);
        }
        if resume_count != self.resume_count {
            // A step into a signal handler ends before the handler's first instruction.
            (self.resume_count, self.has_stepped) =
                (resume_count, std::mem::take(&mut debugged.is_signalled));
            self.access = self.access.take().filter(|_| !self.watchpoints.is_empty());
        }
    }

    /// The debugger has detached: the thread runs without restrictions.
    fn detach<G: Platform>(&mut self) {
        (self.session, self.order, self.access) = (None, Order::Run, None);
        self.breakpoints = Arc::new(Breakpoints::new(G::INSTRUCTION_SET));
        self.watchpoints = Arc::default();
    }

    /// The stop reason for an instruction's access, if a watchpoint covers it.
    fn watched<G: Platform>(&self, block: &DecodedBlock<G>, cpu: &G) -> Option<StopReason> {
        let step = block.instructions.first()?;
        let first = step.address(cpu);
        let access_end = first.saturating_add(step.access_size()?.into());
        let other = if step.is_store() { WatchedAccesses::Loads } else { WatchedAccesses::Stores };
        let hit =
            |&&(start, end, accesses): &&Watchpoint| accesses != other && first < end && start < access_end;
        let &(start, _, watched) = self.watchpoints.iter().find(hit)?;
        Some(StopReason::Access { address: first.max(start), watched })
    }
}

impl<G: Platform> DebuggerHook<G> for DebugObserver {
    fn signals(&self) -> Option<Arc<dyn SignalHook<G>>> {
        self.session.clone().map(|session| session as Arc<dyn SignalHook<G>>)
    }

    fn steps(&self) -> bool {
        self.session.is_some() && (self.order != Order::Run || !self.watchpoints.is_empty())
    }

    fn holds(&mut self, pc: u64) -> bool {
        // A thread that falls through to the second entry has already stopped at the first.
        self.fell_through_to = self.fell_through_to.filter(|&end| end == pc);
        self.passed =
            self.passed.filter(|&passed| passed < pc && pc - passed <= G::INSTRUCTION_SET.second_entry());
        let has_entered = self.fell_through_to.is_none();
        self.before_entry = self.breakpoints.before_second_entry(pc, self.passed).filter(|_| has_entered);
        self.reason = match &self.order {
            _ if self.access.is_some() => self.access,
            _ if self.before_entry.is_some() || self.breakpoints.contains(pc) => Some(StopReason::Breakpoint),
            Order::Step(range) if self.has_stepped && !range.contains(&pc) => Some(StopReason::Step),
            _ => None,
        };
        self.reason.is_some()
    }

    fn begin(&mut self, address: ThreadHandle, cpu: &mut G) {
        let Some(session) = self.session.clone() else { return };
        self.thread = address.id;
        let mut state = session.lock();
        let (order, registers) = (state.default.clone(), ThreadRegisters::of(cpu));
        let debugged = DebuggedThread::new(address, registers, order);
        state.threads.insert(self.thread, debugged);
        self.resume(&session, state, cpu);
    }

    fn stop(&mut self, cpu: &mut G) {
        let Some(session) = self.session.clone() else { return };
        let mut state = session.lock();
        // Another thread may have stopped the program first. The reason is then found again after the program is
        // resumed.
        if let Some(reason) = self.reason.take().filter(|_| !state.is_held && !state.is_detached) {
            self.access = None;
            let reported_pc = self.before_entry.filter(|_| reason == StopReason::Breakpoint);
            self.passed = reported_pc.or(self.passed);
            let second_entry_stop = reported_pc.map(|reported_pc| SecondEntryStop::new(reported_pc, cpu));
            session.stop(&mut state, self.thread, cpu, reason, second_entry_stop);
        }
        self.resume(&session, state, cpu);
    }

    fn leave_guest(&mut self, cpu: &G) {
        let Some(session) = &self.session else { return };
        session.set_thread_state(&mut session.lock(), self.thread, ThreadState::Kernel, cpu);
    }

    fn enter_guest(&mut self, cpu: &mut G) {
        let Some(session) = self.session.clone() else { return };
        self.resume(&session, session.lock(), cpu);
    }

    fn end_all(&mut self, cpu: &G) {
        let Some(session) = &self.session else { return };
        let mut state = session.lock();
        session.set_thread_state(&mut state, self.thread, ThreadState::Kernel, cpu);
        state.run_all();
        session.changed.notify_all();
    }

    fn replace(&mut self, executable: &Path, cpu: &mut G) {
        let Some(session) = &self.session else { return };
        let mut state = session.lock();
        (state.executable, state.stack) = (executable.into(), cpu.stack_pointer());
        state.guest = describe::<G>();
        state.breakpoints = Arc::new(Breakpoints::new(G::INSTRUCTION_SET));
        state.watchpoints = Arc::default();
        drop(state);
        (self.access, self.reason) = (None, Some(StopReason::Program));
        self.stop(cpu);
    }
}

impl<G: Platform> Instrumentation<G> for DebugObserver {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Off;

    fn must_report(&self, block: &DecodedBlock<G>) -> bool {
        self.compiled_addresses.binary_search(&block.address).is_ok()
    }

    fn block_boundaries(&self) -> &[u64] {
        &self.compiled_addresses
    }

    fn requires_recompilation(&mut self) -> bool {
        // Compiled code is not executed while the thread is stepped.
        if DebuggerHook::<G>::steps(self) || Arc::ptr_eq(&self.compiled_breakpoints, &self.breakpoints) {
            return false;
        }
        self.compiled_breakpoints = self.breakpoints.clone();
        let addresses = self.breakpoints.addresses();
        let has_changed = self.compiled_addresses != addresses;
        self.compiled_addresses = addresses;
        has_changed
    }
}

impl<G: Platform> Debugged<G> for DebugObserver {
    fn debugger(&mut self) -> Option<&mut dyn DebuggerHook<G>> {
        if self.session.is_some() { Some(self) } else { None }
    }
}

impl<G: Platform> Observer<G> for DebugObserver {
    fn enter(&mut self, id: BlockId, cache: &BlockCache<G>, cpu: &G, _: &Memory) {
        let block = cache.block(id);
        self.has_stepped = true;
        (self.fell_through_to, self.passed) = (Some(block.end()), None);
        if !self.watchpoints.is_empty() {
            self.access = self.watched(block, cpu);
        }
    }

    fn truncated(&mut self, _: BlockId, _: Option<(BlockId, &DecodedBlock<G>)>) {
        self.access = None;
    }

    fn thread(&self) -> DebugObserver {
        DebugObserver::of(self.session.clone(), G::INSTRUCTION_SET)
    }

    fn ended(&mut self, _: &G, _: &Memory, _: &BlockCache<G>) {
        self.leave();
    }

    fn forked(&mut self, _: u32, _: &BlockCache<G>) {
        self.detach::<G>();
    }
}

impl DebugSession {
    /// Stops the program because of this thread. `second_entry_stop` if it stopped at a function's second entry.
    pub(super) fn stop<G: Platform>(
        &self,
        state: &mut SessionState,
        thread: i32,
        cpu: &G,
        reason: StopReason,
        second_entry_stop: Option<SecondEntryStop>,
    ) {
        self.set_thread_state(state, thread, ThreadState::Held, cpu);
        if let Some(second_entry_stop) = second_entry_stop
            && let Some(debugged) = state.threads.get_mut(&thread)
        {
            debugged.registers.set_pc(second_entry_stop.reported_pc);
            debugged.second_entry_stop = Some(second_entry_stop);
        }
        state.hold();
        (self.report)(DebugEvent::Stopped(Stopped { thread, reason }));
    }

    /// Records the state of a thread.
    fn set_thread_state<G: Platform>(
        &self,
        state: &mut SessionState,
        thread: i32,
        thread_state: ThreadState,
        cpu: &G,
    ) {
        if let Some(debugged) = state.threads.get_mut(&thread) {
            (debugged.thread_state, debugged.registers) = (thread_state, ThreadRegisters::of(cpu));
            // A thread that is really where a stop was reported, as in the next call of a signal handler from the same
            // instruction, is not in that stop any more.
            debugged.second_entry_stop = debugged.second_entry_stop.filter(|stop| stop.pc(cpu).is_none());
            self.changed.notify_all();
        }
    }

    /// Blocks a thread until it may continue, then gives it the registers that the debugger set. A thread that was in
    /// a system call when the program stopped is shown as in the call, even if the call has returned since.
    pub(super) fn hold<'a, G: Platform>(
        &'a self,
        mut state: MutexGuard<'a, SessionState>,
        thread: i32,
        cpu: &mut G,
    ) -> MutexGuard<'a, SessionState> {
        while state.must_stay(thread) {
            let thread_state = state.threads.get(&thread).map(|debugged| debugged.thread_state);
            if thread_state == Some(ThreadState::Guest)
                || thread_state == Some(ThreadState::Kernel) && !state.is_held
            {
                self.set_thread_state(&mut state, thread, ThreadState::Held, cpu);
            }
            state = self.wait(state);
        }
        if let Some(debugged) = state.threads.get_mut(&thread)
            && std::mem::take(&mut debugged.is_changed)
        {
            debugged.registers.write_to(cpu);
            if let Some(pc) =
                debugged.second_entry_stop.and_then(|second_entry_stop| second_entry_stop.pc(cpu))
            {
                cpu.set_pc(pc);
            }
        }
        state
    }
}

impl<G: Platform> SignalHook<G> for DebugSession {
    fn signal(&self, thread: i32, cpu: &mut G, signal: i32) -> Option<i32> {
        let mut state = self.lock();
        let Some(thread_state) = state.threads.get(&thread).map(|debugged| debugged.thread_state) else {
            return Some(signal);
        };
        state = self.hold(state, thread, cpu);
        let sent = state.threads.get_mut(&thread).and_then(|debugged| debugged.sent.take());
        let is_known = state.is_detached || sent == Some(signal);
        if !is_known {
            self.stop(&mut state, thread, cpu, StopReason::Signal(signal), None);
            state = self.hold(state, thread, cpu);
        }
        let is_known = is_known || state.is_detached;
        let Some(debugged) = state.threads.get_mut(&thread) else { return Some(signal) };
        debugged.thread_state = thread_state;
        let answer = if is_known { Some(signal) } else { debugged.signal.take() };
        debugged.is_signalled = answer.is_some();
        answer
    }
}
