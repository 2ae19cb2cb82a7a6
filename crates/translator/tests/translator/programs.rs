//! Programs do as they do natively.

use std::path::Path;

use events::ProcessEnd;

use crate::support::translated;

#[test]
fn a_program_of_the_system_runs() {
    let run = translated(Path::new("/bin/true"), &[]);
    assert_eq!(run.end, ProcessEnd::Exited(0));
    assert!(run.counts.instructions() > 10_000);
}
