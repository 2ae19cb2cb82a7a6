//! The calls that a thread is in, found by following control. The stack pointer, as far as accesses show it, tells calls of the
//! same function apart, and on which stack the thread is: programs switch stacks for contexts, coroutines and fibers. Each stack has
//! calls of its own, as a thread has. Nothing else is assumed of frames, so that tail calls, `longjmp`, signals and code without
//! symbols leave it sound.

use events::record::Mark;
use isa::{ControlCalls, InstructionSet};

use super::dictionary::{BlockFacts, Transfer};
use super::stack_pointer::StackPointer;

/// How control came to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// From within the same function.
    Within,
    /// By a call; or recording begins.
    Called,
    /// By a jump from another function, whose frame it replaces: a tail call.
    Replaced,
    /// By a signal: its handler begins.
    Interrupted,
    /// By a return to the caller, or from a signal's handler.
    Returned,
    /// By a return from a call that was made before recording began.
    Emerged,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct CallFrame {
    region: u32,
    /// Its return address; None if the function was not entered by a call.
    return_address: Option<u64>,
    /// The stack pointer after its return; of a function that was not entered by a call, that at its entry. None if it is not known.
    stack_pointer: Option<u64>,
    /// For a signal's handler: how the interrupted block was left.
    interrupted: Option<Before>,
    /// Whether its function, or one of its callers, is selected.
    inside: bool,
}

/// The event before the next block.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Nothing recorded.
    Nothing,
    /// A block.
    Block(BlockFacts),
    /// A signal, after this.
    Signal(BlockFacts),
    /// The end of a signal's handler.
    SignalReturn,
}

/// The greatest number of calls that are kept; beyond it the oldest are dropped.
const DEEPEST: usize = 1 << 20;
/// How many of the innermost calls are searched for a return address.
const SEARCHED: usize = 1 << 12;
/// The greatest number of stacks that are kept beside the present one; beyond it the one that was left first is dropped.
const MOST_STACKS: usize = 1 << 12;
/// How many of the innermost calls of a stack that was left are searched for a return address: those of the function that switches.
const SWITCHING: usize = 4;
/// Bytes of the return address that some calls push, and that is still there at the entry of a function entered by a jump.
const RETURN_ADDRESS: u64 = 8;

/// A stack that the thread has left, to which it may return.
#[derive(Clone, Debug)]
struct LeftStack {
    number: u32,
    frames: Vec<CallFrame>,
}

/// The calls that a thread is in.
#[derive(Clone, Debug)]
pub struct ActiveCalls {
    frames: Vec<CallFrame>,
    stack: u32,
    /// The number of stacks so far, less one.
    last_stack: u32,
    /// The stacks beside the present one, that left last at the end.
    left: Vec<LeftStack>,
    stack_pointer: StackPointer,
    before: Before,
    system_call: Option<u32>,
    forgotten: usize,
}

impl Default for ActiveCalls {
    fn default() -> ActiveCalls {
        ActiveCalls {
            frames: Vec::new(),
            stack: 0,
            last_stack: 0,
            left: Vec::new(),
            stack_pointer: StackPointer::default(),
            before: Before::Nothing,
            system_call: None,
            forgotten: 0,
        }
    }
}

impl ActiveCalls {
    /// The depth of the current call: 0 in the function in which recording began.
    pub fn depth(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// Whether the current function or one of its callers is selected.
    pub fn is_inside(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.inside)
    }

    /// The number of the stack that the thread is on, from 0 in the order in which they were entered first.
    pub fn stack(&self) -> u32 {
        self.stack
    }

    /// How many of the oldest calls were dropped.
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// Follows a mark in the records of a program with this instruction set.
    pub fn mark(&mut self, mark: Mark, set: &dyn InstructionSet) {
        match mark {
            Mark::Gap => {
                self.before = Before::Nothing;
                self.stack_pointer.forget();
            }
            Mark::SystemCall(number) => self.system_call = Some(number),
            Mark::Discontinuity => {
                self.stack_pointer.forget();
                let ControlCalls { execute, signal_returns, .. } = set.control_calls();
                self.before = match (self.system_call, self.before) {
                    (Some(number), _) if number == execute => Before::Nothing,
                    (Some(number), _) if signal_returns.contains(&number) => Before::SignalReturn,
                    (_, Before::Block(last)) => Before::Signal(last),
                    (_, before) => before,
                }
            }
            _ => {}
        }
    }

    /// Follows the execution of a block with these addresses of accesses. `is_sought` says which functions are selected
    /// ([`ActiveCalls::is_inside`]).
    pub fn block(
        &mut self,
        block: &BlockFacts,
        addresses: &[u64],
        is_sought: impl Fn(u32) -> bool,
    ) -> Arrival {
        self.system_call = None;
        self.stack_pointer.enter(&block.stack, addresses);
        let before = std::mem::replace(&mut self.before, Before::Block(*block));
        let arrival = self.arrive(before, block, is_sought);
        self.stack_pointer.leave(&block.stack, addresses);
        arrival
    }

    fn arrive(&mut self, before: Before, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match before {
            Before::Nothing => {
                self.frames.clear();
                self.push(block.region, None, None, is_sought);
                Arrival::Called
            }
            Before::Block(last) => self.after(last, block, is_sought),
            Before::Signal(last) => {
                self.push(block.region, None, Some(Before::Block(last)), is_sought);
                Arrival::Interrupted
            }
            Before::SignalReturn => self.after_signal(block, is_sought),
        }
    }

    /// Pops the handler's frame; control continues as if there had been no signal.
    fn after_signal(&mut self, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match self.frames.iter().rposition(|frame| frame.interrupted.is_some()) {
            Some(handler) => {
                let interrupted = self.frames[handler].interrupted;
                self.frames.truncate(handler);
                match interrupted {
                    Some(Before::Block(last)) => match self.after(last, block, is_sought) {
                        Arrival::Within => Arrival::Returned,
                        other => other,
                    },
                    _ => Arrival::Returned,
                }
            }
            None => self.set_by_system(block, is_sought),
        }
    }

    /// The system has set all registers, but no handler returns: a context is continued, or begins, or recording began in a handler.
    fn set_by_system(&mut self, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        let on_left_stack = self.call_on_left_stack(block);
        let is_return = |frame: &CallFrame| self.returns_to(frame, block);
        if on_left_stack.is_none() && self.frames.iter().any(is_return) {
            return self.returned(block, is_sought);
        }
        let waits_in_function = |stack: &LeftStack| {
            !block.at_entry && stack.frames.last().is_some_and(|top| top.region == block.region)
        };
        let waits = || self.left.iter().rposition(waits_in_function).map(|stack| (stack, usize::MAX));
        if let Some((stack, frame)) = on_left_stack.or_else(waits) {
            self.switch_to(stack);
            self.frames.truncate(frame);
            return self.settle(block, is_sought);
        }
        if let Some(frame) = self.waiting_call(block) {
            self.frames.truncate(frame + 1);
            return Arrival::Returned;
        }
        if block.at_entry {
            self.begin_stack();
            self.push(block.region, None, None, is_sought);
            return Arrival::Called;
        }
        self.emerge(block, is_sought)
    }

    /// Control passes from the end of a block to another one.
    #[inline]
    fn after(&mut self, last: BlockFacts, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match last.transfer {
            // A call to the next instruction only computes an address.
            Transfer::Call if block.address != last.end || block.at_entry => {
                self.push(block.region, Some(last.end), None, is_sought);
                if let Some(frame) = self.frames.last_mut() {
                    frame.stack_pointer = self.stack_pointer.after_return(&last.stack);
                }
                Arrival::Called
            }
            Transfer::Return => self.returned(block, is_sought),
            Transfer::Jump if self.frames.last().is_some_and(|top| self.returns_to(top, block)) => {
                self.frames.pop();
                self.settle(block, is_sought)
            }
            transfer => self.moved(block, transfer == Transfer::Jump, is_sought),
        }
    }

    fn returned(&mut self, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        let oldest = self.frames.len().saturating_sub(SEARCHED);
        match self.frames[oldest..].iter().rposition(|frame| self.returns_to(frame, block)) {
            Some(frame) => {
                self.frames.truncate(oldest + frame);
                self.settle(block, is_sought)
            }
            None if self.frames.len() <= 1 && !self.enters_other_stack(block) => {
                self.emerge(block, is_sought)
            }
            None => self.moved(block, true, is_sought),
        }
    }

    /// A return: to the caller, or to the function that replaced it by a tail call.
    fn settle(&mut self, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match self.frames.last() {
            Some(top) if top.region == block.region => Arrival::Returned,
            Some(_) => {
                self.replace(block.region, is_sought);
                Arrival::Returned
            }
            None => self.emerge(block, is_sought),
        }
    }

    /// A branch, a jump, or a return to an address that is no return address of an open call on the same stack. Only jumps and returns
    /// to computed addresses switch stacks.
    #[inline]
    fn moved(&mut self, block: &BlockFacts, is_computed: bool, is_sought: impl Fn(u32) -> bool) -> Arrival {
        if is_computed && let Some((stack, frame)) = self.call_on_left_stack(block) {
            self.switch_to(stack);
            self.frames.truncate(frame);
            return self.settle(block, is_sought);
        }
        if self.frames.last().is_some_and(|top| top.region == block.region) {
            return Arrival::Within;
        }
        // Into the middle of a function with an open call: longjmp.
        if let Some(frame) = self.waiting_call(block) {
            self.frames.truncate(frame + 1);
            return Arrival::Returned;
        }
        if is_computed && self.enters_other_stack(block) {
            self.begin_stack();
            self.push(block.region, None, None, is_sought);
            return Arrival::Called;
        }
        self.replace(block.region, is_sought);
        Arrival::Replaced
    }

    /// The innermost call that waits in the function into whose middle control comes.
    fn waiting_call(&self, block: &BlockFacts) -> Option<usize> {
        if block.at_entry || !self.is_on_stack() {
            return None;
        }
        let now = self.stack_pointer.now();
        // A call that waits has a frame: the stack pointer is below that at its entry.
        let is_open = |frame: &CallFrame| now.zip(frame.stack_pointer).is_none_or(|(now, entry)| now < entry);
        let oldest = self.frames.len().saturating_sub(SEARCHED);
        let waits = |frame: &CallFrame| frame.region == block.region && is_open(frame);
        self.frames[oldest..].iter().rposition(waits).map(|frame| oldest + frame)
    }

    /// Whether the stack pointer may be that of an older call on the present stack. That of a signal's handler may be anywhere.
    fn is_on_stack(&self) -> bool {
        let innermost = self.frames.last().and_then(|top| top.stack_pointer);
        let outermost = self.frames.iter().find_map(|frame| frame.stack_pointer);
        let (Some(now), Some(low)) = (self.stack_pointer.now(), innermost) else { return true };
        let is_below_all = outermost.is_none_or(|high| now <= high);
        now.saturating_add(RETURN_ADDRESS) >= low && is_below_all
            || self.frames.iter().any(|frame| frame.interrupted.is_some())
    }

    /// Whether a jump comes to a stack on which the thread was not before: the stack pointer was set to a value that no older call has.
    fn enters_other_stack(&self, block: &BlockFacts) -> bool {
        block.at_entry && self.stack_pointer.is_set() && !self.is_on_stack()
    }

    /// The call on another stack to whose return address control comes, with the index of the stack.
    fn call_on_left_stack(&self, block: &BlockFacts) -> Option<(usize, usize)> {
        self.left.iter().enumerate().rev().find_map(|(index, stack)| {
            let innermost = stack.frames.len().saturating_sub(SWITCHING);
            let frame = stack.frames[innermost..].iter().rposition(|frame| self.returns_to(frame, block));
            frame.map(|frame| (index, innermost + frame))
        })
    }

    /// Continues on a stack that was left.
    fn switch_to(&mut self, index: usize) {
        let LeftStack { number, frames } = self.left.remove(index);
        self.leave_stack();
        (self.stack, self.frames) = (number, frames);
    }

    /// Continues on an unknown stack.
    fn begin_stack(&mut self) {
        self.leave_stack();
        self.last_stack += 1;
        self.stack = self.last_stack;
    }

    fn leave_stack(&mut self) {
        if self.left.len() == MOST_STACKS {
            self.left.remove(0);
        }
        self.left.push(LeftStack { number: self.stack, frames: std::mem::take(&mut self.frames) });
    }

    /// Whether control comes to the return address of a call, with its stack pointer as far as that is known.
    fn returns_to(&self, frame: &CallFrame, block: &BlockFacts) -> bool {
        let differs = |(now, after): (u64, u64)| now != after;
        frame.return_address == Some(block.address)
            && !self.stack_pointer.now().zip(frame.stack_pointer).is_some_and(differs)
    }

    fn emerge(&mut self, block: &BlockFacts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        self.frames.clear();
        self.push(block.region, None, None, is_sought);
        Arrival::Emerged
    }

    fn push(
        &mut self,
        region: u32,
        return_address: Option<u64>,
        interrupted: Option<Before>,
        is_sought: impl Fn(u32) -> bool,
    ) {
        if self.frames.len() == DEEPEST {
            self.frames.drain(..DEEPEST / 2);
            self.forgotten += DEEPEST / 2;
        }
        let inside = self.is_inside() || is_sought(region);
        let stack_pointer = self.stack_pointer.now();
        self.frames.push(CallFrame { region, return_address, stack_pointer, interrupted, inside });
    }

    fn replace(&mut self, region: u32, is_sought: impl Fn(u32) -> bool) {
        let Some(top) = self.frames.pop() else { return };
        self.push(region, top.return_address, top.interrupted, is_sought);
        if let Some(frame) = self.frames.last_mut() {
            frame.stack_pointer = top.stack_pointer;
        }
    }
}
