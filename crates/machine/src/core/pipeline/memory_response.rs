//! The responses of memory to a segment's requests, reduced to what affects its timing. They are part of a
//! transition's key.
//! transition's key.

use std::ops::Range;

use super::accesses::BlockAccesses;
use super::issue::Issue;
use super::memory::ServedBy;
use super::segment::BlockSegment;

/// One response; L1 hits have none. A word other than 0, so that many compare quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryResponse(u64);

/// An instruction line that missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineResponse {
    /// When its address is translated, and when it arrives, in cycles after the next.
    pub translated: u32,
    pub comes: u32,
    /// The level that served it; 0 is L1.
    pub level: u8,
}

/// An access that missed, or may find its line outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataResponse {
    /// The access's number.
    pub access: u32,
    /// The level that served it.
    pub level: u8,
    /// Cycles of the translation.
    pub translation: u32,
    /// The number of its line if that may be outstanding; else [`NO_LINE`].
    pub line: u32,
}

/// The line number of a load that finds no outstanding line.
pub(super) const NO_LINE: u32 = (1 << 17) - 1;

/// The longest translation that fits.
const MOST_TRANSLATION: u32 = (1 << 24) - 1;

impl MemoryResponse {
    const IS_LINE: u64 = 1 << 63;
    const IS_DATA: u64 = 1 << 62;

    fn line(line: LineResponse) -> MemoryResponse {
        let translated = line.translated.min(MOST_TRANSLATION);
        MemoryResponse(
            MemoryResponse::IS_LINE
                | u64::from(line.level.min(15)) << 56
                | u64::from(translated) << 32
                | u64::from(line.comes),
        )
    }

    /// Blocks have fewer than 2^17 accesses.
    fn data(data: DataResponse) -> MemoryResponse {
        MemoryResponse(
            MemoryResponse::IS_DATA
                | u64::from(data.level.min(15)) << 58
                | u64::from(data.translation.min(MOST_TRANSLATION)) << 34
                | u64::from(data.line & NO_LINE) << 17
                | u64::from(data.access & NO_LINE),
        )
    }

    /// The response, if it is an instruction line.
    pub fn as_line(self) -> Option<LineResponse> {
        (self.0 & MemoryResponse::IS_LINE != 0).then_some(LineResponse {
            translated: (self.0 >> 32) as u32 & MOST_TRANSLATION,
            comes: self.0 as u32,
            level: (self.0 >> 56) as u8 & 15,
        })
    }

    /// The response, if it is an access.
    pub fn as_data(self) -> Option<DataResponse> {
        (self.0 & MemoryResponse::IS_LINE == 0).then_some(DataResponse {
            access: self.0 as u32 & NO_LINE,
            level: (self.0 >> 58) as u8 & 15,
            translation: (self.0 >> 34) as u32 & MOST_TRANSLATION,
            line: (self.0 >> 17) as u32 & NO_LINE,
        })
    }

    /// As a word.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
    }
}

impl Issue {
    /// Sets the response for an instruction line, which is translated at one time and arrives from a level at
    /// another.
    pub fn set_line_response(&mut self, translated: u64, comes: u64, level: u8) {
        // Times before the next cycle delay nothing; nor is any wait infinite.
        let next = self.scoreboard.last + 1;
        let behind_next = |time: u64| time.saturating_sub(next).min(u32::MAX.into()) as u32;
        let [translated, comes] = [translated, comes].map(behind_next);
        self.responses.clear();
        self.responses.push(MemoryResponse::line(LineResponse { translated, comes, level }));
    }

    /// Collects the responses for a segment's accesses. Numbers the lines that loads may find outstanding:
    /// first those that are, then those that they request.
    #[inline(always)]
    pub fn collect_data_responses(
        &mut self,
        segment: &BlockSegment,
        are_stores: &[bool],
        accesses: BlockAccesses,
    ) {
        self.responses.clear();
        if !(accesses.misses.is_empty() && self.lines.is_empty()) {
            self.collect_slow_responses(segment.accesses.clone(), are_stores, accesses);
        }
    }

    fn collect_slow_responses(&mut self, segment: Range<u32>, are_stores: &[bool], accesses: BlockAccesses) {
        let mut access = segment.start;
        let mut misses = accesses.misses_from(access);
        loop {
            let next = misses.first();
            if self.lines.is_empty() {
                // L1 hits find no outstanding line.
                let Some(next) = next else { return };
                access = next.number;
            }
            if access >= segment.end {
                return;
            }
            let own = next.filter(|next| next.number == access);
            misses = &misses[usize::from(own.is_some())..];
            let served = own.map_or(ServedBy::default(), |own| own.served);
            self.collect_response(access, are_stores[access as usize], accesses.address(access), served);
            access += 1;
        }
    }

    #[inline(always)]
    fn collect_response(&mut self, access: u32, is_store: bool, address: u64, served: ServedBy) {
        let ServedBy { level, translation, .. } = served;
        let mut line = NO_LINE;
        // Stores wait for no line.
        if !is_store && (level > 0 || !self.lines.is_empty()) {
            let own = self.line(address);
            let cached = self.lines.iter().position(|&cached| cached == own);
            if cached.is_none() && level > 0 {
                self.lines.push(own);
            }
            let last = || self.lines.len() - 1;
            line = cached.or((level > 0).then(last)).map_or(NO_LINE, |line| line as u32);
        }
        if line != NO_LINE || translation > 0 {
            let level = if line == NO_LINE { 0 } else { level };
            self.responses.push(MemoryResponse::data(DataResponse { access, level, translation, line }));
        }
    }
}
