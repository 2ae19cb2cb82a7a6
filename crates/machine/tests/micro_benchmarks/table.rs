//! The table of all micro-benchmarks on all machines, which docs/micro-benchmarks.md shows.

use std::fmt::Write;
use std::path::Path;

use super::{DIFFERENT_MACHINES, Described, all};

const HEAD: &str = "# Micro-benchmarks

What the models of machines compute for small programs whose results follow from the machines' files. Each has a formula of the
fields ([machines.md](machines.md)), which stands beside it in `crates/machine/tests/micro_benchmarks/`; the test compares both on every
machine, and this table with what it measured. After a change of a machine or a model,
`PATHLENGTH_WRITE_MICRO_BENCHMARKS=1 cargo test -p pathlength-machine --test micro_benchmarks` writes it anew.

Latencies are those of chains, in which each instruction needs the result of the one before; the others are independent of each other. Loops
run until they are steady. Level 1 is L1; the last level is memory. TLB misses are those of all TLBs of a path. `-` stands where a machine
has no such thing.

*A store and a load after it*: the store stores what the load before has loaded. An out-of-order core forwards the data if the store has all of the
load's bytes; else the load waits until the store is written, and is issued again. The 21164 replays a load of a longword stored in the
cycle before.

*TLB misses*: where software fills a TLB (21264, R10000), an out-of-order core takes a trap when the access would retire, and fetches it again after the
trap; such misses do not overlap. Tables that hardware walks overlap without limit.

";

/// The measurements of all micro-benchmarks on all machines, and those that differ from their formulas.
#[test]
fn formulas_and_table() {
    let machines = Described::all();
    let (mut text, mut wrong, mut cases) = (HEAD.to_owned(), String::new(), 0);
    let mut section = "";
    for one in all() {
        if one.section != section {
            section = one.section;
            let blank = if text == HEAD { "" } else { "\n" };
            let _ = writeln!(
                text,
                "{blank}## {section}\n\n| | {} |\n|---|{}",
                DIFFERENT_MACHINES.join(" | "),
                "---|".repeat(DIFFERENT_MACHINES.len())
            );
        }
        let mut row = vec!["-".to_owned(); DIFFERENT_MACHINES.len()];
        for described in &machines {
            let Some((measured, expected)) = (one.case)(described) else { continue };
            cases += 1;
            if !expected.fits(measured) {
                let _ = writeln!(
                    wrong,
                    "{}, {} on {}: {measured}, not {expected}",
                    one.section, one.name, described.name
                );
            }
            if let Some(index) = DIFFERENT_MACHINES.iter().position(|name| *name == described.name) {
                row[index] = number(measured);
            }
        }
        let _ = writeln!(text, "| {} | {} |", one.name, row.join(" | "));
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases > 500, "{cases}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/micro-benchmarks.md");
    if std::env::var_os("PATHLENGTH_WRITE_MICRO_BENCHMARKS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let documented = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(documented == text, "docs/micro-benchmarks.md is not what is measured: see its first lines");
}

/// With two digits at most.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
