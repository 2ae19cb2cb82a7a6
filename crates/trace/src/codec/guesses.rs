//! Words that come again, or change by the same amount each time.

use super::coder::{Coder, Section};
use super::table::{Table, mixed, table};
use crate::bytes::Malformed;

/// Guesses words that do not follow from what is known.
pub(super) struct Guesses {
    sites: Vec<Site>,
    /// What followed when a site was reached after the words guessed last.
    contexts: Table<u64, { 1 << GUESS_BITS }>,
    /// The words guessed last, those long ago shifted out.
    history: u64,
    last: u64,
}

/// An instruction that words come from.
#[derive(Clone, Copy, Default)]
struct Site {
    last: u64,
    stride: u64,
    /// Above 0 if the stride was right more often than the context.
    prefers_stride: i8,
}

const GUESS_BITS: u32 = 14;

impl Guesses {
    pub fn new() -> Guesses {
        Guesses { sites: Vec::new(), contexts: table(0), history: 0, last: 0 }
    }

    /// The next word; `is_sequel` if another prediction of it was wrong.
    #[inline(always)]
    pub fn next<C: Coder>(
        &mut self,
        coder: &mut C,
        section: Section,
        site: u32,
        is_sequel: bool,
    ) -> Result<u64, Malformed> {
        if self.sites.len() <= site as usize {
            self.sites.resize(site as usize + 1, Site::default());
        }
        let state = &mut self.sites[site as usize];
        let hash = mixed(self.history ^ u64::from(site) << 40);
        let context = &mut self.contexts[(hash >> (64 - GUESS_BITS)) as usize];
        let by_stride = state.last.wrapping_add(state.stride);
        let (first, second) =
            if state.prefers_stride > 0 { (by_stride, *context) } else { (*context, by_stride) };
        let word = if !is_sequel && coder.hit(section, first) {
            first
        } else {
            let near = if state.last == 0 { self.last } else { state.last };
            coder.miss(section, [first, second, state.last], near)?
        };
        let vote = i8::from(by_stride == word) - i8::from(*context == word);
        state.prefers_stride = (state.prefers_stride + vote).clamp(-2, 2);
        *context = word;
        state.stride = word.wrapping_sub(state.last);
        state.last = word;
        self.last = word;
        self.history = (self.history << 16 ^ mixed(word) >> 32) & ((1 << 40) - 1);
        Ok(word)
    }
}
