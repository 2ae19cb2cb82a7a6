//! The instructions of a trace as one long table, in Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use analysis::export::{ExecutedInstruction, InstructionSink};
use analysis::mix;
use arrow_array::builder::{ArrayBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use table::{Kind, Table};
use trace::Trace;

use crate::{Error, parquet};

/// Rows that are passed to the library together; its own memory is bounded by row groups.
const TOGETHER: usize = 1 << 16;

/// The column that is text; the others are integers.
const MNEMONIC: usize = 7;

/// Writes a row an instruction: process, thread, number in the thread, unit of work, block, address, word,
/// mnemonic, address accessed, and value, if values were recorded.
pub struct InstructionTable<'a, W: Write + Send> {
    trace: &'a Trace,
    table: Table,
    schema: Arc<Schema>,
    writer: ArrowWriter<W>,
    /// By block, the words and mnemonics of its instructions, once needed.
    blocks: Vec<Option<Box<[Coded]>>>,
    integers: Vec<Int64Builder>,
    mnemonics: StringBuilder,
}

/// An instruction's word and mnemonic.
type Coded = (u32, &'static str);

impl<'a, W: Write + Send> InstructionTable<'a, W> {
    /// Writes about a trace to `out`.
    pub fn new(trace: &'a Trace, out: W) -> Result<InstructionTable<'a, W>, Error> {
        let columns = [
            ("process", Kind::Count),
            ("thread", Kind::Count),
            ("number", Kind::Count),
            ("unit", Kind::Count),
            ("block", Kind::Count),
            ("pc", Kind::Address),
            ("word", Kind::Count),
            ("mnemonic", Kind::Text),
            ("address", Kind::Address),
            ("value", Kind::Count),
        ];
        let columns = if trace.header().has_values { &columns[..] } else { &columns[..9] };
        let table = Table::new("instructions", "Instructions in the order of execution", columns);
        let schema = parquet::schema(&table)?;
        let writer = parquet::writer(&table, schema.clone(), out)?;
        let integers = columns.iter().skip(1).map(|_| Int64Builder::with_capacity(TOGETHER)).collect();
        let (blocks, mnemonics) = (vec![None; trace.blocks().len()], StringBuilder::new());
        Ok(InstructionTable { trace, table, schema, writer, blocks, integers, mnemonics })
    }

    /// Writes the remaining rows.
    pub fn finish(mut self) -> Result<(), Error> {
        self.write()?;
        self.writer.close().map_err(|error| parquet::failed(&self.table, error))?;
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        let mut arrays: Vec<ArrayRef> =
            self.integers.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef).collect();
        arrays.insert(MNEMONIC, Arc::new(self.mnemonics.finish()));
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(Into::into);
        let written = batch.and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| parquet::failed(&self.table, error))
    }

    fn coded(&mut self, step: &ExecutedInstruction) -> Coded {
        let words = &self.trace.blocks()[step.block as usize].words;
        let coded = |&word: &u32| (word, mix::name(self.trace.instruction_set(), word));
        let block = &mut self.blocks[step.block as usize];
        block.get_or_insert_with(|| words.iter().map(coded).collect())[step.index as usize]
    }
}

impl<W: Write + Send> InstructionSink for InstructionTable<'_, W> {
    fn step(&mut self, step: &ExecutedInstruction) -> io::Result<()> {
        let (word, mnemonic) = self.coded(step);
        let stream = &self.trace.streams()[step.stream as usize];
        let cells = [
            Some(stream.process.into()),
            Some(stream.thread.into()),
            Some(step.number),
            step.unit,
            Some(step.block.into()),
            Some(step.pc),
            Some(word.into()),
            step.access.map(|(_, address)| address),
            step.value,
        ];
        for (builder, cell) in self.integers.iter_mut().zip(cells) {
            builder.append_option(cell.map(u64::cast_signed));
        }
        self.mnemonics.append_value(mnemonic);
        if self.integers[0].len() >= TOGETHER { self.write().map_err(Error::into_io) } else { Ok(()) }
    }
}
