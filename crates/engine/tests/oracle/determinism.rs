//! Running the same command twice gives the same counts, even for programs that read clocks, random numbers and
//! addresses.

use crate::engine::{Detail, Engine, Run};
use crate::guest::{compile, directory};

#[test]
fn twice_the_same() {
    let directory = directory("determinism");
    let program = compile(&directory, "edge", &["edge.c"], &[]);
    let run = |detail| {
        let (stdout, summary) = Engine::start(&Run::new(program.clone(), detail)).finish();
        (stdout, summary.end, serde_json::to_string(&summary.counts).expect("plain data"))
    };
    let first = run(Detail::Nothing);
    assert!(first.0.contains("2026"), "{}", first.0);
    assert_eq!(first, run(Detail::Nothing));
    assert_eq!(first, run(Detail::Addresses), "watching changes nothing");
}
