//! The calls that are open.

use std::collections::{HashMap, VecDeque};

/// So many are kept.
const DEEPEST: usize = 1 << 16;

/// Open calls of a thread.
#[derive(Default)]
pub(super) struct Calls {
    /// Where they return to, the innermost last; `None` where the system diverted control.
    frames: VecDeque<Option<u64>>,
    /// How many return to an address; 0 if there were some that were left otherwise.
    open: HashMap<u64, u32>,
    diversions: usize,
}

/// What a return is to the open calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// From an open call; so many within it were left by other means.
    Open {
        left: u64,
    },
    /// There may have been such a call: before recording began or control was diverted, or it was thought to
    /// have been left, as where a thread switches between stacks.
    Possible,
    Impossible,
}

impl Calls {
    /// A call is made that returns to an address; `None` if the system diverts control.
    pub fn open(&mut self, frame: Option<u64>) {
        if self.frames.len() == DEEPEST {
            let outermost = self.frames.pop_front().flatten();
            self.close(outermost);
        }
        match frame {
            Some(address) => *self.open.entry(address).or_default() += 1,
            None => self.diversions += 1,
        }
        self.frames.push_back(frame);
    }

    /// A call is not open any more, or a diversion over.
    fn close(&mut self, frame: Option<u64>) {
        match frame {
            Some(address) => *self.open.entry(address).or_insert(1) -= 1,
            None => self.diversions -= 1,
        }
    }

    /// Control returns to an address.
    pub fn returned(&mut self, address: u64) -> Return {
        match self.open.get(&address) {
            Some(1..) => {
                let mut left = 0;
                while let Some(frame) = self.frames.pop_back() {
                    self.close(frame);
                    if frame == Some(address) {
                        break;
                    }
                    left += u64::from(frame.is_some());
                }
                Return::Open { left }
            }
            None if !self.frames.is_empty() && self.diversions == 0 => Return::Impossible,
            _ => Return::Possible,
        }
    }

    /// Nothing is known of them any more.
    pub fn forget(&mut self) {
        *self = Calls::default();
    }
}
