//! The long table of a trace's instructions is read back unchanged.

use std::fs::OpenOptions;

use analysis::export::{ExecutedInstruction, InstructionSink};
use analysis::replay::AccessInstruction;
use arrow_array::{Array, Int64Array, StringArray};
use events::Block;
use events::record::{Event, RecordShape};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pathlength_report::{Error, InstructionTable};
use trace::{Header, ProcessDictionary, StreamWriter, Trace, Writer};

/// `ldq t0,0(sp)`, `unop`, `br`.
const WORDS: [u32; 3] = [0xa43e_0000, 0x2ffe_0000, 0xc3e0_0000];

/// A trace of one execution of a block of these.
fn trace(has_values: bool) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let writer = Writer::new(file, &Header { has_values, ..Header::default() }).unwrap();
    let process = ProcessDictionary::new(&writer, 0, 0);
    let block = Block::new(&isa::Alpha, 0x1_2000_0000, WORDS);
    let shape = RecordShape::new(&isa::Alpha, &block.words, has_values);
    let id = process.block(block, || None).unwrap();
    let mut words = vec![Event::Block(id).word()];
    words.resize(shape.words() as usize, 0x1000);
    let mut stream = StreamWriter::new(&process);
    stream.write(&words).unwrap();
    stream.finish().unwrap();
    Trace::open(&path).unwrap()
}

fn step(number: u64, index: u32) -> ExecutedInstruction {
    let access = AccessInstruction { index: 0, size: 8, is_store: false };
    ExecutedInstruction {
        stream: 0,
        number,
        block: 0,
        index,
        pc: 0x1_2000_0000 + 4 * u64::from(index),
        unit: number.is_multiple_of(2).then_some(7),
        access: (index == 0).then_some((access, number * 8)),
        value: (index == 0).then_some(u64::MAX - number),
    }
}

#[test]
fn reads_back_equal_however_long() {
    for has_values in [false, true] {
        let trace = trace(has_values);
        // More than are handed over together.
        let count = 100_000_u64;
        let mut file = Vec::new();
        let mut table = InstructionTable::new(&trace, &mut file).unwrap();
        (0..count).for_each(|number| table.step(&step(number, (number % 3) as u32)).unwrap());
        table.finish().unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file)).unwrap();
        let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
        let known =
            ["process", "thread", "number", "unit", "block", "pc", "word", "mnemonic", "address", "value"];
        assert_eq!(names, known[..if has_values { 10 } else { 9 }]);
        let mut number = 0;
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let integers = |name: &str| {
                batch[name].as_any().downcast_ref::<Int64Array>().unwrap().iter().collect::<Vec<_>>()
            };
            let mnemonics = batch["mnemonic"].as_any().downcast_ref::<StringArray>().unwrap();
            let [numbers, units, pcs, words, addresses] =
                ["number", "unit", "pc", "word", "address"].map(integers);
            let values = has_values.then(|| integers("value"));
            for row in 0..batch.num_rows() {
                let index = (number % 3) as u32;
                let expected = step(number, index);
                assert_eq!(numbers[row], Some(number as i64));
                assert_eq!(units[row], expected.unit.map(|unit| unit as i64));
                assert_eq!(pcs[row], Some(expected.pc as i64));
                assert_eq!(words[row], Some(WORDS[index as usize].into()));
                assert_eq!(mnemonics.value(row), ["ldq", "unop", "br"][index as usize]);
                assert_eq!(addresses[row], expected.access.map(|(_, address)| address as i64));
                if let Some(values) = &values {
                    assert_eq!(values[row], expected.value.map(u64::cast_signed));
                }
                number += 1;
            }
        }
        assert_eq!(number, count);
    }
}

/// Takes so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_as_such() {
    let trace = trace(false);
    let mut table = InstructionTable::new(&trace, Full(1000)).unwrap();
    let written = (0..100_000).try_for_each(|number| table.step(&step(number, 0)));
    let error = match written {
        Ok(()) => table.finish().unwrap_err(),
        Err(error) => Error::Stream(error),
    };
    assert!(
        matches!(&error, Error::Stream(error) if error.kind() == std::io::ErrorKind::StorageFull),
        "{error}"
    );
}
