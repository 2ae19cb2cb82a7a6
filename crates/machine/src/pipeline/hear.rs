//! What a piece hears of memory before it is issued, as far as it matters to when it is issued.

use std::ops::Range;

use super::accesses::Accesses;
use super::issue::Issue;
use super::memory::Served;
use super::piece::Piece;

/// One thing that memory says; nothing is said of what is near. It is a word that is not 0, so that many can be compared
/// quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard(u64);

/// A line of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeardLine {
    /// When its address is translated, and when it comes, in cycles behind the next.
    pub translated: u32,
    pub comes: u32,
    /// From where; 0 for the first cache.
    pub level: u8,
}

/// Data of an access of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeardData {
    /// The access's number.
    pub access: u32,
    /// From where they come.
    pub level: u8,
    /// The cycles of a translation.
    pub translation: u32,
    /// The number of their line if a load may find it on its way; else [`NO_LINE`].
    pub line: u32,
}

/// Stands for the line of a load that finds none on its way.
pub(super) const NO_LINE: u32 = (1 << 17) - 1;

/// The most cycles of a translation that can be told.
const MOST_TRANSLATION: u32 = (1 << 24) - 1;

impl Heard {
    const IS_LINE: u64 = 1 << 63;
    const IS_DATA: u64 = 1 << 62;

    fn line(line: HeardLine) -> Heard {
        let translated = line.translated.min(MOST_TRANSLATION);
        Heard(
            Heard::IS_LINE
                | u64::from(line.level.min(15)) << 56
                | u64::from(translated) << 32
                | u64::from(line.comes),
        )
    }

    /// Blocks have fewer than 2^17 accesses.
    fn data(data: HeardData) -> Heard {
        Heard(
            Heard::IS_DATA
                | u64::from(data.level.min(15)) << 58
                | u64::from(data.translation.min(MOST_TRANSLATION)) << 34
                | u64::from(data.line & NO_LINE) << 17
                | u64::from(data.access & NO_LINE),
        )
    }

    /// If it is of instructions.
    pub fn as_line(self) -> Option<HeardLine> {
        (self.0 & Heard::IS_LINE != 0).then_some(HeardLine {
            translated: (self.0 >> 32) as u32 & MOST_TRANSLATION,
            comes: self.0 as u32,
            level: (self.0 >> 56) as u8 & 15,
        })
    }

    /// If it is of data.
    pub fn as_data(self) -> Option<HeardData> {
        (self.0 & Heard::IS_LINE == 0).then_some(HeardData {
            access: self.0 as u32 & NO_LINE,
            level: (self.0 >> 58) as u8 & 15,
            translation: (self.0 >> 34) as u32 & MOST_TRANSLATION,
            line: (self.0 >> 17) as u32 & NO_LINE,
        })
    }

    /// The word.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
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
        self.heard.push(Heard::line(HeardLine { translated, comes, level }));
    }

    /// What memory says of a piece's data. Numbers the lines that loads may find on their way: first those that
    /// are, then those that they ask for.
    #[inline(always)]
    pub fn hear_data(&mut self, piece: &Piece, are_stores: &[bool], accesses: Accesses) {
        self.heard.clear();
        if !(accesses.far.is_empty() && self.lines.is_empty()) {
            self.hear_far_data(piece.accesses.clone(), are_stores, accesses);
        }
    }

    fn hear_far_data(&mut self, piece: Range<u32>, are_stores: &[bool], accesses: Accesses) {
        let mut access = piece.start;
        let mut far = accesses.far_from(access);
        loop {
            let next = far.first();
            if self.lines.is_empty() {
                // What is near finds nothing on its way.
                let Some(next) = next else { return };
                access = next.number;
            }
            if access >= piece.end {
                return;
            }
            let own = next.filter(|next| next.number == access);
            far = &far[usize::from(own.is_some())..];
            let served = own.map_or(Served::default(), |own| own.served);
            self.hear_access(access, are_stores[access as usize], accesses.address(access), served);
            access += 1;
        }
    }

    #[inline(always)]
    fn hear_access(&mut self, access: u32, is_store: bool, address: u64, served: Served) {
        let Served { level, translation, .. } = served;
        let mut line = NO_LINE;
        // Nothing waits for where stores go.
        if !is_store && (level > 0 || !self.lines.is_empty()) {
            let own = self.line(address);
            let known = self.lines.iter().position(|&known| known == own);
            if known.is_none() && level > 0 {
                self.lines.push(own);
            }
            let last = || self.lines.len() - 1;
            line = known.or((level > 0).then(last)).map_or(NO_LINE, |line| line as u32);
        }
        if line != NO_LINE || translation > 0 {
            let level = if line == NO_LINE { 0 } else { level };
            self.heard.push(Heard::data(HeardData { access, level, translation, line }));
        }
    }
}
