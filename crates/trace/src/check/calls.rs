//! A stack of the open calls of a thread.

use std::collections::{HashMap, VecDeque};

/// Maximum number of calls kept.
const MAX_DEPTH: usize = 1 << 16;

/// The open calls of a thread.
#[derive(Default)]
pub(super) struct OpenCalls {
    /// Their return addresses, the innermost last; `None` for a signal handler, and for an entry of the kernel.
    frames: VecDeque<Option<u64>>,
    /// By return address, the number of open calls. It is 0 after all have returned or were left otherwise.
    open: HashMap<u64, u32>,
    diversions: usize,
}

/// The result of matching a return with the open calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// The return of an open call, within which `left` calls were left by other means.
    Open {
        left: u64,
    },
    /// The call may have existed: it was made before recording began, or before a signal handler was entered, or was
    /// taken as left when the thread switched stacks.
    Possible,
    Impossible,
}

impl OpenCalls {
    /// A call is made with this return address; `None` if a signal handler or the kernel is entered.
    pub fn open(&mut self, frame: Option<u64>) {
        if self.frames.len() == MAX_DEPTH {
            let outermost = self.frames.pop_front().flatten();
            self.close(outermost);
        }
        match frame {
            Some(address) => *self.open.entry(address).or_default() += 1,
            None => self.diversions += 1,
        }
        self.frames.push_back(frame);
    }

    /// Removes a call or a signal handler.
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

    /// Control continues where it was interrupted: the calls since then have ended.
    pub fn resume(&mut self) {
        while let Some(frame) = self.frames.pop_back() {
            self.close(frame);
            if frame.is_none() {
                return;
            }
        }
    }

    /// Drops all calls, since there is a gap in the records.
    pub fn forget(&mut self) {
        *self = OpenCalls::default();
    }
}
