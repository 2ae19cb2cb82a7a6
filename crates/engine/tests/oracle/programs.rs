//! Real programs, every instruction of which is compared.

use crate::edge::{ROBUST_LIST, RPCC, STATUS};
use crate::engine::{Detail, Run};
use crate::guest::{compile, directory};
use crate::lockstep::{Agreement, compare};

/// Builds and compares one program.
fn agree(name: &str, detail: Detail, switches: &[&str]) -> Agreement {
    let directory = directory(&format!("{name}-{detail:?}"));
    let source = format!("{name}.c");
    compare(&Run::new(compile(&directory, name, &[&source], switches), detail))
}

#[test]
fn hello_by_register() {
    let agreed = agree("hello", Detail::Registers, &[]);
    assert_eq!(agreed.stdout, "hello from /hello with 0 arguments, 0.667\n");
    assert_eq!(agreed.explained, [RPCC, ROBUST_LIST, STATUS]);
}

macro_rules! programs {
    ($($test:ident: $name:literal, $detail:ident, $switches:expr;)*) => {
        $(#[test]
        fn $test() {
            agree($name, Detail::$detail, &$switches);
        })*
    };
}

programs! {
    hello_by_address: "hello", Addresses, [];
    integers_by_register: "integer", Registers, ["-mcpu=ev67"];
    integers_by_address: "integer", Addresses, ["-mcpu=ev5"];
    bytes_by_register: "bytes", Registers, ["-mcpu=ev5", "-mno-bwx"];
    bytes_by_address: "bytes", Addresses, ["-mcpu=ev56", "-mbwx"];
    floating_by_register: "floating", Registers, ["-mieee", "-lm"];
    sort_by_address: "sort", Addresses, [];
    files_by_address: "files", Addresses, [];
}

#[test]
#[ignore = "takes minutes"]
fn test_programs_by_address() {
    let floating =
        ["-lm", "-frounding-math", "-ffp-contract=off", "-mieee-with-inexact", "-mfp-rounding-mode=d"];
    let programs: [(&str, &[&str]); 4] =
        [("integer", &["-mcpu=ev6"]), ("bytes", &["-mcpu=ev56"]), ("floating", &floating), ("sort", &[])];
    for (name, switches) in programs {
        let directory = directory(&format!("{name}-long"));
        let source = format!("../../../../../workloads/tests/{name}.c");
        let program = compile(&directory, name, &[&source], switches);
        assert_eq!(compare(&Run::new(program, Detail::Addresses)).summary.end, "status 0", "{name}");
    }
}
