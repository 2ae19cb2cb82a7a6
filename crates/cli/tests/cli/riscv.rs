//! The commands on programs of RISC-V.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{csv, run};

/// The folder with the programs: `work` and `slow`, which is not optimized as much, both static; `dynamic`; and `shifts` and
/// `shifts-static`, which use an instruction of Zba.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("riscv");
        std::fs::create_dir_all(&folder).unwrap();
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests");
        let work = guests.join("riscv_work.c");
        let shifts = folder.join("shifts.c");
        std::fs::write(
            &shifts,
            "int main(void) { long a = 3, b = 4; asm(\"sh1add %0,%0,%1\" : \"+r\"(a) : \"r\"(b)); return a - 10; }\n",
        )
        .unwrap();
        let compile = |name: &str, source: &Path, switches: &[&str]| {
            let mut compiler = Command::new("riscv64-linux-gnu-gcc");
            let built = compiler.args(switches).args(["-g", "-pthread", "-o"]).arg(folder.join(name)).arg(source);
            assert!(built.status().expect("riscv64-linux-gnu-gcc is needed").success(), "{built:?}");
        };
        compile("work", &work, &["-O2", "-static"]);
        compile("slow", &work, &["-O1", "-static"]);
        compile("dynamic", &work, &["-O2"]);
        compile("shifts", &shifts, &["-O1", "-march=rv64gc_zba"]);
        compile("shifts-static", &shifts, &["-O1", "-march=rv64gc_zba", "-static"]);
        folder
    })
}

/// Each command's output has the expected words.
#[test]
fn every_command_takes_a_riscv_program() {
    let folder = folder().display();
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("work.trace").display().to_string();
    run(&format!("trace --heap -o {trace} {folder}/dynamic")).noted_success();
    let cases = [
        ("count --by function --format csv", "dynamic", "work,dynamic,"),
        ("count --unit work --by function --format csv", "work", "memset,work,"),
        ("count --children", "dynamic", "ld-linux-riscv64-lp64d.so.1 "),
        ("count --by line --format csv", "work", "riscv_work.c:"),
        ("calls", "work", "work"),
        ("units --unit work", "work", "What one call of work costs"),
        ("annotate --function work --format csv", "work", "numbers[i % 1000] += i;"),
        ("faults", "work", "4-byte load"),
        ("strides --by array --format csv", "work", "numbers,"),
        ("caches --by function --format csv", "work", "work,work,"),
        ("mrc", "work", "Lines of 64 bytes"),
        ("time --by function --format csv", "work", "work,work,"),
        ("sharing", "dynamic", "line"),
        ("sample --every 1000", "work", "work"),
        ("static", "work", "work"),
    ];
    for (words, program, expected) in cases {
        let outcome = run(&format!("{words} {folder}/{program}"));
        let said = outcome.noted_success();
        assert!(said.contains(expected), "{words}: {said}");
    }
    for (words, expected) in [
        ("check", "violations "),
        ("show --table functions --format csv", "work,dynamic,"),
        ("strides --by array --format csv", "numbers,"),
        ("caches --by line --format csv", "riscv_work.c:"),
        ("time", "cycles"),
    ] {
        let said = run(&format!("{words} {trace}")).noted_success();
        assert!(said.contains(expected), "{words}: {said}");
    }
    let changed = run(&format!("compare {folder}/slow {folder}/work")).noted_success();
    assert!(changed.contains("work"), "{changed}");
}

/// Function by function. QEMU refuses set_robust_list, after which the C library executes one instruction less.
#[test]
fn counts_are_those_of_qemu() {
    let folder = folder().display();
    let scratch = tempfile::tempdir().unwrap();
    let functions = |command: &str| {
        let trace = scratch.path().join(command).display().to_string();
        run(&format!("{command} -o {trace} {folder}/shifts-static")).code();
        let table = run(&format!("show --table functions --format csv {trace}")).noted_success();
        let rows = csv(&table).into_iter().map(|row| row[..3].to_vec());
        let mut rows: Vec<_> = rows.filter(|row| !["__tls_init_tp", "total"].contains(&&*row[0])).collect();
        rows.sort();
        rows
    };
    let (ours, qemus) = (functions("trace"), functions("qemu"));
    assert!(ours.len() > 30, "{ours:?}");
    assert_eq!(ours, qemus);
}

#[test]
fn a_set_of_extensions_is_all_that_a_program_has() {
    let folder = folder().display();
    let program = format!("{folder}/shifts");
    for set in ["", "--cpu rv64gc_zba", "--cpu rva22u64", "--cpu ev5"] {
        run(&format!("run {set} {program}")).quiet_success();
    }
    let ended = run(&format!("count --cpu rv64gc {program}"));
    let said = &ended.stderr;
    assert!(said.contains("SIGILL (illegal instruction)") && said.contains("shifts!main+"), "{said}");
    assert_eq!(ended.code(), 1);
    let refused = run(&format!("run --cpu rv64gc_zxy {program}"));
    assert!(refused.stderr.contains("unknown extension \"zxy\""), "{}", refused.stderr);
    assert_eq!(refused.code(), 2);
}

/// Packages come from a network; their errors do not.
#[test]
fn a_sysroot_that_cannot_be_fetched_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("root").display().to_string();
    let words = format!("sysroot riscv64 lua5.4 -o {output} --archive file://{}", folder.path().display());
    let ended = run(&words);
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.lines().last().unwrap().starts_with("pathlength: apt-get failed: "),
        "{}",
        ended.stderr
    );
    let refused = run("sysroot sparc64 lua5.4");
    assert!(refused.code() == 2 && refused.stderr.contains("possible values: riscv64"), "{}", refused.stderr);
}
