//! The calls that a thread is in, found by following control: nothing is assumed of the stack pointer or of
//! frames, so that tail calls, `longjmp`, signals and code without symbols leave it sound.

use events::record::Mark;

use super::dictionary::{Facts, Transfer};

/// How control came to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// From within the same function.
    Within,
    /// By a call; or recording begins.
    Called,
    /// By a jump from another function, which has gone: a tail call.
    Replaced,
    /// By a signal, whose handler begins.
    Interrupted,
    /// Back in a function that called, or that a signal interrupted.
    Returned,
    /// Back in a function that called before recording began.
    Emerged,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Frame {
    place: u32,
    /// Where control goes after it; none for what was entered otherwise than by a call.
    return_address: Option<u64>,
    /// For a signal's handler: how control left what it interrupted.
    interrupted: Option<Before>,
    /// Whether its function, or one of those that led to it, is among those looked for.
    inside: bool,
}

/// What came before the next block.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Nothing that was recorded.
    Nothing,
    /// A block.
    Block(Facts),
    /// A signal, while this came before.
    Signal(Facts),
    /// The end of a signal's handler.
    SignalReturn,
}

/// More calls than these are forgotten, the oldest first.
const DEEPEST: usize = 1 << 20;
/// How many calls are looked through for one to return to.
const SEARCHED: usize = 1 << 12;

/// Alpha's numbers of `execve`, and of `sigreturn` and `rt_sigreturn`.
const EXECVE: u32 = 59;
const SIGNAL_RETURNS: [u32; 2] = [103, 351];

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
    /// How many calls lead to what is executed now: 0 in the function in which recording began.
    pub fn depth(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// Whether what is executed now is, or was called by, a function of those looked for.
    pub fn is_inside(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.inside)
    }

    /// How many calls were forgotten, the oldest first, as there were too many.
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// A mark in the records.
    pub fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Gap => self.before = Before::Nothing,
            Mark::SystemCall(number) => self.system_call = Some(number),
            Mark::Diverted => {
                self.before = match (self.system_call, self.before) {
                    (Some(EXECVE), _) => Before::Nothing,
                    (Some(number), _) if SIGNAL_RETURNS.contains(&number) => Before::SignalReturn,
                    (_, Before::Block(last)) => Before::Signal(last),
                    (_, before) => before,
                }
            }
            _ => {}
        }
    }

    /// A block is executed. `is_sought` tells which functions [`Calls::is_inside`] is about.
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

    /// The handler's frame goes; then control goes on as if there had been no signal.
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

    /// From the end of a block to another one.
    #[inline]
    fn after(&mut self, last: Facts, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        match last.transfer {
            // A call of the next instruction only computes an address.
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

    /// Back by a return: in the function that called, or, if that one jumped into another meanwhile, there.
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

    /// By a branch, a jump or a return to where no call is expected to return.
    #[inline]
    fn moved(&mut self, block: &Facts, is_sought: impl Fn(u32) -> bool) -> Arrival {
        if self.frames.last().is_some_and(|top| top.place == block.place) {
            return Arrival::Within;
        }
        // Into the midst of a function that is waiting for a call to return: longjmp.
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
