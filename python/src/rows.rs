//! A row an instruction, in record batches.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock};

use analysis::replay::{AccessInstruction, Executed, Replay, Visitor};
use arrow_array::builder::{ArrayBuilder, PrimitiveBuilder, UInt8Builder, UInt32Builder, UInt64Builder};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use events::record::address_of_word;

/// Rows of a batch, and those of a block more.
const ROWS: usize = 1 << 16;

/// The effect of an instruction on memory: the column `kind` refers to these.
const KINDS: [&str; 3] = ["other", "load", "store"];

/// The columns; without values the last is left out.
pub fn schema(has_values: bool) -> Schema {
    let kind = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let mut fields = vec![
        Field::new("stream", DataType::UInt32, false),
        Field::new("instruction", DataType::UInt64, false),
        Field::new("pc", DataType::UInt64, false),
        Field::new("word", DataType::UInt32, false),
        Field::new("block", DataType::UInt32, false),
        Field::new("kind", kind, false),
        Field::new("size", DataType::UInt8, true),
        Field::new("address", DataType::UInt64, true),
    ];
    if has_values {
        fields.push(Field::new("value", DataType::UInt64, true));
    }
    let pandas = report::pandas_metadata(&fields);
    Schema::new_with_metadata(fields, HashMap::from([(report::PANDAS.into(), pandas)]))
}

/// Makes batches and puts them somewhere.
pub struct RowBatches<'a, P> {
    replay: &'a Replay<'a>,
    /// By block, which instructions have a value; none if no values were recorded.
    values: Option<Vec<Box<[bool]>>>,
    schema: Arc<Schema>,
    put: P,
    columns: Columns,
}

#[derive(Default)]
struct Columns {
    stream: UInt32Builder,
    instruction: UInt64Builder,
    pc: UInt64Builder,
    word: UInt32Builder,
    block: UInt32Builder,
    kind: PrimitiveBuilder<Int8Type>,
    size: UInt8Builder,
    address: UInt64Builder,
    value: UInt64Builder,
}

impl<'a, P: FnMut(RecordBatch) -> io::Result<()>> RowBatches<'a, P> {
    /// No rows yet.
    pub fn new(replay: &'a Replay<'a>, put: P) -> RowBatches<'a, P> {
        let trace = replay.dictionary.trace;
        let has_values = trace.header().has_values;
        let set = trace.instruction_set();
        let has_value = |&word: &u32| set.summary(word).is_some_and(|summary| summary.value.is_some());
        let values =
            || trace.blocks().iter().map(|block| block.words.iter().map(has_value).collect()).collect();
        RowBatches {
            replay,
            values: has_values.then(values),
            schema: Arc::new(schema(has_values)),
            put,
            columns: Columns::default(),
        }
    }

    /// Puts the last rows.
    pub fn finish(&mut self) -> io::Result<()> {
        static NAMES: LazyLock<ArrayRef> = LazyLock::new(|| Arc::new(StringArray::from(KINDS.to_vec())));
        let columns = &mut self.columns;
        let kinds: Int8Array = columns.kind.finish();
        let kinds = DictionaryArray::try_new(kinds, NAMES.clone()).map_err(io::Error::other)?;
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(columns.stream.finish()),
            Arc::new(columns.instruction.finish()),
            Arc::new(columns.pc.finish()),
            Arc::new(columns.word.finish()),
            Arc::new(columns.block.finish()),
            Arc::new(kinds),
            Arc::new(columns.size.finish()),
            Arc::new(columns.address.finish()),
        ];
        if self.values.is_some() {
            arrays.push(Arc::new(columns.value.finish()));
        }
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(io::Error::other)?;
        if batch.num_rows() == 0 { Ok(()) } else { (self.put)(batch) }
    }
}

impl<P: FnMut(RecordBatch) -> io::Result<()>> Visitor for RowBatches<'_, P> {
    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        let execution = executed.execution;
        let block = &self.replay.dictionary.trace.blocks()[execution.block as usize];
        let has_value = self.values.as_ref().map(|values| &values[execution.block as usize]);
        let accesses = self.replay.accesses.of(execution.block).iter().zip(execution.addresses);
        let mut accesses = accesses.peekable();
        let mut values = execution.values.iter();
        let columns = &mut self.columns;
        for (index, (&word, pc)) in block.words.iter().zip(block.addresses()).enumerate() {
            let access = accesses.next_if(|(access, _)| access.index as usize == index);
            let value = has_value.filter(|has| has[index]).and_then(|_| values.next());
            if !executed.selected.has(index) {
                continue;
            }
            columns.stream.append_value(executed.stream);
            columns.instruction.append_value(executed.before + index as u64 + 1);
            columns.pc.append_value(pc);
            columns.word.append_value(word);
            columns.block.append_value(execution.block);
            columns.kind.append_value(access.map_or(0, |(access, _)| kind(access)));
            columns.size.append_option(access.map(|(access, _)| access.size));
            columns.address.append_option(access.map(|(_, &word)| address_of_word(word)));
            columns.value.append_option(value.copied());
        }
        if columns.stream.len() >= ROWS { self.finish() } else { Ok(()) }
    }
}

/// The index of [`KINDS`].
fn kind(access: &AccessInstruction) -> i8 {
    if access.is_store { 2 } else { 1 }
}
