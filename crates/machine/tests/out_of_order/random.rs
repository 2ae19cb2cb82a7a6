//! Random programs on random machines, block by block.

use std::cell::Cell;
use std::fmt::Write;

use events::{Block, Consumer, Thread};
use pathlength_machine::{Machine, TimingModel};

use super::assembler::assemble;
use super::memory::{ByAddress, DATA};
use super::paths::dynamic;
use super::ticks::Ticks;

const START: u64 = 0x1_0000;

/// A core with random sizes, and a predictor.
fn machine(random: &mut fastrand::Rng) -> Machine {
    let mut text = String::from(
        "title = \"random\"\n[processor]\nname = \"random\"\nclock_mhz = 1000\n[memory]\nlatency_ns = 60\n",
    );
    let caches = [
        ("icache", 1, "instructions", random.u32(0..4)),
        ("dcache", 1, "data", random.u32(1..5)),
        ("l2", 2, "both", 7),
        ("l3", 3, "both", 20),
    ];
    for (name, level, holds, latency) in caches {
        let _ = writeln!(
            text,
            "[caches.{name}]\nlevel = {level}\nholds = \"{holds}\"\nsize = \"8K\"\nways = 1\nline = 32\nlatency = {latency}"
        );
    }
    let mut pick = |from: u32, to: u32| random.u32(from..=to);
    let _ = writeln!(text, "[out_of_order]\ndispatch = {}\nreorder_buffer = {}", pick(1, 4), pick(2, 24));
    let _ =
        writeln!(text, "stations = {{ a = {}, b = {} }}\nretire = {}", pick(1, 8), pick(1, 5), pick(1, 4));
    let _ = writeln!(text, "dispatch_to_issue = {}\nsystem_call = {}", pick(0, 2), pick(0, 5));
    if pick(0, 1) == 0 {
        let _ = writeln!(text, "integer_registers = {}\nfloat_registers = {}", pick(1, 12), pick(1, 6));
    }
    let _ =
        writeln!(text, "[out_of_order.fetch]\nwidth = {}\naligned = {}", 1 << pick(0, 3), pick(0, 1) == 0);
    let _ = writeln!(text, "buffer = {}\nstages = {}\ntaken = {}", pick(1, 8), pick(1, 4), pick(0, 2));
    let _ = writeln!(text, "misfetch = {}\nredirect = {}", pick(0, 4), pick(0, 3));
    let policy = if pick(0, 1) == 0 { "wait" } else { "pass" };
    let _ = writeln!(text, "[out_of_order.loads]\nqueue = {}\nunknown_stores = \"{policy}\"", pick(1, 8));
    let _ = writeln!(text, "forward = {}\nreplay = {}\noutstanding = {}", pick(1, 4), pick(0, 3), pick(1, 4));
    let _ = writeln!(text, "partial_forward = {}", pick(0, 5));
    let _ = writeln!(
        text,
        "outstanding_memory = {}\nwait_table = {}",
        pick(1, 3),
        [0, 4, 16][pick(0, 2) as usize]
    );
    let _ = writeln!(text, "wait_table_cycles = 4000000000\n[out_of_order.stores]\nqueue = {}", pick(1, 6));
    let _ = writeln!(text, "split = {}\nwrites = {}\n[out_of_order.classes]", pick(0, 1) == 0, pick(1, 3));
    if pick(0, 1) == 0 {
        let _ = writeln!(text, "thread-pointer = {{ station = \"a\", ports = [\"1\"], latency = 2 }}");
    }
    let beyond = pick(0, 2);
    let _ = writeln!(text, "load = {{ station = \"a\", ports = [\"2\"], beyond_cache = {beyond} }}");
    for (class, ports, latency, more) in [
        ("default", "[\"0\", \"1\"]", pick(1, 2), ""),
        ("store", "[\"2\", \"1\"]", pick(1, 2), ""),
        ("shift", "[\"1\"]", pick(1, 3), ""),
        ("multiply-quad", "[\"0\"]", pick(4, 9), ", occupies = { unit = \"m\", cycles = 5 }"),
        ("memory-barrier", "[\"2\"]", 1, ", order = \"memory\""),
        ("trap-barrier", "[]", 1, ", order = \"all\""),
        ("store-conditional", "[\"2\"]", pick(1, 5), ", order = \"oldest\""),
        ("call-pal", "[\"0\"]", 1, ", order = \"system\""),
    ] {
        let station = if pick(0, 1) == 0 { "a" } else { "b" };
        let _ = writeln!(
            text,
            "{class} = {{ station = \"{station}\", ports = {ports}, latency = {latency}{more} }}"
        );
    }
    let scheme = ["static", "bimodal", "gshare"][pick(0, 2) as usize];
    let _ = writeln!(
        text,
        "[predictor]\nscheme = \"{scheme}\"\nentries = {}\nbits = 2\nhistory = 3",
        1 << pick(0, 5)
    );
    let _ = writeln!(text, "return_stack = {}", pick(0, 3));
    if pick(0, 2) > 0 {
        let _ = writeln!(text, "[predictor.btb]\nentries = {}\nways = {}", 1 << pick(1, 4), 1 << pick(0, 1));
        let _ = writeln!(text, "static_on_miss = {}", pick(0, 1) == 0);
    }
    if pick(0, 1) > 0 {
        let (entries, history) = (1 << pick(1, 4), pick(1, 12));
        let _ = writeln!(text, "[predictor.indirect]\nentries = {entries}\nhistory = {history}");
    }
    Machine::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An instruction within a block.
fn body(random: &mut fastrand::Rng) -> String {
    let mut register = || ["r1", "r2", "r3", "r4", "r5", "r31"][random.usize(..6)];
    let [a, b, c] = [register(), register(), register()];
    let offset = 8 * random.i32(-2..3);
    match random.u32(..24) {
        0..6 => format!("addq {a},{b},{c}"),
        6 => format!("sll {a},{b},{c}"),
        7 => format!("mulq {a},{b},{c}"),
        8 => format!("lda {a},{offset}({b})"),
        9..14 => format!("ldq {a},{offset}({b})"),
        14 => format!("ldl {a},{offset}({b})"),
        15..19 => format!("stq {a},{offset}({b})"),
        19 => format!("stl {a},{offset}({b})"),
        20 => "addt f1,f2,f3".into(),
        21 => "ldt f2,0(r1)".into(),
        22 => ["mb", "trapb", "unop", "ldq_l r1,0(r2)", "stq_c r3,0(r4)", "call_pal 158"][random.usize(..6)]
            .into(),
        _ => format!("bis {a},r31,{c}"),
    }
}

/// Blocks one after the other, with random ends.
fn program(random: &mut fastrand::Rng) -> Vec<(u64, Vec<u32>)> {
    let bodies: Vec<Vec<String>> =
        (0..random.usize(2..9)).map(|_| (0..random.usize(..9)).map(|_| body(random)).collect()).collect();
    let mut starts = vec![START];
    bodies.iter().for_each(|body| starts.push(starts.last().unwrap() + 4 * body.len() as u64 + 4));
    let mut blocks = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let end = starts[number] + 4 * body.len() as u64;
        let distance = starts[random.usize(..bodies.len())] as i64 - end as i64 - 4;
        let end = match random.u32(..10) {
            0 => "addq r1,r2,r3".into(),
            1..6 => format!("bne r{},{distance}", random.u32(1..6)),
            6 => format!("br r31,{distance}"),
            7 => format!("bsr r26,{distance}"),
            8 => ["jmp r31,(r27)", "jsr r26,(r27)", "call_pal 131"][random.usize(..3)].into(),
            _ => "ret r31,(r26)".into(),
        };
        blocks.push((starts[number], assemble(&[&body[..], &[end]].concat().join(";"))));
    }
    blocks
}

/// A way through the blocks, with the addresses of accesses.
fn walk(random: &mut fastrand::Rng, blocks: &[(u64, Vec<u32>)]) -> Vec<(usize, Vec<u64>)> {
    let mut path = Vec::new();
    let mut block = 0;
    let start_of = |address: u64| blocks.iter().position(|block| block.0 == address);
    for _ in 0..random.usize(2..60) {
        let (start, words) = &blocks[block];
        let accesses = words.iter().filter(|&&word| isa::decode(word).unwrap().access_size().is_some());
        let spread = [4, 40][random.usize(..2)];
        path.push((block, accesses.map(|_| DATA + 8 * random.u64(..spread) + 4 * random.u64(..2)).collect()));
        let at = start + 4 * words.len() as u64;
        let transfer = isa::InstructionSet::summary(&isa::Alpha, *words.last().unwrap()).unwrap().transfer;
        let next = match transfer.map(|transfer| (transfer.target, transfer.is_conditional)) {
            Some((isa::TransferTarget::Relative(distance), is_conditional)) => {
                let is_taken = !is_conditional || random.u32(..3) > 0;
                if is_taken { start_of((at - 4).wrapping_add_signed(distance)) } else { start_of(at) }
            }
            Some(_) => Some(random.usize(..blocks.len())),
            None => start_of(at),
        };
        match next {
            Some(next) => block = next,
            None => break,
        }
    }
    path
}

#[test]
fn instructions_retire_in_the_same_cycles() {
    let cases = testing::sample(1_500, 10_000) as u64;
    let only: Option<u64> = std::env::var("CASE").ok().and_then(|text| text.parse().ok());
    let (replays, wrong, traps) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for case in only.map_or(0..cases, |case| case..case + 1) {
        let mut random = fastrand::Rng::with_seed(case);
        let (machine, blocks) = (machine(&mut random), program(&mut random));
        let path = walk(&mut random, &blocks);
        let instructions = dynamic(&machine, &blocks, &path);
        let software_refill = random.bool();
        let plain = Ticks::new(&machine, &instructions, software_refill).run();
        let mut time = TimingModel::with_memory(&machine, ByAddress { software_refill }).unwrap();
        blocks.iter().for_each(|(start, words)| time.define(&Block::new(&isa::Alpha, *start, words.clone())));
        let mut executed = 0;
        for (number, (block, addresses)) in path.iter().enumerate() {
            let record: Vec<u64> =
                std::iter::once(!(*block as u64)).chain(addresses.iter().copied()).collect();
            time.executed(Thread::default(), &record);
            executed += blocks[*block].1.len();
            let cycles = time.cycles();
            let expected = plain.retired[&(executed - 1)];
            if only.is_some() {
                eprintln!("{number}: block {block}, {executed} instructions, {} {expected}", cycles.total());
                let own = &instructions[executed - blocks[*block].1.len()..executed];
                own.iter().for_each(|one| eprintln!("    {}", one.text()));
            }
            assert_eq!(cycles.total(), expected, "CASE={case}: execution {number}\n{machine:#?}");
            assert_eq!(cycles.instructions(), executed as u64, "CASE={case}");
        }
        let sites = (0..blocks.len() as u32).flat_map(|block| time.sites(block));
        let attributed: u64 = sites.map(|one| one.issuing + one.front_end_stall + one.back_end_stall).sum();
        assert_eq!(attributed, time.cycles().total(), "CASE={case}");
        let counts = time.out_of_order().unwrap();
        traps.set(traps.get() + u64::from(plain.has_trapped));
        if counts.replays == 0 && !plain.has_trapped {
            assert_eq!(counts.wrong_issued, plain.wrong_issued, "CASE={case}");
            assert_eq!(counts.dispatched, plain.dispatched, "CASE={case}");
        }
        replays.set(replays.get() + counts.replays);
        wrong.set(wrong.get() + counts.wrong_loads);
    }
    assert!(
        only.is_some() || [&replays, &wrong, &traps].iter().all(|number| number.get() > cases / 20),
        "{replays:?} {wrong:?} {traps:?}"
    );
}
