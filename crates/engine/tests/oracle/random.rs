//! Random sequences of instructions, interpreted and counted, compared with qemu-alpha. (`tests/float_qemu.rs` tests
//! floating-point arithmetic, `tests/compiler` compiled code.)

use crate::engine::{Detail, Engine, Run};
use crate::guest::directory;
use crate::sequences::Kind;
use crate::sequences::batch::Batch;
use crate::sequences::explain::explain;
use crate::sequences::run;

const BATCH: usize = 2000;

#[test]
fn random_sequences_agree_with_qemu() {
    let directory = directory("random");
    for seed in 1000..1002 {
        let batch = Batch::random(Kind::Plain, seed, BATCH);
        let program = directory.join("random");
        batch.write(&program);
        let mut run = Run::new(program.clone(), Detail::Nothing);
        run.arguments.push("write".into());
        assert_eq!(Engine::start(&run).finish().1.end, "status 0", "seed {seed}");
        let ours = std::fs::read(run.output("engine.stdout")).expect("output");
        let theirs = run::qemu(&program).expect("qemu-alpha runs it");
        assert_eq!((ours.len(), theirs.len()), (batch.bytes(), batch.bytes()), "seed {seed}");
        if let Some(first) = batch.differing(&ours, &theirs).first() {
            let sides = [("ours", &*ours), ("qemu", &*theirs)];
            panic!("seed {seed}, sequence {first}:\n{}", explain(&batch, *first, sides));
        }
    }
}
