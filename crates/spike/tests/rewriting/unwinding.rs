//! Exceptions, cancelled threads and backtraces go through optimized, instrumented and logging images as through the originals.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pathlength_spike::branch_log::{self, log::LogHeader};
use pathlength_spike::instrument::{self, Update};
use pathlength_spike::optimize::{self, Options};
use pathlength_spike::{check, lift};

use super::random::give_random_counts;
use super::{Original, guest};

/// Ways to build the program. Exceptions are thrown by loads, too.
const BUILDS: [&[&str]; 5] = [
    &["-O1", "-fno-omit-frame-pointer", "-fno-inline", "-fno-optimize-sibling-calls"],
    &["-Os", "-static", "-Wl,--no-relax"],
    &["-O0"],
    &["-O2", "-static-pie"],
    &["-O3", "-fPIE", "-pie", "-ffunction-sections"],
];
/// The power of two of branches that a log has room for.
const CAPACITY: u32 = 16;

/// The images that the tools make of one, each with its name.
fn versions(image: &Path, seed: u64) -> [(&'static str, Vec<u8>); 3] {
    let mut program = lift::lift(std::fs::read(image).unwrap()).unwrap();
    give_random_counts(&mut program, seed);
    let optimized = optimize::optimize(program, &[], Options::default()).unwrap().bytes;
    let [counts, log] = ["counts", "log"].map(|name| image.with_extension(name));
    let program = optimize::open(image).unwrap();
    let counted = instrument::instrument(program, counts.as_os_str().as_bytes(), Update::Atomic).unwrap();
    std::fs::write(counts, counted.counts).unwrap();
    let mut plan = branch_log::LogImage::new(optimize::open(image).unwrap(), 0, CAPACITY);
    let id = plan.hash(0).unwrap();
    let (logging, switch) = plan.write(id, log.as_os_str().as_bytes()).unwrap();
    let header = LogHeader { id, switches: vec![switch], capacity: CAPACITY };
    std::fs::write(log, header.empty_file(true)).unwrap();
    [("optimized", optimized), ("instrumented", counted.bytes), ("logging", logging)]
}

#[test]
fn unwinders_find_all_frames() {
    for switches in &BUILDS[..testing::sample(2, BUILDS.len())] {
        let switches = [*switches, &["-fnon-call-exceptions"]].concat();
        let original = Original::new("unwinding.cc", &switches, |_| ());
        for seed in 1..=testing::sample(1, 3) {
            for (version, bytes) in versions(&original.path("original"), seed as u64) {
                guest::write_executable(&original.path("rewritten"), &bytes);
                let name = format!("{switches:?}, {version}");
                original.check_runs(&original.path("rewritten"), &name, seed as u64);
            }
        }
    }
}

/// A label at a procedure's end lies in padding, or is the address of the next procedure.
const LABEL: &str = r#"
#include <stdio.h>
__attribute__((noinline)) void *last(int i) { if (i == 77) goto l; return &&l; l: return 0; }
__attribute__((noinline)) int other(int x) { return x * 3 + 1; }
int main(int count, char **arguments) {
    freopen(arguments[1], "w", stdout);
    for (int i = 0; i < 6; i++) printf("%d %d\n", last(i) != 0, other(i));
    return 5;
}
"#;

#[test]
fn labels_at_ends_of_procedures() {
    for aligned in ["-falign-functions=32", "-falign-functions=4"] {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("label.c");
        std::fs::write(&source, LABEL).unwrap();
        let original = Original::new(source.to_str().unwrap(), &["-O2", aligned], |_| ());
        assert!(original.expected.output.starts_with("1 1\n1 4\n"), "{:?}", original.expected);
        for (version, bytes) in versions(&original.path("original"), 1) {
            guest::write_executable(&original.path("rewritten"), &bytes);
            original.check_runs(&original.path("rewritten"), version, 1);
        }
    }
}

/// The checker proves what unwinders find, and finds a table that says something else.
#[test]
fn wrong_rows_are_found() {
    /// `DW_CFA_def_cfa` with the frame pointer, and with another register.
    const OF_FRAME: [u8; 2] = [0x0c, 15];
    const OF_OTHER: [u8; 2] = [0x0c, 14];
    let original = Original::new("unwinding.cc", &["-O0", "-fnon-call-exceptions"], |_| ());
    let bytes = std::fs::read(original.path("original")).unwrap();
    let [(_, optimized), ..] = versions(&original.path("original"), 1);
    let unproved = |image: &[u8]| {
        let report = check::check(bytes.clone(), image.to_vec()).unwrap();
        let reasons =
            report.procedures.iter().filter_map(|one| Some(one.difference.as_ref()?.1.reason.clone()));
        reasons.filter(|reason| reason.contains("unwinder")).count()
    };
    assert_eq!(unproved(&optimized), 0);
    let elf = pathlength_spike::elf::Elf::read(optimized.clone()).unwrap();
    let section = elf.section(".eh_frame").unwrap();
    let (from, to) = (section.offset as usize, (section.offset + section.size) as usize);
    let positions: Vec<usize> = (from..to - 1).filter(|&at| optimized[at..at + 2] == OF_FRAME).collect();
    assert!(positions.len() > 20, "{}", positions.len());
    let tried: Vec<usize> =
        positions.iter().copied().step_by(positions.len() / testing::sample(8, positions.len())).collect();
    let is_found = |at: &&usize| {
        let mut wrong = optimized.clone();
        wrong[**at..**at + 2].copy_from_slice(&OF_OTHER);
        unproved(&wrong) > 0
    };
    // Some are of code that no proof passes, or that clears the frame pointer.
    let found = tried.iter().filter(is_found).count();
    assert!(4 * found >= 3 * tried.len(), "{found} of {}", tried.len());
}
