//! The hit filter changes no results. Programs run on one processor of the host, where compiled code reports only accesses
//! that the hit filter does not serve, and on two, where all accesses are recorded.

use std::fs;
use std::process::Command;

use events::Consumer;
use machine::{Caches, Machine, Replacement};
use testing::sample;

use crate::caches::Folder;
use crate::support::run;

/// Programs that leave compiled code often: unaligned accesses, self-modifying code, and the like.
const AWKWARD: [&str; 4] = ["feature_code", "sort", "feature_registers", "feature_unaligned"];

/// Any of these.
fn any<'a>(random: &mut fastrand::Rng, of: &[&'a str]) -> &'a str {
    of[random.usize(..of.len())]
}

/// A random machine with small caches, so that many accesses miss. If it is `like_most`, L1 has eight ways and LRU
/// replacement, so that its misses can be deferred.
fn machine(random: &mut fastrand::Rng, is_like_most: bool) -> String {
    let mut text = String::from("base = \"qemu\"\n");
    for (cache, sizes) in
        [("icache", ["512", "1K", "4K", "16K"]), ("dcache", ["512", "2K", "8K", "32K"]), ("l2", ["16K"; 4])]
    {
        let lines: &[&str] = if cache == "l2" { &["64"] } else { &["8", "16", "32", "64"] };
        // Lines of 8 bytes have no fast path.
        let lines = if is_like_most && cache != "l2" { &lines[1..] } else { lines };
        let (size, line) = (any(random, &sizes), any(random, lines));
        let ways = if is_like_most { "8" } else { any(random, &["1", "2", "4", "8"]) };
        let is_lru = is_like_most || ways == "1" || random.u8(..3) == 0;
        let replacement = if is_lru { "lru" } else { any(random, &Replacement::names()) };
        text += &format!("caches.{cache}.size = \"{size}\"\ncaches.{cache}.line = {line}\n");
        text += &format!("caches.{cache}.ways = {ways}\ncaches.{cache}.replacement = \"{replacement}\"\n");
        if cache == "dcache" {
            let write = any(random, &["ignored", "back", "through"][..if is_like_most { 2 } else { 3 }]);
            text += &format!("caches.dcache.write = \"{write}\"\n");
            let allocates = is_like_most || random.bool();
            text += &format!("caches.dcache.allocate_on_write = {allocates}\n");
        }
    }
    text += &format!("processor.crossing = \"{}\"\n", any(random, &["first", "both"]));
    for side in ["instructions", "data"] {
        if random.bool() {
            let (entries, page) = (any(random, &["4", "16", "64"]), any(random, &["512", "8K"]));
            let replacement = any(random, &Replacement::names());
            text += &format!("[translation_buffers.{side}]\nholds = \"{side}\"\nentries = {entries}\n");
            text += &format!("page = \"{page}\"\nreplacement = \"{replacement}\"\nmiss_cycles = 30\n");
        }
    }
    text
}

/// Whether compiled code filters hits on a machine.
fn has_fast_path(machine: &str) -> bool {
    Caches::new(&Machine::find(machine).unwrap()).hit_filter().is_some()
}

/// A machine on which it does, and where each part of an access that crosses lines counts.
fn like_most(folder: &Folder) -> String {
    let file = folder.path("like-most.toml");
    let caches = "caches.dcache.write = \"back\"\ncaches.l2.write = \"back\"\n";
    fs::write(&file, format!("base = \"qemu\"\nprocessor.crossing = \"both\"\n{caches}")).unwrap();
    let machine = file.display().to_string();
    assert!(has_fast_path(&machine));
    machine
}

/// Compares what misses in a program.
fn compare(folder: &Folder, machine: &str, program: &str) -> usize {
    let found = [1, 2].map(|processors| {
        let table = folder.path(&format!("{processors}.csv"));
        let options = format!("--machine {machine} --by instruction --host-processors {processors}");
        let outcome = run(&format!("caches {options} --format csv -o {} {program}", table.display()));
        assert_eq!(outcome.code(), 0, "{program}: {}", outcome.stderr);
        fs::read_to_string(table).unwrap()
    });
    assert!(found[0] == found[1], "{program} on\n{}", fs::read_to_string(machine).unwrap_or(machine.into()));
    found[0].lines().count()
}

#[test]
fn the_same_misses_on_any_machine() {
    let folder = Folder::new();
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..sample(6, 9) {
        let file = folder.path("random.toml");
        let is_like_most = number % 2 == 0;
        fs::write(&file, machine(&mut random, is_like_most)).unwrap();
        assert!(has_fast_path(&file.display().to_string()) || !is_like_most, "machine {number}");
        let program = [":ev56/walks", ":ev5/modes long", ":ev56/heap"][number % 3];
        assert!(compare(&folder, &file.display().to_string(), program) > 100);
    }
}

#[test]
fn accesses_to_two_lines_miss_the_filter() {
    let folder = Folder::new();
    for machine in ["present-day", &like_most(&folder)] {
        assert!(compare(&folder, machine, ":ev56/odd") > 100);
    }
    let misses = |machine| {
        let rows = folder.table(&format!("caches --machine {machine} --host-processors 1 :ev56/odd"));
        rows.iter().find(|row| row[1] == "dcache").map(|row| row[3].parse::<u64>().unwrap()).unwrap()
    };
    let first = folder.path("first.toml");
    fs::write(&first, "base = \"present-day\"\nprocessor.crossing = \"first\"\n").unwrap();
    assert!(misses("present-day") > misses(&first.display().to_string()) + 500);
}

/// The instructions of a function, by `count` and by a model.
fn instructions(program: &str, function: &str) -> [f64; 2] {
    let folder = Folder::new();
    ["count --by function", "caches --machine qemu --by function --host-processors 1"].map(|command| {
        let rows = folder.table(&format!("{command} {program}"));
        let row = rows.iter().position(|row| row[0] == function).unwrap();
        crate::caches::cell(&rows, row, "instructions")
    })
}

#[test]
fn no_instruction_is_lost_when_a_thread_begins() {
    let [counted, simulated] = instructions(":ev56/late", "work");
    assert!(counted > 8e5);
    assert_eq!(simulated, counted);
}

#[test]
fn no_instruction_is_lost_where_blocks_fault() {
    let [counted, simulated] = instructions(":ev56/skips", "walk");
    assert!(counted > 3e5);
    assert_eq!(simulated, counted);
    let folder = Folder::new();
    assert!(compare(&folder, &like_most(&folder), ":ev56/skips") > 100);
}

#[test]
fn the_same_misses_where_compiled_code_is_left() {
    let folder = Folder::new();
    for name in sample(&AWKWARD[..2], &AWKWARD) {
        let source = format!("{}/../../workloads/tests/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let program = folder.path(name);
        let mut compiler = Command::new("alpha-linux-gnu-gcc");
        let made = compiler.args(["-O1", "-w", "-pthread", &source, "-lm", "-o"]).arg(&program).status();
        assert!(made.unwrap().success(), "{name}");
        assert!(compare(&folder, &like_most(&folder), &program.display().to_string()) > 100);
    }
}
