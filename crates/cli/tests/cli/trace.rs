//! `trace`: recordings agree with executions, complete and in parts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use events::record::{Entries, Entry, Mark, Register};
use tempfile::TempDir;
use trace::Trace;

use crate::caches::{Folder, column};
use crate::support::{csv, run};

/// A trace in a folder of its own.
struct Recorded {
    _folder: TempDir,
    path: PathBuf,
    trace: Trace,
}

/// An instruction that was executed: its address and word, and the address and the value if they are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Executed {
    pc: u64,
    word: u32,
    address: Option<u64>,
    value: Option<u64>,
}

/// Records `words`: options and, after a colon, the program.
fn record(words: &str) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.trace");
    let outcome = run(&format!("trace -o {} {words}", path.display()));
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{words}");
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.problems(), []);
    Recorded { _folder: folder, path, trace }
}

impl Recorded {
    /// What a stream holds, in order.
    fn entries(&self, stream: u32, mut see: impl FnMut(Entry)) {
        let mut words = Vec::new();
        for (index, chunk) in self.trace.chunks().iter().enumerate() {
            if chunk.stream == stream {
                self.trace.read(index, &mut words).unwrap();
                Entries::new(&words, self.trace.shapes()).for_each(&mut see);
            }
        }
    }

    fn marks(&self, stream: u32) -> Vec<Mark> {
        let mut marks = Vec::new();
        self.entries(stream, |entry| {
            if let Entry::Mark(mark) = entry {
                marks.push(mark);
            }
        });
        marks
    }

    /// The instructions of a stream, in order; marks other than of units and gaps left out.
    fn instructions(&self, stream: u32) -> Vec<Executed> {
        self.pieces(stream).concat()
    }

    /// The instructions of a stream between gaps.
    fn pieces(&self, stream: u32) -> Vec<Vec<Executed>> {
        let mut pieces = vec![Vec::new()];
        self.entries(stream, |entry| match entry {
            Entry::Mark(Mark::Gap) => pieces.push(Vec::new()),
            Entry::Mark(_) => {}
            Entry::Execution(execution) => {
                let block = &self.trace.blocks()[execution.block as usize];
                let mut addresses = execution.addresses.iter().copied();
                let mut values = execution.values.iter().copied();
                for (pc, &word) in (block.address..).step_by(4).zip(&block.words) {
                    let instruction = isa::decode(word).unwrap();
                    let address = instruction.access_size().map(|_| addresses.next().unwrap());
                    let has_value = instruction.value_register().is_some() && !execution.values.is_empty();
                    let value = has_value.then(|| values.next().unwrap());
                    pieces.last_mut().unwrap().push(Executed { pc, word, address, value });
                }
                assert_eq!((addresses.next(), values.next()), (None, None));
            }
        });
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

/// The counts of `count --by mnemonic`.
fn counts(words: &str) -> BTreeMap<String, u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.csv");
    run(&format!("count --by mnemonic --format csv -o {} {words}", path.display())).quiet_success();
    let rows = csv(&fs::read_to_string(path).unwrap());
    let at = rows[0].iter().position(|heading| heading == "count").unwrap();
    let counts = rows[1..].iter().map(|row| (row[0].clone(), row[at].parse().unwrap()));
    counts.filter(|(name, _)| name != "total").collect()
}

/// The same from a trace.
fn recount(instructions: &[Executed]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for one in instructions {
        let name = match isa::nop_kind(one.word) {
            Some(isa::Nop::Nop) => "nop",
            Some(isa::Nop::Fnop) => "fnop",
            Some(isa::Nop::Unop) => "unop",
            None => isa::decode(one.word).unwrap().name(),
        };
        *counts.entry(name.to_string()).or_default() += 1;
    }
    counts
}

/// Where `part` begins in `all`; it must be there once.
fn place(part: &[Executed], all: &[Executed]) -> usize {
    let places: Vec<usize> =
        (0..=all.len() - part.len()).filter(|&at| all[at..at + part.len()] == *part).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    places[0]
}

#[test]
fn the_trace_of_a_run_has_the_counts_of_the_run() {
    for program in [":ev5/modes work", ":ev56/modes factorial", ":ev56/halves", ":ev5/modes exit 0"] {
        let recorded = record(program);
        assert_eq!(recorded.trace.streams().len(), 1);
        assert_eq!(recount(&recorded.instructions(0)), counts(program), "{program}");
        assert_eq!(recorded.pieces(0).len(), 1, "{program}");
    }
}

#[test]
fn recorded_twice_the_bytes_are_the_same_but_for_the_header() {
    for words in ["--unit work :ev56/modes work", ":ev56/modes long"] {
        let traces = [(); 2].map(|()| record(words));
        assert_same(&traces);
    }
}

fn assert_same(traces: &[Recorded; 2]) {
    let [a, b] = traces.each_ref().map(|one| fs::read(&one.path).unwrap());
    assert_eq!(a.len(), b.len());
    let header = trace::Header { time: 0, process: 0, ..traces[0].trace.header().clone() };
    assert_eq!(header, trace::Header { time: 0, process: 0, ..traces[1].trace.header().clone() });
    let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    assert!(differing <= 32, "{differing} of {} bytes differ", a.len());
}

#[test]
fn a_unit_is_recorded_from_its_call_to_its_return() {
    let all = record(":ev56/modes work").instructions(0);
    let recorded = record("--unit work --skip 100 --units 3 :ev56/modes work");
    let pieces = recorded.pieces(0);
    assert_eq!(pieces.len(), 3);
    let mut last = 0;
    for piece in &pieces {
        // Every call does the same, but for where it comes back to.
        let from = all[last..].windows(piece.len()).position(|window| window == piece).unwrap() + last;
        let call = isa::decode(all[from - 1].word).unwrap();
        assert!(call.op.is(isa::Flags::CALL), "{call:?}");
        let last_one = isa::decode(piece.last().unwrap().word).unwrap();
        assert!(last_one.op.is(isa::Flags::RETURN), "{last_one:?}");
        last = from + piece.len();
    }
    let marks = recorded.marks(0);
    let is_other = |mark: &&Mark| matches!(mark, Mark::Order(_) | Mark::Gap | Mark::Mapping(_));
    let units: Vec<&Mark> = marks.iter().filter(|mark| !is_other(mark)).collect();
    let expected: Vec<Mark> =
        (100..103).flat_map(|number| [Mark::UnitBegins(number), Mark::UnitEnds(number)]).collect();
    assert_eq!(units, expected.iter().collect::<Vec<_>>());
    // All calls, from within each other too, are the program's 200.
    let all_units = record("--unit factorial :ev56/modes factorial");
    let begun = all_units.marks(0).into_iter().filter(|mark| matches!(mark, Mark::UnitBegins(_))).count();
    assert_eq!(begun, 200);
}

#[test]
fn recording_begins_and_ends_where_it_is_told() {
    let all = record(":ev56/modes work").instructions(0);
    let total = all.len();
    for from in [0, 1, 1000, total / 2, total - 1] {
        let part = record(&format!("--from {from} :ev56/modes work")).instructions(0);
        assert!(part == all[from..], "from {from}");
    }
    let part = record("--from main --until 5000 :ev56/modes work").instructions(0);
    let at = place(&part, &all);
    assert_eq!(part.len(), 5000);
    let part = record("--from main --until work :ev56/modes work").instructions(0);
    assert_eq!(place(&part, &all), at);
    let next = all[at + part.len()];
    let unit = record("--unit work --units 1 :ev56/modes work");
    let work = unit.trace.functions().iter().find(|function| function.name == "work").unwrap().address;
    let first_unit = unit.instructions(0);
    assert_eq!(next, first_unit[0]);
    // An address inside a block.
    let address = first_unit[2].pc;
    let part = record(&format!("--from {address:#x} --until 10 :ev56/modes work")).instructions(0);
    assert_eq!(part[0], first_unit[2]);
    let by_symbol = record(&format!("--from work+{} --until 10 :ev56/modes work", address - work));
    assert_eq!(part, by_symbol.instructions(0));
}

/// Recording begins and ends exactly at the given instruction, also in the middle of blocks, in compiled code and, with
/// values, in interpreted code; and models simulate the same instructions.
#[test]
fn pieces_are_exact_to_the_instruction() {
    const PROGRAM: &str = ":ev56/modes work";
    let all = record(PROGRAM).instructions(0);
    let main = all.len() - record(&format!("--from main {PROGRAM}")).instructions(0).len();
    for values in ["", "--values "] {
        // Blocks are short: these ends are in and between them.
        for until in [1, 2, 3, 7, 100, 101, 102, 103, 104, 105, 106, 107, 5000, 20001] {
            let recorded = record(&format!("{values}--from main --until {until} {PROGRAM}"));
            let part = recorded.instructions(0);
            let plain: Vec<Executed> = part.iter().map(|one| Executed { value: None, ..*one }).collect();
            assert!(plain == all[main..main + until], "{values}{until}: {}", part.len());
            run(&format!("check {}", recorded.path.display())).quiet_success();
        }
        for (from, until) in [(0, 1), (1, 1), (1000, 3), (main + 5, 11), (main + 6, 4000)] {
            let part = record(&format!("{values}--from {from} --until {until} {PROGRAM}")).instructions(0);
            let plain: Vec<Executed> = part.iter().map(|one| Executed { value: None, ..*one }).collect();
            assert!(plain == all[from..from + until], "{values}{from} {until}");
        }
    }
    let folder = Folder::new();
    for options in ["--from main --until 100", "--from main --until 5001", "--from 1001 --until 77"] {
        for command in ["caches --machine qemu", "time"] {
            let rows = folder.table(&format!("{command} --by function {options} {PROGRAM}"));
            let expected: u64 = options.rsplit(' ').next().unwrap().parse().unwrap();
            assert_eq!(*column(&rows, "instructions").last().unwrap(), expected, "{command} {options}");
        }
    }
    let rows = folder.table(&format!("caches --by function --from 1001 {PROGRAM}"));
    assert_eq!(*column(&rows, "instructions").last().unwrap() as usize, all.len() - 1001);
}

/// A unit in which recording ends has not ended.
#[test]
fn units_in_which_recording_ends_are_cut() {
    const PROGRAM: &str = "--unit work :ev56/modes work";
    let whole = record(PROGRAM);
    let lengths: Vec<usize> = whole.pieces(0).iter().map(Vec::len).collect();
    let two: usize = lengths[..2].iter().sum();
    for (until, ending) in
        [(two - 1, Mark::UnitCut(1)), (two, Mark::UnitEnds(1)), (two + 1, Mark::UnitCut(2))]
    {
        let recorded = record(&format!("--until {until} {PROGRAM}"));
        assert_eq!(recorded.pieces(0).concat().len(), until);
        let marks = recorded.marks(0).into_iter();
        let units: Vec<Mark> =
            marks.filter(|mark| !matches!(mark, Mark::Order(_) | Mark::Gap | Mark::SystemCall(_))).collect();
        assert_eq!(units.last(), Some(&ending), "{until}: {units:?}");
        run(&format!("check {}", recorded.path.display())).quiet_success();
    }
}

/// Values must follow from each other wherever that is plain to see.
#[test]
fn values_are_those_of_the_registers_and_of_memory() {
    use isa::{Flags, Op};
    let recorded = record("--values --from main :ev56/modes work");
    let instructions = recorded.instructions(0);
    let plain = record("--from main :ev56/modes work").instructions(0);
    let without: Vec<Executed> = instructions.iter().map(|one| Executed { value: None, ..*one }).collect();
    assert!(without == plain);
    let mut registers: BTreeMap<u8, u64> = BTreeMap::from([(31, 0)]);
    let mut memory: BTreeMap<u64, u64> = BTreeMap::new();
    let mut checked = [0; 3];
    for one in &instructions {
        let instruction = isa::decode(one.word).unwrap();
        let second = instruction.literal().map(u64::from).or(registers.get(&instruction.rb()).copied());
        let (first, displacement) = (registers.get(&instruction.ra()).copied(), instruction.displacement());
        let expected = match instruction.op {
            Op::Lda => {
                registers.get(&instruction.rb()).map(|base| base.wrapping_add_signed(displacement.into()))
            }
            Op::Addq => first.zip(second).map(|(a, b)| a.wrapping_add(b)),
            Op::Subq => first.zip(second).map(|(a, b)| a.wrapping_sub(b)),
            Op::Bis => first.zip(second).map(|(a, b)| a | b),
            Op::Stq | Op::Beq | Op::Bne => first,
            _ => None,
        };
        if let Some((expected, value)) = expected.zip(one.value) {
            assert_eq!(expected, value, "{:#x}: {instruction:?}", one.pc);
            checked[0] += 1;
        }
        if let Some(address) = one.address {
            if let Some(base) = registers.get(&instruction.rb()) {
                assert_eq!(instruction.effective_address(*base), address, "{:#x}", one.pc);
                checked[1] += 1;
            }
            if instruction.op == Op::Ldq
                && let Some(known) = memory.get(&address)
            {
                assert_eq!(Some(*known), one.value, "{:#x} loads from {address:#x}", one.pc);
                checked[2] += 1;
            }
            if instruction.op.is(Flags::STORE) {
                memory.retain(|known, _| known.abs_diff(address) > 8);
            }
            if matches!(instruction.op, Op::Stq | Op::Ldq) {
                memory.insert(address, one.value.unwrap_or_default());
            }
        }
        match instruction.value_register() {
            Some(Register::Integer(register)) if !instruction.op.is(Flags::STORE) && register != 31 => {
                registers.insert(register, one.value.unwrap());
            }
            // It writes whether it stored.
            Some(_) if instruction.op.is(Flags::LOCKED) => drop(registers.remove(&instruction.ra())),
            Some(_) => {}
            // Calls, and what the system writes.
            None => registers.retain(|&register, _| register == 31 || register == 30),
        }
        if instruction.name() == "callsys" {
            memory.clear();
        }
    }
    assert!(checked.iter().all(|&times| times > 200), "{checked:?}");
}

#[test]
fn threads_have_streams_of_their_own_in_the_order_of_time() {
    let recorded = record(":ev56/threads");
    assert_eq!(recorded.trace.streams().len(), 5);
    let mut orders = Vec::new();
    for stream in 0..5 {
        let own: Vec<u64> = recorded
            .marks(stream)
            .into_iter()
            .filter_map(|mark| if let Mark::Order(order) = mark { Some(order) } else { None })
            .collect();
        assert!(own.windows(2).all(|pair| pair[0] < pair[1]), "{own:?}");
        orders.extend(own);
    }
    let all = orders.len();
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), all);
    let units = record("--unit work :ev56/threads");
    let begun = |stream| units.marks(stream).into_iter().filter(|mark| matches!(mark, Mark::UnitBegins(_)));
    let mut numbers: Vec<u64> = (0..units.trace.streams().len() as u32)
        .flat_map(begun)
        .map(|mark| if let Mark::UnitBegins(number) = mark { number } else { unreachable!() })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..400));
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.trace");
    let fails = |words: &str| run(&format!("trace -o {} {words}", path.display()));
    for (words, expected) in [
        ("--unit wrok :ev56/modes work", "no image of the program has a function 'wrok' (searched: "),
        ("--unit never :ev56/modes work", "the function 'never' was called 0 times"),
        ("--unit work --skip 200 :ev56/modes work", "the function 'work' was called 200 times"),
        ("--from nowhere :ev56/modes work", "no image of the program has a symbol 'nowhere'"),
        ("--from never :ev56/modes work", "control never came to never"),
        ("--from 1000000000 :ev56/modes work", "control never came to instruction 1000000000"),
        ("/nonexistent", "/nonexistent"),
    ] {
        let outcome = fails(words);
        assert_eq!(outcome.code(), 1, "{words}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{words}: {}", outcome.stderr);
    }
    assert_eq!(fails("--from 12x :ev56/modes work").code(), 2);
    let outcome = run(&format!("trace -o {}/none/x :ev56/modes work", folder.path().display()));
    assert!(outcome.failure().contains("No such file or directory"));
    let outcome = run("trace -o /dev/full :ev56/modes work");
    assert!(outcome.failure().contains("No space left on device"));
}

#[test]
fn a_program_that_closes_all_it_can_is_recorded_whole() {
    let recorded = record(":ev56/modes close");
    assert!(recorded.instructions(0).len() > 10_000);
    assert!(Path::new(&recorded.path).exists());
}

/// A process with the same table of descriptors would close the trace of its parent at its end.
#[test]
fn a_process_that_shares_descriptors_is_refused_while_its_parent_is_recorded() {
    assert_eq!(run("run :ev56/shares").quiet_success(), "shared\n");
    assert_eq!(run("count :ev56/shares").stdout.lines().next(), Some("shared"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.trace");
    let outcome = run(&format!("trace -o {} :ev56/shares", path.display()));
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (0, "Invalid argument\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("(CLONE_FILES) while it is recorded"), "{}", outcome.stderr);
    assert_eq!(Trace::open(&path).unwrap().problems(), []);
}
