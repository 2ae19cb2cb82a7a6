//! A thread's side of a debugger.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use events::BlockId;
use isa::Flags;

use super::{
    Accesses, Breakpoints, Entered, Event, Member, Order, Place, Reason, Registers, Session, State, Stopped,
    Watchpoint,
};
use crate::places::SECOND_ENTRY;
use alpha::block::{Block, BlockCache};
use alpha::cpu::{Cpu, register};
use alpha::debugger::{DebuggerHook, SignalHook};
use alpha::observer::{InstrumentationLevel, Observer};
use host::ThreadHandle;
use memory::Memory;

/// A thread under a debugger: its observer, which wants to hear of breakpoints only, and of each instruction
/// while the thread is stepped or watched.
#[derive(Default)]
pub struct Attached {
    /// None when the debugger has gone.
    session: Option<Arc<Session>>,
    thread: i32,
    order: Order,
    /// The order is this turn's.
    turn: u64,
    /// An instruction was executed since it was given.
    has_stepped: bool,
    breakpoints: Arc<Breakpoints>,
    watchpoints: Arc<BTreeSet<Watchpoint>>,
    /// The breakpoints that compiled code heeds, and their addresses in order.
    heeded_breakpoints: Arc<Breakpoints>,
    heeded: Vec<u64>,
    /// A watched access by the last instruction.
    access: Option<Reason>,
    /// Why the thread is to stop.
    reason: Option<Reason>,
    /// The breakpoint for which it is to stop at the second entry of a function, if it is before that; and the last
    /// one for which it has.
    before_entry: Option<u64>,
    passed: Option<u64>,
    /// Where the last block ended that the interpreter executed. If the thread is there it fell through, for the
    /// interpreter asks [`Attached::holds`] before whatever comes next.
    fell_through_to: Option<u64>,
}

impl Attached {
    /// For the first thread of a program.
    pub fn new(session: &Arc<Session>) -> Attached {
        Attached { session: Some(session.clone()), ..Attached::default() }
    }

    /// The thread goes on in the guest, when it may, with what it is to do.
    fn go_on(&mut self, session: &Session, state: MutexGuard<State>, cpu: &mut Cpu) {
        let mut state = session.hold(state, self.thread, cpu);
        if state.is_detached {
            state.members.remove(&self.thread);
            self.let_go();
            return;
        }
        (self.breakpoints, self.watchpoints) = (state.breakpoints.clone(), state.watchpoints.clone());
        let turn = state.turn;
        let Some(member) = state.members.get_mut(&self.thread) else { return };
        member.place = Place::Guest;
        self.order = member.order.clone();
        if let Some(signal) = member.signal.take() {
            member.sent = Some(signal);
            linux::send_to_caller(signal);
        }
        if turn != self.turn {
            // A step to a signal's handler ends before the handler's first instruction.
            (self.turn, self.has_stepped) = (turn, std::mem::take(&mut member.is_signalled));
            self.access = self.access.take().filter(|_| !self.watchpoints.is_empty());
        }
    }

    /// The debugger has gone: the thread is like any other.
    fn let_go(&mut self) {
        (self.session, self.order, self.access) = (None, Order::Run, None);
        (self.breakpoints, self.watchpoints) = Default::default();
    }

    /// The access of an instruction that is watched, if it is one.
    fn watched(&self, block: &Block, cpu: &Cpu) -> Option<Reason> {
        let step = block.steps.first()?;
        let first = step.address(cpu.r[usize::from(step.b)]);
        let behind = first.saturating_add(step.op.access_size()? as u64);
        let other = if step.op.is(Flags::STORE) { Accesses::Loads } else { Accesses::Stores };
        let hit = |&&(start, end, accesses): &&Watchpoint| accesses != other && first < end && start < behind;
        let &(start, _, watched) = self.watchpoints.iter().find(hit)?;
        Some(Reason::Access { address: first.max(start), watched })
    }
}

impl DebuggerHook for Attached {
    fn signals(&self) -> Option<Arc<dyn SignalHook>> {
        self.session.clone().map(|session| session as Arc<dyn SignalHook>)
    }

    fn steps(&self) -> bool {
        self.session.is_some() && (self.order != Order::Run || !self.watchpoints.is_empty())
    }

    fn holds(&mut self, pc: u64) -> bool {
        // Who falls through to the second entry has been stopped at the first.
        self.fell_through_to = self.fell_through_to.filter(|&end| end == pc);
        self.passed = self.passed.filter(|&passed| passed < pc && pc - passed <= SECOND_ENTRY);
        let has_entered = self.fell_through_to.is_none();
        self.before_entry = self.breakpoints.before_second_entry(pc, self.passed).filter(|_| has_entered);
        self.reason = match &self.order {
            _ if self.access.is_some() => self.access,
            _ if self.before_entry.is_some() || self.breakpoints.contains(pc) => Some(Reason::Breakpoint),
            Order::Step(range) if self.has_stepped && !range.contains(&pc) => Some(Reason::Step),
            _ => None,
        };
        self.reason.is_some()
    }

    fn begin(&mut self, address: ThreadHandle, cpu: &mut Cpu) {
        let Some(session) = self.session.clone() else { return };
        self.thread = address.id;
        let mut state = session.lock();
        let (order, registers) = (state.default.clone(), Registers::of(cpu));
        let member = Member::new(address, registers, order);
        state.members.insert(self.thread, member);
        self.go_on(&session, state, cpu);
    }

    fn stop(&mut self, cpu: &mut Cpu) {
        let Some(session) = self.session.clone() else { return };
        let mut state = session.lock();
        // Another thread may have stopped the program first: then the reason is found again.
        if let Some(reason) = self.reason.take().filter(|_| !state.is_held && !state.is_detached) {
            self.access = None;
            let seems = self.before_entry.filter(|_| reason == Reason::Breakpoint);
            self.passed = seems.or(self.passed);
            let entered = seems.map(|seems| Entered::new(seems, cpu));
            session.stop(&mut state, self.thread, cpu, reason, entered);
        }
        self.go_on(&session, state, cpu);
    }

    fn leave_guest(&mut self, cpu: &Cpu) {
        let Some(session) = &self.session else { return };
        session.place(&mut session.lock(), self.thread, Place::Kernel, cpu);
    }

    fn enter_guest(&mut self, cpu: &mut Cpu) {
        let Some(session) = self.session.clone() else { return };
        self.go_on(&session, session.lock(), cpu);
    }

    fn end_all(&mut self, cpu: &Cpu) {
        let Some(session) = &self.session else { return };
        let mut state = session.lock();
        session.place(&mut state, self.thread, Place::Kernel, cpu);
        state.let_all_run();
        session.changed.notify_all();
    }

    fn replace(&mut self, executable: &Path, cpu: &mut Cpu) {
        let Some(session) = &self.session else { return };
        let mut state = session.lock();
        (state.executable, state.stack) = (executable.into(), cpu.r[register::SP]);
        (state.breakpoints, state.watchpoints) = Default::default();
        drop(state);
        (self.access, self.reason) = (None, Some(Reason::Program));
        self.stop(cpu);
    }
}

impl Observer for Attached {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Off;

    fn enter(&mut self, id: BlockId, cache: &BlockCache, cpu: &Cpu, _: &Memory) {
        let block = cache.block(id);
        self.has_stepped = true;
        (self.fell_through_to, self.passed) = (Some(block.end()), None);
        if !self.watchpoints.is_empty() {
            self.access = self.watched(block, cpu);
        }
    }

    fn truncated(&mut self, _: BlockId, _: Option<(BlockId, &Block)>) {
        self.access = None;
    }

    fn thread(&self) -> Attached {
        Attached { session: self.session.clone(), ..Attached::default() }
    }

    fn ended(&mut self, _: &Cpu, _: &Memory, _: &BlockCache) {
        if let Some(session) = &self.session {
            session.lock().members.remove(&self.thread);
            session.changed.notify_all();
        }
    }

    fn must_report(&self, block: &Block) -> bool {
        self.heeded.binary_search(&block.address).is_ok()
    }

    fn block_boundaries(&self) -> &[u64] {
        &self.heeded
    }

    fn requires_recompilation(&mut self) -> bool {
        // What is stepped is not compiled code.
        if self.steps() || Arc::ptr_eq(&self.heeded_breakpoints, &self.breakpoints) {
            return false;
        }
        self.heeded_breakpoints = self.breakpoints.clone();
        let addresses = self.breakpoints.addresses();
        let has_changed = self.heeded != addresses;
        self.heeded = addresses;
        has_changed
    }

    fn forked(&mut self) {
        self.let_go();
    }

    fn debugger(&mut self) -> Option<&mut dyn DebuggerHook> {
        if self.session.is_some() { Some(self) } else { None }
    }
}

impl Session {
    /// Stops the program for a thread's reason, which is perhaps that it has entered a function.
    fn stop(&self, state: &mut State, thread: i32, cpu: &Cpu, reason: Reason, entered: Option<Entered>) {
        self.place(state, thread, Place::Held, cpu);
        if let Some(entered) = entered
            && let Some(member) = state.members.get_mut(&thread)
        {
            (member.registers.pc, member.entered) = (entered.seems, Some(entered));
        }
        state.hold();
        (self.tell)(Event::Stopped(Stopped { thread, reason }));
    }

    /// Notes where a thread is.
    fn place(&self, state: &mut State, thread: i32, place: Place, cpu: &Cpu) {
        if let Some(member) = state.members.get_mut(&thread) {
            (member.place, member.registers) = (place, Registers::of(cpu));
            self.changed.notify_all();
        }
    }

    /// Holds a thread until it may go on, and gives it the registers that the debugger set. What was in a
    /// system call when the program stopped stays there for the debugger, whatever the call has done since.
    fn hold<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: i32,
        cpu: &mut Cpu,
    ) -> MutexGuard<'a, State> {
        while state.stays(thread) {
            let place = state.members.get(&thread).map(|member| member.place);
            if place == Some(Place::Guest) || place == Some(Place::Kernel) && !state.is_held {
                self.place(&mut state, thread, Place::Held, cpu);
            }
            state = self.wait(state);
        }
        if let Some(member) = state.members.get_mut(&thread)
            && std::mem::take(&mut member.is_changed)
        {
            member.registers.write_to(cpu);
            if let Some(pc) = member.entered.and_then(|entered| entered.pc(cpu)) {
                cpu.pc = pc;
            }
        }
        state
    }
}

impl SignalHook for Session {
    fn signal(&self, thread: i32, cpu: &mut Cpu, signal: i32) -> Option<i32> {
        let mut state = self.lock();
        let Some(place) = state.members.get(&thread).map(|member| member.place) else { return Some(signal) };
        state = self.hold(state, thread, cpu);
        let sent = state.members.get_mut(&thread).and_then(|member| member.sent.take());
        let is_known = state.is_detached || sent == Some(signal);
        if !is_known {
            self.stop(&mut state, thread, cpu, Reason::Signal(signal), None);
            state = self.hold(state, thread, cpu);
        }
        let is_known = is_known || state.is_detached;
        let Some(member) = state.members.get_mut(&thread) else { return Some(signal) };
        member.place = place;
        let answer = if is_known { Some(signal) } else { member.signal.take() };
        member.is_signalled = answer.is_some();
        answer
    }
}
