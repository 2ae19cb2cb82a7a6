//! The machines that come with the crate, and sequences computed by hand.

use std::collections::HashSet;

use events::{Block, Consumer, Thread};
use pathlength_machine::pipeline::PerfectMemory;
use pathlength_machine::{Cause, Machine, Model, TimingModel};

use super::assembler::assemble;

/// Executes a block many times, and returns the cycles of each execution but for the first ones.
fn steady(machine: &str, text: &str, address: u64) -> f64 {
    let mut time = TimingModel::with_memory(&Machine::find(machine).unwrap(), PerfectMemory).unwrap();
    time.define(&Block::new(&isa::Alpha, 0x1_0000, assemble(text)));
    let words = assemble(text);
    let accesses = words.iter().filter(|&&word| isa::decode(word).unwrap().access_size().is_some()).count();
    let record: Vec<u64> = std::iter::once(!0).chain(std::iter::repeat_n(address, accesses)).collect();
    (0..1000).for_each(|_| time.executed(Thread::default(), &record));
    let before = time.cycles().total();
    (0..1000).for_each(|_| time.executed(Thread::default(), &record));
    (time.cycles().total() - before) as f64 / 1000.0
}

#[test]
fn loops_on_the_21264() {
    let cycles = |text| steady("alpha21264", text, 0x8000);
    // A group of four a cycle; a chain of additions, one a cycle; a multiplication, 7; a load and its use, 3 + 1.
    assert_eq!(cycles("addq r1,r31,r2; addq r1,r31,r3; addq r1,r31,r4; br r31,-16"), 1.0);
    assert_eq!(cycles("addq r1,r2,r1; addq r1,r2,r1; addq r1,r2,r1; br r31,-16"), 3.0);
    assert_eq!(cycles("mulq r1,r2,r1; unop; unop; br r31,-16"), 7.0);
    assert_eq!(cycles("ldq r1,0(r1); addq r1,r2,r1; unop; br r31,-16"), 4.0);
    // Three shifts in two pipes.
    assert_eq!(cycles("sll r1,r2,r3; sll r1,r2,r4; sll r1,r2,r5; br r31,-16"), 1.5);
    // Four loads and a jump in two pipes.
    assert_eq!(
        cycles("ldq r1,0(r2); ldq r3,8(r2); ldq r4,16(r2); ldq r5,24(r2); unop; unop; unop; br r31,-32"),
        2.5
    );
}

#[test]
fn loops_on_the_pentium_pro() {
    let cycles = |text| steady("pentium-pro-core", text, 0x8000);
    // Three are dispatched a cycle, of an aligned group of four a cycle; a taken branch costs one more.
    assert_eq!(cycles("addq r1,r31,r2; addq r1,r31,r3; addq r1,r31,r4; br r31,-16"), 2.0);
    // A load is issued each cycle.
    assert_eq!(cycles("ldq r1,0(r9); ldq r2,0(r9); ldq r3,0(r9); br r31,-16"), 3.0);
    // A load of what the last iteration stored: 3 cycles, addition 1, and the store's data a cycle later.
    let chain = cycles("ldq r1,0(r9); addq r1,r2,r1; stq r1,0(r9); br r31,-16");
    assert!((4.0..=5.0).contains(&chain), "{chain}");
}

#[test]
fn the_minimal_penalty_of_a_misprediction() {
    for (machine, least) in [("pentium-pro-core", 11), ("alpha21264", 7), ("present-day-core", 13)] {
        let mut time = TimingModel::with_memory(&Machine::find(machine).unwrap(), PerfectMemory).unwrap();
        time.define(&Block::new(&isa::Alpha, 0x1_0000, assemble("addq r31,r31,r1; bne r1,+8")));
        time.define(&Block::new(&isa::Alpha, 0x1_0008, assemble("addq r31,r31,r1; addq r31,r31,r1")));
        time.define(&Block::new(&isa::Alpha, 0x1_0010, assemble("addq r31,r31,r1")));
        time.executed(Thread::default(), &[!0, !2]);
        let counts = time.out_of_order().unwrap();
        assert_eq!(counts.mispredicted, 1, "{machine}");
        let (_, penalty) = time.non_overlapped().unwrap().branches;
        assert_eq!(penalty, least, "{machine}");
        assert!(time.cycles().of(Cause::Mispredict) >= penalty - 3, "{machine}: {:?}", time.cycles());
    }
}

#[test]
fn replayed_loads_wait_from_then_on() {
    let mut time = TimingModel::with_memory(&Machine::find("alpha21264").unwrap(), PerfectMemory).unwrap();
    let text = "mulq r9,r10,r9; stq r1,0(r9); ldq r2,0(r8); addq r2,r3,r4; unop; unop; unop; br r31,-32";
    time.define(&Block::new(&isa::Alpha, 0x1_0000, assemble(text)));
    (0..20).for_each(|_| time.executed(Thread::default(), &[!0, 0x8000, 0x8000]));
    // The load's address is ready seven cycles before the store's. The table remembers it.
    assert_eq!(time.replays(), 1);
    assert!(time.out_of_order().unwrap().forwarded >= 19);
}

/// A load that is issued before an older one to the same line does not find the line that the older one will request.
#[test]
fn a_load_does_not_find_a_line_that_is_requested_later() {
    let cycles = |older: u64| {
        let mut time = TimingModel::new(&Machine::find("present-day-core").unwrap()).unwrap();
        let text = "mulq r9,r9,r9; mulq r9,r9,r9; mulq r9,r9,r9; ldq r1,0(r9); ldq r2,8(r10); ldq r3,0(r2); addq r3,r3,r3";
        time.define(&Block::new(&isa::Alpha, 0x1_0000, assemble(text)));
        // Its page and its code are known.
        time.executed(Thread::default(), &[!0, 0x8_0000, 0x8_0000, 0x8_0000]);
        let before = time.cycles().total();
        time.executed(Thread::default(), &[!0, older, 0x8_1008, 0x8_0800]);
        time.cycles().total() - before
    };
    assert_eq!(cycles(0x8_1000), cycles(0x8_1400), "the older one in the same line, and in another");
}

/// A wrong path's load that has no translation when the path ends must not leave its line in the caches: that would be a
/// prefetch which takes no time, and a smaller TLB would make programs faster.
#[test]
fn a_wrong_paths_load_that_is_not_requested_leaves_nothing() {
    let from_memory = |translation: u32| {
        let settings = [format!("dtlb.miss_cycles={translation}"), "l2dtlb.miss_cycles=0".into()];
        let settings = settings.map(|setting| setting.parse().unwrap());
        let machine = Machine::find_with("present-day-core", &settings).unwrap();
        let mut time = TimingModel::new(&machine).unwrap();
        let branch = "ldq r1,0(r9); mulq r2,r2,r2; mulq r2,r2,r2; mulq r2,r2,r2; mulq r2,r2,r2; bne r2,+8";
        time.define(&Block::new(&isa::Alpha, 0x1_0000, assemble(branch)));
        time.define(&Block::new(&isa::Alpha, 0x1_0018, assemble("ldq r3,16384(r9); unop")));
        time.define(&Block::new(&isa::Alpha, 0x1_0020, assemble("ldq r4,16384(r9); addq r4,r4,r4")));
        // The wrong path's code is known once it was executed.
        time.executed(Thread::default(), &[!1, 0x9_0000]);
        time.reset_counts();
        time.executed(Thread::default(), &[!0, 0x8_0000, !2, 0x8_4000]);
        let counts = time.out_of_order().unwrap();
        assert_eq!(counts.mispredicted, 1);
        counts.accessed_from[3]
    };
    // Both loads of the right path miss, unless the wrong one has requested the line of the second.
    assert_eq!([0, 500].map(from_memory), [1, 2]);
}

#[test]
fn all_out_of_order_machines_are_complete() {
    let names: HashSet<_> =
        Machine::all().filter(|(_, one)| one.out_of_order.is_some()).map(|one| one.0).collect();
    assert_eq!(
        names,
        ["alpha21264", "origin200-core", "pentium-pro-core", "present-day-core", "r10000"].into()
    );
    for name in names {
        TimingModel::new(&Machine::find(name).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn impossible_cores() {
    let cases = [
        ("dispatch = 0", "out_of_order.dispatch: 0 is not 1 to 32"),
        ("retire = 9", "out_of_order.retire: 9 is not 1 to 8"),
        ("[out_of_order.fetch]\nwidth = 3", "out_of_order.fetch.width: aligned blocks have a power of two"),
        ("[out_of_order.loads]\nwait_table = 3", "out_of_order.loads.wait_table: 3 is neither 0 nor"),
        (
            "[out_of_order.classes]\nadd = { station = \"other\" }",
            "out_of_order.classes.add.station: there is no reservation station \"other\"; there are float, integer",
        ),
        ("[predictor]\nlocal = \"none\"", "predictor.local: a tournament needs it"),
        ("[predictor.btb]\nways = 3", "predictor.btb.ways: 3 is not a power of two"),
    ];
    for (change, expected) in cases {
        let change = match change.starts_with('[') {
            true => change.into(),
            false => format!("[out_of_order]\n{change}"),
        };
        let error = Machine::from_toml(&format!("base = \"alpha21264\"\n{change}")).expect_err(expected);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
