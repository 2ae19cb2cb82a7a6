//! Some thousand random sequences. `make fuzz` runs any number and minimizes failures: `target/release/fuzz
//! shrink full SEED WAY SEQUENCE` minimizes a failure of this test.

use crate::compare;
use crate::sequences::Kind;
use crate::sequences::batch::Batch;

const BATCH: usize = 500;

macro_rules! batches {
    ($($test:ident: $kind:ident, seed $seed:literal, compiled after $threshold:literal;)*) => {
        $(#[test]
        fn $test() {
            compare(&Batch::random(Kind::$kind, $seed, BATCH), Kind::$kind, &[$threshold]);
        })*
    };
}

batches! {
    without_exceptions_1: Plain, seed 1, compiled after 1;
    without_exceptions_2: Plain, seed 2, compiled after 3;
    with_exceptions_1: Full, seed 11, compiled after 1;
    with_exceptions_2: Full, seed 12, compiled after 2;
    with_exceptions_3: Full, seed 13, compiled after 3;
    with_exceptions_4: Full, seed 14, compiled after 3;
}
