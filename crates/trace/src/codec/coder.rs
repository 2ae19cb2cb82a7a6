//! Codes the outcomes of predictions: the lengths of runs of correct ones, and the actual word after each
//! misprediction.

use super::table::is_determined;
use crate::bytes::{Bytes, Malformed, put, put_difference};

/// The sections of a chunk of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkSection {
    /// Outcomes of block predictions.
    Blocks,
    /// Block numbers that no predictor had.
    BlockNumbers,
    /// Outcomes of address predictions.
    Addresses,
    /// Addresses that no predictor had, as differences to an earlier address of the same instruction.
    AddressNumbers,
    /// Outcomes of value predictions.
    Values,
    /// Values that no predictor had.
    ValueNumbers,
    /// Marks, and the number of blocks between them.
    Marks,
}

/// Number of sections.
pub(crate) const SECTIONS: usize = 7;

/// The sections that hold outcomes.
const OUTCOMES: [ChunkSection; 3] = [ChunkSection::Blocks, ChunkSection::Addresses, ChunkSection::Values];

impl ChunkSection {
    /// The section of the words that no predictor of this kind had.
    fn literals(self) -> ChunkSection {
        match self {
            ChunkSection::Blocks => ChunkSection::BlockNumbers,
            ChunkSection::Addresses => ChunkSection::AddressNumbers,
            _ => ChunkSection::ValueNumbers,
        }
    }
}

/// The encoder or the decoder, as a model sees it: takes predictions of the next word and returns the actual word.
pub(crate) trait Coder {
    /// Whether the prediction equals the next word. If not, [`Coder::miss`] must be called next.
    fn hit(&mut self, section: ChunkSection, predicted: u64) -> bool;

    /// As [`Coder::hit`], but false if the prediction is [not determined](is_determined).
    #[inline(always)]
    fn hit_if_determined(&mut self, section: ChunkSection, predicted: u64) -> bool {
        is_determined(predicted) && self.hit(section, predicted)
    }

    /// Returns the next word after a misprediction. It is coded as one of `others`, or as a difference to
    /// `reference`.
    fn miss(&mut self, section: ChunkSection, others: [u64; 3], reference: u64) -> Result<u64, Malformed>;
}

/// Code of an outcome, in its low bits, if none of the predictions was right; smaller codes name the right one.
const LITERAL: u8 = 3;
const CODE_BITS: u32 = 2;
/// The smallest distance that does not fit into an outcome's byte.
const FAR: u64 = 63;

/// The sections of a chunk that is being written.
#[derive(Debug, Default)]
pub(crate) struct ChunkSections {
    pub bytes: [Vec<u8>; SECTIONS],
    /// By section, the index of the word after the last misprediction.
    ends: [u64; SECTIONS],
}

/// Encodes a record.
pub(crate) struct RecordEncoder<'a> {
    pub sections: &'a mut ChunkSections,
    pub record: &'a [u64],
    /// Index of the record's first word in the chunk.
    pub start: u64,
    /// Number of words of the record that were encoded.
    pub at: usize,
}

impl Coder for RecordEncoder<'_> {
    #[inline(always)]
    fn hit(&mut self, _: ChunkSection, predicted: u64) -> bool {
        if self.record[self.at] != predicted {
            return false;
        }
        self.at += 1;
        true
    }

    #[inline(always)]
    fn miss(&mut self, section: ChunkSection, others: [u64; 3], reference: u64) -> Result<u64, Malformed> {
        let (word, index) = (self.record[self.at], self.start + self.at as u64);
        self.at += 1;
        self.sections.miss(section, index, word, others, reference);
        Ok(word)
    }
}

impl ChunkSections {
    /// Codes a misprediction of the word at this index.
    #[inline(never)]
    fn miss(&mut self, section: ChunkSection, index: u64, word: u64, others: [u64; 3], reference: u64) {
        let end = &mut self.ends[section as usize];
        let distance = index - *end;
        *end = index + 1;
        let bytes = &mut self.bytes[section as usize];
        let code = others.iter().position(|other| *other == word);
        bytes.push(code.map_or(LITERAL, |code| code as u8) | (distance.min(FAR) as u8) << CODE_BITS);
        if distance >= FAR {
            put(bytes, distance - FAR);
        }
        if code.is_none() {
            put_difference(&mut self.bytes[section.literals() as usize], word, reference);
        }
    }
}

/// A misprediction: the index of the word in the chunk, and the code of the right prediction.
#[derive(Clone, Copy, Debug, Default)]
struct Misprediction {
    index: u64,
    code: u8,
}

/// Decodes a chunk's sections.
pub(crate) struct Decoder<'a> {
    sections: [Bytes<'a>; SECTIONS],
    /// The next outcome of each section.
    outcomes: [Misprediction; SECTIONS],
    /// The words decoded so far.
    pub words: &'a mut Vec<u64>,
}

impl<'a> Decoder<'a> {
    /// `words` must be empty.
    pub fn new(sections: [&'a [u8]; SECTIONS], words: &'a mut Vec<u64>) -> Result<Decoder<'a>, Malformed> {
        let (sections, outcomes) = (sections.map(Bytes), [Misprediction::default(); SECTIONS]);
        let mut decoder = Decoder { sections, outcomes, words };
        for section in OUTCOMES {
            decoder.next_outcome(section)?;
        }
        Ok(decoder)
    }

    /// The section of marks. Marks are not predicted.
    pub fn marks(&mut self) -> &mut Bytes<'a> {
        &mut self.sections[ChunkSection::Marks as usize]
    }

    /// Whether everything was decoded.
    pub fn is_at_end(&self) -> bool {
        self.sections.iter().all(|section| section.is_empty())
    }

    /// Reads the next misprediction. After the last one every prediction is right.
    fn next_outcome(&mut self, section: ChunkSection) -> Result<(), Malformed> {
        let bytes = &mut self.sections[section as usize];
        let mut result = Misprediction { index: u64::MAX, code: LITERAL };
        if !bytes.is_empty() {
            let byte = bytes.byte()?;
            let mut distance = u64::from(byte >> CODE_BITS);
            if distance == FAR {
                distance = bytes.number()?.saturating_add(FAR);
            }
            let index = (self.words.len() as u64).saturating_add(distance);
            result = Misprediction { index, code: byte & ((1 << CODE_BITS) - 1) };
        }
        self.outcomes[section as usize] = result;
        Ok(())
    }
}

impl Coder for Decoder<'_> {
    #[inline(always)]
    fn hit(&mut self, section: ChunkSection, predicted: u64) -> bool {
        let is_hit = self.outcomes[section as usize].index != self.words.len() as u64;
        if is_hit {
            self.words.push(predicted);
        }
        is_hit
    }

    fn miss(&mut self, section: ChunkSection, others: [u64; 3], reference: u64) -> Result<u64, Malformed> {
        let Misprediction { index, code } = self.outcomes[section as usize];
        if index != self.words.len() as u64 {
            return Err(Malformed("a prediction is neither right nor wrong"));
        }
        let word = match others.get(code as usize) {
            Some(&word) => word,
            None => self.sections[section.literals() as usize].difference(reference)?,
        };
        self.words.push(word);
        self.next_outcome(section)?;
        Ok(word)
    }
}
