//! Compiled code reports what the interpreter reports: executions block by block, unit by unit, and every
//! access to memory in order, however early code is compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use events::{Counts, ProcessEnd, Unit};
use guest::{BlockCache, Guest};
use guest_memory::Memory;
use pathlength_engine::{
    Configuration, Debugged, Event, Instrumentation, InstrumentationLevel, Observer, Process, SystemSettings,
    UnitCounter, UnitOfWork,
};
use serde::{Deserialize, Serialize};
use testing::sample;

/// A run in a process of its own: guest memory has one address.
#[derive(Serialize, Deserialize)]
struct Request {
    program: PathBuf,
    unit: String,
    /// Executions before a block is compiled, 0 for never.
    compile_threshold: u32,
    answer: PathBuf,
}

/// Executions of blocks, by address and instructions.
type Executions = BTreeMap<String, u64>;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    end: String,
    instructions: u64,
    unaligned: u64,
    executions: Executions,
    units: Vec<(u64, bool, Executions)>,
    accesses: u64,
    /// Of all events in order, with blocks by their addresses.
    hash: u64,
}

/// Hears of every event of a thread.
#[derive(Default)]
struct Recorder {
    executions: Vec<u64>,
    accesses: u64,
    hash: u64,
    /// What was reported to the threads that ended; hashes are added up.
    others: Arc<Mutex<(Executions, u64, u64)>>,
}

impl Recorder {
    /// Adds all that was reported to the thread.
    fn add<G: Guest>(&self, cache: &BlockCache<G>) {
        let mut all = self.others.lock().unwrap();
        for (block, times) in cache.blocks().iter().zip(&self.executions).filter(|(_, n)| **n != 0) {
            *all.0.entry(key(block.address, &block.words)).or_default() += times;
        }
        all.1 += self.accesses;
        all.2 = all.2.wrapping_add(self.hash);
    }

    /// All that the threads reported.
    fn all(&self) -> (Executions, u64, u64) {
        self.others.lock().unwrap().clone()
    }
}

impl<G: Guest> Instrumentation<G> for Recorder {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Accesses;
}

impl<G: Guest> Debugged<G> for Recorder {}

impl<G: Guest> Observer<G> for Recorder {
    fn thread(&self) -> Recorder {
        Recorder { others: self.others.clone(), ..Recorder::default() }
    }

    fn ended(&mut self, _: &G, _: &Memory, cache: &BlockCache<G>) {
        self.add(cache);
    }

    fn exits(&mut self, _: ProcessEnd, _: &G, _: &Memory, cache: &BlockCache<G>) {
        self.add(cache);
    }

    fn executed(&mut self, records: &[u64], cache: &BlockCache<G>) {
        self.executions.resize(cache.blocks().len(), 0);
        for &word in records {
            let (kind, address) = match Event::new(word) {
                Event::Block(id) => {
                    self.executions[id as usize] += 1;
                    (1, cache.block(id).address)
                }
                Event::Access(address) => {
                    self.accesses += 1;
                    (2, address)
                }
                Event::Mark(mark) => unreachable!("{mark:?}: only a recorder makes marks"),
            };
            // FNV-1a, a word at a time.
            let prime = 0x100_0000_01b3;
            self.hash = ((self.hash ^ kind).wrapping_mul(prime) ^ address).wrapping_mul(prime);
        }
    }
}

const REQUEST: &str = "PATHLENGTH_COUNTS_REQUEST";

fn key(address: u64, words: &[u32]) -> String {
    format!("{address:x} {words:x?}")
}

fn executions<'a>(counts: &Counts, blocks: impl Iterator<Item = (usize, &'a u64)>) -> Executions {
    let mut executions = Executions::new();
    for (id, times) in blocks.filter(|(_, times)| **times != 0) {
        let block = &counts.blocks[id];
        *executions.entry(key(block.address, &block.words)).or_default() += times;
    }
    executions
}

/// Answers a request; started by the other test.
#[test]
#[ignore = "started by the other test"]
fn child() {
    let Ok(request) = std::env::var(REQUEST) else { return };
    let request: Request = serde_json::from_str(&request).unwrap();
    let start = || {
        let mut process = Process::new(&Configuration {
            program: request.program.clone(),
            name: None,
            arguments: vec![],
            environment: vec![],
            model: isa::Processors::default(),
            settings: SystemSettings::default(),
        })
        .unwrap();
        process.compile_threshold = request.compile_threshold;
        process
    };
    let mut process = start();
    let mut units: Vec<Unit> = Vec::new();
    let work = UnitOfWork { functions: vec![request.unit.clone()], gauges: vec![], ..UnitOfWork::default() };
    let mut counter = UnitCounter::new(
        work,
        Box::new(|_: u32, _: Option<&str>, unit| {
            units.push(unit);
            true
        }),
    );
    let end = process.run(&mut counter).unwrap();
    let counts = counter.total.counts();
    drop(counter);
    let units = units.iter().map(|unit| {
        let blocks = unit.blocks.iter().map(|(id, times)| (*id as usize, times));
        (unit.instructions, unit.returned, executions(&counts, blocks))
    });
    let units = units.collect();
    let (instructions, unaligned) = (process.instructions(), process.unaligned);
    drop(process);

    let mut process = start();
    let mut recorder = Recorder::default();
    process.run(&mut recorder).unwrap();
    assert_eq!((process.instructions(), process.unaligned), (instructions, unaligned));
    let (again, accesses, hash) = recorder.all();
    let executions = executions(&counts, counts.executions.iter().enumerate());
    for (key, times) in &executions {
        assert_eq!(again.get(key), Some(times), "{key}");
    }
    assert!(again == executions, "the records have other blocks than the counts");
    let answer = Answer {
        end: format!("{end:x?}").chars().take(60).collect(),
        instructions,
        unaligned,
        executions,
        units,
        accesses,
        hash,
    };
    std::fs::write(request.answer, serde_json::to_string(&answer).unwrap()).unwrap();
}

fn answer(program: &Path, unit: &str, compile_threshold: u32) -> Answer {
    let answer = program.with_extension(format!("{compile_threshold}.json"));
    let request = Request { program: program.into(), unit: unit.into(), compile_threshold, answer };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(REQUEST, serde_json::to_string(&request).unwrap());
    command.current_dir(program.parent().unwrap()).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{compile_threshold}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&std::fs::read_to_string(&request.answer).unwrap()).unwrap()
}

fn compile(sources: &[PathBuf], program: &Path) {
    let compiler = "alpha-linux-gnu-gcc";
    let mut command = Command::new(compiler);
    command.args(["-O2", "-mcpu=ev67", "-pthread", "-o"]).arg(program).args(sources).args(["-lm", "-ldl"]);
    let status = command.status().unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
    assert!(status.success());
}

#[test]
fn every_threshold_tells_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().unwrap();
    let guests = "tests/oracle/guests";
    let workloads = "../../workloads/tests";
    for (folder, sources, unit) in [
        (guests, &["units", "unitlib"][..], "unit"),
        (workloads, &["sort"], "main"),
        (workloads, &["bytes"], "main"),
        (workloads, &["floating"], "main"),
        (workloads, &["feature_unaligned"], "main"),
        (workloads, &["feature_code"], "main"),
        (workloads, &["feature_stacks"], "main"),
        (guests, &["faults"], "main"),
    ] {
        let name = sources[0];
        let program = directory.path().join(name);
        let sources: Vec<_> =
            sources.iter().map(|name| root.join(folder).join(name).with_extension("c")).collect();
        compile(&sources, &program);
        let interpreted = answer(&program, unit, 0);
        assert!(interpreted.instructions > 10_000 && !interpreted.units.is_empty(), "{name}");
        for &compile_threshold in sample(&[1][..], &[1, 3, 50]) {
            let compiled = answer(&program, unit, compile_threshold);
            assert_eq!(compiled.instructions, interpreted.instructions, "{name} {compile_threshold}");
            assert_eq!(compiled.units.len(), interpreted.units.len(), "{name} {compile_threshold}");
            for (key, times) in &interpreted.executions {
                assert_eq!(compiled.executions.get(key), Some(times), "{name} {compile_threshold} {key}");
            }
            assert_eq!(compiled, interpreted, "{name} {compile_threshold}");
        }
    }
}
