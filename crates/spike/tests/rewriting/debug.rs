//! Debug information of rewritten images: GNU's addr2line says the same of each instruction as it says of the original,
//! and GDB finds the same callers and variables.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use pathlength_spike::program::NO_ORIGIN;
use pathlength_spike::{lift, output};
use tempfile::TempDir;

use crate::guest;
use crate::random::shuffled;

/// Functions, files and lines at addresses, with those of inlined calls.
fn locations(image: &Path, addresses: &[u64]) -> Vec<String> {
    let mut command = Command::new("alpha-linux-gnu-addr2line");
    command.args(["-a", "-i", "-f", "-e"]).arg(image).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("alpha-linux-gnu-addr2line is needed");
    let mut input = child.stdin.take().unwrap();
    let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let mut all = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.starts_with("0x") {
            true => all.push(String::new()),
            false => *all.last_mut().unwrap() += &format!("{line}; "),
        }
    }
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    all
}

/// A program, and the same one in random order.
struct Pair {
    directory: TempDir,
    /// Original and new address of each instruction.
    moved: Vec<(u64, u64)>,
}

impl Pair {
    fn new(source: &str, switches: &[&str], seed: u64) -> Pair {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("original");
        guest::build(&[source], switches, &path);
        let program = lift::lift(std::fs::read(&path).unwrap()).unwrap();
        let (bytes, assembly) = output::write(&program, &shuffled(&program, seed)).unwrap();
        guest::write_executable(&directory.path().join("rewritten"), &bytes);
        let new = (0..).map(|index: u64| assembly.base + index * 4);
        let moved = assembly.origins.iter().zip(new).filter(|one| *one.0 != NO_ORIGIN);
        let moved = moved.map(|(&origin, new)| (program.code.address(origin), new)).collect();
        Pair { directory, moved }
    }

    fn check_lines(&self, name: &str) {
        let (old, new): (Vec<u64>, Vec<u64>) = self.moved.iter().copied().unzip();
        let old = locations(&self.directory.path().join("original"), &old);
        let new = locations(&self.directory.path().join("rewritten"), &new);
        let named = old.iter().filter(|one| one.contains("feature.c")).count();
        assert!(named > 1000, "{name}: only {named} instructions have lines");
        assert_eq!(old.len(), new.len());
        // A part of a procedure has a symbol of its own; what has no line has the name of some symbol. In C++ only the
        // line is compared: addr2line takes names from symbols or from debug information, and not always in the order in
        // which calls were inlined if their ranges have the same length.
        let shown = |text: &str| -> Vec<String> {
            let lines = text.split("; ").map(|one| one.trim_end_matches(".cold").to_string());
            if name.ends_with(".cc") { lines.skip(1).take(1).collect() } else { lines.collect() }
        };
        let differ = |old: &str, new: &str| !old.contains("??:") && shown(old) != shown(new);
        let pairs = old.iter().zip(&new).zip(&self.moved);
        let wrong: Vec<_> = pairs.filter(|((old, new), _)| differ(old, new)).collect();
        assert!(
            wrong.is_empty(),
            "{name}: {} of {}: {:#x?}",
            wrong.len(),
            old.len(),
            &wrong[..wrong.len().min(3)]
        );
    }
}

#[test]
fn lines_and_inlined_calls() {
    const VERSIONS: [&str; 4] = ["-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gdwarf-2"];
    for version in VERSIONS.into_iter().take(testing::sample(2, VERSIONS.len())) {
        Pair::new("feature.c", &["-O2", version, "-fexceptions"], 3).check_lines(version);
    }
    Pair::new("feature.cc", &["-O2", "-g3"], 4).check_lines("feature.cc");
}

/// The functions and variables that GDB shows where a callback of the C library was called.
fn callers(image: &Path) -> Vec<String> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut guest = Command::new("qemu-alpha");
    guest.args(["-g", &port]).arg(image).env("QEMU_LD_PREFIX", "/usr/alpha-linux-gnu");
    let mut guest = guest.stdout(Stdio::null()).spawn().expect("qemu-alpha is needed");
    let commands = [
        "set confirm off",
        "handle all nostop noprint pass",
        "set sysroot /usr/alpha-linux-gnu",
        &format!("target remote :{port}"),
        "tbreak count_frames",
        "continue",
        "backtrace",
        "tbreak compare",
        "continue",
        "backtrace",
        "print *(long *)a",
        "print *(long *)b",
        "kill",
    ];
    let mut command = Command::new("gdb-multiarch");
    command.args(["-nx", "-batch"]);
    commands.iter().for_each(|one| _ = command.args(["-ex", one]));
    let output = command.arg(image).output().expect("gdb-multiarch is needed");
    let _ = guest.kill();
    guest.wait().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut shown = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('#') && line.contains("feature.c:") {
            let name = words.iter().position(|word| *word == "in").map_or(1, |at| at + 1);
            shown.push(format!("{} {}", words[name], words.last().unwrap_or(&"")));
        } else if line.starts_with('$') {
            shown.push(line.to_string());
        }
    }
    assert!(shown.iter().filter(|one| one.starts_with("main")).count() == 2, "{text}");
    shown
}

#[test]
fn gdb_shows_the_same_callers_and_variables() {
    let pair = Pair::new("feature.c", &["-O2", "-g", "-fexceptions"], 5);
    let original = callers(&pair.directory.path().join("original"));
    assert!(original.len() > 8, "{original:?}");
    assert_eq!(callers(&pair.directory.path().join("rewritten")), original);
}
