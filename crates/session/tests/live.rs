//! While a program runs, compiled code reports only L1 misses to a cache model, and counts filtered executions.

use std::path::Path;
use std::process::Command;

use engine::{Configuration, Plan, SystemSettings};
use events::record::Event;
use events::{Block, BlockId, Consumer, HitFilter, MappedImage, Thread};
use machine::{Caches, Machine};
use pathlength_session::live;

/// Caches, and the numbers of executions reported in each way.
struct Told {
    caches: Caches,
    /// Whether filtered executions may be reported by counts.
    passes: bool,
    by_records: u64,
    by_counts: u64,
}

impl Consumer for Told {
    fn map(&mut self, image: &MappedImage) {
        self.caches.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.caches.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let blocks = records.iter().filter(|&&word| matches!(Event::new(word), Event::Block(_)));
        self.by_records += blocks.count() as u64;
        self.caches.executed(thread, records);
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        self.caches.hit_filter().filter(|_| self.passes)
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.caches.first_instruction(block)
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        self.by_counts += executions;
        self.caches.executed_filtered(block, executions);
    }
}

fn run(program: &Path, passes: bool) -> Told {
    let machine = Machine::find("qemu").unwrap();
    let model = Told { caches: Caches::new(&machine), passes, by_records: 0, by_counts: 0 };
    let configuration = Configuration {
        program: program.into(),
        name: None,
        arguments: vec![],
        environment: vec![],
        model: isa::Processors::default(),
        settings: SystemSettings::default(),
    };
    live::run(&configuration, &Plan::default(), model, false).unwrap().model
}

#[test]
fn most_executions_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sort");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/tests/sort.c");
    let mut compiler = Command::new("alpha-linux-gnu-gcc");
    let made = compiler.args(["-O2", "-w", "-o"]).arg(&program).arg(source).status();
    assert!(made.expect("the cross compiler is needed: run ./setup").success());
    let [passed, whole] = [true, false].map(|passes| run(&program, passes));
    assert!(whole.by_records > 1_000_000 && whole.by_counts == 0, "{}", whole.by_counts);
    let all = passed.by_records + passed.by_counts;
    assert!(passed.by_counts > all / 10 * 9, "{} of {all}", passed.by_counts);
    assert_eq!(passed.caches.instructions(), whole.caches.instructions());
    assert_eq!(passed.caches.structures(), whole.caches.structures());
}
