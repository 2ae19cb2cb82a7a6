//! What a piece hears of memory before it is issued, as far as it matters to when it is issued.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use super::issue::Issue;
use super::memory::Served;
use super::piece::{Access, Piece};

/// One thing that memory says; nothing is said of what is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// All is near.
    Nothing,
    /// A line of instructions: when its address is translated and when it comes, in cycles behind the next, and
    /// from where; 0 for the first cache.
    Line { translated: u32, comes: u32, level: u8 },
    /// Data of an access of the block: from where, the cycles of a translation, and the number of their line if a
    /// load may find it on its way; else [`NO_LINE`].
    Data { access: u32, level: u8, translation: u32, line: u32 },
}

/// Stands for the line of a load that finds none on its way.
pub(super) const NO_LINE: u32 = u32::MAX;

impl Hash for Heard {
    #[inline(always)]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let words = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        match *self {
            Heard::Nothing => {}
            Heard::Line { translated, comes, level } => {
                hasher.write_u64(words(translated, comes));
                hasher.write_u8(level);
            }
            Heard::Data { access, level, translation, line } => {
                hasher.write_u64(words(access, line));
                hasher.write_u64(words(translation, level.into()));
            }
        }
    }
}

impl Issue {
    /// The address of a line of instructions is translated at a time, and the line comes from a level at another.
    pub fn hear_line(&mut self, translated: u64, comes: u64, level: u8) {
        // Before the next cycle nothing is waited for; nor for ever.
        let next = self.board.last + 1;
        let behind_next = |time: u64| time.saturating_sub(next).min(u32::MAX.into()) as u32;
        let [translated, comes] = [translated, comes].map(behind_next);
        self.heard.clear();
        self.heard.push(Heard::Line { translated, comes, level });
    }

    /// What memory says of a piece's data. Numbers the lines that loads may find on their way: first those that
    /// are, then those that they ask for.
    #[inline(always)]
    pub fn hear_data(&mut self, piece: &Piece, accesses: &[Access], addresses: &[u64]) {
        self.heard.clear();
        if self.lines.is_empty() {
            if let Some(first) = self.served.first_far(&piece.accesses) {
                self.hear_far_data(first..piece.accesses.end, accesses, addresses);
            }
        } else {
            self.hear_far_data(piece.accesses.clone(), accesses, addresses);
        }
    }

    fn hear_far_data(&mut self, questions: Range<u32>, accesses: &[Access], addresses: &[u64]) {
        for access in questions {
            let Served { level, translation, .. } = self.served.get(access);
            let mut line = NO_LINE;
            // Nothing waits for where stores go.
            if !accesses[access as usize].is_store && (level > 0 || !self.lines.is_empty()) {
                let own = self.line(addresses[access as usize]);
                let known = self.lines.iter().position(|&known| known == own);
                if known.is_none() && level > 0 {
                    self.lines.push(own);
                }
                let last = || self.lines.len() - 1;
                line = known.or((level > 0).then(last)).map_or(NO_LINE, |line| line as u32);
            }
            if line != NO_LINE || translation > 0 {
                let level = if line == NO_LINE { 0 } else { level };
                self.heard.push(Heard::Data { access, level, translation, line });
            }
        }
    }
}
