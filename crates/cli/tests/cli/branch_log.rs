//! `branch-log`: patched images, and what is reconstructed from their logs.

use std::fs;
use std::process::Command;

use crate::instrument::Guest;

const COUNTED: &str = "../spike/tests/programs/counted.c";

/// The number in a column of the row that begins with a name, in CSV.
fn cell(csv: &str, row: &str, column: &str) -> u64 {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at = header.iter().position(|name| *name == column).unwrap_or_else(|| panic!("{header:?}"));
    let line = lines.find(|line| line[0] == row).unwrap_or_else(|| panic!("no {row} in {csv}"));
    line[at].parse().unwrap()
}

#[test]
fn profiles_from_logs_are_the_engines() {
    let guests = [
        ("tests/cli/guests/modes.c", "work"),
        ("tests/cli/guests/calls.c", ""),
        ("tests/cli/guests/heap.c", ""),
        (COUNTED, "x"),
        (COUNTED, "e"),
        (COUNTED, "j"),
    ];
    for (source, arguments) in guests {
        for level in ["-O0", "-O2"] {
            let guest = Guest::new(source, &[level, "-fno-builtin"]);
            assert_eq!(guest.run("branch-log patch guest -o patched").code(), 0);
            guest.run(&format!("spike profile -o engine guest {arguments}"));
            guest.qemu(&format!("patched {arguments}"));
            let read = "branch-log reconstruct patched.log guest --format csv";
            let first = guest.run(&format!("{read} --profile qemu")).noted_success();
            guest.assert_same("engine", "qemu");
            // On the engine, the same.
            assert_eq!(guest.run("branch-log clear patched.log").code(), 0);
            guest.run(&format!("run patched {arguments}"));
            assert_eq!(guest.run(read).noted_success(), first);
        }
    }
}

/// A child has a process of its own in the log.
#[test]
fn children_are_told_apart() {
    let guest = Guest::new(COUNTED, &["-O2", "-fno-optimize-sibling-calls"]);
    guest.run("branch-log patch guest -o patched --records 64K");
    guest.run("run patched f").noted_success();
    let functions = guest.run("branch-log reconstruct patched.log guest --format csv").noted_success();
    assert_eq!(cell(&functions, "work", "calls"), 2_500);
    let threads =
        guest.run("branch-log reconstruct patched.log guest --by thread --format csv").noted_success();
    let processes: std::collections::BTreeSet<&str> = threads
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .filter(|one| *one != "total")
        .collect();
    assert_eq!(processes.len(), 4, "{threads}");
    assert_eq!(cell(&threads, "total", "instructions"), cell(&functions, "total", "instructions"));
}

#[test]
fn images_of_one_program_share_a_log() {
    let guest = Guest::new(COUNTED, &["-O2"]);
    let folder = guest.folder.path();
    let sources = [
        ("twice.c", "__attribute__((noinline)) int twice(int n) { return n > 5 ? n * 2 : n; }"),
        (
            "main.c",
            "int twice(int); int main(void) { int sum = 0; for (int i = 0; i < 1000; i++) sum += twice(i); return sum & 7; }",
        ),
    ];
    sources.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    let gcc = |words: &str| {
        let mut command = Command::new("alpha-linux-gnu-gcc");
        command.current_dir(folder).args(["-O2", "-Wl,--emit-relocs"]).args(words.split(' '));
        assert!(command.status().expect("the cross compiler is needed: run ./setup").success());
    };
    gcc("-fPIC -shared twice.c -o libtwice.so");
    gcc("main.c -o program -L. -ltwice -Wl,-rpath,$ORIGIN");
    let code = guest.run("run ./program").code();
    assert_eq!(guest.run("branch-log patch program libtwice.so -o patched --log log").code(), 0);
    assert_eq!(guest.run("run patched/program").code(), code);
    let functions = guest.run("branch-log reconstruct log program libtwice.so --format csv").noted_success();
    assert_eq!(cell(&functions, "twice", "calls"), 1000);
    let listing = guest.run("branch-log reconstruct log program libtwice.so --listing").noted_success();
    let calls: Vec<&str> = listing.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    // The caller and the called function take turns.
    let turns = calls.windows(2).filter(|pair| pair == &["main", "twice"]).count();
    assert_eq!(turns, 1000);
    // Another order is another log.
    let said = guest.run("branch-log reconstruct log libtwice.so program").failure();
    assert!(said.contains("give the 2 original images in the order in which they were patched"), "{said}");
}

#[test]
fn logging_is_switched_on_and_off() {
    let guest = Guest::new(COUNTED, &["-O2"]);
    guest.run("branch-log patch guest -o patched --off");
    guest.run("run patched").noted_success();
    let read = "branch-log reconstruct patched.log guest --format csv";
    assert_eq!(cell(&guest.run(read).noted_success(), "total", "blocks"), 0);
    assert_eq!(guest.run("branch-log on patched.log").code(), 0);
    guest.run("run patched").noted_success();
    let once = cell(&guest.run(read).noted_success(), "total", "blocks");
    assert!(once > 1000);
    assert_eq!(guest.run("branch-log off patched.log").code(), 0);
    guest.run("run patched").noted_success();
    assert_eq!(cell(&guest.run(read).noted_success(), "total", "blocks"), once);
    assert_eq!(guest.run("branch-log clear patched.log").code(), 0);
    assert_eq!(cell(&guest.run(read).noted_success(), "total", "blocks"), 0);
}

#[test]
fn bad_input_is_told() {
    let guest = Guest::new(COUNTED, &["-O2"]);
    guest.run("branch-log patch guest -o patched --records 1K");
    let other = Guest::new("tests/cli/guests/calls.c", &["-O2"]);
    fs::copy(other.path("guest"), guest.path("other")).unwrap();
    let log = fs::read(guest.path("patched.log")).unwrap();
    fs::write(guest.path("short"), &log[..log.len() / 2]).unwrap();
    fs::write(guest.path("empty"), "").unwrap();
    let cases = [
        ("branch-log reconstruct patched.log other", "patched.log: is the log of other images"),
        ("branch-log reconstruct guest guest", "guest: is not a branch log"),
        ("branch-log reconstruct empty guest", "empty: is not a branch log"),
        ("branch-log reconstruct short guest", "short: is a damaged branch log"),
        ("branch-log reconstruct missing guest", "missing: cannot be read"),
        ("branch-log on guest", "guest: is not a branch log"),
        ("branch-log patch patched -o again", "was optimized or instrumented already"),
        ("branch-log patch guest -o /dev/full --log log", "No space left"),
        ("branch-log patch guest -o again --log missing/log", "missing: no such folder"),
        ("branch-log patch guest guest -o folder", "two images have this name"),
    ];
    for (words, expected) in cases {
        let said = guest.run(words).failure();
        assert!(said.contains(expected), "{words}: {said}");
    }
    assert_eq!(guest.run("branch-log patch guest -o again --records 7").code(), 2);
}
