//! Packs the records of a chunk: a [model](model) predicts them, and what it predicts wrongly is written.

mod coder;
mod guesses;
mod memory;
mod model;
pub(crate) mod recipe;
mod table;
mod values;

use std::io;

use self::coder::{Decoder, Encoder, SECTIONS, Section, Sections};
use self::model::Model;
pub(crate) use self::recipe::Recipes;
use crate::bytes::{Bytes, Malformed, put};
use crate::container::{LONGEST, MOST_WORDS, NONE, pack, unpack};
use events::BlockId;
use events::record::{Event, Mark};

/// How thoroughly to pack what the models leave.
const LEVEL: i32 = 3;
/// A chunk ends with the first record that takes one of these to this or more. Words take eleven bytes each on
/// average at most, so that no chunk gets near its limits.
const ENOUGH_INSTRUCTIONS: u64 = 4 << 20;
const ENOUGH_WORDS: u32 = MOST_WORDS / 2;

/// Packs a chunk.
pub(crate) struct Packer {
    model: Model,
    sections: Sections,
    /// Blocks since the last mark.
    since_mark: u64,
    pub words: u32,
    pub instructions: u64,
    /// The first unit of work that begins in it, or [`NONE`].
    pub first_unit: u64,
    /// The number of its last order mark.
    pub last_order: Option<u64>,
}

impl Packer {
    pub fn new(has_values: bool) -> Packer {
        Packer {
            model: Model::new(has_values),
            sections: Sections::default(),
            since_mark: 0,
            words: 0,
            instructions: 0,
            first_unit: NONE,
            last_order: None,
        }
    }

    /// Whether it is time for another chunk.
    pub fn is_full(&self) -> bool {
        self.instructions >= ENOUGH_INSTRUCTIONS || self.words >= ENOUGH_WORDS
    }

    /// Adds the record of a block, which `words` begin with. Returns the words behind it.
    #[inline(always)]
    pub fn execution<'a>(
        &mut self,
        id: BlockId,
        words: &'a [u64],
        recipes: &Recipes,
    ) -> Result<&'a [u64], Malformed> {
        let recipe = recipes.get(id)?;
        let record = words.split_at_checked(recipe.words as usize);
        let (record, rest) = record.ok_or(Malformed("the last block's record is cut"))?;
        let mut encoder = Encoder { sections: &mut self.sections, record, start: self.words.into(), at: 0 };
        let executed = self.model.execution(&mut encoder, recipes)?;
        let addresses = &record[1..encoder.at];
        self.model.values(&mut encoder, recipes, &executed, addresses)?;
        self.since_mark += 1;
        self.words += record.len() as u32;
        self.instructions += u64::from(recipe.instructions);
        Ok(rest)
    }

    pub fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Gap | Mark::Diverted => self.model.divert(),
            Mark::Order(number) => self.last_order = Some(number),
            Mark::UnitBegins(number) if self.first_unit == NONE => self.first_unit = number,
            _ => {}
        }
        let marks = &mut self.sections.bytes[Section::Marks as usize];
        put(marks, self.since_mark);
        put(marks, Event::Mark(mark).word().rotate_left(8));
        self.since_mark = 0;
        self.words += 1;
    }

    /// The chunk's payload.
    pub fn payload(&self) -> io::Result<Vec<u8>> {
        let mut payload = Vec::new();
        for section in &self.sections.bytes {
            pack(&mut payload, section, LEVEL, false)?;
        }
        Ok(payload)
    }
}

/// Unpacks a payload into a number of `words`, which must be empty. `global` numbers the process's blocks. Returns how many instructions they are.
pub(crate) fn unpack_records(
    payload: &[u8],
    count: u32,
    recipes: &Recipes,
    global: impl Fn(BlockId) -> BlockId,
    words: &mut Vec<u64>,
) -> Result<u64, Malformed> {
    let (mut payload, mut room) = (Bytes(payload), LONGEST);
    let mut sections: [Vec<u8>; SECTIONS] = Default::default();
    for section in &mut sections {
        *section = unpack(&mut payload, &mut room, false)?;
    }
    let count = count as usize;
    let mut instructions = 0;
    words.reserve_exact(count);
    let mut decoder = Decoder::new(sections.each_ref().map(|section| &section[..]), words)?;
    let mut model = Model::new(recipes.has_values);
    let mut addresses = Vec::new();
    let mut until_mark = next_mark(decoder.marks())?;
    while decoder.words.len() < count {
        if until_mark > 0 {
            let at = decoder.words.len();
            let executed = model.execution(&mut decoder, recipes)?;
            decoder.words[at] = Event::Block(global(executed.id)).word();
            if recipes.has_values {
                addresses.clear();
                addresses.extend_from_slice(&decoder.words[at + 1..]);
                model.values(&mut decoder, recipes, &executed, &addresses)?;
            }
            instructions += u64::from(recipes.get(executed.id)?.instructions);
            until_mark -= 1;
            continue;
        }
        let word = decoder.marks().number()?.rotate_right(8);
        let Event::Mark(mark) = Event::new(word) else { return Err(Malformed("a mark is none")) };
        if matches!(mark, Mark::Gap | Mark::Diverted) {
            model.divert();
        }
        decoder.words.push(word);
        until_mark = next_mark(decoder.marks())?;
    }
    if decoder.words.len() != count || !decoder.is_at_end() {
        return Err(Malformed("it does not have the words that its head claims"));
    }
    Ok(instructions)
}

/// How many blocks come before the next mark.
fn next_mark(marks: &mut Bytes) -> Result<u64, Malformed> {
    if marks.is_empty() { Ok(u64::MAX) } else { marks.number() }
}
