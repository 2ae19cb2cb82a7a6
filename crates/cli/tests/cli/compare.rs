//! `compare` and `static`: two builds of a program, against what objdump says of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{csv, guest, listing, run};

/// Tables as CSV in a folder.
fn tables(words: &str, folder: &Path) -> Vec<String> {
    run(&words.replace("FOLDER", folder.to_str().unwrap())).noted_success();
    listing(folder)
}

fn rows(folder: &Path, name: &str) -> Vec<Vec<String>> {
    csv(&fs::read_to_string(folder.join(name)).unwrap())
}

/// How often objdump shows each mnemonic in an image's code.
fn mnemonics(image: &str) -> BTreeMap<String, u64> {
    let mut command = Command::new("alpha-linux-gnu-objdump");
    let output = command.args(["-d", "-z", "--no-show-raw-insn"]).arg(guest(image)).output();
    let output = output.expect("alpha-linux-gnu-objdump is needed: run ./setup");
    let mut counts = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((_, instruction)) = line.split_once(":\t") {
            let mnemonic = instruction.split_whitespace().next().unwrap_or_default();
            *counts.entry(mnemonic.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// The byte and word instructions of the paper's static tables.
const BYTE_WORD: [&str; 6] = ["ldbu", "ldwu", "stb", "stw", "sextb", "sextw"];

#[test]
fn static_counts_agree_with_objdump() {
    let folder = tempfile::tempdir().unwrap();
    tables("static --format csv -o FOLDER :ev56/modes --against :ev5/modes", folder.path());
    let (original, byte_word) = (mnemonics("ev5/modes"), mnemonics("ev56/modes"));
    for (name, mnemonics) in [("images-baseline.csv", &original), ("images-build.csv", &byte_word)] {
        let images = rows(folder.path(), name);
        let cell = |heading: &str| &images[1][images[0].iter().position(|found| found == heading).unwrap()];
        for instruction in BYTE_WORD {
            let expected = mnemonics.get(instruction).copied().unwrap_or(0);
            assert_eq!(cell(instruction), &expected.to_string(), "{name}: {instruction}");
        }
    }
    let all = |counts: &BTreeMap<_, u64>| BYTE_WORD.map(|name| counts.get(name).copied().unwrap_or(0));
    assert!(all(&original).iter().sum::<u64>() == 0 && all(&byte_word).iter().sum::<u64>() > 0);
}

#[test]
fn compare_shows_both_builds_as_count_does() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare --unit work --format csv -o FOLDER :ev5/modes :ev56/modes -- work";
    let names = tables(words, folder.path());
    assert_eq!(names, ["functions.csv", "groups.csv", "images.csv", "instructions.csv", "path-length.csv"]);
    let lengths = rows(folder.path(), "path-length.csv");
    let images = rows(folder.path(), "images.csv");
    assert_eq!([&lengths[1][0], &lengths[2][0]], ["ev5", "ev56"]);
    for (row, build) in [(1, "ev5"), (2, "ev56")] {
        let table = folder.path().join("alone");
        let words =
            format!("count --unit work --by image --format csv -o {} :{build}/modes work", table.display());
        run(&words).noted_success();
        let alone = rows(folder.path(), "alone");
        let column = images[0].iter().position(|heading| heading == build).unwrap();
        assert_eq!(images.last().unwrap()[column], alone.last().unwrap()[1], "{build}");
        let mean = lengths[0].iter().position(|heading| heading == "Mean").unwrap();
        let mean: f64 = lengths[row][mean].parse().unwrap();
        assert_eq!(mean.to_string(), alone.last().unwrap()[1]);
    }
    // The loop's load and store of two bytes are two instructions with BWX, and many without.
    let instructions = rows(folder.path(), "instructions.csv");
    let row = |name: &str| instructions.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((row("stw")[1].as_str(), row("stw")[2].as_str()), ("0", "21"));
    assert_eq!(row("ldwu")[1..3], ["0", "21"]);
    let delta = instructions[0].iter().position(|heading| heading == "delta").unwrap();
    assert!(row("total")[delta].starts_with('-'), "{:?}", row("total"));
}

#[test]
fn the_same_program_twice_has_no_differences() {
    let folder = tempfile::tempdir().unwrap();
    tables("compare --format csv -o FOLDER :ev5/halves :ev5/halves", folder.path());
    for table in ["functions.csv", "instructions.csv"] {
        let rows = rows(folder.path(), table);
        let delta = rows[0].iter().position(|heading| heading == "delta").unwrap();
        assert_eq!((rows.len(), rows[1][0].as_str(), rows[1][delta].as_str()), (2, "total", "0"), "{rows:?}");
    }
    assert_eq!(&rows(folder.path(), "functions.csv")[0][2..4], ["first", "second"]);
}

/// As README compares: two programs of different names, and libraries of one soname or of the same functions.
#[test]
fn images_are_paired_by_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    for (build, name, soname, library) in [
        ("ev5", "halves-a", "libhalf.so.1", "libhalf.so.1.0"),
        ("ev56", "halves-b", "libhalf.so.1", "libhalf.so.1.1"),
    ] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests");
        let switches = if build == "ev5" { ["-mcpu=ev5", "-mno-bwx"] } else { ["-mcpu=ev56", "-mbwx"] };
        let compile = |arguments: &[&str]| {
            let mut command = Command::new("alpha-linux-gnu-gcc");
            command.current_dir(folder.path()).args(["-O1", "-w"]).args(switches).args(arguments);
            assert!(command.status().unwrap().success());
        };
        let source = |name: &str| sources.join(name).to_str().unwrap().to_string();
        let rpath = format!("-Wl,-rpath,{}/{build}", folder.path().display());
        compile(&["-fPIC", "-shared", &source("half.c"), "-o", library, &format!("-Wl,-soname,{soname}")]);
        compile(&[&source("halves.c"), library, "-o", name, &rpath]);
        fs::create_dir(place(build)).unwrap();
        fs::rename(place(library), place(build).join(library)).unwrap();
        std::os::unix::fs::symlink(library, place(build).join(soname)).unwrap();
    }
    let [a, b] = ["halves-a", "halves-b"].map(|name| place(name).to_str().unwrap().to_string());
    let shown = run(&format!("compare {a} {b}")).quiet_success();
    assert!(shown.contains("Paired: halves-a with halves-b (the programs)."), "{shown}");
    assert!(shown.contains("Paired: libhalf.so.1.0 with libhalf.so.1.1 (one soname)."), "{shown}");
    run(&format!("compare --format csv -o {} {a} {b}", place("tables").display())).noted_success();
    let images = rows(&place("tables"), "images.csv");
    let both = |name: &str| {
        let row = images.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {images:?}"));
        row[1] != "0" && row[3] != "0"
    };
    assert!(both("program") && both("libhalf.so.1") && both("libc.so.6.1"), "{images:?}");
    let functions = rows(&place("tables"), "functions.csv");
    let deltas: Vec<i64> =
        functions[1..functions.len() - 1].iter().map(|row| row[4].parse().unwrap()).collect();
    assert!(!deltas.is_empty() && deltas.iter().all(|&delta| delta != 0), "{deltas:?}");
    assert!(deltas.is_sorted_by_key(|delta| std::cmp::Reverse(delta.abs())), "{deltas:?}");
    let top = run(&format!("compare --top 1 --format csv -o {} {a} {b}", place("top").display()));
    top.noted_success();
    assert_eq!(
        rows(&place("top"), "functions.csv"),
        [&functions[..2], &functions[functions.len() - 1..]].concat()
    );
}
