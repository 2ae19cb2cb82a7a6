//! Compresses the records of a chunk: a [model](model) predicts them, and only mispredictions are written.

pub(crate) mod block_summary;
mod coder;
mod context_predictor;
mod memory_model;
mod model;
mod table;
mod value_predictor;
mod value_step;

use std::io;

pub(crate) use self::block_summary::BlockSummaries;
use self::coder::{ChunkSection, ChunkSections, Decoder, RecordEncoder, SECTIONS};
use self::model::AddressModel;
use crate::bytes::{Bytes, Malformed, put};
use crate::container::{MAX_BYTES, MAX_WORDS, NONE, pack, unpack};
use events::BlockId;
use events::record::{Event, Mark};

/// Compression level of zstd for the mispredictions.
const LEVEL: i32 = 3;
/// A chunk ends with the first record by which it reaches one of these sizes. A word takes at most eleven bytes on
/// average, so that no chunk reaches the limits of the format.
const ENOUGH_INSTRUCTIONS: u64 = 4 << 20;
const ENOUGH_WORDS: u32 = MAX_WORDS / 2;

/// Compresses a chunk.
pub(crate) struct Packer {
    model: AddressModel,
    sections: ChunkSections,
    /// Blocks since the last mark.
    since_mark: u64,
    pub words: u32,
    pub instructions: u64,
    /// The first unit of work that begins in the chunk, or [`NONE`].
    pub first_unit: u64,
    /// The number of its last order mark.
    pub last_order: Option<u64>,
}

impl Packer {
    /// Begins a chunk of executions of blocks that have these summaries.
    pub fn new(summaries: &BlockSummaries) -> Packer {
        Packer {
            model: AddressModel::new(summaries),
            sections: ChunkSections::default(),
            since_mark: 0,
            words: 0,
            instructions: 0,
            first_unit: NONE,
            last_order: None,
        }
    }

    /// Whether the next record belongs to a new chunk.
    pub fn is_full(&self) -> bool {
        self.instructions >= ENOUGH_INSTRUCTIONS || self.words >= ENOUGH_WORDS
    }

    /// Adds the record at the start of `words`, which is of a block. Returns the words after it.
    #[inline(always)]
    pub fn execution<'a>(
        &mut self,
        id: BlockId,
        words: &'a [u64],
        summaries: &BlockSummaries,
    ) -> Result<&'a [u64], Malformed> {
        let summary = summaries.get(id)?;
        let record = words.split_at_checked(summary.words as usize);
        let (record, rest) = record.ok_or(Malformed("the last block's record is cut"))?;
        let mut encoder =
            RecordEncoder { sections: &mut self.sections, record, start: self.words.into(), at: 0 };
        let coded = self.model.execution(&mut encoder, summaries)?;
        let addresses = &record[1..encoder.at];
        self.model.values(&mut encoder, summaries, &coded, addresses)?;
        self.since_mark += 1;
        self.words += record.len() as u32;
        self.instructions += u64::from(summary.instructions);
        Ok(rest)
    }

    pub fn mark(&mut self, mark: Mark) {
        if mark.changes_registers() {
            self.model.reset_registers();
        }
        match mark {
            Mark::Order(number) => self.last_order = Some(number),
            Mark::UnitBegins(number) if self.first_unit == NONE => self.first_unit = number,
            _ => {}
        }
        let marks = &mut self.sections.bytes[ChunkSection::Marks as usize];
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

/// Decompresses a payload of `count` words into `words`, which must be empty. `global` maps the process's block
/// numbers to the trace's. Returns the number of instructions.
pub(crate) fn unpack_records(
    payload: &[u8],
    count: u32,
    summaries: &BlockSummaries,
    global: impl Fn(BlockId) -> BlockId,
    words: &mut Vec<u64>,
) -> Result<u64, Malformed> {
    let (mut payload, mut room) = (Bytes(payload), MAX_BYTES);
    let mut sections: [Vec<u8>; SECTIONS] = Default::default();
    for section in &mut sections {
        *section = unpack(&mut payload, &mut room, false)?;
    }
    let count = count as usize;
    let mut instructions = 0;
    words.reserve_exact(count);
    let mut decoder = Decoder::new(sections.each_ref().map(|section| &section[..]), words)?;
    let mut model = AddressModel::new(summaries);
    let mut addresses = Vec::new();
    let mut until_mark = next_mark(decoder.marks())?;
    while decoder.words.len() < count {
        if until_mark > 0 {
            let at = decoder.words.len();
            let coded = model.execution(&mut decoder, summaries)?;
            decoder.words[at] = Event::Block(global(coded.id)).word();
            if summaries.has_values {
                addresses.clear();
                addresses.extend_from_slice(&decoder.words[at + 1..]);
                model.values(&mut decoder, summaries, &coded, &addresses)?;
            }
            instructions += u64::from(summaries.get(coded.id)?.instructions);
            until_mark -= 1;
            continue;
        }
        let word = decoder.marks().number()?.rotate_right(8);
        let Event::Mark(mark) = Event::new(word) else { return Err(Malformed("a mark is none")) };
        if mark.changes_registers() {
            model.reset_registers();
        }
        decoder.words.push(word);
        until_mark = next_mark(decoder.marks())?;
    }
    if decoder.words.len() != count || !decoder.is_at_end() {
        return Err(Malformed("it does not have the words that its head claims"));
    }
    Ok(instructions)
}

/// The number of blocks before the next mark.
fn next_mark(marks: &mut Bytes) -> Result<u64, Malformed> {
    if marks.is_empty() { Ok(u64::MAX) } else { marks.number() }
}
