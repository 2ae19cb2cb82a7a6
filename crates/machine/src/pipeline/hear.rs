//! What a piece hears of memory before it is issued, as far as it matters to when it is issued.

use super::issue::Issue;
use super::memory::Served;
use super::piece::{Access, Piece};

/// One thing that memory says; nothing is said of what is near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        if !self.lines.is_empty() || self.served.any(&piece.accesses) {
            self.hear_far_data(piece, accesses, addresses);
        }
    }

    fn hear_far_data(&mut self, piece: &Piece, accesses: &[Access], addresses: &[u64]) {
        for access in piece.accesses.clone() {
            let Served { level, translation, .. } = self.served.get(access);
            if accesses[access as usize].is_store {
                // Nothing waits for where stores go.
                if translation > 0 {
                    self.heard.push(Heard::Data { access, level: 0, translation, line: NO_LINE });
                }
                continue;
            }
            let line = self.line(addresses[access as usize]);
            let known = self.lines.iter().position(|&known| known == line);
            let place = known.unwrap_or(self.lines.len());
            if known.is_none() && level > 0 {
                self.lines.push(line);
            }
            if place < self.lines.len() || translation > 0 {
                let line = if place < self.lines.len() { place as u32 } else { NO_LINE };
                self.heard.push(Heard::Data { access, level, translation, line });
            }
        }
    }
}
