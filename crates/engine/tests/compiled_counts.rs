//! What compiled code counts is what the interpreter counts: block by block, unit by unit, however early
//! code is compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pathlength_engine::{Configuration, Process, Settings, UnitCounter, UnitOfWork};
use serde::{Deserialize, Serialize};
use trace::{Counts, Unit};

/// A run in a process of its own: guest memory has one place.
#[derive(Serialize, Deserialize)]
struct Request {
    program: PathBuf,
    unit: String,
    /// Executions before a block is compiled, 0 for never.
    hot: u32,
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
}

const REQUEST: &str = "PATHLENGTH_COUNTS_REQUEST";

fn executions<'a>(counts: &Counts, blocks: impl Iterator<Item = (usize, &'a u64)>) -> Executions {
    let mut executions = Executions::new();
    for (id, times) in blocks.filter(|(_, times)| **times != 0) {
        let block = &counts.blocks[id];
        let key = format!("{:x} {:x?}", block.address, block.words);
        *executions.entry(key).or_default() += times;
    }
    executions
}

/// Answers a request; started by the other test.
#[test]
#[ignore = "started by the other test"]
fn child() {
    let Ok(request) = std::env::var(REQUEST) else { return };
    let request: Request = serde_json::from_str(&request).unwrap();
    let mut process = Process::new(&Configuration {
        program: request.program,
        name: None,
        arguments: vec![],
        environment: vec![],
        model: isa::Cpu::Ev67,
        settings: Settings::default(),
    })
    .unwrap();
    process.hot = request.hot;
    let mut units: Vec<Unit> = Vec::new();
    let work = UnitOfWork { function: request.unit, gauges: vec![] };
    let mut counter = UnitCounter::new(
        work,
        Box::new(|unit| {
            units.push(unit);
            true
        }),
    );
    let end = process.run(&mut counter).unwrap();
    counter.finish(&process.cpu, &process.memory);
    let counts = counter.total.counts(&process.cache);
    drop(counter);
    let units = units.iter().map(|unit| {
        let blocks = unit.blocks.iter().map(|(id, times)| (*id as usize, times));
        (unit.instructions, unit.returned, executions(&counts, blocks))
    });
    let answer = Answer {
        end: format!("{end:x?}").chars().take(60).collect(),
        instructions: process.cpu.instructions,
        unaligned: process.unaligned,
        executions: executions(&counts, counts.executions.iter().enumerate()),
        units: units.collect(),
    };
    std::fs::write(request.answer, serde_json::to_string(&answer).unwrap()).unwrap();
}

fn answer(program: &Path, unit: &str, hot: u32) -> Answer {
    let answer = program.with_extension(format!("{hot}.json"));
    let request = Request { program: program.into(), unit: unit.into(), hot, answer };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(REQUEST, serde_json::to_string(&request).unwrap());
    command.current_dir(program.parent().unwrap()).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{hot}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&std::fs::read_to_string(&request.answer).unwrap()).unwrap()
}

fn compile(sources: &[PathBuf], program: &Path) {
    let compiler = "alpha-linux-gnu-gcc";
    let mut command = Command::new(compiler);
    command.args(["-O2", "-pthread", "-o"]).arg(program).args(sources).args(["-lm", "-ldl"]);
    let status = command.status().unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
    assert!(status.success());
}

#[test]
fn every_threshold_gives_the_same_counts() {
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
    ] {
        let name = sources[0];
        let program = directory.path().join(name);
        let sources: Vec<_> =
            sources.iter().map(|name| root.join(folder).join(name).with_extension("c")).collect();
        compile(&sources, &program);
        let interpreted = answer(&program, unit, 0);
        assert!(interpreted.instructions > 10_000 && !interpreted.units.is_empty(), "{name}");
        for hot in [1, 2, 7, 50] {
            let compiled = answer(&program, unit, hot);
            assert_eq!(compiled.instructions, interpreted.instructions, "{name} {hot}");
            assert_eq!(compiled.units.len(), interpreted.units.len(), "{name} {hot}");
            for (key, times) in &interpreted.executions {
                assert_eq!(compiled.executions.get(key), Some(times), "{name} {hot} {key}");
            }
            assert_eq!(compiled, interpreted, "{name} {hot}");
        }
    }
}
