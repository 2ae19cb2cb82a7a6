//! The calls that a thread is in, found by following control: nothing is assumed of the stack pointer or of
//! frames, so that tail calls, `longjmp`, signals and code without symbols leave it sound.

use events::record::Mark;
use isa::{ControlCalls, InstructionSet};

use super::dictionary::{Facts, Transfer};

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
struct Frame {
    place: u32,
    /// Its return address; None if the function was not entered by a call.
    return_address: Option<u64>,
    /// For a signal's handler: how the interrupted block was left.
    interrupted: Option<Before>,
    /// Whether its function, or one of its callers, is selected.
    inside: bool,
}

/// What preceded the next block.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Nothing recorded.
    Nothing,
    /// A block.
    Block(Facts),
    /// A signal, after this.
    Signal(Facts),
    /// The end of a signal's handler.
    SignalReturn,
}

/// The greatest number of calls that are kept; beyond it the oldest are dropped.
const DEEPEST: usize = 1 << 20;
/// How many of the innermost calls are searched for a return address.
const SEARCHED: usize = 1 << 12;

/// The calls that a thread is in.
#[derive(Clone, Debug)]
pub struct Calls {
    frames: Vec<Frame>,
    before: Before,
    system_call: Option<u32>,
    forgotten: usize,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls { frames: Vec::new(), before: Before::Nothing, system_call: None, forgotten: 0 }
    }
}

impl Calls {
    /// The depth of the current call: 0 in the function in which recording began.
    pub fn depth(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// Whether the current function or one of its callers is selected.
    pub fn is_inside(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.inside)
    }

    /// How many of the oldest calls were dropped.
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// Follows a mark in the records of a program with this instruction set.
    pub fn mark(&mut self, mark: Mark, set: &dyn InstructionSet) {
        match mark {
            Mark::Gap => self.before = Before::Nothing,
            Mark::SystemCall(number) => self.system_call = Some(number),
            Mark::Discontinuity => {
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

    /// Follows the execution of a block. `is_sought` says which functions are selected ([`Calls::is_inside`]).
    pub fn block(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        self.system_call = None;
        let before = std::mem::replace(&mut self.before, Before::Block(*block));
        match before {
            Before::Nothing => {
                self.frames.clear();
                self.push(block.place, None, None, is_sought);
                Arrival::Called
            }
            Before::Block(last) => self.after(last, block, is_sought),
            Before::Signal(last) => {
                self.push(block.place, None, Some(Before::Block(last)), is_sought);
                Arrival::Interrupted
            }
            Before::SignalReturn => self.after_signal(block, is_sought),
        }
    }

    /// Pops the handler's frame; control continues as if there had been no signal.
    fn after_signal(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
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
            None => self.emerge(block, is_sought),
        }
    }

    /// Control passes from the end of a block to another one.
    #[inline]
    fn after(&mut self, last: Facts, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match last.transfer {
            // A call to the next instruction only computes an address.
            Transfer::Call if block.address != last.end || block.at_entry => {
                self.push(block.place, Some(last.end), None, is_sought);
                Arrival::Called
            }
            Transfer::Return => self.returned(block, is_sought),
            Transfer::Jump if self.frames.last().is_some_and(|top| returns_to(top, block)) => {
                self.frames.pop();
                self.settle(block, is_sought)
            }
            _ => self.moved(block, is_sought),
        }
    }

    fn returned(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        let oldest = self.frames.len().saturating_sub(SEARCHED);
        match self.frames[oldest..].iter().rposition(|frame| returns_to(frame, block)) {
            Some(frame) => {
                self.frames.truncate(oldest + frame);
                self.settle(block, is_sought)
            }
            None if self.frames.len() <= 1 => self.emerge(block, is_sought),
            None => self.moved(block, is_sought),
        }
    }

    /// A return: to the caller, or to the function that replaced it by a tail call.
    fn settle(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match self.frames.last() {
            Some(top) if top.place == block.place => Arrival::Returned,
            Some(_) => {
                self.replace(block.place, is_sought);
                Arrival::Returned
            }
            None => self.emerge(block, is_sought),
        }
    }

    /// A branch, a jump, or a return to an address that is no return address of an open call.
    #[inline]
    fn moved(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        if self.frames.last().is_some_and(|top| top.place == block.place) {
            return Arrival::Within;
        }
        // Into the middle of a function with an open call: longjmp.
        let oldest = self.frames.len().saturating_sub(SEARCHED);
        let waiting = self.frames[oldest..].iter().rposition(|frame| frame.place == block.place);
        if let Some(frame) = waiting.filter(|_| !block.at_entry) {
            self.frames.truncate(oldest + frame + 1);
            return Arrival::Returned;
        }
        self.replace(block.place, is_sought);
        Arrival::Replaced
    }

    fn emerge(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        self.frames.clear();
        self.push(block.place, None, None, is_sought);
        Arrival::Emerged
    }

    fn push(
        &mut self,
        place: u32,
        return_address: Option<u64>,
        interrupted: Option<Before>,
        is_sought: impl Fn(u32) -> bool,
    ) {
        if self.frames.len() == DEEPEST {
            self.frames.drain(..DEEPEST / 2);
            self.forgotten += DEEPEST / 2;
        }
        let inside = self.is_inside() || is_sought(place);
        self.frames.push(Frame { place, return_address, interrupted, inside });
    }

    fn replace(&mut self, place: u32, is_sought: impl Fn(u32) -> bool) {
        let Some(top) = self.frames.pop() else { return };
        self.push(place, top.return_address, top.interrupted, is_sought);
    }
}

fn returns_to(frame: &Frame, block: &Facts) -> bool {
    frame.return_address == Some(block.address)
}
