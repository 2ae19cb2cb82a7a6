//! What programs ask of a processor and an operating system, a theme a program, at every level of
//! optimization.

mod agreement;

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            agreement::agree(stringify!($name), &["-O0", "-O1", "-O2", "-O3"], 1);
        })*
    };
}

programs! {
    integer
    bytes
    floating
    sort
    files
    time
    signals
    limits
    processes
    feature_faults
    feature_registers
    feature_unaligned
    feature_code
    feature_stacks
}
