//! A machine's description is rejected with an error of one line, or the machine can be simulated.
#![no_main]

use events::{Block, Consumer, Thread};
use libfuzzer_sys::{Corpus, fuzz_target};
use machine::{Caches, Machine, TimingModel};

/// Maximum numbers of lines and entries of a simulated machine: larger ones would take the time of many inputs.
const MOST_LINES: u64 = 1 << 14;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    // A base would be read from another file.
    if text.contains(".toml") {
        return Corpus::Reject;
    }
    match Machine::from_toml(text) {
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && said.lines().count() == 1, "{said:?}");
        }
        Ok(machine) if lines(&machine) <= MOST_LINES => simulate(&machine),
        Ok(_) => {}
    }
    Corpus::Keep
});

fn lines(machine: &Machine) -> u64 {
    let caches = machine.caches.iter().map(|cache| cache.size / cache.line + u64::from(cache.victim_lines));
    let buffers = machine.translation_buffers.iter().map(|buffer| u64::from(buffer.entries));
    caches.chain(buffers).sum()
}

/// A thousand executions of a block that loads, stores and branches.
fn simulate(machine: &Machine) {
    // ldq t0,0(a0); addq t0,t1,t0; stq t0,0(a1); mulq t0,t1,t2; bne t0,.-16
    let block = Block::new(
        &isa::Alpha,
        0x1_2000_0000,
        vec![0xa430_0000, 0x4022_0401, 0xb431_0000, 0x4c22_0403, 0xf43f_fffb],
    );
    let records: Vec<u64> =
        (0..1000).flat_map(|n| [!0, 0x1_4000_0000 + 72 * n, 0x1_5000_0000 + 8 * n * n]).collect();
    let mut caches = Caches::new(machine);
    caches.define(&block);
    caches.executed(Thread::default(), &records);
    assert_eq!(caches.instructions(), 5000);
    for structure in caches.structures() {
        assert!(structure.misses <= structure.accesses, "{}", structure.name);
    }
    if let Ok(mut time) = TimingModel::new(machine) {
        time.define(&block);
        time.executed(Thread::default(), &records);
        assert_eq!(time.cycles().instructions(), 5000);
    }
}
