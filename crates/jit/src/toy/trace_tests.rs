//! The toy's program in trace files: they have what was executed, and a wrong one is found.

use std::fs::OpenOptions;
use std::io::ErrorKind;

use events::record::{Entries, Entry, Event, Mark};
use isa::InstructionSet;
use tempfile::NamedTempFile;
use trace::check::{Rule, check};
use trace::{Header, ProcessDictionary, StreamWriter, Trace, Writer};

use super::instruction_set::ToySet;
use super::tests::{CODE, DATA, ROUNDS, ToyRunner, load, runner};
use crate::test_runner::{ACCESSES, MEMORY, VALUES};

/// The execution of a block: where it begins in the program, the number of its instructions, its addresses and values.
#[derive(Clone, Debug, PartialEq)]
struct ToyExecution {
    at: u64,
    instructions: usize,
    addresses: Vec<u64>,
    values: Vec<u64>,
}

/// Instructions of the program before the second call, of [`OF_ROUND`] in each round.
const BEFORE_SECOND_CALL: u64 = 2 + 1 + 5;
pub(super) const OF_ROUND: u64 = 1 + 5 + 1 + 2 + 2;

/// The executions of the program, worked out by hand.
fn expected(has_values: bool) -> Vec<ToyExecution> {
    let mut all = Vec::new();
    let mut executed = |at, instructions, addresses: &[u64], values: &[u64]| {
        let values = if has_values { values.to_vec() } else { Vec::new() };
        all.push(ToyExecution { at, instructions, addresses: addresses.to_vec(), values });
    };
    let mut sum = 0_u64;
    for round in 0..ROUNDS {
        if round == 0 {
            executed(0, 3, &[], &[0, ROUNDS]);
        } else {
            executed(8, 1, &[], &[]);
        }
        let (data, number, left) = (DATA + 16 * round, round * round, ROUNDS - round);
        sum = sum.wrapping_add(number);
        executed(26, 5, &[data, data + 8], &[number, sum, sum, data + 16]);
        executed(12, 1, &[], &[]);
        sum = sum.wrapping_sub(left);
        executed(42, 2, &[], &[sum]);
        executed(14, 2, &[], &[left - 1, left - 1]);
    }
    executed(22, 1, &[], &[]);
    all
}

/// Writes records of a program's blocks, and a mark of the system call that ends it, to a trace file.
fn write<const LEVEL: u8>(runner: &ToyRunner<LEVEL>, records: &[u64]) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    let open = OpenOptions::new().append(true).open(file.path()).expect("the file");
    let header =
        Header { instruction_set: ToySet.name().into(), has_values: LEVEL == VALUES, ..Header::default() };
    let writer = Writer::with_sets(open, &header, &[&ToySet]).expect("a header");
    let process = ProcessDictionary::new(&writer, 0, 1);
    for (id, block) in runner.cache.blocks().iter().enumerate() {
        let number = process.block(events::Block::new(&ToySet, block.address, block.words.clone()), || None);
        assert_eq!(number.expect("a block") as usize, id);
    }
    let mut stream = StreamWriter::new(&process);
    stream.write(records).expect("records");
    stream.write(&[Event::Mark(Mark::SystemCall(0)).word()]).expect("a mark");
    stream.finish().expect("the end");
    file
}

fn read(file: &NamedTempFile) -> Trace {
    Trace::with_sets(file.reopen().expect("the file"), file.path(), &[&ToySet]).expect("a trace")
}

/// A trace of the program.
pub(super) fn trace<const LEVEL: u8>(is_compiled: bool) -> Trace {
    let memory = load();
    let runner = runner::<LEVEL>(&memory, is_compiled).run();
    read(&write(&runner, &runner.observer.records))
}

/// The executions in a trace, whose last entry is the system call's mark.
fn executions(trace: &Trace) -> Vec<ToyExecution> {
    let (mut words, mut all) = (Vec::new(), Vec::new());
    trace.read(0, &mut words).expect("records");
    let mut entries = Entries::new(&words, trace.shapes());
    for entry in &mut entries {
        let Entry::Execution(execution) = entry else {
            assert_eq!(entry, Entry::Mark(Mark::SystemCall(0)));
            break;
        };
        let block = &trace.blocks()[execution.block as usize];
        all.push(ToyExecution {
            at: block.address - CODE,
            instructions: block.words.len(),
            addresses: execution.addresses.to_vec(),
            values: execution.values.to_vec(),
        });
    }
    assert!(entries.rest().is_empty());
    all
}

/// Traces the program and compares the file's contents with what it must have.
fn traced<const LEVEL: u8>(is_compiled: bool) {
    let memory = load();
    let runner = runner::<LEVEL>(&memory, is_compiled).run();
    assert_eq!(runner.entered > 0, is_compiled);
    let file = write(&runner, &runner.observer.records);
    let trace = read(&file);
    assert_eq!((trace.header().instruction_set.as_str(), trace.problems()), ("toy", &[][..]));
    assert_eq!((trace.streams().len(), trace.chunks().len()), (1, 1));
    assert!(executions(&trace) == expected(LEVEL == VALUES), "compiled: {is_compiled}");
    let report = check(&trace);
    assert_eq!(report.listed, []);
    assert_eq!(report.instructions, 2 + OF_ROUND * ROUNDS + 1);
    assert_eq!((report.calls, report.returns, report.outside), (2 * ROUNDS, 2 * ROUNDS, 0));
    // The first access determines the base register; all later addresses follow from it.
    assert_eq!((report.accesses, report.derived), (2 * ROUNDS, 2 * ROUNDS - 1));
    // So hardly anything of the 7,000 words without values has to be written.
    let bytes = file.path().metadata().expect("the file").len();
    assert!(LEVEL == VALUES || bytes < 1000, "{bytes} bytes");
}

#[test]
fn a_trace_has_what_the_interpreter_executed() {
    let _only = MEMORY.lock();
    traced::<ACCESSES>(false);
}

#[test]
fn a_trace_has_what_compiled_code_executed() {
    let _only = MEMORY.lock();
    traced::<ACCESSES>(true);
}

/// Programs whose values are recorded are interpreted.
#[test]
fn a_trace_has_the_values_of_instructions() {
    let _only = MEMORY.lock();
    traced::<VALUES>(false);
}

#[test]
fn a_wrong_trace_is_found() {
    let _only = MEMORY.lock();
    let memory = load();
    let runner = runner::<ACCESSES>(&memory, true).run();
    let records = &runner.observer.records;
    let block = |at: u64| {
        let found = runner.cache.blocks().iter().position(|block| block.address == CODE + at);
        Event::Block(found.expect("a block") as u32).word()
    };
    let position = |at: u64| records.iter().position(|&word| word == block(at)).expect("an execution");
    let (control, address) = ("control cannot have come here from 0x40000000", DATA + 16);
    // The word that is changed, and to what; the violation: its rule, the instructions before it, its address.
    let cases = [
        // A return to another address than behind its call; a branch to where it does not go; a store elsewhere.
        (position(12), block(22), Rule::Control, BEFORE_SECOND_CALL, 22, format!("{control}28")),
        (position(8), block(12), Rule::Control, 2 + OF_ROUND, 12, format!("{control}12")),
        (position(26) + 2, address, Rule::Address, 3, 32, format!("accesses {address:#x}, but")),
    ];
    for (index, word, rule, instruction, at, what) in cases {
        let mut wrong = records.clone();
        wrong[index] = word;
        let report = check(&read(&write(&runner, &wrong)));
        let first = &report.listed[0];
        assert_eq!((first.rule, first.instruction, first.pc - CODE), (rule, instruction, at), "{report:?}");
        assert!(first.what.starts_with(&what), "{first}");
    }
    assert_eq!(check(&read(&write(&runner, records))).violations, 0);
}

#[test]
fn a_trace_of_an_unknown_instruction_set_is_refused() {
    let _only = MEMORY.lock();
    let memory = load();
    let runner = runner::<ACCESSES>(&memory, false).run();
    let file = write(&runner, &runner.observer.records);
    let error = Trace::open(file.path()).expect_err("not Alpha's").to_string();
    let what = "a trace of the instruction set 'toy'; this pathlength reads those of alpha, alpha-system, ";
    assert!(error.starts_with(&format!("{}: {what}", file.path().display())), "{error}");
    let open = OpenOptions::new().append(true).open(file.path()).expect("the file");
    let header = Header { instruction_set: ToySet.name().into(), ..Header::default() };
    assert_eq!(Writer::new(open, &header).expect_err("not Alpha's").kind(), ErrorKind::InvalidInput);
}
