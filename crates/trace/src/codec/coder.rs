//! Writes and reads outcomes of predictions: how many were right between those that were wrong, and what came
//! instead.

use super::table::is_known;
use crate::bytes::{Bytes, Malformed, put, put_difference};

/// The sections of a chunk of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Outcomes of predicted blocks.
    Blocks,
    /// Blocks that nothing predicted.
    BlockNumbers,
    /// Outcomes of predicted addresses.
    Addresses,
    /// Addresses that nothing predicted: differences to another of the same instruction.
    AddressNumbers,
    /// Outcomes of predicted values.
    Values,
    /// Values that nothing predicted.
    ValueNumbers,
    /// Marks, and how many blocks are between them.
    Marks,
}

/// How many there are.
pub(crate) const SECTIONS: usize = 7;

/// Those that hold outcomes.
const OUTCOMES: [Section; 3] = [Section::Blocks, Section::Addresses, Section::Values];

impl Section {
    /// Where the words are that no prediction of this kind had.
    fn literals(self) -> Section {
        match self {
            Section::Blocks => Section::BlockNumbers,
            Section::Addresses => Section::AddressNumbers,
            _ => Section::ValueNumbers,
        }
    }
}

/// What a model tells its predictions of records' words to, and hears the outcomes from.
pub(crate) trait Coder {
    /// Whether the next word is this one. If not, [`Coder::miss`] must come next.
    fn hit(&mut self, section: Section, predicted: u64) -> bool;

    /// The same, but no if the prediction is not [known](is_known).
    #[inline(always)]
    fn hit_if_known(&mut self, section: Section, predicted: u64) -> bool {
        is_known(predicted) && self.hit(section, predicted)
    }

    /// The next word: perhaps one of `others`, or one near `near`.
    fn miss(&mut self, section: Section, others: [u64; 3], near: u64) -> Result<u64, Malformed>;
}

/// No prediction was right: the low bits of an outcome, which else tell which one was.
const LITERAL: u8 = 3;
const CODE_BITS: u32 = 2;
/// The shortest distance that has no room in an outcome's byte.
const FAR: u64 = 63;

/// A chunk's sections while they are written.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub bytes: [Vec<u8>; SECTIONS],
    /// Which word comes behind the last that was predicted wrongly.
    ends: [u64; SECTIONS],
}

/// Writes a record.
pub(crate) struct Encoder<'a> {
    pub sections: &'a mut Sections,
    pub record: &'a [u64],
    /// Which word of the chunk's the record's first one is.
    pub start: u64,
    /// Words of the record that were written.
    pub at: usize,
}

impl Coder for Encoder<'_> {
    #[inline(always)]
    fn hit(&mut self, _: Section, predicted: u64) -> bool {
        if self.record[self.at] != predicted {
            return false;
        }
        self.at += 1;
        true
    }

    #[inline(always)]
    fn miss(&mut self, section: Section, others: [u64; 3], near: u64) -> Result<u64, Malformed> {
        let (word, place) = (self.record[self.at], self.start + self.at as u64);
        self.at += 1;
        self.sections.miss(section, place, word, others, near);
        Ok(word)
    }
}

impl Sections {
    /// The word at a place was predicted wrongly.
    #[inline(never)]
    fn miss(&mut self, section: Section, place: u64, word: u64, others: [u64; 3], near: u64) {
        let end = &mut self.ends[section as usize];
        let distance = place - *end;
        *end = place + 1;
        let bytes = &mut self.bytes[section as usize];
        let code = others.iter().position(|other| *other == word);
        bytes.push(code.map_or(LITERAL, |code| code as u8) | (distance.min(FAR) as u8) << CODE_BITS);
        if distance >= FAR {
            put(bytes, distance - FAR);
        }
        if code.is_none() {
            put_difference(&mut self.bytes[section.literals() as usize], word, near);
        }
    }
}

/// A wrong prediction: of which word of the chunk, and which other one is right.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    place: u64,
    code: u8,
}

/// Reads a chunk's sections.
pub(crate) struct Decoder<'a> {
    sections: [Bytes<'a>; SECTIONS],
    /// The next ones.
    outcomes: [Outcome; SECTIONS],
    /// The words that were read.
    pub words: &'a mut Vec<u64>,
}

impl<'a> Decoder<'a> {
    /// `words` must be empty.
    pub fn new(sections: [&'a [u8]; SECTIONS], words: &'a mut Vec<u64>) -> Result<Decoder<'a>, Malformed> {
        let (sections, outcomes) = (sections.map(Bytes), [Outcome::default(); SECTIONS]);
        let mut decoder = Decoder { sections, outcomes, words };
        for section in OUTCOMES {
            decoder.next_outcome(section)?;
        }
        Ok(decoder)
    }

    /// The marks' section, which no model has to do with.
    pub fn marks(&mut self) -> &mut Bytes<'a> {
        &mut self.sections[Section::Marks as usize]
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.sections.iter().all(|section| section.is_empty())
    }

    /// Behind the last outcome every prediction is right.
    fn next_outcome(&mut self, section: Section) -> Result<(), Malformed> {
        let bytes = &mut self.sections[section as usize];
        let mut outcome = Outcome { place: u64::MAX, code: LITERAL };
        if !bytes.is_empty() {
            let byte = bytes.byte()?;
            let mut distance = u64::from(byte >> CODE_BITS);
            if distance == FAR {
                distance = bytes.number()?.saturating_add(FAR);
            }
            let place = (self.words.len() as u64).saturating_add(distance);
            outcome = Outcome { place, code: byte & ((1 << CODE_BITS) - 1) };
        }
        self.outcomes[section as usize] = outcome;
        Ok(())
    }
}

impl Coder for Decoder<'_> {
    #[inline(always)]
    fn hit(&mut self, section: Section, predicted: u64) -> bool {
        let is_hit = self.outcomes[section as usize].place != self.words.len() as u64;
        if is_hit {
            self.words.push(predicted);
        }
        is_hit
    }

    fn miss(&mut self, section: Section, others: [u64; 3], near: u64) -> Result<u64, Malformed> {
        let Outcome { place, code } = self.outcomes[section as usize];
        if place != self.words.len() as u64 {
            return Err(Malformed("a prediction is neither right nor wrong"));
        }
        let word = match others.get(code as usize) {
            Some(&word) => word,
            None => self.sections[section.literals() as usize].difference(near)?,
        };
        self.words.push(word);
        self.next_outcome(section)?;
        Ok(word)
    }
}
