//! A database compared with the oracle: TPC-B on SQLite, both builds, every instruction also executed by qemu-alpha.

// The oracle's modules refer to the engine's crate by its full name.
extern crate engine as pathlength_engine;

#[path = "../../../engine/tests/oracle/edge.rs"]
mod edge;
#[path = "../../../engine/tests/oracle/engine.rs"]
mod engine;
#[path = "../../../engine/tests/oracle/guest.rs"]
#[expect(dead_code, reason = "the workload is compiled by `workloads`")]
mod guest;
#[path = "../../../engine/tests/oracle/lockstep.rs"]
#[expect(dead_code, reason = "the databases say more than standard output")]
mod lockstep;
#[path = "../../../engine/tests/oracle/qemu.rs"]
mod qemu;

use testing::sample;
use workloads::build::{BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, ORIGINAL, Toolchain};
use workloads::workload::Workload;

use crate::engine::{Detail, Run};
use crate::guest::directory;
use crate::lockstep::compare;

/// Loads a small bank and runs transactions on both sides, which must leave the same database.
fn agree(toolchain: Toolchain, cpu: &str) {
    let workload = Workload::named("tpcb").expect("the workload");
    let folders = BuildFolders { folder: testing::builds(), sources: None };
    let builds = build(workload, &[toolchain], &folders, &|_| {});
    let program = builds.expect("the workload builds").remove(0).program;
    let directory = directory(&format!("tpcb-{}", toolchain.name));
    let run = |arguments: &[&str]| Run {
        directory: directory.clone(),
        arguments: arguments.iter().map(|text| text.to_string()).collect(),
        cpu: cpu.into(),
        ..Run::new(program.clone(), Detail::Addresses)
    };
    let (accounts, transactions) = sample(("10", "2"), ("30", "5"));
    compare(&run(&["load", "--branches", "1", "--accounts-per-branch", accounts, "bank"]));
    let agreed = compare(&run(&["run", "--transactions", transactions, "bank"]));
    assert_eq!(agreed.summary.end, "status 0");
    let [ours, theirs] =
        ["ours", "qemu"].map(|side| std::fs::read(directory.join(side).join("bank")).expect("a file"));
    assert!(!ours.is_empty() && ours == theirs, "the databases differ");
}

#[test]
fn original_build_by_address() {
    agree(ORIGINAL, "ev5");
}

#[test]
fn byte_word_build_by_address() {
    agree(BYTE_WORD, "ev56");
}
