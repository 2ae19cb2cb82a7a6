//! Positions in a trace, and the order of its streams.

use events::Block;
use events::record::{Event, Mark};
use pathlength_trace::check::check;
use pathlength_trace::{Header, ProcessDictionary, StreamWriter, Trace};

use crate::made::{begin, path};
use crate::program::{Item, Name, define, words};

/// A stream of several chunks: executions of a block of 8 instructions; each thousand is a unit of work with an order
/// number.
fn long(name: &str, times: u64) -> Trace {
    let path = path(name);
    let process = ProcessDictionary::new(&begin(&path, &Header::default()), 0, 1);
    let mut words = vec![0x47ff_041f; 8];
    words[7] = isa::encode::branch(isa::Op::Br, 31, -32).unwrap();
    let block = Block::new(&isa::Alpha, 0x1000, words);
    let id = process.block(block, || None).unwrap();
    let mut stream = StreamWriter::new(&process);
    for number in 0..times {
        let order = Event::Mark(Mark::Order(number / 1000 + 1)).word();
        let begins = Event::Mark(Mark::UnitBegins(number / 1000)).word();
        let ends = Event::Mark(Mark::UnitEnds(number / 1000)).word();
        let word = Event::Block(id).word();
        match number % 1000 {
            0 => stream.write(&[order, begins, word]).unwrap(),
            999 => stream.write(&[word, ends]).unwrap(),
            _ => stream.write(&[word]).unwrap(),
        }
    }
    stream.finish().unwrap();
    Trace::open(&path).unwrap()
}

#[test]
fn instructions_and_units_are_found() {
    let trace = long("positions", 1_500_000);
    assert_eq!(trace.stream_chunks(0), [0, 1, 2]);
    let total: u64 = trace.chunks().iter().map(|chunk| chunk.instructions).sum();
    assert_eq!(total, 12_000_000);
    let mut words = Vec::new();
    for instruction in [0, 7, 8, 4_194_303, 4_194_304, 5_000_001, total - 1] {
        let position = trace.seek(0, instruction).unwrap().unwrap();
        assert_eq!(position.instruction, instruction & !7);
        trace.read(position.chunk, &mut words).unwrap();
        assert_eq!(Event::new(words[position.word]), Event::Block(0));
    }
    assert_eq!(trace.seek(0, total).unwrap(), None);
    assert_eq!(trace.seek(1, 0).unwrap(), None);
    for unit in [0, 1, 524, 525, 1499] {
        let position = trace.unit(unit).unwrap().unwrap();
        assert_eq!(position.instruction, unit * 8000);
        trace.read(position.chunk, &mut words).unwrap();
        assert_eq!(Event::new(words[position.word]), Event::Mark(Mark::UnitBegins(unit)));
    }
    assert_eq!(trace.unit(1500).unwrap(), None);
}

#[test]
fn what_goes_on_in_the_next_chunk_is_in_order() {
    let trace = long("next-chunk", 1_500_000);
    let mut pieces = trace.ordered();
    let mut lengths = vec![0; 1501];
    while let Some(piece) = pieces.next_run().unwrap() {
        lengths[piece.order as usize] += piece.words.len();
    }
    // A thousand blocks, and three marks.
    assert_eq!(lengths[0], 0);
    assert!(lengths[1..].iter().all(|&length| length == 1003));
    assert_eq!(check(&trace).listed, []);
}

/// Data of a trace on a NUMA machine, from a talk: processor, process, address.
const TRACED: [(u32, u32, u64); 11] = [
    (0, 128, 0x1230),
    (0, 128, 0x1240),
    (1, 321, 0x8820),
    (3, 161, 0x4210),
    (3, 161, 0x4220),
    (2, 421, 0x0500),
    (1, 321, 0x8830),
    (1, 6, 0x0070),
    (2, 421, 0x0510),
    (3, 161, 0x4230),
    (1, 6, 0x0080),
];

/// The same data as a trace: a stream for each process, with order marks.
fn talk(name: &str) -> Trace {
    let path = path(name);
    let writer = begin(&path, &Header { process: 128, ..Header::default() });
    let mut streams: Vec<(u32, StreamWriter)> = Vec::new();
    for (order, (_, pid, address)) in (1..).zip(TRACED) {
        let index = streams.iter().position(|one| one.0 == pid).unwrap_or_else(|| {
            let process = ProcessDictionary::new(&writer, streams.len() as u32, pid);
            define(&process);
            streams.push((pid, StreamWriter::new(&process)));
            streams.len() - 1
        });
        let record = [Item::Mark(Mark::Order(order)), Item::Run(Name::Outside, address)];
        streams[index].1.write(&words(&record)).unwrap();
    }
    for (_, mut stream) in streams {
        stream.finish().unwrap();
    }
    Trace::open(&path).unwrap()
}

/// The host's number of a stream's process.
fn pid(trace: &Trace, stream: u32) -> u32 {
    match trace.streams()[stream as usize].host_process {
        0 => trace.header().process,
        host => host,
    }
}

fn addresses(words: &[u64]) -> Vec<u64> {
    words.iter().copied().filter(|&word| matches!(Event::new(word), Event::Access(_))).collect()
}

#[test]
fn a_trace_is_put_in_order() {
    let trace = talk("ordered");
    let mut pieces = trace.ordered();
    let mut rows = Vec::new();
    while let Some(piece) = pieces.next_run().unwrap() {
        assert_eq!(piece.order, rows.len() as u64 + 1);
        rows.extend(addresses(piece.words).into_iter().map(|address| (pid(&trace, piece.stream), address)));
    }
    let expected: Vec<_> = TRACED.iter().map(|&(_, pid, address)| (pid, address)).collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_trace_is_separated_by_process() {
    let trace = talk("separated");
    let expected: [(u32, &[u64]); 5] = [
        (6, &[0x0070, 0x0080]),
        (128, &[0x1230, 0x1240]),
        (161, &[0x4210, 0x4220, 0x4230]),
        (321, &[0x8820, 0x8830]),
        (421, &[0x0500, 0x0510]),
    ];
    let mut columns: Vec<(u32, Vec<u64>)> = (0..trace.streams().len() as u32)
        .map(|stream| (pid(&trace, stream), addresses(&crate::made::read_stream(&trace, stream as usize))))
        .collect();
    columns.sort();
    assert!(columns.iter().map(|(pid, column)| (*pid, &column[..])).eq(expected));
}

/// Time slices as rows: processor, process, addresses.
fn turns(trace: &Trace, processors: u32, quantum: u64) -> Vec<(u32, u32, Vec<u64>)> {
    let mut rows = Vec::new();
    let mut schedule = trace.schedule(processors, quantum);
    while let Some(turn) = schedule.next_slice().unwrap() {
        rows.push((turn.processor, pid(trace, turn.stream), addresses(turn.words)));
    }
    rows
}

#[test]
fn a_trace_is_assigned_to_other_processors() {
    let trace = talk("assigned");
    // One processor, one process after the other.
    let whole: Vec<u32> = turns(&trace, 1, 1000).iter().map(|turn| turn.1).collect();
    assert_eq!(whole, [128, 321, 161, 421, 6]);
    // Two processors: the processes take turns of one instruction.
    let rows = turns(&trace, 2, 1);
    let of = |processor| -> Vec<(u32, u64)> {
        rows.iter().filter(|row| row.0 == processor).map(|row| (row.1, row.2[0])).collect()
    };
    let first = [(128, 0x1230), (161, 0x4210), (6, 0x0070), (128, 0x1240), (161, 0x4220), (6, 0x0080)];
    assert_eq!(of(0)[..6], first);
    assert_eq!(of(0)[6..], [(161, 0x4230)]);
    assert_eq!(of(1), [(321, 0x8820), (421, 0x0500), (321, 0x8830), (421, 0x0510)]);
    // They run in parallel.
    let order: Vec<u32> = rows.iter().map(|row| row.0).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0]);
}

#[test]
fn a_turn_ends_behind_a_call_to_the_system() {
    let trace = crate::program::trace("turns", &crate::program::right());
    let mut schedule = trace.schedule(3, u64::MAX);
    let mut calls = Vec::new();
    while let Some(turn) = schedule.next_slice().unwrap() {
        assert_eq!(turn.processor, 0);
        calls.push((turn.time, Event::new(turn.words[turn.words.len() - 1])));
    }
    let call = Event::Mark(Mark::SystemCall(4));
    assert_eq!(calls[..2], [(0, call), (7, call)]);
    assert_eq!((calls.len(), calls[2].0), (3, 11));
}
