//! A program of the toy's, interpreted and compiled: the same registers, counts and records.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use events::BlockId;
use guest::interpreter::{self, InterpreterExit, Limits};
use guest::records::Records;
use guest::{BlockCache, Callbacks, Debugged, Instrumentation, InstrumentationLevel, Observer, Stop};
use guest_memory::{Layout, RegionBacking};

use super::*;
use crate::{Compiler, Exit, UNWIND};

/// No instruction has this address.
const NEVER: u64 = 1;
/// Rounds of the program's loop.
pub(super) const ROUNDS: u64 = 1000;
pub(super) const CODE: u64 = 1 << 38;
pub(super) const DATA: u64 = CODE + 2 * PAGE;
const PAGE: u64 = 4096;
pub(super) const LAYOUT: Layout =
    Layout { page: PAGE, bytes: 1 << 39, map_base: CODE, large_page: PAGE, large_base: 1 << 39 };

fn long(op: Op, a: u8, b: u8, immediate: i16) -> Vec<u8> {
    let word = op as u32 | u32::from(a) << 8 | u32::from(b) << 12 | u32::from(immediate as u16) << 16;
    word.to_le_bytes().to_vec()
}

fn short(op: Op, a: u8, b: u8) -> Vec<u8> {
    long(op, a, b, 0)[..2].to_vec()
}

/// Adds numbers from memory up and writes the sums back, by a call, and subtracts the rounds left, by a call to where a
/// register points. Its blocks, by address, and how many instructions each has, and how often it is executed.
fn program() -> (Vec<u8>, [(u64, u64, u64); 6]) {
    let parts = [
        long(Op::AddImmediate, 2, 0, 0),
        long(Op::AddImmediate, 3, 0, ROUNDS as i16),
        // 8: the loop
        long(Op::Call, 1, 0, 18),
        short(Op::CallRegister, 1, 6),
        long(Op::AddImmediate, 3, 3, -1),
        long(Op::BranchNotZero, 3, 0, -10),
        long(Op::SystemCall, 0, 0, 0),
        // 26: adds
        long(Op::Load, 7, 5, 0),
        short(Op::Add, 2, 7),
        long(Op::Store, 2, 5, 8),
        long(Op::AddImmediate, 5, 5, 16),
        short(Op::Return, 0, 1),
        // 42: subtracts
        short(Op::Subtract, 2, 3),
        short(Op::Return, 0, 1),
    ];
    let blocks = [
        // The first block goes on into the loop's.
        (0, 3, 1),
        (8, 1, ROUNDS - 1),
        (12, 1, ROUNDS),
        (14, 2, ROUNDS),
        (22, 1, 1),
        (26, 5, ROUNDS),
    ];
    (parts.concat(), blocks)
}

/// An observer, at a level of its own.
pub(super) struct ToyWatcher<const LEVEL: u8> {
    executions: BTreeMap<BlockId, u64>,
    pub records: Vec<u64>,
}

const COUNTS: u8 = 0;
pub(super) const ACCESSES: u8 = 1;
pub(super) const VALUES: u8 = 2;

impl<const LEVEL: u8> Instrumentation<Toy> for ToyWatcher<LEVEL> {
    const LEVEL: InstrumentationLevel = match LEVEL {
        COUNTS => InstrumentationLevel::Counts,
        ACCESSES => InstrumentationLevel::Accesses,
        _ => InstrumentationLevel::Values,
    };
}

impl<const LEVEL: u8> Debugged<Toy> for ToyWatcher<LEVEL> {}

impl<const LEVEL: u8> Observer<Toy> for ToyWatcher<LEVEL> {
    fn enter(&mut self, id: BlockId, _: &BlockCache<Toy>, _: &Toy, _: &Memory) {
        *self.executions.entry(id).or_default() += 1;
    }

    fn executed(&mut self, records: &[u64], _: &BlockCache<Toy>) {
        self.records.extend(records);
    }

    fn thread(&self) -> Self {
        unreachable!("the toy has one")
    }
}

/// Executes the toy's code as the engine does a guest's. A system call ends the program.
pub(super) struct ToyRunner<'a, const LEVEL: u8> {
    toy: Toy,
    memory: &'a Memory,
    pub cache: BlockCache<Toy>,
    /// None to interpret all.
    compiler: Option<Compiler<Toy>>,
    pub watcher: ToyWatcher<LEVEL>,
    records: Records,
    depth: u32,
    /// How often compiled code was entered.
    pub entered: u32,
    has_ended: bool,
    /// The process's mappings and the address of compiled code, while that runs.
    mappings: Option<(String, u64)>,
}

impl<'a, const LEVEL: u8> ToyRunner<'a, LEVEL> {
    pub fn new(memory: &'a Memory, is_compiled: bool) -> Self {
        let mut toy = Toy { pc: CODE, ..Toy::default() };
        (toy.registers[5], toy.registers[6]) = (DATA, CODE + 42);
        let level = ToyWatcher::<LEVEL>::LEVEL;
        let compiler =
            is_compiled.then(|| Compiler::new(memory, level, None, false).expect("a host with a compiler"));
        let watcher = ToyWatcher { executions: BTreeMap::new(), records: Vec::new() };
        let mut records = Records::default();
        records.attach(&mut toy);
        let (depth, entered, has_ended) = (0, 0, false);
        ToyRunner {
            toy,
            memory,
            cache: BlockCache::new(()),
            compiler,
            watcher,
            records,
            depth,
            entered,
            has_ended,
            mappings: None,
        }
    }

    /// Runs the program to its end.
    pub fn run(mut self) -> Self {
        self.toy.pc = CODE;
        while !self.has_ended {
            self.go(NEVER);
        }
        self.flush();
        let (executions, cache) = (&mut self.watcher.executions, &self.cache);
        cache.take_executions(|id, times| *executions.entry(id).or_default() += times);
        self
    }

    fn flush(&mut self) {
        let records = self.records.take(&mut self.toy);
        self.watcher.executed(records, &self.cache);
    }

    fn go(&mut self, until: u64) -> u64 {
        let (mut interpret_first, level) = (false, ToyWatcher::<LEVEL>::LEVEL);
        let compile_threshold = if self.compiler.is_some() { 3 } else { 0 };
        loop {
            let limits = Limits { until, compile_threshold, interpret_first, level, ..Limits::default() };
            let next = interpreter::run(
                &mut self.toy,
                self.memory,
                &mut self.cache,
                limits,
                &mut self.watcher,
                || false,
            );
            interpret_first = false;
            match next {
                InterpreterExit::Reached => {}
                InterpreterExit::Full => self.flush(),
                InterpreterExit::Stop(Stop::SystemCall) => self.has_ended = true,
                InterpreterExit::Code(id) => match self.execute(id, compile_threshold) {
                    Some(UNWIND) => return UNWIND,
                    Some(address) => (interpret_first, self.toy.pc) = (address == self.toy.pc, address),
                    None => interpret_first = true,
                },
                other => panic!("{other:?} at {:#x}", self.toy.pc),
            }
            if self.has_ended {
                return UNWIND;
            }
            if self.toy.pc == until {
                return until;
            }
        }
    }

    /// Where the program goes on behind a block's compiled code, made now if there is none. None if there can be none.
    fn execute(&mut self, id: BlockId, compile_threshold: u32) -> Option<u64> {
        let compiler = self.compiler.as_mut().expect("compiled blocks have a compiler");
        if self.cache.block(id).code().is_null() {
            compiler.compile(id, compile_threshold, &|_| false, &|_| 0, &mut self.cache);
        }
        let code = self.cache.block(id).code();
        if code.is_null() {
            return None;
        }
        compiler.prepare(self.cache.block(id), &mut self.toy);
        let callbacks = Callbacks {
            flush_records: flush_records::<LEVEL>,
            interpret_until: interpret_until::<LEVEL>,
            context: (&raw mut *self).cast(),
            memory: self.memory,
        };
        self.toy.host.set_instruction_limit(u64::MAX);
        // SAFETY: both functions take this runner; the memory is that of the program.
        unsafe { self.toy.host.set_callbacks(callbacks) };
        (self.depth, self.entered) = (self.depth + 1, self.entered + 1);
        // SAFETY: the compiler made the code for this memory, and `host` is set. Compiled code comes back to this runner
        // by `interpret_until` only, while this call waits.
        let exit = unsafe { crate::enter(&mut self.toy, code, self.depth == 1) };
        self.depth -= 1;
        match exit {
            Exit::At(address) => Some(address),
            Exit::Fault(host) => panic!("a fault at {host:#x}: the program makes none"),
        }
    }
}

extern "C" fn flush_records<const LEVEL: u8>(toy: *mut c_void) {
    // SAFETY: as for `interpret_until`.
    let runner = unsafe { &mut *(*toy.cast::<Toy>()).host.context().cast::<ToyRunner<'_, LEVEL>>() };
    runner.flush();
}

extern "C" fn interpret_until<const LEVEL: u8>(toy: *mut c_void, from: u64, until: u64) -> u64 {
    // SAFETY: `execute` set the runner before it entered the code that calls, and waits meanwhile.
    let runner = unsafe { &mut *(*toy.cast::<Toy>()).host.context().cast::<ToyRunner<'_, LEVEL>>() };
    runner.mappings.get_or_insert_with(|| {
        let codes = runner.cache.blocks().iter().map(|block| block.code() as u64);
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        (mappings, codes.max().unwrap_or(0))
    });
    runner.has_ended = until & 1 != 0;
    if runner.has_ended {
        runner.toy.pc = from + 4;
        return UNWIND;
    }
    runner.toy.pc = from;
    runner.go(until)
}

/// Only one memory of a process lies where compiled code wants it.
pub(super) static MEMORY: Mutex<()> = Mutex::new(());

/// The program's memory: its code, and numbers to add up.
pub(super) fn load() -> Memory {
    let memory = Memory::new(LAYOUT).expect("address space");
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let bytes = DATA - CODE + (16 * ROUNDS).next_multiple_of(PAGE);
    memory.map_anonymous(CODE, bytes, protection, false, RegionBacking::Anonymous).expect("memory");
    memory.write(CODE, &program().0).expect("the program fits");
    for number in 0..ROUNDS {
        memory.store::<8>(DATA + 16 * number, number * number).expect("data");
    }
    memory
}

/// The result of the program.
fn expected_sum() -> u64 {
    (0..ROUNDS).map(|number| number * number).sum::<u64>().wrapping_sub((1..=ROUNDS).sum())
}

/// Executions and instructions of all blocks, by address.
fn counted<const LEVEL: u8>(runner: &ToyRunner<LEVEL>) -> BTreeMap<u64, (u64, u64)> {
    let block = |(&id, &times): (&BlockId, &u64)| {
        let block = runner.cache.block(id);
        (block.address - CODE, (block.instructions.len() as u64, times))
    };
    runner.watcher.executions.iter().map(block).collect()
}

#[test]
fn a_toy_is_interpreted_compiled_and_counted() {
    let _only = MEMORY.lock();
    let expected: BTreeMap<_, _> = program()
        .1
        .into_iter()
        .chain([(42, 2, ROUNDS)])
        .map(|(at, length, times)| (at, (length, times)))
        .collect();
    for is_compiled in [false, true] {
        let memory = load();
        let runner = ToyRunner::<COUNTS>::new(&memory, is_compiled).run();
        assert_eq!(runner.toy.registers[2], expected_sum(), "compiled: {is_compiled}");
        assert_eq!(runner.entered > 0, is_compiled);
        assert_eq!(counted(&runner), expected, "compiled: {is_compiled}");
        let instructions: u64 = expected.values().map(|(length, times)| length * times).sum();
        assert_eq!(runner.toy.instructions, instructions, "compiled: {is_compiled}");
    }
}

#[test]
fn a_toys_records_are_the_same_interpreted_and_compiled() {
    let _only = MEMORY.lock();
    let records = [false, true].map(|is_compiled| {
        let memory = load();
        let runner = ToyRunner::<ACCESSES>::new(&memory, is_compiled).run();
        assert_eq!(runner.toy.registers[2], expected_sum(), "compiled: {is_compiled}");
        assert_eq!(runner.entered > 0, is_compiled);
        let accesses = runner.watcher.records.iter().filter(|&&word| word >> 63 == 0).count() as u64;
        assert_eq!(accesses, 2 * ROUNDS);
        runner.watcher.records
    });
    assert!(records[0] == records[1], "the records differ");
}

#[test]
fn no_page_is_writable_and_executable_while_compiled_code_runs() {
    let _only = MEMORY.lock();
    let memory = load();
    let runner = ToyRunner::<COUNTS>::new(&memory, true).run();
    let (mappings, code) = runner.mappings.expect("compiled code called the interpreter");
    let mut rights_of_code = "";
    for mapping in mappings.lines() {
        let (range, rest) = mapping.split_once(' ').expect("addresses and rights");
        let ends = range.split('-').map(|end| u64::from_str_radix(end, 16).expect("an address"));
        let ends: Vec<u64> = ends.collect();
        assert!(!rest.starts_with("rwx"), "{mapping}");
        if (ends[0]..ends[1]).contains(&code) {
            rights_of_code = &rest[..4];
        }
    }
    assert_eq!(rights_of_code, "r-xp");
}
