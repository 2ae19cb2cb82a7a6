//! Faults in the middle of blocks: the registers that a handler sees, and that only completed instructions are
//! counted. (Registers are not compared one by one: qemu's signal frame is 16 bytes shorter than Linux's, so that
//! addresses in it differ.)

use crate::engine::{Detail, Run};
use crate::guest::{compile, directory};
use crate::lockstep::compare;

#[test]
fn faults_are_precise_and_counted_exactly() {
    let directory = directory("faults");
    let program = compile(&directory, "faults", &["faults.c"], &["-mcpu=ev67"]);
    let agreed = compare(&Run::new(program, Detail::Addresses));
    for line in ["no fault: 31", "code 1, address page+16388, pc of the fault+0", "breakpoint: 31"] {
        assert!(agreed.stdout.contains(line), "{line} is not in\n{}", agreed.stdout);
    }
}
