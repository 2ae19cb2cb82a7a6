//! Streams as if their threads ran at the same time.

use std::collections::BTreeMap;

use events::Block;
use events::record::{Event, MappingEvent, Mark};
use pathlength_trace::interleave::{Assignment, Schedule};
use pathlength_trace::{Header, ProcessDictionary, StreamWriter, Trace};

use crate::made::{begin, path, read_stream};

/// Alpha's numbers of system calls.
const FUTEX: u32 = 394;
const CLONE: u32 = 312;
const WRITE: u32 = 4;

/// A trace of one process with these streams; block 0 has four instructions, block 1 is a load-locked.
fn trace(name: &str, streams: &[Vec<Event>]) -> Trace {
    let path = path(name);
    let process = ProcessDictionary::new(&begin(&path, &Header::default()), 0, 1);
    assert_eq!(process.block(Block::new(&isa::Alpha, 0x1000, vec![0x47ff_041f; 4]), || None).unwrap(), 0);
    let locked = isa::encode::memory(isa::Op::LdqL, 1, 2, 0).unwrap();
    assert_eq!(process.block(Block::new(&isa::Alpha, 0x2000, vec![locked]), || None).unwrap(), 1);
    for events in streams {
        let mut stream = StreamWriter::new(&process);
        // Several chunks.
        for part in events.chunks(36) {
            stream.write(&part.iter().map(|event| event.word()).collect::<Vec<_>>()).unwrap();
            stream.finish().unwrap();
        }
    }
    drop(process);
    Trace::open(&path).unwrap()
}

fn order(number: u64) -> Event {
    Event::Mark(Mark::Order(number))
}

fn call(number: u32) -> Event {
    Event::Mark(Mark::SystemCall(number))
}

fn blocks(count: usize) -> Vec<Event> {
    vec![Event::Block(0); count]
}

/// The turns: processor, stream, and events.
fn turns(trace: &Trace, processors: u32, quantum: u64) -> Vec<(u32, u32, Vec<Event>)> {
    turns_of(trace, Schedule::new(processors, quantum))
}

fn turns_of(trace: &Trace, schedule: Schedule) -> Vec<(u32, u32, Vec<Event>)> {
    let mut turns = Vec::new();
    let mut interleaved = trace.interleaved_where(schedule, |_| true);
    while let Some(slice) = interleaved.next_slice().unwrap() {
        let events = slice.words.iter().map(|&word| Event::new(word)).collect();
        turns.push((slice.processor, slice.stream, events));
    }
    turns
}

/// The streams of the executed blocks, in order.
fn executed(trace: &Trace, processors: u32, quantum: u64) -> Vec<u32> {
    let of = |(_, stream, events): (u32, u32, Vec<Event>)| {
        let blocks = events.into_iter().filter(|event| matches!(event, Event::Block(_))).count();
        std::iter::repeat_n(stream, blocks)
    };
    turns(trace, processors, quantum).into_iter().flat_map(of).collect()
}

#[test]
fn threads_that_were_recorded_one_after_the_other_alternate() {
    // The first creates the others, which then have the processor for themselves, one after the other.
    let first =
        [vec![order(1)], blocks(1), vec![call(CLONE), order(2)], blocks(1), vec![call(CLONE), order(5)]]
            .concat();
    let gap = Event::Mark(Mark::Gap);
    let others = [3, 7]
        .map(|number| [vec![gap, order(number)], blocks(4), vec![order(number + 1)], blocks(4)].concat());
    let [second, third] = others;
    let trace = trace("alternate", &[first, second, third]);
    let all = executed(&trace, 3, 8);
    // The turn that makes the second call is one without instructions.
    assert_eq!(all, [0, 0, 1, 1, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 2, 2]);
    // With a longer quantum they alternate later; on one processor they do not.
    assert_eq!(executed(&trace, 3, 16)[2..], [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert!(executed(&trace, 1, 8).is_sorted());
}

#[test]
fn a_thread_begins_when_it_was_created() {
    let first = [vec![order(1)], blocks(6), vec![call(CLONE), order(3)], blocks(2)].concat();
    let second = [vec![order(4)], blocks(2)].concat();
    let all = executed(&trace("created", &[first, second]), 2, 4);
    assert_eq!(all, [0, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
}

#[test]
fn a_thread_that_waited_continues_behind_what_the_others_had_done() {
    // The first waits until the second, whose call is number 6, has executed five blocks.
    let first = [vec![order(1)], blocks(1), vec![call(CLONE), call(FUTEX), order(7)], blocks(3)].concat();
    let second = [vec![order(4)], blocks(5), vec![call(WRITE), order(8)], blocks(3)].concat();
    let all = executed(&trace("waited", &[first, second]), 2, 4);
    assert_eq!(all[..6], [0, 1, 1, 1, 1, 1]);
    assert_eq!(all[6..].iter().filter(|&&stream| stream == 0).count(), 3);
    assert!(!all[6..].is_sorted(), "then both run: {all:?}");
    // Other calls do not wait.
    let first = [vec![order(1)], blocks(1), vec![call(CLONE), call(WRITE), order(7)], blocks(3)].concat();
    let second = [vec![order(4)], blocks(5)].concat();
    assert_eq!(executed(&trace("not-waited", &[first, second]), 2, 4), [0, 0, 1, 0, 1, 0, 1, 1, 1]);
}

#[test]
fn a_thread_continues_when_another_one_has_woken_it() {
    let locked = |word| vec![Event::Block(1), Event::Access(word)];
    let streams = |word| {
        let waits = [
            vec![order(1)],
            blocks(1),
            vec![call(CLONE)],
            locked(0x5000),
            vec![call(FUTEX), order(30)],
            blocks(3),
        ];
        let wakes =
            [vec![order(4)], locked(word), vec![call(FUTEX), order(8)], blocks(3), vec![order(9)], blocks(3)];
        [waits.concat(), wakes.concat()]
    };
    // The host let it continue late, which is no matter.
    assert_eq!(executed(&trace("woken", &streams(0x5004)), 2, 4), [0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1]);
    // The other one has called for another word: what the first waited for is not known.
    assert_eq!(executed(&trace("not-woken", &streams(0x6000)), 2, 4), [0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
}

/// Three threads at a barrier. The last one releases the others; the host lets one of them run on to the next barrier before the
/// other one continues, which waits neither for that one nor, if the release comes before its call, for all that was recorded in between.
#[test]
fn threads_released_by_a_barrier_overlap() {
    let arrive = || vec![Event::Block(1), Event::Access(0x5000)];
    let first = [vec![order(1)], blocks(1), vec![call(CLONE), call(CLONE)], arrive(), blocks(1)];
    let first = [first.concat(), vec![call(FUTEX), order(30)], blocks(6), arrive(), blocks(1)];
    let first = [first.concat(), vec![call(FUTEX), order(31)]].concat();
    // It is the last one at the first barrier, wakes from another instruction, and waits at the next one.
    let releases = |before: u64, after: u64| {
        let one = [vec![order(before)], arrive(), vec![call(FUTEX), order(after)], blocks(6)];
        [one.concat(), arrive(), blocks(1), vec![call(FUTEX), order(32)]].concat()
    };
    // A signal may interrupt the call, which is then made again.
    let mut interrupted = first.clone();
    let call_at = interrupted.iter().position(|event| *event == call(FUTEX)).unwrap();
    interrupted
        .splice(call_at..call_at, [call(FUTEX), Event::Mark(Mark::Discontinuity), order(3), Event::Block(0)]);
    let cases =
        [("released", &first, 5, 6), ("released-before", &first, 0, 1), ("interrupted", &interrupted, 5, 6)];
    for (name, first, before, after) in cases {
        let all = executed(&trace(name, &[first.clone(), releases(before, after)]), 2, 4);
        let last_of = |stream: u32| all.iter().rposition(|&one| one == stream).unwrap();
        let between = last_of(0).abs_diff(last_of(1));
        assert!(between <= 4, "{name}: {all:?}");
    }
}

#[test]
fn streams_wait_in_one_queue_for_processors() {
    // Three streams that could all begin at once, on two processors.
    let stream = |number| [vec![order(number)], blocks(6)].concat();
    let trace = trace("queue", &[stream(1), stream(1), stream(1)]);
    let streams_of = |assignment| -> Vec<(u32, u32)> {
        let schedule = Schedule { processors: 2, quantum: 8, assignment, time_slice: 8, is_saturated: false };
        let turns = turns_of(&trace, schedule).into_iter();
        turns.map(|(processor, stream, _)| (processor, stream)).collect()
    };
    // Each has three turns of two blocks. The third one takes the processor that is free first.
    let run_to_block = [(0, 0), (1, 1), (0, 0), (1, 1), (0, 0), (1, 1), (0, 2), (0, 2), (0, 2)];
    assert_eq!(streams_of(Assignment::RunToBlock), run_to_block);
    // The time slice is a turn: streams go to the end of the queue after each one.
    let round_robin = [(0, 0), (1, 1), (0, 2), (1, 0), (0, 1), (1, 2), (0, 0), (1, 1), (0, 2)];
    assert_eq!(streams_of(Assignment::RoundRobin), round_robin);
    // With affinity the first processor has two of them.
    let affinity = [(0, 0), (1, 1), (0, 2), (1, 1), (0, 0), (1, 1), (0, 2), (0, 0), (0, 2)];
    assert_eq!(streams_of(Assignment::Affinity), affinity);
}

#[test]
fn saturated_streams_wait_for_nobody_and_make_room_where_units_end() {
    // Each stream has two units of two blocks, and a call between them in which it waited for a client.
    let unit = |number| {
        [vec![Event::Mark(Mark::UnitBegins(number))], blocks(2), vec![Event::Mark(Mark::UnitEnds(number))]]
            .concat()
    };
    let stream = || [vec![order(1)], unit(1), vec![call(FUTEX), Event::Mark(Mark::Gap)], unit(2)].concat();
    let late = |number| [unit(1), vec![call(FUTEX), order(number)], unit(2)].concat();
    let executed_by = |trace: &Trace, processors, assignment| -> Vec<(u32, u32)> {
        let own = Schedule { assignment, is_saturated: true, ..Schedule::new(processors, 4) };
        let turns = turns_of(trace, own).into_iter();
        let has_blocks = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Block(_)));
        turns
            .filter(|(_, _, events)| has_blocks(events))
            .map(|(processor, stream, _)| (processor, stream))
            .collect()
    };
    // In the recorded run the first has waited until the second had ended.
    let waited = trace("saturated", &[late(9), blocks(4)]);
    let both = executed_by(&waited, 2, Assignment::Affinity);
    assert_eq!(both[..4], [(0, 0), (1, 1), (0, 0), (1, 1)], "both run at the same time");
    // With affinity each keeps its processor; two of one processor take turns of a unit.
    let three = trace("saturated-three", &[stream(), stream(), stream()]);
    let affinity = executed_by(&three, 2, Assignment::Affinity);
    assert!(affinity.iter().all(|&(processor, stream)| processor == stream % 2), "{affinity:?}");
    let of_first: Vec<u32> =
        affinity.into_iter().filter(|&(processor, _)| processor == 0).map(|(_, stream)| stream).collect();
    assert_eq!(of_first, [0, 0, 2, 2, 0, 0, 2, 2]);
    // In one queue, a processor that has executed a unit takes the stream that waits for the longest time.
    let queue = executed_by(&three, 1, Assignment::RunToBlock);
    assert_eq!(
        queue.iter().map(|&(_, stream)| stream).collect::<Vec<_>>(),
        [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]
    );
}

#[test]
fn a_process_begins_when_it_was_forked() {
    let path = path("forked");
    let writer = begin(&path, &Header::default());
    let write = |number: u32, events: &[Event]| {
        let process = ProcessDictionary::new(&writer, number, 1 + number);
        process.block(Block::new(&isa::Alpha, 0x1000, vec![0x47ff_041f; 4]), || None).unwrap();
        let mut stream = StreamWriter::new(&process);
        stream.write(&events.iter().map(|event| event.word()).collect::<Vec<_>>()).unwrap();
        stream.finish().unwrap();
    };
    // The parent forks two children, the second one when the first has not ended; both have the number of the fork.
    let parent = [vec![order(1)], blocks(1), vec![order(3)], blocks(1), vec![order(5)], blocks(1)].concat();
    let child = |number| {
        let copied = Event::Mark(Mark::Mapping(MappingEvent::Copied(0)));
        [vec![copied, Event::Mark(Mark::Gap), order(number)], blocks(4)].concat()
    };
    write(0, &parent);
    write(1, &child(2));
    write(2, &child(4));
    drop(writer);
    let trace = Trace::open(&path).unwrap();
    // All three run at the same time, as soon as they are there.
    assert_eq!(executed(&trace, 3, 4), [0, 0, 1, 0, 1, 2, 1, 2, 1, 2, 2]);
}

/// Random streams whose order numbers are as a recorder makes them.
fn random_streams(rng: &mut fastrand::Rng) -> Vec<Vec<Event>> {
    let mut streams = vec![Vec::new(); rng.usize(1..6)];
    let mut number = 0;
    let count = streams.len();
    for _ in 0..rng.usize(1..300) {
        let stream: &mut Vec<Event> = &mut streams[rng.usize(0..count)];
        number += 1;
        stream.push(order(number));
        stream.extend(blocks(rng.usize(0..9)));
        match rng.u32(0..6) {
            0 => stream.push(call(FUTEX)),
            1 => stream.push(call(*rng.choice(&[CLONE, WRITE]).unwrap())),
            2 => stream.push(Event::Mark(Mark::Gap)),
            3 => stream.extend([call(FUTEX), Event::Mark(Mark::UnitBegins(number))]),
            _ => {}
        }
    }
    streams
}

#[test]
fn nothing_is_lost_and_nobody_waits_for_nothing() {
    let (mut waited, mut overtook) = (0, 0);
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let streams = random_streams(&mut rng);
        let trace = trace("random", &streams);
        let (processors, quantum) = (rng.u32(1..5), rng.u64(1..40));
        let assignment = *rng
            .choice(&[
                Assignment::Affinity,
                Assignment::Recorded,
                Assignment::RoundRobin,
                Assignment::RunToBlock,
            ])
            .unwrap();
        let time_slice = rng.u64(1..100);
        let schedule = Schedule { processors, quantum, assignment, time_slice, is_saturated: false };
        let is_recorded = assignment == Assignment::Recorded;
        let mut read: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        let (mut waits, mut orders) = (BTreeMap::new(), vec![0; trace.streams().len()]);
        let mut has_begun = vec![false; trace.streams().len()];
        // By stream, the order numbers of the blocks that have not been executed.
        let mut left: Vec<Vec<u64>> =
            (0..trace.streams().len()).map(|stream| numbers(&trace, stream)).collect();
        for (processor, stream, events) in turns_of(&trace, schedule) {
            assert!(processor < processors);
            if matches!(assignment, Assignment::Affinity | Assignment::Recorded) {
                assert_eq!(processor, trace.assignment(processors)[stream as usize]);
            }
            for &event in &events {
                match event {
                    Event::Mark(Mark::SystemCall(FUTEX)) => drop(waits.insert(stream, true)),
                    Event::Mark(Mark::Gap) if has_begun[stream as usize] => drop(waits.insert(stream, true)),
                    Event::Mark(Mark::Order(number)) => {
                        let is_lowest = left.iter().flatten().all(|&other| other >= number);
                        if waits.insert(stream, false) == Some(true) {
                            assert!(is_lowest, "seed {seed}: {number} has waited for all before");
                            waited += 1;
                        }
                        assert!(is_lowest || !is_recorded, "seed {seed}: {number} comes too early");
                        overtook += u64::from(!is_lowest);
                        orders[stream as usize] = number;
                    }
                    Event::Block(_) => {
                        waits.insert(stream, false);
                        has_begun[stream as usize] = true;
                        assert_eq!(left[stream as usize].remove(0), orders[stream as usize]);
                    }
                    _ => {}
                }
            }
            read.entry(stream).or_default().extend(events);
        }
        for (stream, events) in read {
            let words: Vec<u64> = events.iter().map(|event| event.word()).collect();
            assert_eq!(words, read_stream(&trace, stream as usize), "seed {seed}");
        }
        assert!(left.iter().all(Vec::is_empty));
    }
    assert!(waited > 1000 && overtook > 1000, "{waited} waited, {overtook} did not");
}

/// The order numbers of a stream's blocks.
fn numbers(trace: &Trace, stream: usize) -> Vec<u64> {
    let mut order = 0;
    let mut numbers = Vec::new();
    for word in read_stream(trace, stream) {
        match Event::new(word) {
            Event::Mark(Mark::Order(number)) => order = number,
            Event::Block(_) => numbers.push(order),
            _ => {}
        }
    }
    numbers
}
