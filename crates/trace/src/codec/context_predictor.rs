//! Predicts words by their stride and by context: for words that repeat, or change by the same amount each time.

use super::coder::{ChunkSection, Coder};
use super::table::{CodecTable, mixed, table};
use crate::bytes::Malformed;

/// A hybrid of a stride predictor and a finite-context predictor (FCM), for words that cannot be derived from
/// registers.
pub(super) struct ContextPredictor {
    sites: Vec<PredictedInstruction>,
    /// By a hash of instruction and history, the word that followed the last time.
    contexts: CodecTable<u64, { 1 << GUESS_BITS }>,
    /// Hash of the most recent words.
    history: u64,
    last: u64,
}

/// State of an instruction whose words are predicted.
#[derive(Clone, Copy, Default)]
struct PredictedInstruction {
    last: u64,
    stride: u64,
    /// Positive if the stride was right more often than the context.
    prefers_stride: i8,
}

const GUESS_BITS: u32 = 14;

impl ContextPredictor {
    pub fn new() -> ContextPredictor {
        ContextPredictor { sites: Vec::new(), contexts: table(0), history: 0, last: 0 }
    }

    /// Codes and returns the next word. `is_sequel` if another predictor has already mispredicted it.
    #[inline(always)]
    pub fn next<C: Coder>(
        &mut self,
        coder: &mut C,
        section: ChunkSection,
        site: u32,
        is_sequel: bool,
    ) -> Result<u64, Malformed> {
        if self.sites.len() <= site as usize {
            self.sites.resize(site as usize + 1, PredictedInstruction::default());
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
            let reference = if state.last == 0 { self.last } else { state.last };
            coder.miss(section, [first, second, state.last], reference)?
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
