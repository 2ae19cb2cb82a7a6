//! Writes and reads outcomes of predictions: how many were right between those that were wrong, and what came
//! instead.

use crate::bytes::{Bytes, Malformed, put, put_difference};

/// The sections of a chunk of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Outcomes of predicted blocks.
    Blocks,
    /// Blocks that nothing predicted.
    BlockNumbers,
    /// Outcomes of addresses that follow from registers thought to be known.
    Derived,
    /// Outcomes of guessed addresses.
    Guesses,
    /// Addresses that nothing predicted.
    Addresses,
    /// Outcomes of predicted values.
    Values,
    /// Values that nothing predicted.
    ValueNumbers,
    /// Marks, and how many blocks are between them.
    Marks,
}

/// How many there are.
pub(crate) const SECTIONS: usize = 8;

/// Those that hold outcomes.
const OUTCOMES: [Section; 4] = [Section::Blocks, Section::Derived, Section::Guesses, Section::Values];

impl Section {
    /// Where the words are that no prediction of this kind had.
    fn literals(self) -> Section {
        match self {
            Section::Blocks => Section::BlockNumbers,
            Section::Values => Section::ValueNumbers,
            _ => Section::Addresses,
        }
    }
}

/// What a model tells its predictions of records' words to, and hears the outcomes from.
pub(crate) trait Coder {
    /// Whether the next word is this one. If not, [`Coder::miss`] must come next.
    fn hit(&mut self, section: Section, predicted: u64) -> bool;

    /// The next word: perhaps one of `others`, or one near `near`.
    fn miss(&mut self, section: Section, others: [u64; 3], near: u64) -> Result<u64, Malformed>;
}

/// No prediction was right: the low bits of an outcome, which else tell which one was.
const LITERAL: u8 = 3;
const CODE_BITS: u32 = 2;
/// The shortest run of right predictions that has no room in an outcome's byte.
const LONG_RUN: u64 = 63;

/// A chunk's sections while they are written.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub bytes: [Vec<u8>; SECTIONS],
    /// Right predictions since the last wrong one.
    runs: [u64; SECTIONS],
}

/// Writes a record.
pub(crate) struct Encoder<'a> {
    pub sections: &'a mut Sections,
    /// What is left of it.
    pub words: &'a [u64],
}

impl Coder for Encoder<'_> {
    #[inline(always)]
    fn hit(&mut self, section: Section, predicted: u64) -> bool {
        let is_hit = self.words[0] == predicted;
        self.words = &self.words[usize::from(is_hit)..];
        self.sections.runs[section as usize] += u64::from(is_hit);
        is_hit
    }

    fn miss(&mut self, section: Section, others: [u64; 3], near: u64) -> Result<u64, Malformed> {
        let word = self.words[0];
        self.words = &self.words[1..];
        let run = std::mem::take(&mut self.sections.runs[section as usize]);
        let bytes = &mut self.sections.bytes[section as usize];
        let code = others.iter().position(|other| *other == word);
        bytes.push(code.map_or(LITERAL, |code| code as u8) | (run.min(LONG_RUN) as u8) << CODE_BITS);
        if run >= LONG_RUN {
            put(bytes, run - LONG_RUN);
        }
        if code.is_none() {
            put_difference(&mut self.sections.bytes[section.literals() as usize], word, near);
        }
        Ok(word)
    }
}

/// An outcome: right predictions, and the wrong one behind them.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    run: u64,
    code: u8,
}

/// Reads a chunk's sections.
pub(crate) struct Decoder<'a> {
    sections: [Bytes<'a>; SECTIONS],
    outcomes: [Outcome; SECTIONS],
    /// The words that were read.
    pub words: &'a mut Vec<u64>,
}

impl<'a> Decoder<'a> {
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
        let mut outcome = Outcome { run: u64::MAX, code: LITERAL };
        if !bytes.is_empty() {
            let byte = bytes.byte()?;
            outcome = Outcome { run: (byte >> CODE_BITS).into(), code: byte & ((1 << CODE_BITS) - 1) };
            if outcome.run == LONG_RUN {
                outcome.run = bytes.number()?.saturating_add(LONG_RUN);
            }
        }
        self.outcomes[section as usize] = outcome;
        Ok(())
    }
}

impl Coder for Decoder<'_> {
    #[inline(always)]
    fn hit(&mut self, section: Section, predicted: u64) -> bool {
        let run = &mut self.outcomes[section as usize].run;
        if *run == 0 {
            return false;
        }
        *run -= 1;
        self.words.push(predicted);
        true
    }

    fn miss(&mut self, section: Section, others: [u64; 3], near: u64) -> Result<u64, Malformed> {
        let code = self.outcomes[section as usize].code;
        self.next_outcome(section)?;
        let word = match others.get(code as usize) {
            Some(&word) => word,
            None => self.sections[section.literals() as usize].difference(near)?,
        };
        self.words.push(word);
        Ok(word)
    }
}
