//! Rewritten programs do what the originals do: as they are, and with all procedures and blocks in random order. The
//! original code is cleared, so that a pointer that was missed ends the program.

mod debug;
mod far;
mod guest;
mod random;
mod unwinding;

use std::path::{Path, PathBuf};

use pathlength_spike::optimize::{self, Options};
use pathlength_spike::{lift, output};
use random::{give_random_counts, shuffled};
use tempfile::TempDir;

/// Ways to build a program: name, and switches.
const BUILDS: [(&str, &[&str]); 15] = [
    ("-O2", &["-O2"]),
    ("-O0", &["-O0"]),
    ("-Os", &["-Os"]),
    ("ev5", &["-O2", "-mcpu=ev5"]),
    ("ev67", &["-O3", "-mcpu=ev67"]),
    ("unrelaxed", &["-O2", "-Wl,--no-relax"]),
    ("relaxed", &["-O2", "-Wl,--relax", "-mcpu=ev56"]),
    ("small text", &["-O2", "-msmall-text", "-Wl,--relax"]),
    ("large text", &["-O2", "-mlarge-text"]),
    ("small data", &["-O2", "-msmall-data"]),
    ("sections", &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]),
    ("PIC", &["-O2", "-fPIC"]),
    ("PIE", &["-O2", "-fPIE", "-pie"]),
    ("no PIE", &["-O1", "-fno-PIE", "-no-pie", "-g"]),
    ("traps", &["-O2", "-fnon-call-exceptions", "-mieee"]),
];
/// The builds that are always tested; of the rest, a part in `make test-long`.
const SAMPLE: usize = 2;

/// Programs, builds and seeds in which errors were found.
const FOUND: [(&str, &str, u64); 2] = [("feature.c", "sections", 5), ("feature.cc", "-O0", 1)];

/// Seeds of random orders; 0 is the original order.
fn seeds() -> std::ops::Range<u64> {
    0..testing::sample(2, 4)
}

fn builds(first: usize) -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    let count = testing::sample(SAMPLE, BUILDS.len());
    BUILDS.iter().cycle().skip(first).take(count)
}

/// Writes an image in random order to another file. Returns the share of blocks that could be moved.
fn rewrite(from: &Path, to: &Path, seed: u64) -> f64 {
    let program = lift::lift(std::fs::read(from).unwrap()).unwrap_or_else(|error| panic!("{error}"));
    let (bytes, _) =
        output::write(&program, &shuffled(&program, seed)).unwrap_or_else(|error| panic!("{error}"));
    guest::write_executable(to, &bytes);
    let is_free = |block: &&_| {
        let block: &pathlength_spike::program::CodeBlock = block;
        program.procedures[block.procedure as usize].frozen.is_none()
    };
    program.blocks.iter().filter(is_free).count() as f64 / program.blocks.len() as f64
}

/// A program, and what it does.
struct Original {
    directory: TempDir,
    expected: guest::Outcome,
}

impl Original {
    fn new(source: &str, switches: &[&str], prepare: impl FnOnce(&Path)) -> Original {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let program = directory.path().join("original");
        guest::build(&[source], switches, &program);
        let expected = guest::run_qemu(&program);
        assert!(expected.status.is_some_and(|status| status > 2), "{expected:?}");
        assert!(expected.output.lines().count() > 5, "{expected:?}");
        Original { directory, expected }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Checks the program in random order, both ways.
    fn check(&self, name: &str, seed: u64) {
        let rewritten = self.path("rewritten");
        let share = rewrite(&self.path("original"), &rewritten, seed);
        assert!(share > 0.8, "{name}: only {share} of the blocks can be moved");
        self.check_runs(&rewritten, name, seed);
    }

    fn check_runs(&self, rewritten: &Path, name: &str, seed: u64) {
        assert_eq!(guest::run_qemu(rewritten), self.expected, "{name}, seed {seed}: qemu-alpha");
        assert_eq!(guest::run_engine(rewritten), self.expected, "{name}, seed {seed}: engine");
    }
}

fn check_all(source: &str, first: usize, extra: &[&str]) {
    for (name, switches) in builds(first) {
        let switches: Vec<&str> = switches.iter().chain(extra).copied().collect();
        let original = Original::new(source, &switches, |_| ());
        seeds().for_each(|seed| original.check(&format!("{source} {name}"), seed));
    }
}

#[test]
fn c_program() {
    check_all("feature.c", 0, &["-fexceptions"]);
}

#[test]
fn exceptions() {
    check_all("feature.cc", 13, &[]);
}

#[test]
fn optimized_by_any_profile() {
    for source in ["feature.c", "feature.cc"] {
        for (name, switches) in builds(4) {
            let switches: Vec<&str> = switches.iter().copied().chain(["-fexceptions"]).collect();
            let original = Original::new(source, &switches, |_| ());
            for seed in 1..testing::sample(2, 3) {
                let bytes = std::fs::read(original.path("original")).unwrap();
                let mut program = lift::lift(bytes).unwrap_or_else(|error| panic!("{error}"));
                give_random_counts(&mut program, seed);
                let optimized = optimize::optimize(program, &[], Options::default()).unwrap();
                guest::write_executable(&original.path("rewritten"), &optimized.bytes);
                original.check_runs(&original.path("rewritten"), &format!("{source} {name}"), seed);
            }
        }
    }
}

#[test]
fn errors_that_were_found() {
    for (source, name, seed) in FOUND {
        let switches = BUILDS.iter().find(|build| build.0 == name).expect("a build of this name").1;
        let switches: Vec<&str> = switches.iter().copied().chain(["-fexceptions"]).collect();
        Original::new(source, &switches, |_| ()).check(&format!("{source} {name}"), seed);
    }
}

/// Halves of addresses with the same symbol and addend, as they are in sections of their own, and with the upper half not
/// last before the lower one.
const HALVES: &str = r#"
#include <stdio.h>
__asm__("
    .section SECTION.one,\"FLAGS\"\n one: .quad 11\n
    .section SECTION.two,\"FLAGS\"\n two: .quad 22\n
    .text\n .align 4\n .globl pick\n .type pick,@function\n
pick: ldgp $29,0($27)\n
    ldah $1,one($29)\t!gprelhigh\n
    ldah $2,two($29)\t!gprelhigh\n
    blt $16,3f\n
    beq $16,2f\n
    ldq $0,one($1)\t!gprellow\n
    ret\n
2:  mov $31,$1\n
    ldq $0,two($2)\t!gprellow\n
    ret\n
3:  ldq $0,one($1)\t!gprellow\n
    ret\n
    .size pick,.-pick\n
");
long pick(long);
int main(int count, char **arguments) {
    freopen(arguments[1], "w", stdout);
    for (long i = -3; i < 4; i++) printf("%ld\n", pick(i));
    return 5;
}
"#;

fn build_halves(section: &str, flags: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("halves.c");
    let text = HALVES.replace("SECTION", section).replace("FLAGS", flags);
    // A string in C is one line.
    let (before, rest) = text.split_once("__asm__(\"").unwrap();
    let (assembly, after) = rest.split_once("\n\");").unwrap();
    std::fs::write(&source, format!("{before}__asm__(\"{}\");{after}", assembly.replace('\n', ""))).unwrap();
    guest::build(&[source.to_str().unwrap()], &["-O1", "-Wl,--no-relax"], &directory.path().join("original"));
    directory
}

#[test]
fn halves_of_addresses() {
    let directory = build_halves(".rodata", "a");
    let original = Original { expected: guest::run_qemu(&directory.path().join("original")), directory };
    assert_eq!(original.expected.output, "11\n11\n11\n22\n11\n11\n11\n");
    for seed in seeds() {
        rewrite(&original.path("original"), &original.path("rewritten"), seed);
        original.check_runs(&original.path("rewritten"), "halves", seed);
    }
    // Of code, which moves, both halves must be known.
    let directory = build_halves(".text", "ax");
    let refused = lift::lift(std::fs::read(directory.path().join("original")).unwrap());
    let message = refused.map(|_| "accepted").unwrap_err().to_string();
    assert!(message.contains("cannot be told apart"), "{message}");
}

/// A program and a shared object that it loads, both in random order.
#[test]
fn shared_object() {
    for (name, switches) in builds(11) {
        let map = format!("-Wl,--version-script={}", guest::source("library.map").display());
        let of_library: Vec<&str> =
            switches.iter().copied().filter(|one| !one.to_lowercase().contains("pie")).collect();
        let of_library = [&of_library, ["-fPIC", "-shared", map.as_str()].as_slice()].concat();
        let prepare =
            |directory: &Path| guest::build(&["library.c"], &of_library, &directory.join("library.so"));
        let define = ["-fexceptions", "-DLIBRARY=\"library.so\"", "-Wl,-rpath,$ORIGIN"];
        let switches: Vec<&str> = switches.iter().chain(&define).copied().collect();
        let original = Original::new("feature.c", &switches, prepare);
        assert!(original.expected.output.contains("version 7"), "{:?}", original.expected);
        for seed in seeds() {
            let directory = tempfile::tempdir().unwrap();
            let rewritten = directory.path().join("rewritten");
            rewrite(&original.path("original"), &rewritten, seed);
            rewrite(&original.path("library.so"), &directory.path().join("library.so"), seed + 7);
            original.check_runs(&rewritten, name, seed);
        }
    }
}

/// Not a test of its own: [`guest::run_engine`] starts it.
#[test]
#[ignore = "a part of the other tests"]
fn on_engine() {
    guest::run_engine_here();
}

/// An object file with so many addresses in the global offset table that another one needs a global pointer of its own.
fn object_with_table(number: usize, entries: usize) -> String {
    use std::fmt::Write;
    let mut text = format!("long touch{number}(long value) {{\n    long sum = 0, one;\n");
    for index in 0..entries {
        let name = format!("v{number}_{index}");
        if index % 8 == 0 {
            text += "    __asm__ volatile(\"";
        }
        write!(text, ".comm {name},8\\n\\tldq %0,{name}($29)\\t!literal\\n\\t").unwrap();
        if index % 8 == 7 {
            writeln!(text, "ldq %0,0(%0)\" : \"=r\"(one));\n    sum += one;").unwrap();
        }
    }
    text += "    switch (value) {\n";
    for case in 0..20 {
        writeln!(
            text,
            "    case {case}: sum += {}; __asm__ volatile(\"\" : \"+r\"(sum)); break;",
            case * case + number
        )
        .unwrap();
    }
    text + "    }\n    return sum;\n}\n"
}

/// Images with several global pointers: words of tables are relative to that of their procedure.
#[test]
fn several_global_pointers() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    const COUNT: usize = 3;
    let mut main = String::from("#include <stdio.h>\n");
    for number in 0..COUNT {
        main += &format!("long touch{number}(long);\n");
        std::fs::write(path(&format!("{number}.c")), object_with_table(number, 5000)).unwrap();
    }
    main += "int main(int count, char **arguments) {\n    freopen(arguments[1], \"w\", stdout);\n";
    main +=
        "    for (long i = 0; i < 21; i++) printf(\"%ld %ld %ld\\n\", touch0(i), touch1(i), touch2(i));\n";
    main += "    return 5;\n}\n";
    std::fs::write(path("main.c"), main).unwrap();
    let sources: Vec<PathBuf> =
        (0..COUNT).map(|number| path(&format!("{number}.c"))).chain([path("main.c")]).collect();
    let sources: Vec<&str> = sources.iter().map(|path| path.to_str().unwrap()).collect();
    guest::build(&sources, &["-O1", "-Wl,--no-relax"], &path("original"));
    let program = lift::lift(std::fs::read(path("original")).unwrap()).unwrap();
    let pointers: std::collections::BTreeSet<u64> =
        program.global_pointers.iter().map(|one| one.value).collect();
    assert!(pointers.len() >= COUNT, "{pointers:x?}");
    let original = Original { expected: guest::run_qemu(&path("original")), directory };
    assert_eq!(original.expected.output.lines().last(), Some("0 0 0"));
    (0..3).for_each(|seed| original.check("several global pointers", seed));
}
